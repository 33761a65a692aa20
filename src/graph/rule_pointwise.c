/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pointwise node must be: a known mode with its operands, shapes that repeat into the
 * output's, types that can be read and written. */
#include "graph/graph.h"
#include "graph/pointwise_modes.h"

static const char *const slot_name[] = {"x", "b", "t", "y"};

static cudnnStatus_t check_operand(const struct wd_tensor *operand, const struct wd_tensor *y,
                                   const char *name)
{
    char own[160];
    char out[160];
    WD_REQUIRE(wd_dtype_bits(operand->dtype) > 0 && operand->dtype != CUDNN_DATA_COMPLEX_FP32 &&
                   operand->dtype != CUDNN_DATA_COMPLEX_FP64,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "pointwise: tensor %s is %s", name,
               wd_dtype_name(operand->dtype));
    WD_REQUIRE(operand->rank == y->rank || (operand->flags & WD_BY_VALUE),
               CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "pointwise: %s has %d dimensions, y has %d",
               name, operand->rank, y->rank);
    if (operand->flags & WD_BY_VALUE) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(operand->reordering == CUDNN_TENSOR_REORDERING_NONE,
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "pointwise: tensor %s is reordered (mode %d)",
               name, operand->reordering);
    for (int d = 0; d < y->rank; ++d) {
        WD_REQUIRE(operand->dim[d] == y->dim[d] || operand->dim[d] == 1,
                   CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "pointwise: dim[%d]=%lld of %s (%s) is neither 1 nor that of y (%s)", d,
                   (long long)operand->dim[d], name, wd_tensor_text(operand, own, sizeof own),
                   wd_tensor_text(y, out, sizeof out));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_pointwise(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_pointwise_attr *attr = &node->attr.pointwise;
    const struct wd_tensor *y = wd_slot(graph, node, 3);
    int operands = wd_pointwise_operands(attr->mode);
    WD_REQUIRE(operands > 0, CUDNN_STATUS_BAD_PARAM, "pointwise: mode %d is no pointwise mode",
               attr->mode);
    WD_REQUIRE(!(y->flags & WD_BY_VALUE), CUDNN_STATUS_BAD_PARAM,
               "pointwise: the output y is passed by value");
    WD_REQUIRE(wd_dtype_bits(y->dtype) >= 8 || (y->vect_count == 1 && wd_tensor_is_packed(y)),
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "pointwise: y is %s, of less than a byte, and not packed", wd_dtype_name(y->dtype));
    WD_REQUIRE(operands < 2 || wd_slot(graph, node, 1), CUDNN_STATUS_BAD_PARAM,
               "pointwise: mode %d takes two operands, b is missing", attr->mode);
    WD_REQUIRE(operands < 3 || wd_slot(graph, node, 2), CUDNN_STATUS_BAD_PARAM,
               "pointwise: mode %d takes three operands, t is missing", attr->mode);
    WD_REQUIRE(operands > 1 || !wd_slot(graph, node, 1), CUDNN_STATUS_BAD_PARAM,
               "pointwise: mode %d takes one operand, b is given", attr->mode);
    for (int s = 0; s < 4; ++s) {
        const struct wd_tensor *operand = wd_slot(graph, node, s);
        if (operand) WD_TRY(check_operand(operand, y, slot_name[s]));
    }
    WD_REQUIRE(attr->mode != CUDNN_POINTWISE_GEN_INDEX || (attr->axis >= 0 && attr->axis < y->rank),
               CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
               "pointwise: axis %d of GEN_INDEX is not within the %d dimensions of y", attr->axis,
               y->rank);
    WD_REQUIRE(attr->mode != CUDNN_POINTWISE_SOFTPLUS_FWD || attr->softplus_beta != 0.0,
               CUDNN_STATUS_BAD_PARAM, "pointwise: softplus beta is zero");
    return CUDNN_STATUS_SUCCESS;
}
