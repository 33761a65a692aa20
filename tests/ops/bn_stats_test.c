/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch norm's statistics taken apart, through the backend API: sums of channels, their finalization
 * in both modes, and the weights of the backward pass, against plain sums; together against batch
 * norm's own formula, and its gradient against finite differences. */
#include <math.h>
#include <stdlib.h>

#include "ops/graph_run.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
enum { C_MAX = 64 };

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                        CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8,   CUDNN_DATA_UINT8,
                                        CUDNN_DATA_INT32,    CUDNN_DATA_INT8x4, CUDNN_DATA_UINT8x4,
                                        CUDNN_DATA_INT8x32};
static const char *const type_names[] = {"f32",   "f64",   "f16",    "bf16",    "int8",
                                         "uint8", "int32", "int8x4", "uint8x4", "int8x32"};
enum { FLOATS = 4 };

static enum layout any_layout(cudnnDataType_t dtype)
{
    if (graph_lane(dtype) != dtype) return LAYOUT_VECT;
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

static cudnnDataType_t any_float(void)
{
    return random_chance(0.6) ? CUDNN_DATA_FLOAT : types[random_int(0, FLOATS - 1)];
}

static cudnnDataType_t compute_of(cudnnDataType_t a, cudnnDataType_t b)
{
    return a == CUDNN_DATA_DOUBLE || b == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

static int make_dims(cudnnDataType_t dtype, int *dim, int *channels)
{
    int rank = random_of(2, 3, 4, 4, 5);
    for (int d = 0; d < rank; ++d) {
        dim[d] = random_of(1, 2, 3, 5, 7, 11);
        channels[d] = 1;
    }
    if (dtype == CUDNN_DATA_INT8x32) dim[1] = 64;
    if (dtype == CUDNN_DATA_INT8x4 || dtype == CUDNN_DATA_UINT8x4) dim[1] = 12;
    channels[1] = dim[1];
    return rank;
}

/* The channel of a logical index of x. */
static int64_t channel_of(const struct tensor *x, int64_t i)
{
    int64_t inner = 1;
    for (int d = 2; d < x->rank; ++d) inner *= x->dim[d];
    return i / inner % x->dim[1];
}

static struct tensor *fresh(cudnnDataType_t dtype, int rank, const int *dim)
{
    struct tensor *t =
        tensor_inout(dtype, rank, dim, (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC), 0.0, 1.0);
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN;
    tensor_write(t);
    return t;
}

static struct tensor *input(cudnnDataType_t dtype, int rank, const int *dim, double low,
                            double high)
{
    return tensor_input(dtype, rank, dim, (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC), low,
                        high);
}

/* ---- Sums ---- */

static be_desc stats_operation(be_desc x, be_desc sum, be_desc squares, int compute)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    be_set_enum(op, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE,
                CUDNN_GENSTATS_SUM_SQSUM);
    be_set_enum(op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
    be_set_ref(op, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, x);
    be_set_ref(op, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum);
    be_set_ref(op, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
    return be_final(op);
}

static void judge_sums(const struct tensor *x, const struct tensor *sum,
                       const struct tensor *squares, cudnnDataType_t compute)
{
    long double total[2][C_MAX] = {{0}};
    double exact[2][C_MAX] = {{0}};
    double size[2][C_MAX] = {{0}};
    for (int64_t i = 0; i < x->count; ++i) {
        int64_t c = channel_of(x, i);
        total[0][c] += x->value[i];
        total[1][c] += (long double)x->value[i] * x->value[i];
        size[0][c] += fabs(x->value[i]);
        size[1][c] += x->value[i] * x->value[i];
    }
    for (int c = 0; c < x->dim[1]; ++c) {
        exact[0][c] = (double)total[0][c];
        exact[1][c] = (double)total[1][c];
    }
    check_values("sum", sum, exact[0], NULL, size[0], compute);
    check_values("sum of squares", squares, exact[1], NULL, size[1], compute);
}

static void stats_cases(int turns)
{
    for (int type = 0; type < COUNT(types); ++type) {
        for (int turn = 0; turn < turns; ++turn) {
            struct graph_run r = {.count = 0};
            int dim[8], channels[8], rank, compute;
            struct tensor *x, *sum, *squares;
            be_desc op;
            if (!case_begin("sums/%s/%d", type_names[type], turn)) continue;
            rank = make_dims(types[type], dim, channels);
            if (turn == turns - 1) dim[rank > 2 ? rank - 1 : 0] = 40009; /* in two stages */
            if (turn == turns - 1 && rank > 3) dim[2] = 1;
            compute =
                random_of(CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF);
            x = tensor_input(types[type], rank, dim, any_layout(types[type]),
                             graph_lane(types[type]) == CUDNN_DATA_UINT8 ? 0.0 : -3.0, 3.0);
            sum = fresh(CUDNN_DATA_FLOAT, rank, channels);
            squares =
                fresh(random_chance(0.3) ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, rank, channels);
            op = stats_operation(graph_tensor(&r, x), graph_tensor(&r, sum),
                                 graph_tensor(&r, squares), compute);
            if (graph_run(&r, 1, &op)) {
                judge_sums(x, sum, squares,
                           compute == CUDNN_DATA_DOUBLE || types[type] == CUDNN_DATA_DOUBLE ||
                                   squares->dtype == CUDNN_DATA_DOUBLE
                               ? CUDNN_DATA_DOUBLE
                               : CUDNN_DATA_FLOAT);
            }
            be_free_all();
            case_end();
        }
    }
}

/* ---- Finalization ---- */

enum { SUM, SQUARES, SCALE, BIAS, IN_MEAN, IN_VAR, INPUTS };
enum { OUT_MEAN, OUT_VAR, MEAN, INV_STD, EQ_SCALE, EQ_BIAS, OUTPUTS };
static const cudnnBackendAttributeName_t finalize_inputs[INPUTS] = {
    CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC};
static const cudnnBackendAttributeName_t finalize_outputs[OUTPUTS] = {
    CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC};
static const char *const output_names[OUTPUTS] = {"out_mean", "out_var",  "mean",
                                                  "inv_std",  "eq_scale", "eq_bias"};

struct finalize {
    int mode;
    int64_t count;
    double epsilon, factor;
    struct tensor *in[INPUTS], *out[OUTPUTS];
};

static be_desc finalize_operation(struct graph_run *r, const struct finalize *f, int rank,
                                  be_desc sum, be_desc squares)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR);
    bool trains = f->mode == CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
    be_set_enum(op, CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE, CUDNN_TYPE_BN_FINALIZE_STATS_MODE,
                f->mode);
    be_set_enum(op, CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                CUDNN_DATA_FLOAT);
    graph_ref(op, finalize_inputs[SUM], sum);
    graph_ref(op, finalize_inputs[SQUARES], squares);
    for (int i = SCALE; i < INPUTS; ++i) {
        if (f->in[i]) graph_ref(op, finalize_inputs[i], graph_tensor(r, f->in[i]));
    }
    for (int i = 0; i < OUTPUTS; ++i) {
        if (f->out[i]) graph_ref(op, finalize_outputs[i], graph_tensor(r, f->out[i]));
    }
    graph_ref(op, CUDNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC,
              graph_scalar(r, CUDNN_DATA_FLOAT, rank, f->epsilon));
    if (trains) {
        graph_ref(op, CUDNN_ATTR_OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC,
                  graph_scalar(r, CUDNN_DATA_FLOAT, rank, f->factor));
        graph_ref(op, CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC,
                  graph_scalar(r, CUDNN_DATA_INT64, rank, (double)f->count));
    }
    return be_final(op);
}

/* Of sums as they are given. */
static void judge_finalize(const struct finalize *f, int64_t channels)
{
    double exact[OUTPUTS][C_MAX] = {{0}};
    double size[OUTPUTS][C_MAX] = {{0}};
    double n = (double)f->count;
    bool trains = f->mode == CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
    for (int64_t c = 0; c < channels; ++c) {
        double mean, var, inv, scale = f->in[SCALE]->value[c], bias = f->in[BIAS]->value[c];
        double keep = 1.0 - f->factor;
        if (trains) {
            double square = f->in[SQUARES]->value[c] / n;
            mean = f->in[SUM]->value[c] / n;
            var = fmax(square - mean * mean, 0.0);
            exact[OUT_MEAN][c] = f->factor * mean;
            exact[OUT_VAR][c] = f->factor * (n > 1 ? var * n / (n - 1) : var);
            if (f->factor != 1.0 && f->in[IN_MEAN]) {
                exact[OUT_MEAN][c] += keep * f->in[IN_MEAN]->value[c];
                exact[OUT_VAR][c] += keep * f->in[IN_VAR]->value[c];
            }
        } else {
            mean = exact[OUT_MEAN][c] = f->in[IN_MEAN]->value[c];
            var = exact[OUT_VAR][c] = f->in[IN_VAR]->value[c];
        }
        inv = 1.0 / sqrt(var + f->epsilon);
        exact[MEAN][c] = mean;
        exact[INV_STD][c] = inv;
        exact[EQ_SCALE][c] = scale * inv;
        exact[EQ_BIAS][c] = bias - mean * scale * inv;
        for (int i = 0; i < OUTPUTS; ++i) size[i][c] = fabs(exact[i][c]);
        size[EQ_BIAS][c] = fabs(bias) + fabs(mean * scale * inv);
        size[OUT_MEAN][c] = fabs(f->factor * mean) + fabs(exact[OUT_MEAN][c]);
    }
    for (int i = 0; i < OUTPUTS; ++i) {
        if (!f->out[i]) continue;
        check_values(output_names[i], f->out[i], exact[i], NULL, size[i], f->out[i]->dtype);
    }
}

static void finalize_cases(int turns)
{
    for (int mode = 0; mode < 2; ++mode) {
        for (int type = 0; type < FLOATS; ++type) {
            for (int turn = 0; turn < turns; ++turn) {
                struct graph_run r = {.count = 0};
                struct finalize f = {.mode = mode};
                int channels[4] = {1, random_of(1, 3, 8, 61), 1, 1};
                int rank = random_of(3, 4);
                bool trains = mode == CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
                bool averages = !trains || random_chance(0.7);
                be_desc op;
                if (!case_begin("finalize/mode%d/%s/%d", mode, type_names[type], turn)) continue;
                channels[1] = random_of(1, 3, 8, 61);
                f.count = random_of(1, 2, 100, 50176);
                f.epsilon = random_of(0, 1) ? 0x1p-17 : 0x1p-7;
                f.factor = random_chance(0.3) ? 1.0 : 0.125;
                f.in[SCALE] = input(types[type], rank, channels, 0.25, 2.0);
                f.in[BIAS] = input(types[type], rank, channels, -1.0, 1.0);
                if (trains) {
                    double n = (double)f.count;
                    /* sums that fp16 can hold too */
                    f.in[SUM] = input(types[type], rank, channels, -0.5 * n, 0.5 * n);
                    f.in[SQUARES] = input(types[type], rank, channels, 0.5 * n, n);
                }
                if (averages) {
                    f.in[IN_MEAN] = input(any_float(), rank, channels, -1.0, 1.0);
                    f.in[IN_VAR] = input(any_float(), rank, channels, 0.5, 2.0);
                }
                for (int i = 0; i < OUTPUTS; ++i) {
                    if (i <= OUT_VAR && !averages) continue;
                    if (i != EQ_SCALE && random_chance(0.2)) continue;
                    f.out[i] = fresh(types[type], rank, channels);
                }
                op = finalize_operation(&r, &f, rank, trains ? graph_tensor(&r, f.in[SUM]) : NULL,
                                        trains ? graph_tensor(&r, f.in[SQUARES]) : NULL);
                if (graph_run(&r, 1, &op)) judge_finalize(&f, channels[1]);
                be_free_all();
                case_end();
            }
        }
    }
}

/* ---- Backward weights ---- */

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
    long double total[2][C_MAX] = {{0}};
    double exact[WEIGHTS][C_MAX] = {{0}};
    double size[WEIGHTS][C_MAX] = {{0}};
    int64_t channels = w->x->dim[1];
    double n = (double)(w->x->count / channels);
    for (int64_t i = 0; i < w->x->count; ++i) {
        int64_t c = channel_of(w->x, i);
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
    for (int type = 0; type < FLOATS; ++type) {
        for (int turn = 0; turn < turns; ++turn) {
            struct graph_run r = {.count = 0};
            struct weights w = {0};
            cudnnDataType_t param = turn % 3 == 2 ? types[type] : CUDNN_DATA_FLOAT;
            int dim[8], channels[8], rank;
            be_desc op;
            if (!case_begin("weights/%s/%d", type_names[type], turn)) continue;
            rank = make_dims(types[type], dim, channels);
            if (turn == turns - 1) dim[0] = 40009; /* in two stages */
            if (turn == turns - 1 && rank > 2) dim[2] = 1;
            w.x = tensor_input(types[type], rank, dim, any_layout(types[type]), -3.0, 3.0);
            w.dy = tensor_input(types[type], rank, dim, any_layout(types[type]), -2.0, 2.0);
            w.mean = input(param, rank, channels, -1.0, 1.0);
            w.inv_std = input(param, rank, channels, 0.3, 1.5);
            w.scale = input(param, rank, channels, 0.25, 2.0);
            for (int i = 0; i < WEIGHTS; ++i) {
                if (i != EQ_X && random_chance(0.15)) continue;
                w.out[i] = fresh(param, rank, channels);
            }
            op = weights_operation(&r, &w);
            if (graph_run(&r, 1, &op)) judge_weights(&w, compute_of(types[type], param));
            be_free_all();
            case_end();
        }
    }
}

/* ---- Together ---- */

/* Sums, finalization, scale and bias as pointwise operations: batch norm's training, with the sums
 * virtual. */
static void together(cudnnDataType_t type)
{
    static const int dim[4] = {3, 5, 4, 7}, channels[4] = {1, 5, 1, 1};
    static const int64_t wide[4] = {3, 5, 4, 7}, sums[4] = {1, 5, 1, 1};
    struct graph_run r = {.count = 0};
    struct finalize f = {.mode = CUDNN_BN_FINALIZE_STATISTICS_TRAINING,
                         .count = 84,
                         .epsilon = 0x1p-10,
                         .factor = 0.25};
    struct tensor *x, *y;
    double mean[5] = {0}, var[5] = {0};
    double *exact, *size;
    be_desc ops[4], v[5], xd;
    if (!case_begin("together/%s", type == CUDNN_DATA_HALF ? "f16" : "f32")) return;
    x = tensor_input(type, 4, dim, LAYOUT_NHWC, -3.0, 3.0);
    y = fresh(type, 4, dim);
    for (int i = SCALE; i < INPUTS; ++i) {
        f.in[i] = input(CUDNN_DATA_FLOAT, 4, channels, 0.5, 2.0);
    }
    for (int i = 0; i < EQ_SCALE; ++i) f.out[i] = fresh(CUDNN_DATA_FLOAT, 4, channels);
    for (int i = 0; i < 4; ++i) v[i] = be_tensor(500 + i, CUDNN_DATA_FLOAT, 4, sums, BE_VIRTUAL);
    v[4] = be_tensor(504, CUDNN_DATA_FLOAT, 4, wide, BE_VIRTUAL);
    xd = graph_tensor(&r, x);
    ops[0] = stats_operation(xd, v[0], v[1], CUDNN_DATA_FLOAT);
    ops[1] = be_make(CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR);
    be_set_enum(ops[1], CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE,
                CUDNN_TYPE_BN_FINALIZE_STATS_MODE, f.mode);
    graph_ref(ops[1], finalize_inputs[SUM], v[0]);
    graph_ref(ops[1], finalize_inputs[SQUARES], v[1]);
    for (int i = SCALE; i < INPUTS; ++i) {
        graph_ref(ops[1], finalize_inputs[i], graph_tensor(&r, f.in[i]));
    }
    for (int i = 0; i < EQ_SCALE; ++i) {
        graph_ref(ops[1], finalize_outputs[i], graph_tensor(&r, f.out[i]));
    }
    graph_ref(ops[1], finalize_outputs[EQ_SCALE], v[2]);
    graph_ref(ops[1], finalize_outputs[EQ_BIAS], v[3]);
    graph_ref(ops[1], CUDNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC,
              graph_scalar(&r, CUDNN_DATA_FLOAT, 4, f.epsilon));
    graph_ref(ops[1], CUDNN_ATTR_OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC,
              graph_scalar(&r, CUDNN_DATA_DOUBLE, 4, f.factor));
    graph_ref(ops[1], CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC,
              graph_scalar(&r, CUDNN_DATA_INT64, 4, 84.0));
    be_final(ops[1]);
    ops[2] = be_pointwise(CUDNN_POINTWISE_MUL, xd, v[2], NULL, v[4]);
    ops[3] = be_pointwise(CUDNN_POINTWISE_ADD, v[4], v[3], NULL, graph_tensor(&r, y));
    exact = calloc((size_t)x->count, sizeof *exact);
    size = calloc((size_t)x->count, sizeof *size);
    if (graph_run(&r, 4, ops)) {
        for (int64_t i = 0; i < x->count; ++i) mean[channel_of(x, i)] += x->value[i] / 84.0;
        for (int64_t i = 0; i < x->count; ++i) {
            double d = x->value[i] - mean[channel_of(x, i)];
            var[channel_of(x, i)] += d * d / 84.0;
        }
        for (int64_t i = 0; i < x->count; ++i) {
            int64_t c = channel_of(x, i);
            double scale = f.in[SCALE]->value[c] / sqrt(var[c] + f.epsilon);
            exact[i] = scale * (x->value[i] - mean[c]) + f.in[BIAS]->value[c];
            size[i] = fabs(scale) * (fabs(x->value[i]) + 3.0) + fabs(f.in[BIAS]->value[c]);
        }
        check_values("y", y, exact, NULL, size, CUDNN_DATA_FLOAT);
        for (int c = 0; c < 5; ++c) {
            exact[c] = 0.75 * f.in[IN_VAR]->value[c] + 0.25 * var[c] * 84.0 / 83.0;
            size[c] = 8.0;
        }
        check_values("out_var", f.out[OUT_VAR], exact, NULL, size, CUDNN_DATA_FLOAT);
    }
    free(exact), free(size);
    be_free_all();
    case_end();
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
    for (int i = 0; i < WEIGHTS; ++i) w.out[i] = fresh(CUDNN_DATA_DOUBLE, 4, channels);
    for (int c = 0; c < 2; ++c) {
        double mean = 0.0, var = 0.0;
        for (int64_t i = 0; i < 36; ++i) mean += channel_of(w.x, i) == c ? w.x->value[i] / 18 : 0.0;
        for (int64_t i = 0; i < 36; ++i) {
            double d = w.x->value[i] - mean;
            var += channel_of(w.x, i) == c ? d * d / 18 : 0.0;
        }
        w.mean->value[c] = mean;
        w.inv_std->value[c] = 1.0 / sqrt(var + epsilon);
    }
    tensor_write(w.mean), tensor_write(w.inv_std);
    op = weights_operation(&r, &w);
    if (graph_run(&r, 1, &op) && harness_values) {
        for (int64_t k = 0; k < 36; ++k) {
            int64_t c = channel_of(w.x, k);
            double loss[2] = {0};
            double kept = w.x->value[k];
            double dx = w.out[EQ_DY]->value[c] * w.dy->value[k] + w.out[EQ_X]->value[c] * kept +
                        w.out[EQ_B]->value[c];
            for (int side = 0; side < 2; ++side) {
                double mean = 0.0, var = 0.0;
                w.x->value[k] = kept + (side ? 1e-5 : -1e-5);
                for (int64_t i = 0; i < 36; ++i) {
                    mean += channel_of(w.x, i) == c ? w.x->value[i] / 18 : 0.0;
                }
                for (int64_t i = 0; i < 36; ++i) {
                    double d = w.x->value[i] - mean;
                    var += channel_of(w.x, i) == c ? d * d / 18 : 0.0;
                }
                for (int64_t i = 0; i < 36; ++i) {
                    if (channel_of(w.x, i) != c) continue;
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
    stats_cases(16);
    finalize_cases(10);
    weights_cases(9);
    together(CUDNN_DATA_FLOAT);
    together(CUDNN_DATA_HALF);
    differences();
    return harness_finish();
}
