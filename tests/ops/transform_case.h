/* SPDX-License-Identifier: Apache-2.0
 *
 * A transform of a tensor or a filter: its call, and where each element of the source goes. Used by the
 * lists of transform_test.c and transform_turn_test.c. */
#ifndef TESTS_OPS_TRANSFORM_CASE_H
#define TESTS_OPS_TRANSFORM_CASE_H

#include "support/harness.h"

enum { TRANSFORM_RANK_MAX = 5 };

struct transform_call {
    cudnnTensorTransformDescriptor_t how;
    cudnnFilterDescriptor_t src_filter, dest_filter; /* null: tensors */
    struct tensor *src, *dest;
    double alpha, beta;
};

struct transform_shape {
    int rank, direction;
    int src[TRANSFORM_RANK_MAX], dest[TRANSFORM_RANK_MAX];
    int32_t before[TRANSFORM_RANK_MAX], after[TRANSFORM_RANK_MAX];
    uint32_t fold[TRANSFORM_RANK_MAX - 2];
};

struct transform_type {
    const char *name;
    cudnnDataType_t type;
    int lanes;
};
enum { TRANSFORM_TYPES = 10 };
extern const struct transform_type transform_types[TRANSFORM_TYPES]; /* six of one lane first */
bool transform_is_float(cudnnDataType_t type);

/* The extent of a block along a dimension from 2 on, and elements of a block. */
int transform_block(const struct transform_shape *s, int d);
int transform_blocks(const struct transform_shape *s);
int transform_divide_up(int value, int by);
/* Fills `dest` of a shape. */
void transform_give_dims(struct transform_shape *s);
/* Where the source's element at `at` goes; false where it is cut off. Channels are padded on the side
 * that is folded: a channel for each element of a block. */
bool transform_taken(const struct transform_shape *s, const int *at, int *to);

/* alpha or beta in the form that the API takes it. */
const void *transform_scalar(cudnnDataType_t dtype, double value, double *storage);
/* Makes c->how. */
void transform_describe(struct transform_call *c, const struct transform_shape *s, int format);

#endif
