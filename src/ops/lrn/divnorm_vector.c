/* SPDX-License-Identifier: Apache-2.0
 *
 * Divisive normalization on the GPU: packed two-dimensional images, NCHW, in fp32, fp16, bf16 and fp64.
 * The gradient goes plane by plane through a scratch that stays in the second-level cache; the
 * caller's temp and temp2 are not touched. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/engine.h"
#include "ops/lrn/divnorm_vector_args.h"

#define WD_KERNELS_MODULE divnorm_vector
#define WD_KERNELS_ROWS "ops/lrn/divnorm_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { DIV_X, DIV_MEANS, DIV_TEMP, DIV_TEMP2, DIV_Y };
enum { DIVB_X, DIVB_MEANS, DIVB_DY, DIVB_TEMP, DIVB_TEMP2, DIVB_DX, DIVB_DMEANS };
enum { ALPHA, BETA };

enum {
    WINDOW = 5,            /* that has kernels of its own */
    PLANE_MAX = 1 << 28,   /* elements */
    SCRATCH_MAX = 7 << 20, /* of the 8 MiB of calls without a workspace */
    SCRATCH_NUMBERS = 2,   /* a pixel */
};

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_HALF: return 1;
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return 3; /* fp64: the rule takes no others */
    }
}

static int64_t accumulator_bytes(int dtype)
{
    return dtype == CUDNN_DATA_DOUBLE ? 8 : 4;
}

static bool is_packed(const struct wd_tensor *t)
{
    int64_t expected = 1;
    for (int d = t->rank - 1; d >= 0; --d) {
        if (t->dim[d] != 1 && t->stride[d] != expected) return false;
        expected *= t->dim[d];
    }
    return true;
}

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_DIVNORM_BACKWARD;
}

static int64_t plane_scratch(const struct wd_tensor *x)
{
    return x->dim[2] * x->dim[3] * SCRATCH_NUMBERS * accumulator_bytes(x->dtype);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_lrn_attr *attr = &problem->node->attr.lrn;
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, DIV_X);
    const bool backward = is_backward(problem);
    const int slots[] = {DIV_X, DIV_MEANS, backward ? DIVB_DY : DIV_Y, backward ? DIVB_DX : DIV_Y,
                         backward ? DIVB_DMEANS : DIV_Y};
    WD_NEED(attr->window <= DIVNORM_WINDOW_MAX, reason, NOT_SUPPORTED_SHAPE,
            "a window of %d pixels, at most %d", attr->window, DIVNORM_WINDOW_MAX);
    WD_NEED(attr->alpha >= 0.0, reason, NOT_SUPPORTED,
            "lrnAlpha=%g is negative, and so may be what a power is taken of", attr->alpha);
    WD_NEED(x->rank == 4, reason, NOT_SUPPORTED_SHAPE, "%d spatial dimensions, needed are 2",
            x->rank - 2);
    for (int i = 0; i < (int)(sizeof slots / sizeof slots[0]); ++i) {
        const struct wd_tensor *t = wd_slot(problem->graph, problem->node, slots[i]);
        WD_NEED(!t || is_packed(t), reason, NOT_SUPPORTED_LAYOUT, "a tensor is not packed NCHW");
    }
    WD_NEED(wd_tensor_count(x) > 0 && x->dim[2] * x->dim[3] <= PLANE_MAX, reason,
            NOT_SUPPORTED_SHAPE, "a plane of %lld elements, needed are 1 to %d",
            (long long)(x->dim[2] * x->dim[3]), PLANE_MAX);
    WD_NEED(!backward || plane_scratch(x) <= SCRATCH_MAX, reason, NOT_SUPPORTED_SHAPE,
            "a plane needs %lld bytes of scratch, there are %d", (long long)plane_scratch(x),
            SCRATCH_MAX);
    return true;
}

static struct divnorm_vector_args args_of(const struct wd_call *call)
{
    const struct wd_lrn_attr *attr = &call->problem.node->attr.lrn;
    const struct wd_tensor *x = wd_call_tensor(call, DIV_X);
    struct divnorm_vector_args a;
    memset(&a, 0, sizeof a);
    a.x = wd_call_data(call, DIV_X);
    a.means = wd_call_data(call, DIV_MEANS);
    a.alpha = call->scalars[ALPHA];
    a.beta = call->scalars[BETA];
    a.scales = a.alpha != 0.0;
    a.blends = a.beta != 0.0;
    a.k = attr->k;
    a.factor = attr->alpha / attr->window / attr->window;
    a.exponent = -attr->beta;
    a.share = -2.0 * attr->beta * a.factor;
    a.back = (attr->window - 1) / 2;
    a.ahead = attr->window - 1 - a.back;
    a.height = (int32_t)x->dim[2];
    a.width = (int32_t)x->dim[3];
    a.by_tile_w = wd_fastdiv_of((uint32_t)wd_ceil_div(a.width, DIVNORM_SIDE));
    a.by_tile_h = wd_fastdiv_of((uint32_t)wd_ceil_div(a.height, DIVNORM_SIDE));
    return a;
}

static int64_t tiles_of(const struct divnorm_vector_args *a)
{
    return (int64_t)a->by_tile_w.divisor * a->by_tile_h.divisor;
}

static void *moved(const void *data, int64_t elements, int dtype)
{
    return data ? (char *)(uintptr_t)data + elements * wd_dtype_bytes(dtype) : NULL;
}

/* The tensors from a plane on; the scratch begins anew. */
static struct divnorm_vector_args from_plane(const struct divnorm_vector_args *all, int64_t plane,
                                             int dtype)
{
    struct divnorm_vector_args a = *all;
    int64_t elements = plane * a.height * a.width;
    a.x = moved(a.x, elements, dtype);
    a.means = moved(a.means, elements, dtype);
    a.dy = moved(a.dy, elements, dtype);
    a.out = moved(a.out, elements, dtype);
    a.dmeans = moved(a.dmeans, elements, dtype);
    return a;
}

static cudnnStatus_t forward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, DIV_X);
    const int any = call->problem.node->attr.lrn.window != WINDOW;
    const int kernel = KERNEL_divnorm_forward_f32_5 + 2 * type_index(x->dtype) + any;
    const int64_t planes = x->dim[0] * x->dim[1];
    struct divnorm_vector_args all = args_of(call);
    const int64_t most = INT32_MAX / tiles_of(&all);
    all.out = wd_call_data(call, DIV_Y);
    for (int64_t first = 0; first < planes; first += most) {
        struct divnorm_vector_args a = from_plane(&all, first, x->dtype);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[kernel],
                              wd_least(most, planes - first) * tiles_of(&a), DIVNORM_THREADS, 0,
                              &a));
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Planes that there is scratch for at once. */
static int64_t batch_of(const struct wd_tensor *x)
{
    return wd_clamp(SCRATCH_MAX / plane_scratch(x), 1, x->dim[0] * x->dim[1]);
}

static int64_t backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, DIVB_X);
    return batch_of(x) * plane_scratch(x);
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, DIVB_X);
    const int any = call->problem.node->attr.lrn.window != WINDOW;
    const int instance = 2 * type_index(x->dtype) + any;
    const int64_t planes = x->dim[0] * x->dim[1];
    const int64_t most = batch_of(x);
    const int64_t tile_bytes =
        DIVNORM_LINES * DIVNORM_PITCH * accumulator_bytes(x->dtype) * 2; /* shares and means */
    struct divnorm_vector_args all = args_of(call);
    all.dy = wd_call_data(call, DIVB_DY);
    all.out = wd_call_data(call, DIVB_DX);
    all.dmeans = wd_call_data(call, DIVB_DMEANS);
    all.shares = call->workspace;
    all.direct = (char *)call->workspace + most * plane_scratch(x) / SCRATCH_NUMBERS;
    for (int64_t first = 0; first < planes; first += most) {
        struct divnorm_vector_args a = from_plane(&all, first, x->dtype);
        int64_t blocks = wd_least(most, planes - first) * tiles_of(&a);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_divnorm_share_f32_5 + instance], blocks,
                              DIVNORM_THREADS, 0, &a));
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_divnorm_collect_f32_5 + instance], blocks,
                              DIVNORM_THREADS, (uint32_t)tile_bytes, &a));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_divnorm_forward_vector = {
    .name = "divnorm_forward_vector",
    .op = WD_OP_DIVNORM_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = forward,
};

const struct wd_engine wd_engine_divnorm_backward_vector = {
    .name = "divnorm_backward_vector",
    .op = WD_OP_DIVNORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = backward_workspace,
    .emit = backward,
};
