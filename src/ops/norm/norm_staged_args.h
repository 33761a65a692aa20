/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_staged kernels, shared by host and device: group and instance norm, channels last, of samples
 * that the chip's shared memory holds (forward also of larger ones); and instance norm, channels first, whose planes are samples of their own with
 * rows of a unit. A team of blocks has a sample, in rounds: neighbouring rows of all channels, as many as a group of
 * warps has a unit of 16 bytes each, which the team's blocks have in turn. Rounds come by bulk copies to a ring of
 * places; one group of warps adds them up, another writes what follows, so that a sample is added up while the one
 * before it is written. */
#ifndef WD_OPS_NORM_STAGED_ARGS_H
#define WD_OPS_NORM_STAGED_ARGS_H

#include "base/fastdiv.h"
#include "ops/norm/norm_rows_args.h"

enum {
    NORM_STAGED_UNIT = 16,   /* bytes */
    NORM_STAGED_GROUP = 480, /* threads that add up: whole rows of most widths; */
    NORM_STAGED_THREADS =
        2 * NORM_STAGED_GROUP + 32, /* as many write, and a warp asks for rounds */
    NORM_STAGED_ROUND = NORM_STAGED_GROUP * NORM_STAGED_UNIT, /* bytes of one in shared memory */
    NORM_STAGED_PLACE = 2 * NORM_STAGED_ROUND,                /* likewise of a place of the ring */
};

/* Rounds of a place, of so many tensors. */
#define NORM_STAGED_EACH(arrays) (3 - (arrays))
/* Entries from what threads of a unit have found to the next unit's: those of its rows and, so that lanes meet in no
 * bank, an odd number. */
#define NORM_STAGED_PITCH(lanes) ((lanes) | 1)

struct norm_staged_args {
    const void *x;
    const void *dy;
    void *y;            /* backward: dx */
    const float *scale; /* a number a channel */
    const float *bias;
    float *mean; /* a number a set; forward null: not asked for */
    float *inv_std;
    /* backward: pairs of a channel's sums (dy, dy xhat), of each block; null: not asked for */
    float *found;
    struct norm_rows_param dscale;
    struct norm_rows_param dbias;
    uint32_t *board;
    double epsilon;
    double inv_terms;   /* 1 / elements of a set */
    int64_t sample;     /* bytes of one */
    int64_t step;       /* bytes from a block's round to its next */
    uint32_t runs;      /* units of a row */
    uint32_t lanes;     /* rows of a round */
    uint32_t rows;      /* of a sample */
    uint32_t blocks;    /* of a team */
    uint32_t rounds;    /* of the block that has most */
    uint32_t places;    /* of the ring */
    uint32_t members;   /* neighbouring channels that share statistics, ... */
    uint32_t sets;      /* ... of a sample */
    uint32_t set_bits;  /* neighbouring lanes that join a set, as bits of a lane, ... */
    uint32_t pair_bits; /* ... and a column, where two of each unit are joined at once */
    uint32_t samples;
    uint32_t at_once; /* samples of a turn */
    /* rounds of the next turn that are asked for up to the second-level cache; deep: parts that it has besides those of
     * the ring */
    uint32_t ahead;
    /* where in shared memory, behind the ring */
    uint32_t entries; /* what threads have found */
    uint32_t numbers; /* what follows for sets, of two turns, */
    uint32_t known;   /* likewise an element near the others, or backward statistics, */
    uint32_t head;    /* of the board, */
    uint32_t totals;  /* backward: a block's sums for dscale and dbias */
    uint32_t params;  /* scale and bias, */
    uint32_t counters;
    struct wd_fastdiv by_blocks;
    struct wd_fastdiv by_runs;
    struct wd_fastdiv by_members;
    uint32_t planes;               /* samples are planes, each a channel's, ... */
    struct wd_fastdiv by_channels; /* ... of so many */
};

#endif
