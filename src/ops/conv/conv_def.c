/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for convolution in its three directions, the fused forward, the bias
 * gradient and im2col, on both devices: they take whatever the rules accept. */
#include "graph/conv.h"
#include "graph/pointwise_modes.h"
#include "ops/conv/conv_args.h"
#include "ops/engine.h"
#include "ops/pointwise/pointwise_args.h"

#define WD_DEF_MODULE conv_def
#define WD_DEF_BODY "ops/conv/conv_def.h"
#define WD_DEF_PASSES "ops/conv/conv_passes.def"
#include "ops/definition_host.inc"

enum { PRODUCTS_A_TERM = 16, VALUES_A_TERM = 4 };

/* Which slot of an operation plays which part; -1: none. */
struct roles {
    int8_t x, w, y, z, b;
};

static struct roles roles_of(enum wd_op op)
{
    switch (op) {
    case WD_OP_CONV_FPROP: return (struct roles){0, 1, 2, -1, -1};
    case WD_OP_CONV_DGRAD: return (struct roles){2, 0, 1, -1, -1};
    case WD_OP_CONV_WGRAD: return (struct roles){0, 2, 1, -1, -1};
    case WD_OP_CONV_FUSED: return (struct roles){0, 1, 4, 2, 3};
    case WD_OP_BIAS_GRAD: return (struct roles){-1, -1, 0, -1, 1};
    default: return (struct roles){0, -1, 1, -1, -1}; /* im2col */
    }
}

static const struct wd_tensor *tensor_of(const struct wd_problem *problem, int slot)
{
    return slot < 0 ? NULL : wd_slot(problem->graph, problem->node, slot);
}

/* The 1 to 3 spatial dims of a tensor as the last of three. */
static void spatial_dims(const struct wd_tensor *tensor, int64_t *extent)
{
    int spatial = tensor->rank - 2;
    for (int d = 0; d < CONV_SPATIAL; ++d) {
        int own = d - (CONV_SPATIAL - spatial);
        extent[d] = own < 0 ? 1 : tensor->dim[2 + own];
    }
}

static struct conv_view view_of(const struct wd_tensor *tensor)
{
    struct conv_view view = {.lanes = 1};
    int spatial;
    if (!tensor) return view;
    spatial = tensor->rank - 2;
    view.dtype = tensor->dtype;
    view.lanes = tensor->vect_count;
    view.reordered = tensor->reordering == CUDNN_TENSOR_REORDERING_INT8x32;
    view.outer = tensor->stride[0] * tensor->vect_count;
    view.channel = tensor->stride[1] * tensor->vect_count;
    for (int d = 0; d < CONV_SPATIAL; ++d) {
        int own = d - (CONV_SPATIAL - spatial);
        view.space[d] = own < 0 ? 0 : tensor->stride[2 + own] * tensor->vect_count;
    }
    return view;
}

/* Everything but the pointers and scalars. */
static struct conv_args args_of(const struct wd_problem *problem)
{
    const struct wd_conv_attr *attr = &problem->node->attr.conv;
    struct roles roles = roles_of(problem->node->op);
    const struct wd_tensor *x = tensor_of(problem, roles.x);
    const struct wd_tensor *w = tensor_of(problem, roles.w);
    const struct wd_tensor *y = tensor_of(problem, roles.y);
    struct conv_args args;
    memset(&args, 0, sizeof args);
    args.x = view_of(x);
    args.w = view_of(w);
    if (problem->node->op != WD_OP_IM2COL) args.y = view_of(y);
    args.z = view_of(tensor_of(problem, roles.z));
    args.b = view_of(tensor_of(problem, roles.b));
    /* the bias of a reordered filter is reordered too */
    if (problem->node->op == WD_OP_CONV_FUSED) args.b.reordered = args.w.reordered;
    args.groups = attr->groups > 0 ? attr->groups : 1;
    args.batch = x ? x->dim[0] : y->dim[0];
    args.flip = attr->mode == CUDNN_CONVOLUTION;
    args.activation = attr->activation;
    args.chunk = PRODUCTS_A_TERM;
    if (x) spatial_dims(x, args.image);
    for (int d = 0; d < CONV_SPATIAL; ++d) {
        int own = d - (CONV_SPATIAL - attr->spatial);
        args.pad[d] = own < 0 ? 0 : attr->pad_before[own];
        args.stride[d] = own < 0 ? 1 : attr->stride[own];
        args.dilation[d] = own < 0 ? 1 : attr->dilation[own];
        args.filter[d] = own < 0 || w ? 1 : attr->window[own];
        if (problem->node->op == WD_OP_IM2COL) {
            args.output[d] =
                own < 0 ? 1 : wd_conv_output_dim(attr, own, x->dim[2 + own], attr->window[own]);
        }
    }
    if (problem->node->op == WD_OP_IM2COL) {
        args.group_channels = x->dim[1];
        args.y.dtype = y->dtype;
        return args;
    }
    spatial_dims(y, args.output);
    args.group_filters = y->dim[1] / args.groups;
    if (w) {
        spatial_dims(w, args.filter);
        args.group_channels = w->dim[1];
    }
    return args;
}

static int64_t volume(const int64_t *extent)
{
    return extent[0] * extent[1] * extent[2];
}

/* The reduction of an operation: its pass, its items and, in args, its products. */
static const struct wd_pass *reduction(enum wd_op op, struct conv_args *args, int64_t *items)
{
    int64_t filters = args->groups * args->group_filters;
    int64_t points = volume(args->output);
    int64_t taps = volume(args->filter);
    switch (op) {
    case WD_OP_CONV_DGRAD:
        *items = args->batch * args->groups * args->group_channels * volume(args->image);
        args->products = args->group_filters * taps;
        return &wd_pass_conv_dgrad;
    case WD_OP_CONV_WGRAD:
        *items = filters * args->group_channels * taps;
        args->products = args->batch * points;
        return &wd_pass_conv_wgrad;
    case WD_OP_BIAS_GRAD:
        *items = filters;
        args->products = args->batch * points;
        args->chunk = VALUES_A_TERM;
        return &wd_pass_bias_grad;
    default:
        *items = args->batch * filters * points;
        args->products = args->group_channels * taps;
        return op == WD_OP_CONV_FUSED ? &wd_pass_conv_fused : &wd_pass_conv_fprop;
    }
}

static int64_t terms_of(const struct conv_args *args)
{
    return (args->products + args->chunk - 1) / args->chunk;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct conv_args args = args_of(problem);
    int64_t items;
    const struct wd_pass *pass = reduction(problem->node->op, &args, &items);
    return wd_pass_scratch(pass, wd_problem_acc(problem), items, terms_of(&args));
}

static bool is_int32(double scalar)
{
    return scalar >= INT32_MIN && scalar <= INT32_MAX && scalar == (double)(int32_t)scalar;
}

/* Sums of bytes that go out as int32, whole alpha and beta. */
static bool wraps(const struct wd_call *call)
{
    const struct wd_problem *problem = &call->problem;
    const struct wd_tensor *x;
    if (problem->node->op != WD_OP_CONV_FPROP) return false;
    x = wd_slot(problem->graph, problem->node, 0);
    return (x->dtype == CUDNN_DATA_INT8 || x->dtype == CUDNN_DATA_UINT8) &&
           wd_slot(problem->graph, problem->node, 1)->dtype == CUDNN_DATA_INT8 &&
           wd_slot(problem->graph, problem->node, 2)->dtype == CUDNN_DATA_INT32 &&
           is_int32(call->scalars[0]) && is_int32(call->scalars[1]);
}

static void *data_of(const struct wd_call *call, int slot)
{
    return slot < 0 ? NULL : wd_call_data(call, slot);
}

static void bind(const struct wd_call *call, struct conv_args *args)
{
    struct roles roles = roles_of(call->problem.node->op);
    args->x.data = data_of(call, roles.x);
    args->w.data = data_of(call, roles.w);
    args->y.data = data_of(call, roles.y);
    args->z.data = data_of(call, roles.z);
    args->b.data = data_of(call, roles.b);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_problem *problem = &call->problem;
    struct conv_args args = args_of(problem);
    int64_t items;
    const struct wd_pass *pass = reduction(problem->node->op, &args, &items);
    bind(call, &args);
    args.has_z = args.z.data != NULL;
    args.alpha = call->scalars[0];
    args.beta = call->scalars[1];
    args.wraps = wraps(call);
    return wd_emit_reduce(queue, pass, wd_problem_acc(problem), &args, items, terms_of(&args),
                          call->workspace);
}

static cudnnStatus_t emit_im2col(const struct wd_call *call, struct wd_queue *queue)
{
    struct conv_args args = args_of(&call->problem);
    int64_t columns = args.batch * volume(args.output);
    bind(call, &args);
    return wd_emit_map(queue, &wd_pass_im2col, wd_problem_acc(&call->problem), &args,
                       args.group_channels * volume(args.filter) * columns);
}

const struct wd_engine wd_engine_conv_fprop_def_cpu = {
    .name = "conv_fprop_def",
    .op = WD_OP_CONV_FPROP,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_fprop_def_gpu = {
    .name = "conv_fprop_def",
    .op = WD_OP_CONV_FPROP,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_dgrad_def_cpu = {
    .name = "conv_dgrad_def",
    .op = WD_OP_CONV_DGRAD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_dgrad_def_gpu = {
    .name = "conv_dgrad_def",
    .op = WD_OP_CONV_DGRAD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_wgrad_def_cpu = {
    .name = "conv_wgrad_def",
    .op = WD_OP_CONV_WGRAD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_wgrad_def_gpu = {
    .name = "conv_wgrad_def",
    .op = WD_OP_CONV_WGRAD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_fused_def_cpu = {
    .name = "conv_fused_def",
    .op = WD_OP_CONV_FUSED,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_fused_def_gpu = {
    .name = "conv_fused_def",
    .op = WD_OP_CONV_FUSED,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_bias_grad_def_cpu = {
    .name = "bias_grad_def",
    .op = WD_OP_BIAS_GRAD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_bias_grad_def_gpu = {
    .name = "bias_grad_def",
    .op = WD_OP_BIAS_GRAD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_im2col_def_cpu = {
    .name = "im2col_def",
    .op = WD_OP_IM2COL,
    .device = WD_CPU,
    .last_resort = true,
    .emit = emit_im2col,
};

const struct wd_engine wd_engine_im2col_def_gpu = {
    .name = "im2col_def",
    .op = WD_OP_IM2COL,
    .device = WD_GPU,
    .last_resort = true,
    .emit = emit_im2col,
};
