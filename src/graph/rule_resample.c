/* SPDX-License-Identifier: Apache-2.0
 *
 * What a resample node must be: a window over each spatial dimension of images with the same number
 * and channels on both sides, as many windows as the padded image holds, an index tensor whose type
 * holds every position in a window. */
#include "graph/graph.h"

/* Beyond this no sum of lengths is counted exactly. */
static const int64_t REACH = INT64_MAX / 16;

static bool is_float(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2: return true;
    default: return false;
    }
}

/* The largest value of an integer of whole bytes; 0 for another type. */
static int64_t largest(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_INT8: return INT8_MAX;
    case CUDNN_DATA_UINT8: return UINT8_MAX;
    case CUDNN_DATA_INT32: return INT32_MAX;
    case CUDNN_DATA_UINT32: return UINT32_MAX;
    case CUDNN_DATA_INT64: return INT64_MAX;
    default: return 0;
    }
}

static cudnnStatus_t check_attr(const char *op, const struct wd_resample_attr *attr, int rank)
{
    WD_REQUIRE(attr->mode >= CUDNN_RESAMPLE_NEAREST &&
                   attr->mode <= CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING,
               CUDNN_STATUS_BAD_PARAM, "%s: mode %d is no cudnnResampleMode_t", op, attr->mode);
    WD_REQUIRE(attr->padding >= CUDNN_ZERO_PAD && attr->padding <= CUDNN_EDGE_VAL_PAD,
               CUDNN_STATUS_BAD_PARAM, "%s: padding mode %d is no cudnnPaddingMode_t", op,
               attr->padding);
    switch (attr->compute) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_INT32: break;
    default:
        return wd_fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                       "%s: compute type %s; there are fp64, fp32, fp16, bf16, int32", op,
                       wd_dtype_name(attr->compute));
    }
    WD_REQUIRE(attr->spatial >= 1 && attr->spatial <= WD_MAX_SPATIAL && attr->spatial == rank - 2,
               CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: windows of %d dimensions on tensors of %d, of which n and c have no window", op,
               attr->spatial, rank);
    for (int s = 0; s < attr->spatial; ++s) {
        WD_REQUIRE(attr->unit[s] > 0 && attr->unit[s] <= REACH, CUDNN_STATUS_BAD_PARAM,
                   "%s: %lld units a pixel of spatial dimension %d", op, (long long)attr->unit[s],
                   s);
        WD_REQUIRE(attr->window[s] > 0 && attr->window[s] <= REACH, CUDNN_STATUS_BAD_PARAM,
                   "%s: window[%d]=%lld/%lld is not positive, or too long to count", op, s,
                   (long long)attr->window[s], (long long)attr->unit[s]);
        WD_REQUIRE(attr->stride[s] > 0 && attr->stride[s] <= REACH, CUDNN_STATUS_BAD_PARAM,
                   "%s: stride[%d]=%lld/%lld is not positive, or too long to count", op, s,
                   (long long)attr->stride[s], (long long)attr->unit[s]);
        WD_REQUIRE(attr->pad_before[s] >= 0 && attr->pad_before[s] <= REACH &&
                       attr->pad_after[s] >= 0 && attr->pad_after[s] <= REACH,
                   CUDNN_STATUS_BAD_PARAM,
                   "%s: padding[%d]=%lld/%lld and %lld/%lld: one is negative, or too long to count",
                   op, s, (long long)attr->pad_before[s], (long long)attr->unit[s],
                   (long long)attr->pad_after[s], (long long)attr->unit[s]);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* `image` is x or dx, `out` is y or dy. */
static cudnnStatus_t check_geometry(const char *op, const struct wd_resample_attr *attr,
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
        int64_t padded;
        int64_t windows;
        WD_REQUIRE(!__builtin_mul_overflow(image->dim[2 + s], attr->unit[s], &padded) &&
                       padded <= REACH,
                   CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                   "%s: dim[%d]=%lld times %lld units a pixel is too long to count", op, 2 + s,
                   (long long)image->dim[2 + s], (long long)attr->unit[s]);
        padded += attr->pad_before[s] + attr->pad_after[s];
        windows = padded < attr->window[s] ? 0 : (padded - attr->window[s]) / attr->stride[s] + 1;
        WD_REQUIRE(
            out->dim[2 + s] == windows, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "%s: dim[%d]=%lld of the output %s should be %lld: 1 + (%lld + %lld/%lld + %lld/%lld - "
            "%lld/%lld) / (%lld/%lld), rounded down (image, paddings, window, stride)",
            op, 2 + s, (long long)out->dim[2 + s], wd_tensor_text(out, out_text, sizeof out_text),
            (long long)windows, (long long)image->dim[2 + s], (long long)attr->pad_before[s],
            (long long)attr->unit[s], (long long)attr->pad_after[s], (long long)attr->unit[s],
            (long long)attr->window[s], (long long)attr->unit[s], (long long)attr->stride[s],
            (long long)attr->unit[s]);
        WD_REQUIRE(image->dim[2 + s] > 0 || windows == 0 || attr->padding != CUDNN_EDGE_VAL_PAD,
                   CUDNN_STATUS_BAD_PARAM,
                   "%s: CUDNN_EDGE_VAL_PAD repeats the edge of an image whose dim[%d] is 0", op,
                   2 + s);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_tensor(const struct wd_graph *graph, const struct wd_node *node,
                                  int slot, const struct wd_tensor *model, bool same_dims)
{
    const char *op = wd_op_info(node->op)->name;
    const struct wd_tensor *tensor = wd_slot(graph, node, slot);
    char name[24];
    char text[160];
    char model_text[160];
    if (!tensor) return CUDNN_STATUS_SUCCESS;
    wd_op_slot_name(node->op, slot, name);
    WD_REQUIRE(!(tensor->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "%s: %s is no tensor in memory", op, name);
    WD_REQUIRE((tensor->vect_count == 1 || tensor->vect_dim == 1) &&
                   tensor->reordering == CUDNN_TENSOR_REORDERING_NONE,
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "%s: %s is reordered, or has vectors of another dimension than channels", op, name);
    WD_REQUIRE(tensor->rank == model->rank && (!same_dims || wd_tensor_same_dims(tensor, model)),
               CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "%s: the dims of %s (%s) do not fit %s", op,
               name, wd_tensor_text(tensor, text, sizeof text),
               wd_tensor_text(model, model_text, sizeof model_text));
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_type(const struct wd_graph *graph, const struct wd_node *node, int slot,
                                bool gradient)
{
    const struct wd_tensor *tensor = wd_slot(graph, node, slot);
    char name[24];
    if (!tensor || is_float(tensor->dtype)) return CUDNN_STATUS_SUCCESS;
    if (!gradient && largest(tensor->dtype) > 0) return CUDNN_STATUS_SUCCESS;
    wd_op_slot_name(node->op, slot, name);
    return wd_fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                   "%s: %s is %s; there are fp64, fp32, fp16, bf16, e4m3, e5m2%s",
                   wd_op_info(node->op)->name, name, wd_dtype_name(tensor->dtype),
                   gradient ? "" : ", int8, uint8, int32, uint32, int64");
}

/* Positions in a window count row by row, padding included. */
static cudnnStatus_t check_index(const char *op, const struct wd_resample_attr *attr,
                                 const struct wd_tensor *idx)
{
    int64_t points = 1;
    if (!idx) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(attr->mode == CUDNN_RESAMPLE_MAXPOOL, CUDNN_STATUS_BAD_PARAM,
               "%s: an index tensor goes with CUDNN_RESAMPLE_MAXPOOL, not with mode %d", op,
               attr->mode);
    WD_REQUIRE(largest(idx->dtype) > 0, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: the index tensor is %s; there are int8, uint8, int32, uint32, int64", op,
               wd_dtype_name(idx->dtype));
    for (int s = 0; s < attr->spatial; ++s) {
        int64_t extent = (attr->window[s] - 1) / attr->unit[s] + 1;
        if (__builtin_mul_overflow(points, extent, &points)) points = INT64_MAX;
    }
    WD_REQUIRE(points - 1 <= largest(idx->dtype), CUDNN_STATUS_BAD_PARAM,
               "%s: %s of the index tensor does not hold the last of a window's %lld positions", op,
               wd_dtype_name(idx->dtype), (long long)points);
    return CUDNN_STATUS_SUCCESS;
}

/* A window's elements can be counted. */
static cudnnStatus_t check_count(const char *op, const struct wd_resample_attr *attr)
{
    int64_t points = 1;
    for (int s = 0; s < attr->spatial; ++s) {
        WD_REQUIRE(!__builtin_mul_overflow(points, attr->window[s] / attr->unit[s] + 3, &points),
                   CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                   "%s: a window has more elements than can be counted", op);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t rule_forward(const struct wd_graph *graph, const struct wd_node *node,
                                  const char *op)
{
    enum { X, Y, IDX };
    const struct wd_resample_attr *attr = &node->attr.resample;
    const struct wd_tensor *x = wd_slot(graph, node, X);
    const struct wd_tensor *y = wd_slot(graph, node, Y);
    WD_TRY(check_tensor(graph, node, X, x, false));
    WD_TRY(check_tensor(graph, node, Y, x, false));
    WD_TRY(check_tensor(graph, node, IDX, y, true));
    WD_TRY(check_attr(op, attr, x->rank));
    WD_TRY(check_geometry(op, attr, x, y));
    WD_TRY(check_count(op, attr));
    for (int slot = X; slot <= Y; ++slot) WD_TRY(check_type(graph, node, slot, false));
    return check_index(op, attr, wd_slot(graph, node, IDX));
}

static cudnnStatus_t rule_backward(const struct wd_graph *graph, const struct wd_node *node,
                                   const char *op)
{
    enum { DY, IDX, X, Y, DX };
    const struct wd_resample_attr *attr = &node->attr.resample;
    const struct wd_tensor *dy = wd_slot(graph, node, DY);
    const struct wd_tensor *dx = wd_slot(graph, node, DX);
    WD_TRY(check_tensor(graph, node, DX, dx, false));
    WD_TRY(check_tensor(graph, node, DY, dx, false));
    WD_TRY(check_tensor(graph, node, X, dx, true));
    WD_TRY(check_tensor(graph, node, Y, dy, true));
    WD_TRY(check_tensor(graph, node, IDX, dy, true));
    WD_TRY(check_attr(op, attr, dx->rank));
    WD_REQUIRE(attr->mode != CUDNN_RESAMPLE_MAXPOOL || wd_slot(graph, node, IDX) ||
                   (wd_slot(graph, node, X) && wd_slot(graph, node, Y)),
               CUDNN_STATUS_BAD_PARAM,
               "%s: the gradient of a maximum needs the index tensor, or x and y", op);
    WD_TRY(check_geometry(op, attr, dx, dy));
    WD_TRY(check_count(op, attr));
    for (int slot = DY; slot <= DX; ++slot) {
        if (slot != IDX) WD_TRY(check_type(graph, node, slot, true));
    }
    return check_index(op, attr, wd_slot(graph, node, IDX));
}

cudnnStatus_t wd_rule_resample(const struct wd_graph *graph, const struct wd_node *node)
{
    const char *op = wd_op_info(node->op)->name;
    if (node->op == WD_OP_RESAMPLE_FORWARD) return rule_forward(graph, node, op);
    return rule_backward(graph, node, op);
}
