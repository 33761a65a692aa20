/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the resample_vector kernels, shared by host and device. Tensors are packed:
 * [outer][depth][h][w][inner], a plane's `inner` being 1; axes that there are not have one pixel and
 * one window. What is known of an axis lies in tables in the workspace, which resample_tables makes
 * first: fractions are looked at there alone. */
#ifndef WD_OPS_RESAMPLE_VECTOR_ARGS_H
#define WD_OPS_RESAMPLE_VECTOR_ARGS_H

#include "base/fastdiv.h"
#include "ops/resample/resample_args.h"

enum { RESAMPLE_AXES = 3, RESAMPLE_THREADS = 256, RESAMPLE_TABLES = 2 * RESAMPLE_AXES };

/* What a table says of each window, or of each pixel of the image. */
enum {
    RESAMPLE_PIXELS, /* by window: the pixels that it adds up, with their weights */
    RESAMPLE_SHARES, /* by pixel: the windows that it gets a share of, with their weights */
    RESAMPLE_RANGES, /* by window: what it covers, padding included; no weights */
    RESAMPLE_OVER,   /* by pixel: the windows over it; no weights */
};

struct resample_entry {
    int32_t first;
    int32_t count;
};

struct resample_table {
    struct resample_entry *entries;
    void *weights; /* `taps` an entry: float or, where the tables are wide, double */
    int64_t image; /* pixels along the axis */
    int64_t windows;
    int32_t kind;
    int32_t axis;   /* a spatial dimension, or -1 where there is none */
    int32_t length; /* entries */
    int32_t taps;
};

struct resample_tables_args {
    struct resample_table table[RESAMPLE_TABLES];
    int32_t tables;
    int32_t wide;
    struct wd_resample_attr attr;
};

/* Sums, forward and backward alike: out[i] = sum of weight * from[first + k] along each axis. */
struct resample_axis {
    const struct resample_entry *entries;
    const void *weights;
    int32_t taps;
    int32_t from; /* extent of `from` */
    int32_t out;  /* and of `out` */
    int32_t unused;
};

struct resample_sum_args {
    const void *from;
    void *out;
    double alpha;
    double beta;
    int32_t scales; /* alpha is not 0 */
    int32_t blends; /* beta is not 0: what was in `out` counts */
    int32_t streaming;
    int32_t rows; /* of a thread */
    uint32_t inner;
    uint32_t count;              /* threads that have work */
    struct wd_fastdiv by_run;    /* runs of a pixel; 1 where runs are columns */
    struct wd_fastdiv by_column; /* columns, or runs of them */
    struct wd_fastdiv by_rows;   /* groups of rows */
    struct wd_fastdiv by_depth;
    struct resample_axis axis[RESAMPLE_AXES];
};

/* Maxima, a thread a run of channels of a window, and their gradients, of a pixel. */
struct resample_max_axis {
    const struct resample_entry *ranges;
    const struct resample_entry *over; /* backward */
    int32_t image;
    int32_t windows;
};

struct resample_max_args {
    const void *from; /* x, or dy */
    void *out;        /* y, or dx; null: only places are asked for */
    void *places;     /* by window; null: none are asked for */
    double alpha;
    double beta;
    int32_t scales;
    int32_t blends;
    int32_t streaming;
    int32_t place_size; /* bytes: 1, 4 or 8 */
    int32_t propagate;
    int32_t repeats; /* padding stands for the edge */
    int32_t zeros;   /* padding is a candidate */
    uint32_t inner;
    uint32_t count;
    uint32_t unused;
    struct wd_fastdiv by_run;
    struct wd_fastdiv by_column;
    struct wd_fastdiv by_row;
    struct wd_fastdiv by_depth;
    struct resample_max_axis axis[RESAMPLE_AXES];
};

/* The same of windows of whole pixels: no tables. Padding is no candidate. */
struct resample_places_axis {
    int32_t image;
    int32_t windows;
    int32_t window;
    int32_t stride;
    int32_t pad;
};

struct resample_places_args {
    const void *from; /* x, or dy */
    void *out;        /* y, or dx */
    void *places;     /* by window */
    double alpha;
    double beta;
    int32_t scales;
    int32_t blends;
    int32_t streaming;
    int32_t place_size;
    int32_t propagate;
    int32_t plain; /* alpha is 1, beta 0 */
    uint32_t inner;
    uint32_t count;
    struct wd_fastdiv by_run;
    struct wd_fastdiv by_column; /* windows, or backward blocks of pixels */
    struct wd_fastdiv by_row;
    struct wd_fastdiv by_depth;
    struct resample_places_axis axis[RESAMPLE_AXES];
};

/* Of planes by windows of three, by two: a thread some windows side by side. by_column: threads of a line of
 * windows; by_row: groups of rows. */
enum { RESAMPLE_THREES = 4 /* windows of a thread, forward */ };

struct resample_threes_args {
    struct resample_places_args p;
    int32_t rows; /* of windows, of a thread */
    int32_t unused;
};

/* The same of elements from staged lines, at whatever alignment: a block a stretch of a line of `out`
 * and some rows of it, a few walks one below the other. */
enum { RESAMPLE_PLACES = 4 /* of a thread */ };

struct resample_lines_args {
    struct resample_places_args
        p;                /* by_column: stretches; by_row: groups of rows; by_run: unused */
    uint32_t rows;        /* of a walk */
    uint32_t walks;       /* of a block */
    uint32_t threads;     /* of a walk: whole warps */
    uint32_t units;       /* elements of a line of `out` */
    uint32_t segment;     /* of which a block has */
    uint32_t lines;       /* staged, at most, of a depth */
    uint32_t pitch;       /* bytes of a staged line of `from` */
    uint32_t place_pitch; /* and of places */
    uint32_t places_at;   /* bytes into shared memory */
    struct wd_fastdiv by_inner;
    struct wd_fastdiv by_chunks; /* runs of 16 bytes of a staged line */
    struct wd_fastdiv by_place_chunks;
    struct wd_fastdiv by_stride[RESAMPLE_AXES];
    int64_t bytes; /* of `from`, and of places */
    int64_t place_bytes;
};

#endif
