/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the passes of the backend's normalizations and batch norm statistics, shared by host
 * and device. */
#ifndef WD_OPS_NORMS_ARGS_H
#define WD_OPS_NORMS_ARGS_H

#include "base/view.h"

/* A function of the definition that is called, not inlined: with loads of every type in it, that keeps
 * the module small. */
#if WD_ON_DEVICE
#define NORMS_CALLED static __device__ __noinline__
#else
#define NORMS_CALLED static inline
#endif

/* How the elements of x fall into items of `terms` elements each: an axis holds `keep` items of
 * `term` neighbours. Axes go from the outermost to the innermost in memory. */
struct norms_space {
    int64_t keep[WD_MAX_RANK];
    int64_t term[WD_MAX_RANK];
    int64_t items;
    int64_t terms;
    int32_t axis[WD_MAX_RANK];
    int32_t rank;
    int32_t unused;
};

/* Statistics. Scratch in `state`, of the accumulator's type, one of each an item: the mean, what its
 * rounding cut off, the inverse deviation. Views without data: none. */
struct norms_stats_args {
    struct wd_view x;
    struct wd_view mean;
    struct wd_view inv_std;
    struct wd_view in_mean;
    struct wd_view in_var;
    struct wd_view out_mean;
    struct wd_view out_var;
    void *state;
    double factor;
    double epsilon;
    struct norms_space space;
};

struct norms_apply_args {
    struct wd_view x;
    struct wd_view scale;
    struct wd_view bias;
    struct wd_view mean;
    struct wd_view inv_std;
    struct wd_view y;
    const void *state; /* null: the statistics are given */
    struct norms_space space;
};

/* Scratch: the above where it was computed, and the two sums of each item. */
struct norms_grad_args {
    struct wd_view x;
    struct wd_view dy;
    struct wd_view scale;
    struct wd_view mean;
    struct wd_view inv_std;
    struct wd_view dx;
    struct wd_view dscale;
    struct wd_view dbias;
    const void *state; /* null: the statistics are given */
    void *sums;
    int32_t centered; /* not RMS_NORM */
    int32_t unused;
    struct norms_space space;
    struct norms_space params; /* an item a parameter */
};

enum { NORMS_MEAN, NORMS_REST, NORMS_INV_STD, NORMS_STATES };
enum { NORMS_SUM, NORMS_SUM_XHAT, NORMS_SUMS };

struct norms_channels_args {
    struct wd_view x;
    struct wd_view sum;
    struct wd_view sq_sum;
    struct norms_space space;
};

struct norms_weights_args {
    struct wd_view x;
    struct wd_view dy;
    struct wd_view mean;
    struct wd_view inv_std;
    struct wd_view scale;
    struct wd_view dscale;
    struct wd_view dbias;
    struct wd_view eq_dy_scale;
    struct wd_view eq_x_scale;
    struct wd_view eq_bias;
    struct norms_space space;
};

struct norms_finalize_args {
    struct wd_view sum;
    struct wd_view sq_sum;
    struct wd_view scale;
    struct wd_view bias;
    struct wd_view in_mean;
    struct wd_view in_var;
    struct wd_view out_mean;
    struct wd_view out_var;
    struct wd_view mean;
    struct wd_view inv_std;
    struct wd_view eq_scale;
    struct wd_view eq_bias;
    double count;
    double factor;
    double epsilon;
    int32_t training;
    int32_t unused;
};

#endif
