/* SPDX-License-Identifier: Apache-2.0
 *
 * Divisive normalization on the GPU: two-dimensional images of any strides, in fp32, fp16, bf16 and fp64.
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
    ELEMENTS_MAX = 1 << 28, /* of a plane */
    WARP = DIVNORM_THREADS,
    WARPS_FORWARD = 32, /* a processor, to which planes are cut */
    WARPS_BACKWARD = 16,
    ROWS_LEAST = 4,  /* of a segment */
    WARPS_LEAST = 4, /* a processor; with fewer, segments of a row are done sooner */
    RUN_BYTES = 16,  /* alignment of a run, at most */
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

static int64_t shared_bytes(int dtype, int32_t window, bool backward)
{
    return wd_divnorm_rows(window, backward) * DIVNORM_RUN * WARP *
           (dtype == CUDNN_DATA_DOUBLE ? 8 : 4);
}

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_DIVNORM_BACKWARD;
}

static struct divnorm_steps steps_of(const struct wd_tensor *t)
{
    struct divnorm_steps s = {t->stride[0], t->stride[1], t->stride[2], t->stride[3]};
    return s;
}

static bool are_same(const struct wd_tensor *a, const struct wd_tensor *b)
{
    for (int d = 0; d < a->rank; ++d)
        if (a->dim[d] > 1 && a->stride[d] != b->stride[d]) return false;
    return true;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_lrn_attr *attr = &problem->node->attr.lrn;
    const bool backward = is_backward(problem);
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, DIV_X);
    const struct wd_tensor *means = wd_slot(problem->graph, problem->node, DIV_MEANS);
    const struct wd_tensor *out =
        wd_slot(problem->graph, problem->node, backward ? (int)DIVB_DX : (int)DIV_Y);
    const struct wd_tensor *dy = backward ? wd_slot(problem->graph, problem->node, DIVB_DY) : NULL;
    const struct wd_tensor *dmeans =
        backward ? wd_slot(problem->graph, problem->node, DIVB_DMEANS) : NULL;
    int64_t shared;
    WD_NEED(attr->window <= DIVNORM_WINDOW_MAX, reason, NOT_SUPPORTED_SHAPE,
            "a window of %d pixels, at most %d", attr->window, DIVNORM_WINDOW_MAX);
    WD_NEED(attr->alpha >= 0.0, reason, NOT_SUPPORTED,
            "lrnAlpha=%g is negative, and so may be what a power is taken of", attr->alpha);
    WD_NEED(x->rank == 4, reason, NOT_SUPPORTED_SHAPE, "%d spatial dimensions, needed are 2",
            x->rank - 2);
    WD_NEED((!means || are_same(means, x)) && (!dy || are_same(dy, x)), reason,
            NOT_SUPPORTED_LAYOUT, "the means or dy are not laid out as x is");
    WD_NEED(!dmeans || are_same(dmeans, out), reason, NOT_SUPPORTED_LAYOUT,
            "dMeans are not laid out as dx is");
    WD_NEED(wd_tensor_count(x) > 0 && x->dim[2] * x->dim[3] <= ELEMENTS_MAX, reason,
            NOT_SUPPORTED_SHAPE, "a plane of %lld elements, needed are 1 to %d",
            (long long)(x->dim[2] * x->dim[3]), ELEMENTS_MAX);
    WD_NEED(x->dim[1] <= ELEMENTS_MAX, reason, NOT_SUPPORTED_SHAPE, "%lld channels, at most %d",
            (long long)x->dim[1], ELEMENTS_MAX);
    shared = shared_bytes(x->dtype, attr->window, backward);
    WD_NEED(shared <= problem->device->shared_per_block, reason, NOT_SUPPORTED,
            "a block needs %lld bytes of shared memory, there are %lld", (long long)shared,
            (long long)problem->device->shared_per_block);
    return true;
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

/* Whether a plane's rows are made of aligned runs, wherever it begins. */
static bool is_whole(const struct divnorm_steps *s, const struct wd_tensor *t)
{
    const int64_t bytes = wd_dtype_bytes(t->dtype);
    const int64_t unit = wd_least(DIVNORM_RUN * bytes, RUN_BYTES);
    return (t->dim[3] == 1 || s->pixel == 1) && t->dim[3] % DIVNORM_RUN == 0 &&
           (t->dim[0] == 1 || s->image * bytes % unit == 0) &&
           (t->dim[1] == 1 || s->channel * bytes % unit == 0) &&
           (t->dim[2] == 1 || s->row * bytes % unit == 0);
}

static bool is_aligned(const void *data, int dtype)
{
    const int64_t unit = wd_least(DIVNORM_RUN * wd_dtype_bytes(dtype), RUN_BYTES);
    return (uintptr_t)data % (uintptr_t)unit == 0; /* null is */
}

/* Strips of a plane side by side, and segments of it. */
static void cut(struct divnorm_vector_args *a, int64_t planes, const struct wd_device *device,
                bool backward)
{
    const int32_t runs = (a->width + DIVNORM_RUN - 1) / DIVNORM_RUN;
    const int32_t lead = backward ? a->window - 1 : a->back;
    int32_t parts = 1;
    int64_t warps, segments, most, few;
    a->lanes = runs;
    if (runs > WARP) {
        a->halo = backward ? (a->ahead + DIVNORM_RUN - 1) / DIVNORM_RUN : 0;
        parts = (int32_t)wd_ceil_div(runs, WARP - 2 * a->halo);
        a->lanes = (int32_t)wd_ceil_div(runs, parts) + 2 * a->halo;
    }
    a->per_warp = WARP / a->lanes;
    warps = wd_ceil_div(planes * parts, a->per_warp);
    segments =
        (int64_t)device->multiprocessors * (backward ? WARPS_BACKWARD : WARPS_FORWARD) / warps;
    most = wd_ceil_div(a->height, wd_most(ROWS_LEAST, a->window - 1));
    segments = wd_most(wd_least(segments, most), 1);
    few = wd_least((int64_t)device->multiprocessors * WARPS_LEAST / warps, a->height);
    if (segments < few && lead + wd_ceil_div(a->height, few) <
                              (segments > 1 ? lead : 0) + wd_ceil_div(a->height, segments)) {
        segments = few;
    }
    a->rows = (int32_t)wd_ceil_div(a->height, segments);
    segments = wd_ceil_div(a->height, a->rows);
    a->lead = segments > 1 ? lead : 0; /* there is nothing before the first segment */
    a->trip = a->lead + a->rows + (backward ? a->window - 1 : a->ahead);
    a->by_part = wd_fastdiv_of((uint32_t)parts);
    a->by_segment = wd_fastdiv_of((uint32_t)segments);
}

static struct divnorm_vector_args args_of(const struct wd_call *call)
{
    const struct wd_lrn_attr *attr = &call->problem.node->attr.lrn;
    const bool backward = is_backward(&call->problem);
    const int out = backward ? (int)DIVB_DX : (int)DIV_Y;
    const struct wd_tensor *x = wd_call_tensor(call, DIV_X);
    struct divnorm_vector_args a;
    memset(&a, 0, sizeof a);
    a.x = wd_call_data(call, DIV_X);
    a.means = wd_call_data(call, DIV_MEANS);
    a.out = wd_call_data(call, out);
    if (backward) {
        a.dy = wd_call_data(call, DIVB_DY);
        a.dmeans = wd_call_data(call, DIVB_DMEANS);
    }
    a.in = steps_of(x);
    a.to = steps_of(wd_call_tensor(call, out));
    a.in_whole = is_whole(&a.in, x) && is_aligned(a.x, x->dtype) && is_aligned(a.means, x->dtype) &&
                 is_aligned(a.dy, x->dtype);
    a.to_whole =
        is_whole(&a.to, x) && is_aligned(a.out, x->dtype) && is_aligned(a.dmeans, x->dtype);
    a.full.alpha = call->scalars[ALPHA];
    a.full.beta = call->scalars[BETA];
    a.full.k = attr->k;
    a.full.factor = attr->alpha / attr->window / attr->window;
    a.full.exponent = -attr->beta;
    a.full.share = -2.0 * attr->beta * a.full.factor;
    a.single.alpha = (float)a.full.alpha;
    a.single.beta = (float)a.full.beta;
    a.single.k = (float)a.full.k;
    a.single.factor = (float)a.full.factor;
    a.single.exponent = (float)a.full.exponent;
    a.single.share = (float)a.full.share;
    a.scales = a.full.alpha != 0.0;
    a.blends = a.full.beta != 0.0;
    a.power = power_of(attr->beta);
    a.window = attr->window;
    a.back = (attr->window - 1) / 2;
    a.ahead = attr->window - 1 - a.back;
    a.height = (int32_t)x->dim[2];
    a.width = (int32_t)x->dim[3];
    a.by_channel = wd_fastdiv_of((uint32_t)x->dim[1]);
    return a;
}

static void *moved(const void *data, int64_t elements, int dtype)
{
    return data ? (char *)(uintptr_t)data + elements * wd_dtype_bytes(dtype) : NULL;
}

/* As many images at a time as there are numbers for. */
static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, DIV_X);
    const bool backward = is_backward(&call->problem);
    const int kernel = (backward ? KERNEL_divnorm_backward_f32_5 : KERNEL_divnorm_forward_f32_5) +
                       3 * type_index(x->dtype) +
                       window_kernel(x->dtype, call->problem.node->attr.lrn.window);
    const int64_t shared = shared_bytes(x->dtype, call->problem.node->attr.lrn.window, backward);
    struct divnorm_vector_args a = args_of(call);
    const int64_t most =
        wd_most(ELEMENTS_MAX / (x->dim[1] * wd_ceil_div(x->dim[2] * x->dim[3], 4)), 1);
    for (int64_t first = 0; first < x->dim[0]; first += most) {
        const int64_t planes = wd_least(most, x->dim[0] - first) * x->dim[1];
        struct divnorm_vector_args piece = a;
        piece.x = moved(a.x, first * a.in.image, x->dtype);
        piece.means = moved(a.means, first * a.in.image, x->dtype);
        piece.dy = moved(a.dy, first * a.in.image, x->dtype);
        piece.out = moved(a.out, first * a.to.image, x->dtype);
        piece.dmeans = moved(a.dmeans, first * a.to.image, x->dtype);
        cut(&piece, planes, queue->device, backward);
        piece.strips = (uint32_t)planes * piece.by_part.divisor * piece.by_segment.divisor;
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[kernel],
                              wd_ceil_div(piece.strips, piece.per_warp), WARP, (uint32_t)shared,
                              &piece));
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
