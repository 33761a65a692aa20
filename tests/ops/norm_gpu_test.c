/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization in shapes that take every way through the GPU engines: a parameter's elements in
 * the registers of a block, in the shared memory of one and of several, and in neither; planes and
 * columns of runs, halves and elements; rows that end inside of a stripe; pointers that are aligned to
 * an element only. Judged by the oracle of norm_case.c. That every kernel is launched by one of them,
 * tests/fake_driver/engines_norm_test.sh sees. */
#include "norm_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { SPATIAL = CUDNN_BATCHNORM_SPATIAL, ACTIVATION = CUDNN_BATCHNORM_PER_ACTIVATION };

static const struct {
    const char *name;
    int mode;
    int layout;
    int dim[4];
} shapes[] = {
    /* registers of a block */
    {"block_runs", SPATIAL, LAYOUT_NCHW, {3, 5, 8, 14}},
    {"block_many_runs", SPATIAL, LAYOUT_NCHW, {3, 33, 24, 25}},
    {"block_elements", SPATIAL, LAYOUT_NCHW, {3, 5, 7, 11}},
    {"block_one_channel", SPATIAL, LAYOUT_NCHW, {2, 1, 7, 112}},
    /* shared memory: few planes, so that blocks alone would be too few */
    {"planes_of_runs", SPATIAL, LAYOUT_NCHW, {2, 3, 120, 128}},
    {"planes_of_halves", SPATIAL, LAYOUT_NCHW, {2, 3, 122, 126}},
    {"planes_of_elements", SPATIAL, LAYOUT_NCHW, {3, 9, 75, 77}},
    {"planes_in_clusters", SPATIAL, LAYOUT_NCHW, {9, 2, 64, 64}},
    {"planes_many", SPATIAL, LAYOUT_NCHW, {250, 6, 7, 7}},
    {"planes_beside", SPATIAL, LAYOUT_NCHW, {350, 16, 7, 7}},
    {"planes_beside_ragged", SPATIAL, LAYOUT_NCHW, {350, 34, 4, 5}},
    {"planes_many_short", SPATIAL, LAYOUT_NCHW, {5, 601, 4, 8}},
    {"planes_walked", SPATIAL, LAYOUT_NCHW, {3, 401, 8, 8}},
    {"columns_of_runs", SPATIAL, LAYOUT_NHWC, {8, 64, 5, 5}},
    {"columns_of_halves", SPATIAL, LAYOUT_NHWC, {8, 140, 5, 7}},
    {"columns_of_elements", SPATIAL, LAYOUT_NHWC, {8, 37, 5, 7}},
    {"columns_in_clusters", SPATIAL, LAYOUT_NHWC, {16, 24, 14, 15}},
    {"columns_three", SPATIAL, LAYOUT_NHWC, {7, 3, 31, 33}},
    {"columns_wide", ACTIVATION, LAYOUT_NCHW, {3, 66, 32, 33}},
    {"columns_whole", SPATIAL, LAYOUT_NHWC, {9, 61, 11, 13}},
    {"columns_odd", ACTIVATION, LAYOUT_NCHW, {19, 5, 7, 9}},
    {"columns_many", ACTIVATION, LAYOUT_NCHW, {64, 256, 1, 1}},
    {"columns_short", ACTIVATION, LAYOUT_NHWC, {5, 330, 6, 12}},
    /* a thread a column: eight rows, more, and columns that are no runs */
    {"columns_batch", ACTIVATION, LAYOUT_NCHW, {8, 3, 53, 55}},
    {"columns_batches", ACTIVATION, LAYOUT_NCHW, {13, 1, 184, 184}},
    {"columns_odd_many", ACTIVATION, LAYOUT_NCHW, {3, 17, 17, 73}},
    /* small planes whose statistics were not saved go by columns */
    {"planes_as_columns", SPATIAL, LAYOUT_NCHW, {9, 40, 3, 5}},
};

/* Too large for the shared memory of a cluster, whichever the type. */
static const struct {
    const char *name;
    int layout;
    int dim[4];
} large[] = {
    {"planes_of_runs", LAYOUT_NCHW, {3, 1, 600, 632}},
    {"planes_of_elements", LAYOUT_NCHW, {3, 1, 601, 633}},
    {"columns", LAYOUT_NHWC, {9, 16, 90, 75}},
    {"columns_three", LAYOUT_NHWC, {11, 3, 297, 300}},
    {"columns_five", LAYOUT_NHWC, {3, 5, 300, 301}},
};

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                        CUDNN_DATA_BFLOAT16};
static const char *const type_names[] = {"f32", "f64", "f16", "bf16"};

/* What is done on top of the plain call. */
enum kind { PLAIN, BLENDED, IN_PLACE, UNSAVED, RELU, CLIPPED_ADD, KINDS };
static const char *const kind_names[] = {"plain",   "blended", "in_place",
                                         "unsaved", "relu",    "clipped_add"};

static struct norm_case case_of(int mode, cudnnDataType_t type, int layout, enum kind kind)
{
    struct norm_case c = {.mode = mode, .dtype = type, .act = NO_ACTIVATION, .coef = 1.25};
    c.layout = 1 + layout;
    c.alpha = c.alpha_data = c.alpha_param = kind == BLENDED ? -1.5 : 1.0;
    c.beta = c.beta_data = c.beta_param = kind == BLENDED ? 0.5 : 0.0;
    c.factor = 0.3;
    c.epsilon = 1e-5;
    c.forward = c.backward = true;
    c.in_place = kind == IN_PLACE;
    c.running_mean = c.running_var = c.saved = kind != UNSAVED;
    c.ex = kind >= RELU;
    if (kind == RELU) c.ops = CUDNN_BATCHNORM_OPS_BN_ACTIVATION, c.act = CUDNN_ACTIVATION_RELU;
    if (kind == CLIPPED_ADD) {
        c.ops = CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
        c.act = CUDNN_ACTIVATION_CLIPPED_RELU;
    }
    return c;
}

static void small_shapes(void)
{
    for (int s = 0; s < COUNT(shapes); ++s) {
        for (int run = 0; run < COUNT(types) * KINDS; ++run) {
            int type = run % COUNT(types);
            enum kind kind = (enum kind)(run / COUNT(types));
            struct norm_case c = case_of(shapes[s].mode, types[type], shapes[s].layout, kind);
            if (!harness_on_gpu && kind != PLAIN) continue;
            if (!case_begin("%s/%s/%s", shapes[s].name, type_names[type], kind_names[kind])) {
                continue;
            }
            norm_shape_make(&c.shape, c.mode, 4, shapes[s].dim);
            norm_run(&c, (struct norm_range){-3.0, 3.0});
        }
    }
}

static void odd_pointers(void)
{
    for (int s = 0; s < COUNT(shapes); ++s) {
        for (int run = 0; run < COUNT(types) * 5; ++run) {
            int type = run % COUNT(types);
            enum kind kind =
                (const enum kind[]){PLAIN, UNSAVED, RELU, CLIPPED_ADD, BLENDED}[run / COUNT(types)];
            struct norm_case c = case_of(shapes[s].mode, types[type], shapes[s].layout, kind);
            c.odd = types[type] == CUDNN_DATA_DOUBLE ? 1 : types[type] == CUDNN_DATA_FLOAT ? 3 : 5;
            if (!harness_on_gpu && kind != PLAIN) continue;
            if (!case_begin("odd/%s/%s/%s", shapes[s].name, type_names[type], kind_names[kind])) {
                continue;
            }
            norm_shape_make(&c.shape, c.mode, 4, shapes[s].dim);
            norm_run(&c, (struct norm_range){-3.0, 3.0});
        }
    }
}

/* One byte of the reserve space is the last one: of channels by columns off the boundaries, where all rows are whole
 * ones from the boundary before, and where one has more. */
static void last_bits(void)
{
    for (int run = 0; run < COUNT(types) * 2 * 7 * 7 * 2; ++run) {
        int type = run % COUNT(types);
        int size = (const int[]){4, 8, 2, 2}[type];
        enum kind kind = run / COUNT(types) % 2 ? RELU : CLIPPED_ADD;
        int odd = 1 + run / COUNT(types) / 2 % 7;
        int channels = 1 + run / COUNT(types) / 2 / 7 % 7;
        int more = run / COUNT(types) / 2 / 7 / 7;
        int dim[4] = {1, channels, 1, 130};
        struct norm_case c = case_of(SPATIAL, types[type], LAYOUT_NHWC, kind);
        c.odd = odd;
        if (!harness_on_gpu || odd * size >= 16 || odd % channels != 0) continue;
        while ((dim[3] + odd / channels) % 8 != 0) ++dim[3];
        dim[3] += more;
        if (!case_begin("last_bits/%s/%s/c%d/odd%d/%s", type_names[type], kind_names[kind],
                        channels, odd, more ? "more" : "whole")) {
            continue;
        }
        norm_shape_make(&c.shape, c.mode, 4, dim);
        norm_run(&c, (struct norm_range){-3.0, 3.0});
    }
}

/* By columns off the boundaries with no reserve space: the row that begins before x is the only one, or the second ends
 * inside of its first run. Far from 0 too, where what sums are taken around matters. */
static void few_rows(void)
{
    static const int dims[][4] = {{8, 3, 1, 1}, {1, 1024, 1, 1}, {4, 6, 1, 1},
                                  {9, 3, 1, 1}, {1, 3, 1, 1},    {3, 8, 1, 3}};
    static const enum kind kinds[] = {PLAIN, UNSAVED, BLENDED};
    for (int run = 0; run < COUNT(dims) * COUNT(types) * COUNT(kinds) * 7 * 2; ++run) {
        const int *dim = dims[run % COUNT(dims)];
        int left = run / COUNT(dims);
        int type = left % COUNT(types);
        int size = (const int[]){4, 8, 2, 2}[type];
        enum kind kind = kinds[left / COUNT(types) % COUNT(kinds)];
        int odd = 1 + left / COUNT(types) / COUNT(kinds) % 7;
        bool far = left / COUNT(types) / COUNT(kinds) / 7;
        struct norm_case c = case_of(SPATIAL, types[type], LAYOUT_NHWC, kind);
        c.odd = odd;
        if (!harness_on_gpu || odd * size >= 16 || (far && size < 4)) continue;
        if (!case_begin("few_rows/n%d/c%d/w%d/%s/%s/odd%d%s", dim[0], dim[1], dim[3],
                        type_names[type], kind_names[kind], odd, far ? "/far" : "")) {
            continue;
        }
        norm_shape_make(&c.shape, c.mode, 4, dim);
        norm_run(&c, far ? (struct norm_range){9998.3, 10001.7} : (struct norm_range){-3.0, 3.0});
    }
}

/* So many planes that clusters which hold one each fill the chip. */
static void many_planes(void)
{
    static const int dim[4] = {2, 132, 96, 88};
    for (int run = 0; run < COUNT(types) * 2; ++run) {
        int type = run % COUNT(types);
        struct norm_case c =
            case_of(SPATIAL, types[type], LAYOUT_NCHW, run / COUNT(types) ? RELU : PLAIN);
        if (!harness_on_gpu || types[type] == CUDNN_DATA_DOUBLE) continue;
        if (!case_begin("many_planes/%s/%s", type_names[type], c.ex ? "relu" : "plain")) continue;
        norm_shape_make(&c.shape, c.mode, 4, dim);
        norm_run(&c, (struct norm_range){-3.0, 3.0});
    }
}

/* Channels that blocks walk down, as long as several fit a block. */
static void long_walks(void)
{
    static const int dims[][4] = {{9, 401, 10, 14}, {40, 400, 14, 14}};
    for (int run = 0; run < COUNT(dims) * KINDS; ++run) {
        const int *dim = dims[run / KINDS];
        enum kind kind = (enum kind)(run % KINDS);
        struct norm_case c = case_of(SPATIAL, CUDNN_DATA_FLOAT, LAYOUT_NCHW, kind);
        if (kind != PLAIN && (!harness_on_gpu || run >= KINDS)) continue;
        if (run >= KINDS && !harness_all_engines) continue;
        if (!case_begin("long_walks/n%d/c%d/%s", dim[0], dim[1], kind_names[kind])) continue;
        norm_shape_make(&c.shape, c.mode, 4, dim);
        norm_run(&c, (struct norm_range){-3.0, 3.0});
    }
}

/* A case of which one element of x is a NaN, or all of its parameter: it leaves NaNs of the parameter's outputs, and nothing
 * of others'. */
static void judge_nan(struct norm_case *c, bool whole)
{
    int64_t own;
    tensor_odd = c->odd;
    norm_make_tensors(c, (struct norm_range){-3.0, 3.0});
    tensor_odd = 0;
    own = c->shape.param_of[c->shape.count / 2];
    for (int64_t i = 0; i < c->shape.count; ++i) {
        if (whole ? c->shape.param_of[i] == own : i == c->shape.count / 2) c->x->value[i] = NAN;
    }
    tensor_write(c->x);
    if (run_call(norm_call, c)) {
        for (int64_t i = 0; i < c->shape.count; ++i) {
            double y = c->y->value[i];
            if ((c->shape.param_of[i] == own) == (y == y)) {
                case_fail("y[%lld] is %g", (long long)i, y);
                break;
            }
        }
        for (int64_t p = 0; p < c->shape.params; ++p) {
            double inv = c->saved_inv->value[p], mean = c->saved_mean->value[p];
            double var = c->var->value[p];
            if ((p == own) != (inv != inv && mean != mean && var != var) ||
                (p != own && !(isfinite(inv) && isfinite(mean) && isfinite(var)))) {
                case_fail("parameter %lld: mean %g, inverse deviation %g, variance %g",
                          (long long)p, mean, inv, var);
                break;
            }
        }
    }
    free(c->shape.param_of);
    case_end();
}

/* Large channels, each held by a cluster or a block: of several images and of one, with what is left over for the last block, and larger
 * ones of which some is read twice; dscale and dbias added to what they were; y over x, off the boundaries, and a NaN. */
static void large_channels(void)
{
    enum { BOTH, ADDS, FORWARD, NUMBER, OFF };
    static const char *const ways[] = {"both", "adds", "forward", "number", "off"};
    static const struct {
        const char *name;
        int dim[4];
        int type;
        enum kind kind;
        int way;
    } list[] = {
        {"images", {3, 20, 296, 296}, 0, PLAIN, ADDS},
        {"images", {3, 20, 296, 304}, 2, PLAIN, BOTH},
        {"images", {3, 20, 296, 304}, 3, IN_PLACE, ADDS},
        {"images", {3, 20, 296, 304}, 3, IN_PLACE, FORWARD},
        {"images", {3, 20, 296, 304}, 2, UNSAVED, FORWARD},
        {"images", {3, 20, 296, 304}, 2, PLAIN, NUMBER},
        {"images", {3, 20, 296, 304}, 2, PLAIN, OFF},
        {"image", {1, 20, 528, 512}, 2, PLAIN, ADDS},
        {"image", {1, 20, 528, 512}, 3, PLAIN, FORWARD},
        {"image", {1, 20, 528, 512}, 2, BLENDED, BOTH},
        {"again", {2, 5, 804, 800}, 0, PLAIN, BOTH},
        {"again", {2, 5, 804, 800}, 0, IN_PLACE, FORWARD},
        {"again", {2, 5, 1204, 1000}, 2, PLAIN, ADDS},
    };
    for (int k = 0; k < COUNT(list); ++k) {
        struct norm_case c = case_of(SPATIAL, types[list[k].type], LAYOUT_NCHW, list[k].kind);
        int way = list[k].way;
        if (!harness_all_engines) continue;
        if (!case_begin("channels/%s/%s/%s/%s", list[k].name, type_names[list[k].type],
                        kind_names[list[k].kind], ways[way]))
            continue;
        c.backward = way != FORWARD && way != NUMBER;
        if (way == ADDS) c.alpha_param = -1.5, c.beta_param = 0.5;
        if (way == OFF) c.odd = 5;
        if (harness_usual_order())
            c.engine = c.backward ? "bn_backward_channels" : "bn_training_channels";
        norm_shape_make(&c.shape, c.mode, 4, list[k].dim);
        if (way == NUMBER) judge_nan(&c, false);
        else norm_run(&c, (struct norm_range){-3.0, 3.0});
    }
}

/* The same of random ones. */
static void random_channels(int turns)
{
    static const struct {
        int units, channels;
    } classes[] = {{33000, 19}, {74000, 10},  {148000, 5}, {300000, 5},
                   {6300, 110}, {12000, 199}, {16500, 97}, {19000, 49}};
    static const int narrow[] = {0, 2, 3};
    for (int turn = 0; harness_all_engines && turn < turns; ++turn) {
        struct norm_case c;
        int of = turn % COUNT(classes);
        int dim[4];
        int type, units;
        if (!case_begin("channels/random/%d", turn)) continue;
        type = narrow[random_int(0, COUNT(narrow) - 1)];
        units = classes[of].units + (int)random_int(0, classes[of].units / 9);
        c = case_of(SPATIAL, types[type], LAYOUT_NCHW, PLAIN);
        dim[0] = (int)random_int(1, 9);
        dim[1] = classes[of].channels + (int)random_int(0, 1);
        dim[2] = (int)random_int(1, 150);
        dim[3] = (units / dim[0] / dim[2] + 1) * (type == 0 ? 4 : 8);
        if (random_chance(0.5)) c.alpha_param = -1.5, c.beta_param = 0.5;
        c.factor = random_of(0, 1, 2) / 2.0;
        if (harness_usual_order()) c.engine = "bn_backward_channels";
        norm_shape_make(&c.shape, c.mode, 4, dim);
        norm_run(&c, (struct norm_range){-3.0, 3.0});
    }
}

/* Far out are corners of the first and of the last image: the statistics to all their digits. */
static void outliers(void)
{
    static const int dim[4] = {32, 401, 8, 8};
    static const double far[] = {1000.0, -30000.0};
    for (int run = 0; run < COUNT(far); ++run) {
        struct norm_case c = case_of(SPATIAL, CUDNN_DATA_FLOAT, LAYOUT_NCHW, PLAIN);
        int64_t plane = (int64_t)dim[2] * dim[3];
        int64_t last = (int64_t)(dim[0] - 1) * dim[1] * plane;
        c.backward = false;
        if (!case_begin("outliers/%g", far[run])) continue;
        norm_shape_make(&c.shape, c.mode, 4, dim);
        norm_make_tensors(&c, (struct norm_range){-1.0, 1.0});
        for (int64_t p = 0; p < c.shape.params; ++p) {
            c.x->value[p * plane] = far[run];
            c.x->value[last + (p + 1) * plane - 1] = far[run];
        }
        tensor_write(c.x);
        if (run_call(norm_call, &c)) {
            norm_wide *mean = norm_wide_zeros(c.shape.params);
            norm_wide *var = norm_wide_zeros(c.shape.params);
            double *spread = norm_zeros(c.shape.params);
            norm_statistics(&c.shape, c.x->value, mean, var, spread);
            for (int64_t p = 0; p < c.shape.params; ++p) {
                double inv = 1.0 / sqrt((double)var[p] + c.epsilon);
                if (fabs(c.saved_inv->value[p] - inv) <= 0x1p-20 * inv &&
                    fabs(c.saved_mean->value[p] - (double)mean[p]) <= 0x1p-20 * spread[p]) {
                    continue;
                }
                case_fail("parameter %lld: mean %.9g, exactly %.9g, inverse deviation %.9g, %.9g",
                          (long long)p, c.saved_mean->value[p], (double)mean[p],
                          c.saved_inv->value[p], inv);
                break;
            }
            free(mean), free(var), free(spread);
        }
        free(c.shape.param_of);
        case_end();
    }
}

static void large_shapes(void)
{
    for (int s = 0; s < COUNT(large); ++s) {
        for (int run = 0; run < COUNT(types) * 2; ++run) {
            int type = run % COUNT(types);
            struct norm_case c = case_of(SPATIAL, types[type], large[s].layout, PLAIN);
            c.odd = run / COUNT(types);
            if (!harness_on_gpu && (c.odd || s > 0)) continue;
            if (!case_begin("large/%s/%s%s", large[s].name, type_names[type],
                            c.odd ? "/odd" : "")) {
                continue;
            }
            norm_shape_make(&c.shape, c.mode, 4, large[s].dim);
            norm_run(&c, (struct norm_range){-3.0, 3.0});
        }
    }
}

/* Every digit of values that lie far from 0, where a pointer is odd too. */
static void far_values(void)
{
    for (int s = 0; s < COUNT(shapes); ++s) {
        for (int odd = 0; odd < 2; ++odd) {
            struct norm_case c =
                case_of(shapes[s].mode, CUDNN_DATA_DOUBLE, shapes[s].layout, odd ? UNSAVED : PLAIN);
            struct norm_case f =
                case_of(shapes[s].mode, CUDNN_DATA_FLOAT, shapes[s].layout, odd ? UNSAVED : PLAIN);
            c.odd = f.odd = odd;
            if (case_begin("far/%s/f64%s", shapes[s].name, odd ? "/odd" : "")) {
                norm_shape_make(&c.shape, c.mode, 4, shapes[s].dim);
                norm_run(&c, (struct norm_range){1e9, 1e9 + 3.0});
            }
            if (case_begin("far/%s/f32%s", shapes[s].name, odd ? "/odd" : "")) {
                norm_shape_make(&f.shape, f.mode, 4, shapes[s].dim);
                norm_run(&f, (struct norm_range){9998.3, 10001.7});
            }
        }
    }
}

/* NaN in a channel is what becomes of it, and of no other: a variance that is cut off at 0 would make a finite
 * deviation of it. One element, or all of them: those that sums are taken around too. */
static void nan_values(void)
{
    for (int run = 0; run < COUNT(shapes) * COUNT(types) * 4; ++run) {
        int s = run / COUNT(types) / 4;
        int type = run / 4 % COUNT(types);
        bool whole = run % 4 / 2;
        struct norm_case c = case_of(shapes[s].mode, types[type], shapes[s].layout, PLAIN);
        c.backward = false;
        c.odd = run % 2;
        if (!case_begin("nan/%s/%s/%s%s", shapes[s].name, type_names[type], whole ? "all" : "one",
                        c.odd ? "/odd" : "")) {
            continue;
        }
        norm_shape_make(&c.shape, c.mode, 4, shapes[s].dim);
        judge_nan(&c, whole);
    }
}

static void judge_inference(struct norm_case *c)
{
    const struct norm_shape *s = &c->shape;
    double *y = norm_zeros(s->count);
    double *size = norm_zeros(s->count);
    struct norm_inputs in = norm_inputs(c);
    if (run_call(norm_call_inference, c)) {
        for (int64_t i = 0; i < s->count; ++i) {
            int64_t p = s->param_of[i];
            double inv = 1.0 / sqrt(in.var[p] + c->epsilon);
            y[i] = in.scale[p] * (in.x[i] - in.mean[p]) * inv + in.bias[p];
            size[i] =
                fabs(in.scale[p]) * inv * (fabs(in.x[i]) + fabs(in.mean[p])) + fabs(in.bias[p]);
        }
        check_values("y", c->y, y, NULL, size, c->param_dtype);
    }
    free(y), free(size), norm_inputs_free(&in);
}

static void inference(void)
{
    for (int s = 0; s < COUNT(shapes); ++s) {
        for (int run = 0; run < COUNT(types) * 2; ++run) {
            int type = run % COUNT(types);
            struct norm_case c = case_of(shapes[s].mode, types[type], shapes[s].layout, PLAIN);
            enum layout layout = (enum layout)shapes[s].layout;
            c.odd = run / COUNT(types);
            if (!case_begin("inference/%s/%s%s", shapes[s].name, type_names[type],
                            c.odd ? "/odd" : "")) {
                continue;
            }
            norm_shape_make(&c.shape, c.mode, 4, shapes[s].dim);
            c.param_dtype = c.dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
            tensor_odd = c.odd;
            c.x = tensor_input(c.dtype, 4, c.shape.dim, layout, -3.0, 3.0);
            c.scale = norm_param(&c, layout, -2.0, 2.0);
            c.bias = norm_param(&c, layout, -1.0, 1.0);
            c.mean = norm_param(&c, layout, -1.0, 1.0);
            c.var = norm_param(&c, layout, 0.1, 2.0);
            c.y = norm_output(&c, layout, 0.0);
            tensor_odd = 0;
            judge_inference(&c);
            free(c.shape.param_of);
            case_end();
        }
    }
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    small_shapes();
    odd_pointers();
    last_bits();
    few_rows();
    many_planes();
    long_walks();
    large_channels();
    random_channels(16);
    outliers();
    large_shapes();
    far_values();
    nan_values();
    inference();
    return harness_finish();
}
