/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of the data with strides above 1 said as one with stride 1: blocks of `stride` pixels
 * of dx become channels. With front zeros before the filter such that pad + front is a multiple of
 * the stride, and back zeros behind it that fill its last block,
 *
 *     y[o] = sum over t of x[stride o - pad + t] w[t]
 *          = sum over T, phase of X[o - (pad + front) / stride + T][phase] W[T][phase]
 *
 * where X and W are x and the padded w in blocks, channel (phase, c) of X being phase * C + c. dy gets zeros behind it, for the folded
 * convolution has further output points. Channels and filters are filled up with zeros towards
 * multiples of 8, as recorded, so that tensor cores take them. Pure functions of descriptors. */
#include <limits.h>
#include <string.h>

#include "api/conv.h"
#include "api/transform.h"
#include "base/sizes.h"
#include "graph/conv.h"

enum { CHANNEL_MULTIPLE = 8 };

/* Along one spatial dimension. */
struct folded_axis {
    int64_t block;  /* the stride */
    int64_t front;  /* zeros before the filter */
    int64_t back;   /* and behind it */
    int64_t filter; /* in blocks, as the rest */
    int64_t image;
    int64_t pad;
    int64_t dy_after; /* zeros behind dy */
    int64_t cut;      /* what the last block has beyond dx */
};

struct folding {
    int spatial;
    struct folded_axis axis[WD_MAX_SPATIAL];
    int64_t channels_after; /* zeros behind C of filter and dx */
    int64_t filters_after;  /* behind K of filter and dy */
};

static cudnnStatus_t fold_axis(const char *function, const struct wd_conv_call *call, int d,
                               struct folded_axis *axis)
{
    const struct cudnnConvolutionStruct *conv = call->conv;
    int64_t block = conv->stride[d];
    int64_t filter = call->w->tensor.dim[2 + d];
    int64_t image = call->x->tensor.dim[2 + d];
    int64_t window;
    if (block > 1 && conv->dilation[d] > 1 && filter > 1) {
        return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED,
                          "convDesc: with dilation %d in spatial dimension %d its stride %lld is "
                          "not folded",
                          conv->dilation[d], d, (long long)block);
    }
    axis->block = block;
    axis->front = (block - conv->pad[d] % block) % block;
    axis->pad = (conv->pad[d] + axis->front) / block;
    axis->filter = wd_ceil_div(filter + axis->front, block);
    axis->back = axis->filter * block - filter - axis->front;
    axis->image = wd_ceil_div(image, block);
    axis->cut = axis->image * block - image;
    window = (axis->filter - 1) * conv->dilation[d] + 1;
    axis->dy_after = axis->image + 2 * axis->pad - window + 1 - call->y->tensor.dim[2 + d];
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t plan_folding(const char *function, const struct wd_conv_call *call,
                                  struct folding *folding)
{
    const struct cudnnConvolutionStruct *conv = call->conv;
    int64_t blocks = 1;
    int64_t c = call->w->tensor.dim[1];
    int64_t k = call->w->tensor.dim[0];
    memset(folding, 0, sizeof *folding);
    folding->spatial = conv->spatial;
    for (int d = 0; d < conv->spatial; ++d) {
        WD_TRY(fold_axis(function, call, d, &folding->axis[d]));
        if (__builtin_mul_overflow(blocks, folding->axis[d].block, &blocks) || blocks > INT_MAX) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "convDesc: a block of its strides has more than 2^31 pixels");
        }
    }
    if (blocks > 1 && conv->mode == CUDNN_CONVOLUTION) {
        return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED,
                          "convDesc: strides are not folded in mode CONVOLUTION, whose taps run "
                          "against the pixels of a block");
    }
    if (blocks > 1 && conv->groups > 1) {
        return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED,
                          "convDesc: strides are not folded with %d groups, whose channels would "
                          "not lie together",
                          conv->groups);
    }
    if (conv->groups > 1) return CUDNN_STATUS_SUCCESS; /* each would need its own zeros */
    folding->channels_after =
        wd_ceil_div(c * blocks, CHANNEL_MULTIPLE) * CHANNEL_MULTIPLE / blocks - c;
    folding->filters_after = wd_ceil_div(k, CHANNEL_MULTIPLE) * CHANNEL_MULTIPLE - k;
    return CUDNN_STATUS_SUCCESS;
}

/* A packed tensor of dims first, second and one number an axis. */
static cudnnStatus_t shape(const char *function, const char *name, const struct folding *folding,
                           int format, int dtype, int64_t first, int64_t second,
                           const int64_t *space, struct wd_tensor *tensor)
{
    int dims[WD_MAX_RANK];
    int64_t wide[WD_MAX_RANK] = {first, second};
    memcpy(wide + 2, space, sizeof *space * (size_t)folding->spatial);
    for (int d = 0; d < folding->spatial + 2; ++d) {
        if (wide[d] > INT_MAX) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "%s: folded dimension %d is %lld, more than the API's int can say",
                              name, d, (long long)wide[d]);
        }
        dims[d] = (int)wide[d];
    }
    return wd_tensor_fill(function, tensor, format, dtype, folding->spatial + 2, dims, name, NULL,
                          NULL);
}

struct folded {
    struct wd_tensor w, dy, dx;
};

static cudnnStatus_t shapes(const char *function, const struct wd_conv_call *call,
                            const struct folding *f, int format, struct folded *folded)
{
    const struct wd_tensor *w = &call->w->tensor;
    const struct wd_tensor *dy = &call->y->tensor;
    const struct wd_tensor *dx = &call->x->tensor;
    int64_t filter[WD_MAX_SPATIAL];
    int64_t output[WD_MAX_SPATIAL];
    int64_t image[WD_MAX_SPATIAL];
    int64_t blocks = 1;
    int64_t c;
    int64_t all;
    for (int d = 0; d < f->spatial; ++d) {
        filter[d] = f->axis[d].filter;
        image[d] = f->axis[d].image;
        output[d] = dy->dim[2 + d] + f->axis[d].dy_after;
        blocks *= f->axis[d].block;
    }
    if (__builtin_mul_overflow(w->dim[1] + f->channels_after, blocks, &c) ||
        __builtin_mul_overflow(c, (int64_t)call->conv->groups, &all)) {
        return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                          "foldedGradDesc: there are more than 2^63 folded channels");
    }
    WD_TRY(shape(function, "foldedFilterDesc", f, format, w->dtype, w->dim[0] + f->filters_after, c,
                 filter, &folded->w));
    WD_TRY(shape(function, "paddedDiffDesc", f, format, dy->dtype, dy->dim[0],
                 dy->dim[1] + f->filters_after, output, &folded->dy));
    return shape(function, "foldedGradDesc", f, format, dx->dtype, dx->dim[0], all, image,
                 &folded->dx);
}

static void set_tensor(cudnnTensorDescriptor_t descriptor, const struct wd_tensor *tensor,
                       int format)
{
    descriptor->tensor = *tensor;
    descriptor->declared_dtype = tensor->dtype;
    descriptor->declared_format = format;
    descriptor->head.set = 1;
}

static void set_filter(cudnnFilterDescriptor_t descriptor, const struct wd_tensor *tensor,
                       int format)
{
    descriptor->tensor = *tensor;
    descriptor->declared_dtype = tensor->dtype;
    descriptor->declared_format = format;
    descriptor->head.set = 1;
}

static void set_convolution(cudnnConvolutionDescriptor_t descriptor,
                            const struct cudnnConvolutionStruct *from, const struct folding *f)
{
    struct wd_descriptor head = descriptor->head;
    *descriptor = *from;
    descriptor->head = head;
    descriptor->head.set = 1;
    for (int d = 0; d < f->spatial; ++d) {
        descriptor->pad[d] = (int32_t)f->axis[d].pad;
        descriptor->stride[d] = 1;
    }
}

/* A transform that pads nothing yet. */
static void set_transform(cudnnTensorTransformDescriptor_t transform, const struct folding *f,
                          int format, int direction, bool blocks)
{
    struct wd_descriptor head = transform->head;
    memset(transform, 0, sizeof *transform);
    transform->head = head;
    transform->head.set = 1;
    transform->rank = f->spatial + 2;
    transform->format = format;
    transform->direction = direction;
    for (int d = 0; blocks && d < f->spatial; ++d) {
        transform->fold[d] = (uint32_t)f->axis[d].block;
    }
}

/* The order of a tensor that was given by strides: NHWC where channels lie together, but for what
 * is packed the other way. */
static int format_of(const struct cudnnTensorStruct *tensor)
{
    const struct wd_tensor *t = &tensor->tensor;
    int64_t stride[WD_MAX_RANK];
    if (tensor->declared_format >= 0) return tensor->declared_format;
    wd_strides_nchw(t->dim, t->rank, stride);
    if (memcmp(stride, t->stride, sizeof *stride * (size_t)t->rank) == 0) return CUDNN_TENSOR_NCHW;
    return t->stride[1] == 1 ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

/* The handle is not looked at: there is nothing that depends on a device. */
cudnnStatus_t cudnnGetFoldedConvBackwardDataDescriptors(
    const cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t gradDesc, const cudnnTensorFormat_t transformFormat,
    cudnnFilterDescriptor_t foldedFilterDesc, cudnnTensorDescriptor_t paddedDiffDesc,
    cudnnConvolutionDescriptor_t foldedConvDesc, cudnnTensorDescriptor_t foldedGradDesc,
    cudnnTensorTransformDescriptor_t filterFoldTransDesc,
    cudnnTensorTransformDescriptor_t diffPadTransDesc,
    cudnnTensorTransformDescriptor_t gradFoldTransDesc,
    cudnnTensorTransformDescriptor_t gradUnfoldTransDesc)
{
    struct wd_conv_call call = {WD_CONV_QUERY(DGRAD, gradDesc, filterDesc, diffDesc)};
    int format = (int)transformFormat;
    int back = CUDNN_TENSOR_NCHW;
    struct wd_single single;
    struct folding f;
    struct folded folded = {0};
    (void)handle;
    WD_DESC(foldedFilterDesc, WD_DESC_FILTER);
    WD_DESC(paddedDiffDesc, WD_DESC_TENSOR);
    WD_DESC(foldedConvDesc, WD_DESC_CONVOLUTION);
    WD_DESC(foldedGradDesc, WD_DESC_TENSOR);
    WD_DESC(filterFoldTransDesc, WD_DESC_TRANSFORM);
    WD_DESC(diffPadTransDesc, WD_DESC_TRANSFORM);
    WD_DESC(gradFoldTransDesc, WD_DESC_TRANSFORM);
    WD_DESC(gradUnfoldTransDesc, WD_DESC_TRANSFORM);
    WD_TRY(wd_conv_build(&call, &single));
    WD_TRY(wd_pass_single(__func__, &single, wd_rule_conv(&single.graph, &single.node)));
    WD_ARG(format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC,
           CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "transformFormat=%d is neither NCHW nor NHWC",
           format);
    WD_ARG(filterDesc->tensor.vect_count == 1 && gradDesc->tensor.vect_count == 1 &&
               diffDesc->tensor.vect_count == 1,
           CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
           "filterDesc, diffDesc or gradDesc has vectors of channels");
    WD_TRY(plan_folding(__func__, &call, &f));
    WD_TRY(shapes(__func__, &call, &f, format, &folded));
    /* nothing fails from here on: outputs are set all or none */
    back = format_of(gradDesc);
    set_transform(filterFoldTransDesc, &f, format, CUDNN_TRANSFORM_FOLD, true);
    set_transform(diffPadTransDesc, &f, format, CUDNN_TRANSFORM_FOLD, false);
    set_transform(gradFoldTransDesc, &f, format, CUDNN_TRANSFORM_FOLD, true);
    set_transform(gradUnfoldTransDesc, &f, back, CUDNN_TRANSFORM_UNFOLD, true);
    filterFoldTransDesc->after[0] = diffPadTransDesc->after[1] = (int32_t)f.filters_after;
    filterFoldTransDesc->after[1] = gradFoldTransDesc->after[1] = (int32_t)f.channels_after;
    gradUnfoldTransDesc->after[1] = (int32_t)-f.channels_after;
    for (int d = 0; d < f.spatial; ++d) {
        filterFoldTransDesc->before[2 + d] = (int32_t)f.axis[d].front;
        filterFoldTransDesc->after[2 + d] = (int32_t)f.axis[d].back;
        diffPadTransDesc->after[2 + d] = (int32_t)f.axis[d].dy_after;
        gradUnfoldTransDesc->after[2 + d] = (int32_t)-f.axis[d].cut;
    }
    set_convolution(foldedConvDesc, convDesc, &f);
    set_filter(foldedFilterDesc, &folded.w, format);
    set_tensor(paddedDiffDesc, &folded.dy, format);
    set_tensor(foldedGradDesc, &folded.dx, format);
    return CUDNN_STATUS_SUCCESS;
}
