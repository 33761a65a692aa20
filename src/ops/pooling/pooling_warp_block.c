/* SPDX-License-Identifier: Apache-2.0
 *
 * See pooling_warp_block.h. No state. */
#include "ops/pooling/pooling_warp_block.h"

#include "ops/pooling/pooling_walk.h"

#include <string.h>

enum {
    WARP = 32,
    CHANNELS_LEAST = 40, /* of a warp, in the mean over a row of pixels */
    PIXEL_LEAST = 8,     /* 16 bytes: a whole run */
    STRIP_LEAST = 8,     /* pairs of rows of a warp */
};

int64_t wd_pool_warps_of(const struct wd_device *device, const struct wd_pool_shape *s,
                         const struct wd_pool_memory *m, int64_t pairs, int64_t resident,
                         struct pool_warp_args *a)
{
    const int64_t lanes = (s->inner + 1) / 2, most = INT32_MAX - 8 * s->image[2] * s->inner;
    const int64_t rows = (s->pad[1] + s->image[1] + 1) / 2 - s->pad[1] / 2;
    const int64_t columns = (s->pad[2] + s->image[2] + 1) / 2 - s->pad[2] / 2;
    const uintptr_t words = (uintptr_t)m->dy | (s->max ? (uintptr_t)m->x : 0);
    const int64_t groups = wd_ceil_div(columns, pairs);
    int64_t sets;
    int64_t warps;
    if (s->size != 2 || !s->pixels || lanes > WARP || s->inner % PIXEL_LEAST == 0 ||
        s->inner < PIXEL_LEAST) {
        return 0;
    }
    sets = wd_ceil_div(groups, WARP / lanes);
    if (columns * s->inner < CHANNELS_LEAST * pairs * sets) return 0;
    /* of an even number the last of a pixel's channels would be by itself */
    if (s->inner % 2 == 0 && words % 4 != 0) return 0;
    /* what is read beside a row is there: two rows of windows of the last image are kept back for it */
    if (s->windows[1] < 2) return 0;
    if (s->outer * wd_pool_image(s) >= most || s->outer * wd_pool_windows(s) >= most ||
        s->image[2] < 3 || s->windows[2] < 2 ||
        s->windows[2] + 1 < (s->pad[2] + s->image[2] + 1) / 2) {
        return 0;
    }
    memset(a, 0, sizeof *a);
    a->x = m->x;
    a->dy = m->dy;
    a->out = m->out;
    a->alpha = (float)m->alpha;
    a->inverse = (float)s->inverse;
    a->exclude = s->exclude;
    a->inner = (int32_t)s->inner;
    a->image_h = (int32_t)s->image[1];
    a->image_w = (int32_t)s->image[2];
    a->windows_h = (int32_t)s->windows[1];
    a->windows_w = (int32_t)s->windows[2];
    a->pad_h = (int32_t)s->pad[1];
    a->pad_w = (int32_t)s->pad[2];
    a->groups = (int32_t)groups;
    a->each = (int32_t)(WARP / lanes);
    a->by_lanes = wd_fastdiv_of((uint32_t)lanes);
    a->by_sets = wd_fastdiv_of((uint32_t)sets);
    a->by_outer = wd_fastdiv_of((uint32_t)s->outer);
    warps = s->outer * sets;
    a->strip = (int32_t)wd_pool_walk_strip(device, warps * WARP, rows, STRIP_LEAST, resident);
    a->strips = (int32_t)wd_ceil_div(rows, a->strip);
    return wd_ceil_div(warps * a->strips * WARP, POOL_WARP_THREADS);
}
