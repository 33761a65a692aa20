/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plain and the Ex calls of batch normalization and those of its newer interface share: a
 * call as a struct of its arguments with their names, and what is done with it, a routine each: the
 * checks, which name the arguments, the node made of them, and its run. Descriptors are borrowed. */
#ifndef WD_API_BATCHNORM_H
#define WD_API_BATCHNORM_H

#include "api/api.h"

/* The interface that a call belongs to. */
struct wd_bn_interface {
    const char *mode_type;
    int mode_count; /* its modes are 0 and up */
    const char *ops_name;
    const char *ops_type;
    bool chooses; /* it has the arguments algo and groupCnt */
};
extern const struct wd_bn_interface wd_bn_batchnorm;     /* cudnnBatchNormalization* */
extern const struct wd_bn_interface wd_bn_normalization; /* cudnnNormalization* */

/* Arguments with their names; those that a call does not have are zero. */
struct wd_bn_pointer {
    const void *pointer;
    const char *name;
};
struct wd_bn_tensor {
    const struct cudnnTensorStruct *desc;
    const char *desc_name;
    struct wd_bn_pointer data;
};
#define WD_BN_POINTER(data) ((struct wd_bn_pointer){(data), #data})
#define WD_BN_DESC(desc) ((struct wd_bn_tensor){(desc), #desc, {NULL, NULL}})
#define WD_BN_TENSOR(desc, data) ((struct wd_bn_tensor){(desc), #desc, {(data), #data}})

struct wd_bn_call {
    const char *function;
    const struct wd_bn_interface *interface;
    cudnnHandle_t handle;
    int mode;
    int ops;
    int algo;
    int group_count;
    double epsilon;
    double factor; /* of the running averages */
    const struct cudnnActivationStruct *activation;
    struct wd_bn_tensor x, y, z;
    struct wd_bn_tensor dx, dy, dz;
    struct wd_bn_tensor param;                    /* scale and bias, or their gradients */
    struct wd_bn_tensor stats;                    /* without a name: they are described by param */
    struct wd_bn_pointer alpha, beta;             /* backward: of dx */
    struct wd_bn_pointer alpha_param, beta_param; /* of dscale and dbias */
    struct wd_bn_pointer scale, bias, dscale, dbias;
    struct wd_bn_pointer mean, var; /* estimated, or running averages */
    struct wd_bn_pointer saved_mean, saved_inv_std;
    const char *workspace_name; /* null: the call has none */
    void *workspace;
    size_t workspace_bytes;
    const void *reserve;
    size_t reserve_bytes;
};

cudnnStatus_t wd_bn_inference(const struct wd_bn_call *call);
cudnnStatus_t wd_bn_training(const struct wd_bn_call *call);
cudnnStatus_t wd_bn_backward(const struct wd_bn_call *call);

/* How many bytes those need, of which the call describes the tensors alone. */
cudnnStatus_t wd_bn_training_workspace(const struct wd_bn_call *call, size_t *bytes);
cudnnStatus_t wd_bn_backward_workspace(const struct wd_bn_call *call, size_t *bytes);
cudnnStatus_t wd_bn_reserve(const struct wd_bn_call *call, size_t *bytes);

cudnnStatus_t wd_bn_check_mode(const char *function, const struct wd_bn_interface *interface,
                               int mode);
/* Makes of `result`, which may be x, the descriptor of an input's parameters, in a checked mode. */
void wd_bn_derive(struct cudnnTensorStruct *result, const struct cudnnTensorStruct *x, int mode);

#endif
