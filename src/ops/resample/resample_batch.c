/* SPDX-License-Identifier: Apache-2.0
 *
 * Odd channels on the GPU that are enlarged by two with samples on the corners of pixels, and the gradients of
 * that, of planes as well, at any alignment: straight from memory, by batches of lines. */
#include "ops/resample/resample_batch_args.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/resample/resample_walk.h"

#define WD_KERNELS_MODULE resample_batch
#define WD_KERNELS_ROWS "ops/resample/resample_batch_kernels.def"
#include "ops/kernels_host.inc"

enum {
    ROWS = 16,      /* of a thread: what it finds out at its beginning is paid once in as many; */
    BACK_ROWS = 8,  /* backward, where it asks for two lines a row */
    ENOUGH = 2048,  /* threads of a multiprocessor, by ROWS; with fewer each has a batch */
    LINE_ROWS = 64, /* of x, of a warp that has lines, at most */
    WARPS = 32,     /* of them that a multiprocessor has, as registers let */
    SHARED_MAX = 48 << 10, /* bytes of a block that has lines, where it is more than a warp */
    ALIGN = 16,
    /* bytes of shared memory that a lane looks at, of columns that are not there, or that are not stored yet */
    BESIDE = 320,
};

/* Whether lines are whole runs of channels, or of planes as many columns as fill a run of y: those have kernels
 * whose threads load and store 16 bytes. */
static bool is_whole(const struct wd_resample_shape *s)
{
    const int64_t run = wd_resample_run(s);
    return (s->inner == 1 ? 2 * s->image[2] : s->inner) % run == 0;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_resample_shape s;
    if (!wd_resample_shape_of(problem, &s, reason)) return false;
    WD_NEED(!s.max && wd_resample_is_by_two(&s), reason, NOT_SUPPORTED_SHAPE,
            "no images that are enlarged by two with samples on corners");
    WD_NEED(s.size == 2 || (s.type == 0 && s.backward), reason, NOT_SUPPORTED_DATA_TYPE,
            "neither 16-bit numbers nor gradients of single precision");
    WD_NEED(s.backward || s.inner > 1 || s.image[2] <= BATCH_WIDEST, reason, NOT_SUPPORTED_SHAPE,
            "longer lines of planes than shared memory has room for");
    WD_NEED(!is_whole(&s), reason, NOT_SUPPORTED_SHAPE, "whole runs of channels or columns");
    return wd_resample_can_sum(&s, reason);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reason reason;
    struct wd_resample_shape s;
    wd_resample_shape_of(problem, &s, &reason);
    return wd_resample_sum_bytes(&s); /* of calls that blend */
}

static void set_args(const struct wd_resample_shape *s, const struct wd_resample_memory *m,
                     int multiprocessors, struct resample_batch_args *a)
{
    const int batch = s->backward ? BATCH_ROWS : BATCH_LINES;
    const int64_t high = s->image[1];
    int64_t units = s->image[2] * s->inner; /* of y as many words */
    memset(a, 0, sizeof *a);
    a->from = m->from;
    a->out = m->out;
    a->alpha = (float)m->alpha;
    a->high = (int32_t)high;
    a->wide = (int32_t)s->image[2];
    a->inner = (uint32_t)s->inner;
    a->before = !s->backward && (uintptr_t)m->out / (uintptr_t)s->size % BATCH_WORD != 0;
    units += a->before;
    a->rows = s->backward ? BACK_ROWS : ROWS;
    if (s->outer * units * wd_ceil_div(high, ROWS) < (int64_t)multiprocessors * ENOUGH) {
        a->rows = batch;
    }
    a->by_line = wd_fastdiv_of((uint32_t)units);
    a->by_band = wd_fastdiv_of((uint32_t)wd_ceil_div(high, a->rows));
    a->by_run = wd_fastdiv_of((uint32_t)s->inner);
    a->count = (uint32_t)(s->outer * units * wd_ceil_div(high, a->rows));
}

/* Planes, forward: a warp has whole lines of some rows. */
static cudnnStatus_t emit_lines(struct wd_queue *queue, const struct wd_resample_shape *s,
                                struct resample_batch_args *a)
{
    const int64_t wide = s->image[2];
    int64_t walks = BATCH_WALKS;
    a->rows = (int32_t)wd_resample_walk_rows(s->outer, s->image[1], LINE_ROWS,
                                             (int64_t)queue->device->multiprocessors * WARPS);
    a->bytes = s->outer * wd_resample_image(s) * s->size;
    a->by_band = wd_fastdiv_of((uint32_t)wd_ceil_div(s->image[1], a->rows));
    a->count = (uint32_t)(s->outer * wd_ceil_div(s->image[1], a->rows));
    a->pitch =
        (uint32_t)(wd_ceil_div(BATCH_TURN * wide * s->size + ALIGN - s->size, ALIGN) * ALIGN);
    a->size =
        RING_SHORT * a->pitch + BATCH_OVER + (uint32_t)(BATCH_TURN * 4 * wide * s->size) + BESIDE;
    a->size = (uint32_t)wd_ceil_div(a->size, ALIGN) * ALIGN;
    while (walks > 1 && walks * a->size > SHARED_MAX) --walks;
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_resample_batch_lines_f16 + s->type - 1],
                          wd_ceil_div(a->count, walks), (uint32_t)(RING_WARP * walks),
                          (uint32_t)(walks * a->size), a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_reason reason;
    struct wd_resample_shape s;
    struct wd_resample_memory m;
    struct resample_batch_args a;
    int which;
    wd_resample_shape_of(&call->problem, &s, &reason);
    m = wd_resample_memory_of(call, &s, queue->device);
    if (m.alpha == 0.0 || m.beta != 0.0) return wd_resample_sum(queue, &s, &m);
    set_args(&s, &m, queue->device->multiprocessors, &a);
    if (!s.backward && s.inner == 1) return emit_lines(queue, &s, &a);
    which = s.backward ? KERNEL_resample_batch_back_f32 + s.type
                       : KERNEL_resample_batch_f16 + s.type - 1;
    return wd_emit_kernel(queue, &kernel_rows[which], wd_ceil_div(a.count, BATCH_THREADS),
                          BATCH_THREADS, 0, &a);
}

const struct wd_engine wd_engine_resample_forward_batch = {
    .name = "resample_forward_batch",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_GPU,
    .match = match,
    .workspace = workspace,
    .kernels = &kernels,
    .emit = emit,
};

const struct wd_engine wd_engine_resample_backward_batch = {
    .name = "resample_backward_batch",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_GPU,
    .match = match,
    .workspace = workspace,
    .kernels = &kernels,
    .emit = emit,
};
