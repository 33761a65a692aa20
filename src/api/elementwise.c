/* SPDX-License-Identifier: Apache-2.0
 *
 * Legacy elementwise calls that are pointwise nodes: add, op, scale, set and transform tensor, with
 * the op-tensor descriptor. */
#include <string.h>

#include "api/api.h"
#include "graph/pointwise_modes.h"

enum { X, B, T, Y };
enum { ALPHA1, ALPHA2, ALPHA, BETA };

static void begin(struct wd_single *single, int mode)
{
    wd_single_init(single, WD_OP_POINTWISE);
    single->node.attr.pointwise.mode = mode;
    single->node.attr.pointwise.compute = CUDNN_DATA_FLOAT;
    for (int i = 0; i < 3; ++i) wd_single_scalar(single, i, 1.0);
}

/* Every dimension of `from` is that of `to`, or 1 where `repeat` allows it. */
static cudnnStatus_t check_dims(const char *function, const struct cudnnTensorStruct *from,
                                const char *from_name, const struct cudnnTensorStruct *to,
                                const char *to_name, bool repeat)
{
    const struct wd_tensor *a = &from->tensor;
    const struct wd_tensor *b = &to->tensor;
    char a_text[160];
    char b_text[160];
    bool fits = a->rank == b->rank;
    for (int d = 0; fits && d < a->rank; ++d) {
        fits = a->dim[d] == b->dim[d] || (repeat && a->dim[d] == 1);
    }
    if (fits) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                      "the dims of %s (%s) are not those of %s (%s)%s", from_name,
                      wd_tensor_text(a, a_text, sizeof a_text), to_name,
                      wd_tensor_text(b, b_text, sizeof b_text), repeat ? ", nor 1" : "");
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha,
                             const cudnnTensorDescriptor_t aDesc, const void *A, const void *beta,
                             const cudnnTensorDescriptor_t cDesc, void *C)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(aDesc, WD_DESC_TENSOR);
    WD_DESC_SET(cDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_ARG(aDesc->tensor.dtype == cDesc->tensor.dtype, CUDNN_STATUS_BAD_PARAM,
           "aDesc is %s, but cDesc is %s", wd_dtype_name(aDesc->tensor.dtype),
           wd_dtype_name(cDesc->tensor.dtype));
    WD_TRY(check_dims(__func__, aDesc, "aDesc", cDesc, "cDesc", true));
    WD_IN_PLACE(C, cDesc, A, aDesc);
    begin(&single, CUDNN_POINTWISE_IDENTITY);
    WD_BIND(&single, X, aDesc, A);
    WD_BIND(&single, Y, cDesc, C);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, cDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, cDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void *alpha,
                                   const cudnnTensorDescriptor_t xDesc, const void *x,
                                   const void *beta, const cudnnTensorDescriptor_t yDesc, void *y)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_TRY(check_dims(__func__, xDesc, "xDesc", yDesc, "yDesc", false));
    WD_IN_PLACE(y, yDesc, x, xDesc);
    begin(&single, CUDNN_POINTWISE_IDENTITY);
    WD_BIND(&single, X, xDesc, x);
    WD_BIND(&single, Y, yDesc, y);
    /* as recorded: the scalars have the type that goes with x */
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, xDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, xDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t yDesc, void *y,
                               const void *alpha)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    begin(&single, CUDNN_POINTWISE_IDENTITY);
    WD_BIND(&single, X, yDesc, y);
    WD_BIND(&single, Y, yDesc, y);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, yDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t yDesc, void *y,
                             const void *valuePtr)
{
    struct wd_single single;
    struct wd_tensor value;
    WD_HANDLE(handle);
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_ARG(valuePtr != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "valuePtr is null");
    memset(&value, 0, sizeof value);
    /* as recorded: one value for all types but fp64 and int32 is a float, as alpha is */
    value.dtype =
        yDesc->tensor.dtype == CUDNN_DATA_DOUBLE || yDesc->tensor.dtype == CUDNN_DATA_INT32
            ? yDesc->tensor.dtype
            : CUDNN_DATA_FLOAT;
    value.vect_count = 1;
    value.flags = WD_BY_VALUE;
    value.rank = yDesc->tensor.rank;
    for (int d = 0; d < value.rank; ++d) value.dim[d] = value.stride[d] = 1;
    begin(&single, CUDNN_POINTWISE_IDENTITY);
    wd_single_bind(&single, X, &value, valuePtr, "valuePtr");
    WD_BIND(&single, Y, yDesc, y);
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t *opTensorDesc)
{
    return WD_DESC_CREATE(WD_DESC_OP_TENSOR, opTensorDesc);
}

cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc)
{
    return WD_DESC_DESTROY(WD_DESC_OP_TENSOR, opTensorDesc);
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc,
                                         cudnnOpTensorOp_t opTensorOp,
                                         cudnnDataType_t opTensorCompType,
                                         cudnnNanPropagation_t opTensorNanOpt)
{
    int compute = (int)opTensorCompType;
    WD_DESC(opTensorDesc, WD_DESC_OP_TENSOR);
    WD_ARG((int)opTensorOp >= CUDNN_OP_TENSOR_ADD && (int)opTensorOp <= CUDNN_OP_TENSOR_NOT,
           CUDNN_STATUS_BAD_PARAM, "opTensorOp=%d is no cudnnOpTensorOp_t", (int)opTensorOp);
    WD_ARG(compute == CUDNN_DATA_FLOAT || compute == CUDNN_DATA_DOUBLE ||
               compute == CUDNN_DATA_HALF || compute == CUDNN_DATA_BFLOAT16,
           CUDNN_STATUS_BAD_PARAM, "opTensorCompType=%d (%s) is none of fp32, fp64, fp16, bf16",
           compute, wd_dtype_name(compute));
    WD_ARG((int)opTensorNanOpt == CUDNN_NOT_PROPAGATE_NAN ||
               (int)opTensorNanOpt == CUDNN_PROPAGATE_NAN,
           CUDNN_STATUS_BAD_PARAM, "opTensorNanOpt=%d is no cudnnNanPropagation_t",
           (int)opTensorNanOpt);
    opTensorDesc->op = (int32_t)opTensorOp;
    opTensorDesc->compute = compute;
    opTensorDesc->propagate_nan = (int32_t)opTensorNanOpt;
    opTensorDesc->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetOpTensorDescriptor(const cudnnOpTensorDescriptor_t opTensorDesc,
                                         cudnnOpTensorOp_t *opTensorOp,
                                         cudnnDataType_t *opTensorCompType,
                                         cudnnNanPropagation_t *opTensorNanOpt)
{
    WD_DESC(opTensorDesc, WD_DESC_OP_TENSOR);
    if (opTensorOp) *opTensorOp = (cudnnOpTensorOp_t)opTensorDesc->op;
    if (opTensorCompType) *opTensorCompType = (cudnnDataType_t)opTensorDesc->compute;
    if (opTensorNanOpt) *opTensorNanOpt = (cudnnNanPropagation_t)opTensorDesc->propagate_nan;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t opTensorDesc,
                            const void *alpha1, const cudnnTensorDescriptor_t aDesc, const void *A,
                            const void *alpha2, const cudnnTensorDescriptor_t bDesc, const void *B_,
                            const void *beta, const cudnnTensorDescriptor_t cDesc, void *C)
{
    static const int modes[] = {
        [CUDNN_OP_TENSOR_ADD] = CUDNN_POINTWISE_ADD,
        [CUDNN_OP_TENSOR_MUL] = CUDNN_POINTWISE_MUL,
        [CUDNN_OP_TENSOR_MIN] = CUDNN_POINTWISE_MIN,
        [CUDNN_OP_TENSOR_MAX] = CUDNN_POINTWISE_MAX,
        [CUDNN_OP_TENSOR_SQRT] = CUDNN_POINTWISE_SQRT,
        [CUDNN_OP_TENSOR_NOT] = WD_POINTWISE_ONE_MINUS,
    };
    struct wd_single single;
    int mode;
    int scalar_type;
    bool binary;
    WD_HANDLE(handle);
    WD_DESC_SET(opTensorDesc, WD_DESC_OP_TENSOR);
    mode = modes[opTensorDesc->op];
    binary = wd_pointwise_operands(mode) == 2;
    WD_DESC_SET(aDesc, WD_DESC_TENSOR);
    WD_DESC_SET(cDesc, WD_DESC_TENSOR);
    WD_ARG(alpha1 != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha1 is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_TRY(check_dims(__func__, aDesc, "aDesc", cDesc, "cDesc", false));
    if (binary) {
        WD_DESC_SET(bDesc, WD_DESC_TENSOR);
        WD_ARG(alpha2 != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha2 is null");
        WD_TRY(check_dims(__func__, bDesc, "bDesc", cDesc, "cDesc", true));
        WD_TRY(wd_check_in_place(__func__, C, cDesc, B_, bDesc,
                                 &(const struct wd_place_names){"C", "cDesc", "B", "bDesc"}));
    }
    WD_IN_PLACE(C, cDesc, A, aDesc);
    /* the scalars have the compute type, which is double or read as float */
    scalar_type = opTensorDesc->compute == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    begin(&single, mode);
    single.attr_desc = "opTensorDesc";
    single.node.attr.pointwise.compute = opTensorDesc->compute;
    single.node.attr.pointwise.propagate_nan = opTensorDesc->propagate_nan;
    WD_BIND(&single, X, aDesc, A);
    if (binary) wd_bind(&single, B, &bDesc->tensor, "bDesc", B_, "B");
    WD_BIND(&single, Y, cDesc, C);
    wd_single_scalar(&single, ALPHA1, wd_scalar(alpha1, scalar_type));
    if (binary) wd_single_scalar(&single, ALPHA2, wd_scalar(alpha2, scalar_type));
    wd_single_scalar(&single, BETA, wd_scalar(beta, scalar_type));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}
