/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for dropout, on both devices: take whatever the rule accepts. */
#include "ops/dropout/dropout_args.h"
#include "ops/engine.h"

#define WD_DEF_MODULE dropout_def
#define WD_DEF_BODY "ops/dropout/dropout_def.h"
#define WD_DEF_PASSES "ops/dropout/dropout_passes.def"
#include "ops/definition_host.inc"

enum { INIT_STATE };
enum { FORWARD_X, FORWARD_STATE, FORWARD_Y, FORWARD_RESERVE };
enum { BACKWARD_DY, BACKWARD_RESERVE, BACKWARD_DX };
enum { SEED_LOW, SEED_HIGH };
enum { PROBABILITY };

static cudnnStatus_t init(const struct wd_call *call, struct wd_queue *queue)
{
    struct dropout_args args = {
        .state = wd_call_data(call, INIT_STATE),
        .seed = (uint64_t)call->scalars[SEED_LOW] | (uint64_t)call->scalars[SEED_HIGH] << 32,
    };
    return wd_emit_map(queue, &wd_pass_dropout_init, WD_ACC_F32, &args, 1);
}

/* A probability of 1 divides by nothing: it keeps no element. */
static double scale_of(double probability)
{
    return probability < 1.0 ? 1.0 / (1.0 - probability) : 0.0;
}

static cudnnStatus_t forward(const struct wd_call *call, struct wd_queue *queue)
{
    double probability = call->scalars[PROBABILITY];
    struct dropout_args args = {
        .x = wd_call_view(call, FORWARD_X),
        .y = wd_call_view(call, FORWARD_Y),
        .state = wd_call_data(call, FORWARD_STATE),
        .mask = wd_call_data(call, FORWARD_RESERVE),
        .threshold = wd_chance_threshold(probability),
        .scale = scale_of(probability),
    };
    args.count = wd_view_count(&args.x);
    /* every byte of the reserve space is written, also those behind the last element */
    WD_TRY(wd_emit_map(queue, &wd_pass_dropout_forward, wd_problem_acc(&call->problem), &args,
                       wd_call_tensor(call, FORWARD_RESERVE)->dim[0]));
    return wd_emit_map(queue, &wd_pass_dropout_advance, WD_ACC_F32, &args, 1);
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct dropout_args args = {
        .x = wd_call_view(call, BACKWARD_DY),
        .y = wd_call_view(call, BACKWARD_DX),
        .mask = wd_call_data(call, BACKWARD_RESERVE),
        .scale = scale_of(call->scalars[PROBABILITY]),
    };
    args.count = wd_view_count(&args.x);
    return wd_emit_map(queue, &wd_pass_dropout_backward, wd_problem_acc(&call->problem), &args,
                       (args.count + 7) / 8);
}

const struct wd_engine wd_engine_dropout_init_def_cpu = {
    .name = "dropout_init_def",
    .op = WD_OP_DROPOUT_INIT,
    .device = WD_CPU,
    .last_resort = true,
    .emit = init,
};

const struct wd_engine wd_engine_dropout_init_def_gpu = {
    .name = "dropout_init_def",
    .op = WD_OP_DROPOUT_INIT,
    .device = WD_GPU,
    .last_resort = true,
    .emit = init,
};

const struct wd_engine wd_engine_dropout_forward_def_cpu = {
    .name = "dropout_forward_def",
    .op = WD_OP_DROPOUT_FORWARD,
    .device = WD_CPU,
    .last_resort = true,
    .emit = forward,
};

const struct wd_engine wd_engine_dropout_forward_def_gpu = {
    .name = "dropout_forward_def",
    .op = WD_OP_DROPOUT_FORWARD,
    .device = WD_GPU,
    .last_resort = true,
    .emit = forward,
};

const struct wd_engine wd_engine_dropout_backward_def_cpu = {
    .name = "dropout_backward_def",
    .op = WD_OP_DROPOUT_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .emit = backward,
};

const struct wd_engine wd_engine_dropout_backward_def_gpu = {
    .name = "dropout_backward_def",
    .op = WD_OP_DROPOUT_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .emit = backward,
};
