/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: null pointers and null handles (null.def), each among valid arguments.
 */
#include "golden.h"

#include <string.h>

static cudnnTensorDescriptor_t t, t2;
static cudnnFilterDescriptor_t f;
static cudnnConvolutionDescriptor_t c;
static cudnnPoolingDescriptor_t p;
static cudnnActivationDescriptor_t a;
static cudnnOpTensorDescriptor_t o;
static cudnnReduceTensorDescriptor_t r;
static cudnnTensorTransformDescriptor_t x;

/* Room for every output that a call with a hole may still write. */
static int v[64];
static unsigned u[16], n;
static double d = 1;
static size_t size;
static int64_t n64;
static cudaStream_t stream;
static cudnnDataType_t type;
static cudnnTensorFormat_t format;
static cudnnConvolutionMode_t mode;
static cudnnPoolingMode_t pmode;
static cudnnActivationMode_t amode;
static cudnnNanPropagation_t nan_opt;
static cudnnMathType_t math;
static cudnnReorderType_t reorder;
static cudnnOpTensorOp_t op;
static cudnnFoldingDirection_t fold;

/* A fresh set for each case: a call with a hole may leave a descriptor in any state. */
static void prepare(void)
{
    lib.CreateTensorDescriptor(&t);
    lib.CreateTensorDescriptor(&t2);
    lib.CreateFilterDescriptor(&f);
    lib.CreateConvolutionDescriptor(&c);
    lib.CreatePoolingDescriptor(&p);
    lib.CreateActivationDescriptor(&a);
    lib.CreateOpTensorDescriptor(&o);
    lib.CreateReduceTensorDescriptor(&r);
    lib.CreateTensorTransformDescriptor(&x);
    lib.SetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 6, 6);
    lib.SetFilter4dDescriptor(f, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 3, 3, 3);
    lib.SetConvolution2dDescriptor(c, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    lib.SetPooling2dDescriptor(p, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2);
    lib.SetActivationDescriptor(a, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0);
    lib.SetOpTensorDescriptor(o, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN);
    lib.SetReduceTensorDescriptor(r, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
                                  CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES);
    lib.SetTensorTransformDescriptor(x, 4, CUDNN_TENSOR_NCHW, NULL, NULL, NULL,
                                     CUDNN_TRANSFORM_FOLD);
    memset(v, 0, sizeof v);
    memset(u, 0, sizeof u);
}

static void clean(void)
{
    lib.DestroyTensorDescriptor(t);
    lib.DestroyTensorDescriptor(t2);
    lib.DestroyFilterDescriptor(f);
    lib.DestroyConvolutionDescriptor(c);
    lib.DestroyPoolingDescriptor(p);
    lib.DestroyActivationDescriptor(a);
    lib.DestroyOpTensorDescriptor(o);
    lib.DestroyReduceTensorDescriptor(r);
    lib.DestroyTensorTransformDescriptor(x);
}

void cases_null(void)
{
#define NULL_CALL(name, ...)                                                                       \
    if (gd_host_case("null/" #name)) {                                                             \
        prepare();                                                                                 \
        gd_status("call", (__VA_ARGS__));                                                          \
        clean();                                                                                   \
        gd_end();                                                                                  \
    }
#include "null.def"
#undef NULL_CALL
}
