/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch norm's statistics taken apart, through the backend API: sums of channels and their finalization in
 * both modes, against plain sums; together against batch norm's own formula. */
#include <math.h>
#include <stdlib.h>

#include "bn_case.h"
#include "ops/graph_run.h"

static cudnnDataType_t any_float(void)
{
    return random_chance(0.6) ? CUDNN_DATA_FLOAT : bn_types[random_int(0, BN_FLOATS - 1)];
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
    long double total[2][BN_CHANNELS_MAX] = {{0}};
    double exact[2][BN_CHANNELS_MAX] = {{0}};
    double size[2][BN_CHANNELS_MAX] = {{0}};
    for (int64_t i = 0; i < x->count; ++i) {
        int64_t c = bn_channel(x, i);
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
    for (int type = 0; type < BN_TYPES; ++type) {
        for (int turn = 0; turn < turns; ++turn) {
            struct graph_run r = {.count = 0};
            int dim[8], channels[8], rank, compute;
            struct tensor *x, *sum, *squares;
            be_desc op;
            if (!case_begin("sums/%s/%d", bn_type_names[type], turn)) continue;
            rank = bn_dims(bn_types[type], dim, channels);
            if (turn == turns - 1) dim[rank > 2 ? rank - 1 : 0] = 40009; /* in two stages */
            if (turn == turns - 1 && rank > 3) dim[2] = 1;
            compute =
                random_of(CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF);
            x = tensor_input(bn_types[type], rank, dim, bn_layout(bn_types[type]),
                             graph_lane(bn_types[type]) == CUDNN_DATA_UINT8 ? 0.0 : -3.0, 3.0);
            sum = bn_fresh(CUDNN_DATA_FLOAT, rank, channels);
            squares =
                bn_fresh(random_chance(0.3) ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, rank, channels);
            op = stats_operation(graph_tensor(&r, x), graph_tensor(&r, sum),
                                 graph_tensor(&r, squares), compute);
            if (graph_run(&r, 1, &op)) {
                judge_sums(x, sum, squares,
                           compute == CUDNN_DATA_DOUBLE || bn_types[type] == CUDNN_DATA_DOUBLE ||
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
    double exact[OUTPUTS][BN_CHANNELS_MAX] = {{0}};
    double size[OUTPUTS][BN_CHANNELS_MAX] = {{0}};
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
        for (int type = 0; type < BN_FLOATS; ++type) {
            for (int turn = 0; turn < turns; ++turn) {
                struct graph_run r = {.count = 0};
                struct finalize f = {.mode = mode};
                int channels[4] = {1, random_of(1, 3, 8, 61), 1, 1};
                int rank = random_of(3, 4);
                bool trains = mode == CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
                bool averages = !trains || random_chance(0.7);
                be_desc op;
                if (!case_begin("finalize/mode%d/%s/%d", mode, bn_type_names[type], turn)) continue;
                channels[1] = random_of(1, 3, 8, 61);
                f.count = random_of(1, 2, 100, 50176);
                f.epsilon = random_of(0, 1) ? 0x1p-17 : 0x1p-7;
                f.factor = random_chance(0.3) ? 1.0 : 0.125;
                f.in[SCALE] = bn_input(bn_types[type], rank, channels, 0.25, 2.0);
                f.in[BIAS] = bn_input(bn_types[type], rank, channels, -1.0, 1.0);
                if (trains) {
                    double n = (double)f.count;
                    /* sums that fp16 can hold too */
                    f.in[SUM] = bn_input(bn_types[type], rank, channels, -0.5 * n, 0.5 * n);
                    f.in[SQUARES] = bn_input(bn_types[type], rank, channels, 0.5 * n, n);
                }
                if (averages) {
                    f.in[IN_MEAN] = bn_input(any_float(), rank, channels, -1.0, 1.0);
                    f.in[IN_VAR] = bn_input(any_float(), rank, channels, 0.5, 2.0);
                }
                for (int i = 0; i < OUTPUTS; ++i) {
                    if (i <= OUT_VAR && !averages) continue;
                    if (i != EQ_SCALE && random_chance(0.2)) continue;
                    f.out[i] = bn_fresh(bn_types[type], rank, channels);
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
    y = bn_fresh(type, 4, dim);
    for (int i = SCALE; i < INPUTS; ++i) {
        f.in[i] = bn_input(CUDNN_DATA_FLOAT, 4, channels, 0.5, 2.0);
    }
    for (int i = 0; i < EQ_SCALE; ++i) f.out[i] = bn_fresh(CUDNN_DATA_FLOAT, 4, channels);
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
        for (int64_t i = 0; i < x->count; ++i) mean[bn_channel(x, i)] += x->value[i] / 84.0;
        for (int64_t i = 0; i < x->count; ++i) {
            double d = x->value[i] - mean[bn_channel(x, i)];
            var[bn_channel(x, i)] += d * d / 84.0;
        }
        for (int64_t i = 0; i < x->count; ++i) {
            int64_t c = bn_channel(x, i);
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

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    stats_cases(16);
    finalize_cases(10);
    together(CUDNN_DATA_FLOAT);
    together(CUDNN_DATA_HALF);
    return harness_finish();
}
