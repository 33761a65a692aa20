/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots and scalars of batch normalization's three operations, in the order of operations.def. */
#ifndef WD_GRAPH_NORM_SLOTS_H
#define WD_GRAPH_NORM_SLOTS_H

enum {
    WD_BN_INFER_X,
    WD_BN_INFER_SCALE,
    WD_BN_INFER_BIAS,
    WD_BN_INFER_MEAN,
    WD_BN_INFER_VAR,
    WD_BN_INFER_Z,
    WD_BN_INFER_Y
};
enum {
    WD_BN_TRAIN_X,
    WD_BN_TRAIN_SCALE,
    WD_BN_TRAIN_BIAS,
    WD_BN_TRAIN_Z,
    WD_BN_TRAIN_Y,
    WD_BN_TRAIN_RUNNING_MEAN,
    WD_BN_TRAIN_RUNNING_VAR,
    WD_BN_TRAIN_SAVED_MEAN,
    WD_BN_TRAIN_SAVED_INV_STD,
    WD_BN_TRAIN_RESERVE
};
enum {
    WD_BN_GRAD_X,
    WD_BN_GRAD_DY,
    WD_BN_GRAD_SCALE,
    WD_BN_GRAD_SAVED_MEAN,
    WD_BN_GRAD_SAVED_INV_STD,
    WD_BN_GRAD_RESERVE,
    WD_BN_GRAD_DX,
    WD_BN_GRAD_DSCALE,
    WD_BN_GRAD_DBIAS,
    WD_BN_GRAD_DZ
};
enum { WD_BN_ALPHA, WD_BN_BETA, WD_BN_FACTOR_SCALAR };
enum { WD_BN_ALPHA_DATA, WD_BN_BETA_DATA, WD_BN_ALPHA_PARAM, WD_BN_BETA_PARAM };

#endif
