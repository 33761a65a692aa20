/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the divnorm_vector kernels, shared by host and device. A block has a tile of a plane, or
 * all of some small planes. `stored` quads of each row of the tile are kept in shared memory: the
 * results' own, and where a plane is several tiles wide those beside them that windows reach. */
#ifndef WD_OPS_LRN_DIVNORM_VECTOR_ARGS_H
#define WD_OPS_LRN_DIVNORM_VECTOR_ARGS_H

#include "base/fastdiv.h"
#include "ops/lrn/lrn_numbers.h"

enum {
    DIVNORM_THREADS = 256,
    DIVNORM_QUAD = 4,           /* pixels that are loaded at once, along a row */
    DIVNORM_QUADS_HALF = 2,     /* of a thread, forward, of types of two bytes; else 1 */
    DIVNORM_PAIR = 2,           /* columns of a thread, where it goes down */
    DIVNORM_DOWN = 8,           /* and its rows */
    DIVNORM_DOWN_ANY = 4,       /* where the window is any */
    DIVNORM_WALK_THREADS = 128, /* that go down rows */
    DIVNORM_WINDOW_MAX = 16,
    DIVNORM_TRUST = 4, /* how many times larger sums around another number may be */
};

/* From one to the next, in elements. */
struct divnorm_steps {
    int64_t image;
    int64_t channel;
    int32_t row;
    int32_t pixel;
};

struct divnorm_vector_args {
    const void *x;
    const void *means; /* null: 0 */
    const void *dy;
    void *out;               /* y, or dx */
    void *dmeans;            /* null: not wanted */
    struct divnorm_steps in; /* of x, means and dy */
    struct divnorm_steps to; /* of out and dmeans */
    struct lrn_doubles full;
    struct lrn_floats single; /* the same, rounded: a conversion would take as long as a root */
    int32_t power;
    int32_t scales;
    int32_t blends;
    int32_t window;
    int32_t back; /* pixels of a window before its own, in each direction */
    int32_t ahead;
    int32_t height;
    int32_t width;
    int32_t in_whole;               /* runs are aligned, in x, means and dy */
    int32_t to_whole;               /* in out and dmeans */
    int32_t asks;                   /* what comes later is asked for: tiles are as wide as planes */
    int32_t planes;                 /* of a block */
    int32_t tiles;                  /* of a block, one below the other */
    int32_t rows;                   /* of results of a tile */
    int32_t quads;                  /* of results of each row */
    int32_t before;                 /* quads that are stored before them */
    int32_t stored;                 /* of a row */
    int32_t stored_rows;            /* at most */
    int32_t pitch;                  /* elements from one stored row to the next */
    uint32_t total;                 /* planes */
    struct wd_fastdiv by_part;      /* tiles side by side */
    struct wd_fastdiv by_segment;   /* of a plane, one below the other */
    struct wd_fastdiv by_channel;   /* channels */
    struct wd_fastdiv by_columns;   /* pairs of a stored row */
    struct wd_fastdiv by_steps;     /* of a thread's rows in those that are stored */
    struct wd_fastdiv by_own_steps; /* and in those of results */
    struct wd_fastdiv by_shared;    /* runs of a row that have strengths */
    struct wd_fastdiv by_row;       /* rows that have */
    struct wd_fastdiv by_own;       /* runs of results */
    struct wd_fastdiv by_own_row;
};

/* Going down rows: their groups, rings of rows in shared memory. */
enum {
    DIVNORM_WALK_PHASES = 4, /* rows of a group, of which a thread has whole ones */
    DIVNORM_RING_LANES = 40, /* runs of a row: of 32 lanes, and those around strips */
    DIVNORM_RING_STRIPS = 4, /* of a warp, each with a run at both ends */
    DIVNORM_RING_ROWS = 12,  /* eight of x and four of the means */
    DIVNORM_RING_EARLY = 3   /* rows before one is used it is copied */
};

/* Of the kernels that go down rows (divnorm_walk.cuh). */
struct divnorm_walk_args {
    const void *x;
    const void *means; /* null: 0 */
    void *out;
    struct divnorm_steps in; /* of x and the means */
    struct divnorm_steps to;
    int64_t in_row; /* bytes from a row to the next */
    int64_t to_row;
    int64_t
        own; /* bytes from the row of x that is loaded next to the row whose windows it completes, */
    int64_t own_means; /* and to that of the means */
    struct lrn_floats single;
    int32_t power;
    int32_t height;
    int32_t width;
    int32_t rows;                 /* of results of a thread */
    uint32_t items;               /* strips, a segment's rows of a part of a plane */
    int32_t strips;               /* of a warp */
    int32_t margin;               /* lanes at each side of a strip whose results are another's */
    struct wd_fastdiv by_part;    /* strips side by side */
    struct wd_fastdiv by_group;   /* lanes of a strip */
    struct wd_fastdiv by_segment; /* of a plane, one below the other */
    struct wd_fastdiv by_channel;
};

/* At most: a processor has room for three blocks of 80 registers. */
enum { DIVNORM_SHEET_THREADS = 256 };

/* Of the kernels whose blocks have whole rows of a plane (divnorm_sheet.cuh). */
struct divnorm_sheet_args {
    const void *x;
    const void *means; /* null: 0 */
    const void *dy;
    void *out;
    void *dmeans;            /* null: not wanted */
    struct divnorm_steps in; /* of x, means and dy */
    struct divnorm_steps to; /* of out and dmeans */
    int64_t in_row;          /* bytes from a row to the next */
    int64_t to_row;
    int64_t in_step; /* bytes from one of a thread's rows to its next */
    int64_t to_step;
    int64_t to_means; /* bytes from x to the means, and to dy; from dx to dmeans */
    int64_t to_dy;
    int64_t to_dmeans;
    struct lrn_floats single;
    int32_t power;
    int32_t height;
    int32_t width;
    int32_t asks;              /* rows follow one another without gaps, and are asked for at once */
    int32_t rows;              /* of results of a block */
    int32_t quads;             /* of a row of them */
    int32_t lead;              /* quads that are stored before those */
    int32_t rows_at_once;      /* that threads have, a quad each */
    int32_t chunks_at_once;    /* of DIVNORM_DOWN rows, a pair of columns each */
    int32_t pitch;             /* floats from a stored row to the next */
    int32_t step;              /* from one of a thread's rows to its next */
    int32_t sums_rows;         /* stored of sums */
    int32_t sums;              /* floats of all of them */
    int32_t shares;            /* and of shares */
    struct wd_fastdiv by_quad; /* threads of a stored row: one of that of zeros may be idle */
    struct wd_fastdiv by_pair; /* likewise of its pairs of columns */
    struct wd_fastdiv by_part; /* blocks side by side */
    struct wd_fastdiv by_segment; /* and one below the other */
    struct wd_fastdiv by_channel;
};

#endif
