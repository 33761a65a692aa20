/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements conv_world.h. */
#include "api/conv_world.h"

#include <string.h>

static const cudnnConvolutionMode_t cross = CUDNN_CROSS_CORRELATION;
static const cudnnDataType_t fp32 = CUDNN_DATA_FLOAT;

cudnnConvolutionDescriptor_t conv_fake(void)
{
    static int no_descriptor[64];
    return (cudnnConvolutionDescriptor_t)(void *)no_descriptor;
}

struct tensor *conv_plain(cudnnDataType_t type, int n, int c, int h, int w)
{
    int dim[4] = {n, c, h, w};
    return tensor_inout(type, 4, dim, LAYOUT_NCHW, -1, 1);
}

void conv_world_begin(struct conv_world *s)
{
    static const int ones[1] = {1};
    static const int w5[5] = {4, 3, 3, 3, 3};
    static const int x3[3] = {2, 3, 36};
    static const int y[4] = {2, 4, 4, 4};
    memset(s, 0, sizeof *s);
    s->h = harness_handle;
    cudnnCreateConvolutionDescriptor(&s->conv);
    cudnnCreateConvolutionDescriptor(&s->unset);
    cudnnCreateConvolutionDescriptor(&s->conv1);
    cudnnCreateConvolutionDescriptor(&s->grouped);
    cudnnSetConvolution2dDescriptor(s->conv, 0, 0, 1, 1, 1, 1, cross, fp32);
    cudnnSetConvolution2dDescriptor(s->grouped, 0, 0, 1, 1, 1, 1, cross, fp32);
    cudnnSetConvolutionGroupCount(s->grouped, 3);
    cudnnSetConvolutionNdDescriptor(s->conv1, 1, ones, ones, ones, cross, fp32);
    cudnnCreateFilterDescriptor(&s->w);
    cudnnCreateFilterDescriptor(&s->w_none);
    cudnnCreateFilterDescriptor(&s->w_half);
    cudnnCreateFilterDescriptor(&s->w_c4);
    cudnnCreateFilterDescriptor(&s->w5);
    cudnnSetFilter4dDescriptor(s->w, fp32, CUDNN_TENSOR_NCHW, 4, 3, 3, 3);
    cudnnSetFilter4dDescriptor(s->w_half, CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW, 4, 3, 3, 3);
    cudnnSetFilter4dDescriptor(s->w_c4, fp32, CUDNN_TENSOR_NCHW, 4, 4, 3, 3);
    cudnnSetFilterNdDescriptor(s->w5, fp32, CUDNN_TENSOR_NCHW, 5, w5);
    cudnnCreateTensorDescriptor(&s->none);
    cudnnCreateActivationDescriptor(&s->relu);
    cudnnCreateActivationDescriptor(&s->relu_unset);
    cudnnSetActivationDescriptor(s->relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0);
    s->x = conv_plain(fp32, 2, 3, 6, 6);
    s->x_half = conv_plain(CUDNN_DATA_HALF, 2, 3, 6, 6);
    s->x_c4 = conv_plain(fp32, 2, 4, 6, 6);
    s->x_small = conv_plain(fp32, 2, 3, 2, 6);
    s->x3 = tensor_input(fp32, 3, x3, LAYOUT_NCHW, -1, 1);
    s->y = conv_plain(fp32, 2, 4, 4, 4);
    s->y_many = conv_plain(fp32, 2, 4, 5, 4);
    s->y_k5 = conv_plain(fp32, 2, 5, 4, 4);
    s->y_n3 = conv_plain(fp32, 3, 4, 4, 4);
    s->y_half = conv_plain(CUDNN_DATA_HALF, 2, 4, 4, 4);
    s->y_nhwc = tensor_inout(fp32, 4, y, LAYOUT_NHWC, -1, 1);
    s->filter = conv_plain(fp32, 4, 3, 3, 3);
    s->b = conv_plain(fp32, 1, 4, 1, 1);
    s->b_bad = conv_plain(fp32, 1, 5, 1, 1);
    s->col = tensor_bytes(2 * 4 * 4 * 27 * 4);
    refusal_guard();
}

void conv_world_end(struct conv_world *s)
{
    cudnnDestroyConvolutionDescriptor(s->conv);
    cudnnDestroyConvolutionDescriptor(s->unset);
    cudnnDestroyConvolutionDescriptor(s->conv1);
    cudnnDestroyConvolutionDescriptor(s->grouped);
    cudnnDestroyFilterDescriptor(s->w);
    cudnnDestroyFilterDescriptor(s->w_none);
    cudnnDestroyFilterDescriptor(s->w_half);
    cudnnDestroyFilterDescriptor(s->w_c4);
    cudnnDestroyFilterDescriptor(s->w5);
    cudnnDestroyTensorDescriptor(s->none);
    cudnnDestroyActivationDescriptor(s->relu);
    cudnnDestroyActivationDescriptor(s->relu_unset);
    case_end();
}
