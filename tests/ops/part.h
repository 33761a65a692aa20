/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor that is part of a larger one: the leading box of a tensor of the harness, under a
 * descriptor of its own, so that two tensors can have equal strides with gaps. What lies outside of
 * the box must keep its value: it is judged with the rest, for the expected values of a part are
 * those of the whole. */
#ifndef TESTS_OPS_PART_H
#define TESTS_OPS_PART_H

#include "support/harness.h"

struct part {
    struct tensor *whole;
    cudnnTensorDescriptor_t desc;
    int rank;
    int dim[8];
    int64_t count;
    bool placed; /* by these, and not as the whole's dims say */
    int stride[8];
    int skip;
    int front; /* images of the whole before it: nothing but alignment differs */
};

/* `margin` (may be null) is added to each dim for the whole. Values are random; the elements of an
 * output that is not to be read (`fresh`) start as NaN where the type has it. Parts live until
 * parts_free, which stands before case_end. */
struct part *part_input(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                        const int *margin, double lowest, double highest);
struct part *part_output(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                         const int *margin, bool fresh);
/* A packed tensor, channels last or not, that begins `skip` elements behind aligned memory. */
struct part *part_skipped(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                          int skip, bool output, double lowest, double highest);
void parts_free(void);
/* Moves a part behind the first image of the whole, which has one more. */
void part_move(struct part *p);
/* What the API is given. */
void *part_data(const struct part *p);

/* Where the part's logical element lies in whole->value. */
int64_t part_index(const struct part *p, int64_t logical);
void part_coordinates(const struct part *p, int64_t logical, int *at);
int64_t part_at(const struct part *p, const int *at); /* index in whole->value */

/* The whole's values as they are before the call: the caller changes those of the part, gives the
 * array to check_values and frees it. */
double *part_expected(const struct part *p);

/* `value` in the form that the API wants for data of a type. */
const void *api_scalar(cudnnDataType_t dtype, double value, double *storage);
/* Random margins, or null; `margin` has room for them. */
const int *random_margin(int rank, int *margin);

#endif
