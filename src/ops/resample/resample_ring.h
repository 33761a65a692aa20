/* SPDX-License-Identifier: Apache-2.0
 *
 * How weighted sums are shared out among walks whose lines go through rings, or come straight from memory
 * (resample_ring_args.h). Pure functions of their arguments. */
#ifndef WD_OPS_RESAMPLE_RING_H
#define WD_OPS_RESAMPLE_RING_H

#include "ops/resample/resample_walk.h"

struct wd_resample_ring_plan {
    int form;
    bool words;      /* elements of any alignment, straight from memory */
    bool runs;       /* of channels, straight to where their threads are */
    int64_t units;   /* of a line of `out` */
    int64_t each;    /* elements of a word */
    int64_t threads; /* of a walk */
    int64_t planes;  /* side by side */
    int64_t outer;   /* groups of them */
    int64_t size;    /* as in the arguments */
    int64_t shared;
    int64_t segment;
    int64_t segments;
    int64_t rows;
    int64_t walks;
    int64_t bands;
    int64_t lines;
    int64_t ring; /* lines */
    int64_t pitch;
    int64_t weights_size;
};

/* False where it is no work for rings. Lines that no window has a part of would be read all the same. */
bool wd_resample_ring_plan_of(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                              int multiprocessors, struct wd_resample_ring_plan *p);

/* The same of planes by sums that go down the columns first, of what is aligned and blends nothing: the lanes
 * that a plane has, or 0. */
int64_t wd_resample_ring_down_of(const struct wd_resample_shape *s,
                                 const struct wd_resample_tables *t, int multiprocessors,
                                 struct wd_resample_ring_plan *p);

/* Of elements straight from memory: words of a line of what begins at `to`, one more where lines begin between two. */
int64_t wd_resample_ring_words(const struct wd_resample_shape *s,
                               const struct wd_resample_ring_plan *p, const void *to);

#endif
