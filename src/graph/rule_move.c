/* SPDX-License-Identifier: Apache-2.0
 *
 * What the nodes that move elements must be: a concatenation's inputs fit side by side into the
 * output, a reshape has as many elements on both sides, in an order of their own. */
#include "graph/graph.h"

static bool is_complex(int dtype)
{
    return dtype == CUDNN_DATA_COMPLEX_FP32 || dtype == CUDNN_DATA_COMPLEX_FP64;
}

/* x in a slot moves into y: both are in memory, of types that convert, y by whole bytes. */
static cudnnStatus_t check_pair(const struct wd_graph *graph, const struct wd_node *node, int slot,
                                const struct wd_tensor *y)
{
    const char *op = wd_op_info(node->op)->name;
    const struct wd_tensor *x = wd_slot(graph, node, slot);
    char name[24];
    char text[160];
    wd_op_slot_name(node->op, slot, name);
    WD_REQUIRE(!((x->flags | y->flags) & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "%s: %s or y is no tensor in memory", op, name);
    WD_REQUIRE(x->reordering == CUDNN_TENSOR_REORDERING_NONE &&
                   y->reordering == CUDNN_TENSOR_REORDERING_NONE,
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "%s: %s or y is reordered", op, name);
    WD_REQUIRE(wd_dtype_bits(x->dtype) > 0 && wd_dtype_bits(y->dtype) > 0,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "%s: %s is %s, y %s: no data types", op, name,
               wd_dtype_name(x->dtype), wd_dtype_name(y->dtype));
    WD_REQUIRE(x->dtype == y->dtype || (!is_complex(x->dtype) && !is_complex(y->dtype)),
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: %s is %s, y %s; complex numbers are not converted", op, name,
               wd_dtype_name(x->dtype), wd_dtype_name(y->dtype));
    WD_REQUIRE(wd_dtype_bits(y->dtype) >= 8 || (wd_tensor_is_packed(y) && y->vect_count == 1),
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "%s: elements of y (%s) share bytes, which takes a tensor without gaps", op,
               wd_tensor_text(y, text, sizeof text));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_concat(const struct wd_graph *graph, const struct wd_node *node)
{
    enum { Y, X };
    const char *op = wd_op_info(node->op)->name;
    const struct wd_concat_attr *attr = &node->attr.concat;
    const struct wd_tensor *y = wd_slot(graph, node, Y);
    int64_t sum = 0;
    char x_text[160];
    char y_text[160];
    WD_REQUIRE(attr->inputs >= 1 && attr->inputs < WD_MAX_SLOTS, CUDNN_STATUS_NOT_SUPPORTED,
               "%s: %d inputs are not in 1..%d", op, attr->inputs, WD_MAX_SLOTS - 1);
    WD_REQUIRE(attr->axis >= 0 && attr->axis < y->rank, CUDNN_STATUS_BAD_PARAM,
               "%s: axis %d is none of the %d dimensions of y (%s)", op, attr->axis, y->rank,
               wd_tensor_text(y, y_text, sizeof y_text));
    WD_REQUIRE(attr->in_place >= -1 && attr->in_place < attr->inputs, CUDNN_STATUS_BAD_PARAM,
               "%s: in-place index %d is none of %d inputs, nor -1", op, attr->in_place,
               attr->inputs);
    for (int i = 0; i < WD_MAX_SLOTS - X; ++i) {
        const struct wd_tensor *x = wd_slot(graph, node, X + i);
        WD_REQUIRE((x != NULL) == (i < attr->inputs), CUDNN_STATUS_BAD_PARAM,
                   "%s: input %d is %s, but there are %d inputs", op, i, x ? "there" : "missing",
                   attr->inputs);
        if (!x) break;
        WD_REQUIRE(x->rank == y->rank, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: input %d (%s) has %d dimensions, y (%s) %d", op, i,
                   wd_tensor_text(x, x_text, sizeof x_text), x->rank,
                   wd_tensor_text(y, y_text, sizeof y_text), y->rank);
        for (int d = 0; d < y->rank; ++d) {
            WD_REQUIRE(
                d == attr->axis || x->dim[d] == y->dim[d], CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                "%s: dim[%d]=%lld of input %d (%s) is not that of y (%s), and the axis is %d", op,
                d, (long long)x->dim[d], i, wd_tensor_text(x, x_text, sizeof x_text),
                wd_tensor_text(y, y_text, sizeof y_text), attr->axis);
        }
        WD_TRY(check_pair(graph, node, X + i, y));
        sum += x->dim[attr->axis];
    }
    WD_REQUIRE(sum == y->dim[attr->axis], CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: dim[%d]=%lld of y (%s) is not the sum of those of the inputs, %lld", op,
               attr->axis, (long long)y->dim[attr->axis], wd_tensor_text(y, y_text, sizeof y_text),
               (long long)sum);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_reshape(const struct wd_graph *graph, const struct wd_node *node)
{
    enum { X, Y };
    const char *op = wd_op_info(node->op)->name;
    const struct wd_tensor *x = wd_slot(graph, node, X);
    const struct wd_tensor *y = wd_slot(graph, node, Y);
    char x_text[160];
    char y_text[160];
    WD_REQUIRE(wd_tensor_count(x) == wd_tensor_count(y), CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: x (%s) has %lld elements, y (%s) %lld", op,
               wd_tensor_text(x, x_text, sizeof x_text), (long long)wd_tensor_count(x),
               wd_tensor_text(y, y_text, sizeof y_text), (long long)wd_tensor_count(y));
    WD_REQUIRE(x->vect_count == 1 && y->vect_count == 1, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "%s: x (%s) or y (%s) has vectors, whose elements have no order of their own", op,
               wd_tensor_text(x, x_text, sizeof x_text), wd_tensor_text(y, y_text, sizeof y_text));
    WD_REQUIRE(!wd_tensor_overlaps_itself(x), CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "%s: elements of x (%s) lie in one place, so they have no order in memory", op,
               wd_tensor_text(x, x_text, sizeof x_text));
    return check_pair(graph, node, X, y);
}
