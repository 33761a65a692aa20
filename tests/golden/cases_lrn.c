/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: local response normalization across channels and divisive normalization, forward and
 * backward: windows, coefficients, types, layouts, scaling, means and their gradient, NaN.
 */
#include "golden.h"

#include <math.h>

static const char *const directions[] = {"fwd", "bwd"};

struct shape {
    const char *name;
    int nd, dim[5];
    unsigned n;
};

static const struct {
    const char *name;
    cudnnDataType_t type;
    enum gd_layout layout;
} kinds[] = {
    {"f32", CUDNN_DATA_FLOAT, GD_NCHW},      {"f64", CUDNN_DATA_DOUBLE, GD_NCHW},
    {"f16", CUDNN_DATA_HALF, GD_NCHW},       {"f32_nhwc", CUDNN_DATA_FLOAT, GD_NHWC},
    {"f16_nhwc", CUDNN_DATA_HALF, GD_NHWC},  {"f32_gaps", CUDNN_DATA_FLOAT, GD_GAPS},
    {"f32_chwn", CUDNN_DATA_FLOAT, GD_CHWN}, {"bf16", CUDNN_DATA_BFLOAT16, GD_NCHW},
};

static const struct {
    const char *name;
    double alpha, beta, k;
} coefficients[] = {
    {"default", 1e-4, 0.75, 2}, {"strong", 2, 0.75, 1},     {"root", 1, 0.5, 1},
    {"square", 0.5, 2, 3},      {"small_k", 1, 0.75, 1e-5}, {"no_alpha", 0, 0.75, 2},
};

struct how {
    int kind, coefficients;
    bool backward;
    enum gd_fill x, out;
    double alpha, beta;
    bool means, want_dmeans; /* divisive */
};

/* A power has its own error, of fast hardware too; the sums are of positive terms. */
static struct gd_tol within(cudnnDataType_t type, double terms, double scale)
{
    cudnnDataType_t acc = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    struct gd_tol tol = gd_map_tol(type, acc, 32 + terms, (32 + terms) * scale);
    /* fp16: the coefficients of the descriptor are rounded to it as well, documented */
    if (gd_roundoff(type) > 1e-4) tol.rel += 2 * gd_roundoff(type);
    return tol;
}

static cudnnLRNDescriptor_t describe(unsigned n, int row)
{
    cudnnLRNDescriptor_t l = NULL;
    gd_setup("create", lib.CreateLRNDescriptor(&l));
    gd_setup("set", lib.SetLRNDescriptor(l, n, coefficients[row].alpha, coefficients[row].beta,
                                         coefficients[row].k));
    return l;
}

/* How large values get: |x| <= 4 is divided by at least k^beta. */
static double largest(int row)
{
    return 4 * pow(coefficients[row].k, -coefficients[row].beta);
}

static double scale_of(const struct how *how)
{
    return 1 + fabs(how->alpha) * largest(how->coefficients) + fabs(how->beta);
}

static void across(const struct shape *s, const struct how *how)
{
    cudnnDataType_t type = kinds[how->kind].type;
    enum gd_layout layout = kinds[how->kind].layout;
    cudnnDataType_t st = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    cudnnLRNDescriptor_t l = describe(s->n, how->coefficients);
    struct gd_tens *x = gd_tens("x", type, layout, s->nd, s->dim);
    struct gd_tens *y = gd_tens("y", type, layout, s->nd, s->dim);
    struct gd_tol tol = within(type, s->n, scale_of(how));
    gd_fill(x, how->x);
    if (!how->backward) {
        if (how->beta != 0 || how->out) gd_fill(y, how->out ? how->out : GD_UNIT);
        if (gd_ran("run", lib.LRNCrossChannelForward(gd_handle(), l, CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                                     gd_scalar(st, how->alpha), x->desc, x->p,
                                                     gd_scalar(st, how->beta), y->desc, y->p)))
            gd_out(y, tol);
    } else {
        /* Both libraries take y from their own forward pass. */
        struct gd_tens *dy = gd_tens("dy", type, layout, s->nd, s->dim);
        struct gd_tens *dx = gd_tens("dx", type, layout, s->nd, s->dim);
        gd_setup("forward", lib.LRNCrossChannelForward(gd_handle(), l, CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                                       gd_scalar(st, 1), x->desc, x->p,
                                                       gd_scalar(st, 0), y->desc, y->p));
        gd_fill(dy, GD_UNIT);
        if (how->beta != 0 || how->out) gd_fill(dx, how->out ? how->out : GD_UNIT);
        if (gd_ran("run", lib.LRNCrossChannelBackward(gd_handle(), l, CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                                      gd_scalar(st, how->alpha), y->desc, y->p,
                                                      dy->desc, dy->p, x->desc, x->p,
                                                      gd_scalar(st, how->beta), dx->desc, dx->p))) {
            /* y is rounded to its type before it is used there */
            tol.abs += 4 * gd_roundoff(type) * s->n * scale_of(how);
            gd_out(dx, tol);
        }
    }
    lib.DestroyLRNDescriptor(l);
    gd_end();
}

static void lrn(void)
{
    static const struct shape shapes[] = {
        {"plain", 4, {2, 7, 4, 5}, 5},    {"even", 4, {2, 9, 3, 4}, 4},
        {"two", 4, {1, 6, 3, 3}, 2},      {"one", 4, {2, 5, 3, 4}, 1},
        {"widest", 4, {1, 40, 2, 3}, 16}, {"over", 4, {2, 3, 4, 4}, 9},
        {"channel", 4, {3, 1, 5, 4}, 5},  {"alexnet", 4, {1, 96, 5, 5}, 5},
        {"pixel", 4, {4, 17, 1, 1}, 3},   {"row", 4, {1, 8, 1, 33}, 3},
        {"5d", 5, {2, 6, 3, 4, 2}, 5},    {"5d_even", 5, {1, 8, 2, 2, 5}, 6},
    };
    static const struct {
        const char *name;
        enum gd_fill x, out;
        double alpha, beta;
    } rows[] = {
        {"scale2", GD_REAL, 0, 2, 0},      {"add", GD_REAL, 0, 1, 1},
        {"blend", GD_REAL, 0, -0.5, 0.25}, {"nothing", GD_REAL, 0, 0, 1},
        {"zeros", GD_ZERO, 0, 1, 0},       {"some_nan", GD_SOMENAN, 0, 1, 0},
        {"wide", GD_WIDE, 0, 1, 0},        {"nan_output_beta0", GD_REAL, GD_NAN, 1, 0},
    };
    for (int back = 0; back < 2; back++) {
        for (int k = 0; k < GD_COUNT(kinds); k++) {
            for (int i = 0; i < GD_COUNT(shapes); i++) {
                if (k > 2 && (i == 3 || (i > 4 && i < 10))) continue;
                if (gd_case("lrn/%s/%s/%s", directions[back], kinds[k].name, shapes[i].name))
                    across(&shapes[i], &(struct how){k, 1, back, GD_REAL, 0, 1, 0, 0, 0});
            }
            for (int c = 0; k < 3 && c < GD_COUNT(coefficients); c++) {
                if (gd_case("lrn/%s/%s/%s", directions[back], kinds[k].name, coefficients[c].name))
                    across(&shapes[0], &(struct how){k, c, back, GD_REAL, 0, 1, 0, 0, 0});
            }
            for (int r = 0; k < 3 && r < GD_COUNT(rows); r++) {
                if (gd_case("lrn/%s/%s/%s", directions[back], kinds[k].name, rows[r].name))
                    across(&shapes[0], &(struct how){k, 1, back, rows[r].x, rows[r].out,
                                                     rows[r].alpha, rows[r].beta, 0, 0});
            }
        }
    }
}

static void within_channel(const struct shape *s, const struct how *how)
{
    cudnnDataType_t type = kinds[how->kind].type;
    enum gd_layout layout = kinds[how->kind].layout;
    cudnnDataType_t st = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    cudnnLRNDescriptor_t l = describe(s->n, how->coefficients);
    struct gd_tens *x = gd_tens("x", type, layout, s->nd, s->dim);
    struct gd_tens *means = gd_tens("means", type, layout, s->nd, s->dim);
    struct gd_tens *temp = gd_tens("temp", type, layout, s->nd, s->dim);
    struct gd_tens *temp2 = gd_tens("temp2", type, layout, s->nd, s->dim);
    double terms = pow(s->n, s->nd - 2);
    struct gd_tol tol = within(type, terms, scale_of(how));
    gd_fill(x, how->x);
    gd_fill(means, GD_UNIT);
    /* of 16 bits each: what the recorded library keeps in its scratch is rounded to them */
    if (gd_roundoff(type) > 1e-4) tol.abs += 8 * gd_roundoff(type) * scale_of(how);
    if (!how->backward) {
        struct gd_tens *y = gd_tens("y", type, layout, s->nd, s->dim);
        if (how->beta != 0 || how->out) gd_fill(y, how->out ? how->out : GD_UNIT);
        if (gd_ran("run",
                   lib.DivisiveNormalizationForward(gd_handle(), l, CUDNN_DIVNORM_PRECOMPUTED_MEANS,
                                                    gd_scalar(st, how->alpha), x->desc, x->p,
                                                    how->means ? means->p : NULL, temp->p, temp2->p,
                                                    gd_scalar(st, how->beta), y->desc, y->p)))
            gd_out(y, tol);
    } else {
        struct gd_tens *dy = gd_tens("dy", type, layout, s->nd, s->dim);
        struct gd_tens *dx = gd_tens("dx", type, layout, s->nd, s->dim);
        struct gd_tens *dmeans = gd_tens("dmeans", type, layout, s->nd, s->dim);
        gd_fill(dy, GD_UNIT);
        if (how->beta != 0 || how->out) {
            gd_fill(dx, how->out ? how->out : GD_UNIT);
            gd_fill(dmeans, how->out ? how->out : GD_UNIT);
        }
        if (gd_ran("run",
                   lib.DivisiveNormalizationBackward(
                       gd_handle(), l, CUDNN_DIVNORM_PRECOMPUTED_MEANS, gd_scalar(st, how->alpha),
                       x->desc, x->p, how->means ? means->p : NULL, dy->p, temp->p, temp2->p,
                       gd_scalar(st, how->beta), dx->desc, dx->p,
                       how->want_dmeans ? dmeans->p : NULL))) {
            gd_out(dx, tol);
            if (how->want_dmeans) gd_out(dmeans, tol);
        }
    }
    lib.DestroyLRNDescriptor(l);
    gd_end();
}

static void divisive(void)
{
    static const struct shape shapes[] = {
        {"tiny", 4, {1, 1, 4, 5}, 3},       {"plain", 4, {2, 3, 7, 8}, 5},
        {"even", 4, {2, 2, 6, 7}, 4},       {"two", 4, {1, 3, 5, 5}, 2},
        {"one", 4, {2, 3, 4, 4}, 1},        {"over", 4, {2, 3, 3, 4}, 9},
        {"widest", 4, {1, 2, 20, 18}, 16},  {"row", 4, {2, 3, 1, 17}, 5},
        {"column", 4, {2, 3, 13, 1}, 3},    {"5d", 5, {1, 2, 4, 5, 6}, 3},
        {"5d_even", 5, {2, 1, 5, 4, 4}, 4}, {"batch", 4, {9, 4, 5, 5}, 3},
    };
    static const struct {
        const char *name;
        enum gd_fill x, out;
        double alpha, beta;
    } rows[] = {
        {"scale2", GD_REAL, 0, 2, 0},
        {"blend", GD_REAL, 0, -0.5, 0.25},
        {"nothing", GD_REAL, 0, 0, 1},
        {"some_nan", GD_SOMENAN, 0, 1, 0},
        {"nan_output_beta0", GD_REAL, GD_NAN, 1, 0},
    };
    for (int back = 0; back < 2; back++) {
        for (int means = 0; means < 2; means++) {
            for (int k = 0; k < GD_COUNT(kinds); k++) {
                for (int i = 0; i < GD_COUNT(shapes); i++) {
                    if (k > 2 && (i == 3 || i == 4 || i > 9)) continue;
                    if (gd_case("divisive/%s/means%d/%s/%s", directions[back], means, kinds[k].name,
                                shapes[i].name))
                        within_channel(&shapes[i], &(struct how){k, 1, back, GD_REAL, 0, 1, 0,
                                                                 means, means && i % 3 != 2});
                }
                for (int c = 0; k < 3 && c < GD_COUNT(coefficients); c++) {
                    if (gd_case("divisive/%s/means%d/%s/%s", directions[back], means, kinds[k].name,
                                coefficients[c].name))
                        within_channel(&shapes[0],
                                       &(struct how){k, c, back, GD_REAL, 0, 1, 0, means, true});
                }
                for (int r = 0; k < 3 && r < GD_COUNT(rows); r++) {
                    if (gd_case("divisive/%s/means%d/%s/%s", directions[back], means, kinds[k].name,
                                rows[r].name))
                        within_channel(&shapes[0],
                                       &(struct how){k, 1, back, rows[r].x, rows[r].out,
                                                     rows[r].alpha, rows[r].beta, means, true});
                }
            }
        }
    }
}

/* Tensors that do not fit each other. */
static void invalid(void)
{
    static const struct {
        const char *name;
        int y[4], type;
    } rows[] = {{"c", {2, 4, 3, 3}, 0}, {"type", {2, 3, 3, 3}, CUDNN_DATA_DOUBLE}};
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_case("lrn/invalid/%s", rows[i].name)) continue;
        cudnnLRNDescriptor_t l = describe(3, 0);
        struct gd_tens *x = gd_tens("x", CUDNN_DATA_FLOAT, GD_NCHW, 4, DIMS(2, 3, 3, 3));
        struct gd_tens *y = gd_tens("y", (cudnnDataType_t)rows[i].type, GD_NCHW, 4, rows[i].y);
        gd_fill(x, GD_REAL);
        gd_status("run", lib.LRNCrossChannelForward(gd_handle(), l, CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                                    gd_scalar(0, 1), x->desc, x->p, gd_scalar(0, 0),
                                                    y->desc, y->p));
        lib.DestroyLRNDescriptor(l);
        gd_end();
    }
}

void cases_lrn(void)
{
    lrn();
    divisive();
    invalid();
}
