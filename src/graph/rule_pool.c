/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pooling node must be: a window over each spatial dimension of images with the same number
 * and channels on both sides, every window beginning within the padded image. */
#include "graph/graph.h"

static bool is_type(int dtype, bool backward)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return true;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_INT32: return !backward;
    default: return false;
    }
}

static bool is_int(int64_t value)
{
    return value >= INT32_MIN && value <= INT32_MAX;
}

static cudnnStatus_t check_attr(const char *op, const struct wd_pool_attr *attr, int rank)
{
    WD_REQUIRE(attr->mode >= CUDNN_POOLING_MAX && attr->mode <= CUDNN_POOLING_MAX_DETERMINISTIC,
               CUDNN_STATUS_BAD_PARAM, "%s: mode %d is no pooling mode", op, attr->mode);
    WD_REQUIRE(rank >= 3, CUDNN_STATUS_BAD_PARAM,
               "%s: the tensors have %d dimensions; needed is one behind n and c", op, rank);
    WD_REQUIRE(attr->spatial == rank - 2, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: a window of %d dimensions on tensors of %d, of which n and c have no window",
               op, attr->spatial, rank);
    for (int s = 0; s < attr->spatial; ++s) {
        WD_REQUIRE(attr->window[s] > 0, CUDNN_STATUS_BAD_PARAM,
                   "%s: window[%d]=%lld is not positive", op, s, (long long)attr->window[s]);
        WD_REQUIRE(attr->stride[s] > 0, CUDNN_STATUS_BAD_PARAM,
                   "%s: stride[%d]=%lld is not positive", op, s, (long long)attr->stride[s]);
        WD_REQUIRE(
            attr->window[s] <= INT32_MAX && attr->stride[s] <= INT32_MAX &&
                is_int(attr->pad_before[s]) && is_int(attr->pad_after[s]),
            CUDNN_STATUS_BAD_PARAM,
            "%s: window %lld, stride %lld or padding %lld, %lld of spatial dimension %d does "
            "not fit 32 bits",
            op, (long long)attr->window[s], (long long)attr->stride[s],
            (long long)attr->pad_before[s], (long long)attr->pad_after[s], s);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* `image` is x or dx, `out` is y or dy. Rounding the number of windows up or leaving some out is
 * legal; a window that begins behind the padding is not. */
static cudnnStatus_t check_geometry(const char *op, const struct wd_pool_attr *attr,
                                    const struct wd_tensor *image, const struct wd_tensor *out)
{
    char image_text[160];
    char out_text[160];
    for (int d = 0; d < 2; ++d) {
        WD_REQUIRE(image->dim[d] == out->dim[d], CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: dim[%d]=%lld of the output %s is not that of the image %s", op, d,
                   (long long)out->dim[d], wd_tensor_text(out, out_text, sizeof out_text),
                   wd_tensor_text(image, image_text, sizeof image_text));
    }
    for (int s = 0; s < attr->spatial; ++s) {
        int64_t padded = image->dim[2 + s] + attr->pad_before[s] + attr->pad_after[s];
        int64_t start;
        if (__builtin_mul_overflow(out->dim[2 + s] - 1, attr->stride[s], &start)) start = INT64_MAX;
        WD_REQUIRE(
            start < padded, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "%s: dim[%d]=%lld of the output %s is too many: with stride %lld the last window "
            "begins at %lld, the padded image ends at %lld",
            op, 2 + s, (long long)out->dim[2 + s], wd_tensor_text(out, out_text, sizeof out_text),
            (long long)attr->stride[s], (long long)start, (long long)padded);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_tensor(const char *op, const char *name, const struct wd_tensor *tensor,
                                  const struct wd_tensor *model, bool same_dims)
{
    char text[160];
    char model_text[160];
    WD_REQUIRE(!(tensor->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "%s: %s is no tensor in memory", op, name);
    WD_REQUIRE(tensor->vect_count == 1 || tensor->vect_dim == 1, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "%s: %s is vectorised along dimension %d, needed are channels, dimension 1", op,
               name, tensor->vect_dim);
    WD_REQUIRE(tensor->rank == model->rank && (!same_dims || wd_tensor_same_dims(tensor, model)),
               CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "%s: the dims of %s (%s) do not fit %s", op,
               name, wd_tensor_text(tensor, text, sizeof text),
               wd_tensor_text(model, model_text, sizeof model_text));
    WD_REQUIRE(tensor->dtype == model->dtype, CUDNN_STATUS_BAD_PARAM,
               "%s: %s is %s, another tensor %s", op, name, wd_dtype_name(tensor->dtype),
               wd_dtype_name(model->dtype));
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_type(const char *op, int dtype, bool backward)
{
    WD_REQUIRE(is_type(dtype, backward), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: tensors of %s; there are fp64, fp32, fp16, bf16%s", op, wd_dtype_name(dtype),
               backward ? "" : ", int8, uint8, int32");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t rule_forward(const struct wd_graph *graph, const struct wd_node *node,
                                  const char *op)
{
    const struct wd_tensor *x = wd_slot(graph, node, 0);
    const struct wd_tensor *y = wd_slot(graph, node, 1);
    WD_REQUIRE(x && y, CUDNN_STATUS_BAD_PARAM, "%s: x or y is missing", op);
    WD_TRY(check_tensor(op, "y", y, x, false));
    WD_TRY(check_tensor(op, "x", x, x, false));
    WD_TRY(check_attr(op, &node->attr.pool, x->rank));
    WD_TRY(check_geometry(op, &node->attr.pool, x, y));
    return check_type(op, x->dtype, false);
}

static cudnnStatus_t rule_backward(const struct wd_graph *graph, const struct wd_node *node,
                                   const char *op)
{
    const struct wd_pool_attr *attr = &node->attr.pool;
    const struct wd_tensor *y = wd_slot(graph, node, 0);
    const struct wd_tensor *dy = wd_slot(graph, node, 1);
    const struct wd_tensor *x = wd_slot(graph, node, 2);
    const struct wd_tensor *dx = wd_slot(graph, node, 3);
    WD_REQUIRE(dy && dx, CUDNN_STATUS_BAD_PARAM, "%s: dy or dx is missing", op);
    if (y) WD_TRY(check_tensor(op, "y", y, dy, true));
    if (x) WD_TRY(check_tensor(op, "x", x, dx, true));
    WD_TRY(check_tensor(op, "dy", dy, dx, false));
    WD_TRY(check_tensor(op, "dx", dx, dx, false));
    WD_TRY(check_attr(op, attr, dx->rank));
    WD_REQUIRE(
        x || (attr->mode != CUDNN_POOLING_MAX && attr->mode != CUDNN_POOLING_MAX_DETERMINISTIC),
        CUDNN_STATUS_BAD_PARAM, "%s: the gradient of a maximum needs x", op);
    WD_TRY(check_geometry(op, attr, dx, dy));
    return check_type(op, dx->dtype, true);
}

cudnnStatus_t wd_rule_pool(const struct wd_graph *graph, const struct wd_node *node)
{
    const char *op = wd_op_info(node->op)->name;
    if (node->op == WD_OP_POOL_FORWARD) return rule_forward(graph, node, op);
    return rule_backward(graph, node, op);
}
