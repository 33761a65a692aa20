/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution and its searches. */
#include "fault/calls.h"

static const float one = 1.0f, zero = 0.0f;

/* The definitions' engines need no workspace, the fast ones take what is given. */
static cudnnStatus_t forward(struct scene *s)
{
    return cudnnConvolutionForward(s->handle, &one, s->image, s->in[0], s->filter, s->in[1],
                                   s->conv, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0,
                                   &zero, s->image, s->out[0]);
}

static cudnnStatus_t with_workspace(struct scene *s)
{
    cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    size_t bytes = 0;
    void *workspace = NULL;
    cudnnStatus_t status = cudnnGetConvolutionForwardWorkspaceSize(
        s->handle, s->image, s->filter, s->conv, s->image, algorithm, &bytes);
    if (status) return status;
    status = warpdnnMalloc(s->handle, bytes, &workspace);
    if (status) return status;
    status =
        cudnnConvolutionForward(s->handle, &one, s->image, s->in[0], s->filter, s->in[1], s->conv,
                                algorithm, workspace, bytes, &zero, s->image, s->out[0]);
    warpdnnFree(s->handle, workspace);
    return status;
}

static cudnnStatus_t fused(struct scene *s)
{
    return cudnnConvolutionBiasActivationForward(
        s->handle, &one, s->image, s->in[0], s->filter, s->in[1], s->conv,
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &one, s->image, s->in[2], s->channel,
        s->in[3], s->activation, s->image, s->out[0]);
}

static cudnnStatus_t data(struct scene *s)
{
    return cudnnConvolutionBackwardData(s->handle, &one, s->filter, s->in[1], s->image, s->in[0],
                                        s->conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, NULL, 0, &zero,
                                        s->image, s->out[0]);
}

static cudnnStatus_t weights(struct scene *s)
{
    return cudnnConvolutionBackwardFilter(s->handle, &one, s->image, s->in[0], s->image, s->in[2],
                                          s->conv, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, NULL, 0,
                                          &zero, s->filter, s->out[0]);
}

static cudnnStatus_t bias(struct scene *s)
{
    return cudnnConvolutionBackwardBias(s->handle, &one, s->image, s->in[0], &zero, s->channel,
                                        s->out[0]);
}

static cudnnStatus_t im2col(struct scene *s)
{
    return cudnnIm2Col(s->handle, s->image, s->in[0], s->filter, s->conv, s->out[0]);
}

static cudnnStatus_t forward_size(struct scene *s)
{
    size_t bytes;
    return cudnnGetConvolutionForwardWorkspaceSize(
        s->handle, s->image, s->filter, s->conv, s->image, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, &bytes);
}

static cudnnStatus_t data_size(struct scene *s)
{
    size_t bytes;
    return cudnnGetConvolutionBackwardDataWorkspaceSize(s->handle, s->filter, s->image, s->conv,
                                                        s->image, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                                        &bytes);
}

static cudnnStatus_t weights_size(struct scene *s)
{
    size_t bytes;
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(
        s->handle, s->image, s->image, s->conv, s->filter, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
        &bytes);
}

enum { LIST = 4 };

static cudnnStatus_t get_forward(struct scene *s)
{
    cudnnConvolutionFwdAlgoPerf_t list[LIST];
    int count;
    return cudnnGetConvolutionForwardAlgorithm_v7(s->handle, s->image, s->filter, s->conv, s->image,
                                                  LIST, &count, list);
}

static cudnnStatus_t get_data(struct scene *s)
{
    cudnnConvolutionBwdDataAlgoPerf_t list[LIST];
    int count;
    return cudnnGetConvolutionBackwardDataAlgorithm_v7(s->handle, s->filter, s->image, s->conv,
                                                       s->image, LIST, &count, list);
}

static cudnnStatus_t get_weights(struct scene *s)
{
    cudnnConvolutionBwdFilterAlgoPerf_t list[LIST];
    int count;
    return cudnnGetConvolutionBackwardFilterAlgorithm_v7(s->handle, s->image, s->image, s->conv,
                                                         s->filter, LIST, &count, list);
}

/* A search that succeeds must have something to offer. */
static cudnnStatus_t found(cudnnStatus_t status, int count, cudnnStatus_t first)
{
    if (status) return status;
    return count >= 1 && first == CUDNN_STATUS_SUCCESS ? status : CUDNN_STATUS_INTERNAL_ERROR;
}

static cudnnStatus_t find_forward(struct scene *s)
{
    cudnnConvolutionFwdAlgoPerf_t list[LIST];
    int count = 0;
    cudnnStatus_t status = cudnnFindConvolutionForwardAlgorithm(
        s->handle, s->image, s->filter, s->conv, s->image, LIST, &count, list);
    return found(status, count, list[0].status);
}

static cudnnStatus_t find_data(struct scene *s)
{
    cudnnConvolutionBwdDataAlgoPerf_t list[LIST];
    int count = 0;
    cudnnStatus_t status = cudnnFindConvolutionBackwardDataAlgorithm(
        s->handle, s->filter, s->image, s->conv, s->image, LIST, &count, list);
    return found(status, count, list[0].status);
}

static cudnnStatus_t find_weights(struct scene *s)
{
    cudnnConvolutionBwdFilterAlgoPerf_t list[LIST];
    int count = 0;
    cudnnStatus_t status = cudnnFindConvolutionBackwardFilterAlgorithm(
        s->handle, s->image, s->image, s->conv, s->filter, LIST, &count, list);
    return found(status, count, list[0].status);
}

static cudnnStatus_t find_forward_ex(struct scene *s)
{
    cudnnConvolutionFwdAlgoPerf_t list[LIST];
    int count = 0;
    cudnnStatus_t status = cudnnFindConvolutionForwardAlgorithmEx(
        s->handle, s->image, s->in[0], s->filter, s->in[1], s->conv, s->image, s->out[0], LIST,
        &count, list, s->workspace, s->bytes);
    return found(status, count, list[0].status);
}

static cudnnStatus_t find_data_ex(struct scene *s)
{
    cudnnConvolutionBwdDataAlgoPerf_t list[LIST];
    int count = 0;
    cudnnStatus_t status = cudnnFindConvolutionBackwardDataAlgorithmEx(
        s->handle, s->filter, s->in[1], s->image, s->in[0], s->conv, s->image, s->out[0], LIST,
        &count, list, s->workspace, s->bytes);
    return found(status, count, list[0].status);
}

static cudnnStatus_t find_weights_ex(struct scene *s)
{
    cudnnConvolutionBwdFilterAlgoPerf_t list[LIST];
    int count = 0;
    cudnnStatus_t status = cudnnFindConvolutionBackwardFilterAlgorithmEx(
        s->handle, s->image, s->in[0], s->image, s->in[2], s->conv, s->filter, s->out[0], LIST,
        &count, list, s->workspace, s->bytes);
    return found(status, count, list[0].status);
}

static const struct fault_call rows[] = {
    {"cudnnConvolutionForward", forward, NULL, false},
    {"cudnnConvolutionForward with a workspace", with_workspace, NULL, false},
    {"cudnnConvolutionBiasActivationForward", fused, NULL, false},
    {"cudnnConvolutionBackwardData", data, NULL, false},
    {"cudnnConvolutionBackwardFilter", weights, NULL, false},
    {"cudnnConvolutionBackwardBias", bias, NULL, false},
    {"cudnnIm2Col", im2col, NULL, false},
    {"cudnnGetConvolutionForwardWorkspaceSize", forward_size, NULL, false},
    {"cudnnGetConvolutionBackwardDataWorkspaceSize", data_size, NULL, false},
    {"cudnnGetConvolutionBackwardFilterWorkspaceSize", weights_size, NULL, false},
    {"cudnnGetConvolutionForwardAlgorithm_v7", get_forward, NULL, false},
    {"cudnnGetConvolutionBackwardDataAlgorithm_v7", get_data, NULL, false},
    {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", get_weights, NULL, false},
    {"cudnnFindConvolutionForwardAlgorithm", find_forward, NULL, true},
    {"cudnnFindConvolutionBackwardDataAlgorithm", find_data, NULL, true},
    {"cudnnFindConvolutionBackwardFilterAlgorithm", find_weights, NULL, true},
    {"cudnnFindConvolutionForwardAlgorithmEx", find_forward_ex, NULL, true},
    {"cudnnFindConvolutionBackwardDataAlgorithmEx", find_data_ex, NULL, true},
    {"cudnnFindConvolutionBackwardFilterAlgorithmEx", find_weights_ex, NULL, true},
};
const struct fault_calls fault_conv_calls = {rows, (int)(sizeof rows / sizeof rows[0])};
