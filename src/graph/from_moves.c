/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenation and reshape descriptors as nodes. */
#include "graph/from_descriptors.h"

cudnnStatus_t wd_node_concat(const struct wd_desc *op, struct wd_node_builder *builder)
{
    enum { Y, X };
    const struct wd_value *inputs = wd_desc_value(op, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS);
    int64_t axis = wd_desc_int(op, CUDNN_ATTR_OPERATION_CONCAT_AXIS);
    int64_t in_place = wd_desc_int(op, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX);
    struct wd_concat_attr *attr = &builder->node->attr.concat;
    WD_REQUIRE(
        inputs->count < WD_MAX_SLOTS, CUDNN_STATUS_NOT_SUPPORTED,
        "concatenation: CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS has %lld elements, more than "
        "%d",
        (long long)inputs->count, WD_MAX_SLOTS - 1);
    WD_REQUIRE(axis >= 0 && axis < WD_MAX_RANK, CUDNN_STATUS_BAD_PARAM,
               "concatenation: CUDNN_ATTR_OPERATION_CONCAT_AXIS=%lld is no dimension",
               (long long)axis);
    WD_REQUIRE(in_place >= -1 && in_place < inputs->count, CUDNN_STATUS_BAD_PARAM,
               "concatenation: CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX=%lld is none of %lld "
               "inputs, nor -1",
               (long long)in_place, (long long)inputs->count);
    builder->node->op = WD_OP_CONCAT;
    attr->axis = (int32_t)axis;
    attr->inputs = (int32_t)inputs->count;
    attr->in_place = (int32_t)in_place;
    WD_TRY(wd_node_bind(builder, Y, op, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC));
    for (int i = 0; i < attr->inputs; ++i) {
        WD_TRY(
            wd_node_bind_element(builder, X + i, op, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, i));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_node_reshape(const struct wd_desc *op, struct wd_node_builder *builder)
{
    builder->node->op = WD_OP_RESHAPE;
    WD_TRY(wd_node_bind(builder, 0, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
    return wd_node_bind(builder, 1, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
}
