/* SPDX-License-Identifier: Apache-2.0
 *
 * What a softmax node must be: floating-point tensors of one shape, a known algorithm and mode. */
#include "graph/graph.h"

static cudnnStatus_t check_tensor(const char *op, int slot, const struct wd_node *node,
                                  const struct wd_tensor *tensor, const struct wd_tensor *model)
{
    char name[24];
    char text[160];
    char model_text[160];
    wd_op_slot_name(node->op, slot, name);
    WD_REQUIRE(!(tensor->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "%s: %s is no tensor in memory", op, name);
    WD_REQUIRE(wd_tensor_same_dims(tensor, model), CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: the dims of %s (%s) differ from those of another tensor (%s)", op, name,
               wd_tensor_text(tensor, text, sizeof text),
               wd_tensor_text(model, model_text, sizeof model_text));
    WD_REQUIRE(tensor->dtype == model->dtype, CUDNN_STATUS_BAD_PARAM,
               "%s: %s is %s, another tensor %s", op, name, wd_dtype_name(tensor->dtype),
               wd_dtype_name(model->dtype));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_softmax(const struct wd_graph *graph, const struct wd_node *node)
{
    const char *op = wd_op_info(node->op)->name;
    const struct wd_softmax_attr *attr = &node->attr.softmax;
    const struct wd_tensor *model = wd_slot(graph, node, 0);
    WD_REQUIRE(attr->algorithm >= CUDNN_SOFTMAX_FAST && attr->algorithm <= CUDNN_SOFTMAX_LOG,
               CUDNN_STATUS_BAD_PARAM, "%s: algorithm %d is no cudnnSoftmaxAlgorithm_t", op,
               attr->algorithm);
    WD_REQUIRE(attr->mode == CUDNN_SOFTMAX_MODE_INSTANCE ||
                   attr->mode == CUDNN_SOFTMAX_MODE_CHANNEL,
               CUDNN_STATUS_BAD_PARAM, "%s: mode %d is no cudnnSoftmaxMode_t", op, attr->mode);
    for (int s = 0; s < wd_op_info(node->op)->slot_count; ++s) {
        WD_TRY(check_tensor(op, s, node, wd_slot(graph, node, s), model));
    }
    WD_REQUIRE(model->rank >= 2, CUDNN_STATUS_BAD_PARAM,
               "%s: the tensors have %d dimensions; needed are a batch and channels", op,
               model->rank);
    WD_REQUIRE(model->dtype == CUDNN_DATA_FLOAT || model->dtype == CUDNN_DATA_DOUBLE ||
                   model->dtype == CUDNN_DATA_HALF || model->dtype == CUDNN_DATA_BFLOAT16,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: tensors of %s; there are fp64, fp32, fp16, bf16", op,
               wd_dtype_name(model->dtype));
    return CUDNN_STATUS_SUCCESS;
}
