/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: ReduceTensor: operators, reduced dims, types, indices, NaN, scaling, sizes.
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>

enum { OPS = 9 };

static const struct {
    const char *name;
    cudnnDataType_t a, c, comp;
    enum gd_layout layout;
} kinds[] = {
    {"f32", 0, 0, 0, GD_NCHW},        {"f64", 1, 1, 1, GD_NCHW},
    {"f16", 2, 2, 0, GD_NCHW},        {"bf16", 9, 9, 0, GD_NCHW},
    {"f32_nhwc", 0, 0, 0, GD_NHWC},   {"f16_nhwc", 2, 2, 0, GD_NHWC},
    {"f32_gaps", 0, 0, 0, GD_GAPS},   {"f16_to_f32", 2, 0, 0, GD_NCHW},
    {"f32_to_f16", 0, 2, 0, GD_NCHW}, {"i8", 3, 3, 0, GD_NCHW},
    {"i8_to_f32", 3, 0, 0, GD_NCHW},  {"f16_true", 2, 2, 2, GD_NCHW},
};

struct how {
    int kind, op, nan_opt, indices;
    double alpha, beta;
    enum gd_fill fill, out;
};

static void run(const struct how *how, int nd, const int *ad, const int *cd)
{
    int k = how->kind;
    cudnnReduceTensorDescriptor_t r = NULL;
    cudnnHandle_t h = gd_handle();
    cudnnDataType_t st = kinds[k].comp == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    struct gd_tens *a = gd_tens("a", kinds[k].a, kinds[k].layout, nd, ad);
    struct gd_tens *c = gd_tens("c", kinds[k].c, kinds[k].layout, nd, cd);
    gd_setup("create", lib.CreateReduceTensorDescriptor(&r));
    gd_setup("set", lib.SetReduceTensorDescriptor(r, (cudnnReduceTensorOp_t)how->op, kinds[k].comp,
                                                  (cudnnNanPropagation_t)how->nan_opt,
                                                  (cudnnReduceTensorIndices_t)how->indices,
                                                  CUDNN_32BIT_INDICES));
    bool product =
        how->op == CUDNN_REDUCE_TENSOR_MUL || how->op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
    gd_fill(a, product && how->fill == GD_REAL ? GD_POS : how->fill);
    if (how->beta != 0 || how->out) gd_fill(c, how->out ? how->out : GD_UNIT);
    size_t ws = 0, is = 0;
    gd_status("ask_ws", lib.GetReductionWorkspaceSize(h, r, a->desc, c->desc, &ws));
    gd_status("ask_indices", lib.GetReductionIndicesSize(h, r, a->desc, c->desc, &is));
    gd_size("ws", ws);
    gd_size("indices_size", is);
    struct gd_tens *index =
        gd_tens("index", CUDNN_DATA_INT32, GD_NCHW, 4, DIMS(1, 1, 1, (int)c->count));
    void *ip = is > index->bytes ? gd_workspace(is) : index->p;
    if (gd_ran("run",
               lib.ReduceTensor(h, r, ip, is, gd_workspace(ws), ws, gd_scalar(st, how->alpha),
                                a->desc, a->p, gd_scalar(st, how->beta), c->desc, c->p))) {
        double n = (double)a->count / (double)c->count;
        struct gd_tol tol =
            gd_sum_tol(c->type, kinds[k].comp, n, 2 * (fabs(how->alpha) + fabs(how->beta)));
        if (product) /* n multiplications, each with a relative error */
            tol.rel += 2 * n * gd_roundoff(kinds[k].comp);
        if (how->op == CUDNN_REDUCE_TENSOR_AVG) tol.abs /= n;
        if (how->op >= 2 && how->op <= 4 && how->alpha == 1 && how->beta == 0 && a->type == c->type)
            tol = gd_exact;
        else if (gd_roundoff(c->type) == 0) tol = (struct gd_tol){1, 0};
        gd_out(c, tol);
        if (how->indices && how->op >= 2 && how->op <= 4 && ip == index->p) gd_out(index, gd_exact);
    }
    lib.DestroyReduceTensorDescriptor(r);
    gd_end();
}

void cases_reduce(void)
{
    static const int d4[] = {3, 4, 5, 6}, d5[] = {2, 3, 2, 4, 3};
    static const double pairs[][2] = {{2, 0}, {1, 1}, {-0.5, 0.25}, {0, 1}, {0, 0}};
    for (int op = 0; op < OPS; op++) {
        for (int mask = 0; mask < 16; mask++) {
            int c[4];
            if (op != 0 && op != 3 && op != 7 && mask != 0 && mask != 13 && mask != 2 && mask != 7)
                continue;
            for (int i = 0; i < 4; i++) c[i] = mask >> i & 1 ? 1 : d4[i];
            if (gd_case("reduce/op%d/f32/mask%d", op, mask))
                run(&(struct how){0, op, 1, 0, 1, 0, GD_REAL, 0}, 4, d4, c);
        }
        for (int k = 1; k < GD_COUNT(kinds); k++) {
            if (gd_case("reduce/op%d/%s/nhw", op, kinds[k].name))
                run(&(struct how){k, op, 1, 0, 1, 0, GD_REAL, 0}, 4, d4, DIMS(1, 4, 1, 1));
            if (k < 4 && gd_case("reduce/op%d/%s/all", op, kinds[k].name))
                run(&(struct how){k, op, 1, 0, 1, 0, GD_REAL, 0}, 4, d4, DIMS(1, 1, 1, 1));
        }
        if (gd_case("reduce/op%d/5d", op))
            run(&(struct how){0, op, 1, 0, 1, 0, GD_REAL, 0}, 5, d5, DIMS(1, 3, 1, 4, 1));
        if (gd_case("reduce/op%d/long", op))
            run(&(struct how){0, op, 1, 0, 1, 0, GD_REAL, 0}, 4, DIMS(1, 1, 40, 100),
                DIMS(1, 1, 1, 1));
        for (int i = 0; i < GD_COUNT(pairs); i++)
            if (gd_case("reduce/op%d/scale%g,%g", op, pairs[i][0], pairs[i][1]))
                run(&(struct how){0, op, 1, 0, pairs[i][0], pairs[i][1], GD_REAL, 0}, 4, d4,
                    DIMS(1, 4, 1, 6));
        for (int nan_opt = 0; nan_opt < 2; nan_opt++) {
            if (gd_case("reduce/op%d/some_nan%d", op, nan_opt))
                run(&(struct how){0, op, nan_opt, 0, 1, 0, GD_SOMENAN, 0}, 4, d4, DIMS(3, 4, 5, 1));
            if (gd_case("reduce/op%d/special%d", op, nan_opt))
                run(&(struct how){0, op, nan_opt, 0, 1, 0, GD_SPECIAL, 0}, 4, d4, DIMS(3, 4, 5, 1));
            if (gd_case("reduce/op%d/f16_some_nan%d", op, nan_opt))
                run(&(struct how){2, op, nan_opt, 0, 1, 0, GD_SOMENAN, 0}, 4, d4, DIMS(3, 4, 5, 1));
        }
        if (gd_case("reduce/op%d/ties", op))
            run(&(struct how){0, op, 1, 0, 1, 0, GD_TIES, 0}, 4, d4, DIMS(3, 1, 5, 1));
        if (gd_case("reduce/op%d/nan_output_beta0", op))
            run(&(struct how){0, op, 1, 0, 1, 0, GD_REAL, GD_NAN}, 4, d4, DIMS(3, 4, 1, 1));
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < 4; i++) {
                static const int cs[][4] = {{1, 1, 1, 1}, {3, 4, 1, 1}, {1, 4, 1, 1}, {3, 1, 5, 6}};
                if (gd_case("reduce/op%d/indices/%s/%d", op, kinds[k].name, i))
                    run(&(struct how){k, op, 1, 1, 1, 0, GD_REAL, 0}, 4, d4, cs[i]);
            }
        for (int nan_opt = 0; nan_opt < 2; nan_opt++)
            if (op >= 2 && op <= 4 && gd_case("reduce/op%d/indices/some_nan%d", op, nan_opt))
                run(&(struct how){0, op, nan_opt, 1, 1, 0, GD_SOMENAN, 0}, 4, d4, DIMS(3, 4, 5, 1));
        if (op >= 2 && op <= 4 && gd_case("reduce/op%d/indices/ties", op))
            run(&(struct how){0, op, 1, 1, 1, 0, GD_TIES, 0}, 4, d4, DIMS(3, 4, 5, 1));
    }
    static const struct {
        const char *name;
        int c[4];
    } bad[] = {{"c2", {1, 2, 1, 1}}, {"larger", {3, 4, 5, 7}}, {"n2", {2, 4, 5, 6}}};
    for (int i = 0; i < GD_COUNT(bad); i++)
        if (gd_case("reduce/invalid/%s", bad[i].name))
            run(&(struct how){0, 0, 1, 0, 1, 0, GD_REAL, 0}, 4, d4, bad[i].c);
}
