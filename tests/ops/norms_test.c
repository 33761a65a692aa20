/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizations of the backend API: every mode in every phase, of random shapes, layouts and
 * combinations of types, with and without statistics, against plain sums; hard values, large items. */
#include <math.h>

#include "norms_graph.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const cudnnDataType_t norms_floats[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                               CUDNN_DATA_BFLOAT16};
static const char *const float_names[] = {"f32", "f64", "f16", "bf16"};

static bool norms_is_layer(int mode)
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
    c->rank = norms_is_layer(c->mode) ? random_of(2, 3, 4, 4, 5) : random_of(3, 4, 4, 5);
    for (int d = 0; d < c->rank; ++d) c->dim[d] = random_of(1, 2, 3, 4, 5, 6, 7, 11);
    if (c->mode == CUDNN_BATCH_NORM && c->dim[0] == 1) c->dim[0] = 3;
    if (c->x_type == CUDNN_DATA_INT8x32) c->dim[1] = 64;
    if (c->x_type == CUDNN_DATA_INT8x4 || c->x_type == CUDNN_DATA_UINT8x4) c->dim[1] = 12;
    if (norms_is_layer(c->mode)) {
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

static void make_case(struct norms_case *c, cudnnDataType_t x, cudnnDataType_t y)
{
    c->x_type = x;
    c->y_type = y;
    c->param_type = random_chance(0.5) ? CUDNN_DATA_FLOAT : norms_floats[random_int(0, 3)];
    c->stat_type = random_chance(0.7) ? CUDNN_DATA_FLOAT : norms_floats[random_int(0, 3)];
    c->statistics = !norms_may_lack_statistics(c) || random_chance(0.6);
    c->bias = random_chance(0.7);
    c->running = c->mode == CUDNN_BATCH_NORM && c->phase == NORMS_TRAINING && random_chance(0.6);
    c->epsilon = random_of(0, 1) ? 0x1p-17 : 0x1p-7; /* in fp32 as in fp64 */
    c->factor = random_chance(0.3) ? 1.0 : (double)random_int(0, 256) / 256.0;
    make_shape(c);
}

static void random_cases(int turns)
{
    for (int mode = 0; mode < COUNT(norms_mode_names); ++mode) {
        for (int phase = 0; phase < 3; ++phase) {
            for (int type = 0; type < COUNT(norms_floats); ++type) {
                for (int turn = 0; turn < turns; ++turn) {
                    struct norms_case c = {.mode = mode, .phase = (enum norms_phase)phase};
                    if (!case_begin("random/%s/%s/%s/%d", norms_mode_names[mode],
                                    norms_phase_names[phase], float_names[type], turn)) {
                        continue;
                    }
                    make_case(&c, norms_floats[type],
                              random_chance(0.7) ? norms_floats[type]
                                                 : norms_floats[random_int(0, 3)]);
                    norms_make_tensors(&c, -3.0, 3.0);
                    norms_run(&c);
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
                struct norms_case c = {.mode = turn % COUNT(norms_mode_names),
                                       .phase = (enum norms_phase)phase};
                bool is_unsigned = graph_lane(types[type]) == CUDNN_DATA_UINT8;
                if (!case_begin("integers/%s/type%d/%d", norms_phase_names[phase], (int)types[type],
                                turn)) {
                    continue;
                }
                make_case(&c, types[type], turn % 2 ? types[type] : CUDNN_DATA_FLOAT);
                norms_make_tensors(&c, is_unsigned ? 0.0 : -9.0, 9.0);
                norms_run(&c);
                case_end();
            }
        }
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
            if (!case_begin("hard/%s/%s", rows[r].name, norms_phase_names[phase])) continue;
            norms_set_dims(&c, rows[r].rank, rows[r].dim, rows[r].stat, rows[r].scale);
            c.statistics = phase == NORMS_TRAINING || !norms_may_lack_statistics(&c);
            norms_make_tensors(&c, rows[r].low, rows[r].high);
            norms_run(&c);
            case_end();
        }
    }
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
    norms_set_dims(&c, 4, dim, stat, scale);
    c.x = tensor_input(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NHWC, -3.0, 3.0);
    c.y = norms_fresh(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW);
    c.scale = tensor_input(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW, 0.5, 2.0);
    c.bias_tensor = tensor_input(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW, -1.0, 1.0);
    c.mean = norms_fresh(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW);
    c.inv_std = norms_fresh(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW);
    for (int64_t i = 0; i < 70; ++i) c.x->value[i] = 0.1f; /* sample 0, group 0 */
    c.x->value[70 + 1] = NAN;                              /* sample 0, group 1 */
    tensor_write(c.x);
    op = norms_forward_operation(&r, &c, graph_tensor(&r, c.scale), graph_tensor(&r, c.y));
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

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    random_cases(6);
    integer_cases();
    hard_cases();
    special_values();
    return harness_finish();
}
