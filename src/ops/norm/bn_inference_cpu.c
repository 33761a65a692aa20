/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization in inference on the CPU: packed tensors of any order and type, with a residual
 * and with any activation; see bn_cpu.h. */
#include <math.h>

#include "ops/norm/bn_cpu.h"

enum { X, SCALE, BIAS, MEAN, VAR, Z, Y };
enum { ALPHA, BETA };

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_bn_match(problem, 1u << X | 1u << Z | 1u << Y, reason);
}

static void take_estimates(const struct wd_bn_args *a, int64_t param)
{
    double inv_std = 1.0 / sqrt(wd_bn_param(a, &a->var, param) + a->attr.epsilon);
    wd_bn_set_mean(a, param, wd_bn_param(a, &a->mean, param), 0.0);
    wd_bn_set(a, WD_BN_FACTOR, param, wd_bn_param(a, &a->scale, param) * inv_std);
    wd_bn_set(a, WD_BN_BASE, param,
              wd_bn_param(a, &a->bias, param) -
                  wd_bn_get(a, WD_BN_REST, param) * wd_bn_get(a, WD_BN_FACTOR, param));
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_bn_args a;
    struct wd_bn_step steps[2] = {{NULL, take_estimates}, {wd_bn_forward_f32, NULL}};
    wd_bn_args_init(&a, call);
    a.x = wd_bn_data(call, X);
    a.z = wd_bn_data(call, Z);
    a.y = wd_bn_data(call, Y);
    a.scale = wd_call_view(call, SCALE);
    a.bias = wd_call_view(call, BIAS);
    a.mean = wd_call_view(call, MEAN);
    a.var = wd_call_view(call, VAR);
    a.alpha = call->scalars[ALPHA];
    a.beta = call->scalars[BETA];
    a.stream = wd_tensor_extent(wd_call_tensor(call, Y)) >= WD_STREAM_BYTES && a.beta == 0.0 &&
               a.y.data != a.x.data && a.y.data != a.z.data;
    if (a.wide) steps[1].work = wd_bn_forward_f64;
    return wd_bn_run(&a, queue, steps, 2);
}

const struct wd_engine wd_engine_bn_inference_cpu = {
    .name = "bn_inference_cpu",
    .op = WD_OP_BN_INFERENCE,
    .device = WD_CPU,
    .match = match,
    .workspace = wd_bn_workspace,
    .emit = emit,
};
