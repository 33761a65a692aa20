/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: batch norm's statistics taken apart, through the backend API: sums of channels, their
 * finalization in both modes, the weights of the backward pass; values, and without a device what
 * finalizing an operation answers to each attribute that is missing or wrong.
 */
#include "backend.h"

#include <stdio.h>
#include <string.h>

struct attribute {
    const char *name;
    int attribute;
    char
        kind; /* x: data, c: a channel, o: a channel written, v: fp32 by value, n: int64 by value */
};
struct operation {
    const char *name;
    cudnnBackendDescriptorType_t type;
    int mode, mode_type, compute;
    struct attribute list[16];
};

#define GS(name) CUDNN_ATTR_OPERATION_GENSTATS_##name
#define BF(name) CUDNN_ATTR_OPERATION_BN_FINALIZE_##name
#define BW(name) CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_##name
static const struct operation sums = {
    "gen_stats",
    CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
    GS(MODE),
    CUDNN_TYPE_GENSTATS_MODE,
    GS(MATH_PREC),
    {{"x", GS(XDESC), 'x'}, {"sum", GS(SUMDESC), 'o'}, {"sq_sum", GS(SQSUMDESC), 'o'}}};
static const struct operation finalization = {
    "bn_finalize",
    CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
    BF(STATS_MODE),
    CUDNN_TYPE_BN_FINALIZE_STATS_MODE,
    BF(MATH_PREC),
    {{"sum", BF(Y_SUM_DESC), 'c'},
     {"sq_sum", BF(Y_SQ_SUM_DESC), 'c'},
     {"scale", BF(SCALE_DESC), 'c'},
     {"bias", BF(BIAS_DESC), 'c'},
     {"in_mean", BF(PREV_RUNNING_MEAN_DESC), 'c'},
     {"in_var", BF(PREV_RUNNING_VAR_DESC), 'c'},
     {"out_mean", BF(UPDATED_RUNNING_MEAN_DESC), 'o'},
     {"out_var", BF(UPDATED_RUNNING_VAR_DESC), 'o'},
     {"mean", BF(SAVED_MEAN_DESC), 'o'},
     {"inv_std", BF(SAVED_INV_STD_DESC), 'o'},
     {"eq_scale", BF(EQ_SCALE_DESC), 'o'},
     {"eq_bias", BF(EQ_BIAS_DESC), 'o'},
     {"epsilon", BF(EPSILON_DESC), 'v'},
     {"factor", BF(EXP_AVERATE_FACTOR_DESC), 'v'},
     {"count", BF(ACCUM_COUNT_DESC), 'n'}}};
static const struct operation weights = {"bn_bwd_weights",
                                         CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
                                         -1,
                                         0,
                                         BW(MATH_PREC),
                                         {{"x", BW(X_DESC), 'x'},
                                          {"dy", BW(DY_DESC), 'x'},
                                          {"mean", BW(MEAN_DESC), 'c'},
                                          {"inv_std", BW(INVSTD_DESC), 'c'},
                                          {"scale", BW(BN_SCALE_DESC), 'c'},
                                          {"dscale", BW(DBN_SCALE_DESC), 'o'},
                                          {"dbias", BW(DBN_BIAS_DESC), 'o'},
                                          {"eq_dy_scale", BW(EQ_DY_SCALE_DESC), 'o'},
                                          {"eq_x_scale", BW(EQ_X_SCALE_DESC), 'o'},
                                          {"eq_bias", BW(EQ_BIAS), 'o'}}};

static be_desc begin(const struct operation *o, int mode)
{
    be_desc op = be_make(o->type);
    if (o->mode >= 0) be_set_int(op, o->mode, o->mode_type, mode);
    be_set_int(op, o->compute, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    return op;
}

static void strides(int nd, const int *dim, bool nhwc, int *stride)
{
    int next = nhwc ? dim[1] : 1;
    for (int i = nd - 1; i >= 0; i--) {
        if (i == 1 && nhwc) continue;
        stride[i] = next;
        next *= dim[i];
    }
    if (nhwc) stride[1] = 1;
}

/* Values that a batch norm of `n` elements a channel has. */
static void run(const struct operation *o, int mode, cudnnDataType_t type, int nd, const int *dim,
                bool nhwc)
{
    static struct gd_tens held[3];
    static double room[3];
    struct gd_tens *list[16] = {NULL};
    be_desc op = begin(o, mode);
    int count = 0, scalars = 0;
    double n = 1;
    for (int i = 0; i < nd; i++) n *= i == 1 ? 1 : dim[i];
    for (const struct attribute *a = o->list; a->name; a++) {
        int own[5], stride[5];
        bool data = a->kind == 'x';
        if (a->kind == 'v' || a->kind == 'n') {
            int value = a->kind == 'n' ? CUDNN_DATA_INT64 : CUDNN_DATA_FLOAT;
            float real = strcmp(a->name, "factor") ? 1e-3f : 0.25f;
            int64_t whole = 64;
            memcpy(&room[scalars], a->kind == 'n' ? (void *)&whole : (void *)&real,
                   a->kind == 'n' ? sizeof whole : sizeof real);
            held[scalars].p = &room[scalars];
            list[count++] = &held[scalars++];
            be_set_desc(op, a->attribute, be_by_value(count, value, nd, 8));
            continue;
        }
        for (int i = 0; i < nd; i++) own[i] = data || i == 1 ? dim[i] : 1;
        strides(nd, own, nhwc, stride);
        list[count] = gd_tens_raw(a->name, data ? type : CUDNN_DATA_FLOAT, nd, own, stride);
        if (a->kind != 'o')
            gd_fill(list[count], data                             ? GD_REAL
                                 : strstr(a->name, "mean")        ? GD_UNIT
                                 : strcmp(a->name, "sq_sum") == 0 ? GD_LARGE
                                                                  : GD_POS);
        be_set_desc(op, a->attribute, be_tensor_of(count + 1, list[count]));
        count++;
    }
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, count, list)) {
        int k = 0;
        for (const struct attribute *a = o->list; a->name; a++, k++) {
            struct gd_tol tol = gd_sum_tol(CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, n + 16, 32);
            if (a->kind == 'o') gd_out(list[k], tol);
        }
    }
    be_reset();
}

static void values(void)
{
    static const struct {
        const char *name;
        int nd, dim[5];
        bool nhwc;
    } shapes[] = {
        {"nhwc", 4, {4, 8, 6, 7}, true},       {"nhwc_c32", 4, {2, 32, 5, 5}, true},
        {"nhwc_c64", 4, {1, 64, 4, 4}, true},  {"nhwc_odd", 4, {3, 5, 6, 7}, true},
        {"nchw", 4, {4, 8, 6, 7}, false},      {"nchw_c3", 4, {2, 3, 8, 8}, false},
        {"5d_nhwc", 5, {2, 8, 3, 4, 5}, true}, {"5d", 5, {2, 8, 3, 4, 5}, false},
        {"one_pixel", 4, {16, 8, 1, 1}, true}, {"one_sample", 4, {1, 16, 9, 9}, true},
    };
    static const struct {
        const char *name;
        cudnnDataType_t type;
    } types[] = {
        {"f16", CUDNN_DATA_HALF}, {"bf16", CUDNN_DATA_BFLOAT16}, {"f32", CUDNN_DATA_FLOAT}};
    for (int s = 0; s < GD_COUNT(shapes); s++) {
        for (int t = 0; t < GD_COUNT(types); t++) {
            const struct operation *const list[] = {&sums, &weights};
            for (int o = 0; o < 2; o++) {
                if (!gd_case("backend_stats/%s/%s/%s", list[o]->name, types[t].name,
                             shapes[s].name))
                    continue;
                run(list[o], 0, types[t].type, shapes[s].nd, shapes[s].dim, shapes[s].nhwc);
                gd_end();
            }
        }
        for (int mode = 0; mode < 2; mode++) {
            if (!gd_case("backend_stats/bn_finalize/mode%d/%s", mode, shapes[s].name)) continue;
            run(&finalization, mode, CUDNN_DATA_FLOAT, shapes[s].nd, shapes[s].dim, shapes[s].nhwc);
            gd_end();
        }
    }
}

/* One attribute missing, of wrong dims, or a scalar of another type or in memory. */
enum wrong { NOTHING, MISSING, DIMENSIONS, OTHER_TYPE, MEMORY };

static void status(const struct operation *o, int mode, int which, enum wrong wrong)
{
    be_desc op = begin(o, mode);
    for (int i = 0; o->list[i].name; i++) {
        const struct attribute *a = &o->list[i];
        enum wrong mine = i == which ? wrong : NOTHING;
        int dim[4] = {1, 6, 1, 1}, stride[4];
        bool value = a->kind == 'v' || a->kind == 'n';
        int type = a->kind == 'n' && mine != OTHER_TYPE ? CUDNN_DATA_INT64 : CUDNN_DATA_FLOAT;
        if (mine == MISSING) continue;
        if (a->kind == 'x') memcpy(dim, DIMS(4, 6, 5, 7), sizeof dim);
        if (value) dim[1] = 1;
        if (mine == DIMENSIONS) dim[1] += 1;
        strides(4, dim, false, stride);
        be_set_desc(op, a->attribute,
                    value && mine != MEMORY ? be_by_value(i + 1, type, 4, 8)
                                            : be_tensor(i + 1, type, 4, dim, stride, false));
    }
    gd_status("op", lib.BackendFinalize(op));
    be_reset();
    gd_end();
}

static void statuses(void)
{
    static const struct operation *const list[] = {&sums, &finalization, &finalization, &weights};
    for (int o = 0; o < 4; o++) {
        int mode = o == 2;
        if (gd_host_case("backend_stats/op/%s/mode%d/valid", list[o]->name, mode))
            status(list[o], mode, -1, NOTHING);
        for (int i = 0; list[o]->list[i].name; i++) {
            const struct attribute *a = &list[o]->list[i];
            bool value = a->kind == 'v' || a->kind == 'n';
            if (gd_host_case("backend_stats/op/%s/mode%d/without_%s", list[o]->name, mode, a->name))
                status(list[o], mode, i, MISSING);
            if (!value &&
                gd_host_case("backend_stats/op/%s/mode%d/dims_%s", list[o]->name, mode, a->name))
                status(list[o], mode, i, DIMENSIONS);
            if (value &&
                gd_host_case("backend_stats/op/%s/mode%d/memory_%s", list[o]->name, mode, a->name))
                status(list[o], mode, i, MEMORY);
            if (a->kind == 'n' &&
                gd_host_case("backend_stats/op/%s/mode%d/type_%s", list[o]->name, mode, a->name))
                status(list[o], mode, i, OTHER_TYPE);
        }
    }
}

void cases_backend_stats(void)
{
    values();
    statuses();
}
