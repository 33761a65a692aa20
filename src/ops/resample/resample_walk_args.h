/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the resample_walk kernels, shared by host and device: weighted sums by the tables of
 * resample_vector_args.h, a thread a few places of a line, down a stretch of rows. */
#ifndef WD_OPS_RESAMPLE_WALK_ARGS_H
#define WD_OPS_RESAMPLE_WALK_ARGS_H

#include "ops/resample/resample_vector_args.h"

enum {
    WALK_THREADS = 256,
    WALK_PLACES = 4, /* of a thread, where lines are staged */
    WALK_SLOTS = 24,
    WALK_TAPS = 8,
};

/* A table that fits the arguments: windows repeat after as many as their lengths' denominator says, so
 * that there are the first ones, one period, and the last ones. */
struct resample_near {
    int32_t head;  /* entries before the period */
    int32_t tail;  /* the first entry behind all periods */
    int32_t shift; /* of `first`, from period to period */
    struct wd_fastdiv by_period;
    int32_t first[WALK_SLOTS];
    int32_t count[WALK_SLOTS];
    float weight[WALK_SLOTS][WALK_TAPS];
};

struct resample_walk_args {
    const void *from;
    void *out;
    double alpha;
    double beta;
    int32_t scales; /* alpha is not 0 */
    int32_t blends; /* beta is not 0: what was in `out` counts */
    int32_t streaming;
    int32_t rows;          /* of `out`, of a walk */
    int32_t walks;         /* of a block, one below the other */
    int32_t lines;         /* of `from`, at most, under a walk */
    uint32_t threads;      /* of a walk: whole warps */
    uint32_t inner;        /* elements of a pixel */
    uint32_t units;        /* of a line of `out`: runs, or elements */
    uint32_t segment;      /* units that a walk has */
    uint32_t weights_at;   /* bytes into shared memory: weights of lines */
    uint32_t weights_size; /* of a walk */
    uint32_t stage_at;     /* and staged lines of `from` */
    uint32_t pitch;        /* bytes of one of them, whole 16s */
    uint32_t stage_lines;  /* at most, of all walks and one depth */
    int32_t compact;
    int64_t total;            /* elements of `from` */
    struct wd_fastdiv by_run; /* units of a pixel */
    struct wd_fastdiv by_segments;
    struct wd_fastdiv by_bands;
    struct wd_fastdiv by_depth;
    struct wd_fastdiv by_chunks; /* runs of 16 bytes of a staged line */
    struct resample_axis axis[RESAMPLE_AXES];
    struct resample_near near[RESAMPLE_AXES]; /* where they are `compact`, in place of tables */
};

#endif
