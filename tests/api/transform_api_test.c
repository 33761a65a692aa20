/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the transforms of tensors and filters. (The rows of their descriptor are in
 * conv_fold_api_test.c.) */
#include <stddef.h>

#include "support/refusal.h"

static const float one = 1.0f;
static int something[4] = {2, 3, 4, 6};

static const int src_dim[4] = {2, 3, 4, 6}, dest_dim[4] = {2, 12, 2, 3}, wrong[4] = {2, 12, 2, 4};
static const int dim5[5] = {2, 3, 4, 6, 1}, folded5[5] = {2, 12, 2, 3, 1};
static const unsigned fold[3] = {2, 2, 1};

#define SRC src->desc, src->data
#define DEST dest->desc, dest->data

static void tensor_rows(void)
{
    cudnnHandle_t h = harness_handle;
    cudnnTensorTransformDescriptor_t t = NULL, t5 = NULL;
    cudnnTensorTransformDescriptor_t fake = (cudnnTensorTransformDescriptor_t)(void *)something;
    cudnnTensorDescriptor_t unset = NULL;
    struct tensor *src, *src5, *dest, *dest_wrong, *dest5;
    char *odd_src, *odd_dest;
    if (!case_begin("transform tensors")) return;
    cudnnCreateTensorTransformDescriptor(&t);
    cudnnCreateTensorTransformDescriptor(&t5);
    cudnnCreateTensorDescriptor(&unset);
    cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NCHW, NULL, NULL, fold,
                                      CUDNN_TRANSFORM_FOLD);
    cudnnSetTensorTransformDescriptor(t5, 5, CUDNN_TENSOR_NCHW, NULL, NULL, fold,
                                      CUDNN_TRANSFORM_FOLD);
    src = tensor_input(CUDNN_DATA_FLOAT, 4, src_dim, LAYOUT_NCHW, -1, 1);
    src5 = tensor_input(CUDNN_DATA_FLOAT, 5, dim5, LAYOUT_NCHW, -1, 1);
    dest = tensor_output(CUDNN_DATA_FLOAT, 4, dest_dim, LAYOUT_NHWC);
    dest_wrong = tensor_output(CUDNN_DATA_FLOAT, 4, wrong, LAYOUT_NCHW);
    dest5 = tensor_output(CUDNN_DATA_FLOAT, 5, folded5, LAYOUT_NCHW);
    odd_src = (char *)src->data + 1;
    odd_dest = (char *)dest->data + 2;
    refusal_guard();
#define EX(status, argument, ...)                                                                  \
    REFUSED(status, cudnnTransformTensorEx, argument, cudnnTransformTensorEx(__VA_ARGS__))
    EX(BAD_PARAM_NULL_POINTER, handle, NULL, t, &one, SRC, &one, DEST);
    EX(BAD_PARAM, handle, (cudnnHandle_t)(void *)something, t, &one, SRC, &one, DEST);
    EX(BAD_PARAM_NULL_POINTER, transDesc, h, NULL, &one, SRC, &one, DEST);
    EX(BAD_PARAM, transDesc, h, fake, &one, SRC, &one, DEST);
    EX(BAD_PARAM_SHAPE_MISMATCH, transDesc, h, t5, &one, SRC, &one, DEST);
    EX(BAD_PARAM_NULL_POINTER, alpha, h, t, NULL, SRC, &one, DEST);
    EX(BAD_PARAM_NULL_POINTER, srcDesc, h, t, &one, NULL, src->data, &one, DEST);
    EX(BAD_PARAM, srcDesc, h, t, &one, unset, src->data, &one, DEST);
    EX(BAD_PARAM_SHAPE_MISMATCH, srcDesc, h, t, &one, src5->desc, src5->data, &one, dest5->desc,
       dest5->data);
    EX(BAD_PARAM_NULL_POINTER, srcData, h, t, &one, src->desc, NULL, &one, DEST);
    EX(BAD_PARAM_MISALIGNED_POINTER, srcData, h, t, &one, src->desc, odd_src, &one, DEST);
    EX(BAD_PARAM_NULL_POINTER, beta, h, t, &one, SRC, NULL, DEST);
    EX(BAD_PARAM_NULL_POINTER, destDesc, h, t, &one, SRC, &one, NULL, dest->data);
    EX(BAD_PARAM, destDesc, h, t, &one, SRC, &one, unset, dest->data);
    EX(BAD_PARAM_SHAPE_MISMATCH, destDesc, h, t, &one, SRC, &one, dest_wrong->desc,
       dest_wrong->data);
    EX(BAD_PARAM_SHAPE_MISMATCH, destDesc, h, t, &one, SRC, &one, dest5->desc, dest5->data);
    EX(BAD_PARAM_SHAPE_MISMATCH, destDesc, h, t, &one, SRC, &one, src->desc, dest->data);
    EX(BAD_PARAM_NULL_POINTER, destData, h, t, &one, SRC, &one, dest->desc, NULL);
    EX(BAD_PARAM_MISALIGNED_POINTER, destData, h, t, &one, SRC, &one, dest->desc, odd_dest);
    EX(BAD_PARAM, destData, h, t, &one, SRC, &one, dest->desc, src->data);
    cudnnDestroyTensorTransformDescriptor(t);
    cudnnDestroyTensorTransformDescriptor(t5);
    cudnnDestroyTensorDescriptor(unset);
    case_end();
}

static cudnnFilterDescriptor_t filter(int rank, const int *dim)
{
    cudnnFilterDescriptor_t made = NULL;
    cudnnCreateFilterDescriptor(&made);
    cudnnSetFilterNdDescriptor(made, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, rank, dim);
    return made;
}

static void filter_rows(void)
{
    cudnnHandle_t h = harness_handle;
    cudnnTensorTransformDescriptor_t t = NULL;
    cudnnFilterDescriptor_t w, v, u, w5, unset = NULL;
    struct tensor *src, *dest;
    char *odd_src, *odd_dest;
    if (!case_begin("transform filters")) return;
    w = filter(4, src_dim), v = filter(4, dest_dim), u = filter(4, wrong);
    w5 = filter(5, dim5);
    cudnnCreateTensorTransformDescriptor(&t);
    cudnnCreateFilterDescriptor(&unset);
    cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NCHW, NULL, NULL, fold,
                                      CUDNN_TRANSFORM_FOLD);
    src = tensor_input(CUDNN_DATA_FLOAT, 4, src_dim, LAYOUT_NCHW, -1, 1);
    dest = tensor_output(CUDNN_DATA_FLOAT, 4, dest_dim, LAYOUT_NCHW);
    odd_src = (char *)src->data + 2;
    odd_dest = (char *)dest->data + 1;
    refusal_guard();
#define FILTER(status, argument, ...)                                                              \
    REFUSED(status, cudnnTransformFilter, argument, cudnnTransformFilter(__VA_ARGS__))
    FILTER(BAD_PARAM_NULL_POINTER, handle, NULL, t, &one, w, src->data, &one, v, dest->data);
    FILTER(BAD_PARAM_NULL_POINTER, transDesc, h, NULL, &one, w, src->data, &one, v, dest->data);
    FILTER(BAD_PARAM_NULL_POINTER, alpha, h, t, NULL, w, src->data, &one, v, dest->data);
    FILTER(BAD_PARAM_NULL_POINTER, srcDesc, h, t, &one, NULL, src->data, &one, v, dest->data);
    FILTER(BAD_PARAM, srcDesc, h, t, &one, unset, src->data, &one, v, dest->data);
    FILTER(BAD_PARAM_SHAPE_MISMATCH, srcDesc, h, t, &one, w5, src->data, &one, v, dest->data);
    FILTER(BAD_PARAM_NULL_POINTER, srcData, h, t, &one, w, NULL, &one, v, dest->data);
    FILTER(BAD_PARAM_MISALIGNED_POINTER, srcData, h, t, &one, w, odd_src, &one, v, dest->data);
    FILTER(BAD_PARAM_NULL_POINTER, beta, h, t, &one, w, src->data, NULL, v, dest->data);
    FILTER(BAD_PARAM_NULL_POINTER, destDesc, h, t, &one, w, src->data, &one, NULL, dest->data);
    FILTER(BAD_PARAM, destDesc, h, t, &one, w, src->data, &one, unset, dest->data);
    FILTER(BAD_PARAM_SHAPE_MISMATCH, destDesc, h, t, &one, w, src->data, &one, u, dest->data);
    FILTER(BAD_PARAM_NULL_POINTER, destData, h, t, &one, w, src->data, &one, v, NULL);
    FILTER(BAD_PARAM_MISALIGNED_POINTER, destData, h, t, &one, w, src->data, &one, v, odd_dest);
    FILTER(BAD_PARAM, destData, h, t, &one, w, src->data, &one, v, src->data);
    cudnnDestroyTensorTransformDescriptor(t);
    cudnnDestroyFilterDescriptor(unset);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyFilterDescriptor(v);
    cudnnDestroyFilterDescriptor(u);
    cudnnDestroyFilterDescriptor(w5);
    case_end();
}

/* A descriptor that was never set changes nothing but the layout. */
static void unset_descriptor(void)
{
    cudnnTensorTransformDescriptor_t t = NULL;
    struct tensor *src, *dest;
    const float zero = 0.0f;
    if (!case_begin("transform by an unset descriptor")) return;
    cudnnCreateTensorTransformDescriptor(&t);
    src = tensor_input(CUDNN_DATA_FLOAT, 4, src_dim, LAYOUT_NCHW, -1, 1);
    dest = tensor_output(CUDNN_DATA_FLOAT, 4, src_dim, LAYOUT_NHWC);
    if (cudnnTransformTensorEx(harness_handle, t, &one, SRC, &zero, DEST) != CUDNN_STATUS_SUCCESS) {
        case_fail("a descriptor that was never set is refused");
    }
    cudnnDestroyTensorTransformDescriptor(t);
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    tensor_rows();
    filter_rows();
    unset_descriptor();
    refusal_report();
    return harness_finish();
}
