/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the backend API, a row each: every argument of the nine functions, and what
 * descriptors, graphs, engines, plans and packs refuse when they are finalized or executed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/backend_build.h"
#include "support/refusal.h"

static const int64_t dims4[4] = {2, 3, 4, 5};
static int32_t rubbish[64];

/* Things that are right, for rows in which one thing is wrong. */
static struct {
    be_desc x, b, y, pointwise, op, graph, engine, config, plan, pack, open_tensor;
} good;

static void make_good(void)
{
    static float data[3][120];
    good.x = be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN);
    good.b = be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN);
    good.y = be_tensor(3, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN);
    good.pointwise = be_pointwise_desc(CUDNN_POINTWISE_ADD);
    good.op = be_pointwise(CUDNN_POINTWISE_ADD, good.x, good.b, NULL, good.y);
    good.graph = be_graph(harness_handle, 1, &good.op);
    good.engine = be_engine(good.graph, 0);
    good.config = be_config(good.engine);
    good.plan = be_plan(harness_handle, good.config);
    good.pack = be_pack(3, (int64_t[]){1, 2, 3}, (void *[]){data[0], data[1], data[2]}, NULL);
    good.open_tensor = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
}

static void descriptor_rows(void)
{
    be_desc d;
    int64_t value = 16, count = 0;
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendCreateDescriptor, descriptor,
            cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, NULL));
    REFUSED(NOT_SUPPORTED, cudnnBackendCreateDescriptor, descriptorType,
            cudnnBackendCreateDescriptor((cudnnBackendDescriptorType_t)44, &d));
    REFUSED(NOT_SUPPORTED, cudnnBackendCreateDescriptor, descriptorType,
            cudnnBackendCreateDescriptor((cudnnBackendDescriptorType_t)-1, &d));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendDestroyDescriptor, descriptor,
            cudnnBackendDestroyDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnBackendDestroyDescriptor, descriptor,
            cudnnBackendDestroyDescriptor(rubbish));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendInitialize, descriptor,
            cudnnBackendInitialize(NULL));
    REFUSED(BAD_PARAM, cudnnBackendInitialize, descriptor, cudnnBackendInitialize(rubbish));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendFinalize, descriptor, cudnnBackendFinalize(NULL));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, descriptor, cudnnBackendFinalize(rubbish));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, descriptor, cudnnBackendFinalize(good.x));
    REFUSED(
        BAD_PARAM_NULL_POINTER, cudnnBackendSetAttribute, descriptor,
        cudnnBackendSetAttribute(NULL, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &value));
    REFUSED(BAD_PARAM, cudnnBackendSetAttribute, descriptor,
            cudnnBackendSetAttribute(rubbish, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                     &value));
    REFUSED(
        BAD_PARAM, cudnnBackendSetAttribute, descriptor,
        cudnnBackendSetAttribute(good.x, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &value));
    REFUSED(BAD_PARAM, cudnnBackendSetAttribute, attributeName,
            cudnnBackendSetAttribute(good.open_tensor, (cudnnBackendAttributeName_t)-1,
                                     CUDNN_TYPE_INT64, 1, &value));
    REFUSED(BAD_PARAM, cudnnBackendSetAttribute, attributeName,
            cudnnBackendSetAttribute(good.open_tensor, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_INT64,
                                     1, &value));
    REFUSED(BAD_PARAM_ATTRIBUTE_TYPE, cudnnBackendSetAttribute, attributeType,
            cudnnBackendSetAttribute(good.open_tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                     CUDNN_TYPE_FLOAT, 1, &value));
    REFUSED(BAD_PARAM_ATTRIBUTE_TYPE, cudnnBackendSetAttribute, attributeType,
            cudnnBackendSetAttribute(good.open_tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                     (cudnnBackendAttributeType_t)99, 1, &value));
    REFUSED(BAD_PARAM, cudnnBackendSetAttribute, elementCount,
            cudnnBackendSetAttribute(good.open_tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                     CUDNN_TYPE_INT64, 0, &value));
    REFUSED(BAD_PARAM, cudnnBackendSetAttribute, elementCount,
            cudnnBackendSetAttribute(good.open_tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                     CUDNN_TYPE_INT64, -1, &value));
    REFUSED(BAD_PARAM, cudnnBackendSetAttribute, elementCount,
            cudnnBackendSetAttribute(good.open_tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                     CUDNN_TYPE_INT64, 2, &value));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendSetAttribute, arrayOfElements,
            cudnnBackendSetAttribute(good.open_tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                     CUDNN_TYPE_INT64, 1, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendGetAttribute, descriptor,
            cudnnBackendGetAttribute(NULL, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &count,
                                     &value));
    REFUSED(BAD_PARAM, cudnnBackendGetAttribute, descriptor,
            cudnnBackendGetAttribute(rubbish, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                     &count, &value));
    REFUSED(NOT_INITIALIZED, cudnnBackendGetAttribute, descriptor,
            cudnnBackendGetAttribute(good.open_tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                     CUDNN_TYPE_INT64, 1, &count, &value));
    REFUSED(BAD_PARAM, cudnnBackendGetAttribute, attributeName,
            cudnnBackendGetAttribute(good.x, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_INT64, 1, &count,
                                     &value));
    REFUSED(BAD_PARAM_ATTRIBUTE_TYPE, cudnnBackendGetAttribute, attributeType,
            cudnnBackendGetAttribute(good.x, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_DOUBLE, 1,
                                     &count, &value));
    REFUSED(BAD_PARAM, cudnnBackendGetAttribute, requestedElementCount,
            cudnnBackendGetAttribute(good.x, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, -1,
                                     &count, &value));
    REFUSED(BAD_PARAM, cudnnBackendGetAttribute, requestedElementCount,
            cudnnBackendGetAttribute(good.plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                     CUDNN_TYPE_CHAR, -1, &count, &value));
    d = NULL;
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendGetAttribute, arrayOfElements,
            cudnnBackendGetAttribute(good.op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &d));
    d = good.config;
    REFUSED(BAD_PARAM_DESCRIPTOR_TYPE, cudnnBackendGetAttribute, arrayOfElements,
            cudnnBackendGetAttribute(good.op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &d));
}

/* A tensor with one value replaced, not finalized. */
static be_desc tensor_with(cudnnBackendAttributeName_t attribute, int64_t count,
                           const int64_t *values)
{
    static const int64_t strides[4] = {60, 20, 5, 1};
    be_desc d = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    be_set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims4);
    be_set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    be_set_int(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    be_set(d, attribute, CUDNN_TYPE_INT64, count, values);
    return d;
}

static void tensor_rows(void)
{
    const int64_t negative[4] = {2, -3, 4, 5};
    const int64_t huge[4] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    const int64_t zero = 0, minus = -8, many = 33;
    bool yes = true;
    be_desc d;
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_DIMENSIONS,
            cudnnBackendFinalize(be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR)));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_DIMENSIONS,
            cudnnBackendFinalize(tensor_with(CUDNN_ATTR_TENSOR_DIMENSIONS, 4, negative)));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_DIMENSIONS,
            cudnnBackendFinalize(tensor_with(CUDNN_ATTR_TENSOR_DIMENSIONS, 4, huge)));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_STRIDES,
            cudnnBackendFinalize(tensor_with(CUDNN_ATTR_TENSOR_STRIDES, 3, dims4)));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_STRIDES,
            cudnnBackendFinalize(tensor_with(CUDNN_ATTR_TENSOR_STRIDES, 4, negative)));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_STRIDES,
            cudnnBackendFinalize(tensor_with(CUDNN_ATTR_TENSOR_STRIDES, 4, huge)));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
            cudnnBackendFinalize(tensor_with(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &zero)));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
            cudnnBackendFinalize(tensor_with(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &minus)));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_VECTOR_COUNT,
            cudnnBackendFinalize(tensor_with(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1, &zero)));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_VECTOR_COUNT,
            cudnnBackendFinalize(tensor_with(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1, &many)));
    d = tensor_with(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1, &dims4[2]);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION,
            cudnnBackendFinalize(d));
    be_set_int(d, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, 4);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION,
            cudnnBackendFinalize(d));
    d = tensor_with(CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &zero);
    be_set(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_IS_BY_VALUE,
            cudnnBackendFinalize(d));
    be_set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_IS_VIRTUAL, cudnnBackendFinalize(d));
    d = tensor_with(CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &zero);
    be_set_enum(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
                CUDNN_DATA_FAST_FLOAT_FOR_FP8);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_DATA_TYPE, cudnnBackendFinalize(d));
    be_set_enum(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_INT8x4);
    REFUSED(NOT_SUPPORTED_DATA_TYPE, cudnnBackendFinalize, CUDNN_ATTR_TENSOR_DATA_TYPE,
            cudnnBackendFinalize(d));
}

static void parameter_rows(void)
{
    const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0}, minus[2] = {-1, 0};
    double half = 1.5;
    cudnnFraction_t bad = {1, 0};
    be_desc d = be_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    be_set_enum(d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 55);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_POINTWISE_MODE, cudnnBackendFinalize(d));
    d = be_make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    be_set_int(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 3);
    be_set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones);
    be_set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
            cudnnBackendFinalize(d));
    be_set_int(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
            cudnnBackendFinalize(d));
    be_set_int(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    be_set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, zeros);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_CONVOLUTION_DILATIONS,
            cudnnBackendFinalize(d));
    be_set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    be_set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, zeros);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
            cudnnBackendFinalize(d));
    be_set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones);
    be_set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, minus);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
            cudnnBackendFinalize(d));
    d = be_make(CUDNN_BACKEND_RNG_DESCRIPTOR);
    be_set_enum(d, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 0);
    be_set(d, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, 1, &half);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY,
            cudnnBackendFinalize(d));
    d = be_make(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    be_set(d, CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, 1, &bad);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_RESAMPLE_STRIDES, cudnnBackendFinalize(d));
}

static be_desc open_graph(int count, const be_desc *ops)
{
    be_desc d = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    be_set(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, ops);
    be_set(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &harness_handle);
    return d;
}

static void graph_rows(void)
{
    static const int64_t other[4] = {2, 3, 4, 6};
    be_desc v1 = be_tensor(11, CUDNN_DATA_FLOAT, 4, dims4, BE_VIRTUAL);
    be_desc v2 = be_tensor(12, CUDNN_DATA_FLOAT, 4, dims4, BE_VIRTUAL);
    be_desc twin = be_tensor(1, CUDNN_DATA_HALF, 4, dims4, BE_PLAIN);
    be_desc band = be_make(CUDNN_BACKEND_OPERATION_EXPAND_BAND_MATRIX_DESCRIPTOR);
    be_desc d = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    cudnnHandle_t none = NULL;
    cudnnHandle_t fake = (cudnnHandle_t)(void *)rubbish;
    be_desc ops[2];
    REFUSED(BAD_PARAM_NOT_FINALIZED, cudnnBackendSetAttribute, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
            cudnnBackendSetAttribute(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &good.open_tensor));
    REFUSED(BAD_PARAM_DESCRIPTOR_TYPE, cudnnBackendSetAttribute,
            CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
            cudnnBackendSetAttribute(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &good.op));
    be_set_ref(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, good.pointwise);
    be_set_ref(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, good.x);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
            cudnnBackendFinalize(d));
    be_set_ref(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, good.y);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
            cudnnBackendFinalize(d));
    be_set_ref(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
               be_tensor(9, CUDNN_DATA_FLOAT, 4, other, BE_PLAIN));
    REFUSED(BAD_PARAM_SHAPE_MISMATCH, cudnnBackendFinalize, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
            cudnnBackendFinalize(d));
    d = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_OPERATIONGRAPH_OPS,
            cudnnBackendFinalize(d));
    REFUSED(
        BAD_PARAM_NULL_POINTER, cudnnBackendSetAttribute, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
        cudnnBackendSetAttribute(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &none));
    REFUSED(BAD_PARAM_DESCRIPTOR_TYPE, cudnnBackendSetAttribute, CUDNN_ATTR_OPERATIONGRAPH_OPS,
            cudnnBackendSetAttribute(d, CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &good.x));
    d = open_graph(1, &good.op);
    be_set(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &fake);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
            cudnnBackendFinalize(d));
    /* the same id for two tensors */
    ops[0] = good.op;
    ops[1] = be_pointwise(CUDNN_POINTWISE_NEG, twin, NULL, NULL, v1);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_OPERATIONGRAPH_OPS,
            cudnnBackendFinalize(open_graph(2, ops)));
    /* written twice */
    ops[1] = be_pointwise(CUDNN_POINTWISE_NEG, good.x, NULL, NULL, good.y);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_OPERATIONGRAPH_OPS,
            cudnnBackendFinalize(open_graph(2, ops)));
    /* read but never written */
    ops[1] = be_pointwise(CUDNN_POINTWISE_NEG, v1, NULL, NULL, v2);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_OPERATIONGRAPH_OPS,
            cudnnBackendFinalize(open_graph(2, ops)));
    /* each waits for the other */
    ops[0] = be_pointwise(CUDNN_POINTWISE_NEG, v1, NULL, NULL, v2);
    ops[1] = be_pointwise(CUDNN_POINTWISE_NEG, v2, NULL, NULL, v1);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_OPERATIONGRAPH_OPS,
            cudnnBackendFinalize(open_graph(2, ops)));
    be_set_ref(band, CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_XDESC, good.x);
    be_set_ref(band, CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_YDESC, good.y);
    be_final(band);
    REFUSED(NOT_SUPPORTED_GRAPH_PATTERN, cudnnBackendFinalize, CUDNN_ATTR_OPERATIONGRAPH_OPS,
            cudnnBackendFinalize(open_graph(1, &band)));
}

static be_desc open_engine(int64_t index)
{
    be_desc d = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    be_set_ref(d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, good.graph);
    be_set_int(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
    return d;
}

static void engine_rows(void)
{
    int64_t bytes = 0;
    int32_t id = 0;
    be_desc knob = be_make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    be_desc d = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
            cudnnBackendFinalize(d));
    REFUSED(NOT_SUPPORTED, cudnnBackendSetAttribute, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
            cudnnBackendSetAttribute(d, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                     1, &id));
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
            cudnnBackendFinalize(open_engine(-1)));
    REFUSED(NOT_SUPPORTED, cudnnBackendFinalize, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
            cudnnBackendFinalize(open_engine(7)));
    REFUSED(NOT_SUPPORTED, cudnnBackendFinalize, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
            cudnnBackendFinalize(open_engine(20)));
    REFUSED(NOT_SUPPORTED, cudnnBackendFinalize, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
            cudnnBackendFinalize(open_engine(INT64_MAX)));
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &good.op);
    be_set_ref(d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, be_final(graph));
    be_set_int(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_ENGINE_DEVICEPROP, cudnnBackendFinalize(d));
    d = be_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_ENGINECFG_ENGINE, cudnnBackendFinalize(d));
    be_set_ref(d, CUDNN_ATTR_ENGINECFG_ENGINE, good.engine);
    be_set_ref(d, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, be_final(knob));
    REFUSED(NOT_SUPPORTED, cudnnBackendFinalize, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
            cudnnBackendFinalize(d));
    REFUSED(NOT_SUPPORTED, cudnnBackendSetAttribute, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE,
            cudnnBackendSetAttribute(d, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                     &bytes));
    d = be_make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    be_set_ref(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, good.graph);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_ENGINEHEUR_MODE, cudnnBackendFinalize(d));
    d = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    REFUSED(NOT_INITIALIZED, cudnnBackendFinalize, CUDNN_ATTR_DEVICEPROP_HANDLE,
            cudnnBackendFinalize(d));
    id = 4096;
    be_set(d, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_DEVICEPROP_DEVICE_ID,
            cudnnBackendFinalize(d));
    id = -1;
    be_set(d, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_DEVICEPROP_DEVICE_ID,
            cudnnBackendFinalize(d));
    d = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    be_set(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 2, "{}");
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
            cudnnBackendFinalize(d));
    d = be_make(CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR);
    be_set(d, CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 4, "null");
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION,
            cudnnBackendFinalize(d));
    d = be_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    REFUSED(BAD_PARAM_NOT_FINALIZED, cudnnBackendFinalize, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
            cudnnBackendFinalize(d));
}

static void pack_rows(void)
{
    int64_t uids[3] = {1, 2, 1};
    void *pointers[3] = {rubbish, rubbish, rubbish};
    be_desc d = be_make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    be_set(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 2, uids);
    REFUSED(BAD_PARAM, cudnnBackendFinalize, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
            cudnnBackendFinalize(d));
    be_set(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, uids);
    be_set(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers);
    REFUSED(BAD_PARAM_DUPLICATED_ENTRIES, cudnnBackendFinalize, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
            cudnnBackendFinalize(d));
}

static void execute_rows(void)
{
    static _Alignas(16) char bytes[600];
    cudnnHandle_t h = harness_handle;
    cudnnHandle_t fake = (cudnnHandle_t)(void *)rubbish;
    be_desc open_pack = be_make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    be_desc open_plan = be_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    be_desc less = be_pack(2, (int64_t[]){1, 2}, (void *[]){bytes, bytes}, NULL);
    be_desc null = be_pack(3, (int64_t[]){1, 2, 3}, (void *[]){bytes, NULL, bytes}, NULL);
    be_desc odd = be_pack(3, (int64_t[]){1, 2, 3}, (void *[]){bytes, bytes + 2, bytes}, NULL);
    be_desc overriding = be_make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    int64_t uid = 1;
    be_desc virtual_y = be_tensor(5, CUDNN_DATA_FLOAT, 4, dims4, BE_VIRTUAL);
    be_desc ops[2] = {be_pointwise(CUDNN_POINTWISE_NEG, good.x, NULL, NULL, virtual_y),
                      be_pointwise(CUDNN_POINTWISE_ABS, virtual_y, NULL, NULL, good.y)};
    be_desc two = be_plan_of(h, 2, ops);
    cudaGraph_t graph = (cudaGraph_t)(void *)rubbish;
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendExecute, handle,
            cudnnBackendExecute(NULL, good.plan, good.pack));
    REFUSED(BAD_PARAM, cudnnBackendExecute, handle,
            cudnnBackendExecute(fake, good.plan, good.pack));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendExecute, executionPlan,
            cudnnBackendExecute(h, NULL, good.pack));
    REFUSED(BAD_PARAM, cudnnBackendExecute, executionPlan,
            cudnnBackendExecute(h, rubbish, good.pack));
    REFUSED(BAD_PARAM_DESCRIPTOR_TYPE, cudnnBackendExecute, executionPlan,
            cudnnBackendExecute(h, good.config, good.pack));
    REFUSED(BAD_PARAM_NOT_FINALIZED, cudnnBackendExecute, executionPlan,
            cudnnBackendExecute(h, open_plan, good.pack));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendExecute, variantPack,
            cudnnBackendExecute(h, good.plan, NULL));
    REFUSED(BAD_PARAM_DESCRIPTOR_TYPE, cudnnBackendExecute, variantPack,
            cudnnBackendExecute(h, good.plan, good.plan));
    REFUSED(BAD_PARAM_NOT_FINALIZED, cudnnBackendExecute, variantPack,
            cudnnBackendExecute(h, good.plan, open_pack));
    REFUSED(BAD_PARAM, cudnnBackendExecute, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
            cudnnBackendExecute(h, good.plan, less));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendExecute, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
            cudnnBackendExecute(h, good.plan, null));
    REFUSED(BAD_PARAM_MISALIGNED_POINTER, cudnnBackendExecute,
            CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, cudnnBackendExecute(h, good.plan, odd));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendExecute, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
            cudnnBackendExecute(h, two, good.pack));
    be_set(overriding, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, &uid);
    be_final(overriding);
    REFUSED(NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE, cudnnBackendExecute,
            CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, cudnnBackendExecute(h, good.plan, overriding));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendPopulateCudaGraph, handle,
            cudnnBackendPopulateCudaGraph(NULL, good.plan, good.pack, graph));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendPopulateCudaGraph, executionPlan,
            cudnnBackendPopulateCudaGraph(h, NULL, good.pack, graph));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendPopulateCudaGraph, variantPack,
            cudnnBackendPopulateCudaGraph(h, good.plan, NULL, graph));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendUpdateCudaGraph, handle,
            cudnnBackendUpdateCudaGraph(NULL, good.plan, good.pack, graph));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendUpdateCudaGraph, executionPlan,
            cudnnBackendUpdateCudaGraph(h, NULL, good.pack, graph));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendUpdateCudaGraph, variantPack,
            cudnnBackendUpdateCudaGraph(h, good.plan, NULL, graph));
    if (harness_on_gpu) {
        REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendPopulateCudaGraph, graph,
                cudnnBackendPopulateCudaGraph(h, good.plan, good.pack, NULL));
        REFUSED(BAD_PARAM_NULL_POINTER, cudnnBackendUpdateCudaGraph, graph,
                cudnnBackendUpdateCudaGraph(h, good.plan, good.pack, NULL));
    } else {
        REFUSED(NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API, cudnnBackendPopulateCudaGraph, handle,
                cudnnBackendPopulateCudaGraph(h, good.plan, good.pack, graph));
        REFUSED(NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API, cudnnBackendUpdateCudaGraph, handle,
                cudnnBackendUpdateCudaGraph(h, good.plan, good.pack, graph));
    }
}

int main(int argc, char **argv)
{
    /* the definitions need a workspace, whose refusals are among the rows */
    setenv("WARPDNN_ENGINES", "none", 1);
    harness_start(argc, argv);
    make_good();
    descriptor_rows();
    tensor_rows();
    parameter_rows();
    graph_rows();
    engine_rows();
    pack_rows();
    execute_rows();
    be_free_all();
    refusal_report();
    return harness_finish();
}
