/* SPDX-License-Identifier: Apache-2.0
 *
 * Divisive normalization on the GPU: packed two-dimensional images, NCHW, in fp32, fp16, bf16 and fp64.
 * The caller's temp and temp2 are not touched. */
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
    PLANE_MAX = 1 << 28, /* elements */
    TILE_H = 32,         /* of a tile, at most; both are halved until a block has shared memory */
    TILE_W = 64,
    SHARED_ENOUGH = 72 << 10, /* three blocks a processor */
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
    return true;
}

/* As few tiles as possible along an extent, all of about one size, a multiple of `unit`. */
static int32_t tile_of(int64_t extent, int64_t most, int64_t unit)
{
    int64_t tiles = wd_ceil_div(extent, most);
    return (int32_t)(wd_ceil_div(wd_ceil_div(extent, tiles), unit) * unit);
}

static int64_t shared_bytes(const struct divnorm_vector_args *a, int dtype, bool backward)
{
    return wd_divnorm_numbers(a->tile_h, a->tile_w, a->window, backward) * accumulator_bytes(dtype);
}

static void set_tiles(struct divnorm_vector_args *a, int dtype, bool backward)
{
    int64_t tile_w = TILE_W;
    for (int64_t tile_h = TILE_H;; tile_h /= 2) {
        a->tile_w = tile_of(a->width, tile_w, 4);
        a->tile_h = tile_of(a->height, tile_h, DIVNORM_DOWN);
        if (tile_h <= DIVNORM_DOWN || shared_bytes(a, dtype, backward) <= SHARED_ENOUGH) break;
        tile_w /= 2;
    }
    a->by_tile_w = wd_fastdiv_of((uint32_t)wd_ceil_div(a->width, a->tile_w));
    a->by_tile_h = wd_fastdiv_of((uint32_t)wd_ceil_div(a->height, a->tile_h));
}

static int power_of(double beta)
{
    if (beta == 0.5) return DIVNORM_POWER_HALF;
    if (beta == 0.75) return DIVNORM_POWER_THREE_QUARTERS;
    return beta == 1.0 ? DIVNORM_POWER_ONE : DIVNORM_POWER_ANY;
}

/* The instance for a window, among those of a type. */
static int window_kernel(int dtype, int window)
{
    if (type_index(dtype) == 3) return 0; /* fp64 has one */
    return window == 5 ? 0 : window == 9 ? 1 : 2;
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
    a.power = power_of(attr->beta);
    a.window = attr->window;
    set_tiles(&a, x->dtype, is_backward(&call->problem));
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

/* The tensors from a plane on. */
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

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, DIV_X);
    const bool is_back = is_backward(&call->problem);
    const int kernel = (is_back ? KERNEL_divnorm_backward_f32_5 : KERNEL_divnorm_forward_f32_5) +
                       3 * type_index(x->dtype) +
                       window_kernel(x->dtype, call->problem.node->attr.lrn.window);
    const int64_t planes = x->dim[0] * x->dim[1];
    struct divnorm_vector_args all = args_of(call);
    const int64_t most = INT32_MAX / tiles_of(&all);
    if (is_back) {
        all.dy = wd_call_data(call, DIVB_DY);
        all.dmeans = wd_call_data(call, DIVB_DMEANS);
    }
    all.out = wd_call_data(call, is_back ? DIVB_DX : DIV_Y);
    for (int64_t first = 0; first < planes; first += most) {
        struct divnorm_vector_args a = from_plane(&all, first, x->dtype);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[kernel],
                              wd_least(most, planes - first) * tiles_of(&a), DIVNORM_THREADS,
                              (uint32_t)shared_bytes(&a, x->dtype, is_back), &a));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_divnorm_forward_vector = {
    .name = "divnorm_forward_vector",
    .op = WD_OP_DIVNORM_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};

const struct wd_engine wd_engine_divnorm_backward_vector = {
    .name = "divnorm_backward_vector",
    .op = WD_OP_DIVNORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
