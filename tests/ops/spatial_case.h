/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of the spatial transformer: its tensors, and the grid generator's two directions. Used by the
 * lists of spatial_grid_test.c and sampler_case.h. */
#ifndef TESTS_OPS_SPATIAL_CASE_H
#define TESTS_OPS_SPATIAL_CASE_H

#include "part.h"

struct spatial_call {
    cudnnSpatialTransformerDescriptor_t st;
    struct part *x, *y, *dy, *dx;
    struct tensor *grid, *dgrid, *theta, *dtheta;
    int skip; /* elements before the first of grid and dgrid */
    double alpha, beta, alpha_grid, beta_grid;
};

struct spatial_shape {
    int n, c, h, w; /* of the image */
    int p, q;       /* of the output */
};

struct spatial_type {
    const char *name;
    cudnnDataType_t type;
};
enum { SPATIAL_TYPES = 4 };
extern const struct spatial_type spatial_types[SPATIAL_TYPES];

/* Where the values of a grid or transform begin. */
void *spatial_behind(const struct spatial_call *c, const struct tensor *t);
void spatial_describe(struct spatial_call *c, cudnnDataType_t dtype, const struct spatial_shape *s);
double *spatial_copy(const double *value, int64_t count);
cudnnDataType_t spatial_compute_type(cudnnDataType_t dtype);

/* For run_call. */
cudnnStatus_t spatial_grid_forward(void *context);
cudnnStatus_t spatial_grid_backward(void *context);

/* For the end of main: that every kernel of the GPU's engines was launched which is one of the grid
 * generator's, of the sampler's for grids that are affine maps, or of the sampler's others. */
enum spatial_kernels { SPATIAL_GRIDS, SPATIAL_MAPPED, SPATIAL_SAMPLERS };
void spatial_check_launched(int argc, enum spatial_kernels kind);

#endif
