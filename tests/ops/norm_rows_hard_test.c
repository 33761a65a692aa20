/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer norm and RMS norm over rows without gaps, of hard values, by each way through the engines of
 * rows: an offset that swallows the variance, single elements that lie far out, rows of one number,
 * NaN and infinities. Against plain sums. */
#include <math.h>
#include <string.h>

#include "norms_graph.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
static const char *const type_names[] = {"f32", "f16", "bf16"};
static const char *const phase_names[] = {"inference", "training"};

/* A shape, and the engine that has it in training where the fast ones are on. */
struct shape {
    int rows, length;
    const char *engine;
    bool large; /* of many elements: not for the definitions */
};

static struct norms_case start(const struct shape *s, int mode, enum norms_phase phase,
                               cudnnDataType_t type, double low, double high)
{
    const int dim[2] = {s->rows, s->length}, stat[2] = {s->rows, 1}, scale[2] = {1, s->length};
    struct norms_case c = {.mode = mode,
                           .phase = phase,
                           .x_type = type,
                           .y_type = type,
                           .param_type = CUDNN_DATA_FLOAT,
                           .stat_type = CUDNN_DATA_FLOAT,
                           .bias = true,
                           .statistics = phase == NORMS_TRAINING,
                           .epsilon = 0x1p-17};
    norms_set_dims(&c, 2, dim, stat, scale);
    c.x = tensor_input(type, 2, dim, LAYOUT_NCHW, low, high);
    c.scale = tensor_input(CUDNN_DATA_FLOAT, 2, scale, LAYOUT_NCHW, 0.25, 2.0);
    c.bias_tensor = tensor_input(CUDNN_DATA_FLOAT, 2, scale, LAYOUT_NCHW, -1.0, 1.0);
    c.y = norms_fresh(type, 2, dim, LAYOUT_NCHW);
    if (!c.statistics) return c;
    c.inv_std = norms_fresh(CUDNN_DATA_FLOAT, 2, stat, LAYOUT_NCHW);
    if (mode == CUDNN_LAYER_NORM) c.mean = norms_fresh(CUDNN_DATA_FLOAT, 2, stat, LAYOUT_NCHW);
    return c;
}

static void check_engine(const struct norms_case *c, const struct shape *s)
{
    const char *name = "";
    if (!harness_all_engines || c->phase != NORMS_TRAINING) return;
    warpdnnGetLastEngine(harness_handle, &name);
    if (strcmp(name, s->engine) != 0) case_fail("%s ran, not %s", name, s->engine);
}

static void run_case(struct norms_case *c, const struct shape *s)
{
    if (norms_run(c)) check_engine(c, s);
    case_end();
}

static void offsets(void)
{
    static const struct shape list[] = {
        {3, 7, "norm_training_rows", false},     {50, 96, "norm_training_rows", false},
        {9, 1031, "norm_training_rows", false},  {5, 2048, "norm_training_few", false},
        {5, 8192, "norm_training_rows", false},  {3, 20000, "norm_training_rows", false},
        {3, 32768, "norm_training_rows", false}, {3, 140008, "norm_training_long", false}};
    for (int k = 0; k < COUNT(list) * COUNT(phase_names); ++k) {
        const struct shape *s = &list[k / COUNT(phase_names)];
        int phase = k % COUNT(phase_names);
        struct norms_case c;
        if (!case_begin("offset/%s/%dx%d", phase_names[phase], s->rows, s->length)) continue;
        c = start(s, CUDNN_LAYER_NORM, (enum norms_phase)phase, CUDNN_DATA_FLOAT, 9998.3, 10001.7);
        run_case(&c, s);
    }
}

/* What was found of a row, with all numbers to `within` of the largest of their terms. */
static void judge_row(const struct norms_case *c, int row, double within)
{
    int length = c->dim[1];
    const double *x = c->x->value + (int64_t)row * length;
    const double *y = c->y->value + (int64_t)row * length;
    norms_wide mean = 0, squares = 0;
    double inv;
    double spread = 0;
    for (int i = 0; i < length; ++i) mean += x[i] / (norms_wide)length;
    for (int i = 0; i < length; ++i) {
        squares += (x[i] - mean) * (x[i] - mean);
        spread = fmax(spread, fabs((double)(x[i] - mean)));
    }
    inv = (double)(1 / sqrtl(squares / length + c->epsilon));
    if (!(fabs(c->inv_std->value[row] - inv) <= within * inv))
        case_fail("inv_std[%d] is %.9g, exactly %.9g", row, c->inv_std->value[row], inv);
    if (!(fabs(c->mean->value[row] - (double)mean) <= within * spread))
        case_fail("mean[%d] is %.9g, exactly %.9g", row, c->mean->value[row], (double)mean);
    for (int i = 0; i < length; ++i) {
        double scale = c->scale->value[i], bias = c->bias_tensor->value[i];
        double want = scale * (double)(x[i] - mean) * inv + bias;
        double most = fabs(scale) * spread * inv + fabs(bias);
        double allowed = tensor_epsilon(c->y_type) * fabs(want) + within * most;
        if (fabs(y[i] - want) <= allowed) continue;
        case_fail("y[%d] of row %d is %.9g, exactly %.9g", i, row, y[i], want);
        return;
    }
}

/* Of row r those of the columns `at` are far out that the bits of r say. */
static void outlier_case(const struct shape *s, int type, double far, const int *at, double within)
{
    struct norms_case c = start(s, CUDNN_LAYER_NORM, NORMS_TRAINING, types[type], -1.0, 1.0);
    struct graph_run r = {.count = 0};
    be_desc op;
    for (int row = 0; row < s->rows; ++row) {
        double *x = c.x->value + (int64_t)row * s->length;
        for (int i = 0; i < 3; ++i) {
            if (row >> i & 1) x[at[i]] = tensor_round(types[type], far);
        }
    }
    tensor_write(c.x);
    op = norms_operation(&r, &c);
    if (graph_run(&r, 1, &op)) {
        check_engine(&c, s);
        for (int row = 0; row < s->rows && harness_values; ++row) judge_row(&c, row, within);
    }
    be_free_all();
    case_end();
}

/* Far out are the elements that one number for a whole row may be taken from: the first, the middle and the
 * last one. Rows that several blocks share are not here: the README says how far off those are. */
static void outliers(void)
{
    static const struct shape list[] = {
        {8, 24, "norm_training_rows", false},     {8, 264, "norm_training_few", false},
        {8, 768, "norm_training_few", false},     {8, 1024, "norm_training_few", false},
        {8, 4096, "norm_training_few", false},    {8, 1001, "norm_training_rows", false},
        {536, 1024, "norm_training_rows", false}, {8, 20000, "norm_training_rows", false},
        {8, 140008, "norm_training_long", true},  {9, 140001, "norm_training_long", true},
    };
    for (int k = 0; k < COUNT(list) * COUNT(types) * 2; ++k) {
        const struct shape *s = &list[k / 2 / COUNT(types)];
        int type = k / 2 % COUNT(types);
        double far = k % 2 ? -30000.0 : 1000.0;
        /* a thread that sums around an outlier of its own loses some digits of its few elements */
        double within = strcmp(s->engine, "norm_training_few") == 0 ? 0x1p-21 : 0x1p-16;
        const int at[] = {0, s->length / 2, s->length - 1};
        if (s->large && (!harness_all_engines || type > 0)) continue;
        if (!case_begin("outliers/%s/%dx%d/%g", type_names[type], s->rows, s->length, far))
            continue;
        outlier_case(s, type, far, at, within);
    }
}

/* Likewise those that few long rows take numbers from: the first columns of three lanes of the first warp. */
static void outliers_of_lanes(void)
{
    static const struct shape list[] = {{8, 140008, "norm_training_long", true},
                                        {8, 140001, "norm_training_long", true}};
    for (int k = 0; k < COUNT(list); ++k) {
        int each = list[k].length % 8 ? 1 : 4;
        const int at[] = {0, 16 * each, 31 * each};
        if (!harness_all_engines || !case_begin("lanes/%dx%d", list[k].rows, list[k].length))
            continue;
        outlier_case(&list[k], 0, 1000.0, at, 0x1p-14);
    }
}

/* What is known of row `row` without sums: the first is of one number, the second has a NaN, the third an
 * infinity, of which layer norm has no deviation and RMS norm an infinite one. */
static void check_row(const struct norms_case *c, int row)
{
    bool layer = c->mode == CUDNN_LAYER_NORM;
    double inv_std = c->inv_std->value[row];
    int length = c->dim[1];
    bool none = row == 1 || (row == 2 && layer);
    if (none != isnan(inv_std) || (row == 2 && !layer && inv_std != 0.0))
        case_fail("row %d has inv_std %g", row, inv_std);
    for (int i = 0; i < length; ++i) {
        int64_t at = (int64_t)row * length + i;
        double y = c->y->value[at];
        bool is_bias = (row == 2 && !none) || (row == 0 && layer);
        if (none || isinf(c->x->value[at])) {
            if (y == y) case_fail("y[%d] of row %d is %g", i, row, y);
        } else if (is_bias ? y != c->bias_tensor->value[i] : !isfinite(y)) {
            case_fail("y[%d] of row %d is %g", i, row, y);
        }
    }
}

/* A constant row stays at the bias exactly, however small epsilon is; a NaN stays in its row, and so
 * does an infinity. */
static void special_values(void)
{
    static const struct shape list[] = {
        {3, 24, "norm_training_rows", false},     {3, 2048, "norm_training_few", false},
        {3, 20000, "norm_training_rows", false},  {3, 1001, "norm_training_rows", false},
        {3, 32768, "norm_training_rows", false},  {536, 1024, "norm_training_rows", true},
        {20, 147456, "norm_training_rows", true}, {3, 140008, "norm_training_long", false},
        {9, 140001, "norm_training_long", true},
    };
    for (int k = 0; k < COUNT(list) * 2; ++k) {
        const struct shape *s = &list[k / 2];
        int mode = k % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM;
        struct norms_case c;
        struct graph_run r = {.count = 0};
        be_desc op;
        if (s->large && !harness_all_engines) continue;
        if (!case_begin("special/%s/%dx%d", k % 2 ? "rms" : "layer", s->rows, s->length)) continue;
        c = start(s, mode, NORMS_TRAINING, CUDNN_DATA_FLOAT, -3.0, 3.0);
        c.epsilon = 0x1p-40;
        for (int i = 0; i < s->length; ++i) c.x->value[i] = 0.1F;
        c.x->value[s->length + s->length / 2] = NAN;
        c.x->value[2 * s->length + (k / 2 % 2 ? 9 : 0)] = k % 4 < 2 ? INFINITY : -INFINITY;
        tensor_write(c.x);
        op = norms_operation(&r, &c);
        if (graph_run(&r, 1, &op) && harness_values) {
            check_engine(&c, s);
            for (int row = 0; row < 3; ++row) check_row(&c, row);
        }
        be_free_all();
        case_end();
    }
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    offsets();
    outliers();
    outliers_of_lanes();
    special_values();
    return harness_finish();
}
