/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph of the backend API over tensors of the harness: descriptors with unique ids in the order in
 * which they are made, scalars by value, and a run of the whole on the best engine. What is made
 * belongs to the including file (backend_build.h). */
#ifndef TESTS_OPS_GRAPH_RUN_H
#define TESTS_OPS_GRAPH_RUN_H

#include <string.h>

#include "support/backend_build.h"
#include "support/harness.h"

enum { GRAPH_TENSORS = 40 };

struct graph_run {
    int64_t uid[GRAPH_TENSORS];
    void *data[GRAPH_TENSORS];
    _Alignas(8) unsigned char room[GRAPH_TENSORS][8]; /* of scalars */
    int count;
    be_desc plan, pack;
};

static inline cudnnDataType_t graph_lane(cudnnDataType_t dtype)
{
    switch ((int)dtype) {
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_INT8x32: return CUDNN_DATA_INT8;
    case CUDNN_DATA_UINT8x4: return CUDNN_DATA_UINT8;
    default: return dtype;
    }
}

/* The descriptor of a tensor; the dims of this API count vectors. */
static inline be_desc graph_tensor(struct graph_run *r, const struct tensor *t)
{
    be_desc desc = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dim[8];
    int64_t stride[8];
    for (int d = 0; d < t->rank; ++d) {
        dim[d] = d == 1 ? t->dim[d] / t->lanes : t->dim[d];
        stride[d] = t->stride[d];
    }
    be_set_enum(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, (int)graph_lane(t->dtype));
    be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, dim);
    be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, stride);
    be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, r->count + 1);
    be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
    if (t->lanes > 1) {
        be_set_int(desc, CUDNN_ATTR_TENSOR_VECTOR_COUNT, t->lanes);
        be_set_int(desc, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, 1);
    }
    r->uid[r->count] = r->count + 1;
    r->data[r->count++] = t->data;
    return be_final(desc);
}

/* A scalar by value: FLOAT, DOUBLE or INT64. */
static inline be_desc graph_scalar(struct graph_run *r, cudnnDataType_t dtype, int rank,
                                   double value)
{
    static const int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    float single = (float)value;
    int64_t whole = (int64_t)value;
    void *room = r->room[r->count];
    if (dtype == CUDNN_DATA_DOUBLE) memcpy(room, &value, sizeof value);
    else if (dtype == CUDNN_DATA_INT64) memcpy(room, &whole, sizeof whole);
    else memcpy(room, &single, sizeof single);
    r->uid[r->count] = r->count + 1;
    r->data[r->count++] = room;
    return be_tensor(r->count, (int)dtype, rank, ones, BE_BY_VALUE);
}

static inline void graph_ref(be_desc op, cudnnBackendAttributeName_t attribute, be_desc value)
{
    if (value) be_set_ref(op, attribute, value);
}

static inline cudnnStatus_t graph_execute(void *context)
{
    struct graph_run *r = context;
    return cudnnBackendExecute(harness_handle, r->plan, r->pack);
}

/* Runs a plan in every way of the harness. */
static inline bool graph_run_plan(struct graph_run *r)
{
    struct tensor *workspace = NULL;
    int64_t bytes = be_workspace(r->plan);
    if (bytes > 0) workspace = tensor_bytes(bytes);
    r->pack = be_pack(r->count, r->uid, r->data, workspace ? workspace->data : NULL);
    return run_call(graph_execute, r);
}

/* Runs finalized operations on the best engine. */
static inline bool graph_run(struct graph_run *r, int count, const be_desc *ops)
{
    r->plan = be_plan_of(harness_handle, count, ops);
    return graph_run_plan(r);
}

#endif
