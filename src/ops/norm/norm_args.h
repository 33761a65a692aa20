/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the batch normalization passes, shared by host and device. A pass works on a range
 * of parameters (a channel, or an activation): `count` of them from `first` on. */
#ifndef WD_OPS_NORM_ARGS_H
#define WD_OPS_NORM_ARGS_H

#include "base/view.h"
#include "graph/norm_shape.h"
#include "ops/pointwise/pointwise_args.h"

/* How the elements of x are counted. Axes go from the outermost to the innermost in memory. */
struct norm_space {
    int64_t dim[WD_MAX_RANK];
    int64_t params; /* all of them */
    int64_t terms;  /* elements that share one */
    int64_t first;
    int64_t count;
    int32_t rank;
    int32_t param_rank;
    int32_t axis[WD_MAX_RANK];       /* all axes */
    int32_t param_axis[WD_MAX_RANK]; /* those with parameters */
    int32_t term_axis[WD_MAX_RANK];  /* the others */
};

struct norm_infer_args {
    struct wd_view x;
    struct wd_view scale;
    struct wd_view bias;
    struct wd_view mean;
    struct wd_view var;
    struct wd_view z;
    struct wd_view y;
    double alpha;
    double beta;
    struct wd_norm_attr attr;
};

/* Statistics, of training and of a backward that was not given them. Scratch in `state`, of the
 * accumulator's type, `count` each: the mean, what its rounding cut off, the inverse deviation. */
struct norm_stats_args {
    struct wd_view x;
    struct wd_view running_mean; /* without data: none; so each of these four */
    struct wd_view running_var;
    struct wd_view saved_mean;
    struct wd_view saved_inv_std;
    void *state;
    double factor;
    double epsilon;
    struct norm_space space;
};

struct norm_train_args {
    struct wd_view x;
    struct wd_view scale;
    struct wd_view bias;
    struct wd_view z;
    struct wd_view y;
    void *reserve;
    const void *state;
    double alpha;
    double beta;
    struct wd_norm_attr attr;
    struct norm_space space;
};

/* Scratch in `state`: the above, then the sums of dy and of dy * xhat. */
struct norm_grad_args {
    struct wd_view x;
    struct wd_view dy;
    struct wd_view scale;
    struct wd_view saved_mean;
    struct wd_view saved_inv_std;
    struct wd_view dx;
    struct wd_view dscale;
    struct wd_view dbias;
    struct wd_view dz;
    const void *reserve;
    void *state;
    double alpha_data;
    double beta_data;
    double alpha_param;
    double beta_param;
    int32_t saved; /* mean and inverse deviation come from training */
    int32_t unused;
    struct wd_norm_attr attr;
    struct norm_space space;
};

/* The arrays in `state`. */
enum {
    NORM_MEAN,
    NORM_REST,
    NORM_INV_STD,
    NORM_TRAIN_STATES,
    NORM_SUM_DY = NORM_TRAIN_STATES,
    NORM_SUM_DY_XHAT,
    NORM_GRAD_STATES
};

#endif
