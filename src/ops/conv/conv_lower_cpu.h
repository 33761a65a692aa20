/* SPDX-License-Identifier: Apache-2.0
 *
 * How fprop, fused fprop and dgrad become matrix products on the CPU: which operands lie as matrices
 * already, and how the work is cut into panels of columns and units of output channels. The plan of
 * conv_gemm_cpu.c; a pure function of the problem and the number of threads. */
#ifndef WD_OPS_CONV_LOWER_CPU_H
#define WD_OPS_CONV_LOWER_CPU_H

#include "ops/conv/conv_cpu.h"

enum {
    WD_CONV_FILTER_BYTES = 16 << 20, /* of filters brought into order at once */
    WD_CONV_PHASES_MAX = 1024,       /* remainders by the stride, all dimensions */
};

struct wd_conv_lowering {
    struct wd_conv_cpu conv;
    const struct wd_conv_image *from; /* in conv */
    const struct wd_conv_image *to;
    bool backward;
    int dtype;      /* of a sum */
    int64_t size;   /* of a sum, bytes */
    int64_t in;     /* channels of `from` in a group */
    int64_t out;    /* channels of `to` */
    int64_t taps;   /* of the filter */
    int64_t phases; /* one forward; backward remainders by the stride */
    int64_t phase[WD_CONV_SPATIAL];
    int64_t points; /* of the largest phase's domain */

    /* Whether an operand is used where it lies, and whether its columns are outermost ("pixels").
     * Where `whole`, the columns of several images lie at one stride too. */
    bool from_pixels;
    bool from_direct;
    bool from_whole;
    bool to_pixels;
    bool to_direct;
    bool to_whole;
    bool filter_direct;
    int64_t from_stride; /* between columns */
    int64_t to_stride;

    int64_t parts;     /* panels an image, or 1 */
    int64_t images;    /* images a panel, or 1 */
    int64_t columns;   /* of a panel, at most */
    int64_t panels;    /* of a phase */
    int64_t depth;     /* rows that a panel has at once */
    int64_t cuts;      /* units a group */
    int64_t rows;      /* output channels of a unit, at most */
    int64_t sums_rows; /* of these, finished at once */
    int64_t round;     /* units whose filters are in the workspace at once */
    int64_t workers;

    int64_t filter_bytes; /* the workspace: filters, then each worker's panel and sums */
    int64_t panel_bytes;
    int64_t sums_bytes;
};

/* Fills `l` where it stays, for it points into itself. */
void wd_conv_lower(const struct wd_problem *problem, struct wd_conv_lowering *l);
/* The same as if fprop were fused. */
void wd_conv_lower_fused(const struct wd_problem *problem, struct wd_conv_lowering *l);

/* The axes of a phase, and panel `index` of it; false where that panel has no columns. */
void wd_conv_lower_axes(const struct wd_conv_lowering *l, int64_t phase, struct wd_conv_axis *axis);
bool wd_conv_lower_panel(const struct wd_conv_lowering *l, const struct wd_conv_axis *axis,
                         int64_t index, struct wd_conv_panel *panel);

/* Strides of the filter between output channels and between those that are summed over. */
int64_t wd_conv_lower_out_stride(const struct wd_conv_lowering *l);
int64_t wd_conv_lower_in_stride(const struct wd_conv_lowering *l);

#endif
