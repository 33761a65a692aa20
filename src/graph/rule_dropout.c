/* SPDX-License-Identifier: Apache-2.0
 *
 * What the dropout nodes must be: as many elements on both sides, a state and a mask of enough bytes. */
#include "base/philox.h"
#include "graph/graph.h"

static cudnnStatus_t check_bytes(const char *op, const char *name, const struct wd_tensor *tensor,
                                 int64_t needed)
{
    WD_REQUIRE(tensor->flags & WD_OPAQUE, CUDNN_STATUS_BAD_PARAM, "%s: %s is no opaque memory", op,
               name);
    WD_REQUIRE(tensor->dim[0] >= needed, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
               "%s: %s has %lld bytes, needed are %lld", op, name, (long long)tensor->dim[0],
               (long long)needed);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_pair(const char *op, const struct wd_tensor *from,
                                const struct wd_tensor *to)
{
    char a[160];
    char b[160];
    WD_REQUIRE(!((from->flags | to->flags) & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "%s: input or output is no tensor in memory", op);
    WD_REQUIRE(wd_tensor_count(from) == wd_tensor_count(to), CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: the input %s has not as many elements as the output %s", op,
               wd_tensor_text(from, a, sizeof a), wd_tensor_text(to, b, sizeof b));
    WD_REQUIRE(from->dtype == to->dtype, CUDNN_STATUS_BAD_PARAM,
               "%s: the input is %s, the output %s", op, wd_dtype_name(from->dtype),
               wd_dtype_name(to->dtype));
    switch (from->dtype) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_INT32: return CUDNN_STATUS_SUCCESS;
    default:
        return wd_fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                       "%s: tensors of %s; there are fp64, fp32, fp16, bf16, int8, uint8, int32",
                       op, wd_dtype_name(from->dtype));
    }
}

cudnnStatus_t wd_rule_dropout(const struct wd_graph *graph, const struct wd_node *node)
{
    const char *op = wd_op_info(node->op)->name;
    const struct wd_tensor *input = wd_slot(graph, node, 0);
    const struct wd_tensor *second = wd_slot(graph, node, 1);
    int64_t state_bytes = (int64_t)sizeof(struct wd_random_state);
    if (node->op == WD_OP_DROPOUT_INIT) return check_bytes(op, "state", input, state_bytes);
    WD_TRY(check_pair(op, input, wd_slot(graph, node, 2)));
    if (node->op == WD_OP_DROPOUT_BACKWARD) {
        return check_bytes(op, "reserve", second, (wd_tensor_count(input) + 7) / 8);
    }
    WD_TRY(check_bytes(op, "state", second, state_bytes));
    return check_bytes(op, "reserve", wd_slot(graph, node, 3), (wd_tensor_count(input) + 7) / 8);
}
