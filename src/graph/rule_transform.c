/* SPDX-License-Identifier: Apache-2.0
 *
 * What a transform node must be: two tensors of types that convert, the destination of the dims that
 * the transform gives. */
#include "graph/graph.h"
#include "graph/transform_shape.h"

static cudnnStatus_t check_tensor(const char *name, const struct wd_tensor *tensor)
{
    WD_REQUIRE(!(tensor->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "transform: %s is no tensor in memory", name);
    WD_REQUIRE(wd_dtype_bits(tensor->dtype) >= 8 && tensor->dtype != CUDNN_DATA_COMPLEX_FP32 &&
                   tensor->dtype != CUDNN_DATA_COMPLEX_FP64,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "transform: tensor %s is %s", name,
               wd_dtype_name(tensor->dtype));
    WD_REQUIRE(tensor->reordering == CUDNN_TENSOR_REORDERING_NONE,
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "transform: tensor %s is reordered (mode %d)",
               name, tensor->reordering);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_transform(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_transform_attr *attr = &node->attr.transform;
    const struct wd_tensor *src = wd_slot(graph, node, 0);
    const struct wd_tensor *dest = wd_slot(graph, node, 1);
    int64_t dim[WD_MAX_RANK] = {0};
    char src_text[160];
    char dest_text[160];
    WD_TRY(check_tensor("src", src));
    WD_TRY(check_tensor("dest", dest));
    WD_REQUIRE(attr->direction == CUDNN_TRANSFORM_FOLD || attr->direction == CUDNN_TRANSFORM_UNFOLD,
               CUDNN_STATUS_BAD_PARAM, "transform: direction %d is no cudnnFoldingDirection_t",
               attr->direction);
    WD_REQUIRE(src->rank >= 2, CUDNN_STATUS_BAD_PARAM, "transform: src has %d dimensions",
               src->rank);
    WD_REQUIRE(src->rank == dest->rank, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "transform: src has %d dimensions, dest %d", src->rank, dest->rank);
    for (int d = 2; d < src->rank; ++d) {
        WD_REQUIRE(attr->fold[d - 2] >= 1, CUDNN_STATUS_BAD_PARAM,
                   "transform: a block of %lld in dimension %d is not positive",
                   (long long)attr->fold[d - 2], d);
    }
    wd_transform_dims(attr, src->rank, src->dim, dim);
    for (int d = 0; d < src->rank; ++d) {
        WD_REQUIRE(dim[d] == dest->dim[d], CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "transform: dim[%d]=%lld of dest (%s) is not the %lld that comes of src (%s)", d,
                   (long long)dest->dim[d], wd_tensor_text(dest, dest_text, sizeof dest_text),
                   (long long)dim[d], wd_tensor_text(src, src_text, sizeof src_text));
    }
    return CUDNN_STATUS_SUCCESS;
}
