/* SPDX-License-Identifier: Apache-2.0
 *
 * Which sums of planes go down the columns first (resample_ring_down.cuh), and how they are shared out among
 * warps. */
#include <string.h>

#include "base/sizes.h"
#include "ops/resample/resample_ring.h"
#include "ops/resample/resample_ring_args.h"

enum {
    LANE = 16,   /* bytes of a line that a lane has */
    RECORD = 32, /* bytes of a row's record */
    ROWS = 64,   /* of a walk, at most */
    WARPS = 24,  /* of a multiprocessor, as registers let */
};

int64_t wd_resample_ring_down_of(const struct wd_resample_shape *s,
                                 const struct wd_resample_tables *t, int multiprocessors,
                                 struct wd_resample_ring_plan *p)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int64_t *from = s->backward ? s->windows : s->image;
    const int64_t run = LANE / s->size;
    const int64_t places = (int64_t)RING_WARP * RING_DOWN_PLACES;
    const int64_t each = s->size == 2 ? 2 : 1;
    int64_t chunks = from[2] / run;
    memset(p, 0, sizeof *p);
    if (s->inner != 1 || s->axis[0] >= 0 || from[2] % run != 0 || out[2] % each != 0) return 0;
    if (t->taps[1] > RING_DOWN_LINES || t->taps[2] > RING_WORD_TAPS) return 0;
    p->units = out[2];
    p->segment = wd_least(out[2], places);
    p->planes = 1;
    if (chunks <= RING_WARP && out[2] <= places) {
        p->planes = wd_least(RING_WARP / chunks, places / out[2]);
    } else {
        /* what is under a segment may begin anywhere in a run */
        while (p->segment > each &&
               wd_resample_reach(s, 2, p->segment, t->taps[2]) + run - 1 > RING_WARP * run) {
            p->segment -= each;
        }
        p->segment -= p->segment % each;
        chunks = RING_WARP;
    }
    if (p->segment < each) return 0;
    p->outer = wd_ceil_div(s->outer, p->planes);
    p->segments = wd_ceil_div(p->units, p->segment);
    p->threads = RING_WARP;
    p->rows = wd_resample_walk_rows(p->outer * p->segments, out[1], ROWS,
                                    (int64_t)multiprocessors * WARPS);
    p->walks = wd_least(RING_WALKS, wd_ceil_div(out[1], p->rows));
    p->bands = wd_ceil_div(out[1], p->rows * p->walks);
    p->size = RING_LONG * RING_WARP * LANE + RING_WARP * run * (int64_t)sizeof(float) + LANE;
    p->shared = p->walks * (p->rows * RECORD + p->size);
    return chunks;
}
