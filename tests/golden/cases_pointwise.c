/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: AddTensor and OpTensor in every broadcast form, ScaleTensor, SetTensor.
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *name;
    cudnnDataType_t type;
    enum gd_layout layout;
} kinds[] = {
    {"f32", CUDNN_DATA_FLOAT, GD_NCHW},      {"f64", CUDNN_DATA_DOUBLE, GD_NCHW},
    {"f16", CUDNN_DATA_HALF, GD_NCHW},       {"bf16", CUDNN_DATA_BFLOAT16, GD_NCHW},
    {"f32_nhwc", CUDNN_DATA_FLOAT, GD_NHWC}, {"f16_nhwc", CUDNN_DATA_HALF, GD_NHWC},
    {"f32_gaps", CUDNN_DATA_FLOAT, GD_GAPS}, {"i32", CUDNN_DATA_INT32, GD_NCHW},
    {"i8", CUDNN_DATA_INT8, GD_NCHW},
};

static cudnnDataType_t scalar_type(cudnnDataType_t t)
{
    return t == CUDNN_DATA_DOUBLE ? t : CUDNN_DATA_FLOAT;
}

static struct gd_tol tolerance(const struct gd_tens *t, double scale)
{
    if (gd_roundoff(t->type) == 0) return (struct gd_tol){1, 0};
    return gd_map_tol(t->type, scalar_type(t->type), 4, scale);
}

static void add_one(int k, int nd, const int *a, const int *c, double alpha, double beta,
                    enum gd_fill out)
{
    cudnnDataType_t st = scalar_type(kinds[k].type);
    struct gd_tens *ta = gd_tens("a", kinds[k].type, kinds[k].layout, nd, a);
    struct gd_tens *tc = gd_tens("c", kinds[k].type, kinds[k].layout, nd, c);
    gd_fill(ta, GD_REAL);
    gd_fill(tc, out);
    if (gd_ran("run", lib.AddTensor(gd_handle(), gd_scalar(st, alpha), ta->desc, ta->p,
                                    gd_scalar(st, beta), tc->desc, tc->p)))
        gd_out(tc, tolerance(tc, 4 * (fabs(alpha) + fabs(beta))));
}

static void add(void)
{
    static const int full[5] = {2, 3, 4, 5, 6};
    static const double pairs[][2] = {{1, 0}, {2, 1}, {-0.5, 0.25}, {0, 1}};
    for (int mask = 0; mask < 32; mask++) {
        for (int nd = 4; nd <= 5; nd++) {
            int a[5];
            if (mask >= 1 << nd) continue;
            for (int i = 0; i < nd; i++) a[i] = mask >> i & 1 ? full[i] : 1;
            if (gd_case("add/%dd/mask%d", nd, mask)) {
                add_one(0, nd, a, full, 1, 1, GD_REAL);
                gd_end();
            }
        }
    }
    for (int k = 0; k < GD_COUNT(kinds); k++) {
        if (gd_case("add/%s/bias", kinds[k].name)) {
            add_one(k, 4, DIMS(1, 3, 1, 1), full, 1, 1, GD_REAL);
            gd_end();
        }
        if (gd_case("add/%s/same", kinds[k].name)) {
            add_one(k, 4, full, full, 1, 1, GD_REAL);
            gd_end();
        }
        for (int i = 0; i < GD_COUNT(pairs) && k < 3; i++) {
            if (gd_case("add/%s/scale%g,%g", kinds[k].name, pairs[i][0], pairs[i][1])) {
                add_one(k, 4, DIMS(1, 3, 1, 1), full, pairs[i][0], pairs[i][1], GD_REAL);
                gd_end();
            }
        }
    }
    if (gd_case("add/nan_output_beta0")) {
        add_one(0, 4, DIMS(1, 3, 1, 1), full, 1, 0, GD_NAN);
        gd_end();
    }
    static const struct {
        const char *name;
        int a[4];
    } bad[] = {{"c2", {1, 2, 1, 1}}, {"w1h", {2, 3, 4, 6}}, {"n3", {3, 3, 4, 5}}};
    for (int i = 0; i < GD_COUNT(bad); i++) {
        if (gd_case("add/invalid/%s", bad[i].name)) {
            add_one(0, 4, bad[i].a, full, 1, 1, GD_REAL);
            gd_end();
        }
    }
    if (gd_case("add/invalid/types")) {
        struct gd_tens *a = gd_tens("a", CUDNN_DATA_HALF, GD_NCHW, 4, DIMS(1, 3, 1, 1));
        struct gd_tens *c = gd_tens("c", CUDNN_DATA_FLOAT, GD_NCHW, 4, full);
        gd_fill(a, GD_REAL);
        gd_fill(c, GD_REAL);
        if (gd_ran("run", lib.AddTensor(gd_handle(), gd_scalar(0, 1), a->desc, a->p,
                                        gd_scalar(0, 1), c->desc, c->p)))
            gd_out(c, tolerance(c, 8));
        gd_end();
    }
}

struct op_how {
    int ka, kb, kc, op, comp, nan_opt;
    double a1, a2, beta;
    enum gd_fill fill, out;
    bool in_place;
};

static void op_one(const struct op_how *how, int nd, const int *a, const int *b, const int *c)
{
    cudnnOpTensorDescriptor_t d = NULL;
    cudnnDataType_t st = scalar_type((cudnnDataType_t)how->comp);
    struct gd_tens *ta = gd_tens("a", kinds[how->ka].type, kinds[how->ka].layout, nd, a);
    struct gd_tens *tb = gd_tens("b", kinds[how->kb].type, kinds[how->kb].layout, nd, b);
    struct gd_tens *tc =
        how->in_place ? ta : gd_tens("c", kinds[how->kc].type, kinds[how->kc].layout, nd, c);
    enum gd_fill fill =
        how->op == CUDNN_OP_TENSOR_SQRT && how->fill == GD_REAL ? GD_POS : how->fill;
    gd_setup("create", lib.CreateOpTensorDescriptor(&d));
    gd_setup("set",
             lib.SetOpTensorDescriptor(d, (cudnnOpTensorOp_t)how->op, (cudnnDataType_t)how->comp,
                                       (cudnnNanPropagation_t)how->nan_opt));
    gd_fill(ta, fill);
    gd_fill(tb, fill);
    if (!how->in_place && (how->beta != 0 || how->out)) gd_fill(tc, how->out ? how->out : GD_UNIT);
    if (gd_ran("run", lib.OpTensor(gd_handle(), d, gd_scalar(st, how->a1), ta->desc, ta->p,
                                   gd_scalar(st, how->a2), tb->desc, tb->p,
                                   gd_scalar(st, how->beta), tc->desc, tc->p))) {
        double scale = 4 * (fabs(how->a1) * (how->op == 1 ? 4 * fabs(how->a2) : 1) + fabs(how->a2) +
                            fabs(how->beta));
        gd_out(tc, tolerance(tc, scale));
    }
    lib.DestroyOpTensorDescriptor(d);
}

static void op(void)
{
    static const int full[5] = {2, 3, 4, 5, 6};
    static const double scales[][3] = {{2, -1, 0}, {1, 1, 1}, {-0.5, 2, 0.25}, {0, 1, 0}};
    for (int o = 0; o < 6; o++) {
        for (int k = 0; k < GD_COUNT(kinds); k++) {
            struct op_how how = {k, k,       k, o,    scalar_type(kinds[k].type), 1, 1, 1,
                                 0, GD_REAL, 0, false};
            if (gd_case("op/op%d/%s/same", o, kinds[k].name)) {
                op_one(&how, 4, full, full, full);
                gd_end();
            }
            if (k < 6 && gd_case("op/op%d/%s/bias", o, kinds[k].name)) {
                op_one(&how, 4, full, DIMS(1, 3, 1, 1), full);
                gd_end();
            }
        }
        for (int mask = 0; mask < 32; mask++) {
            int nd = mask < 16 ? 4 : 5, b[5];
            struct op_how how = {0, 0, 0, o, 0, 1, 1, 1, 0, GD_REAL, 0, false};
            if ((o != 0 && o != 3 && mask % 5) || !gd_case("op/op%d/mask%d", o, mask)) continue;
            for (int i = 0; i < nd; i++) b[i] = mask >> i & 1 ? full[i] : 1;
            op_one(&how, nd, full, b, full);
            gd_end();
        }
        for (int i = 0; i < GD_COUNT(scales); i++) {
            for (int k = 0; k < 3; k += 2) {
                struct op_how how = {
                    k, k, k, o, 0, 1, scales[i][0], scales[i][1], scales[i][2], GD_REAL, 0, false};
                if (o == CUDNN_OP_TENSOR_SQRT && scales[i][0] < 0) how.a1 = -how.a1;
                if (gd_case("op/op%d/scale%d/%s", o, i, kinds[k].name)) {
                    op_one(&how, 4, full, DIMS(1, 3, 1, 1), full);
                    gd_end();
                }
            }
        }
        for (int nan_opt = 0; nan_opt < 2; nan_opt++) {
            struct op_how how = {0, 0, 0, o, 0, nan_opt, 1, 1, 0, GD_SPECIAL, 0, false};
            if (gd_case("op/op%d/special%d", o, nan_opt)) {
                op_one(&how, 4, full, full, full);
                gd_end();
            }
        }
        struct op_how how = {0, 0, 0, o, 0, 1, 1, 1, 0, GD_REAL, GD_NAN, false};
        if (gd_case("op/op%d/nan_output_beta0", o)) {
            op_one(&how, 4, full, full, full);
            gd_end();
        }
        how.out = 0;
        how.in_place = true;
        if (gd_case("op/op%d/in_place", o)) {
            op_one(&how, 4, full, DIMS(1, 3, 1, 1), full);
            gd_end();
        }
    }
    /* Types of A, B, C and of the computation. */
    static const int mixes[][4] = {{2, 2, 0, 0}, {0, 0, 2, 0}, {2, 0, 2, 0}, {8, 8, 0, 0},
                                   {8, 8, 8, 0}, {0, 0, 8, 0}, {2, 2, 2, 2}, {0, 0, 0, 1},
                                   {1, 1, 1, 0}, {3, 3, 0, 0}, {0, 0, 3, 0}, {1, 1, 0, 1}};
    for (int i = 0; i < GD_COUNT(mixes); i++) {
        struct op_how how = {mixes[i][0], mixes[i][1], mixes[i][2], 0,       mixes[i][3], 1,
                             1,           1,           0,           GD_REAL, 0,           false};
        if (gd_case("op/mix%d", i)) {
            op_one(&how, 4, full, DIMS(1, 3, 1, 1), full);
            gd_end();
        }
    }
    static const struct {
        const char *name;
        int a[4], b[4], c[4];
    } bad[] = {{"b", {2, 3, 4, 5}, {1, 2, 1, 1}, {2, 3, 4, 5}},
               {"a", {1, 3, 1, 1}, {2, 3, 4, 5}, {2, 3, 4, 5}},
               {"c", {2, 3, 4, 5}, {2, 3, 4, 5}, {1, 3, 4, 5}},
               {"larger_b", {2, 3, 4, 5}, {3, 3, 4, 5}, {2, 3, 4, 5}}};
    for (int i = 0; i < GD_COUNT(bad); i++) {
        struct op_how how = {0, 0, 0, 0, 0, 1, 1, 1, 0, GD_REAL, 0, false};
        if (gd_case("op/invalid/%s", bad[i].name)) {
            op_one(&how, 4, bad[i].a, bad[i].b, bad[i].c);
            gd_end();
        }
    }
}

static void fill(void)
{
    static const double scales[] = {0, 1, -2.5, 0.125, INFINITY};
    static const double sets[] = {0, 1, -3, 7.5, 300, 1e30, NAN};
    for (int k = 0; k < GD_COUNT(kinds); k++) {
        cudnnDataType_t type = kinds[k].type;
        for (int i = 0; i < GD_COUNT(scales); i++) {
            if (!gd_case("scale/%s/%g", kinds[k].name, scales[i])) continue;
            struct gd_tens *y = gd_tens("y", type, kinds[k].layout, 4, DIMS(2, 3, 4, 5));
            gd_fill(y, i == 0 ? GD_SPECIAL : GD_REAL);
            if (gd_ran("run", lib.ScaleTensor(gd_handle(), y->desc, y->p,
                                              gd_scalar(scalar_type(type), scales[i]))))
                gd_out(y, tolerance(y, 16));
            gd_end();
        }
        for (int i = 0; i < GD_COUNT(sets); i++) {
            if (gd_roundoff(type) == 0 && !(fabs(sets[i]) < 100)) continue;
            for (int nd = 4; nd <= 5; nd++) {
                if ((nd == 5 && i) || !gd_case("set/%s/%dd/%g", kinds[k].name, nd, sets[i]))
                    continue;
                struct gd_tens *y = gd_tens("y", type, kinds[k].layout, nd, DIMS(2, 3, 4, 5, 2));
                unsigned char value[8] = {0};
                gd_put(type, value, sets[i]); /* the value has the type of the tensor */
                if (gd_ran("run", lib.SetTensor(gd_handle(), y->desc, y->p, value)))
                    gd_out(y, gd_exact);
                gd_end();
            }
        }
    }
}

void cases_pointwise(void)
{
    add();
    op();
    fill();
}
