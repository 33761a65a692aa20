/* SPDX-License-Identifier: Apache-2.0
 *
 * What the nodes of a spatial transformer must be: 2-D images in floating point, one transform and
 * one grid an image. */
#include "graph/graph.h"

static cudnnStatus_t check_sampler(const char *op, const struct wd_node *node)
{
    WD_REQUIRE(node->attr.spatial.sampler == CUDNN_SAMPLER_BILINEAR, CUDNN_STATUS_BAD_PARAM,
               "%s: sampler %d is no cudnnSamplerType_t", op, node->attr.spatial.sampler);
    return CUDNN_STATUS_SUCCESS;
}

/* A tensor of this type and rank, with the dims that are given as other than -1. */
static cudnnStatus_t check_tensor(const char *op, const struct wd_graph *graph,
                                  const struct wd_node *node, int slot, int dtype, int rank,
                                  const int64_t *dim)
{
    const struct wd_tensor *tensor = wd_slot(graph, node, slot);
    char name[24];
    char text[160];
    wd_op_slot_name(node->op, slot, name);
    WD_REQUIRE(!(tensor->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "%s: %s is no tensor in memory", op, name);
    WD_REQUIRE(tensor->rank == rank, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
               "%s: %s (%s) has %d dimensions, not %d; there are 2-D transforms only", op, name,
               wd_tensor_text(tensor, text, sizeof text), tensor->rank, rank);
    WD_REQUIRE(tensor->dtype == dtype, CUDNN_STATUS_BAD_PARAM, "%s: %s is %s, another tensor %s",
               op, name, wd_dtype_name(tensor->dtype), wd_dtype_name(dtype));
    WD_REQUIRE(tensor->vect_count == 1 && tensor->reordering == CUDNN_TENSOR_REORDERING_NONE,
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "%s: %s has vectors of channels", op, name);
    for (int d = 0; dim && d < rank; ++d) {
        WD_REQUIRE(dim[d] < 0 || tensor->dim[d] == dim[d], CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: dim[%d]=%lld of %s (%s) should be %lld", op, d, (long long)tensor->dim[d],
                   name, wd_tensor_text(tensor, text, sizeof text), (long long)dim[d]);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_type(const char *op, int dtype)
{
    WD_REQUIRE(dtype == CUDNN_DATA_FLOAT || dtype == CUDNN_DATA_DOUBLE ||
                   dtype == CUDNN_DATA_HALF || dtype == CUDNN_DATA_BFLOAT16,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: tensors of %s; there are fp64, fp32, fp16, bf16", op, wd_dtype_name(dtype));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_grid(const struct wd_graph *graph, const struct wd_node *node)
{
    const char *op = wd_op_info(node->op)->name;
    bool forward = node->op == WD_OP_GRID_FORWARD;
    const struct wd_tensor *grid = wd_slot(graph, node, forward ? 1 : 0);
    int64_t grid_dim[4] = {-1, -1, -1, 2};
    int64_t theta_dim[3] = {grid->dim[0], 2, 3};
    WD_TRY(check_sampler(op, node));
    WD_TRY(check_tensor(op, graph, node, forward ? 1 : 0, grid->dtype, 4, grid_dim));
    WD_TRY(check_tensor(op, graph, node, forward ? 0 : 1, grid->dtype, 3, theta_dim));
    return check_type(op, grid->dtype);
}

cudnnStatus_t wd_rule_sampler(const struct wd_graph *graph, const struct wd_node *node)
{
    const char *op = wd_op_info(node->op)->name;
    bool forward = node->op == WD_OP_SAMPLER_FORWARD;
    const struct wd_tensor *x = wd_slot(graph, node, 0);
    const struct wd_tensor *y = wd_slot(graph, node, forward ? 2 : 1);
    int64_t y_dim[4] = {x->dim[0], x->dim[1], -1, -1};
    WD_TRY(check_sampler(op, node));
    WD_TRY(check_tensor(op, graph, node, 0, x->dtype, 4, NULL));
    WD_TRY(check_tensor(op, graph, node, forward ? 2 : 1, x->dtype, 4, y_dim));
    {
        int64_t grid_dim[4] = {x->dim[0], y->dim[2], y->dim[3], 2};
        WD_TRY(check_tensor(op, graph, node, forward ? 1 : 2, x->dtype, 4, grid_dim));
        if (!forward) {
            WD_TRY(check_tensor(op, graph, node, 3, x->dtype, 4, x->dim));
            WD_TRY(check_tensor(op, graph, node, 4, x->dtype, 4, grid_dim));
        }
    }
    return check_type(op, x->dtype);
}
