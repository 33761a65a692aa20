/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for batch normalization: inference, training and backward, on both
 * devices; they take whatever the rule accepts. Parameters are worked through in ranges, so that
 * the scratch stays small however many there are; only a training that fills a reserve space, and
 * then has a workspace of its own, takes them all at once, for bytes of the reserve span ranges. */
#include <string.h>

#include "ops/engine.h"
#include "graph/norm_slots.h"
#include "ops/norm/norm_args.h"

#define WD_DEF_MODULE norm_def
#define WD_DEF_BODY "ops/norm/norm_def.h"
#define WD_DEF_PASSES "ops/norm/norm_passes.def"
#include "ops/definition_host.inc"

/* 40 bytes of fp64 state each: under 3 MiB of the arena's eight. */
enum { PARAMS_A_RANGE = 1 << 16, STATE_ALIGNMENT = 16 };

static struct norm_space make_space(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    struct norm_space space;
    int terms = 0;
    memset(&space, 0, sizeof space);
    space.rank = x->rank;
    space.params = 1;
    space.terms = 1;
    for (int d = 0; d < x->rank; ++d) {
        int at = d;
        space.dim[d] = x->dim[d];
        for (; at > 0 && x->stride[space.axis[at - 1]] < x->stride[d]; --at) {
            space.axis[at] = space.axis[at - 1];
        }
        space.axis[at] = d;
    }
    for (int i = 0; i < x->rank; ++i) {
        int axis = space.axis[i];
        if (wd_norm_is_param_axis(problem->node->attr.norm.mode, axis)) {
            space.param_axis[space.param_rank++] = axis;
            space.params *= x->dim[axis];
        } else {
            space.term_axis[terms++] = axis;
            space.terms *= x->dim[axis];
        }
    }
    return space;
}

static int64_t range_size(const struct norm_space *space, int whole)
{
    return whole || space->params < PARAMS_A_RANGE ? space->params : PARAMS_A_RANGE;
}

/* The bytes of `arrays` states, and behind them the largest partial result of the reductions. */
static int64_t state_bytes(const struct norm_space *space, enum wd_acc acc, int arrays, int whole)
{
    int64_t size = acc == WD_ACC_F64 ? 8 : 4;
    int64_t bytes = range_size(space, whole) * arrays * size;
    return (bytes + STATE_ALIGNMENT - 1) / STATE_ALIGNMENT * STATE_ALIGNMENT;
}

static int64_t scratch_bytes(const struct norm_space *space, enum wd_acc acc, int arrays, int whole)
{
    static const struct wd_pass *const passes[] = {&wd_pass_norm_mean, &wd_pass_norm_var,
                                                   &wd_pass_norm_sums};
    int64_t range = range_size(space, whole);
    int64_t last = space->params % range;
    int64_t most = 0;
    for (int i = 0; i < 3; ++i) {
        int64_t full = wd_pass_scratch(passes[i], acc, range, space->terms);
        int64_t rest = wd_pass_scratch(passes[i], acc, last, space->terms);
        if (full > most) most = full;
        if (rest > most) most = rest;
    }
    return state_bytes(space, acc, arrays, whole) + most;
}

static int fills_reserve(const struct wd_problem *problem)
{
    return wd_slot(problem->graph, problem->node, WD_BN_TRAIN_RESERVE) != NULL;
}

static int has_statistics(const struct wd_problem *problem)
{
    return wd_slot(problem->graph, problem->node, WD_BN_GRAD_SAVED_MEAN) != NULL;
}

static int64_t train_workspace(const struct wd_problem *problem)
{
    struct norm_space space = make_space(problem);
    return scratch_bytes(&space, wd_problem_acc(problem), NORM_TRAIN_STATES,
                         fills_reserve(problem));
}

static int64_t grad_workspace(const struct wd_problem *problem)
{
    struct norm_space space = make_space(problem);
    return scratch_bytes(&space, wd_problem_acc(problem), NORM_GRAD_STATES, 0);
}

/* A reserve space of derivatives holds numbers. */
static cudnnStatus_t check_alignment(const struct wd_call *call, const void *reserve)
{
    const struct wd_tensor *x = wd_call_tensor(call, 0);
    uintptr_t size = x->dtype == CUDNN_DATA_DOUBLE ? 8 : 4;
    WD_REQUIRE(wd_norm_reserve_kind(&call->problem.node->attr.norm) != WD_RESERVE_VALUES ||
                   (uintptr_t)reserve % size == 0,
               CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
               "the reserve space %p is not aligned to its elements of %d bytes", reserve,
               (int)size);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit_infer(const struct wd_call *call, struct wd_queue *queue)
{
    struct norm_infer_args args = {
        .x = wd_call_view(call, WD_BN_INFER_X),
        .scale = wd_call_view(call, WD_BN_INFER_SCALE),
        .bias = wd_call_view(call, WD_BN_INFER_BIAS),
        .mean = wd_call_view(call, WD_BN_INFER_MEAN),
        .var = wd_call_view(call, WD_BN_INFER_VAR),
        .z = wd_call_view(call, WD_BN_INFER_Z),
        .y = wd_call_view(call, WD_BN_INFER_Y),
        .alpha = call->scalars[WD_BN_ALPHA],
        .beta = call->scalars[WD_BN_BETA],
        .attr = call->problem.node->attr.norm,
    };
    return wd_emit_map(queue, &wd_pass_norm_infer, wd_problem_acc(&call->problem), &args,
                       wd_view_count(&args.y));
}

static cudnnStatus_t emit_statistics(struct wd_queue *queue, enum wd_acc acc,
                                     struct norm_stats_args *stats, const struct norm_space *space,
                                     void *partial)
{
    stats->space = *space;
    WD_TRY(
        wd_emit_reduce(queue, &wd_pass_norm_mean, acc, stats, space->count, space->terms, partial));
    return wd_emit_reduce(queue, &wd_pass_norm_var, acc, stats, space->count, space->terms,
                          partial);
}

static cudnnStatus_t emit_train(const struct wd_call *call, struct wd_queue *queue)
{
    enum wd_acc acc = wd_problem_acc(&call->problem);
    struct norm_space space = make_space(&call->problem);
    int whole = fills_reserve(&call->problem);
    int64_t range = range_size(&space, whole);
    char *partial = (char *)call->workspace + state_bytes(&space, acc, NORM_TRAIN_STATES, whole);
    struct norm_stats_args stats = {
        .x = wd_call_view(call, WD_BN_TRAIN_X),
        .running_mean = wd_call_view(call, WD_BN_TRAIN_RUNNING_MEAN),
        .running_var = wd_call_view(call, WD_BN_TRAIN_RUNNING_VAR),
        .saved_mean = wd_call_view(call, WD_BN_TRAIN_SAVED_MEAN),
        .saved_inv_std = wd_call_view(call, WD_BN_TRAIN_SAVED_INV_STD),
        .state = call->workspace,
        .factor = call->scalars[WD_BN_FACTOR_SCALAR],
        .epsilon = call->problem.node->attr.norm.epsilon,
    };
    struct norm_train_args args = {
        .x = stats.x,
        .scale = wd_call_view(call, WD_BN_TRAIN_SCALE),
        .bias = wd_call_view(call, WD_BN_TRAIN_BIAS),
        .z = wd_call_view(call, WD_BN_TRAIN_Z),
        .y = wd_call_view(call, WD_BN_TRAIN_Y),
        .reserve = whole ? wd_call_data(call, WD_BN_TRAIN_RESERVE) : NULL,
        .state = call->workspace,
        .alpha = call->scalars[WD_BN_ALPHA],
        .beta = call->scalars[WD_BN_BETA],
        .attr = call->problem.node->attr.norm,
    };
    int64_t group = wd_norm_reserve_kind(&args.attr) == WD_RESERVE_BITS ? 8 : 1;
    WD_TRY(check_alignment(call, args.reserve));
    for (space.first = 0; space.first < space.params; space.first += range) {
        space.count = space.params - space.first < range ? space.params - space.first : range;
        WD_TRY(emit_statistics(queue, acc, &stats, &space, partial));
        args.space = space;
        WD_TRY(wd_emit_map(queue, &wd_pass_norm_train, acc, &args,
                           (space.count * space.terms + group - 1) / group));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit_grad(const struct wd_call *call, struct wd_queue *queue)
{
    enum wd_acc acc = wd_problem_acc(&call->problem);
    struct norm_space space = make_space(&call->problem);
    int64_t range = range_size(&space, 0);
    char *partial = (char *)call->workspace + state_bytes(&space, acc, NORM_GRAD_STATES, 0);
    struct norm_grad_args args = {
        .x = wd_call_view(call, WD_BN_GRAD_X),
        .dy = wd_call_view(call, WD_BN_GRAD_DY),
        .scale = wd_call_view(call, WD_BN_GRAD_SCALE),
        .saved_mean = wd_call_view(call, WD_BN_GRAD_SAVED_MEAN),
        .saved_inv_std = wd_call_view(call, WD_BN_GRAD_SAVED_INV_STD),
        .dx = wd_call_view(call, WD_BN_GRAD_DX),
        .dscale = wd_call_view(call, WD_BN_GRAD_DSCALE),
        .dbias = wd_call_view(call, WD_BN_GRAD_DBIAS),
        .dz = wd_call_view(call, WD_BN_GRAD_DZ),
        .reserve = wd_call_data(call, WD_BN_GRAD_RESERVE),
        .state = call->workspace,
        .alpha_data = call->scalars[WD_BN_ALPHA_DATA],
        .beta_data = call->scalars[WD_BN_BETA_DATA],
        .alpha_param = call->scalars[WD_BN_ALPHA_PARAM],
        .beta_param = call->scalars[WD_BN_BETA_PARAM],
        .saved = has_statistics(&call->problem),
        .attr = call->problem.node->attr.norm,
    };
    struct norm_stats_args stats = {
        .x = args.x, .state = call->workspace, .epsilon = args.attr.epsilon};
    WD_TRY(check_alignment(call, args.reserve));
    for (space.first = 0; space.first < space.params; space.first += range) {
        space.count = space.params - space.first < range ? space.params - space.first : range;
        if (!args.saved) WD_TRY(emit_statistics(queue, acc, &stats, &space, partial));
        args.space = space;
        WD_TRY(wd_emit_reduce(queue, &wd_pass_norm_sums, acc, &args, space.count, space.terms,
                              partial));
        WD_TRY(wd_emit_map(queue, &wd_pass_norm_grad, acc, &args, space.count * space.terms));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_bn_inference_def_cpu = {
    .name = "bn_inference_def",
    .op = WD_OP_BN_INFERENCE,
    .device = WD_CPU,
    .last_resort = true,
    .emit = emit_infer,
};

const struct wd_engine wd_engine_bn_inference_def_gpu = {
    .name = "bn_inference_def",
    .op = WD_OP_BN_INFERENCE,
    .device = WD_GPU,
    .last_resort = true,
    .emit = emit_infer,
};

const struct wd_engine wd_engine_bn_training_def_cpu = {
    .name = "bn_training_def",
    .op = WD_OP_BN_TRAINING,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = train_workspace,
    .emit = emit_train,
};

const struct wd_engine wd_engine_bn_training_def_gpu = {
    .name = "bn_training_def",
    .op = WD_OP_BN_TRAINING,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = train_workspace,
    .emit = emit_train,
};

const struct wd_engine wd_engine_bn_backward_def_cpu = {
    .name = "bn_backward_def",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = grad_workspace,
    .emit = emit_grad,
};

const struct wd_engine wd_engine_bn_backward_def_gpu = {
    .name = "bn_backward_def",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = grad_workspace,
    .emit = emit_grad,
};
