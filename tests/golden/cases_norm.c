/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: batch normalization without extras: training, inference and backward; modes, types,
 * layouts, running averages, optional outputs, scaling, bounds of epsilon.
 */
#include "norm.h"

#include <math.h>

static const struct norm_kind kinds[] = {
    {"f32", 0, 0, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f32_nhwc", 0, 0, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f64", 1, 1, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f16", 2, 0, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f16_nhwc", 2, 0, GD_NHWC, 4, {4, 8, 6, 7}},
    {"bf16", 9, 0, GD_NCHW, 4, {4, 5, 6, 7}},
    {"bf16_nhwc", 9, 0, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f32_5d", 0, 0, GD_NCHW, 5, {3, 4, 3, 4, 5}},
    {"f32_5d_nhwc", 0, 0, GD_NHWC, 5, {3, 4, 3, 4, 5}},
    {"f16_5d", 2, 0, GD_NCHW, 5, {3, 4, 3, 4, 5}},
    {"f32_gaps", 0, 0, GD_GAPS, 4, {4, 5, 6, 7}},
    {"f32_1x1", 0, 0, GD_NCHW, 4, {16, 6, 1, 1}},
    {"f32_n1", 0, 0, GD_NCHW, 4, {1, 4, 8, 8}},
    {"f32_c1", 0, 0, GD_NCHW, 4, {4, 1, 8, 8}},
    {"f32_one", 0, 0, GD_NCHW, 4, {1, 3, 1, 1}},
    {"f16_params", 2, 2, GD_NCHW, 4, {4, 5, 6, 7}},
};

enum what { TRAIN, INFER, BACK };
static const char *const whats[] = {"train", "infer", "back"};

enum { NO_RUNNING = 1, NO_SAVED = 2, NO_RUNNING_VAR = 4, NO_SAVED_VAR = 8, IN_PLACE = 16 };

struct how {
    int kind, mode;
    double alpha, beta, factor, epsilon;
    int flags;
    enum gd_fill fill, out_fill;
};

static struct how usual(int kind, int mode)
{
    return (struct how){kind, mode, 1, 0, 0.1, 1e-5, 0, GD_REAL, 0};
}

static struct norm_set prepare(const struct how *how)
{
    struct norm_set s = norm_set(&kinds[how->kind], how->mode);
    if (how->fill != GD_REAL) gd_fill(s.x, how->fill);
    if (how->flags & IN_PLACE) s.y = s.x;
    else if (how->beta != 0 || how->out_fill) gd_fill(s.y, how->out_fill ? how->out_fill : GD_UNIT);
    return s;
}

static void train(const struct how *how)
{
    struct norm_set s = prepare(how);
    cudnnStatus_t got = lib.BatchNormalizationForwardTraining(
        gd_handle(), (cudnnBatchNormMode_t)how->mode, gd_scalar(s.st, how->alpha),
        gd_scalar(s.st, how->beta), s.x->desc, s.x->p, s.y->desc, s.y->p, s.scale->desc, s.scale->p,
        s.bias->p, how->factor, how->flags & NO_RUNNING ? NULL : s.mean->p,
        how->flags & (NO_RUNNING | NO_RUNNING_VAR) ? NULL : s.var->p, how->epsilon,
        how->flags & NO_SAVED ? NULL : s.saved_mean->p,
        how->flags & (NO_SAVED | NO_SAVED_VAR) ? NULL : s.saved_var->p);
    if (!gd_ran("run", got)) return;
    gd_out(s.y, norm_tolerance(&s, s.y, s.n, fabs(how->alpha) + fabs(how->beta)));
    gd_out(s.mean, norm_tolerance(&s, s.mean, s.n, 1));
    gd_out(s.var, norm_tolerance(&s, s.var, s.n, 1));
    gd_out(s.saved_mean, norm_tolerance(&s, s.saved_mean, s.n, 1));
    /* With one element a statistic the variance is 0 and its inverse 1/sqrt(epsilon). */
    double big = s.n == 1 ? 1 / sqrt(how->epsilon + 1e-30) : 1;
    gd_out(s.saved_var, norm_tolerance(&s, s.saved_var, s.n, big));
}

static void infer(const struct how *how)
{
    struct norm_set s = prepare(how);
    cudnnStatus_t got = lib.BatchNormalizationForwardInference(
        gd_handle(), (cudnnBatchNormMode_t)how->mode, gd_scalar(s.st, how->alpha),
        gd_scalar(s.st, how->beta), s.x->desc, s.x->p, s.y->desc, s.y->p, s.scale->desc, s.scale->p,
        s.bias->p, s.mean->p, s.var->p, how->epsilon);
    if (gd_ran("run", got))
        gd_out(s.y, gd_map_tol(s.y->type, s.st, 8, 16 * (fabs(how->alpha) + fabs(how->beta))));
}

static void back(const struct how *how)
{
    struct norm_set s = prepare(how);
    if (how->beta != 0) {
        gd_fill(s.dscale, GD_UNIT);
        gd_fill(s.dbias, GD_UNIT);
    }
    /* The statistics of x, as the forward pass of the same library saves them; y is its output
     * and then serves as dx. */
    gd_setup("forward", lib.BatchNormalizationForwardTraining(
                            gd_handle(), (cudnnBatchNormMode_t)how->mode, gd_scalar(s.st, 1),
                            gd_scalar(s.st, 0), s.x->desc, s.x->p, s.y->desc, s.y->p, s.scale->desc,
                            s.scale->p, s.bias->p, 1, s.mean->p, s.var->p, how->epsilon,
                            s.saved_mean->p, s.saved_var->p));
    if (how->beta != 0 || how->out_fill) gd_fill(s.y, how->out_fill ? how->out_fill : GD_UNIT);
    else gd_poison(s.y);
    const void *alpha = gd_scalar(s.st, how->alpha), *beta = gd_scalar(s.st, how->beta);
    cudnnStatus_t got = lib.BatchNormalizationBackward(
        gd_handle(), (cudnnBatchNormMode_t)how->mode, alpha, beta, alpha, beta, s.x->desc, s.x->p,
        s.dy->desc, s.dy->p, s.y->desc, s.y->p, s.scale->desc, s.scale->p, s.dscale->p, s.dbias->p,
        how->epsilon, how->flags & NO_SAVED ? NULL : s.saved_mean->p,
        how->flags & (NO_SAVED | NO_SAVED_VAR) ? NULL : s.saved_var->p);
    if (!gd_ran("run", got)) return;
    double scale = fabs(how->alpha) + fabs(how->beta);
    double big = s.n == 1 ? 1 / sqrt(how->epsilon + 1e-30) : 1;
    gd_out(s.y, norm_tolerance(&s, s.y, s.n, scale * big));
    gd_out(s.dscale, norm_tolerance(&s, s.dscale, s.n, scale * s.n * big));
    gd_out(s.dbias, norm_tolerance(&s, s.dbias, s.n, scale * s.n));
}

static void run(enum what what, const struct how *how)
{
    if (what == TRAIN) train(how);
    else if (what == INFER) infer(how);
    else back(how);
    gd_end();
}

void cases_norm(void)
{
    static const double factors[] = {0, 0.5, 1, 1.5, -1};
    static const double epsilons[] = {0, 1e-12, 1e-3, 1, -1e-5};
    static const double pairs[][2] = {{2, 0}, {1, 1}, {0.5, -0.25}, {0, 1}};
    static const int flags[] = {NO_RUNNING,     NO_SAVED,     NO_RUNNING | NO_SAVED,
                                NO_RUNNING_VAR, NO_SAVED_VAR, IN_PLACE};
    for (int what = 0; what < 3; what++) {
        const char *w = whats[what];
        for (int mode = 0; mode < 3; mode++) {
            for (int k = 0; k < GD_COUNT(kinds); k++) {
                struct how how = usual(k, mode);
                if (gd_case("norm/%s/mode%d/%s", w, mode, kinds[k].name))
                    run((enum what)what, &how);
            }
            for (int i = 0; i < GD_COUNT(pairs); i++) {
                for (int k = 0; k < 5; k += 4) {
                    struct how how = usual(k, mode);
                    how.alpha = pairs[i][0];
                    how.beta = pairs[i][1];
                    if (gd_case("norm/%s/mode%d/scale%g,%g/%s", w, mode, pairs[i][0], pairs[i][1],
                                kinds[k].name))
                        run((enum what)what, &how);
                }
            }
            for (int i = 0; i < GD_COUNT(epsilons); i++) {
                struct how how = usual(0, mode);
                how.epsilon = epsilons[i];
                if (gd_case("norm/%s/mode%d/epsilon%g", w, mode, epsilons[i]))
                    run((enum what)what, &how);
            }
            for (int i = 0; i < GD_COUNT(factors) && what == TRAIN; i++) {
                struct how how = usual(0, mode);
                how.factor = factors[i];
                if (gd_case("norm/%s/mode%d/factor%g", w, mode, factors[i]))
                    run((enum what)what, &how);
            }
            for (int i = 0; i < GD_COUNT(flags); i++) {
                struct how how = usual(0, mode);
                how.flags = flags[i];
                if (what == INFER && flags[i] != IN_PLACE) continue;
                if (what == BACK &&
                    (flags[i] == IN_PLACE || flags[i] & NO_RUNNING || flags[i] & NO_RUNNING_VAR))
                    continue;
                if (gd_case("norm/%s/mode%d/flags%d", w, mode, flags[i]))
                    run((enum what)what, &how);
            }
            struct how how = usual(0, mode);
            how.out_fill = GD_NAN;
            if (gd_case("norm/%s/mode%d/nan_output_beta0", w, mode)) run((enum what)what, &how);
            how = usual(0, mode);
            how.fill = GD_SOMENAN;
            if (gd_case("norm/%s/mode%d/some_nan", w, mode)) run((enum what)what, &how);
        }
        struct how how = usual(0, 3);
        if (gd_case("norm/%s/mode3", w)) run((enum what)what, &how);
    }
}
