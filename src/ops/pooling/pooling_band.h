/* SPDX-License-Identifier: Apache-2.0
 *
 * How an image is cut into boxes that are staged by lines (pooling_band_args.h). Pure functions. */
#ifndef WD_OPS_POOLING_BAND_H
#define WD_OPS_POOLING_BAND_H

#include "ops/pooling/pooling_band_args.h"
#include "ops/pooling/pooling_shape.h"

/* What is made: y; dx of averages whose windows begin at every element, and at every second; dx of
 * maxima. Columns are the same, of 3x3, a thread having as many rows as can be; sheets are such whose results
 * are staged as well. */
enum wd_pool_band_work {
    WD_POOL_BAND_FORWARD,
    WD_POOL_BAND_SPREAD,
    WD_POOL_BAND_PAIRS,
    WD_POOL_BAND_SCATTER,
    WD_POOL_COLUMNS_FORWARD,
    WD_POOL_COLUMNS_SPREAD,
    WD_POOL_SHEET_PAIRS,
    WD_POOL_SHEET_MAXIMA,
};

/* Whether what is made are windows of what is staged: averages backward at a stride of 1 are, too. */
static inline bool wd_pool_makes_windows(enum wd_pool_band_work work)
{
    return work == WD_POOL_BAND_FORWARD || work == WD_POOL_BAND_SPREAD ||
           work == WD_POOL_COLUMNS_FORWARD || work == WD_POOL_COLUMNS_SPREAD;
}

struct wd_pool_band {
    struct pool_band_args args; /* all but the memory and the scalars */
    int64_t blocks;
    int64_t bytes; /* of shared memory */
    uint32_t threads;
};

enum {
    WD_POOL_PLANE_LEAST = 8,
    WD_POOL_PLANE_MOST = 1024, /* elements of planes that blocks take several of */
    WD_POOL_PLANES = 4096,     /* and how many there are of them at least */
};

/* Whether planes are one window each, small and many. */
static inline bool wd_pool_is_planes(const struct wd_pool_shape *s)
{
    const int64_t elements = s->image[0] * s->image[1] * s->image[2];
    return !s->pixels && wd_pool_is_whole(s, 0) && wd_pool_is_whole(s, 1) &&
           wd_pool_is_whole(s, 2) && elements >= WD_POOL_PLANE_LEAST &&
           elements <= WD_POOL_PLANE_MOST && s->outer >= WD_POOL_PLANES;
}

/* Threads make `rows` results (or pairs of them) along the second axis at once; maxima backward take
 * turns instead; of columns the rows are shared by as many threads as there are. False where not even the
 * smallest box fits. */
bool wd_pool_band_of(const struct wd_device *device, const struct wd_pool_shape *shape,
                     enum wd_pool_band_work work, int64_t rows, struct wd_pool_band *band);

/* The same for a call, of what `way` prepared where it did, with its pointers and scalars. */
void wd_pool_band_call(const struct wd_device *device, const struct wd_pool_shape *shape,
                       enum wd_pool_band_work work, int64_t rows,
                       const struct wd_pool_memory *memory, const struct wd_pool_way *way,
                       struct wd_pool_band *band);

#endif
