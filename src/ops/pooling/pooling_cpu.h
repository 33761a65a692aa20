/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CPU engines of pooling share: a problem brought to one form, and how it is cut up.
 *
 * Memory of packed tensors is [outer][image ...][inner]: planes, their spatial dimensions, and what
 * lies behind each pixel (the channels of NHWC; 1 for NCHW). A line is the last spatial dimension, the
 * ones before it lead. Windows are separable: every line is first pooled along itself (once, results
 * are kept in a ring), then lines are put together. That is row-major order within a window, so that
 * ties and NaN come out as in the definition. Pure functions; safe for threads. */
#ifndef WD_OPS_POOLING_CPU_H
#define WD_OPS_POOLING_CPU_H

#include "ops/engine.h"

/* How a line is pooled along itself. */
enum wd_pool_way {
    WD_POOL_TAPS,   /* planes side by side, padded: the line as a whole, shifted */
    WD_POOL_RUNS,   /* each window's part of it by itself: long windows, inner 1 */
    WD_POOL_PIXELS, /* pixel by pixel: many channels */
    WD_POOL_DIRECT, /* 2x2 and 3x3, all taps of a line of windows at once: inner 1 */
};

enum wd_pool_kind {
    WD_POOL_FORWARD,
    WD_POOL_SPREAD, /* average, backward: lines of dy are spread, then put together to lines of dx */
    WD_POOL_ROUTE,  /* maximum, backward: dy goes to where the maximum was */
};

enum {
    WD_POOL_SLOTS = 16,  /* of a ring, at most, */
    WD_POOL_ABREAST = 4, /* and at least: lines that are put together at once */
};

/* Arrays of a worker's scratch, of elements as wide as the accumulator. */
enum wd_pool_part {
    WD_POOL_SOURCE, /* a line on its way in */
    WD_POOL_WIDE,   /* and pooled at every position */
    WD_POOL_WIDE_PLACE,
    WD_POOL_RING,       /* lines pooled along themselves */
    WD_POOL_RING_PLACE, /* maxima: where each came from */
    WD_POOL_LINE,
    WD_POOL_LINE_PLACE,
    WD_POOL_WINDOWS_RING, /* ROUTE by pixels: the places of whole windows, by line of y */
    WD_POOL_DIVISOR,
    WD_POOL_LOWEST_PLACE, /* ROUTE by taps: the first place of each window within the image */
    WD_POOL_BOX,          /* ROUTE otherwise: dx, laid out as SOURCE */
    WD_POOL_OUT,
    WD_POOL_PARTS,
};

struct wd_pool_plan {
    enum wd_pool_kind kind;
    enum wd_pool_way way;
    bool square; /* native elements, windows of 2x2 or 3x3: all taps at once */
    int32_t dtype;
    bool wide; /* accumulates in double */
    bool max;
    bool propagate;
    bool exclude;
    int32_t lead; /* leading dimensions, at least 1; the line is dimension `lead` */
    int64_t outer;
    int64_t inner;
    int64_t image[WD_MAX_SPATIAL + 1];
    int64_t windows[WD_MAX_SPATIAL + 1]; /* how many */
    int64_t size[WD_MAX_SPATIAL + 1];    /* of a window */
    int64_t stride[WD_MAX_SPATIAL + 1];
    int64_t pad[WD_MAX_SPATIAL + 1];
    int64_t image_plane; /* elements of a plane, and of one of y */
    int64_t windows_plane;
    int64_t divisor; /* of averages that include padding */

    /* A block of the result (y or dx) is done by one worker at a time. */
    int64_t planes; /* more than one: whole ones; side by side, but DIRECT one by one */
    int64_t lines;  /* a multiple of `step` */
    int64_t step; /* lines that cannot be parted: ROUTE into a box, those of the first dimension */
    int64_t columns;
    int64_t channels; /* less than inner: by pixels only */
    int64_t pitch;    /* pixels of a plane in SOURCE and BOX; RUNS: of the box alone */
    int64_t run;      /* pixels of a plane in a line of the ring */
    int64_t line;     /* elements of a line of the ring, whole strips */
    int64_t slots;    /* a power of two */
    int64_t windows_slots;
    int64_t phase; /* every second window: where the other half of a line is */
    int64_t box_line;
    int64_t out;                     /* elements */
    int64_t part[WD_POOL_PARTS + 1]; /* where each begins, in elements; the last: their number */
    int64_t tasks;
    int64_t workers;
};

struct wd_pool_block {
    int64_t plane, planes;
    int64_t line, lines;
    int64_t column, columns;
    int64_t channel, channels;
};

/* False where a problem cannot be planned within the scratch. */
bool wd_pool_plan(const struct wd_problem *problem, struct wd_pool_plan *plan);
struct wd_pool_block wd_pool_block(const struct wd_pool_plan *plan, int64_t task);

/* Where a result goes. */
struct wd_pool_sink {
    void *data;
    int32_t dtype;
    bool stream;
    double alpha;
    double beta;
};

/* alpha * made + beta * old to the elements from `offset` on; `made` may be overwritten. */
void wd_pool_put_f32(const struct wd_pool_sink *sink, int64_t offset, int64_t n, float *made);
void wd_pool_put_f64(const struct wd_pool_sink *sink, int64_t offset, int64_t n, double *made);

#endif
