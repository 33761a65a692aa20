/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: pooling forward and backward: modes, windows, padding, NaN, types, layouts, scaling.
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>

struct pooling {
    const char *name;
    int nd, x[5], window[3], pad[3], stride[3];
};

static const struct pooling geometries[] = {
    {"2x2", 4, {2, 3, 6, 6}, {2, 2}, {0, 0}, {2, 2}},
    {"3x3s2p1", 4, {2, 3, 7, 8}, {3, 3}, {1, 1}, {2, 2}},
    {"3x3s1p1", 4, {2, 2, 5, 5}, {3, 3}, {1, 1}, {1, 1}},
    {"asym", 4, {1, 4, 9, 5}, {3, 2}, {1, 0}, {1, 2}},
    {"global", 4, {3, 4, 5, 6}, {5, 6}, {0, 0}, {1, 1}},
    {"stride_over", 4, {1, 3, 10, 10}, {2, 2}, {0, 0}, {3, 4}},
    {"pad_most", 4, {1, 2, 4, 4}, {3, 3}, {2, 2}, {1, 1}},
    {"ragged", 4, {1, 2, 6, 7}, {4, 3}, {1, 1}, {3, 3}},
    {"1x1", 4, {2, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}},
    {"8x8", 4, {1, 2, 16, 16}, {8, 8}, {0, 0}, {4, 4}},
    {"c8", 4, {2, 8, 6, 6}, {3, 3}, {1, 1}, {2, 2}},
    {"3d", 5, {1, 2, 4, 5, 6}, {2, 2, 2}, {0, 0, 0}, {2, 2, 2}},
    {"3d_p1", 5, {1, 3, 4, 5, 6}, {3, 3, 3}, {1, 1, 1}, {2, 1, 2}},
    {"3d_asym", 5, {2, 2, 5, 4, 3}, {1, 3, 2}, {0, 1, 0}, {1, 2, 1}},
};

static const struct {
    const char *name;
    cudnnDataType_t type;
    enum gd_layout layout;
} kinds[] = {
    {"f32", CUDNN_DATA_FLOAT, GD_NCHW},         {"f32_nhwc", CUDNN_DATA_FLOAT, GD_NHWC},
    {"f32_gaps", CUDNN_DATA_FLOAT, GD_GAPS},    {"f64", CUDNN_DATA_DOUBLE, GD_NCHW},
    {"f16", CUDNN_DATA_HALF, GD_NCHW},          {"f16_nhwc", CUDNN_DATA_HALF, GD_NHWC},
    {"bf16", CUDNN_DATA_BFLOAT16, GD_NCHW},     {"bf16_nhwc", CUDNN_DATA_BFLOAT16, GD_NHWC},
    {"i8", CUDNN_DATA_INT8, GD_NCHW},           {"i8_nhwc", CUDNN_DATA_INT8, GD_NHWC},
    {"i8x4", CUDNN_DATA_INT8x4, GD_VECT},       {"i8x32", CUDNN_DATA_INT8x32, GD_VECT},
    {"f32_widew", CUDNN_DATA_FLOAT, GD_WIDE_W},
};

static int out_dim(const struct pooling *g, int i)
{
    return (g->x[2 + i] + 2 * g->pad[i] - g->window[i]) / g->stride[i] + 1;
}

struct how {
    int kind, mode, nan_opt;
    double alpha, beta;
    enum gd_fill fill, out_fill;
    bool backward;
};

static void run(const struct pooling *g, const struct how *how)
{
    cudnnPoolingDescriptor_t p = NULL;
    cudnnDataType_t type = kinds[how->kind].type;
    enum gd_layout layout = kinds[how->kind].layout;
    int yd[5] = {g->x[0], g->x[1]};
    double area = 1;
    for (int i = 0; i < g->nd - 2; i++) {
        yd[2 + i] = out_dim(g, i);
        area *= g->window[i];
    }
    gd_setup("create", lib.CreatePoolingDescriptor(&p));
    gd_setup("set", lib.SetPoolingNdDescriptor(p, (cudnnPoolingMode_t)how->mode,
                                               (cudnnNanPropagation_t)how->nan_opt, g->nd - 2,
                                               g->window, g->pad, g->stride));
    struct gd_tens *x = gd_tens("x", type, layout, g->nd, g->x);
    struct gd_tens *y = gd_tens("y", type, layout, g->nd, yd);
    cudnnDataType_t st = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    cudnnDataType_t acc = st;
    gd_fill(x, how->fill);
    bool plain = how->alpha == 1 && how->beta == 0;
    bool max = how->mode == CUDNN_POOLING_MAX || how->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
    double scale = 4 * (fabs(how->alpha) + fabs(how->beta)) + 1e-30;
    if (!how->backward) {
        if (how->beta != 0 || how->out_fill) gd_fill(y, how->out_fill ? how->out_fill : GD_UNIT);
        if (gd_ran("run", lib.PoolingForward(gd_handle(), p, gd_scalar(st, how->alpha), x->desc,
                                             x->p, gd_scalar(st, how->beta), y->desc, y->p))) {
            struct gd_tol tol =
                max && plain ? gd_exact : gd_sum_tol(y->type, acc, area, scale / area);
            if (gd_roundoff(y->type) == 0 && !max) tol = (struct gd_tol){1, 0};
            gd_out(y, tol);
        }
    } else {
        /* Both libraries take y from their own forward pass. */
        gd_setup("forward", lib.PoolingForward(gd_handle(), p, gd_scalar(st, 1), x->desc, x->p,
                                               gd_scalar(st, 0), y->desc, y->p));
        struct gd_tens *dy = gd_tens("dy", type, layout, g->nd, yd);
        struct gd_tens *dx = gd_tens("dx", type, layout, g->nd, g->x);
        gd_fill(dy, GD_UNIT);
        if (how->beta != 0 || how->out_fill) gd_fill(dx, how->out_fill ? how->out_fill : GD_UNIT);
        if (gd_ran("run", lib.PoolingBackward(gd_handle(), p, gd_scalar(st, how->alpha), y->desc,
                                              y->p, dy->desc, dy->p, x->desc, x->p,
                                              gd_scalar(st, how->beta), dx->desc, dx->p)))
            gd_out(dx, gd_sum_tol(dx->type, acc, area, scale / 2));
    }
    lib.DestroyPoolingDescriptor(p);
}

static const char *const directions[] = {"fwd", "bwd"};

static void every_mode(void)
{
    for (int back = 0; back < 2; back++) {
        for (int mode = 0; mode < 4; mode++) {
            for (int i = 0; i < GD_COUNT(geometries); i++) {
                for (int k = 0; k < GD_COUNT(kinds); k++) {
                    const struct pooling *g = &geometries[i];
                    bool typed = i == 1 || i == 11 || (i == 10 && k > 3);
                    int unit = k == 11 ? 32 : k == 10 ? 4 : 1;
                    struct pooling wide = *g;
                    if (k && !typed) continue;
                    if (unit > 1 && (g->nd == 5 || i == 10)) continue;
                    if (unit > 1) wide.x[1] = unit;
                    if (!gd_case("pooling/%s/mode%d/%s/%s", directions[back], mode, kinds[k].name,
                                 g->name))
                        continue;
                    struct how how = {k, mode, 1, 1, 0, k > 7 && k < 12 ? GD_WIDE : GD_REAL,
                                      0, back};
                    run(&wide, &how);
                    gd_end();
                }
            }
        }
    }
}

static void special_values(void)
{
    static const double pairs[][2] = {{2, 0}, {1, 1}, {-0.5, 0.25}, {0, 1}, {0, 0}};
    static const int some[] = {0, 1, 4};
    for (int back = 0; back < 2; back++) {
        for (int mode = 0; mode < 4; mode++) {
            for (int j = 0; j < GD_COUNT(some); j++) {
                int k = some[j];
                for (int nan_opt = 0; nan_opt < 2; nan_opt++) {
                    if (gd_case("pooling/%s/mode%d/%s/some_nan%d", directions[back], mode,
                                kinds[k].name, nan_opt)) {
                        run(&geometries[1],
                            &(struct how){k, mode, nan_opt, 1, 0, GD_SOMENAN, 0, back});
                        gd_end();
                    }
                    if (gd_case("pooling/%s/mode%d/%s/special%d", directions[back], mode,
                                kinds[k].name, nan_opt)) {
                        run(&geometries[0],
                            &(struct how){k, mode, nan_opt, 1, 0, GD_SPECIAL, 0, back});
                        gd_end();
                    }
                }
                if (gd_case("pooling/%s/mode%d/%s/ties", directions[back], mode, kinds[k].name)) {
                    run(&geometries[2], &(struct how){k, mode, 1, 1, 0, GD_TIES, 0, back});
                    gd_end();
                }
                if (gd_case("pooling/%s/mode%d/%s/all_nan", directions[back], mode,
                            kinds[k].name)) {
                    run(&geometries[2], &(struct how){k, mode, 0, 1, 0, GD_NAN, 0, back});
                    gd_end();
                }
                if (gd_case("pooling/%s/mode%d/%s/nan_output_beta0", directions[back], mode,
                            kinds[k].name)) {
                    run(&geometries[1], &(struct how){k, mode, 1, 1, 0, GD_REAL, GD_NAN, back});
                    gd_end();
                }
                for (int s = 0; s < GD_COUNT(pairs); s++) {
                    if (k == 1 && s > 1) continue;
                    if (!gd_case("pooling/%s/mode%d/%s/scale%g,%g", directions[back], mode,
                                 kinds[k].name, pairs[s][0], pairs[s][1]))
                        continue;
                    run(&geometries[1],
                        &(struct how){k, mode, 1, pairs[s][0], pairs[s][1], GD_REAL, 0, back});
                    gd_end();
                }
            }
        }
    }
}

static void random_shapes(void)
{
    for (int back = 0; back < 2; back++) {
        for (int seed = 0; seed < 24; seed++) {
            uint64_t h = gd_hash("pooling", "random");
            struct pooling g = {.nd = 4 + seed % 2};
            g.x[0] = 1 + seed % 3;
            g.x[1] = 1 + (int)(gd_mix(h, (uint64_t)seed) % 6);
            for (int i = 0; i < g.nd - 2; i++) {
                uint64_t r = gd_mix(h, 1000 + (uint64_t)(seed * 3 + i));
                g.window[i] = 1 + (int)(r % 4);
                g.pad[i] = (int)(r / 4 % (uint64_t)g.window[i]);
                g.stride[i] = 1 + (int)(r / 64 % 3);
                g.x[2 + i] = g.window[i] + (int)(r / 256 % 6);
            }
            static const int some[] = {0, 1, 2, 3, 4, 7};
            int k = some[gd_mix(h, 5000 + (uint64_t)seed) % GD_COUNT(some)];
            int mode = (int)(gd_mix(h, 6000 + (uint64_t)seed) % 4);
            if (!gd_case("pooling/%s/random%d/mode%d/%s", directions[back], seed, mode,
                         kinds[k].name))
                continue;
            run(&g, &(struct how){k, mode, 1, 1, 0, GD_REAL, 0, back});
            gd_end();
        }
    }
}

/* Tensors that do not fit the descriptor. */
static void invalid(void)
{
    static const struct {
        const char *name;
        int y[4], type;
    } rows[] = {{"p", {2, 3, 4, 3}, 0},
                {"c", {2, 4, 3, 3}, 0},
                {"n", {1, 3, 3, 3}, 0},
                {"type", {2, 3, 3, 3}, 2}};
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_case("pooling/invalid/%s", rows[i].name)) continue;
        cudnnPoolingDescriptor_t p = NULL;
        struct gd_tens *x = gd_tens("x", CUDNN_DATA_FLOAT, GD_NCHW, 4, DIMS(2, 3, 6, 6));
        struct gd_tens *y = gd_tens("y", (cudnnDataType_t)rows[i].type, GD_NCHW, 4, rows[i].y);
        gd_setup("create", lib.CreatePoolingDescriptor(&p));
        gd_setup("set", lib.SetPooling2dDescriptor(p, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2,
                                                   0, 0, 2, 2));
        gd_fill(x, GD_REAL);
        gd_status("run", lib.PoolingForward(gd_handle(), p, gd_scalar(0, 1), x->desc, x->p,
                                            gd_scalar(0, 0), y->desc, y->p));
        lib.DestroyPoolingDescriptor(p);
        gd_end();
    }
}

void cases_pooling(void)
{
    every_mode();
    special_values();
    random_shapes();
    invalid();
}
