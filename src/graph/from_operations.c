/* SPDX-License-Identifier: Apache-2.0
 *
 * One function an operation descriptor: which node it means, which tensors fill which slots, which
 * numbers become attributes and run-time scalars. Rules about shapes and types are the operations'
 * own and are checked by the graph. */
#include <math.h>
#include <string.h>

#include "graph/from_descriptors.h"
#include "graph/pointwise_modes.h"

/* The slots and scalars of operations.def, in its order. */
enum { POINTWISE_X, POINTWISE_B, POINTWISE_T, POINTWISE_Y };
enum { ALPHA1, ALPHA2, POINTWISE_ALPHA, POINTWISE_BETA };
enum { ALPHA, BETA };

static bool is_backward(int mode)
{
    return mode >= CUDNN_POINTWISE_RELU_BWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_BWD;
}

cudnnStatus_t wd_node_pointwise(const struct wd_desc *op, struct wd_node_builder *builder)
{
    const struct wd_desc *pointwise = wd_desc_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    struct wd_pointwise_attr *attr = &builder->node->attr.pointwise;
    double upper = wd_desc_real(pointwise, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP);
    builder->node->op = WD_OP_POINTWISE;
    attr->mode = (int32_t)wd_desc_int(pointwise, CUDNN_ATTR_POINTWISE_MODE);
    attr->compute = (int32_t)wd_desc_int(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC);
    attr->axis = (int32_t)wd_desc_int(pointwise, CUDNN_ATTR_POINTWISE_AXIS);
    attr->propagate_nan = (int32_t)wd_desc_int(pointwise, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION);
    attr->lower_clip = wd_desc_real(pointwise, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP);
    /* callers say "no clip" as the largest number of their type; it must not cut infinity off */
    attr->upper_clip = upper >= (double)3.402823466e38f ? HUGE_VAL : upper;
    attr->lower_slope = wd_desc_real(pointwise, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
    attr->elu_alpha = wd_desc_real(pointwise, CUDNN_ATTR_POINTWISE_ELU_ALPHA);
    attr->softplus_beta = wd_desc_real(pointwise, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA);
    attr->swish_beta = wd_desc_real(pointwise, CUDNN_ATTR_POINTWISE_SWISH_BETA);
    wd_node_scalar(builder, ALPHA1, wd_desc_real(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1));
    wd_node_scalar(builder, ALPHA2, wd_desc_real(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2));
    wd_node_scalar(builder, POINTWISE_ALPHA, 1.0);
    wd_node_scalar(builder, POINTWISE_BETA, 0.0);
    WD_TRY(wd_node_bind(builder, POINTWISE_X, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    if (is_backward(attr->mode)) {
        WD_TRY(wd_node_bind(builder, POINTWISE_B, op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC));
        WD_TRY(wd_node_bind(builder, POINTWISE_T, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
        return wd_node_bind(builder, POINTWISE_Y, op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC);
    }
    /* a tensor that the mode has no use for may be set, and is left alone */
    if (wd_pointwise_operands(attr->mode) >= 2) {
        WD_TRY(wd_node_bind(builder, POINTWISE_B, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    }
    if (wd_pointwise_operands(attr->mode) >= 3) {
        WD_TRY(wd_node_bind(builder, POINTWISE_T, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC));
    }
    return wd_node_bind(builder, POINTWISE_Y, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
}

cudnnStatus_t wd_check_pointwise_operation(struct wd_desc *desc)
{
    const struct wd_desc *pointwise =
        wd_desc_ref(desc, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    bool backward = is_backward((int)wd_desc_int(pointwise, CUDNN_ATTR_POINTWISE_MODE));
    const int needed[2][3] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
         CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC,
         CUDNN_ATTR_OPERATION_POINTWISE_DXDESC},
    };
    for (int i = 0; i < 3; ++i) {
        WD_REQUIRE(wd_desc_has(desc, needed[backward][i]), CUDNN_STATUS_BAD_PARAM,
                   "pointwise operation: %s is required for a %s mode and was not set",
                   wd_attribute(needed[backward][i])->name, backward ? "backward" : "forward");
    }
    return CUDNN_STATUS_SUCCESS;
}

static void copy_list(const struct wd_desc *desc, int attribute, int64_t *list)
{
    const struct wd_value *value = wd_desc_value(desc, attribute);
    for (int64_t i = 0; i < value->count; ++i) list[i] = value->cells[i].i;
}

/* Groups are what makes C of the image a multiple of C of the filter. */
static int64_t groups_of(const struct wd_desc *image, const struct wd_desc *filter)
{
    const struct wd_value *x = wd_desc_value(image, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const struct wd_value *w = wd_desc_value(filter, CUDNN_ATTR_TENSOR_DIMENSIONS);
    int64_t channels;
    if (x->count < 2 || w->count < 2) return 1;
    channels = w->cells[1].i;
    if (channels <= 0 || x->cells[1].i <= 0 || x->cells[1].i % channels != 0) return 1;
    return x->cells[1].i / channels;
}

struct conv_names {
    enum wd_op op;
    int slot[3]; /* attributes of the slots in order */
    int conv;
    int alpha;
    int beta;
    int image;
    int filter;
};

static cudnnStatus_t conv_node(const struct wd_desc *op, struct wd_node_builder *builder,
                               const struct conv_names *names)
{
    const struct wd_desc *conv = wd_desc_ref(op, names->conv);
    struct wd_conv_attr *attr = &builder->node->attr.conv;
    builder->node->op = names->op;
    attr->spatial = (int32_t)wd_desc_int(conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    attr->mode = (int32_t)wd_desc_int(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
    attr->compute = (int32_t)wd_desc_int(conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    attr->math = CUDNN_DEFAULT_MATH;
    attr->groups = groups_of(wd_desc_ref(op, names->image), wd_desc_ref(op, names->filter));
    copy_list(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, attr->pad_before);
    copy_list(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, attr->pad_after);
    copy_list(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, attr->stride);
    copy_list(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, attr->dilation);
    wd_node_scalar(builder, ALPHA, wd_desc_real(op, names->alpha));
    wd_node_scalar(builder, BETA, wd_desc_real(op, names->beta));
    for (int slot = 0; slot < 3; ++slot) {
        WD_TRY(wd_node_bind(builder, slot, op, names->slot[slot]));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_node_conv_fprop(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const struct conv_names names = {
        WD_OP_CONV_FPROP,
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
    };
    return conv_node(op, builder, &names);
}

cudnnStatus_t wd_node_conv_dgrad(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const struct conv_names names = {
        WD_OP_CONV_DGRAD,
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX},
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
    };
    return conv_node(op, builder, &names);
}

cudnnStatus_t wd_node_conv_wgrad(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const struct conv_names names = {
        WD_OP_CONV_WGRAD,
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    };
    return conv_node(op, builder, &names);
}

cudnnStatus_t wd_node_matmul(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const int slots[] = {
        CUDNN_ATTR_OPERATION_MATMUL_ADESC,
        CUDNN_ATTR_OPERATION_MATMUL_BDESC,
        CUDNN_ATTR_OPERATION_MATMUL_CDESC,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC,
    };
    const struct wd_desc *matmul = wd_desc_ref(op, CUDNN_ATTR_OPERATION_MATMUL_DESC);
    struct wd_matmul_attr *attr = &builder->node->attr.matmul;
    int64_t batches = wd_desc_int(op, CUDNN_ATTR_OPERATION_MATMUL_IRREGULARLY_STRIDED_BATCH_COUNT);
    WD_REQUIRE(batches == 1, CUDNN_STATUS_NOT_SUPPORTED,
               "matmul operation: irregularly strided batch count %lld is not 1",
               (long long)batches);
    builder->node->op = WD_OP_MATMUL;
    attr->compute = (int32_t)wd_desc_int(matmul, CUDNN_ATTR_MATMUL_COMP_TYPE);
    attr->padding_value = wd_desc_real(matmul, CUDNN_ATTR_MATMUL_PADDING_VALUE);
    wd_node_scalar(builder, ALPHA, 1.0);
    wd_node_scalar(builder, BETA, 0.0);
    for (int slot = 0; slot < (int)(sizeof slots / sizeof slots[0]); ++slot) {
        WD_TRY(wd_node_bind(builder, slot, op, slots[slot]));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_node_reduction(const struct wd_desc *op, struct wd_node_builder *builder)
{
    const struct wd_desc *reduction = wd_desc_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    struct wd_reduce_attr *attr = &builder->node->attr.reduce;
    builder->node->op = WD_OP_REDUCE;
    attr->op = (int32_t)wd_desc_int(reduction, CUDNN_ATTR_REDUCTION_OPERATOR);
    attr->compute = (int32_t)wd_desc_int(reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE);
    /* the backend has no say in it: a NaN is never lost */
    attr->propagate_nan = 1;
    attr->indices = CUDNN_REDUCE_TENSOR_NO_INDICES;
    attr->index_type = 0;
    wd_node_scalar(builder, ALPHA, 1.0);
    wd_node_scalar(builder, BETA, 0.0);
    WD_TRY(wd_node_bind(builder, 0, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    return wd_node_bind(builder, 1, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
}
