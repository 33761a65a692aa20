/* SPDX-License-Identifier: Apache-2.0
 *
 * What a reduce node must be: an operator, dims of y that are 1 or x's own, types that can be read
 * and written, and indices only of operators that pick an element, in a type that counts them. */
#include "graph/graph.h"
#include "graph/reduce_shape.h"

enum { X, Y, INDICES };

static cudnnStatus_t check_tensor(const struct wd_tensor *tensor, const char *name)
{
    WD_REQUIRE(!(tensor->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "reduce: tensor %s is passed by value or opaque", name);
    WD_REQUIRE(tensor->reordering == CUDNN_TENSOR_REORDERING_NONE,
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "reduce: a tensor is reordered (mode %d)",
               tensor->reordering);
    WD_REQUIRE(wd_dtype_bits(tensor->dtype) >= 8 && tensor->dtype != CUDNN_DATA_COMPLEX_FP32 &&
                   tensor->dtype != CUDNN_DATA_COMPLEX_FP64,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "reduce: tensor %s is %s", name,
               wd_dtype_name(tensor->dtype));
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_indices(const struct wd_reduce_attr *attr, const struct wd_tensor *x,
                                   const struct wd_tensor *y, const struct wd_tensor *indices)
{
    int64_t count = wd_tensor_count(y);
    int64_t terms = count > 0 ? wd_tensor_count(x) / count : 0;
    int bytes = wd_index_bytes(attr->index_type);
    WD_REQUIRE(wd_reduce_has_index(attr->op), CUDNN_STATUS_BAD_PARAM,
               "reduce: indices are wanted, but operator %d picks no element", attr->op);
    WD_REQUIRE(attr->index_type >= CUDNN_32BIT_INDICES && attr->index_type <= CUDNN_8BIT_INDICES,
               CUDNN_STATUS_BAD_PARAM, "reduce: index type %d is no cudnnIndicesType_t",
               attr->index_type);
    WD_REQUIRE(bytes == 8 || terms <= (int64_t)1 << (8 * bytes), CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
               "reduce: indices of %d bits cannot count %lld elements", 8 * bytes,
               (long long)terms);
    WD_REQUIRE(indices != NULL && (indices->flags & WD_OPAQUE), CUDNN_STATUS_BAD_PARAM,
               "reduce: indices are wanted, but there is no memory for them");
    WD_REQUIRE(indices->dim[0] >= count * bytes, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
               "reduce: %lld bytes of indices are given, %lld are needed",
               (long long)indices->dim[0], (long long)(count * bytes));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_reduce(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_reduce_attr *attr = &node->attr.reduce;
    const struct wd_tensor *x = wd_slot(graph, node, X);
    const struct wd_tensor *y = wd_slot(graph, node, Y);
    char in[160];
    char out[160];
    WD_REQUIRE(attr->op >= CUDNN_REDUCE_TENSOR_ADD && attr->op <= CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS,
               CUDNN_STATUS_BAD_PARAM, "reduce: operator %d is no cudnnReduceTensorOp_t", attr->op);
    WD_TRY(check_tensor(x, "x"));
    WD_TRY(check_tensor(y, "y"));
    WD_REQUIRE(x->rank == y->rank, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "reduce: x has %d dimensions, y has %d", x->rank, y->rank);
    for (int d = 0; d < x->rank; ++d) {
        WD_REQUIRE(y->dim[d] == 1 || y->dim[d] == x->dim[d], CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "reduce: dim[%d]=%lld of y (%s) is neither 1 nor that of x (%s)", d,
                   (long long)y->dim[d], wd_tensor_text(y, out, sizeof out),
                   wd_tensor_text(x, in, sizeof in));
    }
    if (attr->indices == CUDNN_REDUCE_TENSOR_FLATTENED_INDICES) {
        return check_indices(attr, x, y, wd_slot(graph, node, INDICES));
    }
    WD_REQUIRE(attr->indices == CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_STATUS_BAD_PARAM,
               "reduce: indices=%d is no cudnnReduceTensorIndices_t", attr->indices);
    WD_REQUIRE(!wd_slot(graph, node, INDICES), CUDNN_STATUS_BAD_PARAM,
               "reduce: memory for indices is given, but none are wanted");
    return CUDNN_STATUS_SUCCESS;
}
