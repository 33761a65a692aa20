/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the bn_vector kernels, shared by host and device. x is [outer][params][inner] in
 * memory, and all tensors of its shape lie as it does. Two ways through it, as on the CPU:
 *
 *   planes   runs of `inner` elements have one parameter; a block has a segment of one parameter
 *   columns  memory is rows of `width` elements, a multiple of params * inner and of a run; a thread
 *            has a run of columns and some of the rows
 *
 * Work goes by runs of eight elements, so that eight bits of the reserve space are one thread's. */
#ifndef WD_OPS_NORM_BN_VECTOR_ARGS_H
#define WD_OPS_NORM_BN_VECTOR_ARGS_H

#include "base/fastdiv.h"

enum {
    BN_RUN = 8,
    BN_THREADS = 256,
    BN_TILE_RUNS = 32, /* of columns, side by side in a block, at most */
    BN_NUMBERS = 8,    /* that a parameter keeps between kernels, each as wide as the accumulator */
};

/* One number a parameter: element param * stride of `data`, absent where that is null. */
struct bn_param {
    void *data; /* fp32, for fp64 tensors fp64 */
    int64_t stride;
};

/* Sums of a segment: statistics (count, mean, squares), or backward (count, sum of dy, sum of dy
 * times x - mean). */
struct bn_partial {
    double count;
    double first;
    double second;
};

struct bn_vector_args {
    const void *x;
    const void *dy;
    const void *z; /* null: none */
    void *y;       /* backward: dx */
    void *dz;
    uint8_t *reserve; /* null: none; else forward writes and backward reads one bit an element */
    struct bn_param scale;
    struct bn_param bias;
    struct bn_param mean; /* saved, or for inference the estimate */
    struct bn_param var;  /* saved inverse deviation, or the variance */
    struct bn_param running_mean;
    struct bn_param running_var;
    struct bn_param dscale;
    struct bn_param dbias;
    void *numbers;              /* BN_NUMBERS a parameter */
    struct bn_partial *partial; /* [segments][width], by planes [segments][params] */
    double epsilon;
    double factor; /* of the running averages */
    double alpha_param;
    double beta_param;
    float alpha;
    float beta;
    float low; /* clips of the activation */
    float high;
    double wide_alpha; /* the same for fp64 */
    double wide_beta;
    double wide_low;
    double wide_high;
    int32_t activates;
    int32_t keeps_nan; /* relu of NaN is NaN */
    int32_t aligned;   /* whole runs may be loaded at once */
    int32_t streaming;
    int64_t total;
    int64_t terms; /* elements a parameter */
    int64_t inner;
    int64_t width; /* of a row of columns; by planes params */
    int64_t pitch; /* from row to row: more than width where a range of columns is worked on */
    uint32_t params;
    uint32_t segments;
    uint32_t units; /* by planes: runs (or elements) of a parameter's planes; by columns: rows */
    uint32_t finish_lanes; /* threads that join the sums of a parameter: a warp, or a block */
    uint32_t per_segment;  /* by columns, of the walk that writes: rows of a block */
    uint32_t lead;         /* elements by which runs begin before x, to be aligned as it is not */
    uint32_t copying;      /* by planes: threads that have the next block's first run too */
    uint32_t tiles;        /* by columns: blocks side by side */
    uint32_t tile_runs;    /* by columns: runs of a tile's row, one a thread */
    uint32_t tile_rows;    /* by columns: rows of a block at a time */
    uint32_t whole_rows;   /* by columns: rows before this one have all to their right ends */
    uint32_t whole_runs;   /* by planes: a plane is a whole number of runs */
    struct wd_fastdiv by_plane; /* runs that a plane may lie in, or elements of a plane */
    struct wd_fastdiv by_params;
    struct wd_fastdiv by_copies; /* of a parameter in a row of columns; by planes 1 */
    struct wd_fastdiv by_inner;
    struct wd_fastdiv by_tile; /* tile_runs */
};

#endif
