/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizations of the backend API: every mode in every phase, of random shapes, layouts and
 * combinations of types, with and without statistics, against plain sums; gradients also against
 * finite differences; hard values, large items, and what a frontend builds around a normalization. */
#include <math.h>
#include <stdlib.h>

#include "norms_case.h"
#include "ops/graph_run.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const char *const mode_names[] = {"layer", "instance", "batch", "group", "rms", "ada"};
static const char *const phase_names[] = {"inference", "training", "backward"};
static const cudnnDataType_t floats[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                         CUDNN_DATA_BFLOAT16};
static const char *const float_names[] = {"f32", "f64", "f16", "bf16"};

static bool is_layer(int mode)
{
    return mode == CUDNN_LAYER_NORM || mode == CUDNN_RMS_NORM || mode == CUDNN_ADA_LAYER_NORM;
}

/* Over which dimensions a layer norm runs. Without statistics it is told by the scale: those in which
 * the scale varies, or all but the first where it varies in none. */
static void layer_shape(struct norms_case *c)
{
    bool runs[8] = {false};
    bool varies = false;
    int kind = random_of(0, 1, 2);
    bool known = c->statistics;
    for (int d = 1; d < c->rank; ++d) {
        runs[d] = kind == 0 || (kind == 1 ? d == c->rank - 1 : random_chance(0.5));
    }
    for (int d = 0; d < c->rank; ++d) {
        /* with statistics the scale may be coarser than what is normalized */
        bool full = runs[d] && !(known && random_chance(0.2));
        c->scale_dim[d] = full ? c->dim[d] : 1;
        varies = varies || c->scale_dim[d] != 1;
    }
    if (!known && !varies) {
        for (int d = 1; d < c->rank; ++d) runs[d] = true;
    }
    for (int d = 0; d < c->rank; ++d) c->stat_dim[d] = runs[d] ? 1 : c->dim[d];
    if (c->mode == CUDNN_ADA_LAYER_NORM && random_chance(0.8)) c->scale_dim[0] = c->dim[0];
}

static void make_shape(struct norms_case *c)
{
    c->rank = is_layer(c->mode) ? random_of(2, 3, 4, 4, 5) : random_of(3, 4, 4, 5);
    for (int d = 0; d < c->rank; ++d) c->dim[d] = random_of(1, 2, 3, 4, 5, 6, 7, 11);
    if (c->mode == CUDNN_BATCH_NORM && c->dim[0] == 1) c->dim[0] = 3;
    if (c->x_type == CUDNN_DATA_INT8x32) c->dim[1] = 64;
    if (c->x_type == CUDNN_DATA_INT8x4 || c->x_type == CUDNN_DATA_UINT8x4) c->dim[1] = 12;
    if (is_layer(c->mode)) {
        layer_shape(c);
        return;
    }
    for (int d = 0; d < c->rank; ++d) {
        bool own = c->mode == CUDNN_BATCH_NORM ? d == 1 : d < 2;
        c->stat_dim[d] = own ? c->dim[d] : 1;
        c->scale_dim[d] = d == 1 ? c->dim[1] : 1;
    }
    if (c->mode == CUDNN_GROUP_NORM) {
        do {
            c->stat_dim[1] = (int)random_int(1, c->dim[1]);
        } while (c->dim[1] % c->stat_dim[1] != 0);
    }
}

static enum layout any_layout(cudnnDataType_t dtype)
{
    if (graph_lane(dtype) != dtype) return LAYOUT_VECT;
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

static enum layout param_layout(void)
{
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
}

/* NaN where it must not be read. */
static struct tensor *fresh(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout)
{
    struct tensor *t = tensor_inout(dtype, rank, dim, layout, 0.0, 1.0);
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN;
    if (tensor_epsilon(dtype) != 0.5) tensor_write(t);
    return t;
}

static void make_tensors(struct norms_case *c, double low, double high)
{
    int rank = c->rank;
    bool in_place = c->x_type == c->y_type && random_chance(0.2);
    enum layout layout = any_layout(c->x_type);
    if (in_place && layout == LAYOUT_GAPS) layout = LAYOUT_NHWC;
    if (in_place && c->phase != NORMS_BACKWARD) {
        c->x = c->y = tensor_inout(c->x_type, rank, c->dim, layout, low, high);
    } else {
        c->x = tensor_input(c->x_type, rank, c->dim, layout, low, high);
    }
    c->scale = tensor_input(c->param_type, rank, c->scale_dim, param_layout(), 0.25, 2.0);
    if (c->bias && c->phase != NORMS_BACKWARD) {
        c->bias_tensor = tensor_input(c->param_type, rank, c->scale_dim, param_layout(), -1.0, 1.0);
    }
    if (c->statistics && c->phase == NORMS_TRAINING) {
        c->inv_std = fresh(c->stat_type, rank, c->stat_dim, param_layout());
        if (c->mode != CUDNN_RMS_NORM) {
            c->mean = fresh(c->stat_type, rank, c->stat_dim, param_layout());
        }
    } else if (c->statistics) {
        c->inv_std = tensor_input(c->stat_type, rank, c->stat_dim, param_layout(), 0.3, 1.5);
        if (c->mode != CUDNN_RMS_NORM) {
            c->mean = tensor_input(c->stat_type, rank, c->stat_dim, param_layout(), -1.0, 1.0);
        }
    }
    if (c->running) {
        c->in_mean = tensor_input(c->stat_type, rank, c->stat_dim, LAYOUT_NCHW, -1.0, 1.0);
        c->in_var = tensor_input(c->stat_type, rank, c->stat_dim, LAYOUT_NCHW, 0.5, 2.0);
        c->out_mean = fresh(c->stat_type, rank, c->stat_dim, param_layout());
        c->out_var = fresh(c->stat_type, rank, c->stat_dim, param_layout());
    }
    if (c->phase == NORMS_BACKWARD) {
        layout = any_layout(c->y_type);
        if (in_place && layout == LAYOUT_GAPS) layout = LAYOUT_NCHW;
        c->dy = in_place ? tensor_inout(c->y_type, rank, c->dim, layout, -2.0, 2.0)
                         : tensor_input(c->y_type, rank, c->dim, layout, -2.0, 2.0);
        c->dx = in_place ? c->dy : fresh(c->y_type, rank, c->dim, any_layout(c->y_type));
        c->dscale = fresh(c->param_type, rank, c->scale_dim, param_layout());
        if (c->bias) c->dbias = fresh(c->param_type, rank, c->scale_dim, param_layout());
    } else if (!c->y) {
        c->y = fresh(c->y_type, rank, c->dim, any_layout(c->y_type));
    }
}

static be_desc tensor_of(struct graph_run *r, const struct tensor *t)
{
    return t ? graph_tensor(r, t) : NULL;
}

static be_desc scalar_of(struct graph_run *r, const struct norms_case *c, double value)
{
    cudnnDataType_t type = random_chance(0.5) ? CUDNN_DATA_FLOAT : CUDNN_DATA_DOUBLE;
    return graph_scalar(r, type, c->rank, value);
}

static be_desc forward_operation(struct graph_run *r, const struct norms_case *c, be_desc scale,
                                 be_desc y)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    int phase = c->phase == NORMS_TRAINING ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE;
    be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, c->mode);
    be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, phase);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, graph_tensor(r, c->x));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, tensor_of(r, c->bias_tensor));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, tensor_of(r, c->mean));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, tensor_of(r, c->inv_std));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, scalar_of(r, c, c->epsilon));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y);
    if (c->running) {
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC,
                  scalar_of(r, c, c->factor));
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

static be_desc backward_operation(struct graph_run *r, const struct norms_case *c, be_desc dy)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
    be_set_enum(op, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, c->mode);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, graph_tensor(r, c->x));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, dy);
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, graph_tensor(r, c->scale));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, tensor_of(r, c->mean));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, tensor_of(r, c->inv_std));
    if (!c->statistics) {
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC, scalar_of(r, c, c->epsilon));
    }
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, graph_tensor(r, c->dx));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, tensor_of(r, c->dscale));
    graph_ref(op, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, tensor_of(r, c->dbias));
    return be_final(op);
}

/* Runs and judges a case whose tensors are made. */
static bool run_case(struct norms_case *c)
{
    struct graph_run r = {.count = 0};
    struct norms_inputs in = norms_inputs(c);
    be_desc op;
    bool ran;
    if (c->phase == NORMS_BACKWARD) op = backward_operation(&r, c, graph_tensor(&r, c->dy));
    else op = forward_operation(&r, c, graph_tensor(&r, c->scale), graph_tensor(&r, c->y));
    ran = graph_run(&r, 1, &op);
    if (ran && c->phase == NORMS_BACKWARD) norms_judge_backward(c, &in);
    if (ran && c->phase != NORMS_BACKWARD) norms_judge_forward(c, &in);
    norms_inputs_free(&in);
    be_free_all();
    return ran;
}

/* Statistics are needed for groups, and by batch norm's inference. */
static bool may_lack_statistics(const struct norms_case *c)
{
    if (c->mode == CUDNN_GROUP_NORM) return false;
    return c->mode != CUDNN_BATCH_NORM || c->phase != NORMS_INFERENCE;
}

static void make_case(struct norms_case *c, cudnnDataType_t x, cudnnDataType_t y)
{
    c->x_type = x;
    c->y_type = y;
    c->param_type = random_chance(0.5) ? CUDNN_DATA_FLOAT : floats[random_int(0, 3)];
    c->stat_type = random_chance(0.7) ? CUDNN_DATA_FLOAT : floats[random_int(0, 3)];
    c->statistics = !may_lack_statistics(c) || random_chance(0.6);
    c->bias = random_chance(0.7);
    c->running = c->mode == CUDNN_BATCH_NORM && c->phase == NORMS_TRAINING && random_chance(0.6);
    c->epsilon = random_of(0, 1) ? 0x1p-17 : 0x1p-7; /* in fp32 as in fp64 */
    c->factor = random_chance(0.3) ? 1.0 : (double)random_int(0, 256) / 256.0;
    make_shape(c);
}

static void random_cases(int turns)
{
    for (int mode = 0; mode < COUNT(mode_names); ++mode) {
        for (int phase = 0; phase < 3; ++phase) {
            for (int type = 0; type < COUNT(floats); ++type) {
                for (int turn = 0; turn < turns; ++turn) {
                    struct norms_case c = {.mode = mode, .phase = (enum norms_phase)phase};
                    if (!case_begin("random/%s/%s/%s/%d", mode_names[mode], phase_names[phase],
                                    float_names[type], turn)) {
                        continue;
                    }
                    make_case(&c, floats[type],
                              random_chance(0.7) ? floats[type] : floats[random_int(0, 3)]);
                    make_tensors(&c, -3.0, 3.0);
                    run_case(&c);
                    case_end();
                }
            }
        }
    }
}

/* Integers in, and out. */
static void integer_cases(void)
{
    static const cudnnDataType_t types[] = {CUDNN_DATA_INT8,    CUDNN_DATA_UINT8,
                                            CUDNN_DATA_INT32,   CUDNN_DATA_INT8x4,
                                            CUDNN_DATA_UINT8x4, CUDNN_DATA_INT8x32};
    for (int phase = 0; phase < 2; ++phase) {
        for (int type = 0; type < COUNT(types); ++type) {
            for (int turn = 0; turn < 24; ++turn) {
                struct norms_case c = {.mode = turn % COUNT(mode_names),
                                       .phase = (enum norms_phase)phase};
                bool is_unsigned = graph_lane(types[type]) == CUDNN_DATA_UINT8;
                if (!case_begin("integers/%s/type%d/%d", phase_names[phase], (int)types[type],
                                turn)) {
                    continue;
                }
                make_case(&c, types[type], turn % 2 ? types[type] : CUDNN_DATA_FLOAT);
                make_tensors(&c, is_unsigned ? 0.0 : -9.0, 9.0);
                run_case(&c);
                case_end();
            }
        }
    }
}

static void set_dims(struct norms_case *c, int rank, const int *dim, const int *stat,
                     const int *scale)
{
    c->rank = rank;
    for (int d = 0; d < rank; ++d) {
        c->dim[d] = dim[d];
        c->stat_dim[d] = stat[d];
        c->scale_dim[d] = scale[d];
    }
}

/* An offset that swallows the variance, few and many terms, reductions in two stages. */
static void hard_cases(void)
{
    static const struct {
        const char *name;
        int mode, rank;
        int dim[5], stat[5], scale[5];
        double low, high;
    } rows[] = {
        {"offset", CUDNN_LAYER_NORM, 3, {3, 5, 1031}, {3, 5, 1}, {1, 1, 1031}, 9998.3, 10001.7},
        {"offset_group",
         CUDNN_GROUP_NORM,
         4,
         {2, 6, 31, 33},
         {2, 3, 1, 1},
         {1, 6, 1, 1},
         9998.3,
         10001.7},
        {"one_term", CUDNN_INSTANCE_NORM, 4, {2, 5, 1, 1}, {2, 5, 1, 1}, {1, 5, 1, 1}, -3, 3},
        {"one_term_batch", CUDNN_BATCH_NORM, 4, {1, 5, 1, 1}, {1, 5, 1, 1}, {1, 5, 1, 1}, -3, 3},
        {"two_stages", CUDNN_INSTANCE_NORM, 4, {1, 2, 257, 263}, {1, 2, 1, 1}, {1, 2, 1, 1}, -3, 3},
        {"two_stages_rms", CUDNN_RMS_NORM, 2, {2, 70001}, {2, 1}, {1, 70001}, -3, 3},
        {"two_stages_params", CUDNN_LAYER_NORM, 2, {70001, 3}, {70001, 1}, {1, 3}, -3, 3},
        {"many_rows", CUDNN_LAYER_NORM, 3, {211, 317, 2}, {211, 317, 1}, {1, 1, 2}, -3, 3},
        {"one_group", CUDNN_GROUP_NORM, 4, {2, 6, 5, 7}, {2, 1, 1, 1}, {1, 6, 1, 1}, -3, 3},
    };
    for (int r = 0; r < COUNT(rows); ++r) {
        for (int phase = 0; phase < 3; ++phase) {
            struct norms_case c = {.mode = rows[r].mode,
                                   .phase = (enum norms_phase)phase,
                                   .x_type = CUDNN_DATA_FLOAT,
                                   .y_type = CUDNN_DATA_FLOAT,
                                   .param_type = CUDNN_DATA_FLOAT,
                                   .stat_type = CUDNN_DATA_FLOAT,
                                   .bias = true,
                                   .epsilon = 0x1p-17};
            if (!case_begin("hard/%s/%s", rows[r].name, phase_names[phase])) continue;
            set_dims(&c, rows[r].rank, rows[r].dim, rows[r].stat, rows[r].scale);
            c.statistics = phase == NORMS_TRAINING || !may_lack_statistics(&c);
            make_tensors(&c, rows[r].low, rows[r].high);
            run_case(&c);
            case_end();
        }
    }
}

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
            if (!case_begin("differences/%s/rank%d/%s", mode_names[rows[r].mode], rows[r].rank,
                            given ? "given" : "computed")) {
                continue;
            }
            set_dims(&c, rows[r].rank, rows[r].dim, rows[r].stat, rows[r].scale);
            c.statistics = given;
            make_tensors(&c, -2.0, 2.0);
            if (given) {
                /* the true statistics, of the forward pass by the library itself */
                struct norms_case forward = c;
                struct graph_run run = {.count = 0};
                be_desc op;
                forward.phase = NORMS_TRAINING;
                forward.y = fresh(CUDNN_DATA_DOUBLE, c.rank, c.dim, LAYOUT_NCHW);
                forward.inv_std = fresh(CUDNN_DATA_DOUBLE, c.rank, c.stat_dim, LAYOUT_NCHW);
                if (c.mean)
                    forward.mean = fresh(CUDNN_DATA_DOUBLE, c.rank, c.stat_dim, LAYOUT_NCHW);
                op = forward_operation(&run, &forward, graph_tensor(&run, c.scale),
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
            if (run_case(&c) && harness_values) {
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
    if (!case_begin("zero_centered/%s", mode_names[mode])) return;
    set_dims(&c, 4, dim, stat, scale_dim);
    if (mode == CUDNN_ADA_LAYER_NORM) c.scale_dim[0] = 1;
    make_tensors(&c, -3.0, 3.0);
    in = norms_inputs(&c);
    y = fresh(CUDNN_DATA_HALF, 4, dim, LAYOUT_NHWC);
    gamma = be_tensor(1000, CUDNN_DATA_FLOAT, 4, wide_scale, BE_VIRTUAL);
    virtual_y = be_tensor(1001, CUDNN_DATA_FLOAT, 4, wide_dim, BE_VIRTUAL);
    ops[0] = be_pointwise(CUDNN_POINTWISE_ADD, graph_tensor(&r, c.scale),
                          graph_scalar(&r, CUDNN_DATA_FLOAT, 4, 1.0), NULL, gamma);
    ops[1] = forward_operation(&r, &c, gamma, virtual_y);
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

/* A constant item stays at the bias exactly, however small epsilon is; a NaN stays in its item. */
static void special_values(void)
{
    static const int dim[4] = {3, 4, 5, 7}, stat[4] = {3, 2, 1, 1}, scale[4] = {1, 4, 1, 1};
    struct norms_case c = {.mode = CUDNN_GROUP_NORM,
                           .phase = NORMS_TRAINING,
                           .x_type = CUDNN_DATA_FLOAT,
                           .y_type = CUDNN_DATA_FLOAT,
                           .param_type = CUDNN_DATA_FLOAT,
                           .stat_type = CUDNN_DATA_FLOAT,
                           .bias = true,
                           .statistics = true,
                           .epsilon = 0x1p-40};
    struct graph_run r = {.count = 0};
    be_desc op;
    if (!case_begin("special/constant_and_nan")) return;
    set_dims(&c, 4, dim, stat, scale);
    c.x = tensor_input(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NHWC, -3.0, 3.0);
    c.y = fresh(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW);
    c.scale = tensor_input(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW, 0.5, 2.0);
    c.bias_tensor = tensor_input(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW, -1.0, 1.0);
    c.mean = fresh(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW);
    c.inv_std = fresh(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW);
    for (int64_t i = 0; i < 70; ++i) c.x->value[i] = 0.1f; /* sample 0, group 0 */
    c.x->value[70 + 1] = NAN;                              /* sample 0, group 1 */
    tensor_write(c.x);
    op = forward_operation(&r, &c, graph_tensor(&r, c.scale), graph_tensor(&r, c.y));
    if (graph_run(&r, 1, &op) && harness_values) {
        for (int64_t i = 0; i < c.y->count; ++i) {
            double y = c.y->value[i];
            if (i < 70 && y != c.bias_tensor->value[i / 35 % 4]) {
                case_fail("y of a constant group is %g", y);
            }
            if ((i >= 70 && i < 140) != (y != y)) case_fail("y[%d] is %g", (int)i, y);
        }
    }
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
    if (!case_begin("peers/%s", phase_names[phase])) return;
    set_dims(&c, 4, dim, stat, stat);
    make_tensors(&c, -3.0, 3.0);
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
        graph_ref(op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, scalar_of(&r, &c, c.epsilon));
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
    random_cases(6);
    integer_cases();
    hard_cases();
    finite_differences();
    zero_centered(CUDNN_LAYER_NORM);
    zero_centered(CUDNN_RMS_NORM);
    zero_centered(CUDNN_ADA_LAYER_NORM);
    special_values();
    peers_case(NORMS_TRAINING);
    peers_case(NORMS_BACKWARD);
    return harness_finish();
}
