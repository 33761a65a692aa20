/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization on the GPU, in fp32, fp16, bf16 and fp64: tensors whose pixels are
 * neighbours (planes), or whose channels are (pixels), with any number of spatial dimensions. The
 * gradient reads x and dy once; what windows share is computed on the way. */
#include "base/sizes.h"
#include "base/status.h"
#include "ops/lrn/lrn_host.h"

#define WD_KERNELS_MODULE lrn_vector
#define WD_KERNELS_ROWS "ops/lrn/lrn_vector_kernels.def"
#include "ops/kernels_host.inc"

enum {
    RUN_BYTES = 16,
    WINDOW = 5, /* that has kernels of its own */
    TYPE_F16 = 1,
    TYPE_F64 = 3,
    FLAT_RUN = 4,           /* elements at most, of flat runs and any window: each term is masked */
    ELEMENTS_MAX = 1 << 29, /* pixels of a launch: three times as many fit 31 bits */
};

static const struct wd_tensor *x_of(const struct wd_problem *problem)
{
    const struct wd_tensor *tensor[3];
    wd_lrn_tensors(problem, tensor);
    return tensor[0];
}

/* Shared memory of a block of planes, for windows without kernels of their own. */
static int64_t column_bytes(const struct wd_problem *problem, int64_t run)
{
    int64_t window = problem->node->attr.lrn.window;
    int64_t rows = wd_lrn_is_backward(problem) ? 4 * window + 2 : window + 1;
    return rows * run * LRN_THREADS * wd_lrn_accumulator_bytes(x_of(problem)->dtype);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_lrn_attr *attr = &problem->node->attr.lrn;
    const struct wd_tensor *tensor[3];
    int count = wd_lrn_tensors(problem, tensor);
    int64_t elements = wd_tensor_count(tensor[0]);
    int64_t need = column_bytes(problem, LRN_SPREAD);
    bool planes = true;
    for (int i = 0; i < count; ++i) planes = planes && wd_lrn_has_planes(tensor[i]);
    WD_NEED(attr->window <= LRN_WINDOW_MAX, reason, NOT_SUPPORTED_SHAPE,
            "a window of %d channels, at most %d", attr->window, LRN_WINDOW_MAX);
    WD_NEED(attr->alpha >= 0.0, reason, NOT_SUPPORTED,
            "lrnAlpha=%g is negative, and so may be what a power is taken of", attr->alpha);
    WD_NEED(elements > 0, reason, NOT_SUPPORTED_SHAPE, "there are no elements");
    WD_NEED(tensor[0]->dim[1] <= ELEMENTS_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld channels, at most %d", (long long)tensor[0]->dim[1], ELEMENTS_MAX);
    if (wd_lrn_are_pixels(problem)) {
        WD_NEED(elements / tensor[0]->dim[0] <= ELEMENTS_MAX, reason, NOT_SUPPORTED_SHAPE,
                "%lld elements of an image, at most %d", (long long)(elements / tensor[0]->dim[0]),
                ELEMENTS_MAX);
        return true;
    }
    WD_NEED(planes, reason, NOT_SUPPORTED_LAYOUT,
            "neither the pixels of a channel nor the channels of all pixels lie without gaps");
    WD_NEED(elements / tensor[0]->dim[1] <= LRN_ITEMS_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld pixels, at most %d", (long long)(elements / tensor[0]->dim[1]), LRN_ITEMS_MAX);
    WD_NEED(need <= problem->device->shared_per_block, reason, NOT_SUPPORTED,
            "a block needs %lld bytes of shared memory, there are %lld", (long long)need,
            (long long)problem->device->shared_per_block);
    return true;
}

/* ---- Planes ---- */

static cudnnStatus_t emit_planes(const struct wd_call *call, struct wd_queue *queue,
                                 struct lrn_vector_args *a)
{
    const struct wd_problem *problem = &call->problem;
    const bool backward = wd_lrn_is_backward(problem);
    const struct wd_tensor *x = x_of(problem);
    const int type = wd_lrn_type(x->dtype);
    const int64_t plane = wd_lrn_plane(x), bytes = wd_dtype_bytes(x->dtype);
    const bool any = a->window != WINDOW ||
                     (type == TYPE_F64 && (backward || !wd_lrn_runs_fit(a, plane, 2, bytes)));
    const int first =
        any ? (backward ? KERNEL_lrn_plane_backward_any_f32_run
                        : KERNEL_lrn_plane_forward_any_f32_run)
            : (backward ? KERNEL_lrn_plane_backward_5_f32_run : KERNEL_lrn_plane_forward_5_f32_run);
    const bool spreads_only = any && type == TYPE_F64;
    int64_t run = type == TYPE_F64 || (any && backward) ? 2 : 4;
    bool spreads = spreads_only;
    /* fp32 forward: a pixel a thread where a warp's two times as many are not neighbours */
    const bool is_single = type == 0 && !any && !backward, pairs = wd_lrn_has_pairs(plane);
    int64_t threads;
    int kernel;
    if (spreads || !wd_lrn_runs_fit(a, plane, run, bytes) ||
        (any && column_bytes(problem, run) > queue->device->shared_per_block)) {
        run = is_single && !pairs ? 1 : LRN_SPREAD;
        spreads = true;
    }
    kernel = is_single && spreads && pairs ? KERNEL_lrn_plane_forward_5_f32_pairs
                                           : first + 2 * type + (spreads && !spreads_only);
    threads = wd_lrn_cut_planes(x, queue->device, run, spreads, a);
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(threads, LRN_THREADS),
                          LRN_THREADS, any ? (uint32_t)column_bytes(problem, run) : 0, a);
}

/* ---- Pixels ---- */

enum { WHOLE, FLAT }; /* fp64 has flat ones alone */

/* How runs lie, and how many elements are skipped. */
static int way_of(struct lrn_vector_args *a, int64_t run, int64_t bytes)
{
    struct lrn_operand *operand[3];
    int count = wd_lrn_pointers(a, operand);
    a->skip = (uint32_t)((uintptr_t)a->x.data % RUN_BYTES / (uintptr_t)bytes);
    for (int i = 1; i < count; ++i) {
        if ((uintptr_t)operand[i]->data % RUN_BYTES / (uintptr_t)bytes == a->skip) continue;
        a->skip = 0; /* no pointer is moved: runs are put together element by element */
        a->loose = 1;
        return FLAT;
    }
    for (int i = 0; i < count; ++i) {
        operand[i]->data = (char *)operand[i]->data - (int64_t)a->skip * bytes;
    }
    return a->skip == 0 && a->channels % run == 0 && bytes < 8 ? WHOLE : FLAT;
}

static int instance_of(int type, int way)
{
    return type == TYPE_F64 ? 2 * type : 2 * type + way;
}

static cudnnStatus_t emit_images(struct wd_queue *queue, struct lrn_vector_args *a, int dtype,
                                 int64_t elements)
{
    const bool backward = a->dy.data != NULL;
    const int type = wd_lrn_type(dtype);
    const bool any = a->window != WINDOW || type == TYPE_F64;
    const int64_t bytes = wd_dtype_bytes(dtype);
    int64_t run = RUN_BYTES / bytes;
    int64_t runs;
    int way = way_of(a, run, bytes);
    int kernel;
    if (any && way == FLAT) run = wd_least(run, FLAT_RUN);
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
        int64_t shared = 2 * run * row * wd_lrn_accumulator_bytes(dtype);
        a->margin = (int32_t)wd_ceil_div(a->window - 1, run);
        kernel = KERNEL_lrn_pixel_backward_any_f32_whole + instance_of(type, way);
        if (way == WHOLE && bytes == 2 && a->window > run) {
            kernel = KERNEL_lrn_pixel_backward_long_f16_whole + type - TYPE_F16;
            shared = 4 * run * (LRN_TILE_THREADS + 2) * wd_lrn_accumulator_bytes(dtype);
        }
        return wd_emit_kernel(queue, &kernel_rows[kernel],
                              wd_ceil_div(runs, LRN_TILE_THREADS - 2 * a->margin), LRN_TILE_THREADS,
                              (uint32_t)shared, a);
    }
    kernel = backward ? KERNEL_lrn_pixel_backward_5_f32_whole
             : any    ? KERNEL_lrn_pixel_forward_any_f32_whole
                      : KERNEL_lrn_pixel_forward_5_f32_whole;
    return wd_emit_kernel(queue, &kernel_rows[kernel + instance_of(type, way)],
                          wd_ceil_div(runs, LRN_THREADS), LRN_THREADS, 0, a);
}

/* As many images at a time as 31 bits can count. */
static cudnnStatus_t emit_pixels(const struct wd_call *call, struct wd_queue *queue,
                                 const struct lrn_vector_args *a)
{
    const struct wd_tensor *x = x_of(&call->problem);
    const int64_t image = wd_tensor_count(x) / x->dim[0];
    const int64_t most = ELEMENTS_MAX / image;
    for (int64_t first = 0; first < x->dim[0]; first += most) {
        struct lrn_vector_args piece = *a;
        struct lrn_operand *operand[3];
        int count = wd_lrn_pointers(&piece, operand);
        for (int i = 0; i < count; ++i) {
            operand[i]->data = (char *)operand[i]->data + first * image * wd_dtype_bytes(x->dtype);
        }
        WD_TRY(emit_images(queue, &piece, x->dtype, image * wd_least(most, x->dim[0] - first)));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct lrn_vector_args a = wd_lrn_args(call, queue->device);
    return wd_lrn_are_pixels(&call->problem) ? emit_pixels(call, queue, &a)
                                             : emit_planes(call, queue, &a);
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
