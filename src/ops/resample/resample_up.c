/* SPDX-License-Identifier: Apache-2.0
 *
 * Which resampling is enlarging by two or four, and the arguments of its kernels. */
#include <string.h>

#include "base/sizes.h"
#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_walk.h"

enum {
    ROWS = 16,       /* of a thread, at most */
    ROWS_FEW = 2,    /* and where multiprocessors would be idle */
    ROWS_BACK = 32,  /* of gradients of runs by four, at most */
    WARPS_BACK = 20, /* of them that a multiprocessor has, as registers let */
    ENOUGH = 2048,   /* threads of a multiprocessor */
    VOLUME_RUN = 4,  /* elements, for want of registers */
};

/* How many times, and which way, along an axis; 0 where it is something else. */
static int times_of(const struct wd_resample_shape *s, int d, int *way, bool *near)
{
    const int axis = s->axis[d];
    int64_t unit;
    int64_t stride;
    int64_t centre; /* of window 0, twice */
    int64_t times;
    if (axis < 0) return 0;
    unit = s->attr->unit[axis];
    stride = s->attr->stride[axis];
    centre = resample_centre(s->attr, axis, 0);
    times = unit / stride;
    if ((times != 2 && times != 4) || times * stride != unit ||
        s->windows[d] != times * s->image[d]) {
        return 0;
    }
    if (s->attr->mode == CUDNN_RESAMPLE_NEAREST) {
        *way = RESAMPLE_UP_CORNERS;
        *near = true;
        return centre >= 0 && centre < 2 * stride ? (int)times : 0;
    }
    if (s->attr->mode != CUDNN_RESAMPLE_BILINEAR || s->attr->padding != CUDNN_EDGE_VAL_PAD ||
        s->attr->window[axis] > 2 * unit) {
        return 0;
    }
    *way = centre == unit ? RESAMPLE_UP_CORNERS : RESAMPLE_UP_MIDDLES;
    return centre == unit || centre == stride ? (int)times : 0;
}

bool wd_resample_is_by_two(const struct wd_resample_shape *s)
{
    bool near = false;
    int way[RESAMPLE_AXES] = {0};
    return s->axis[0] < 0 && times_of(s, 1, &way[1], &near) == 2 &&
           times_of(s, 2, &way[2], &near) == 2 && way[1] == RESAMPLE_UP_CORNERS &&
           way[2] == RESAMPLE_UP_CORNERS && s->attr->mode == CUDNN_RESAMPLE_BILINEAR;
}

int wd_resample_up_args_of(const struct wd_resample_shape *s, const struct wd_resample_memory *m,
                           int multiprocessors, struct resample_up_args *a)
{
    const bool aligned = ((uintptr_t)m->from | (uintptr_t)m->out) % 16 == 0;
    int64_t run = wd_resample_run(s);
    bool planes = s->inner == 1;
    bool single;
    const bool volume = s->axis[0] >= 0;
    int way[RESAMPLE_AXES] = {0};
    bool near = false;
    const int times = times_of(s, 1, &way[1], &near);
    int64_t columns;
    int64_t gaps;
    int64_t depth;
    int64_t bands;
    int64_t enough;
    if ((volume && (times != 2 || times_of(s, 0, &way[0], &near) != 2 || way[0] != way[1])) ||
        times == 0 || times != times_of(s, 2, &way[2], &near) || way[1] != way[2] ||
        (times == 4 && (way[1] != RESAMPLE_UP_MIDDLES || (!planes && !s->backward)))) {
        return -1;
    }
    if (s->type == 3) { /* by two, of planes, forward */
        if (volume || !planes || times != 2 || s->backward) return -1;
        run = times;
    }
    if (volume && !planes) run = VOLUME_RUN;
    single = !aligned || (planes ? s->image[2] % (run / times) : s->inner % run) != 0;
    if (single) {
        /* forward, of planes and in fp32 rings take as long or less */
        if (times != 2 || volume || !s->backward || planes || s->size != 2) return -1;
        run = 1;
        planes = false;
    }
    /* gradients of volumes, in runs, gather many samples: two columns share some */
    columns = planes ? run / times : s->backward && volume ? 2 : 1;
    if (columns > s->image[2]) return -1;
    memset(a, 0, sizeof *a);
    a->from = m->from;
    a->out = m->out;
    a->wide_alpha = m->alpha;
    a->alpha = (float)m->alpha;
    a->streaming = m->streaming;
    a->near = near;
    a->deep = (int32_t)s->image[0];
    a->high = (int32_t)s->image[1];
    a->wide = (int32_t)s->image[2];
    a->inner = (uint32_t)s->inner;
    a->by_run = wd_fastdiv_of((uint32_t)(planes ? 1 : s->inner / run));
    columns = wd_ceil_div(s->image[2], columns);
    a->by_column = wd_fastdiv_of((uint32_t)columns);
    depth = s->image[0] + (volume && !s->backward && way[1] == RESAMPLE_UP_MIDDLES);
    a->by_pair = wd_fastdiv_of(volume && s->backward && !planes && depth % 2 == 0 ? 2 : 1);
    a->by_depth = wd_fastdiv_of((uint32_t)(depth / a->by_pair.divisor));
    columns = s->outer * depth * columns * (planes ? 1 : s->inner / run);
    gaps = s->image[1] + (!s->backward && way[1] == RESAMPLE_UP_MIDDLES);
    a->rows = ROWS;
    /* by four these are bytes for several waves: measured, twice as many threads are faster than longer walks */
    enough = times == 4 && !s->backward ? 2 * ENOUGH : ENOUGH;
    do {
        bands = wd_ceil_div(gaps, a->rows);
        if (columns * bands >= (int64_t)multiprocessors * enough || a->rows == ROWS_FEW) break;
        a->rows /= 2;
    } while (true);
    if (s->backward && !planes && times == 4) {
        /* where rows meet lines are read twice, of which these have many: as few as that lets all be resident */
        a->rows = (int32_t)wd_resample_walk_rows(wd_ceil_div(columns, RING_WARP), gaps, ROWS_BACK,
                                                 (int64_t)multiprocessors * WARPS_BACK);
        bands = wd_ceil_div(gaps, a->rows);
    }
    a->by_band = wd_fastdiv_of((uint32_t)bands);
    a->count = (uint32_t)(columns * bands);
    /* planes, runs (by four backward only), volumes of both, singles */
    if (volume) return way[1] + (s->backward ? 6 : 5) + (planes ? 0 : 2);
    if (single) return way[1] + RESAMPLE_UP_SINGLES;
    return way[1] + (times == 4 ? 1 : 0) + (planes ? 0 : 3);
}
