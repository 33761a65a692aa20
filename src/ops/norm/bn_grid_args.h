/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the bn_grid kernels, shared by host and device. A group of blocks has some parameters
 * to itself: rows of `runs` units of 16 bytes. By columns (single elements of a parameter, or small
 * planes) a row is the group's part of an outer index, a column's parameter its place in it; larger
 * planes are one parameter and several rows each. A block has every `blocks`-th slice of `lanes` rows,
 * a thread one row of every such slice: a round. */
#ifndef WD_OPS_NORM_BN_GRID_ARGS_H
#define WD_OPS_NORM_BN_GRID_ARGS_H

#include "ops/norm/bn_vector_args.h"
#include "ops/norm/norm_rows_args.h"

enum {
    BN_GRID_THREADS = 512,   /* of a block at most */
    BN_GRID_UNIT = 16,       /* bytes */
    BN_GRID_AREA = 16 << 10, /* of shared memory, for what threads and blocks join */
    BN_GRID_COLUMNS = 512,   /* of a group of several parameters */
    BN_GRID_AHEAD = 4,       /* parts that are under way at once: 64 KB of a processor */
    BN_GRID_FETCHED = 8,     /* sums of blocks that meet, which a thread asks for at once, ... */
};

/* ... and words of the board; the kernels of samples hold rounds besides. */
#define BN_GRID_SEEN(samples) ((samples) ? 8 : 17)

/* Rounds that a thread may hold in registers, where sums go by the board: all that are left. */
#define BN_GRID_HELD_SAMPLES(arrays) ((arrays) == 1 ? 12 : 4)
#define BN_GRID_HELD(arrays, led) ((arrays) == 1 ? ((led) ? 6 : 7) : 3)

/* Rounds of a part: two units of a thread. */
#define BN_GRID_EACH(arrays) (3 - (arrays))

struct bn_grid_args {
    struct bn_vector_args bn;
    float *
        found; /* backward of samples: sums of dy and of dy times xhat, a pair a channel of each sample,
                  and with sets of each block; null: not asked for */
    uint32_t *counters; /* of groups that meet: one each, WD_COUNTER_WORDS apart; null: clusters */
    uint32_t *board;    /* of groups that meet, for their sums (gpu/device/board.cuh), or ... */
    double *sums;       /* ... two an item of each block, and a meeting */
    double inv_terms;
    double inv_less; /* 1 / (terms - 1) */
    uint32_t pitch;  /* units of an outer index */
    uint32_t width;  /* from row to row of a plane, or where it has one row of an outer index ... */
    uint32_t jump;   /* ... and besides that from the last row of one to the next */
    uint32_t stride; /* from group to group */
    uint32_t units;  /* of whole rows */
    uint32_t copying; /* lanes of a warp that have the next one's first units too, for their bits */
    uint32_t blends;  /* alpha is not 1, or beta not 0 */
    uint32_t clips;   /* the activation has an upper bound, or NaN passes it */
    uint32_t all_rows; /* whole ones of a group; what is behind them all is less than a row */
    uint32_t rows;     /* those that no thread holds */
    uint32_t runs;     /* units of a group's row */
    uint32_t lanes;    /* rows of a slice */
    uint32_t blocks;   /* of a group */
    uint32_t
        held; /* rounds of each thread, before those that go through the ring; 0 or all that it may */
    uint32_t rounds;      /* of the thread that has most */
    uint32_t parts;       /* of rounds, that have places (bn_grid_ring.cuh), ... */
    uint32_t stays;       /* ... the first of them to themselves, ... */
    uint32_t beside;      /* ... and of z, behind them */
    uint32_t shallow;     /* so few that all that is under way is waited for */
    uint32_t slots;       /* of 16 bytes, of a tensor's round */
    uint32_t round_bytes; /* of all that is kept */
    uint32_t items;       /* parameters of a group */
    uint32_t
        members;     /* kernels of samples: neighbours that share statistics, all of a group; ... */
    uint32_t sample; /* ... and units of a sample, which has `by_ranges` groups */
    uint32_t span;   /* neighbouring columns of a parameter, ... */
    uint32_t copies; /* ... and how often a row has them */
    uint32_t together; /* rows of partial sums that are joined at once */
    uint32_t
        half_warp;   /* lanes of a warp that have the same columns differ by this and more, or 32 */
    uint32_t shown;  /* bytes of shared memory before what blocks of a cluster show each other */
    uint32_t few;    /* no more items than a unit has elements, and several columns each */
    uint32_t planes; /* items are neighbours, no smaller than a unit */
    uint32_t shares; /* threads that join the sums of an item's columns, ... */
    uint32_t column_shares;     /* ... of a column's rows, ... */
    uint32_t readers;           /* ... and of other blocks */
    struct wd_fastdiv by_plane; /* rows of a plane, or of an outer index */
    struct wd_fastdiv by_blocks;
    struct wd_fastdiv by_ranges;
    struct wd_fastdiv by_members;
    struct wd_fastdiv by_runs;
    struct wd_fastdiv by_items;
    struct wd_fastdiv by_columns;
    struct wd_fastdiv by_span;
    uint32_t samples;    /* kernels of samples in turns: all of them, ... */
    uint32_t at_once;    /* ... those of a turn, ... */
    uint32_t share_bits; /* ... and neighbouring lanes that join an item, as bits of a lane */
    uint32_t sets; /* of neighbours that share statistics (bn_grid_sets.cuh), of a group; or 0 */
    uint32_t set_bits;   /* likewise lanes that join one */
    double inv_set;      /* 1 / (terms members) */
    uint32_t found_rows; /* of sums in `found`, of which blocks make these; 0: not asked for */
    struct norm_rows_param dscale;
    struct norm_rows_param dbias;
};

#endif
