/* SPDX-License-Identifier: Apache-2.0
 *
 * Reduction descriptors and cudnnReduceTensor. Indices are packed in the order of C's dims, count
 * along the reduced dims (the last one fastest) and are unsigned; all four widths are taken. Only
 * MIN, MAX and AMAX give them, other operators pass over the wish. Equal dims of A and C reduce
 * nothing: C is what the operator makes of single elements. */
#include "api/api.h"
#include "graph/reduce_shape.h"

enum { X, Y, INDICES };
enum { ALPHA, BETA };

struct cudnnReduceTensorStruct {
    struct wd_descriptor head;
    struct wd_reduce_attr attr;
};

cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t *reduceTensorDesc)
{
    return WD_DESC_CREATE(WD_DESC_REDUCE, reduceTensorDesc);
}

cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc)
{
    return WD_DESC_DESTROY(WD_DESC_REDUCE, reduceTensorDesc);
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                             cudnnReduceTensorOp_t reduceTensorOp,
                                             cudnnDataType_t reduceTensorCompType,
                                             cudnnNanPropagation_t reduceTensorNanOpt,
                                             cudnnReduceTensorIndices_t reduceTensorIndices,
                                             cudnnIndicesType_t reduceTensorIndicesType)
{
    int op = (int)reduceTensorOp;
    int compute = (int)reduceTensorCompType;
    int nan = (int)reduceTensorNanOpt;
    int indices = (int)reduceTensorIndices;
    int width = (int)reduceTensorIndicesType;
    WD_DESC(reduceTensorDesc, WD_DESC_REDUCE);
    WD_ARG(op >= CUDNN_REDUCE_TENSOR_ADD && op <= CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS,
           CUDNN_STATUS_BAD_PARAM, "reduceTensorOp=%d is no cudnnReduceTensorOp_t", op);
    WD_ARG(compute == CUDNN_DATA_FLOAT || compute == CUDNN_DATA_DOUBLE ||
               compute == CUDNN_DATA_HALF,
           CUDNN_STATUS_BAD_PARAM, "reduceTensorCompType=%d (%s) is none of fp32, fp64, fp16",
           compute, wd_dtype_name(compute));
    WD_ARG(nan == CUDNN_NOT_PROPAGATE_NAN || nan == CUDNN_PROPAGATE_NAN, CUDNN_STATUS_BAD_PARAM,
           "reduceTensorNanOpt=%d is no cudnnNanPropagation_t", nan);
    WD_ARG(indices == CUDNN_REDUCE_TENSOR_NO_INDICES ||
               indices == CUDNN_REDUCE_TENSOR_FLATTENED_INDICES,
           CUDNN_STATUS_BAD_PARAM, "reduceTensorIndices=%d is no cudnnReduceTensorIndices_t",
           indices);
    WD_ARG(width >= CUDNN_32BIT_INDICES && width <= CUDNN_8BIT_INDICES, CUDNN_STATUS_BAD_PARAM,
           "reduceTensorIndicesType=%d is no cudnnIndicesType_t", width);
    reduceTensorDesc->attr = (struct wd_reduce_attr){.op = op,
                                                     .compute = compute,
                                                     .propagate_nan = nan,
                                                     .indices = indices,
                                                     .index_type = width};
    reduceTensorDesc->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReduceTensorDescriptor(const cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                             cudnnReduceTensorOp_t *reduceTensorOp,
                                             cudnnDataType_t *reduceTensorCompType,
                                             cudnnNanPropagation_t *reduceTensorNanOpt,
                                             cudnnReduceTensorIndices_t *reduceTensorIndices,
                                             cudnnIndicesType_t *reduceTensorIndicesType)
{
    const struct wd_reduce_attr *attr;
    WD_DESC(reduceTensorDesc, WD_DESC_REDUCE);
    attr = &reduceTensorDesc->attr;
    if (reduceTensorOp) *reduceTensorOp = (cudnnReduceTensorOp_t)attr->op;
    if (reduceTensorCompType) *reduceTensorCompType = (cudnnDataType_t)attr->compute;
    if (reduceTensorNanOpt) *reduceTensorNanOpt = (cudnnNanPropagation_t)attr->propagate_nan;
    if (reduceTensorIndices) *reduceTensorIndices = (cudnnReduceTensorIndices_t)attr->indices;
    if (reduceTensorIndicesType) *reduceTensorIndicesType = (cudnnIndicesType_t)attr->index_type;
    return CUDNN_STATUS_SUCCESS;
}

/* What A, C and the descriptor must be to each other. */
static cudnnStatus_t check(const char *function, const struct cudnnReduceTensorStruct *reduce,
                           const struct cudnnTensorStruct *a, const struct cudnnTensorStruct *c)
{
    bool fits;
    char a_text[160];
    char c_text[160];
    WD_TRY(wd_check_descriptor(function, "reduceTensorDesc", WD_DESC_REDUCE, reduce, 1));
    WD_TRY(wd_check_descriptor(function, "aDesc", WD_DESC_TENSOR, a, 1));
    WD_TRY(wd_check_descriptor(function, "cDesc", WD_DESC_TENSOR, c, 1));
    fits = a->tensor.rank == c->tensor.rank;
    for (int d = 0; fits && d < a->tensor.rank; ++d) {
        fits = c->tensor.dim[d] == 1 || c->tensor.dim[d] == a->tensor.dim[d];
    }
    if (!fits) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "the dims of cDesc (%s) are not those of aDesc (%s) or 1",
                          wd_tensor_text(&c->tensor, c_text, sizeof c_text),
                          wd_tensor_text(&a->tensor, a_text, sizeof a_text));
    }
    if ((a->tensor.dtype == CUDNN_DATA_DOUBLE) != (c->tensor.dtype == CUDNN_DATA_DOUBLE)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "aDesc is %s and cDesc is %s: fp64 goes with fp64 only",
                          wd_dtype_name(a->tensor.dtype), wd_dtype_name(c->tensor.dtype));
    }
    return CUDNN_STATUS_SUCCESS;
}

/* A wish for indices is void where the operator picks no element. */
static bool gives_indices(const struct cudnnReduceTensorStruct *reduce)
{
    return reduce->attr.indices && wd_reduce_has_index(reduce->attr.op);
}

static size_t indices_needed(const struct cudnnReduceTensorStruct *reduce,
                             const struct cudnnTensorStruct *c)
{
    if (!gives_indices(reduce)) return 0;
    return (size_t)wd_tensor_count(&c->tensor) * (size_t)wd_index_bytes(reduce->attr.index_type);
}

static void make(struct wd_single *single, const struct cudnnReduceTensorStruct *reduce,
                 const struct cudnnTensorStruct *a, const void *a_data,
                 const struct cudnnTensorStruct *c, void *c_data, void *indices)
{
    wd_single_init(single, WD_OP_REDUCE);
    single->node.attr.reduce = reduce->attr;
    if (!gives_indices(reduce)) { /* then neither wish nor width is a difference between plans */
        single->node.attr.reduce.indices = CUDNN_REDUCE_TENSOR_NO_INDICES;
        single->node.attr.reduce.index_type = 0;
    }
    wd_bind(single, X, &a->tensor, "aDesc", a_data, "A");
    wd_bind(single, Y, &c->tensor, "cDesc", c_data, "C");
    single->attr_desc = "reduceTensorDesc";
    single->workspace = "workspace";
    single->workspace_size = "workspaceSizeInBytes";
    if (gives_indices(reduce)) {
        struct wd_tensor bytes = wd_opaque_bytes((int64_t)indices_needed(reduce, c));
        wd_single_bind(single, INDICES, &bytes, indices, "indices");
    }
}

cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t handle,
                                           const cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                           const cudnnTensorDescriptor_t aDesc,
                                           const cudnnTensorDescriptor_t cDesc, size_t *sizeInBytes)
{
    WD_HANDLE(handle);
    WD_TRY(check(__func__, reduceTensorDesc, aDesc, cDesc));
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    *sizeInBytes = indices_needed(reduceTensorDesc, cDesc);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                                             const cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                             const cudnnTensorDescriptor_t aDesc,
                                             const cudnnTensorDescriptor_t cDesc,
                                             size_t *sizeInBytes)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(check(__func__, reduceTensorDesc, aDesc, cDesc));
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    make(&single, reduceTensorDesc, aDesc, NULL, cDesc, NULL, NULL);
    /* alpha and beta make no difference to the workspace: their classes stay 0 */
    return wd_run_workspace(__func__, handle, &single, sizeInBytes);
}

cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle,
                                const cudnnReduceTensorDescriptor_t reduceTensorDesc, void *indices,
                                size_t indicesSizeInBytes, void *workspace,
                                size_t workspaceSizeInBytes, const void *alpha,
                                const cudnnTensorDescriptor_t aDesc, const void *A,
                                const void *beta, const cudnnTensorDescriptor_t cDesc, void *C)
{
    struct wd_single single;
    size_t needed;
    WD_HANDLE(handle);
    WD_TRY(check(__func__, reduceTensorDesc, aDesc, cDesc));
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_ARG(A != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "A is null");
    WD_ARG(C != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "C is null");
    needed = indices_needed(reduceTensorDesc, cDesc);
    WD_ARG(indicesSizeInBytes >= needed, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
           "indicesSizeInBytes=%zu is less than the %zu that are needed", indicesSizeInBytes,
           needed);
    WD_ARG(needed == 0 || indices != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
           "indices is null, %zu bytes are needed", needed);
    WD_IN_PLACE(C, cDesc, A, aDesc);
    make(&single, reduceTensorDesc, aDesc, A, cDesc, C, indices);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, cDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, cDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, workspace, wd_bytes_given(workspaceSizeInBytes));
}
