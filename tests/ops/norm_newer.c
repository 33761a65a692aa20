/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch normalization case (norm_case.h) through the newer interface, cudnnNormalization*. The
 * statistics are described by whichever of their tensors there is. One thread. */
#include "norm_case.h"

static cudnnNormMode_t mode_of(const struct norm_case *c)
{
    return c->mode == CUDNN_BATCHNORM_PER_ACTIVATION ? CUDNN_NORM_PER_ACTIVATION
                                                     : CUDNN_NORM_PER_CHANNEL;
}

static cudnnTensorDescriptor_t stats_of(const struct norm_case *c)
{
    const struct tensor *stats = c->saved_mean ? c->saved_mean : c->mean ? c->mean : c->var;
    return stats ? stats->desc : c->scale->desc;
}

static void *data_of(const struct tensor *t)
{
    return t ? t->data : NULL;
}

static cudnnTensorDescriptor_t desc_of(const struct tensor *t)
{
    return t ? t->desc : NULL;
}

static size_t bytes_of(const struct tensor *t)
{
    return t ? (size_t)t->bytes : 0;
}

cudnnStatus_t norm_newer_inference(void *context)
{
    const struct norm_case *c = context;
    double a;
    double b;
    return cudnnNormalizationForwardInference(
        harness_handle, mode_of(c), (cudnnNormOps_t)c->ops, (cudnnNormAlgo_t)c->algo,
        norm_scalar(c, c->alpha, &a), norm_scalar(c, c->beta, &b), c->x->desc, c->x->data,
        c->scale->desc, c->scale->data, c->bias->data, c->mean->desc, c->mean->data, c->var->data,
        desc_of(c->z), data_of(c->z), c->activation, c->y->desc, c->y->data, c->epsilon, 1);
}

cudnnStatus_t norm_newer_forward(const struct norm_case *c)
{
    double a;
    double b;
    return cudnnNormalizationForwardTraining(
        harness_handle, mode_of(c), (cudnnNormOps_t)c->ops, (cudnnNormAlgo_t)c->algo,
        norm_scalar(c, c->alpha, &a), norm_scalar(c, c->beta, &b), c->x->desc, c->x->data,
        c->scale->desc, c->scale->data, c->bias->data, c->factor, stats_of(c), data_of(c->mean),
        data_of(c->var), c->epsilon, data_of(c->saved_mean), data_of(c->saved_inv), c->activation,
        desc_of(c->z), data_of(c->z), c->y->desc, c->y->data, data_of(c->workspace),
        bytes_of(c->workspace), data_of(c->reserve), bytes_of(c->reserve), 1);
}

cudnnStatus_t norm_newer_backward(const struct norm_case *c)
{
    double room[4];
    return cudnnNormalizationBackward(
        harness_handle, mode_of(c), (cudnnNormOps_t)c->ops, (cudnnNormAlgo_t)c->algo,
        norm_scalar(c, c->alpha_data, &room[0]), norm_scalar(c, c->beta_data, &room[1]),
        norm_scalar(c, c->alpha_param, &room[2]), norm_scalar(c, c->beta_param, &room[3]),
        c->x->desc, c->x->data, c->ops ? c->y->desc : NULL, c->ops ? c->y->data : NULL, c->dy->desc,
        c->dy->data, desc_of(c->dz), data_of(c->dz), c->dx->desc, c->dx->data, c->scale->desc,
        c->scale->data, c->ops ? c->bias->data : NULL, c->dscale->data, c->dbias->data, c->epsilon,
        stats_of(c), data_of(c->saved_mean), data_of(c->saved_inv), c->activation,
        data_of(c->workspace_back), bytes_of(c->workspace_back), data_of(c->reserve),
        bytes_of(c->reserve), 1);
}

bool norm_newer_sizes(const struct norm_case *c, size_t *forward, size_t *backward, size_t *reserve)
{
    cudnnNormMode_t mode = mode_of(c);
    cudnnNormOps_t ops = (cudnnNormOps_t)c->ops;
    cudnnNormAlgo_t algo = (cudnnNormAlgo_t)c->algo;
    cudnnTensorDescriptor_t like = c->x->desc;
    return norm_fine("workspace size",
                     cudnnGetNormalizationForwardTrainingWorkspaceSize(
                         harness_handle, mode, ops, algo, like, desc_of(c->z), c->y->desc,
                         c->scale->desc, c->activation, stats_of(c), forward, 1)) &&
           norm_fine("workspace size", cudnnGetNormalizationBackwardWorkspaceSize(
                                           harness_handle, mode, ops, algo, like, c->y->desc,
                                           c->dy ? c->dy->desc : like, c->dz ? c->dz->desc : like,
                                           c->dx ? c->dx->desc : like, c->scale->desc,
                                           c->activation, stats_of(c), backward, 1)) &&
           norm_fine("reserve size",
                     cudnnGetNormalizationTrainingReserveSpaceSize(
                         harness_handle, mode, ops, algo, c->activation, like, reserve, 1));
}
