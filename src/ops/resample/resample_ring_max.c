/* SPDX-License-Identifier: Apache-2.0
 *
 * Maxima with an index tensor on the GPU, of whole pixels, where neither runs of channels nor tiles of
 * planes are aligned: through rings of lines, a warp a walk down the rows, or straight from memory. */
#include <string.h>

#include "base/sizes.h"
#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_walk.h"

#define WD_KERNELS_MODULE resample_ring_max
#define WD_KERNELS_ROWS "ops/resample/resample_ring_max_kernels.def"
#include "ops/kernels_host.inc"

enum {
    ROWS = 16, /* of a walk, at most */
    ROWS_FEW = 4,
    WARPS = 32,            /* of a multiprocessor, where there is as much work */
    SHARED_MAX = 40 << 10, /* bytes of a block */
    LINE_SHORT = 512,      /* bytes of which a ring has more */
    WORD_ROWS = 16, /* straight from memory, where there are so many warps a multiprocessor: */
    WORD_WARPS = 64,
};

/* Windows of three rows, by two, and three columns, of pixels of several channels: straight from memory. */
static bool is_words(const struct wd_resample_shape *s, const struct resample_ring_max_args *a)
{
    const struct resample_places_axis *h = &a->p.axis[1];
    return s->inner > 1 && h->window == 3 && h->stride == 2 && a->p.axis[2].window == 3 &&
           s->outer * s->windows[2] * s->inner <= INT32_MAX;
}

/* A thread has a window of a line: all images' lines are one. */
static void cut_words(const struct wd_resample_shape *s, int multiprocessors,
                      struct resample_ring_max_args *a)
{
    const int64_t units = s->windows[2] * s->inner;
    const int64_t segments = wd_ceil_div(s->outer * units, RING_WARP * RING_WALKS);
    const bool is_long = segments * RING_WALKS * wd_ceil_div(s->windows[1], WORD_ROWS) >=
                         (int64_t)multiprocessors * WORD_WARPS;
    a->rows = is_long ? WORD_ROWS : RING_MAX_ROWS;
    a->walks = RING_WALKS;
    a->units = (uint32_t)(s->outer * units);
    a->by_inner = wd_fastdiv_of((uint32_t)s->inner);
    a->by_line = wd_fastdiv_of((uint32_t)units);
    a->p.by_column = wd_fastdiv_of((uint32_t)segments);
    a->p.by_row = wd_fastdiv_of((uint32_t)wd_ceil_div(s->windows[1], a->rows));
}

/* The arguments but for memory, and the bands of a problem; false where lines do not fit. */
static bool cut(const struct wd_resample_shape *s, int multiprocessors,
                struct resample_ring_max_args *a)
{
    const struct resample_places_axis *w = &a->p.axis[2];
    const int64_t units = s->windows[2] * s->inner;
    const int64_t all = (int64_t)RING_WARP * (w->window == 3 ? RING_PLACES : WALK_PLACES);
    const bool is_long =
        s->outer * wd_ceil_div(units, all) * wd_ceil_div(s->windows[1], ROWS / 2) >=
        (int64_t)multiprocessors * WARPS;
    const int64_t segment = is_long ? all : (int64_t)RING_WARP * WALK_PLACES;
    const int64_t segments = wd_ceil_div(units, segment);
    const int64_t columns = wd_least((segment - 1) / s->inner + 2, s->windows[2]);
    const int64_t reach = ((columns - 1) * w->stride + w->window) * s->inner * s->size;
    const int64_t pitch = wd_ceil_div(reach, 16) * 16 + 16;
    const int64_t ring = pitch <= LINE_SHORT ? RING_LONG : RING_SHORT;
    int64_t rows = ROWS;
    int64_t walks = RING_WALKS;
    if (is_words(s, a)) {
        cut_words(s, multiprocessors, a);
        return true;
    }
    while (walks > 0 && walks * ring * pitch > SHARED_MAX) --walks;
    if (walks == 0) return false;
    while (rows > ROWS_FEW && s->outer * segments * wd_ceil_div(s->windows[1], rows) <
                                  (int64_t)multiprocessors * WARPS) {
        rows /= 2;
    }
    rows = wd_ceil_div(s->windows[1], wd_ceil_div(s->windows[1], rows));
    walks = wd_least(walks, wd_ceil_div(s->windows[1], rows));
    a->rows = (uint32_t)rows;
    a->walks = (uint32_t)walks;
    a->units = (uint32_t)units;
    a->segment = (uint32_t)segment;
    a->ring = (uint32_t)ring;
    a->pitch = (uint32_t)pitch;
    a->size = (uint32_t)(ring * pitch);
    a->by_inner = wd_fastdiv_of((uint32_t)s->inner);
    a->bytes = s->outer * wd_resample_image(s) * s->size;
    a->p.by_column = wd_fastdiv_of((uint32_t)segments);
    a->p.by_row = wd_fastdiv_of((uint32_t)wd_ceil_div(s->windows[1], rows * walks));
    return true;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    static const struct wd_resample_memory aligned;
    struct wd_resample_shape s;
    struct resample_ring_max_args a;
    struct resample_places_args tiles;
    struct resample_threes_args threes;
    const struct resample_places_axis *h = &a.p.axis[1];
    if (!wd_resample_shape_of(problem, &s, reason)) return false;
    WD_NEED(s.max && s.has_idx && s.type != 3, reason, NOT_SUPPORTED,
            "no maximum with an index tensor, or of double precision");
    WD_NEED(s.axis[0] < 0 && wd_resample_whole(&s), reason, NOT_SUPPORTED_SHAPE,
            "volumes, fractions of a pixel, or padding that is a candidate");
    WD_NEED(!wd_resample_by_runs(&s, &aligned) && !wd_resample_tiles(&s, &aligned, &tiles) &&
                !wd_resample_threes(&s, &aligned, problem->device->multiprocessors, &threes),
            reason, NOT_SUPPORTED_SHAPE, "runs of channels, or planes by two in whole runs");
    if (!wd_resample_can_max(&s, reason)) return false;
    memset(&a, 0, sizeof a);
    a.p = wd_resample_places_args_of(&s, &aligned);
    WD_NEED(h->stride <= h->window && h->window <= h->stride + 1, reason, NOT_SUPPORTED_SHAPE,
            "windows of %d rows by %d: they share more than a line, or leave some out", h->window,
            h->stride);
    WD_NEED(cut(&s, problem->device->multiprocessors, &a), reason, NOT_SUPPORTED_SHAPE,
            "lines that are too long for a ring");
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_resample_memory m;
    struct wd_reason reason;
    struct wd_resample_shape s;
    struct resample_ring_max_args a;
    int64_t blocks;
    int kernel;
    wd_resample_shape_of(&call->problem, &s, &reason);
    m = wd_resample_memory_of(call, &s, queue->device);
    memset(&a, 0, sizeof a);
    a.p = wd_resample_places_args_of(&s, &m);
    if (!cut(&s, queue->device->multiprocessors, &a)) return CUDNN_STATUS_INTERNAL_ERROR;
    kernel = KERNEL_resample_ring_max_f32_3 + s.type * 2 + (a.p.axis[2].window == 3 ? 0 : 1);
    blocks = (int64_t)a.p.by_row.divisor * (int64_t)a.p.by_column.divisor;
    if (is_words(&s, &a)) kernel = KERNEL_resample_ring_max_words_f32 + s.type;
    else blocks *= s.outer;
    return wd_emit_kernel(queue, &kernel_rows[kernel], blocks, RING_WARP * a.walks,
                          a.walks * a.size, &a);
}

const struct wd_engine wd_engine_resample_forward_ring_max = {
    .name = "resample_forward_ring_max",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
