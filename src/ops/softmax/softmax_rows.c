/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax on the GPU over rows that a warp holds, or where they are many a block, forward and backward:
 * neighbours of a row are neighbours in memory. Rows of whole runs of 16 bytes, of fp64 too, go from memory
 * to registers and back; others, and such as begin off the boundaries of 16 bytes, element by element, where
 * the engines of longer rows (staged, vector) do not do it better. Each row is read once by a warp. No state. */
#include "base/sizes.h"
#include "ops/softmax/softmax_gpu.h"

#define WD_KERNELS_MODULE softmax_rows
#define WD_KERNELS_ROWS "ops/softmax/softmax_rows_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = SOFTMAX_WARP,
    RUNS_MAX = 8 * WARP,          /* of 16 bytes, of a row by runs that a warp has */
    RUNS_OF_BLOCK = 8 * RUNS_MAX, /* and that a block has */
    ELEMENTS_MAX = 32 * WARP,     /* of a row by elements */
    ELEMENTS_FEW = 8 * WARP,      /* of a row that is never worth more than a warp */
    ELEMENTS_BACKWARD =
        16 * WARP,        /* of a row of odd length, beyond which two tensors fill registers */
    ROWS_A_PROCESSOR = 4, /* that keep it busy with a warp each */
    FEW_THREADS = 128,
    HELD_THREADS = 256,     /* of a block that has a row, at most */
    THREADS = 128,          /* of rows by elements */
    DIRECT_BYTES = 1 << 20, /* of a tensor; below, copies to shared memory do not pay */
    TYPE_F64 = 1,           /* place among the four types */
};

/* The kernels of a direction, by elements that a thread holds. */
struct direction {
    int few8, few16, few32;
    int few8_f64, few16_f64;
    int direct8, direct32, direct8_f64;
};

static const struct direction forward = {
    KERNEL_softmax_few8,     KERNEL_softmax_few16,       KERNEL_softmax_few32,
    KERNEL_softmax_few8_f64, KERNEL_softmax_few16_f64,   KERNEL_softmax_direct8,
    KERNEL_softmax_direct32, KERNEL_softmax_direct8_f64,
};

static const struct direction backward = {
    KERNEL_softmax_gradient_few8,      KERNEL_softmax_gradient_few16,
    KERNEL_softmax_gradient_few32,     KERNEL_softmax_gradient_few8_f64,
    KERNEL_softmax_gradient_few16_f64, KERNEL_softmax_gradient_direct8,
    KERNEL_softmax_gradient_direct32,  KERNEL_softmax_gradient_direct8_f64,
};

static bool is_whole(const struct wd_softmax_shape *s)
{
    return s->length % s->elements == 0;
}

/* Whether a row is a block's, in registers, where pointers are aligned: of two tensors but fp64's. */
static bool is_held(const struct wd_problem *problem, const struct wd_softmax_shape *s)
{
    const bool wide = s->type == TYPE_F64;
    const int64_t least = wide ? RUNS_MAX * s->elements : ELEMENTS_MAX;
    const int64_t most = s->bytes == 2 ? RUNS_OF_BLOCK / 2 : RUNS_OF_BLOCK;
    return (wide || wd_softmax_gpu_inputs(problem) == 1) && is_whole(s) && s->length > least &&
           s->length / s->elements <= most &&
           s->outer >= ROWS_A_PROCESSOR * problem->device->multiprocessors;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_softmax_shape s;
    if (!wd_softmax_gpu_match(problem, &s, reason)) return false;
    WD_NEED(s.inner == 1, reason, NOT_SUPPORTED_LAYOUT,
            "neighbours of a row are %lld elements apart", (long long)s.inner);
    if (is_held(problem, &s)) return true;
    /* few rows by runs are a warp's too: a block of two warps takes 2.4 us for fp32 1x1000, a warp 1.9 */
    WD_NEED(s.length <= ELEMENTS_FEW || (is_whole(&s) && s.length / s.elements <= RUNS_MAX) ||
                s.outer >= ROWS_A_PROCESSOR * problem->device->multiprocessors,
            reason, NOT_SUPPORTED_SHAPE,
            "%lld rows of %lld elements are better shared by more threads", (long long)s.outer,
            (long long)s.length);
    WD_NEED(s.length <= (s.type == TYPE_F64 && !is_whole(&s) ? ELEMENTS_FEW : ELEMENTS_MAX) &&
                (s.type != TYPE_F64 || s.length <= RUNS_MAX * s.elements),
            reason, NOT_SUPPORTED_SHAPE, "rows of %lld elements are more than a warp holds",
            (long long)s.length);
    /* 32 elements a thread of two tensors leave a processor too few warps:
     * backward fp16 65537x1001 takes 172 us, where a row's block by runs has taken 124 */
    WD_NEED(
        is_whole(&s) || s.length <= ELEMENTS_BACKWARD || wd_softmax_gpu_inputs(problem) == 1,
        reason, NOT_SUPPORTED_SHAPE,
        "rows of %lld elements, no whole runs, are more of two tensors than a warp is given, %d",
        (long long)s.length, ELEMENTS_BACKWARD);
    return true;
}

static cudnnStatus_t emit_few(const struct direction *d, const struct wd_softmax_shape *s,
                              struct wd_queue *queue, struct softmax_vector_args *a)
{
    const bool wide = s->type == TYPE_F64;
    int64_t runs = s->length / s->elements;
    /* two runs a thread are a tensor's least; of fp64 four, whose exponentials cost more than loads */
    int64_t lanes = wd_least(WARP, wd_power_up(wd_ceil_div(runs, wide ? 4 : 2)));
    int64_t each = wd_ceil_div(runs, lanes) * s->elements;
    int kernel = wide         ? (each <= 8 ? d->few8_f64 : d->few16_f64)
                 : each <= 8  ? d->few8
                 : each <= 16 ? d->few16
                              : d->few32;
    int64_t threads = FEW_THREADS;
    int64_t full = 2 * (int64_t)queue->device->multiprocessors;
    while (threads > WARP && s->outer * lanes <= full * threads / 2) threads /= 2;
    a->runs = runs;
    wd_softmax_set_lanes(a, lanes);
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(s->outer, threads / lanes),
                          (uint32_t)threads, 0, a);
}

/* A row a block; four runs a thread, or eight. */
static cudnnStatus_t emit_held(const struct direction *d, const struct wd_softmax_shape *s,
                               struct wd_queue *queue, struct softmax_vector_args *a)
{
    const int64_t runs = s->length / s->elements;
    const bool wide = s->type == TYPE_F64;
    const bool many = wide || runs > 4 * HELD_THREADS;
    const int64_t threads = wd_ceil_div(wd_ceil_div(runs, many ? 8 : 4), WARP) * WARP;
    int kernel = wide ? d->few16_f64 : many || s->bytes == 2 ? d->few32 : d->few16;
    a->runs = runs;
    a->lanes = (uint32_t)threads;
    return wd_emit_kernel(queue, &kernel_rows[kernel], s->outer, (uint32_t)threads, 0, a);
}

/* More lanes than elements need, where there are few rows: each then waits for fewer loads. */
static cudnnStatus_t emit_direct(const struct direction *d, const struct wd_softmax_shape *s,
                                 struct wd_queue *queue, struct softmax_vector_args *a)
{
    int64_t lanes = wd_least(WARP, wd_power_up(s->length));
    int64_t all = 2 * (int64_t)queue->device->multiprocessors * FEW_THREADS;
    int64_t each;
    int64_t threads = THREADS;
    while (lanes > 1 && s->outer * lanes > all && wd_ceil_div(s->length, lanes / 2) <= 8) {
        lanes /= 2;
    }
    each = wd_ceil_div(s->length, lanes);
    while (threads > WARP && s->outer * lanes <= queue->device->multiprocessors * threads / 2) {
        threads /= 2;
    }
    wd_softmax_set_lanes(a, lanes);
    return wd_emit_kernel(queue,
                          &kernel_rows[s->type == TYPE_F64 ? d->direct8_f64
                                       : each <= 8         ? d->direct8
                                                           : d->direct32],
                          wd_ceil_div(s->outer, threads / lanes), (uint32_t)threads, 0, a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct direction *d = wd_softmax_gpu_inputs(&call->problem) > 1 ? &backward : &forward;
    struct wd_softmax_shape s;
    struct softmax_vector_args a;
    bool alike;
    wd_softmax_gpu_args(call, queue->device, &s, &a, &alike);
    if (is_held(&call->problem, &s)) {
        return alike && a.shift == 0 ? emit_held(d, &s, queue, &a)
                                     : wd_softmax_vector_emit(call, queue);
    }
    if (alike && a.shift == 0 && is_whole(&s) && s.length / s.elements <= RUNS_MAX) {
        return emit_few(d, &s, queue, &a);
    }
    /* rows of whole runs that begin elsewhere; others the staged engine has taken */
    if (alike && s.total * s.bytes > DIRECT_BYTES && s.type != TYPE_F64 &&
        s.length < ELEMENTS_MAX && s.outer >= ROWS_A_PROCESSOR * queue->device->multiprocessors) {
        return wd_softmax_staged_emit(call, queue);
    }
    if (s.type == TYPE_F64 && s.length > ELEMENTS_FEW) return wd_softmax_vector_emit(call, queue);
    return emit_direct(d, &s, queue, &a);
}

const struct wd_engine wd_engine_softmax_forward_rows = {
    .name = "softmax_forward_rows",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};

const struct wd_engine wd_engine_softmax_backward_rows = {
    .name = "softmax_backward_rows",
    .op = WD_OP_SOFTMAX_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
