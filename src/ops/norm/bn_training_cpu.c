/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization in training on the CPU: packed tensors of any order, plain, with a residual
 * and with the relus; see bn_cpu.h. */
#include "ops/norm/bn_cpu.h"

enum { X, SCALE, BIAS, Z, Y, RUNNING_MEAN, RUNNING_VAR, SAVED_MEAN, SAVED_INV_STD, RESERVE };
enum { ALPHA, BETA, FACTOR };

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_bn_match(problem, 1u << X | 1u << Z | 1u << Y, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_bn_args a;
    struct wd_bn_step steps[WD_BN_STATISTICS + 1];
    int count;
    wd_bn_args_init(&a, call);
    a.x = wd_bn_data(call, X);
    a.z = wd_bn_data(call, Z);
    a.y = wd_bn_data(call, Y);
    a.scale = wd_call_view(call, SCALE);
    a.bias = wd_call_view(call, BIAS);
    a.mean = wd_call_view(call, SAVED_MEAN);
    a.var = wd_call_view(call, SAVED_INV_STD);
    a.running_mean = wd_call_view(call, RUNNING_MEAN);
    a.running_var = wd_call_view(call, RUNNING_VAR);
    a.alpha = call->scalars[ALPHA];
    a.beta = call->scalars[BETA];
    a.factor = call->scalars[FACTOR];
    a.reserve = wd_call_data(call, RESERVE);
    a.stream = wd_tensor_extent(wd_call_tensor(call, Y)) >= WD_STREAM_BYTES && a.beta == 0.0 &&
               a.y.data != a.x.data && a.y.data != a.z.data;
    count = wd_bn_statistics(&a, steps);
    steps[count++] = (struct wd_bn_step){a.wide ? wd_bn_forward_f64 : wd_bn_forward_f32, NULL};
    return wd_bn_run(&a, queue, steps, count);
}

const struct wd_engine wd_engine_bn_training_cpu = {
    .name = "bn_training_cpu",
    .op = WD_OP_BN_TRAINING,
    .device = WD_CPU,
    .match = match,
    .workspace = wd_bn_workspace,
    .emit = emit,
};
