/* SPDX-License-Identifier: Apache-2.0
 *
 * One convolution problem as the cases state it, and how it is run in the three directions.
 */
#ifndef GOLDEN_CONV_H
#define GOLDEN_CONV_H

#include "golden.h"

enum { CONV_FWD, CONV_DGRAD, CONV_WGRAD };

struct conv {
    const char *name;
    int sp; /* spatial dims: 1 (as H with W = 1), 2 or 3 */
    int n, c, hw[3], k, rs[3], pad[3], stride[3], dil[3], groups;
};

struct conv_how {
    cudnnDataType_t x, w, y, acc;
    enum gd_layout layout, wlayout;
    cudnnConvolutionMode_t mode;
    cudnnMathType_t math;
    double alpha, beta;
    enum gd_fill fill, yfill;
    int algo;      /* -1: the first that runs */
    double growth; /* what the algorithm's transforms add to the error of a plain sum */
};

extern const char *const conv_dir_names[3];
extern const int conv_algo_count[3];

int conv_out(const struct conv *c, int i);
cudnnConvolutionDescriptor_t conv_desc(const struct conv *c, const struct conv_how *how);
void conv_dims(const struct conv *c, int *nd, int x[5], int w[5], int y[5]);
/* Inside a case: makes the tensors, asks for the workspace, runs, notes all answers. */
void conv_run(int dir, const struct conv *c, const struct conv_how *how);

#endif
