/* SPDX-License-Identifier: Apache-2.0
 *
 * Which gradients of maxima go through rings of lines, or are added up in shared memory, and how they are shared
 * out among warps and blocks. */
#include <string.h>

#include "base/sizes.h"
#include "ops/pooling/pooling_warp_block.h"
#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_walk.h"

enum {
    ROWS = 32,              /* of windows, of a walk, at most */
    WARPS = 20,             /* of a multiprocessor, as the registers have it */
    SHARED_MAX = 40 << 10,  /* bytes of a block */
    SCATTER_THREADS = 256,  /* of a block whose pixels have no more channels than that lets */
    SCATTER_WARPS = 40,     /* of a multiprocessor, by which blocks have as many rows */
    SCATTER_MAX = 96 << 10, /* bytes of a block that adds up in shared memory */
    LINE_SHORT = 512,       /* bytes of which a ring has more */
};

/* Windows of two or three, by two, along both axes of a plane. */
static bool is_by_two(const struct wd_resample_shape *s, const struct resample_places_args *p)
{
    if (!s->max || !s->backward || !s->has_idx || s->type == 3 || s->axis[0] >= 0) return false;
    for (int d = 1; d < RESAMPLE_AXES; ++d) {
        if (s->axis[d] < 0 || p->axis[d].stride != 2) return false;
        if (p->axis[d].window != 2 && p->axis[d].window != 3) return false;
    }
    return p->axis[1].window == p->axis[2].window;
}

bool wd_resample_ring_pick_args_of(const struct wd_resample_shape *s,
                                   const struct wd_resample_memory *memory, int multiprocessors,
                                   struct resample_ring_pick_args *a,
                                   struct wd_resample_launch_size *launch)
{
    static const struct wd_resample_memory aligned;
    const int64_t segment = (int64_t)RING_WARP * WALK_PLACES;
    int64_t columns;
    int64_t lines;
    int64_t units;
    int64_t segments;
    int64_t elements;
    int64_t pitch;
    int64_t place_pitch;
    int64_t ring;
    int64_t size;
    struct resample_places_args tiles;
    struct resample_threes_args threes;
    int64_t rows;
    int64_t walks = RING_WALKS;
    if (!s->max || !wd_resample_whole(s)) return false;
    memset(a, 0, sizeof *a);
    a->p = wd_resample_places_args_of(s, memory);
    if (!is_by_two(s, &a->p) || s->inner > 1 || wd_resample_by_runs(s, &aligned) ||
        wd_resample_tiles(s, &aligned, &tiles) ||
        wd_resample_threes(s, &aligned, multiprocessors, &threes)) {
        return false;
    }
    /* windows, and where some would begin behind the last */
    columns = wd_ceil_div(s->image[2] + a->p.axis[2].pad, 2);
    lines = wd_ceil_div(s->image[1] + a->p.axis[1].pad, 2);
    units = columns * s->inner;
    segments = wd_ceil_div(units, segment);
    a->by_inner = wd_fastdiv_of((uint32_t)s->inner);
    /* those of a segment, which begins anywhere, and the one before it */
    elements = wd_least(segment + 1, columns) + 1;
    pitch = wd_ceil_div(elements * s->size, 16) * 16 + 16;
    place_pitch = wd_ceil_div(elements * s->place_size, 16) * 16 + 16;
    ring = pitch <= LINE_SHORT ? RING_LONG : RING_SHORT;
    size = ring * (pitch + place_pitch);
    while (walks > 0 && walks * size > SHARED_MAX) --walks;
    if (walks == 0) return false;
    rows =
        wd_resample_walk_rows(s->outer * segments, lines, ROWS, (int64_t)multiprocessors * WARPS);
    walks = wd_least(walks, wd_ceil_div(lines, rows));
    a->rows = (uint32_t)rows;
    a->walks = (uint32_t)walks;
    a->units = (uint32_t)units;
    a->ring = (uint32_t)ring;
    a->pitch = (uint32_t)pitch;
    a->place_pitch = (uint32_t)place_pitch;
    a->size = (uint32_t)size;
    a->bytes = s->outer * wd_resample_windows(s) * s->size;
    a->place_bytes = s->outer * wd_resample_windows(s) * s->place_size;
    a->p.by_column = wd_fastdiv_of((uint32_t)segments);
    a->p.by_row = wd_fastdiv_of((uint32_t)wd_ceil_div(lines, rows * walks));
    launch->blocks = s->outer * segments * wd_ceil_div(lines, rows * walks);
    launch->threads = (uint32_t)(RING_WARP * walks);
    launch->shared = (uint32_t)(walks * size);
    return true;
}

bool wd_resample_ring_scatter_args_of(const struct wd_resample_shape *s,
                                      const struct wd_resample_memory *memory, int multiprocessors,
                                      struct resample_ring_scatter_args *a,
                                      struct wd_resample_launch_size *launch)
{
    static const struct wd_resample_memory aligned;
    int64_t threads = SCATTER_THREADS;
    int64_t columns;
    int64_t lines;
    int64_t segments;
    int64_t windows;
    int64_t rows;
    if (!s->max || !wd_resample_whole(s) || s->inner == 1) return false;
    memset(a, 0, sizeof *a);
    a->p = wd_resample_places_args_of(s, memory);
    if (!is_by_two(s, &a->p) || wd_resample_by_runs(s, &aligned)) return false;
    /* windows, and where some would begin behind the last */
    columns = wd_ceil_div(s->image[2] + a->p.axis[2].pad, 2);
    lines = wd_ceil_div(s->image[1] + a->p.axis[1].pad, 2);
    /* half of a thread's are of even place; one is another block's */
    if (s->inner > threads * RING_SCATTER_UNITS / 2) threads = RING_SCATTER_THREADS;
    windows = threads * RING_SCATTER_UNITS / 2 / s->inner * 2 - 1;
    if (windows < 1) return false;
    segments = wd_ceil_div(columns, windows);
    windows = wd_ceil_div(columns, segments);
    threads = wd_ceil_div(wd_ceil_div(windows + 1, 2) * s->inner, RING_SCATTER_UNITS / 2);
    threads = wd_ceil_div(threads, RING_WARP) * RING_WARP;
    rows = wd_resample_walk_rows(s->outer * segments * (threads / RING_WARP), lines, ROWS,
                                 (int64_t)multiprocessors * SCATTER_WARPS);
    a->rows = (uint32_t)rows;
    a->windows = (uint32_t)windows;
    a->pitch = (uint32_t)(wd_ceil_div((2 * windows + 3) * s->inner, RING_SCATTER_RUN) + 3) *
               RING_SCATTER_RUN;
    a->by_inner = wd_fastdiv_of((uint32_t)s->inner);
    a->p.by_column = wd_fastdiv_of((uint32_t)segments);
    a->p.by_row = wd_fastdiv_of((uint32_t)wd_ceil_div(lines, rows));
    launch->blocks = s->outer * segments * wd_ceil_div(lines, rows);
    launch->threads = (uint32_t)threads;
    launch->shared = 4 * (RING_SCATTER_NOTES + RING_SCATTER_ROWS * a->pitch);
    return launch->shared <= SCATTER_MAX;
}

int64_t wd_resample_warps_of(const struct wd_device *device, const struct wd_resample_shape *s,
                             const struct wd_resample_memory *m,
                             const struct resample_places_args *p, int64_t resident,
                             struct pool_warp_args *a)
{
    struct wd_pool_shape shape = {
        .size = s->size, .pixels = s->inner > 1, .max = true, .outer = s->outer, .inner = s->inner};
    const struct wd_pool_memory memory = {.x = m->places, .dy = m->from, .out = m->out};
    if (!p->plain || p->place_size != 1 || p->axis[1].window != 3 || s->size != 2) return 0;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        if (d > 0 && (p->axis[d].pad < 0 || p->axis[d].pad > 2)) return 0;
        shape.image[d] = s->image[d];
        shape.windows[d] = s->windows[d];
        shape.pad[d] = p->axis[d].pad;
    }
    return wd_pool_warps_of(device, &shape, &memory, POOL_WARP_PLACES, resident, a);
}
