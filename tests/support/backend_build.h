/* SPDX-License-Identifier: Apache-2.0
 *
 * Backend descriptors for tests in a line each, on the public API. A step that does not succeed
 * calls BE_FAIL, which a test may define (cmocka's fail_msg) and which otherwise ends the process;
 * what is made, at most BE_MAX, is owned by the test and destroyed by be_free_all. */
#ifndef WD_TESTS_BACKEND_BUILD_H
#define WD_TESTS_BACKEND_BUILD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cudnn.h"

#ifndef BE_FAIL
#define BE_FAIL(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))
#endif

typedef cudnnBackendDescriptor_t be_desc;

#ifndef BE_MAX
#define BE_MAX 512
#endif
static _Thread_local be_desc be_made[BE_MAX]; /* each thread owns what it made */
static _Thread_local int be_count;

static inline void be_expect(cudnnStatus_t status, const char *what)
{
    char text[1024];
    if (status == CUDNN_STATUS_SUCCESS) return;
    cudnnGetLastErrorString(text, sizeof text);
    BE_FAIL("%s: %s: %s", what, cudnnGetErrorString(status), text);
}

static inline be_desc be_make(cudnnBackendDescriptorType_t type)
{
    be_desc desc = NULL;
    be_expect(cudnnBackendCreateDescriptor(type, &desc), "create");
    if (be_count == BE_MAX) BE_FAIL("more than %d descriptors", BE_MAX);
    be_made[be_count++] = desc;
    return desc;
}

static inline void be_free_all(void)
{
    while (be_count) be_expect(cudnnBackendDestroyDescriptor(be_made[--be_count]), "destroy");
}

static inline void be_set(be_desc desc, cudnnBackendAttributeName_t attribute,
                          cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    char what[40];
    snprintf(what, sizeof what, "set attribute %d", (int)attribute);
    be_expect(cudnnBackendSetAttribute(desc, attribute, type, count, values), what);
}

static inline void be_set_enum(be_desc desc, cudnnBackendAttributeName_t attribute,
                               cudnnBackendAttributeType_t type, int value)
{
    be_set(desc, attribute, type, 1, &value);
}

static inline void be_set_int(be_desc desc, cudnnBackendAttributeName_t attribute, int64_t value)
{
    be_set(desc, attribute, CUDNN_TYPE_INT64, 1, &value);
}

static inline void be_set_ref(be_desc desc, cudnnBackendAttributeName_t attribute, be_desc value)
{
    be_set(desc, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static inline be_desc be_final(be_desc desc)
{
    be_expect(cudnnBackendFinalize(desc), "finalize");
    return desc;
}

enum { BE_PLAIN, BE_VIRTUAL, BE_BY_VALUE };

/* A packed tensor, the last dimension fastest. */
static inline be_desc be_tensor(int64_t uid, int dtype, int rank, const int64_t *dims, int kind)
{
    be_desc desc = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t strides[8];
    int64_t next = 1;
    bool yes = true;
    for (int d = rank - 1; d >= 0; --d) {
        strides[d] = next;
        next *= dims[d];
    }
    be_set_enum(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, dtype);
    be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dims);
    be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, strides);
    be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    if (kind == BE_VIRTUAL) be_set(desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    if (kind == BE_BY_VALUE) {
        be_set(desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    }
    return be_final(desc);
}

static inline be_desc be_pointwise_desc(int mode)
{
    be_desc desc = be_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    be_set_enum(desc, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    be_set_enum(desc, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    return be_final(desc);
}

/* A forward mode; b and t may be null. */
static inline be_desc be_pointwise(int mode, be_desc x, be_desc b, be_desc t, be_desc y)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, be_pointwise_desc(mode));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (t) be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    return be_final(op);
}

static inline be_desc be_conv_desc(int spatial, int64_t pad, int64_t stride, int64_t dilation)
{
    be_desc desc = be_make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    int64_t pads[3] = {pad, pad, pad};
    int64_t strides[3] = {stride, stride, stride};
    int64_t dilations[3] = {dilation, dilation, dilation};
    be_set_enum(desc, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    be_set_enum(desc, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                CUDNN_CROSS_CORRELATION);
    be_set_int(desc, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, spatial);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, spatial, pads);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, spatial, pads);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, spatial, strides);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, spatial, dilations);
    return be_final(desc);
}

static inline be_desc be_conv_forward(be_desc conv, be_desc x, be_desc w, be_desc y)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv);
    be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    return be_final(op);
}

static inline be_desc be_matmul(be_desc a, be_desc b, be_desc c)
{
    be_desc matmul = be_make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    be_set_enum(matmul, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    be_set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, be_final(matmul));
    be_set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    be_set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    be_set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    return be_final(op);
}

static inline be_desc be_reduction(int operator_, be_desc x, be_desc y)
{
    be_desc reduction = be_make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    be_set_enum(reduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                operator_);
    be_set_enum(reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    be_set_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, be_final(reduction));
    be_set_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    be_set_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    return be_final(op);
}

static inline be_desc be_graph(cudnnHandle_t handle, int count, const be_desc *ops)
{
    be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, ops);
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    return be_final(graph);
}

static inline be_desc be_engine(be_desc graph, int64_t index)
{
    be_desc engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    be_set_ref(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
    be_set_int(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
    return be_final(engine);
}

static inline be_desc be_config(be_desc engine)
{
    be_desc config = be_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    be_set_ref(config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    return be_final(config);
}

static inline be_desc be_plan(cudnnHandle_t handle, be_desc config)
{
    be_desc plan = be_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    be_set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    be_set_ref(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    return be_final(plan);
}

/* A plan of engine 0 for these operations. */
static inline be_desc be_plan_of(cudnnHandle_t handle, int count, const be_desc *ops)
{
    return be_plan(handle, be_config(be_engine(be_graph(handle, count, ops), 0)));
}

static inline int64_t be_workspace(be_desc plan)
{
    int64_t bytes = -1;
    be_expect(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                       CUDNN_TYPE_INT64, 1, NULL, &bytes),
              "workspace size");
    return bytes;
}

static inline be_desc be_pack(int count, const int64_t *uids, void *const *data, void *workspace)
{
    be_desc pack = be_make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    be_set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids);
    be_set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, data);
    if (workspace) {
        be_set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    }
    return be_final(pack);
}

#endif
