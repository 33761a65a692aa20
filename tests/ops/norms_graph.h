/* SPDX-License-Identifier: Apache-2.0
 *
 * A normalization as an operation of a graph of the backend API: its tensors, made as the case's plain
 * fields say, its descriptor, and the run of it alone. What is made belongs to the including file. */
#ifndef TESTS_OPS_NORMS_GRAPH_H
#define TESTS_OPS_NORMS_GRAPH_H

#include <math.h>

#include "norms_case.h"
#include "ops/graph_run.h"

static const char *const norms_mode_names[] = {"layer", "instance", "batch", "group", "rms", "ada"};
static const char *const norms_phase_names[] = {"inference", "training", "backward"};

static inline enum layout norms_layout(cudnnDataType_t dtype)
{
    if (graph_lane(dtype) != dtype) return LAYOUT_VECT;
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

static inline enum layout norms_param_layout(void)
{
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
}

/* NaN where it must not be read. */
static inline struct tensor *norms_fresh(cudnnDataType_t dtype, int rank, const int *dim,
                                         enum layout layout)
{
    struct tensor *t = tensor_inout(dtype, rank, dim, layout, 0.0, 1.0);
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN;
    if (tensor_epsilon(dtype) != 0.5) tensor_write(t);
    return t;
}

static inline void norms_make_tensors(struct norms_case *c, double low, double high)
{
    int rank = c->rank;
    bool in_place = c->x_type == c->y_type && random_chance(0.2);
    enum layout layout = norms_layout(c->x_type);
    if (in_place && layout == LAYOUT_GAPS) layout = LAYOUT_NHWC;
    if (in_place && c->phase != NORMS_BACKWARD) {
        c->x = c->y = tensor_inout(c->x_type, rank, c->dim, layout, low, high);
    } else {
        c->x = tensor_input(c->x_type, rank, c->dim, layout, low, high);
    }
    c->scale = tensor_input(c->param_type, rank, c->scale_dim, norms_param_layout(), 0.25, 2.0);
    if (c->bias && c->phase != NORMS_BACKWARD) {
        c->bias_tensor =
            tensor_input(c->param_type, rank, c->scale_dim, norms_param_layout(), -1.0, 1.0);
    }
    if (c->statistics && c->phase == NORMS_TRAINING) {
        c->inv_std = norms_fresh(c->stat_type, rank, c->stat_dim, norms_param_layout());
        if (c->mode != CUDNN_RMS_NORM) {
            c->mean = norms_fresh(c->stat_type, rank, c->stat_dim, norms_param_layout());
        }
    } else if (c->statistics) {
        c->inv_std = tensor_input(c->stat_type, rank, c->stat_dim, norms_param_layout(), 0.3, 1.5);
        if (c->mode != CUDNN_RMS_NORM) {
            c->mean =
                tensor_input(c->stat_type, rank, c->stat_dim, norms_param_layout(), -1.0, 1.0);
        }
    }
    if (c->running) {
        c->in_mean = tensor_input(c->stat_type, rank, c->stat_dim, LAYOUT_NCHW, -1.0, 1.0);
        c->in_var = tensor_input(c->stat_type, rank, c->stat_dim, LAYOUT_NCHW, 0.5, 2.0);
        c->out_mean = norms_fresh(c->stat_type, rank, c->stat_dim, norms_param_layout());
        c->out_var = norms_fresh(c->stat_type, rank, c->stat_dim, norms_param_layout());
    }
    if (c->phase == NORMS_BACKWARD) {
        layout = norms_layout(c->y_type);
        if (in_place && layout == LAYOUT_GAPS) layout = LAYOUT_NCHW;
        c->dy = in_place ? tensor_inout(c->y_type, rank, c->dim, layout, -2.0, 2.0)
                         : tensor_input(c->y_type, rank, c->dim, layout, -2.0, 2.0);
        c->dx = in_place ? c->dy : norms_fresh(c->y_type, rank, c->dim, norms_layout(c->y_type));
        c->dscale = norms_fresh(c->param_type, rank, c->scale_dim, norms_param_layout());
        if (c->bias)
            c->dbias = norms_fresh(c->param_type, rank, c->scale_dim, norms_param_layout());
    } else if (!c->y) {
        c->y = norms_fresh(c->y_type, rank, c->dim, norms_layout(c->y_type));
    }
}

static inline be_desc norms_tensor(struct graph_run *r, const struct tensor *t)
{
    return t ? graph_tensor(r, t) : NULL;
}

static inline be_desc norms_scalar(struct graph_run *r, const struct norms_case *c, double value)
{
    cudnnDataType_t type = random_chance(0.5) ? CUDNN_DATA_FLOAT : CUDNN_DATA_DOUBLE;
    return graph_scalar(r, type, c->rank, value);
}

static inline be_desc norms_forward_operation(struct graph_run *r, const struct norms_case *c,
                                              be_desc scale, be_desc y)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    int phase = c->phase == NORMS_TRAINING ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE;
    be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, c->mode);
    be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, phase);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, graph_tensor(r, c->x));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, norms_tensor(r, c->bias_tensor));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, norms_tensor(r, c->mean));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, norms_tensor(r, c->inv_std));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, norms_scalar(r, c, c->epsilon));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y);
    if (c->running) {
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC,
                  norms_scalar(r, c, c->factor));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
                  graph_tensor(r, c->in_mean));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
                  graph_tensor(r, c->in_var));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
                  graph_tensor(r, c->out_mean));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC,
                  graph_tensor(r, c->out_var));
    }
    return be_final(op);
}

static inline be_desc norms_backward_operation(struct graph_run *r, const struct norms_case *c,
                                               be_desc dy)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
    be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, c->mode);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, graph_tensor(r, c->x));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, dy);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, graph_tensor(r, c->scale));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, norms_tensor(r, c->mean));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, norms_tensor(r, c->inv_std));
    if (!c->statistics) {
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC, norms_scalar(r, c, c->epsilon));
    }
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, graph_tensor(r, c->dx));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, norms_tensor(r, c->dscale));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, norms_tensor(r, c->dbias));
    return be_final(op);
}

static inline be_desc norms_operation(struct graph_run *r, const struct norms_case *c)
{
    if (c->phase == NORMS_BACKWARD) return norms_backward_operation(r, c, graph_tensor(r, c->dy));
    return norms_forward_operation(r, c, graph_tensor(r, c->scale), graph_tensor(r, c->y));
}

static inline void norms_judge(const struct norms_case *c, const struct norms_inputs *in)
{
    if (c->phase == NORMS_BACKWARD) norms_judge_backward(c, in);
    else norms_judge_forward(c, in);
}

/* Runs and judges a case whose tensors are made. */
static inline bool norms_run(struct norms_case *c)
{
    struct graph_run r = {.count = 0};
    struct norms_inputs in = norms_inputs(c);
    be_desc op = norms_operation(&r, c);
    bool ran = graph_run(&r, 1, &op);
    if (ran) norms_judge(c, &in);
    norms_inputs_free(&in);
    be_free_all();
    return ran;
}

/* Statistics are needed for groups, and by batch norm's inference. */
static inline bool norms_may_lack_statistics(const struct norms_case *c)
{
    if (c->mode == CUDNN_GROUP_NORM) return false;
    return c->mode != CUDNN_BATCH_NORM || c->phase != NORMS_INFERENCE;
}

static inline void norms_set_dims(struct norms_case *c, int rank, const int *dim, const int *stat,
                                  const int *scale)
{
    c->rank = rank;
    for (int d = 0; d < rank; ++d) {
        c->dim[d] = dim[d];
        c->stat_dim[d] = stat[d];
        c->scale_dim[d] = scale[d];
    }
}

#endif
