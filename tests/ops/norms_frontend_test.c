/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizations of the backend API beyond a single one of random values: gradients of the library
 * against finite differences, what a frontend builds around a normalization, and peers. */
#include <math.h>
#include <stdlib.h>

#include "norms_graph.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* The library's own fp64 gradients, so that oracle and library cannot share a mistake. */
static void compare_difference(const char *name, const struct norms_case *c,
                               const struct norms_inputs *in, double *where, int64_t index,
                               double got)
{
    double step = 1e-5;
    double kept = where[index];
    double up;
    double difference;
    where[index] = kept + step;
    up = norms_loss(c, in);
    where[index] = kept - step;
    difference = (up - norms_loss(c, in)) / (2.0 * step);
    where[index] = kept;
    if (fabs(difference - got) > 2e-6 * (1.0 + fabs(difference))) {
        case_fail("%s[%d] is %.10g, the finite difference %.10g", name, (int)index, got,
                  difference);
    }
}

static void finite_differences(void)
{
    static const struct {
        int mode, rank;
        int dim[4], stat[4], scale[4];
    } rows[] = {
        {CUDNN_LAYER_NORM, 4, {2, 3, 2, 3}, {2, 1, 1, 1}, {1, 3, 2, 3}},
        {CUDNN_LAYER_NORM, 3, {2, 3, 5}, {2, 3, 1}, {1, 1, 5}},
        {CUDNN_INSTANCE_NORM, 4, {2, 3, 2, 3}, {2, 3, 1, 1}, {1, 3, 1, 1}},
        {CUDNN_BATCH_NORM, 4, {2, 3, 2, 3}, {1, 3, 1, 1}, {1, 3, 1, 1}},
        {CUDNN_GROUP_NORM, 4, {2, 4, 2, 3}, {2, 2, 1, 1}, {1, 4, 1, 1}},
        {CUDNN_RMS_NORM, 3, {2, 3, 5}, {2, 3, 1}, {1, 1, 5}},
        {CUDNN_RMS_NORM, 4, {2, 3, 2, 3}, {2, 1, 1, 1}, {1, 3, 2, 3}},
        {CUDNN_ADA_LAYER_NORM, 3, {2, 3, 5}, {2, 3, 1}, {2, 1, 5}},
    };
    for (int r = 0; r < COUNT(rows); ++r) {
        for (int given = 0; given < 2; ++given) {
            struct norms_case c = {.mode = rows[r].mode,
                                   .phase = NORMS_BACKWARD,
                                   .x_type = CUDNN_DATA_DOUBLE,
                                   .y_type = CUDNN_DATA_DOUBLE,
                                   .param_type = CUDNN_DATA_DOUBLE,
                                   .stat_type = CUDNN_DATA_DOUBLE,
                                   .bias = true,
                                   .epsilon = 0x1p-10};
            struct norms_inputs in;
            if (rows[r].mode == CUDNN_GROUP_NORM && !given) continue;
            if (!case_begin("differences/%s/rank%d/%s", norms_mode_names[rows[r].mode],
                            rows[r].rank, given ? "given" : "computed")) {
                continue;
            }
            norms_set_dims(&c, rows[r].rank, rows[r].dim, rows[r].stat, rows[r].scale);
            c.statistics = given;
            norms_make_tensors(&c, -2.0, 2.0);
            if (given) {
                /* the true statistics, of the forward pass by the library itself */
                struct norms_case forward = c;
                struct graph_run run = {.count = 0};
                be_desc op;
                forward.phase = NORMS_TRAINING;
                forward.y = norms_fresh(CUDNN_DATA_DOUBLE, c.rank, c.dim, LAYOUT_NCHW);
                forward.inv_std = norms_fresh(CUDNN_DATA_DOUBLE, c.rank, c.stat_dim, LAYOUT_NCHW);
                if (c.mean)
                    forward.mean = norms_fresh(CUDNN_DATA_DOUBLE, c.rank, c.stat_dim, LAYOUT_NCHW);
                op = norms_forward_operation(&run, &forward, graph_tensor(&run, c.scale),
                                             graph_tensor(&run, forward.y));
                if (graph_run(&run, 1, &op)) {
                    for (int64_t k = 0; k < c.inv_std->count; ++k) {
                        c.inv_std->value[k] = forward.inv_std->value[k];
                        if (c.mean) c.mean->value[k] = forward.mean->value[k];
                    }
                }
                if (!harness_values) {
                    for (int64_t k = 0; k < c.inv_std->count; ++k) c.inv_std->value[k] = 1.0;
                }
                tensor_write(c.inv_std);
                if (c.mean) tensor_write(c.mean);
                be_free_all();
            }
            in = norms_inputs(&c);
            in.bias = calloc((size_t)c.scale->count, sizeof *in.bias);
            if (norms_run(&c) && harness_values) {
                for (int64_t i = 0; i < c.x->count; ++i) {
                    compare_difference("dx", &c, &in, in.x, i, c.dx->value[i]);
                }
                for (int64_t p = 0; p < c.scale->count; ++p) {
                    compare_difference("dscale", &c, &in, in.scale, p, c.dscale->value[p]);
                    compare_difference("dbias", &c, &in, in.bias, p, c.dbias->value[p]);
                }
            }
            norms_inputs_free(&in);
            case_end();
        }
    }
}

/* As a frontend says a gamma around zero with a relu behind: scale + 1, layer norm, relu, of which
 * what lies between is virtual. */
static void zero_centered(int mode)
{
    static const int dim[4] = {6, 8, 1, 1}, stat[4] = {6, 1, 1, 1}, scale_dim[4] = {1, 8, 1, 1};
    static const int64_t wide_dim[4] = {6, 8, 1, 1}, wide_scale[4] = {1, 8, 1, 1};
    struct norms_case c = {.mode = mode,
                           .phase = NORMS_TRAINING,
                           .x_type = CUDNN_DATA_HALF,
                           .y_type = CUDNN_DATA_FLOAT,
                           .param_type = CUDNN_DATA_FLOAT,
                           .stat_type = CUDNN_DATA_FLOAT,
                           .bias = true,
                           .statistics = true,
                           .epsilon = 0x1p-17};
    struct graph_run r = {.count = 0};
    struct norms_inputs in;
    struct tensor *y;
    be_desc ops[3];
    be_desc gamma;
    be_desc virtual_y;
    if (!case_begin("zero_centered/%s", norms_mode_names[mode])) return;
    norms_set_dims(&c, 4, dim, stat, scale_dim);
    if (mode == CUDNN_ADA_LAYER_NORM) c.scale_dim[0] = 1;
    norms_make_tensors(&c, -3.0, 3.0);
    in = norms_inputs(&c);
    y = norms_fresh(CUDNN_DATA_HALF, 4, dim, LAYOUT_NHWC);
    gamma = be_tensor(1000, CUDNN_DATA_FLOAT, 4, wide_scale, BE_VIRTUAL);
    virtual_y = be_tensor(1001, CUDNN_DATA_FLOAT, 4, wide_dim, BE_VIRTUAL);
    ops[0] = be_pointwise(CUDNN_POINTWISE_ADD, graph_tensor(&r, c.scale),
                          graph_scalar(&r, CUDNN_DATA_FLOAT, 4, 1.0), NULL, gamma);
    ops[1] = norms_forward_operation(&r, &c, gamma, virtual_y);
    ops[2] = be_pointwise(CUDNN_POINTWISE_RELU_FWD, virtual_y, NULL, NULL, graph_tensor(&r, y));
    if (graph_run(&r, 3, ops)) {
        double *exact = calloc((size_t)y->count, sizeof *exact);
        double *size = calloc((size_t)y->count, sizeof *size);
        for (int n = 0; n < 6; ++n) {
            double mean = 0.0, var = 0.0, inv;
            for (int k = 0; k < 8 && mode != CUDNN_RMS_NORM; ++k) mean += in.x[n * 8 + k] / 8.0;
            for (int k = 0; k < 8; ++k) {
                var += (in.x[n * 8 + k] - mean) * (in.x[n * 8 + k] - mean) / 8.0;
            }
            inv = 1.0 / sqrt(var + c.epsilon);
            for (int k = 0; k < 8; ++k) {
                double scaled = (in.scale[k] + 1.0) * (in.x[n * 8 + k] - mean) * inv;
                exact[n * 8 + k] = fmax(scaled + in.bias[k], 0.0);
                size[n * 8 + k] = fabs(in.scale[k] + 1.0) * 6.0 * inv + fabs(in.bias[k]);
            }
        }
        check_values("y", y, exact, NULL, size, CUDNN_DATA_FLOAT);
        free(exact), free(size);
    }
    norms_inputs_free(&in);
    be_free_all();
    case_end();
}

/* Two buffers of peers on the one device change nothing: there is nobody else to ask. */
static void peers_case(enum norms_phase phase)
{
    static const int dim[4] = {4, 3, 2, 5}, stat[4] = {1, 3, 1, 1}, peer[4] = {2, 12, 1, 1};
    struct norms_case c = {.mode = CUDNN_BATCH_NORM,
                           .phase = phase,
                           .x_type = CUDNN_DATA_HALF,
                           .y_type = CUDNN_DATA_HALF,
                           .param_type = CUDNN_DATA_FLOAT,
                           .stat_type = CUDNN_DATA_FLOAT,
                           .bias = true,
                           .statistics = true,
                           .epsilon = 0x1p-17};
    struct graph_run r = {.count = 0};
    struct norms_inputs in;
    be_desc peers[2];
    be_desc op;
    if (!case_begin("peers/%s", norms_phase_names[phase])) return;
    norms_set_dims(&c, 4, dim, stat, stat);
    norms_make_tensors(&c, -3.0, 3.0);
    in = norms_inputs(&c);
    for (int i = 0; i < 2; ++i) {
        peers[i] = graph_tensor(&r, tensor_input(CUDNN_DATA_FLOAT, 4, peer, LAYOUT_NHWC, 0.0, 1.0));
    }
    op = be_make(phase == NORMS_BACKWARD ? CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR
                                         : CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    if (phase == NORMS_BACKWARD) {
        be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, c.mode);
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, graph_tensor(&r, c.x));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, graph_tensor(&r, c.dy));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, graph_tensor(&r, c.scale));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, graph_tensor(&r, c.mean));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, graph_tensor(&r, c.inv_std));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, graph_tensor(&r, c.dx));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, graph_tensor(&r, c.dscale));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, graph_tensor(&r, c.dbias));
        be_set(op, CUDNN_ATTR_OPERATION_NORM_BWD_PEER_STAT_DESCS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2,
               peers);
    } else {
        be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, c.mode);
        be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
                    CUDNN_NORM_FWD_TRAINING);
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, graph_tensor(&r, c.x));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, graph_tensor(&r, c.scale));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, graph_tensor(&r, c.bias_tensor));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, graph_tensor(&r, c.mean));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, graph_tensor(&r, c.inv_std));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, norms_scalar(&r, &c, c.epsilon));
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, graph_tensor(&r, c.y));
        be_set(op, CUDNN_ATTR_OPERATION_NORM_FWD_PEER_STAT_DESCS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2,
               peers);
    }
    be_final(op);
    if (graph_run(&r, 1, &op)) {
        if (phase == NORMS_BACKWARD) norms_judge_backward(&c, &in);
        else norms_judge_forward(&c, &in);
    }
    norms_inputs_free(&in);
    be_free_all();
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    finite_differences();
    zero_centered(CUDNN_LAYER_NORM);
    zero_centered(CUDNN_RMS_NORM);
    zero_centered(CUDNN_ADA_LAYER_NORM);
    peers_case(NORMS_TRAINING);
    peers_case(NORMS_BACKWARD);
    return harness_finish();
}
