/* SPDX-License-Identifier: Apache-2.0
 *
 * A normalization of the backend API as an operation of a graph, with its tensors as they are. What is
 * made belongs to the including file (graph_run.h). */
#ifndef TESTS_OPS_NORMS_GRAPH_H
#define TESTS_OPS_NORMS_GRAPH_H

#include <math.h>

#include "norms_case.h"
#include "ops/graph_run.h"

/* NaN where it must not be read. */
static inline struct tensor *norms_fresh(cudnnDataType_t dtype, int rank, const int *dim,
                                         enum layout layout)
{
    struct tensor *t = tensor_inout(dtype, rank, dim, layout, 0.0, 1.0);
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN;
    tensor_write(t);
    return t;
}

static inline be_desc norms_tensor(struct graph_run *r, const struct tensor *t)
{
    return t ? graph_tensor(r, t) : NULL;
}

static inline be_desc norms_operation(struct graph_run *r, const struct norms_case *c)
{
    bool backward = c->phase == NORMS_BACKWARD;
    be_desc op = be_make(backward ? CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR
                                  : CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    be_desc x = graph_tensor(r, c->x);
    be_desc scale = graph_tensor(r, c->scale);
    be_desc mean = norms_tensor(r, c->mean);
    be_desc inv_std = norms_tensor(r, c->inv_std);
    if (backward) {
        be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, c->mode);
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, x);
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, graph_tensor(r, c->dy));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, scale);
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, mean);
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, inv_std);
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, graph_tensor(r, c->dx));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, norms_tensor(r, c->dscale));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, norms_tensor(r, c->dbias));
        return be_final(op);
    }
    be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, c->mode);
    be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
                c->phase == NORMS_TRAINING ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, norms_tensor(r, c->bias_tensor));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, mean);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, inv_std);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC,
              graph_scalar(r, CUDNN_DATA_FLOAT, c->rank, c->epsilon));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, graph_tensor(r, c->y));
    return be_final(op);
}

static inline void norms_judge(const struct norms_case *c, const struct norms_inputs *in)
{
    if (c->phase == NORMS_BACKWARD) norms_judge_backward(c, in);
    else norms_judge_forward(c, in);
}

#endif
