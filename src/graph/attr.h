/* SPDX-License-Identifier: Apache-2.0
 *
 * The attributes of operations: what an operation is told apart from its tensors and run-time
 * scalars. Plain data without padding surprises: builders start from zeroed memory and the bytes are
 * part of the plan key. Enumerations are the API's where it has them. Each field has a row in
 * attr_fields.def, its text form. */
#ifndef WD_GRAPH_ATTR_H
#define WD_GRAPH_ATTR_H

#include <stdint.h>

enum { WD_MAX_SPATIAL = 6 };

/* Scalars that callers pass at run time; their class alone (0, 1, other) is part of the key. */
enum { WD_MAX_SCALARS = 6 };

struct wd_pointwise_attr {
    int32_t mode;    /* cudnnPointwiseMode_t */
    int32_t compute; /* cudnnDataType_t */
    int32_t axis;    /* GEN_INDEX */
    int32_t propagate_nan;
    double lower_clip;
    double upper_clip;
    double lower_slope;
    double elu_alpha;
    double softplus_beta;
    double swish_beta;
};

struct wd_conv_attr {
    int32_t spatial; /* dims of the image */
    int32_t mode;    /* cudnnConvolutionMode_t */
    int32_t compute; /* cudnnDataType_t */
    int32_t math;    /* cudnnMathType_t: may tf32 be used */
    int64_t groups;
    int64_t pad_before[WD_MAX_SPATIAL];
    int64_t pad_after[WD_MAX_SPATIAL];
    int64_t stride[WD_MAX_SPATIAL];
    int64_t dilation[WD_MAX_SPATIAL];
    int64_t window[WD_MAX_SPATIAL];      /* IM2COL: the filter's R, S, T; else 0 */
    struct wd_pointwise_attr activation; /* CONV_FUSED: a forward mode or IDENTITY; else 0 */
};

struct wd_pool_attr {
    int32_t spatial;
    int32_t mode; /* cudnnPoolingMode_t */
    int32_t propagate_nan;
    int32_t unused;
    int64_t window[WD_MAX_SPATIAL];
    int64_t pad_before[WD_MAX_SPATIAL];
    int64_t pad_after[WD_MAX_SPATIAL];
    int64_t stride[WD_MAX_SPATIAL];
};

struct wd_softmax_attr {
    int32_t algorithm; /* cudnnSoftmaxAlgorithm_t */
    int32_t mode;      /* cudnnSoftmaxMode_t */
};

struct wd_norm_attr {
    int32_t mode; /* cudnnBatchNormMode_t */
    int32_t ops;  /* cudnnBatchNormOps_t */
    double epsilon;
    struct wd_pointwise_attr activation; /* the fused one, in its forward form; zeros: none */
};

struct wd_reduce_attr {
    int32_t op; /* cudnnReduceTensorOp_t */
    int32_t compute;
    int32_t propagate_nan;
    int32_t indices;    /* cudnnReduceTensorIndices_t; only flattened indices exist */
    int32_t index_type; /* cudnnIndicesType_t, where there are indices */
    int32_t unused;
};

struct wd_dropout_attr {
    int32_t unused[2];
};

struct wd_matmul_attr {
    int32_t compute;
    int32_t unused;
    double padding_value;
};

struct wd_spatial_attr {
    int32_t sampler; /* cudnnSamplerType_t */
    int32_t unused;
};

struct wd_lrn_attr {
    int32_t window; /* in channels, or in pixels of each spatial dimension */
    int32_t mode;   /* cudnnLRNMode_t or cudnnDivNormMode_t */
    double alpha;
    double beta;
    double k;
};

/* Of the backend's normalizations and batch norm statistics. */
struct wd_norms_attr {
    int32_t mode;    /* cudnnBackendNormMode_t, cudnnGenStatsMode_t or cudnnBnFinalizeStatsMode_t */
    int32_t compute; /* cudnnDataType_t; normalizations have none and say FLOAT */
};

/* Padding may be negative: it cuts. Folding pads first, unfolding last. */
struct wd_transform_attr {
    int32_t direction; /* cudnnFoldingDirection_t */
    int32_t unused;
    int64_t before[WD_MAX_SPATIAL + 2];
    int64_t after[WD_MAX_SPATIAL + 2];
    int64_t fold[WD_MAX_SPATIAL]; /* block lengths, at least 1 within the rank */
};

/* Lengths of spatial dimension s count in units of 1 / unit[s] pixels, so that fractions are exact. */
struct wd_resample_attr {
    int32_t spatial;
    int32_t mode;    /* cudnnResampleMode_t */
    int32_t padding; /* cudnnPaddingMode_t */
    int32_t compute; /* cudnnDataType_t */
    int32_t propagate_nan;
    int32_t unused;
    int64_t unit[WD_MAX_SPATIAL];
    int64_t window[WD_MAX_SPATIAL];
    int64_t stride[WD_MAX_SPATIAL];
    int64_t pad_before[WD_MAX_SPATIAL];
    int64_t pad_after[WD_MAX_SPATIAL];
};

struct wd_concat_attr {
    int32_t axis;
    int32_t inputs;
    int32_t in_place; /* the input that may lie where it belongs already; -1: none */
    int32_t unused;
};

struct wd_reshape_attr {
    int32_t unused[2];
};

struct wd_rng_attr {
    int32_t distribution; /* cudnnRngDistribution_t; what another one is made of stays 0 */
    int32_t unused;
    double probability; /* of a 1 */
    double low;
    double high;
    double mean;
    double deviation;
};

union wd_attr {
    struct wd_conv_attr conv;
    struct wd_pool_attr pool;
    struct wd_pointwise_attr pointwise;
    struct wd_softmax_attr softmax;
    struct wd_norm_attr norm;
    struct wd_reduce_attr reduce;
    struct wd_dropout_attr dropout;
    struct wd_matmul_attr matmul;
    struct wd_spatial_attr spatial;
    struct wd_lrn_attr lrn;
    struct wd_transform_attr transform;
    struct wd_resample_attr resample;
    struct wd_concat_attr concat;
    struct wd_reshape_attr reshape;
    struct wd_rng_attr rng;
    struct wd_norms_attr norms;
};

#endif
