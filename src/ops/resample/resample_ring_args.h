/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the resample_ring kernels, shared by host and device: walks whose lines go through a ring
 * in shared memory, a warp a walk, sums or maxima; words straight from memory; and enlarging, whose taps are
 * known when kernels are compiled. */
#ifndef WD_OPS_RESAMPLE_RING_ARGS_H
#define WD_OPS_RESAMPLE_RING_ARGS_H

#include "ops/resample/resample_walk_args.h"

enum {
    RING_WARP = 32,
    RING_WALKS = 4, /* of a block, at most */
    RING_SHORT = 4, /* lines of a ring, whichever is enough to keep memory busy */
    RING_LONG = 8,
    RING_PLACES = 8,      /* of a thread, at most, of maxima and of sums of few taps */
    RING_PLANES_TAPS = 4, /* of the sums whose walks may have several planes */
    RING_RUN_BYTES = 16,  /* of channels, that a thread has */
    RING_RUN_THREADS = RING_WARP * RING_WALKS, /* of a block of them, at most */
    RING_WORDS = 4,         /* elements of a thread, where they come straight from memory: */
    RING_WORD_TAPS = 3,     /* taps along a line, at most */
    RING_WORD_OPEN = 2,     /* rows that are open at a time */
    RING_DOWN_LINES = 4,    /* lines of a row, at most, of sums that go down the columns first */
    RING_DOWN_PLACES = 6,   /* elements of a lane, at most, then */
    RING_SCATTER_UNITS = 4, /* windows of a thread whose gradients are added up in shared memory */
    RING_SCATTER_RUN = 4,   /* elements of dx that are stored at once then */
    RING_SCATTER_NOTES =
        2 * 16 + 4 * 8,    /* words of what threads note for the block: places, rows of 32 bytes */
    RING_SCATTER_ROWS = 6, /* of dx, in shared memory */
    RING_SCATTER_THREADS = 512, /* of a block, at most */
    RING_SCATTER_PLACES = 16,   /* of a window, at most: whole runs */
    RING_MAX_ROWS = 4, /* of windows, for which a thread asks at once, straight from memory */
};

/* Lines of a ring of runs, by the taps along a line. */
#define RING_RUN_LINES(taps) ((taps) <= 2 ? RING_LONG : RING_SHORT)

struct resample_ring_args {
    struct resample_walk_args
        walk;      /* `stage_lines` are those of a ring; of single elements `threads` are a warp */
    uint32_t size; /* bytes of a walk's ring, or of runs the taps of a line */
    /* narrow planes, of which a walk has so many side by side: all their lines lie alike in 16 bytes */
    uint32_t planes;
    uint32_t outer;       /* planes in all */
    uint32_t plane_bytes; /* of `from` */
    uint32_t between;     /* elements of `out` from the end of a plane's line to the next one's */
    uint32_t chunks;      /* lanes of a plane, where sums go down the columns first */
    struct wd_fastdiv by_columns; /* of `out` */
    struct wd_fastdiv by_line;    /* words of a line of `out`, where threads have words */
};

/* Maxima of whole pixels from rings: by_column are segments of a line, by_row groups of walks. */
struct resample_ring_max_args {
    struct resample_places_args p;
    uint32_t rows;    /* of a walk */
    uint32_t walks;   /* of a block */
    uint32_t units;   /* elements of a line of `out`; straight from memory: of all images */
    uint32_t segment; /* of which a walk has */
    uint32_t ring;    /* lines of a ring */
    uint32_t pitch;   /* bytes of one */
    uint32_t size;    /* of a ring */
    uint32_t unused;
    struct wd_fastdiv by_inner;
    struct wd_fastdiv by_line; /* units: straight from memory all images' are counted on */
    int64_t bytes;             /* of `from` */
};

/* Gradients of maxima of windows by two: a ring of dy and one of places. Segments and rows are of windows,
 * or where some would begin, as far as dx goes. */
struct resample_ring_pick_args {
    struct resample_places_args p;
    uint32_t rows;  /* of a walk */
    uint32_t walks; /* of a block */
    uint32_t units; /* elements of a line, two columns of dx each */
    uint32_t ring;  /* lines of a ring */
    uint32_t pitch; /* bytes of one */
    uint32_t place_pitch;
    uint32_t size; /* of both rings */
    struct wd_fastdiv by_inner;
    int64_t bytes; /* of `from` */
    int64_t place_bytes;
};

/* Gradients of such maxima where a pixel has several channels: a block has `windows` of a line, or where some
 * would begin, and rows of them. by_column are stretches of a line, by_row groups of rows. */
struct resample_ring_scatter_args {
    struct resample_places_args p;
    uint32_t rows;
    uint32_t windows;
    uint32_t pitch; /* elements of a row in shared memory */
    uint32_t unused;
    struct wd_fastdiv by_inner;
};

/* Samples lie on the corners or in the middles of pixels, edges are repeated. */
enum { RESAMPLE_UP_CORNERS, RESAMPLE_UP_MIDDLES };

struct resample_up_args {
    const void *from; /* x, or dy */
    void *out;        /* y, or dx */
    double wide_alpha;
    float alpha; /* nothing is blended in, and it is not 0 */
    int32_t streaming;
    int32_t near; /* of corners: what lies between two is the left one */
    int32_t deep; /* of x: volumes alone have more than 1 */
    int32_t high;
    int32_t wide;
    int32_t rows; /* of a thread, of x */
    uint32_t inner;
    uint32_t count;
    struct wd_fastdiv by_run;
    struct wd_fastdiv by_pair; /* planes of dx side by side: they share what they read */
    struct wd_fastdiv by_column;
    struct wd_fastdiv by_band;
    struct wd_fastdiv by_depth; /* of volumes: planes of dx, or gaps between planes of x */
};

#endif
