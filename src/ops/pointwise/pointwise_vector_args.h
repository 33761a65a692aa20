/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the pointwise_vector kernels, shared by host and device: y is walked in runs of
 * elements that follow one another as the index counts, and each operand says how it follows. */
#ifndef WD_OPS_POINTWISE_VECTOR_ARGS_H
#define WD_OPS_POINTWISE_VECTOR_ARGS_H

#include "base/fastdiv.h"
#include "graph/attr.h"
#include "graph/pointwise_modes.h"

enum pointwise_way {
    POINTWISE_VALUE,  /* a number, no memory */
    POINTWISE_FLAT,   /* as the index counts, aligned to whole loads */
    POINTWISE_ALONG,  /* a run lies in one row and the operand follows it, likewise aligned */
    POINTWISE_REPEAT, /* a run lies in one row, of which the operand has one element */
    POINTWISE_SPLIT, /* a run lies in two rows at most, of which the operand has one element each */
    POINTWISE_STRAY, /* element by element */
};

enum { POINTWISE_X, POINTWISE_B, POINTWISE_T, POINTWISE_Y, POINTWISE_OPERANDS };

struct pointwise_operand {
    void *data;
    double value;
    double factor; /* alpha1, alpha2, 1, beta */
    int32_t way;   /* enum pointwise_way */
    int32_t dtype;
    int32_t stride[WD_MAX_RANK];
};

struct pointwise_vector_args {
    struct pointwise_operand operand[POINTWISE_OPERANDS];
    double alpha;
    struct wd_pointwise_attr attr;
    int32_t by_output; /* a backward mode that reads t in place of x */
    uint32_t count;    /* of the walk, with what is skipped */
    uint32_t skip;     /* elements before the first: flat tensors begin so far behind whole loads */
    int32_t rank;
    int32_t plain;     /* alpha is 1, beta is 0 */
    int32_t streaming; /* y is larger than what stays in the cache */
    struct wd_fastdiv dim[WD_MAX_RANK];
};

struct pointwise_fill_args {
    void *y;         /* the first whole load */
    uint32_t loads;  /* of 16 bytes */
    uint32_t before; /* bytes in front of them */
    uint32_t behind; /* and after them */
    int32_t streaming;
    uint32_t pattern[4]; /* what a whole load holds */
};

#endif
