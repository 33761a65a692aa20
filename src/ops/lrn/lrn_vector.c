/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization on the GPU, in fp32, fp16, bf16 and fp64: tensors whose pixels are
 * neighbours (planes), or whose channels are (pixels), with any number of spatial dimensions. The
 * gradient reads x and dy once; what windows share is computed on the way. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/engine.h"
#include "ops/lrn/lrn_vector_args.h"

#define WD_KERNELS_MODULE lrn_vector
#define WD_KERNELS_ROWS "ops/lrn/lrn_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    RUN_BYTES = 16,
    WINDOW = 5,             /* that has kernels of its own */
    ITEMS_MAX = 1 << 30,    /* threads of a launch */
    ELEMENTS_MAX = 1 << 29, /* pixels of a launch: three times as many fit 31 bits */
    CHUNK = 24,             /* channels that a thread walks along, at least */
    CHUNK_BACKWARD = 32,
    CHUNK_FEW = 4,         /* where there are few threads */
    THREADS_ENOUGH = 8192, /* a processor; with as many, all channels are one chunk */
    THREADS_FEW = 1024,
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

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_LRN_BACKWARD;
}

/* x, the output and, backward, dy; the number of them. */
static int tensors_of(const struct wd_problem *problem, const struct wd_tensor **tensor)
{
    bool backward = is_backward(problem);
    tensor[0] = wd_slot(problem->graph, problem->node, backward ? BACKWARD_X : FORWARD_X);
    tensor[1] = wd_slot(problem->graph, problem->node, backward ? BACKWARD_DX : FORWARD_Y);
    if (!backward) return 2;
    tensor[2] = wd_slot(problem->graph, problem->node, BACKWARD_DY);
    return 3;
}

static int64_t plane_elements(const struct wd_tensor *t)
{
    int64_t elements = 1;
    for (int d = 2; d < t->rank; ++d) elements *= t->dim[d];
    return elements;
}

/* Whether the elements of a channel lie one behind the other. */
static bool has_planes(const struct wd_tensor *t)
{
    int64_t expected = 1;
    for (int d = t->rank - 1; d >= 2; --d) {
        if (t->dim[d] != 1 && t->stride[d] != expected) return false;
        expected *= t->dim[d];
    }
    return true;
}

/* Whether all elements do, the channels of a pixel first. */
static bool has_pixels(const struct wd_tensor *t)
{
    int64_t expected = t->dim[1];
    if (t->dim[1] != 1 && t->stride[1] != 1) return false;
    for (int d = t->rank - 1; d >= 2; --d) {
        if (t->dim[d] != 1 && t->stride[d] != expected) return false;
        expected *= t->dim[d];
    }
    return t->dim[0] == 1 || t->stride[0] == expected;
}

static bool are_pixels(const struct wd_problem *problem)
{
    const struct wd_tensor *tensor[3];
    int count = tensors_of(problem, tensor);
    for (int i = 0; i < count; ++i)
        if (!has_pixels(tensor[i])) return false;
    return tensor[0]->dim[1] > 1;
}

static int64_t accumulator_bytes(int dtype)
{
    return dtype == CUDNN_DATA_DOUBLE ? 8 : 4;
}

/* Shared memory of a block of planes, for windows without kernels of their own. */
static int64_t column_bytes(const struct wd_problem *problem, int64_t run)
{
    const struct wd_tensor *tensor[3];
    int64_t window = problem->node->attr.lrn.window;
    int64_t rows = is_backward(problem) ? 4 * window + 2 : 2 * window + 1;
    tensors_of(problem, tensor);
    return rows * run * LRN_THREADS * accumulator_bytes(tensor[0]->dtype);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_lrn_attr *attr = &problem->node->attr.lrn;
    const struct wd_tensor *tensor[3];
    int count = tensors_of(problem, tensor);
    int64_t elements = wd_tensor_count(tensor[0]);
    int64_t need = column_bytes(problem, 1);
    bool planes = true;
    for (int i = 0; i < count; ++i) planes = planes && has_planes(tensor[i]);
    WD_NEED(attr->window <= LRN_WINDOW_MAX, reason, NOT_SUPPORTED_SHAPE,
            "a window of %d channels, at most %d", attr->window, LRN_WINDOW_MAX);
    WD_NEED(attr->alpha >= 0.0, reason, NOT_SUPPORTED,
            "lrnAlpha=%g is negative, and so may be what a power is taken of", attr->alpha);
    WD_NEED(elements > 0, reason, NOT_SUPPORTED_SHAPE, "there are no elements");
    WD_NEED(tensor[0]->dim[1] <= ELEMENTS_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld channels, at most %d", (long long)tensor[0]->dim[1], ELEMENTS_MAX);
    if (are_pixels(problem)) {
        WD_NEED(elements / tensor[0]->dim[0] <= ELEMENTS_MAX, reason, NOT_SUPPORTED_SHAPE,
                "%lld elements of an image, at most %d", (long long)(elements / tensor[0]->dim[0]),
                ELEMENTS_MAX);
        return true;
    }
    WD_NEED(planes, reason, NOT_SUPPORTED_LAYOUT,
            "neither the pixels of a channel nor the channels of all pixels lie without gaps");
    WD_NEED(elements / tensor[0]->dim[1] <= ITEMS_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld pixels, at most %d", (long long)(elements / tensor[0]->dim[1]), ITEMS_MAX);
    WD_NEED(need <= problem->device->shared_per_block, reason, NOT_SUPPORTED,
            "a block needs %lld bytes of shared memory, there are %lld", (long long)need,
            (long long)problem->device->shared_per_block);
    return true;
}

static int power_of(double beta)
{
    if (beta == 0.5) return LRN_POWER_HALF;
    if (beta == 0.75) return LRN_POWER_THREE_QUARTERS;
    return beta == 1.0 ? LRN_POWER_ONE : LRN_POWER_ANY;
}

static struct lrn_operand operand_of(const struct wd_call *call, int slot)
{
    const struct wd_tensor *t = wd_call_tensor(call, slot);
    struct lrn_operand o = {
        .data = wd_call_data(call, slot),
        .image = t->dim[0] > 1 ? t->stride[0] : 0,
        .plane = t->dim[1] > 1 ? t->stride[1] : 0,
    };
    return o;
}

static struct lrn_vector_args args_of(const struct wd_call *call, const struct wd_device *device)
{
    const struct wd_lrn_attr *attr = &call->problem.node->attr.lrn;
    const bool backward = is_backward(&call->problem);
    const int out = backward ? BACKWARD_DX : FORWARD_Y;
    struct lrn_vector_args a;
    memset(&a, 0, sizeof a);
    a.x = operand_of(call, backward ? BACKWARD_X : FORWARD_X);
    if (backward) a.dy = operand_of(call, BACKWARD_DY);
    a.out = operand_of(call, out);
    a.alpha = call->scalars[ALPHA];
    a.beta = call->scalars[BETA];
    a.k = attr->k;
    a.factor = attr->alpha / attr->window;
    a.exponent = -attr->beta;
    a.share = -2.0 * attr->alpha * attr->beta / attr->window;
    a.power = power_of(attr->beta);
    a.scales = a.alpha != 0.0;
    a.blends = a.beta != 0.0;
    a.streaming = wd_tensor_extent(wd_call_tensor(call, out)) > device->l2_bytes;
    a.channels = (int32_t)wd_call_tensor(call, out)->dim[1];
    a.window = attr->window;
    a.back = (attr->window - 1) / 2;
    a.ahead = attr->window - 1 - a.back;
    return a;
}

/* The pointers of x, the output and, backward, dy. */
static int pointers_of(struct lrn_vector_args *a, struct lrn_operand **operand)
{
    operand[0] = &a->x;
    operand[1] = &a->out;
    operand[2] = &a->dy;
    return a->dy.data ? 3 : 2;
}

/* ---- Planes ---- */

/* Whether every plane begins at, and is made of, runs of this many elements. */
static bool runs_fit(struct lrn_vector_args *a, int64_t plane, int64_t run, int64_t bytes)
{
    struct lrn_operand *operand[3];
    int count = pointers_of(a, operand);
    if (plane % run != 0) return false;
    for (int i = 0; i < count; ++i) {
        if ((uintptr_t)operand[i]->data % (uintptr_t)(run * bytes) != 0 ||
            operand[i]->image % run != 0 || operand[i]->plane % run != 0) {
            return false;
        }
    }
    return true;
}

static int64_t chunk_of(int64_t channels, int64_t threads, int64_t processors, bool backward)
{
    int64_t least = backward ? CHUNK_BACKWARD : CHUNK;
    int64_t chunks = wd_ceil_div(THREADS_ENOUGH * processors, threads);
    if (threads * wd_ceil_div(channels, least) < THREADS_FEW * processors) least = CHUNK_FEW;
    if (chunks > ITEMS_MAX / threads) chunks = ITEMS_MAX / threads;
    return wd_least(wd_most(wd_ceil_div(channels, chunks), least), channels);
}

static cudnnStatus_t emit_planes(const struct wd_call *call, struct wd_queue *queue,
                                 struct lrn_vector_args *a)
{
    const struct wd_problem *problem = &call->problem;
    const bool backward = is_backward(problem);
    const struct wd_tensor *x = wd_call_tensor(call, backward ? BACKWARD_X : FORWARD_X);
    const int type = type_index(x->dtype);
    const bool any = a->window != WINDOW;
    const int64_t plane = plane_elements(x);
    const int first =
        any ? (backward ? KERNEL_lrn_plane_backward_any_f32_run
                        : KERNEL_lrn_plane_forward_any_f32_run)
            : (backward ? KERNEL_lrn_plane_backward_5_f32_run : KERNEL_lrn_plane_forward_5_f32_run);
    int64_t run = type == 3 || (any && backward) ? 2 : 4;
    int64_t chunk;
    int64_t threads;
    if (!runs_fit(a, plane, run, wd_dtype_bytes(x->dtype)) ||
        (any && column_bytes(problem, run) > queue->device->shared_per_block)) {
        run = 1;
    }
    threads = x->dim[0] * (plane / run);
    chunk = chunk_of(x->dim[1], threads, queue->device->multiprocessors, backward);
    threads *= wd_ceil_div(x->dim[1], chunk);
    a->chunk = (int32_t)chunk;
    a->count = (uint32_t)threads;
    a->by_run = wd_fastdiv_of((uint32_t)(plane / run));
    a->by_chunk = wd_fastdiv_of((uint32_t)wd_ceil_div(x->dim[1], chunk));
    return wd_emit_kernel(queue, &kernel_rows[first + 2 * type + (run == 1)],
                          wd_ceil_div(threads, LRN_THREADS), LRN_THREADS,
                          any ? (uint32_t)column_bytes(problem, run) : 0, a);
}

/* ---- Pixels ---- */

enum { WHOLE, FLAT, ONE };

/* How runs lie, and how many elements are skipped. */
static int way_of(struct lrn_vector_args *a, int64_t run, int64_t bytes)
{
    struct lrn_operand *operand[3];
    int count = pointers_of(a, operand);
    a->skip = (uint32_t)((uintptr_t)a->x.data % RUN_BYTES / (uintptr_t)bytes);
    for (int i = 1; i < count; ++i) {
        if ((uintptr_t)operand[i]->data % RUN_BYTES / (uintptr_t)bytes == a->skip) continue;
        a->skip = 0;
        return ONE;
    }
    for (int i = 0; i < count; ++i) {
        operand[i]->data = (char *)operand[i]->data - (int64_t)a->skip * bytes;
    }
    return a->skip == 0 && a->channels % run == 0 ? WHOLE : FLAT;
}

static cudnnStatus_t emit_images(struct wd_queue *queue, struct lrn_vector_args *a, int dtype,
                                 int64_t elements)
{
    const bool backward = a->dy.data != NULL;
    const int type = type_index(dtype);
    const bool any = a->window != WINDOW;
    const int64_t bytes = wd_dtype_bytes(dtype);
    int64_t run = RUN_BYTES / bytes;
    int64_t runs;
    int way = way_of(a, run, bytes);
    int kernel;
    if (way == ONE) run = 1;
    a->elements = (uint32_t)elements + a->skip;
    runs = wd_ceil_div(a->elements, run);
    a->count = (uint32_t)runs;
    /* a few channels before the first element are asked for, too */
    a->phase = (uint32_t)(a->channels - (int64_t)a->skip % a->channels +
                          wd_ceil_div(LRN_WINDOW_MAX, a->channels) * a->channels);
    a->by_channel = wd_fastdiv_of((uint32_t)a->channels);
    a->by_run = wd_fastdiv_of(way == WHOLE ? (uint32_t)(a->channels / run) : 1u);
    if (backward && any) {
        int64_t row = LRN_TILE_THREADS + 2 * wd_ceil_div(LRN_AHEAD_MAX, run);
        int64_t shared = 2 * run * row * accumulator_bytes(dtype);
        a->margin = (int32_t)wd_ceil_div(a->window - 1, run);
        kernel = KERNEL_lrn_pixel_backward_any_f32_whole + 3 * type + way;
        return wd_emit_kernel(queue, &kernel_rows[kernel],
                              wd_ceil_div(runs, LRN_TILE_THREADS - 2 * a->margin), LRN_TILE_THREADS,
                              (uint32_t)shared, a);
    }
    kernel = backward ? KERNEL_lrn_pixel_backward_5_f32_whole
             : any    ? KERNEL_lrn_pixel_forward_any_f32_whole
                      : KERNEL_lrn_pixel_forward_5_f32_whole;
    return wd_emit_kernel(queue, &kernel_rows[kernel + 3 * type + way],
                          wd_ceil_div(runs, LRN_THREADS), LRN_THREADS, 0, a);
}

/* As many images at a time as 31 bits can count. */
static cudnnStatus_t emit_pixels(const struct wd_call *call, struct wd_queue *queue,
                                 const struct lrn_vector_args *a)
{
    const struct wd_tensor *x =
        wd_call_tensor(call, is_backward(&call->problem) ? BACKWARD_X : FORWARD_X);
    const int64_t image = wd_tensor_count(x) / x->dim[0];
    const int64_t most = ELEMENTS_MAX / image;
    for (int64_t first = 0; first < x->dim[0]; first += most) {
        struct lrn_vector_args piece = *a;
        struct lrn_operand *operand[3];
        int count = pointers_of(&piece, operand);
        for (int i = 0; i < count; ++i) {
            operand[i]->data = (char *)operand[i]->data + first * image * wd_dtype_bytes(x->dtype);
        }
        WD_TRY(emit_images(queue, &piece, x->dtype, image * wd_least(most, x->dim[0] - first)));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct lrn_vector_args a = args_of(call, queue->device);
    return are_pixels(&call->problem) ? emit_pixels(call, queue, &a) : emit_planes(call, queue, &a);
}

const struct wd_engine wd_engine_lrn_forward_vector = {
    .name = "lrn_forward_vector",
    .op = WD_OP_LRN_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};

const struct wd_engine wd_engine_lrn_backward_vector = {
    .name = "lrn_backward_vector",
    .op = WD_OP_LRN_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
