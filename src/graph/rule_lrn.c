/* SPDX-License-Identifier: Apache-2.0
 *
 * What the nodes of local response and divisive normalization must be: floating-point tensors of one
 * shape, with channels, and a window. */
#include "graph/graph.h"

static cudnnStatus_t check_attr(const char *op, const struct wd_lrn_attr *attr)
{
    WD_REQUIRE(attr->window > 0, CUDNN_STATUS_BAD_PARAM, "%s: the window of %d is not positive", op,
               attr->window);
    WD_REQUIRE(attr->mode == 0, CUDNN_STATUS_BAD_PARAM, "%s: there is no mode %d", op, attr->mode);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_tensor(const char *op, const struct wd_node *node, int slot,
                                  const struct wd_tensor *tensor, const struct wd_tensor *model)
{
    char name[24];
    char text[160];
    char model_text[160];
    wd_op_slot_name(node->op, slot, name);
    WD_REQUIRE(!(tensor->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "%s: %s is no tensor in memory", op, name);
    WD_REQUIRE(wd_tensor_same_dims(tensor, model), CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: the dims of %s (%s) differ from those of x (%s)", op, name,
               wd_tensor_text(tensor, text, sizeof text),
               wd_tensor_text(model, model_text, sizeof model_text));
    WD_REQUIRE(tensor->dtype == model->dtype, CUDNN_STATUS_BAD_PARAM, "%s: %s is %s, but x is %s",
               op, name, wd_dtype_name(tensor->dtype), wd_dtype_name(model->dtype));
    WD_REQUIRE(tensor->vect_count == 1 && tensor->reordering == CUDNN_TENSOR_REORDERING_NONE,
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "%s: %s has vectors of channels", op, name);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check(const struct wd_graph *graph, const struct wd_node *node, int x_slot)
{
    const char *op = wd_op_info(node->op)->name;
    const struct wd_tensor *x = wd_slot(graph, node, x_slot);
    WD_TRY(check_attr(op, &node->attr.lrn));
    for (int s = 0; s < wd_op_info(node->op)->slot_count; ++s) {
        const struct wd_tensor *tensor = wd_slot(graph, node, s);
        if (tensor) WD_TRY(check_tensor(op, node, s, tensor, x));
    }
    WD_REQUIRE(x->dtype == CUDNN_DATA_FLOAT || x->dtype == CUDNN_DATA_DOUBLE ||
                   x->dtype == CUDNN_DATA_HALF || x->dtype == CUDNN_DATA_BFLOAT16,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: tensors of %s; there are fp64, fp32, fp16, bf16", op, wd_dtype_name(x->dtype));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_lrn(const struct wd_graph *graph, const struct wd_node *node)
{
    int x_slot = node->op == WD_OP_LRN_FORWARD ? 0 : 2;
    const struct wd_tensor *x = wd_slot(graph, node, x_slot);
    WD_REQUIRE(x->rank >= 3, CUDNN_STATUS_BAD_PARAM,
               "%s: the tensors have %d dimensions; needed are a batch, channels and one more",
               wd_op_info(node->op)->name, x->rank);
    return check(graph, node, x_slot);
}

cudnnStatus_t wd_rule_divnorm(const struct wd_graph *graph, const struct wd_node *node)
{
    bool forward = node->op == WD_OP_DIVNORM_FORWARD;
    const char *op = wd_op_info(node->op)->name;
    const struct wd_tensor *x = wd_slot(graph, node, 0);
    const struct wd_tensor *means = wd_slot(graph, node, 1);
    WD_REQUIRE(x->rank == 4 || x->rank == 5, CUDNN_STATUS_BAD_PARAM,
               "%s: the tensors have %d dimensions, not 4 or 5", op, x->rank);
    WD_TRY(check(graph, node, 0));
    for (int d = 0; d < x->rank; ++d) {
        WD_REQUIRE(x->dim[d] == 1 || x->stride[d] != 0, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
                   "%s: stride[%d] of x is 0, so that the scratch has not a place an element", op,
                   d);
    }
    WD_REQUIRE(!means || wd_tensor_same_layout(means, x), CUDNN_STATUS_BAD_PARAM,
               "%s: the strides of means are not those of x", op);
    for (int s = forward ? 2 : 3; s < (forward ? 4 : 5); ++s) {
        WD_REQUIRE(wd_tensor_same_layout(wd_slot(graph, node, s), x), CUDNN_STATUS_BAD_PARAM,
                   "%s: the strides of the scratch are not those of x", op);
    }
    return CUDNN_STATUS_SUCCESS;
}
