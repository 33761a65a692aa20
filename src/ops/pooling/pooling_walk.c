/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling forward on the GPU of overlapping windows of 3x3 (and any depth) over pixels of whole runs of
 * channels, in fp32, fp16 and bf16: a thread walks down the rows. */
#include "ops/pooling/pooling_band.h"
#include "ops/pooling/pooling_walk.h"

#include <string.h>

#define WD_KERNELS_MODULE pooling_walk
#define WD_KERNELS_ROWS "ops/pooling/pooling_walk_kernels.def"
#include "ops/kernels_host.inc"

enum {
    STRIP_LEAST = 8, /* rows of a thread */
    RESIDENT = 1024, /* threads of a processor; of deep images and maxima half as many */
    BEGINS = 4,      /* rows that a strip's beginning takes as long as */
    /* of so many threads that there is room for one is there: shorter strips are no loss */
    IDLE = 4,
    THREADS_EACH =
        2048, /* of a processor, that shorter strips are to make of flat images forward */
};

static int64_t run_elements(const struct wd_pool_shape *s)
{
    return 16 / s->size;
}

bool wd_pool_walk_takes(const struct wd_pool_shape *s, struct wd_reason *reason)
{
    WD_NEED(s->size != 8, reason, NOT_SUPPORTED_DATA_TYPE, "fp64: boxes have it");
    WD_NEED(s->pixels && s->inner % run_elements(s) == 0, reason, NOT_SUPPORTED_LAYOUT,
            "not pixels of whole runs of channels");
    for (int d = 0; d < 3 && !(s->max && s->backward); ++d) {
        int64_t outs = s->backward ? s->image[d] : s->windows[d];
        int64_t ins = s->backward ? s->windows[d] : s->image[d];
        int64_t pad = s->backward ? s->window[d] - 1 - s->pad[d] : s->pad[d];
        WD_NEED(pad < s->window[d] && (outs - 1) * s->stride[d] - pad < ins, reason,
                NOT_SUPPORTED_SHAPE, "a result is made of nothing along axis %d", d);
    }
    return true;
}

int64_t wd_pool_walk_strip(const struct wd_device *device, int64_t across, int64_t rows,
                           int64_t least, int64_t resident)
{
    int64_t best = rows;
    int64_t cost = INT64_MAX;
    const int64_t room = resident * device->multiprocessors;
    for (int64_t parts = 1; parts <= rows; parts += 1 + parts / 8) {
        const int64_t each = wd_ceil_div(rows, parts);
        const int64_t threads = across * wd_ceil_div(rows, each);
        const int64_t waves = wd_ceil_div(threads, room);
        /* where most processors would have nothing to do what is read twice costs nothing */
        if (parts > 1 && rows / parts < least && threads * IDLE > room) break;
        if (waves * (each + BEGINS) >= cost) continue;
        cost = waves * (each + BEGINS);
        best = each;
    }
    return best;
}

struct pool_walk_args wd_pool_walk_args_of(const struct wd_device *device,
                                           const struct wd_pool_shape *s, int64_t columns,
                                           const struct wd_pool_memory *m)
{
    struct pool_walk_args a;
    const bool spread = s->backward && !s->max, flat = wd_pool_walk_is_flat(s);
    int64_t across; /* threads but for strips */
    int64_t rows;   /* or pairs of them */
    int64_t groups; /* of columns */
    memset(&a, 0, sizeof a);
    a.from = spread ? m->dy : m->x;
    a.out = m->out;
    a.alpha = (float)m->alpha;
    a.streaming = m->streaming;
    a.mode = wd_pool_mode(s);
    a.exclude = s->exclude;
    a.lowest = (float)s->lowest;
    a.inverse = (float)s->inverse;
    a.inner = (uint32_t)s->inner;
    a.dy = m->dy;
    for (int d = 0; d < 3; ++d) {
        struct pool_walk_axis *x = &a.axis[d];
        x->ins = (int32_t)(s->backward ? s->windows[d] : s->image[d]);
        x->outs = (int32_t)(s->backward ? s->image[d] : s->windows[d]);
        x->size = (int32_t)s->window[d];
        x->stride = (int32_t)s->stride[d];
        x->pad = (int32_t)(spread ? s->window[d] - 1 - s->pad[d] : s->pad[d]);
        x->image = (int32_t)s->image[d];
        x->image_pad = (int32_t)s->pad[d];
    }
    rows = a.axis[1].outs;
    groups = wd_ceil_div(a.axis[2].outs, columns);
    if (s->max && s->backward) { /* pairs that padding begins and ends within */
        rows = (s->pad[1] + s->image[1] + 1) / 2 - s->pad[1] / 2;
        groups = wd_ceil_div((s->pad[2] + s->image[2] + 1) / 2 - s->pad[2] / 2, columns);
    }
    a.by_inner = wd_fastdiv_of((uint32_t)(s->inner / run_elements(s)));
    a.by_groups = wd_fastdiv_of((uint32_t)groups);
    a.by_deep = wd_fastdiv_of((uint32_t)a.axis[0].outs);
    across = s->outer * a.axis[0].outs * a.by_groups.divisor * a.by_inner.divisor;
    if (flat && !s->backward) {
        /* measured, 35 rows: strips of 9 take 0.92 of the time of whole columns, backward more */
        a.strip = (int32_t)rows;
        while (a.strip >= 2 * STRIP_LEAST && across * wd_ceil_div(rows, a.strip) <
                                                 (int64_t)THREADS_EACH * device->multiprocessors) {
            a.strip = (a.strip + 1) / 2;
        }
    } else {
        a.strip = (int32_t)wd_pool_walk_strip(device, across, rows, STRIP_LEAST,
                                              flat && !s->max ? RESIDENT : RESIDENT / 2);
    }
    a.by_strips = wd_fastdiv_of((uint32_t)wd_ceil_div(rows, a.strip));
    a.items = (uint32_t)(across * a.by_strips.divisor);
    return a;
}

cudnnStatus_t wd_pool_walk_launch(struct wd_queue *queue, struct wd_kernel_row *row,
                                  const struct pool_walk_args *a)
{
    /* small blocks, for registers leave room for an uneven number of them; where there are few threads, smaller
     * ones, for all processors */
    uint32_t threads = POOL_THREADS / 2;
    while (threads > 32 && a->items < (int64_t)2 * threads * queue->device->multiprocessors) {
        threads /= 2;
    }
    return wd_emit_kernel(queue, row, wd_ceil_div(a->items, threads), threads, 0, a);
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    const bool flat = wd_pool_walk_is_flat(s);
    WD_NEED(s->window[1] == 3 && s->window[2] == 3 && s->stride[1] == s->stride[2] &&
                (s->stride[1] == 1 || (s->stride[1] == 2 && !flat)),
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 that overlap");
    WD_NEED(flat || wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE,
            "not at any alignment");
    return wd_pool_walk_takes(s, reason);
}

/* How boxes are cut, for pointers off the boundaries; nothing where they do not take the shape. */
static void prepare_shape(const struct wd_device *device, const struct wd_pool_shape *s,
                          void *prepared)
{
    struct wd_reason reason;
    if (!wd_pool_forward_band.takes(device, s, &reason)) return;
    wd_pool_forward_band.prepare(device, s, prepared);
}

/* Off the boundaries: 32 channels of 289x28, bf16, 19.3 us by boxes and 53.8 by single elements. */
static cudnnStatus_t emit_misaligned(struct wd_queue *queue, const struct wd_pool_shape *s,
                                     const struct wd_pool_memory *m)
{
    const bool is_prepared = m->prepared && m->prepared_by == &wd_pool_forward_walk;
    struct wd_pool_memory own = *m;
    struct wd_reason reason;
    if (is_prepared ? ((const struct wd_pool_band *)m->prepared)->blocks > 0
                    : wd_pool_forward_band.takes(queue->device, s, &reason)) {
        if (is_prepared) own.prepared_by = &wd_pool_forward_band;
        return wd_pool_forward_band.emit(queue, s, &own);
    }
    return (wd_pool_walk_is_flat(s) ? wd_pool_forward_single : wd_pool_forward_tile)
        .emit(queue, s, m);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    const bool flat = wd_pool_walk_is_flat(s);
    const bool pairs = s->stride[1] == 2;
    struct pool_walk_args a;
    int kernel;
    if (wd_pool_blends(m)) {
        return (flat ? wd_pool_forward_single : wd_pool_forward_tile).emit(queue, s, m);
    }
    if (((uintptr_t)m->x | (uintptr_t)m->out) % 16 != 0) return emit_misaligned(queue, s, m);
    a = wd_pool_walk_args_of(queue->device, s, 1, m);
    kernel = KERNEL_pool_walk_f32_3_1_flat + s->type * 3 + (pairs ? 2 : !flat);
    return wd_pool_walk_launch(queue, &kernel_rows[kernel], &a);
}

const struct wd_pool_way wd_pool_forward_walk = {takes, NULL, emit_shape, prepare_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_forward_walk, problem, reason);
}

static void prepare(const struct wd_problem *problem, void *job)
{
    wd_pool_way_prepare(&wd_pool_forward_walk, problem, job);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit_prepared(prepare, call, queue);
}

const struct wd_engine wd_engine_pool_forward_walk = {
    .name = "pool_forward_walk",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_pool_job),
    .emit = emit,
};
