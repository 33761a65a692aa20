/* SPDX-License-Identifier: Apache-2.0
 *
 * One backend operation as a graph of one node, for tests on the public API: tensors of the harness
 * get unique ids 1, 2, ... in the order in which they are added; the operation is built by the test;
 * node_run plans it on the best engine and runs it in every way of the harness. */
#ifndef TESTS_OPS_NODE_RUN_H
#define TESTS_OPS_NODE_RUN_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/backend_build.h"
#include "support/harness.h"

enum { NODE_TENSORS = 40 };

struct node_run {
    int tensors;
    struct tensor *t[NODE_TENSORS];
    void *data[NODE_TENSORS];
    be_desc desc[NODE_TENSORS];
    be_desc plan, pack;
};

static inline cudnnDataType_t node_lane(cudnnDataType_t dtype)
{
    switch ((int)dtype) {
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_INT8x32: return CUDNN_DATA_INT8;
    case CUDNN_DATA_UINT8x4: return CUDNN_DATA_UINT8;
    default: return dtype;
    }
}

/* A descriptor with every attribute said; dims count lanes. Not finalized. */
static inline be_desc node_open_tensor(int64_t uid, cudnnDataType_t dtype, int rank,
                                       const int *dims, const int *strides, int lanes)
{
    be_desc desc = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dim[8];
    int64_t stride[8];
    for (int d = 0; d < rank; ++d) {
        dim[d] = d == 1 ? dims[d] / lanes : dims[d];
        stride[d] = strides[d];
    }
    be_set_enum(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, (int)node_lane(dtype));
    be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dim);
    be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, stride);
    be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
    if (lanes > 1) {
        be_set_int(desc, CUDNN_ATTR_TENSOR_VECTOR_COUNT, lanes);
        be_set_int(desc, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, 1);
    }
    return desc;
}

/* Adds a tensor; returns its descriptor. */
static inline be_desc node_add(struct node_run *r, struct tensor *t)
{
    int i = r->tensors++;
    r->t[i] = t;
    r->data[i] = t->data;
    r->desc[i] = be_final(node_open_tensor(i + 1, t->dtype, t->rank, t->dim, t->stride, t->lanes));
    return r->desc[i];
}

/* The same for memory of the test's own: raw bytes under a descriptor that it made, whose unique id
 * is the number of tensors so far plus one. */
static inline be_desc node_add_raw(struct node_run *r, be_desc desc, void *data)
{
    int i = r->tensors++;
    r->t[i] = NULL;
    r->data[i] = data;
    r->desc[i] = desc;
    return desc;
}

static inline cudnnStatus_t node_execute(void *context)
{
    struct node_run *r = context;
    return cudnnBackendExecute(harness_handle, r->plan, r->pack);
}

static inline void node_plan(struct node_run *r, be_desc op)
{
    int64_t uids[NODE_TENSORS];
    struct tensor *workspace = NULL;
    int64_t bytes;
    r->plan = be_plan_of(harness_handle, 1, &op);
    bytes = be_workspace(r->plan);
    if (bytes > 0) workspace = tensor_bytes(bytes);
    for (int i = 0; i < r->tensors; ++i) uids[i] = i + 1;
    r->pack = be_pack(r->tensors, uids, r->data, workspace ? workspace->data : NULL);
}

/* What the operation wrote is judged by the caller. */
static inline bool node_run(struct node_run *r, be_desc op)
{
    node_plan(r, op);
    return run_call(node_execute, r);
}

/* Finalizing this operation must fail with `status` and a text that has `word` in it. */
static inline void node_refused(cudnnStatus_t status, const char *word, be_desc op)
{
    char text[1024] = "";
    cudnnStatus_t got = cudnnBackendFinalize(op);
    cudnnGetLastErrorString(text, sizeof text);
    if (got != status) {
        case_fail("finalize answers %d (%s), not %d", (int)got, text, (int)status);
    } else if (!strstr(text, word)) {
        case_fail("the text \"%s\" does not say \"%s\"", text, word);
    }
}

static inline double *node_doubles(int64_t count)
{
    double *list = calloc((size_t)(count > 0 ? count : 1), sizeof *list);
    if (!list) abort();
    return list;
}

static const char *const node_type_name[] = {"fp32",    "fp64",   "fp16",  "int8",
                                             "int32",   "int8x4", "uint8", "uint8x4",
                                             "int8x32", "bf16",   "int64"};

#endif
