/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights of batch norm's backward pass, through the backend API, against plain sums; the gradient
 * that they make also against finite differences. */
#include <math.h>

#include "bn_case.h"
#include "ops/graph_run.h"

enum { DSCALE, DBIAS, EQ_DY, EQ_X, EQ_B, WEIGHTS };
static const cudnnBackendAttributeName_t weight_outputs[WEIGHTS] = {
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS};
static const char *const weight_names[WEIGHTS] = {"dscale", "dbias", "eq_dy_scale", "eq_x_scale",
                                                  "eq_bias"};

struct weights {
    struct tensor *x, *dy, *mean, *inv_std, *scale, *out[WEIGHTS];
};

static be_desc weights_operation(struct graph_run *r, const struct weights *w)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
    be_set_enum(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                CUDNN_DATA_FLOAT);
    graph_ref(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, graph_tensor(r, w->x));
    graph_ref(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, graph_tensor(r, w->dy));
    graph_ref(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, graph_tensor(r, w->mean));
    graph_ref(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, graph_tensor(r, w->inv_std));
    graph_ref(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, graph_tensor(r, w->scale));
    for (int i = 0; i < WEIGHTS; ++i) {
        if (w->out[i]) graph_ref(op, weight_outputs[i], graph_tensor(r, w->out[i]));
    }
    return be_final(op);
}

static void judge_weights(const struct weights *w, cudnnDataType_t compute)
{
    long double total[2][BN_CHANNELS_MAX] = {{0}};
    double exact[WEIGHTS][BN_CHANNELS_MAX] = {{0}};
    double size[WEIGHTS][BN_CHANNELS_MAX] = {{0}};
    int64_t channels = w->x->dim[1];
    double n = (double)(w->x->count / channels);
    for (int64_t i = 0; i < w->x->count; ++i) {
        int64_t c = bn_channel(w->x, i);
        double xhat = (w->x->value[i] - w->mean->value[c]) * w->inv_std->value[c];
        total[DSCALE][c] += (long double)w->dy->value[i] * xhat;
        total[DBIAS][c] += w->dy->value[i];
        size[DSCALE][c] += fabs(w->dy->value[i] * xhat);
        size[DBIAS][c] += fabs(w->dy->value[i]);
    }
    for (int64_t c = 0; c < channels; ++c) {
        double inv = w->inv_std->value[c], factor = w->scale->value[c] * inv;
        double mean = w->mean->value[c];
        exact[DSCALE][c] = (double)total[DSCALE][c];
        exact[DBIAS][c] = (double)total[DBIAS][c];
        exact[EQ_DY][c] = factor;
        exact[EQ_X][c] = -factor * inv * exact[DSCALE][c] / n;
        exact[EQ_B][c] = factor * (mean * inv * exact[DSCALE][c] - exact[DBIAS][c]) / n;
        size[EQ_DY][c] = fabs(factor);
        size[EQ_X][c] = fabs(factor) * inv * size[DSCALE][c] / n;
        size[EQ_B][c] = fabs(factor) * (fabs(mean) * inv * size[DSCALE][c] + size[DBIAS][c]) / n;
    }
    for (int i = 0; i < WEIGHTS; ++i) {
        if (w->out[i]) check_values(weight_names[i], w->out[i], exact[i], NULL, size[i], compute);
    }
}

static void weights_cases(int turns)
{
    for (int type = 0; type < BN_FLOATS; ++type) {
        for (int turn = 0; turn < turns; ++turn) {
            struct graph_run r = {.count = 0};
            struct weights w = {0};
            cudnnDataType_t param = turn % 3 == 2 ? bn_types[type] : CUDNN_DATA_FLOAT;
            int dim[8], channels[8], rank;
            be_desc op;
            if (!case_begin("weights/%s/%d", bn_type_names[type], turn)) continue;
            rank = bn_dims(bn_types[type], dim, channels);
            if (turn == turns - 1) dim[0] = 40009; /* in two stages */
            if (turn == turns - 1 && rank > 2) dim[2] = 1;
            w.x = tensor_input(bn_types[type], rank, dim, bn_layout(bn_types[type]), -3.0, 3.0);
            w.dy = tensor_input(bn_types[type], rank, dim, bn_layout(bn_types[type]), -2.0, 2.0);
            w.mean = bn_input(param, rank, channels, -1.0, 1.0);
            w.inv_std = bn_input(param, rank, channels, 0.3, 1.5);
            w.scale = bn_input(param, rank, channels, 0.25, 2.0);
            for (int i = 0; i < WEIGHTS; ++i) {
                if (i != EQ_X && random_chance(0.15)) continue;
                w.out[i] = bn_fresh(param, rank, channels);
            }
            op = weights_operation(&r, &w);
            if (graph_run(&r, 1, &op)) judge_weights(&w, bn_compute(bn_types[type], param));
            be_free_all();
            case_end();
        }
    }
}

/* dx = eq_dy_scale dy + eq_x_scale x + eq_bias is batch norm's gradient, taken by differences of
 * sum(w y) in double. */
static void differences(void)
{
    static const int dim[4] = {3, 2, 2, 3}, channels[4] = {1, 2, 1, 1};
    struct graph_run r = {.count = 0};
    struct weights w;
    double epsilon = 0x1p-10;
    be_desc op;
    if (!case_begin("differences")) return;
    w.x = tensor_input(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, -2.0, 2.0);
    w.dy = tensor_input(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NHWC, -2.0, 2.0);
    w.scale = tensor_input(CUDNN_DATA_DOUBLE, 4, channels, LAYOUT_NCHW, 0.5, 2.0);
    w.mean = tensor_input(CUDNN_DATA_DOUBLE, 4, channels, LAYOUT_NCHW, 0.0, 0.0);
    w.inv_std = tensor_input(CUDNN_DATA_DOUBLE, 4, channels, LAYOUT_NCHW, 0.0, 0.0);
    for (int i = 0; i < WEIGHTS; ++i) w.out[i] = bn_fresh(CUDNN_DATA_DOUBLE, 4, channels);
    for (int c = 0; c < 2; ++c) {
        double mean = 0.0, var = 0.0;
        for (int64_t i = 0; i < 36; ++i) mean += bn_channel(w.x, i) == c ? w.x->value[i] / 18 : 0.0;
        for (int64_t i = 0; i < 36; ++i) {
            double d = w.x->value[i] - mean;
            var += bn_channel(w.x, i) == c ? d * d / 18 : 0.0;
        }
        w.mean->value[c] = mean;
        w.inv_std->value[c] = 1.0 / sqrt(var + epsilon);
    }
    tensor_write(w.mean), tensor_write(w.inv_std);
    op = weights_operation(&r, &w);
    if (graph_run(&r, 1, &op) && harness_values) {
        for (int64_t k = 0; k < 36; ++k) {
            int64_t c = bn_channel(w.x, k);
            double loss[2] = {0};
            double kept = w.x->value[k];
            double dx = w.out[EQ_DY]->value[c] * w.dy->value[k] + w.out[EQ_X]->value[c] * kept +
                        w.out[EQ_B]->value[c];
            for (int side = 0; side < 2; ++side) {
                double mean = 0.0, var = 0.0;
                w.x->value[k] = kept + (side ? 1e-5 : -1e-5);
                for (int64_t i = 0; i < 36; ++i) {
                    mean += bn_channel(w.x, i) == c ? w.x->value[i] / 18 : 0.0;
                }
                for (int64_t i = 0; i < 36; ++i) {
                    double d = w.x->value[i] - mean;
                    var += bn_channel(w.x, i) == c ? d * d / 18 : 0.0;
                }
                for (int64_t i = 0; i < 36; ++i) {
                    if (bn_channel(w.x, i) != c) continue;
                    loss[side] += w.dy->value[i] * w.scale->value[c] * (w.x->value[i] - mean) /
                                  sqrt(var + epsilon);
                }
            }
            w.x->value[k] = kept;
            if (fabs((loss[1] - loss[0]) / 2e-5 - dx) > 2e-6 * (1.0 + fabs(dx))) {
                case_fail("dx[%d] is %.10g, the finite difference %.10g", (int)k, dx,
                          (loss[1] - loss[0]) / 2e-5);
            }
        }
    }
    be_free_all();
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    weights_cases(9);
    differences();
    return harness_finish();
}
