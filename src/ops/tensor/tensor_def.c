/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for transforms, concatenation and reshape, on both devices: take
 * whatever the rules accept. */
#include "ops/engine.h"
#include "ops/tensor/concat_place.h"
#include "ops/tensor/tensor_args.h"

#define WD_DEF_MODULE tensor_def
#define WD_DEF_BODY "ops/tensor/tensor_def.h"
#define WD_DEF_PASSES "ops/tensor/tensor_passes.def"
#include "ops/definition_host.inc"

enum { SRC, DEST };
enum { ALPHA, BETA };

static cudnnStatus_t transform(const struct wd_call *call, struct wd_queue *queue)
{
    struct transform_args args = {
        .src = wd_call_view(call, SRC),
        .dest = wd_call_view(call, DEST),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .attr = call->problem.node->attr.transform,
    };
    wd_view_order(&args.dest, args.order);
    return wd_emit_map(queue, &wd_pass_transform, wd_problem_acc(&call->problem), &args,
                       wd_view_count(&args.dest));
}

static struct move_args move_args(const struct wd_call *call, int x, int y)
{
    struct move_args args = {.x = wd_call_view(call, x), .y = wd_call_view(call, y), .per_item = 1};
    int bits = wd_dtype_bits(args.y.dtype);
    if (bits > 0 && bits < 8) args.per_item = 8 / bits;
    args.same = args.x.dtype == args.y.dtype;
    wd_view_order(&args.x, args.order_x);
    wd_view_order(&args.y, args.order_y);
    return args;
}

static cudnnStatus_t concat(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_concat_attr *attr = &call->problem.node->attr.concat;
    bool lies = false;
    int64_t first = 0;
    for (int pass = 0; pass < 2; ++pass, first = 0) { /* nothing is written before all is known */
        for (int i = 0; i < attr->inputs; ++i) {
            struct move_args args = move_args(call, CONCAT_X + i, CONCAT_Y);
            int64_t bytes = (wd_view_count(&args.y) + args.per_item - 1) / args.per_item;
            int64_t elements = wd_view_count(&args.x);
            args.axis = attr->axis;
            args.first = first;
            first += args.x.dim[attr->axis];
            if (elements == 0) continue;
            if (pass == 0 && i == attr->in_place) {
                WD_TRY(wd_concat_look(call, i, args.first, &lies));
            }
            if (pass == 0 || (i == attr->in_place && lies)) continue;
            WD_TRY(wd_emit_map(queue, &wd_pass_concat, WD_ACC_F32, &args,
                               args.per_item == 1 ? elements : bytes));
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

enum { RESHAPE_X, RESHAPE_Y };

static cudnnStatus_t reshape(const struct wd_call *call, struct wd_queue *queue)
{
    struct move_args args = move_args(call, RESHAPE_X, RESHAPE_Y);
    const struct wd_tensor *x = wd_call_tensor(call, RESHAPE_X);
    const struct wd_tensor *y = wd_call_tensor(call, RESHAPE_Y);
    int64_t count = wd_view_count(&args.y);
    if (args.same && wd_tensor_is_packed(x) && wd_tensor_is_packed(y)) {
        if (args.x.data == args.y.data || count == 0) return CUDNN_STATUS_SUCCESS;
        return queue->ops->copy(queue, args.y.data, args.x.data, (size_t)wd_tensor_extent(y));
    }
    return wd_emit_map(queue, &wd_pass_reshape, WD_ACC_F32, &args,
                       (count + args.per_item - 1) / args.per_item);
}

const struct wd_engine wd_engine_transform_def_cpu = {
    .name = "transform_def",
    .op = WD_OP_TRANSFORM,
    .device = WD_CPU,
    .last_resort = true,
    .emit = transform,
};

const struct wd_engine wd_engine_transform_def_gpu = {
    .name = "transform_def",
    .op = WD_OP_TRANSFORM,
    .device = WD_GPU,
    .last_resort = true,
    .emit = transform,
};

const struct wd_engine wd_engine_concat_def_cpu = {
    .name = "concat_def",
    .op = WD_OP_CONCAT,
    .device = WD_CPU,
    .last_resort = true,
    .emit = concat,
};

const struct wd_engine wd_engine_concat_def_gpu = {
    .name = "concat_def",
    .op = WD_OP_CONCAT,
    .device = WD_GPU,
    .last_resort = true,
    .emit = concat,
};

const struct wd_engine wd_engine_reshape_def_cpu = {
    .name = "reshape_def",
    .op = WD_OP_RESHAPE,
    .device = WD_CPU,
    .last_resort = true,
    .emit = reshape,
};

const struct wd_engine wd_engine_reshape_def_gpu = {
    .name = "reshape_def",
    .op = WD_OP_RESHAPE,
    .device = WD_GPU,
    .last_resort = true,
    .emit = reshape,
};
