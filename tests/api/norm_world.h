/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the functions of batch normalization, in both of its interfaces: arguments
 * that are right for every call, and rows that each change one of them, made from a list of what a
 * function has and what it calls it. */
#ifndef TESTS_API_NORM_WORLD_H
#define TESTS_API_NORM_WORLD_H

#include <stddef.h>

#include "support/refusal.h"

/* Every argument of every call; each call takes what it has. */
struct norm_arguments {
    cudnnHandle_t handle;
    int mode, ops, algo, groups;
    const void *alpha, *beta, *alpha_param, *beta_param;
    cudnnTensorDescriptor_t x_desc, y_desc, z_desc, dy_desc, dx_desc, dz_desc;
    cudnnTensorDescriptor_t param_desc, stats_desc;
    const void *x, *z, *dy, *scale, *bias, *mean, *var, *y_in;
    void *y, *dx, *dz, *dscale, *dbias, *running_mean, *running_var, *saved_mean, *saved_inv;
    double factor, epsilon;
    cudnnActivationDescriptor_t activation;
    void *workspace, *reserve;
    size_t workspace_bytes, reserve_bytes;
    size_t *size;
};
typedef cudnnStatus_t norm_call(const struct norm_arguments *a);

/* A pointer by its place in the arguments and its name in the function, of a pair also the place of
 * the other; a null name ends a list. */
struct norm_argument {
    size_t field;
    const char *name;
    size_t other;
};
#define NORM_ARGUMENT(name, field)                                                                 \
    {                                                                                              \
        offsetof(struct norm_arguments, field), #name, 0                                           \
    }
#define NORM_PAIR(name, field, other)                                                              \
    {                                                                                              \
        offsetof(struct norm_arguments, field), #name, offsetof(struct norm_arguments, other)      \
    }

/* What a function has; zero: it has none. */
struct norm_function {
    const char *name;
    norm_call *call;
    int modes;
    bool newer;      /* algo and groupCnt */
    const char *ops; /* and an activation */
    bool epsilon;
    bool factor;
    const char *workspace; /* and a reserve space */
    norm_call *workspace_size;
    struct norm_argument param[3];   /* descriptors of parameters */
    struct norm_argument like[5];    /* descriptors of the shape and type of x */
    struct norm_argument needed[20]; /* not null, or only together with another */
    struct norm_argument apart[4];   /* outputs, not where another is */
};

struct norm_world {
    struct norm_arguments valid; /* for every call, with a residual and an activation */
    size_t size;                 /* where valid.size points */
    cudnnTensorDescriptor_t unset, wide, half, rank3, nhwc, integers, params_wrong, params_f64;
    cudnnActivationDescriptor_t no_activation;
};

/* Between them the world does not move. */
void norm_world_begin(struct norm_world *w, norm_call *reserve_size);
void norm_world_end(struct norm_world *w);

/* A descriptor, which the caller destroys. */
cudnnTensorDescriptor_t norm_tensor(cudnnTensorFormat_t format, cudnnDataType_t type, int rank,
                                    const int *dim);

/* Every row that the list of the function makes, and one row. */
void norm_refuse(const struct norm_world *w, const struct norm_function *f);
void norm_refuse_row(const struct norm_function *f, const char *argument, int line,
                     cudnnStatus_t status, const struct norm_arguments *row);

/* Calls that succeed with these arguments. */
void norm_accept(const char *what, const struct norm_arguments *a, norm_call *const *calls,
                 int count);

#endif
