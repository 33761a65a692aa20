/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization backward on the CPU: packed tensors of any order, plain, with a residual's
 * gradient and with the relus' bits; statistics saved or computed again; see bn_cpu.h. */
#include <string.h>

#include "ops/norm/bn_block.h"
#include "ops/norm/bn_cpu.h"

enum { X, DY, SCALE, SAVED_MEAN, SAVED_INV_STD, RESERVE, DX, DSCALE, DBIAS, DZ };
enum { ALPHA_DATA, BETA_DATA, ALPHA_PARAM, BETA_PARAM };

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_bn_match(problem, 1u << X | 1u << DY | 1u << DX | 1u << DZ, reason);
}

static void take_saved(const struct wd_bn_args *a, int64_t param)
{
    wd_bn_set_mean(a, param, wd_bn_param(a, &a->mean, param), 0.0);
    wd_bn_set(a, WD_BN_INV_STD, param, wd_bn_param(a, &a->var, param));
}

/* With m the rounded mean, r the rest of it, and sums over the N elements,
 *     dscale = inv_std (sum g (x - m) - r sum g)
 *     dx     = factor (g - dbias / N - (x - m - r) inv_std dscale / N),  factor = scale inv_std */
static void finish_sums(const struct wd_bn_args *a, int64_t param)
{
    double n = (double)a->shape.terms;
    double inv_std = wd_bn_get(a, WD_BN_INV_STD, param);
    double rest = wd_bn_get(a, WD_BN_REST, param);
    double factor = wd_bn_param(a, &a->scale, param) * inv_std;
    double sum[2];
    double dscale;
    double slope;
    wd_bn_total(a, param, sum);
    dscale = (sum[1] - rest * sum[0]) * inv_std;
    slope = factor * dscale * inv_std / n;
    wd_bn_set(a, WD_BN_FACTOR, param, factor);
    wd_bn_set(a, WD_BN_SLOPE, param, slope);
    wd_bn_set(a, WD_BN_BASE, param, slope * rest - factor * sum[0] / n);
    wd_bn_put_param(a, &a->dbias, param, sum[0], a->alpha_param, a->beta_param);
    wd_bn_put_param(a, &a->dscale, param, dscale, a->alpha_param, a->beta_param);
}

#define WD_REALS_BODY "ops/norm/bn_backward.inc"
#include "ops/reals.inc"

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_bn_args a;
    struct wd_bn_step steps[WD_BN_STATISTICS + 2];
    int count = 0;
    wd_bn_args_init(&a, call);
    a.x = wd_bn_data(call, X);
    a.dy = wd_bn_data(call, DY);
    a.z = wd_bn_data(call, DZ);
    a.y = wd_bn_data(call, DX);
    a.scale = wd_call_view(call, SCALE);
    a.mean = wd_call_view(call, SAVED_MEAN);
    a.var = wd_call_view(call, SAVED_INV_STD);
    a.dscale = wd_call_view(call, DSCALE);
    a.dbias = wd_call_view(call, DBIAS);
    a.alpha = call->scalars[ALPHA_DATA];
    a.beta = call->scalars[BETA_DATA];
    a.alpha_param = call->scalars[ALPHA_PARAM];
    a.beta_param = call->scalars[BETA_PARAM];
    a.reserve = wd_call_data(call, RESERVE);
    a.stream = wd_tensor_extent(wd_call_tensor(call, DX)) >= WD_STREAM_BYTES && a.beta == 0.0 &&
               a.y.data != a.x.data && a.y.data != a.dy.data;
    if (a.mean.data) steps[count++] = (struct wd_bn_step){NULL, take_saved};
    else count = wd_bn_statistics(&a, steps);
    steps[count++] =
        (struct wd_bn_step){a.wide ? sum_gradients_f64 : sum_gradients_f32, finish_sums};
    steps[count++] = (struct wd_bn_step){a.wide ? make_dx_f64 : make_dx_f32, NULL};
    return wd_bn_run(&a, queue, steps, count);
}

const struct wd_engine wd_engine_bn_backward_cpu = {
    .name = "bn_backward_cpu",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_CPU,
    .match = match,
    .workspace = wd_bn_workspace,
    .emit = emit,
};
