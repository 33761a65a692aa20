/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about batch normalization, for the rule, the definition, the engines and the entry points
 * alike: which axes own parameters, and what training leaves in the reserve space for backward. */
#ifndef WD_GRAPH_NORM_SHAPE_H
#define WD_GRAPH_NORM_SHAPE_H

#include "base/dtype.h"
#include "base/shared.h"
#include "graph/attr.h"

/* Whether each index along the axis has parameters of its own; statistics run over the others. */
WD_FN int wd_norm_is_param_axis(int mode, int axis)
{
    return mode == CUDNN_BATCHNORM_PER_ACTIVATION ? axis >= 1 : axis == 1;
}

/* The reserve space: what backward has to know of the fused activation. Element i of it belongs to
 * the i-th element of x in the order of x's strides, the largest first.
 *   NONE    the activation is none or the identity: no reserve space
 *   BITS    relu and clipped relu: bit i%8 of byte i/8 says that the gradient passes
 *   VALUES  others: the derivative, fp64 where x is fp64, else fp32 */
enum wd_norm_reserve { WD_RESERVE_NONE = 0, WD_RESERVE_BITS = 1, WD_RESERVE_VALUES = 2 };

WD_FN int wd_norm_reserve_kind(const struct wd_norm_attr *attr)
{
    if (attr->ops == CUDNN_BATCHNORM_OPS_BN) return WD_RESERVE_NONE;
    if (attr->activation.mode == CUDNN_POINTWISE_IDENTITY) return WD_RESERVE_NONE;
    if (attr->activation.mode == CUDNN_POINTWISE_RELU_FWD && attr->activation.lower_slope == 0.0) {
        return WD_RESERVE_BITS;
    }
    return WD_RESERVE_VALUES;
}

WD_FN int64_t wd_norm_reserve_bytes(const struct wd_norm_attr *attr, int x_dtype, int64_t count)
{
    switch (wd_norm_reserve_kind(attr)) {
    case WD_RESERVE_BITS: return (count + 7) / 8;
    case WD_RESERVE_VALUES: return count * (x_dtype == CUDNN_DATA_DOUBLE ? 8 : 4);
    default: return 0;
    }
}

#endif
