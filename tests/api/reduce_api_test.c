/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions: what a descriptor keeps, and invalid arguments of every function. */
#include <stddef.h>
#include <stdlib.h>

#include "support/harness_internal.h"
#include "support/refusal.h"

static const float one = 1.0f;
static const float zero = 0.0f;

struct arguments {
    cudnnHandle_t handle;
    cudnnReduceTensorDescriptor_t desc;
    void *indices;
    size_t indices_bytes;
    void *workspace;
    size_t workspace_bytes;
    const void *alpha, *beta;
    cudnnTensorDescriptor_t a_desc, c_desc;
    const void *a;
    void *c;
    size_t *size;
};

static cudnnStatus_t reduce(const struct arguments *r)
{
    return cudnnReduceTensor(r->handle, r->desc, r->indices, r->indices_bytes, r->workspace,
                             r->workspace_bytes, r->alpha, r->a_desc, r->a, r->beta, r->c_desc,
                             r->c);
}

static cudnnStatus_t indices_size(const struct arguments *r)
{
    return cudnnGetReductionIndicesSize(r->handle, r->desc, r->a_desc, r->c_desc, r->size);
}

static cudnnStatus_t workspace_size(const struct arguments *r)
{
    return cudnnGetReductionWorkspaceSize(r->handle, r->desc, r->a_desc, r->c_desc, r->size);
}

static struct arguments valid;
static cudnnTensorDescriptor_t unset, doubles, doubles_c, wrong, rank3;
static cudnnReduceTensorDescriptor_t no_desc;

#define ROW(status, function, caller, argument, change)                                            \
    do {                                                                                           \
        struct arguments row = valid;                                                              \
        row.change;                                                                                \
        REFUSED(status, function, argument, caller(&row));                                         \
    } while (0)

#define COMMON_ROWS(function, caller)                                                              \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, handle, handle = NULL);                          \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, reduceTensorDesc, desc = NULL);                  \
    ROW(BAD_PARAM, function, caller, reduceTensorDesc, desc = no_desc);                            \
    ROW(BAD_PARAM, function, caller, reduceTensorDesc,                                             \
        desc = (cudnnReduceTensorDescriptor_t)(void *)valid.a_desc);                               \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, aDesc, a_desc = NULL);                           \
    ROW(BAD_PARAM, function, caller, aDesc, a_desc = unset);                                       \
    ROW(BAD_PARAM, function, caller, aDesc, a_desc = doubles);                                     \
    ROW(BAD_PARAM_SHAPE_MISMATCH, function, caller, aDesc, a_desc = rank3);                        \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, cDesc, c_desc = NULL);                           \
    ROW(BAD_PARAM, function, caller, cDesc, c_desc = unset);                                       \
    ROW(BAD_PARAM, function, caller, cDesc, c_desc = doubles_c);                                   \
    ROW(BAD_PARAM_SHAPE_MISMATCH, function, caller, cDesc, c_desc = wrong);                        \
    ROW(BAD_PARAM_SHAPE_MISMATCH, function, caller, cDesc, c_desc = rank3)

/* In place wants one type on both sides: elements of two sizes lie over each other. */
static void in_place_rows(void)
{
    static const int dim[4] = {1, 1, 1, 8};
    cudnnTensorDescriptor_t narrow, wide;
    cudnnReduceTensorDescriptor_t add;
    cudnnCreateTensorDescriptor(&narrow);
    cudnnCreateTensorDescriptor(&wide);
    cudnnCreateReduceTensorDescriptor(&add);
    cudnnSetTensorNdDescriptorEx(narrow, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 4, dim);
    cudnnSetTensorNdDescriptorEx(wide, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, dim);
    cudnnSetReduceTensorDescriptor(add, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                   CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                   CUDNN_32BIT_INDICES);
    REFUSED(BAD_PARAM, cudnnReduceTensor, C,
            cudnnReduceTensor(valid.handle, add, NULL, 0, NULL, 0, valid.alpha, narrow, valid.c,
                              valid.beta, wide, valid.c));
    cudnnDestroyReduceTensorDescriptor(add);
    cudnnDestroyTensorDescriptor(narrow);
    cudnnDestroyTensorDescriptor(wide);
}

static void compute_rows(void)
{
    COMMON_ROWS(cudnnGetReductionIndicesSize, indices_size);
    ROW(BAD_PARAM_NULL_POINTER, cudnnGetReductionIndicesSize, indices_size, sizeInBytes,
        size = NULL);
    COMMON_ROWS(cudnnGetReductionWorkspaceSize, workspace_size);
    ROW(BAD_PARAM_NULL_POINTER, cudnnGetReductionWorkspaceSize, workspace_size, sizeInBytes,
        size = NULL);
    COMMON_ROWS(cudnnReduceTensor, reduce);
    ROW(BAD_PARAM_NULL_POINTER, cudnnReduceTensor, reduce, indices, indices = NULL);
    ROW(BAD_PARAM_MISALIGNED_POINTER, cudnnReduceTensor, reduce, indices,
        indices = (char *)valid.indices + 2);
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, cudnnReduceTensor, reduce, indicesSizeInBytes,
        indices_bytes -= 1);
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, cudnnReduceTensor, reduce, indicesSizeInBytes,
        indices_bytes = 0);
    ROW(BAD_PARAM_NULL_POINTER, cudnnReduceTensor, reduce, workspace, workspace = NULL);
    ROW(BAD_PARAM_MISALIGNED_POINTER, cudnnReduceTensor, reduce, workspace,
        workspace = (char *)valid.workspace + 4);
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, cudnnReduceTensor, reduce, workspaceSizeInBytes,
        workspace_bytes -= 1);
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, cudnnReduceTensor, reduce, workspaceSizeInBytes,
        workspace_bytes = 0);
    ROW(BAD_PARAM_NULL_POINTER, cudnnReduceTensor, reduce, alpha, alpha = NULL);
    ROW(BAD_PARAM_NULL_POINTER, cudnnReduceTensor, reduce, beta, beta = NULL);
    ROW(BAD_PARAM_NULL_POINTER, cudnnReduceTensor, reduce, A, a = NULL);
    ROW(BAD_PARAM_MISALIGNED_POINTER, cudnnReduceTensor, reduce, A, a = (const char *)valid.a + 1);
    ROW(BAD_PARAM_NULL_POINTER, cudnnReduceTensor, reduce, C, c = NULL);
    ROW(BAD_PARAM_MISALIGNED_POINTER, cudnnReduceTensor, reduce, C, c = (char *)valid.c + 2);
    ROW(BAD_PARAM, cudnnReduceTensor, reduce, C, c = (void *)(uintptr_t)valid.a);
    in_place_rows();
}

static void descriptor_rows(void)
{
    cudnnReduceTensorDescriptor_t d;
    cudnnReduceTensorOp_t max = CUDNN_REDUCE_TENSOR_MAX;
    cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
    cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    cudnnReduceTensorIndices_t none = CUDNN_REDUCE_TENSOR_NO_INDICES;
    cudnnIndicesType_t w32 = CUDNN_32BIT_INDICES;
    cudnnCreateReduceTensorDescriptor(&d);
#define SET(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSetReduceTensorDescriptor, argument,                                      \
            cudnnSetReduceTensorDescriptor(__VA_ARGS__))
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateReduceTensorDescriptor, reduceTensorDesc,
            cudnnCreateReduceTensorDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyReduceTensorDescriptor, reduceTensorDesc,
            cudnnDestroyReduceTensorDescriptor((cudnnReduceTensorDescriptor_t)(void *)unset));
    SET(BAD_PARAM_NULL_POINTER, reduceTensorDesc, NULL, max, f32, nan, none, w32);
    SET(BAD_PARAM, reduceTensorOp, d, (cudnnReduceTensorOp_t)-1, f32, nan, none, w32);
    SET(BAD_PARAM, reduceTensorOp, d, (cudnnReduceTensorOp_t)9, f32, nan, none, w32);
    SET(BAD_PARAM, reduceTensorCompType, d, max, CUDNN_DATA_INT8, nan, none, w32);
    SET(BAD_PARAM, reduceTensorCompType, d, max, CUDNN_DATA_BFLOAT16, nan, none, w32);
    SET(BAD_PARAM, reduceTensorCompType, d, max, (cudnnDataType_t)-1, nan, none, w32);
    SET(BAD_PARAM, reduceTensorNanOpt, d, max, f32, (cudnnNanPropagation_t)2, none, w32);
    SET(BAD_PARAM, reduceTensorIndices, d, max, f32, nan, (cudnnReduceTensorIndices_t)2, w32);
    SET(BAD_PARAM, reduceTensorIndicesType, d, max, f32, nan, none, (cudnnIndicesType_t)4);
    SET(BAD_PARAM, reduceTensorIndicesType, d, max, f32, nan, none, (cudnnIndicesType_t)-1);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetReduceTensorDescriptor, reduceTensorDesc,
            cudnnGetReduceTensorDescriptor(NULL, NULL, NULL, NULL, NULL, NULL));
    cudnnDestroyReduceTensorDescriptor(d);
}

static void kept(void)
{
    cudnnReduceTensorDescriptor_t d;
    cudnnReduceTensorOp_t op;
    cudnnDataType_t type;
    cudnnNanPropagation_t nan;
    cudnnReduceTensorIndices_t indices;
    cudnnIndicesType_t width;
    if (!case_begin("kept")) return;
    cudnnCreateReduceTensorDescriptor(&d);
    if (cudnnSetReduceTensorDescriptor(d, CUDNN_REDUCE_TENSOR_NORM2, CUDNN_DATA_DOUBLE,
                                       CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES,
                                       CUDNN_16BIT_INDICES) != CUDNN_STATUS_SUCCESS ||
        cudnnGetReduceTensorDescriptor(d, &op, &type, &nan, &indices, &width) !=
            CUDNN_STATUS_SUCCESS) {
        case_fail("refused");
    } else if (op != CUDNN_REDUCE_TENSOR_NORM2 || type != CUDNN_DATA_DOUBLE ||
               nan != CUDNN_PROPAGATE_NAN || indices != CUDNN_REDUCE_TENSOR_FLATTENED_INDICES ||
               width != CUDNN_16BIT_INDICES) {
        case_fail("gives back %d %d %d %d %d", (int)op, (int)type, (int)nan, (int)indices,
                  (int)width);
    }
    if (cudnnGetReduceTensorDescriptor(d, NULL, NULL, NULL, NULL, NULL) != CUDNN_STATUS_SUCCESS) {
        case_fail("absent results are refused");
    }
    if (cudnnDestroyReduceTensorDescriptor(d) || cudnnDestroyReduceTensorDescriptor(NULL)) {
        case_fail("destroying is refused");
    }
    case_end();
}

int main(int argc, char **argv)
{
    static const int dims[4] = {4, 3, 130, 131};
    static const int reduced[4] = {1, 3, 1, 1};
    static const int other[4] = {1, 2, 1, 1};
    struct tensor *a;
    struct tensor *c;
    size_t size = 0;
    size_t workspace = 0;
    char text[512];
    /* the definitions need a workspace, whose refusals are among the rows */
    setenv("WARPDNN_ENGINES", "none", 1);
    harness_start(argc, argv);
    kept();
    if (!case_begin("reduce")) return harness_finish();
    cudnnCreateTensorDescriptor(&unset);
    cudnnCreateTensorDescriptor(&doubles);
    cudnnCreateTensorDescriptor(&doubles_c);
    cudnnCreateTensorDescriptor(&wrong);
    cudnnCreateTensorDescriptor(&rank3);
    cudnnSetTensorNdDescriptorEx(doubles, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 4, dims);
    cudnnSetTensorNdDescriptorEx(doubles_c, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 4, reduced);
    cudnnSetTensorNdDescriptorEx(wrong, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, other);
    cudnnSetTensorNdDescriptorEx(rank3, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 3, reduced);
    cudnnCreateReduceTensorDescriptor(&no_desc);
    a = tensor_input(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW, -1.0, 1.0);
    c = tensor_output(CUDNN_DATA_FLOAT, 4, reduced, LAYOUT_NCHW);
    valid = (struct arguments){.handle = harness_handle,
                               .alpha = &one,
                               .beta = &zero,
                               .a_desc = a->desc,
                               .c_desc = c->desc,
                               .a = a->data,
                               .c = c->data,
                               .size = &size};
    cudnnCreateReduceTensorDescriptor(&valid.desc);
    cudnnSetReduceTensorDescriptor(valid.desc, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT,
                                   CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES,
                                   CUDNN_32BIT_INDICES);
    workspace_size(&valid);
    workspace = size;
    indices_size(&valid);
    if (workspace == 0 || size != 12) case_fail("%zu and %zu bytes", workspace, size);
    valid.workspace = tensor_bytes((int64_t)workspace)->data;
    valid.workspace_bytes = workspace;
    valid.indices = tensor_bytes(12)->data;
    valid.indices_bytes = 12;
    refusal_guard();
    descriptor_rows();
    compute_rows();
    if (reduce(&valid) != CUDNN_STATUS_SUCCESS) {
        cudnnGetLastErrorString(text, sizeof text);
        if (case_begin("accepted")) {
            case_fail("valid arguments are refused: %s", text);
            case_count();
        }
    }
    warpdnnSynchronize(harness_handle);
    cudnnDestroyReduceTensorDescriptor(valid.desc);
    cudnnDestroyReduceTensorDescriptor(no_desc);
    cudnnDestroyTensorDescriptor(unset);
    cudnnDestroyTensorDescriptor(doubles);
    cudnnDestroyTensorDescriptor(doubles_c);
    cudnnDestroyTensorDescriptor(wrong);
    cudnnDestroyTensorDescriptor(rank3);
    case_end();
    refusal_report();
    return harness_finish();
}
