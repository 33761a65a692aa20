/* SPDX-License-Identifier: Apache-2.0
 *
 * What the nodes of the convolution family must be: one to three spatial dimensions, channels that
 * groups divide, the output that the formula gives, types and layouts that can be read and written.
 * The two gradients are held to the same shapes as the forward convolution they belong to. */
#include "graph/conv.h"
#include "graph/graph.h"

enum { SPATIAL_MAX = 3, REORDERED_MULTIPLE = 32 };

/* Tensors by their part in the convolution, with their names in the operation. */
struct part {
    const struct wd_tensor *tensor;
    char name[24];
};

struct parts {
    const char *op;
    struct part x, w, y, z, b;
};

int64_t wd_conv_output_dim(const struct wd_conv_attr *attr, int d, int64_t image, int64_t filter)
{
    __extension__ __int128 window = (__int128)(filter - 1) * attr->dilation[d] + 1;
    __extension__ __int128 room =
        (__int128)image + attr->pad_before[d] + attr->pad_after[d] - window;
    if (room < 0 || attr->stride[d] < 1) return 0;
    room = room / attr->stride[d] + 1;
    return room > INT64_MAX / 1024 ? 0 : (int64_t)room;
}

static struct part part_of(const struct wd_graph *graph, const struct wd_node *node, int slot)
{
    struct part part = {wd_slot(graph, node, slot), ""};
    wd_op_slot_name(node->op, slot, part.name);
    return part;
}

static cudnnStatus_t check_tensor(const char *op, const struct part *part, int rank)
{
    const struct wd_tensor *t = part->tensor;
    bool known = false;
    static const int dtypes[] = {
        CUDNN_DATA_FLOAT,    CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,    CUDNN_DATA_BFLOAT16,
        CUDNN_DATA_INT8,     CUDNN_DATA_UINT8,  CUDNN_DATA_INT32,   CUDNN_DATA_FP8_E4M3,
        CUDNN_DATA_FP8_E5M2, CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x32, CUDNN_DATA_UINT8x4,
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; ++i) known |= dtypes[i] == t->dtype;
    WD_REQUIRE(known, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: tensor %s is %s, which a convolution neither reads nor writes", op, part->name,
               wd_dtype_name(t->dtype));
    WD_REQUIRE(!(t->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "%s: tensor %s is passed by value or opaque", op, part->name);
    WD_REQUIRE(t->rank == rank, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: tensor %s has %d dimensions, not 2 + %d spatial ones", op, part->name, t->rank,
               rank - 2);
    WD_REQUIRE(t->vect_count == 1 || t->vect_dim == 1, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "%s: tensor %s is vectorised along dimension %d, not along its channels", op,
               part->name, t->vect_dim);
    return CUDNN_STATUS_SUCCESS;
}

/* Only the filter of a forward convolution may be reordered, and only as int8x32. */
static cudnnStatus_t check_reordering(const struct parts *parts, const struct part *part,
                                      bool allowed)
{
    const struct wd_tensor *t = part->tensor;
    if (t->reordering == CUDNN_TENSOR_REORDERING_NONE) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(allowed && t->reordering == CUDNN_TENSOR_REORDERING_INT8x32,
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "%s: tensor %s has reordering %d", parts->op,
               part->name, t->reordering);
    WD_REQUIRE(t->vect_count == REORDERED_MULTIPLE && t->dtype == CUDNN_DATA_INT8 &&
                   wd_tensor_extent(t) == wd_tensor_count(t),
               CUDNN_STATUS_BAD_PARAM,
               "%s: tensor %s is reordered, but not a packed int8x32 filter", parts->op,
               part->name);
    WD_REQUIRE(t->dim[0] % REORDERED_MULTIPLE == 0 && t->dim[1] % REORDERED_MULTIPLE == 0,
               CUDNN_STATUS_BAD_PARAM,
               "%s: K=%lld or C=%lld of the reordered tensor %s is no multiple of 32", parts->op,
               (long long)t->dim[0], (long long)t->dim[1], part->name);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_attr(const char *op, const struct wd_conv_attr *attr)
{
    WD_REQUIRE(attr->spatial >= 1, CUDNN_STATUS_BAD_PARAM, "%s: %d spatial dimensions", op,
               attr->spatial);
    WD_REQUIRE(attr->spatial <= SPATIAL_MAX, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
               "%s: %d spatial dimensions are more than %d", op, attr->spatial, SPATIAL_MAX);
    WD_REQUIRE(attr->mode == CUDNN_CONVOLUTION || attr->mode == CUDNN_CROSS_CORRELATION,
               CUDNN_STATUS_BAD_PARAM, "%s: mode %d is no cudnnConvolutionMode_t", op, attr->mode);
    WD_REQUIRE(attr->groups >= 1, CUDNN_STATUS_BAD_PARAM, "%s: group count %lld is not positive",
               op, (long long)attr->groups);
    switch (attr->compute) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_FAST_FLOAT_FOR_FP8: break;
    default:
        return wd_fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "%s: no compute type %s", op,
                       wd_dtype_name(attr->compute));
    }
    for (int d = 0; d < attr->spatial; ++d) {
        WD_REQUIRE(attr->pad_before[d] >= 0 && attr->pad_after[d] >= 0, CUDNN_STATUS_BAD_PARAM,
                   "%s: padding %lld, %lld of spatial dimension %d is negative", op,
                   (long long)attr->pad_before[d], (long long)attr->pad_after[d], d);
        WD_REQUIRE(attr->stride[d] >= 1, CUDNN_STATUS_BAD_PARAM,
                   "%s: stride %lld of spatial dimension %d is not positive", op,
                   (long long)attr->stride[d], d);
        WD_REQUIRE(attr->dilation[d] >= 1, CUDNN_STATUS_BAD_PARAM,
                   "%s: dilation %lld of spatial dimension %d is not positive", op,
                   (long long)attr->dilation[d], d);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* The window is IM2COL's alone: elsewhere the filter's dims say it. */
static cudnnStatus_t check_no_window(const char *op, const struct wd_conv_attr *attr)
{
    for (int d = 0; d < WD_MAX_SPATIAL; ++d) {
        WD_REQUIRE(attr->window[d] == 0, CUDNN_STATUS_BAD_PARAM,
                   "%s: window %lld of spatial dimension %d is given", op,
                   (long long)attr->window[d], d);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_shapes(const struct parts *p, const struct wd_conv_attr *attr)
{
    const int64_t *x = p->x.tensor->dim;
    const int64_t *w = p->w.tensor->dim;
    const int64_t *y = p->y.tensor->dim;
    WD_REQUIRE(x[0] == y[0], CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: %s has batch N=%lld, %s has %lld", p->op, p->x.name, (long long)x[0], p->y.name,
               (long long)y[0]);
    WD_REQUIRE(x[1] % attr->groups == 0 && x[1] / attr->groups == w[1],
               CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: %s has C=%lld channels, %s takes %lld in each of %lld groups", p->op, p->x.name,
               (long long)x[1], p->w.name, (long long)w[1], (long long)attr->groups);
    WD_REQUIRE(w[0] % attr->groups == 0, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: K=%lld of %s is not a multiple of the group count %lld", p->op, (long long)w[0],
               p->w.name, (long long)attr->groups);
    WD_REQUIRE(y[1] == w[0], CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: %s has %lld channels, but K of %s is %lld", p->op, p->y.name, (long long)y[1],
               p->w.name, (long long)w[0]);
    for (int d = 0; d < attr->spatial; ++d) {
        int64_t wanted = wd_conv_output_dim(attr, d, x[2 + d], w[2 + d]);
        WD_REQUIRE(wanted > 0, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: filter extent %lld (dilation %lld) of %s is larger than the padded image's "
                   "%lld + %lld + %lld in spatial dimension %d",
                   p->op, (long long)w[2 + d], (long long)attr->dilation[d], p->w.name,
                   (long long)x[2 + d], (long long)attr->pad_before[d],
                   (long long)attr->pad_after[d], d);
        WD_REQUIRE(y[2 + d] == wanted, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: spatial dimension %d of %s is %lld, the convolution gives %lld", p->op, d,
                   p->y.name, (long long)y[2 + d], (long long)wanted);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* One value a filter: dims 1, K, 1, 1, ... */
static cudnnStatus_t check_bias(const char *op, const struct part *bias, int64_t filters)
{
    const struct wd_tensor *b = bias->tensor;
    for (int d = 0; d < b->rank; ++d) {
        int64_t wanted = d == 1 ? filters : 1;
        WD_REQUIRE(b->dim[d] == wanted, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: dim[%d]=%lld of the bias %s is not %lld", op, d, (long long)b->dim[d],
                   bias->name, (long long)wanted);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_fused(const struct parts *p, const struct wd_conv_attr *attr)
{
    int mode = attr->activation.mode;
    char z_text[160];
    char y_text[160];
    bool forward = mode >= CUDNN_POINTWISE_RELU_FWD && mode < CUDNN_POINTWISE_RELU_BWD;
    WD_REQUIRE(forward || mode == CUDNN_POINTWISE_IDENTITY ||
                   mode == CUDNN_POINTWISE_GELU_APPROX_TANH_FWD,
               CUDNN_STATUS_BAD_PARAM, "%s: mode %d is no forward activation", p->op, mode);
    WD_TRY(check_tensor(p->op, &p->b, attr->spatial + 2));
    WD_TRY(check_reordering(p, &p->b, false));
    WD_TRY(check_bias(p->op, &p->b, p->w.tensor->dim[0]));
    if (!p->z.tensor) return CUDNN_STATUS_SUCCESS;
    WD_TRY(check_tensor(p->op, &p->z, attr->spatial + 2));
    WD_TRY(check_reordering(p, &p->z, false));
    WD_REQUIRE(wd_tensor_same_dims(p->z.tensor, p->y.tensor), CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: the dims of z (%s) differ from those of y (%s)", p->op,
               wd_tensor_text(p->z.tensor, z_text, sizeof z_text),
               wd_tensor_text(p->y.tensor, y_text, sizeof y_text));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_conv(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_conv_attr *attr = &node->attr.conv;
    bool fused = node->op == WD_OP_CONV_FUSED;
    bool forward = fused || node->op == WD_OP_CONV_FPROP;
    int x = node->op == WD_OP_CONV_DGRAD ? 2 : 0;
    int w = node->op == WD_OP_CONV_DGRAD ? 0 : node->op == WD_OP_CONV_WGRAD ? 2 : 1;
    int y = fused ? 4 : forward ? 2 : 1;
    struct parts parts = {
        .op = wd_op_info(node->op)->name,
        .x = part_of(graph, node, x),
        .w = part_of(graph, node, w),
        .y = part_of(graph, node, y),
    };
    WD_TRY(check_attr(parts.op, attr));
    WD_TRY(check_no_window(parts.op, attr));
    WD_TRY(check_tensor(parts.op, &parts.x, attr->spatial + 2));
    WD_TRY(check_tensor(parts.op, &parts.w, attr->spatial + 2));
    WD_TRY(check_tensor(parts.op, &parts.y, attr->spatial + 2));
    WD_TRY(check_reordering(&parts, &parts.x, false));
    WD_TRY(check_reordering(&parts, &parts.w, forward));
    WD_TRY(check_reordering(&parts, &parts.y, false));
    WD_TRY(check_shapes(&parts, attr));
    if (!fused) return CUDNN_STATUS_SUCCESS;
    parts.z = part_of(graph, node, 2);
    parts.b = part_of(graph, node, 3);
    return check_fused(&parts, attr);
}

cudnnStatus_t wd_rule_bias_grad(const struct wd_graph *graph, const struct wd_node *node)
{
    struct parts parts = {
        .op = wd_op_info(node->op)->name,
        .y = part_of(graph, node, 0),
        .b = part_of(graph, node, 1),
    };
    const struct wd_conv_attr *attr = &node->attr.conv;
    int rank = parts.y.tensor->rank;
    WD_REQUIRE(attr->spatial == 0 && attr->groups == 0, CUDNN_STATUS_BAD_PARAM,
               "%s: %d spatial dimensions and %lld groups are given; it has neither", parts.op,
               attr->spatial, (long long)attr->groups);
    WD_TRY(check_no_window(parts.op, attr));
    WD_REQUIRE(rank >= 3 && rank <= 2 + SPATIAL_MAX, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
               "%s: dy has %d dimensions, not 3 to %d", parts.op, rank, 2 + SPATIAL_MAX);
    WD_TRY(check_tensor(parts.op, &parts.y, rank));
    WD_TRY(check_tensor(parts.op, &parts.b, rank));
    WD_TRY(check_reordering(&parts, &parts.y, false));
    WD_TRY(check_reordering(&parts, &parts.b, false));
    return check_bias(parts.op, &parts.b, parts.y.tensor->dim[1]);
}

cudnnStatus_t wd_rule_im2col(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_conv_attr *attr = &node->attr.conv;
    const struct wd_tensor *col;
    struct parts parts = {
        .op = wd_op_info(node->op)->name,
        .x = part_of(graph, node, 0),
        .y = part_of(graph, node, 1),
    };
    int64_t rows = parts.x.tensor->dim[1];
    int64_t columns = parts.x.tensor->dim[0];
    int64_t taps = 1;
    int64_t points = 1; /* both also where there are no channels or no images */
    WD_TRY(check_attr(parts.op, attr));
    WD_TRY(check_tensor(parts.op, &parts.x, attr->spatial + 2));
    WD_TRY(check_reordering(&parts, &parts.x, false));
    for (int d = 0; d < attr->spatial; ++d) {
        int64_t extent = wd_conv_output_dim(attr, d, parts.x.tensor->dim[2 + d], attr->window[d]);
        WD_REQUIRE(attr->window[d] >= 1 && extent > 0, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: filter extent %lld does not fit the padded image in spatial dimension %d",
                   parts.op, (long long)attr->window[d], d);
        WD_REQUIRE(!__builtin_mul_overflow(taps, attr->window[d], &taps) &&
                       !__builtin_mul_overflow(points, extent, &points) &&
                       !__builtin_mul_overflow(rows, attr->window[d], &rows) &&
                       !__builtin_mul_overflow(columns, extent, &columns),
                   CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "%s: the matrix has more than 2^63 elements",
                   parts.op);
    }
    col = parts.y.tensor;
    WD_REQUIRE(col->rank == 2 && col->dim[0] == rows && col->dim[1] == columns &&
                   col->stride[0] == columns && col->stride[1] == 1 && col->vect_count == 1,
               CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: the matrix is not packed, %lld rows by %lld columns", parts.op, (long long)rows,
               (long long)columns);
    WD_REQUIRE(col->dtype == parts.x.tensor->dtype, CUDNN_STATUS_BAD_PARAM,
               "%s: the matrix is %s, x is %s", parts.op, wd_dtype_name(col->dtype),
               wd_dtype_name(parts.x.tensor->dtype));
    return CUDNN_STATUS_SUCCESS;
}
