/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution through the legacy calls as the tests of the family describe it: random geometry,
 * descriptors and tensors, the call, and its oracle, which is the sum over all products written out
 * in double. */
#ifndef TESTS_OPS_CONV_CASE_H
#define TESTS_OPS_CONV_CASE_H

#include "support/harness.h"

enum conv_direction { CONV_ANY, CONV_FPROP, CONV_DGRAD, CONV_WGRAD, CONV_FUSED };
extern const char *const conv_direction_name[];

enum { CONV_FLOAT_TYPES = 4 };
extern const cudnnDataType_t conv_float_types[CONV_FLOAT_TYPES];

struct conv_geometry {
    int spatial;
    int batch, groups, channels, filters; /* C and K over all groups */
    int image[3], filter[3], output[3];
    int pad[3], stride[3], dilation[3];
    cudnnConvolutionMode_t mode;
};

struct conv_call {
    enum conv_direction direction;
    struct conv_geometry g;
    cudnnConvolutionDescriptor_t conv;
    cudnnFilterDescriptor_t filter;
    cudnnActivationDescriptor_t activation;
    struct tensor *x, *w, *y, *z, *b, *workspace;
    int algorithm;
    double alpha, beta;
};

struct conv_types {
    cudnnDataType_t x, w, y;
};

/* alpha or beta as a call whose output has this type wants it. */
const void *conv_scalar(cudnnDataType_t dtype, double value, double *storage);
double conv_random_scalar(void);
double *conv_doubles(int64_t count);
bool conv_is_integer(cudnnDataType_t dtype);

struct conv_geometry conv_random_geometry(int spatial);
/* The output that the formula gives; the image grows where the filter does not fit it. */
void conv_set_output(struct conv_geometry *g);
int64_t conv_volume(const struct conv_geometry *g, const int *extent);
void conv_point(const struct conv_geometry *g, const int *extent, int64_t index, int *at);
/* Index of the pixel that output point o sees through tap t, -1 in the padding. */
int64_t conv_pixel_of(const struct conv_geometry *g, const int *o, const int *t);
/* Adds every product of the convolution to where its direction wants it. */
void conv_add_products(const struct conv_call *c, double *sum, double *magnitude);

/* Descriptors and tensors; layouts of x, w, y. */
void conv_set_up(struct conv_call *c, const struct conv_types *types, const enum layout *layout);
struct tensor *conv_make(const struct conv_call *c, bool output, cudnnDataType_t dtype,
                         const int *dim, enum layout layout);
void conv_tear_down(struct conv_call *c);
struct tensor *conv_output_of(const struct conv_call *c);
size_t conv_workspace_of(struct conv_call *c);
int conv_algorithm_count(enum conv_direction direction);

cudnnStatus_t conv_run(void *context);
/* Runs with exactly the workspace that was answered and judges the plain directions. */
void conv_run_and_check(struct conv_call *c);

#endif
