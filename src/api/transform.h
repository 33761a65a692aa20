/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor transform descriptors: padding, folding of spatial blocks into channels, and the format of
 * the destination. */
#ifndef WD_API_TRANSFORM_H
#define WD_API_TRANSFORM_H

#include "api/api.h"

/* All zero changes nothing. Folding pads first; unfolding pads (or cuts, where negative) last. */
struct cudnnTensorTransformStruct {
    struct wd_descriptor head;
    int32_t rank;      /* 0: never set */
    int32_t format;    /* cudnnTensorFormat_t of the destination */
    int32_t direction; /* cudnnFoldingDirection_t */
    int32_t before[CUDNN_DIM_MAX];
    int32_t after[CUDNN_DIM_MAX];
    uint32_t fold[CUDNN_DIM_MAX - 2]; /* of the spatial dimensions; 0 and 1 leave one alone */
};

/* The same as an operation is told it. */
struct wd_transform_attr wd_transform_attr(const struct cudnnTensorTransformStruct *transform);

#endif
