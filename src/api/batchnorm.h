/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plain and the Ex calls of batch normalization and those of its newer interface share:
 * their arguments as a struct, the checks that name them, and the node made of them. Descriptors in
 * it are borrowed. */
#ifndef WD_API_BATCHNORM_H
#define WD_API_BATCHNORM_H

#include "api/api.h"

struct wd_bn_data {
    const struct cudnnTensorStruct *desc;
    const char *desc_name;
    const void *data;
    const char *name;
};

/* What a forward function calls its arguments and their types. */
struct wd_bn_words {
    const char *mode_type;
    const char *ops;
    const char *ops_type;
    const char *scale;
    const char *bias;
};
extern const struct wd_bn_words wd_bn_words; /* of cudnnBatchNormalization* */

struct wd_bn_common {
    const char *function;
    const struct wd_bn_words *words;
    int mode;
    int ops;
    double epsilon;
    struct wd_bn_data x;
    struct wd_bn_data y; /* backward: dx */
    const struct cudnnActivationStruct *activation;
    const struct cudnnTensorStruct *param;
    const char *param_name;
    /* of the statistics, where they have one of their own; a null name: the above */
    const struct cudnnTensorStruct *stats;
    const char *stats_name;
};

/* Makes of `result`, which may be x, the descriptor of an input's parameters, in a checked mode. */
void wd_bn_derive(struct cudnnTensorStruct *result, const struct cudnnTensorStruct *x, int mode);

/* Mode, ops, epsilon, the activation where there is one, x, y and the parameters' descriptors. */
cudnnStatus_t wd_bn_check_common(const struct wd_bn_common *call);
/* A further tensor with the dims and type of x; where it lies over `over`, with its layout. */
cudnnStatus_t wd_bn_check_like(const struct wd_bn_common *call, const struct wd_bn_data *tensor,
                               const struct wd_bn_data *over);
/* Named pointers, refused where null; ends with a null name. */
struct wd_bn_pointer {
    const void *pointer;
    const char *name;
};
cudnnStatus_t wd_bn_check_pointers(const char *function, const struct wd_bn_pointer *pointers);
/* Both or neither. */
cudnnStatus_t wd_bn_check_pair(const char *function, const void *a, const char *a_name,
                               const void *b, const char *b_name);

struct wd_norm_attr wd_bn_attr(const struct wd_bn_common *call);

struct wd_bn_inference {
    struct wd_bn_common common;
    const void *alpha;
    const void *beta;
    struct wd_bn_data z; /* desc null: none */
    const void *scale;
    const void *bias;
    const void *mean;
    const void *var;
};
struct wd_bn_training {
    struct wd_bn_common common;
    const void *alpha;
    const void *beta;
    struct wd_bn_data z; /* desc null: none */
    const void *scale;
    const void *bias;
    double factor;
    void *running_mean;
    void *running_var;
    void *saved_mean;
    void *saved_inv_std;
    void *reserve;
    size_t reserve_bytes;
};
struct wd_bn_backward {
    struct wd_bn_common common;
    const void *alpha_data;
    const void *beta_data;
    const void *alpha_param;
    const void *beta_param;
    struct wd_bn_data dy;
    struct wd_bn_data dz; /* desc null: none */
    const void *scale;
    void *dscale;
    void *dbias;
    const char *dscale_name;
    const char *dbias_name;
    const char *scale_name;
    const void *saved_mean;
    const void *saved_inv_std;
    const void *reserve;
    size_t reserve_bytes;
};

/* Checks the arguments and makes the node. */
cudnnStatus_t wd_bn_make_inference(const struct wd_bn_inference *call, struct wd_single *single);
cudnnStatus_t wd_bn_make_training(const struct wd_bn_training *call, struct wd_single *single);
cudnnStatus_t wd_bn_make_backward(const struct wd_bn_backward *call, struct wd_single *single);

/* The nodes alone, from checked descriptors; absent statistics are those with null pointers. */
void wd_bn_bind_training(const struct wd_bn_training *call, struct wd_single *single);
void wd_bn_bind_backward(const struct wd_bn_backward *call, struct wd_single *single);

#endif
