/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for the backend's normalizations (forward in both phases, backward) and
 * for batch norm's statistics taken apart, on both devices; they take whatever the rules accept.
 * Scratch, by name: the states of the statistics (three numbers each) where they are not given, the
 * sums of backward (two), and behind them the partial results of the reductions. */
#include <string.h>

#include "graph/norms.h"
#include "ops/engine.h"
#include "ops/norm/norms_args.h"

#define WD_DEF_MODULE norms_def
#define WD_DEF_BODY "ops/norm/norms_def.h"
#define WD_DEF_PASSES "ops/norm/norms_passes.def"
#include "ops/definition_host.inc"

enum { STATE_ALIGNMENT = 16 };

/* Where an execution's scratch lies, and how large it is. */
struct scratch {
    int64_t state;
    int64_t sums;
    int64_t partial;
    int64_t bytes;
};

static const struct wd_tensor *x_of(const struct wd_problem *problem)
{
    return wd_slot(problem->graph, problem->node, 0);
}

static struct norms_space make_space(const struct wd_tensor *x, const struct wd_norm_split *split)
{
    struct norms_space space;
    memset(&space, 0, sizeof space);
    space.rank = x->rank;
    space.items = space.terms = 1;
    for (int d = 0; d < x->rank; ++d) {
        int at = d;
        for (; at > 0 && x->stride[space.axis[at - 1]] < x->stride[d]; --at) {
            space.axis[at] = space.axis[at - 1];
        }
        space.axis[at] = d;
        space.keep[d] = split->keep[d];
        space.term[d] = split->term[d];
        space.items *= split->keep[d];
        space.terms *= split->term[d];
    }
    return space;
}

/* The statistics of a normalization; the split of a valid node does not fail. */
static struct norms_space statistics_space(const struct wd_problem *problem)
{
    struct wd_norm_split split;
    memset(&split, 0, sizeof split);
    (void)wd_norm_split(problem->graph, problem->node, &split);
    return make_space(x_of(problem), &split);
}

/* An item for each element of a parameter that repeats over x where its dim is 1. */
static struct norms_space parameter_space(const struct wd_tensor *x, const struct wd_tensor *param)
{
    struct wd_norm_split split;
    for (int d = 0; d < x->rank; ++d) {
        split.keep[d] = param->dim[d];
        split.term[d] = param->dim[d] == 1 ? x->dim[d] : 1;
    }
    return make_space(x, &split);
}

static struct norms_space channel_space(const struct wd_tensor *x)
{
    struct wd_norm_split split;
    for (int d = 0; d < x->rank; ++d) {
        split.keep[d] = d == 1 ? x->dim[d] : 1;
        split.term[d] = d == 1 ? 1 : x->dim[d];
    }
    return make_space(x, &split);
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + STATE_ALIGNMENT - 1) / STATE_ALIGNMENT * STATE_ALIGNMENT;
}

static void book_partial(struct scratch *scratch, const struct wd_pass *pass, enum wd_acc acc,
                         const struct norms_space *space)
{
    int64_t bytes = scratch->partial + wd_pass_scratch(pass, acc, space->items, space->terms);
    if (bytes > scratch->bytes) scratch->bytes = bytes;
}

/* The scratch of a normalization: `computes` its statistics, and backward their sums. */
static struct scratch book(const struct wd_problem *problem, bool computes)
{
    enum wd_acc acc = wd_problem_acc(problem);
    struct norms_space space = statistics_space(problem);
    int64_t array = space.items * (acc == WD_ACC_F64 ? 8 : 4);
    bool backward = problem->node->op == WD_OP_NORM_BACKWARD;
    struct scratch scratch = {0};
    if (computes) scratch.sums = aligned(array * NORMS_STATES);
    scratch.partial = scratch.sums + (backward ? aligned(array * NORMS_SUMS) : 0);
    scratch.bytes = scratch.partial;
    if (computes) {
        book_partial(&scratch, &wd_pass_norms_mean, acc, &space);
        book_partial(&scratch, &wd_pass_norms_var, acc, &space);
        book_partial(&scratch, &wd_pass_norms_square, acc, &space);
    }
    if (backward) {
        struct norms_space params =
            parameter_space(x_of(problem), wd_slot(problem->graph, problem->node, NORM_GRAD_SCALE));
        book_partial(&scratch, &wd_pass_norms_sums, acc, &space);
        book_partial(&scratch, &wd_pass_norms_params, acc, &params);
    }
    return scratch;
}

static bool has(const struct wd_problem *problem, int slot)
{
    return wd_slot(problem->graph, problem->node, slot) != NULL;
}

static int64_t infer_workspace(const struct wd_problem *problem)
{
    return book(problem, !has(problem, NORM_INFER_INV_STD)).bytes;
}

static int64_t train_workspace(const struct wd_problem *problem)
{
    return book(problem, true).bytes;
}

static int64_t grad_workspace(const struct wd_problem *problem)
{
    return book(problem, !has(problem, NORM_GRAD_INV_STD)).bytes;
}

/* A scalar that came by value, or 0. */
static double scalar(const struct wd_call *call, int slot)
{
    return wd_call_view(call, slot).value;
}

static void *at(const struct wd_call *call, int64_t offset)
{
    return (char *)call->workspace + offset;
}

static cudnnStatus_t emit_statistics(const struct wd_call *call, struct wd_queue *queue,
                                     const struct norms_stats_args *stats,
                                     const struct scratch *scratch)
{
    enum wd_acc acc = wd_problem_acc(&call->problem);
    const struct norms_space *space = &stats->space;
    void *partial = at(call, scratch->partial);
    if (call->problem.node->attr.norms.mode == CUDNN_RMS_NORM) {
        return wd_emit_reduce(queue, &wd_pass_norms_square, acc, stats, space->items, space->terms,
                              partial);
    }
    WD_TRY(wd_emit_reduce(queue, &wd_pass_norms_mean, acc, stats, space->items, space->terms,
                          partial));
    return wd_emit_reduce(queue, &wd_pass_norms_var, acc, stats, space->items, space->terms,
                          partial);
}

static cudnnStatus_t emit_infer(const struct wd_call *call, struct wd_queue *queue)
{
    bool computes = !has(&call->problem, NORM_INFER_INV_STD);
    struct scratch scratch = book(&call->problem, computes);
    struct norms_apply_args args = {
        .x = wd_call_view(call, NORM_INFER_X),
        .scale = wd_call_view(call, NORM_INFER_SCALE),
        .bias = wd_call_view(call, NORM_INFER_BIAS),
        .mean = wd_call_view(call, NORM_INFER_MEAN),
        .inv_std = wd_call_view(call, NORM_INFER_INV_STD),
        .y = wd_call_view(call, NORM_INFER_Y),
        .state = computes ? at(call, scratch.state) : NULL,
        .space = statistics_space(&call->problem),
    };
    if (computes) {
        const struct norms_stats_args stats = {
            .x = args.x,
            .state = at(call, scratch.state),
            .epsilon = scalar(call, NORM_INFER_EPSILON),
            .space = args.space,
        };
        WD_TRY(emit_statistics(call, queue, &stats, &scratch));
    }
    return wd_emit_map(queue, &wd_pass_norms_apply, wd_problem_acc(&call->problem), &args,
                       args.space.items * args.space.terms);
}

static cudnnStatus_t emit_train(const struct wd_call *call, struct wd_queue *queue)
{
    struct scratch scratch = book(&call->problem, true);
    const struct norms_stats_args stats = {
        .x = wd_call_view(call, NORM_TRAIN_X),
        .mean = wd_call_view(call, NORM_TRAIN_MEAN),
        .inv_std = wd_call_view(call, NORM_TRAIN_INV_STD),
        .in_mean = wd_call_view(call, NORM_TRAIN_IN_MEAN),
        .in_var = wd_call_view(call, NORM_TRAIN_IN_VAR),
        .out_mean = wd_call_view(call, NORM_TRAIN_OUT_MEAN),
        .out_var = wd_call_view(call, NORM_TRAIN_OUT_VAR),
        .state = at(call, scratch.state),
        .factor = scalar(call, NORM_TRAIN_FACTOR),
        .epsilon = scalar(call, NORM_TRAIN_EPSILON),
        .space = statistics_space(&call->problem),
    };
    const struct norms_apply_args args = {
        .x = stats.x,
        .scale = wd_call_view(call, NORM_TRAIN_SCALE),
        .bias = wd_call_view(call, NORM_TRAIN_BIAS),
        .y = wd_call_view(call, NORM_TRAIN_Y),
        .state = stats.state,
        .space = stats.space,
    };
    WD_TRY(emit_statistics(call, queue, &stats, &scratch));
    return wd_emit_map(queue, &wd_pass_norms_apply, wd_problem_acc(&call->problem), &args,
                       args.space.items * args.space.terms);
}

static cudnnStatus_t emit_grad(const struct wd_call *call, struct wd_queue *queue)
{
    enum wd_acc acc = wd_problem_acc(&call->problem);
    bool computes = !has(&call->problem, NORM_GRAD_INV_STD);
    struct scratch scratch = book(&call->problem, computes);
    void *partial = at(call, scratch.partial);
    struct norms_grad_args args = {
        .x = wd_call_view(call, NORM_GRAD_X),
        .dy = wd_call_view(call, NORM_GRAD_DY),
        .scale = wd_call_view(call, NORM_GRAD_SCALE),
        .mean = wd_call_view(call, NORM_GRAD_MEAN),
        .inv_std = wd_call_view(call, NORM_GRAD_INV_STD),
        .dx = wd_call_view(call, NORM_GRAD_DX),
        .dscale = wd_call_view(call, NORM_GRAD_DSCALE),
        .dbias = wd_call_view(call, NORM_GRAD_DBIAS),
        .state = computes ? at(call, scratch.state) : NULL,
        .sums = at(call, scratch.sums),
        .centered = call->problem.node->attr.norms.mode != CUDNN_RMS_NORM,
        .space = statistics_space(&call->problem),
        .params = parameter_space(x_of(&call->problem), wd_call_tensor(call, NORM_GRAD_SCALE)),
    };
    if (computes) {
        const struct norms_stats_args stats = {
            .x = args.x,
            .state = at(call, scratch.state),
            .epsilon = scalar(call, NORM_GRAD_EPSILON),
            .space = args.space,
        };
        WD_TRY(emit_statistics(call, queue, &stats, &scratch));
    }
    if (args.dscale.data || args.dbias.data) {
        WD_TRY(wd_emit_reduce(queue, &wd_pass_norms_params, acc, &args, args.params.items,
                              args.params.terms, partial));
    }
    WD_TRY(wd_emit_reduce(queue, &wd_pass_norms_sums, acc, &args, args.space.items,
                          args.space.terms, partial));
    return wd_emit_map(queue, &wd_pass_norms_grad, acc, &args, args.space.items * args.space.terms);
}

/* ---- Batch norm's statistics ---- */

static int64_t channel_workspace(const struct wd_problem *problem, const struct wd_pass *pass)
{
    struct norms_space space = channel_space(x_of(problem));
    return wd_pass_scratch(pass, wd_problem_acc(problem), space.items, space.terms);
}

static int64_t stats_workspace(const struct wd_problem *problem)
{
    return channel_workspace(problem, &wd_pass_norms_channels);
}

static int64_t weights_workspace(const struct wd_problem *problem)
{
    return channel_workspace(problem, &wd_pass_norms_weights);
}

static cudnnStatus_t emit_stats(const struct wd_call *call, struct wd_queue *queue)
{
    const struct norms_channels_args args = {
        .x = wd_call_view(call, GEN_STATS_X),
        .sum = wd_call_view(call, GEN_STATS_SUM),
        .sq_sum = wd_call_view(call, GEN_STATS_SQ_SUM),
        .space = channel_space(x_of(&call->problem)),
    };
    return wd_emit_reduce(queue, &wd_pass_norms_channels, wd_problem_acc(&call->problem), &args,
                          args.space.items, args.space.terms, call->workspace);
}

static cudnnStatus_t emit_weights(const struct wd_call *call, struct wd_queue *queue)
{
    const struct norms_weights_args args = {
        .x = wd_call_view(call, BN_WEIGHTS_X),
        .dy = wd_call_view(call, BN_WEIGHTS_DY),
        .mean = wd_call_view(call, BN_WEIGHTS_MEAN),
        .inv_std = wd_call_view(call, BN_WEIGHTS_INV_STD),
        .scale = wd_call_view(call, BN_WEIGHTS_SCALE),
        .dscale = wd_call_view(call, BN_WEIGHTS_DSCALE),
        .dbias = wd_call_view(call, BN_WEIGHTS_DBIAS),
        .eq_dy_scale = wd_call_view(call, BN_WEIGHTS_EQ_DY_SCALE),
        .eq_x_scale = wd_call_view(call, BN_WEIGHTS_EQ_X_SCALE),
        .eq_bias = wd_call_view(call, BN_WEIGHTS_EQ_BIAS),
        .space = channel_space(x_of(&call->problem)),
    };
    return wd_emit_reduce(queue, &wd_pass_norms_weights, wd_problem_acc(&call->problem), &args,
                          args.space.items, args.space.terms, call->workspace);
}

/* In double whatever the types: a variance from sums is the small difference of large numbers. */
static cudnnStatus_t emit_finalize(const struct wd_call *call, struct wd_queue *queue)
{
    const struct norms_finalize_args args = {
        .sum = wd_call_view(call, BN_FINALIZE_SUM),
        .sq_sum = wd_call_view(call, BN_FINALIZE_SQ_SUM),
        .scale = wd_call_view(call, BN_FINALIZE_SCALE),
        .bias = wd_call_view(call, BN_FINALIZE_BIAS),
        .in_mean = wd_call_view(call, BN_FINALIZE_IN_MEAN),
        .in_var = wd_call_view(call, BN_FINALIZE_IN_VAR),
        .out_mean = wd_call_view(call, BN_FINALIZE_OUT_MEAN),
        .out_var = wd_call_view(call, BN_FINALIZE_OUT_VAR),
        .mean = wd_call_view(call, BN_FINALIZE_MEAN),
        .inv_std = wd_call_view(call, BN_FINALIZE_INV_STD),
        .eq_scale = wd_call_view(call, BN_FINALIZE_EQ_SCALE),
        .eq_bias = wd_call_view(call, BN_FINALIZE_EQ_BIAS),
        .count = scalar(call, BN_FINALIZE_COUNT),
        .factor = scalar(call, BN_FINALIZE_FACTOR),
        .epsilon = scalar(call, BN_FINALIZE_EPSILON),
        .training = call->problem.node->attr.norms.mode == CUDNN_BN_FINALIZE_STATISTICS_TRAINING,
    };
    return wd_emit_map(queue, &wd_pass_norms_finalize, WD_ACC_F64, &args,
                       wd_tensor_count(wd_call_tensor(call, BN_FINALIZE_SCALE)));
}

/* clang-format off */
#define ENGINE(which, OP, kind, KIND, workspace_, emit_) const struct wd_engine wd_engine_##which##_def_##kind = {.name = #which "_def", .op = WD_OP_##OP, .device = KIND, .last_resort = true, .workspace = workspace_, .emit = emit_};
#define ENGINES(which, OP, workspace, emit) ENGINE(which, OP, cpu, WD_CPU, workspace, emit) ENGINE(which, OP, gpu, WD_GPU, workspace, emit)
/* clang-format on */
ENGINES(norm_inference, NORM_INFERENCE, infer_workspace, emit_infer)
ENGINES(norm_training, NORM_TRAINING, train_workspace, emit_train)
ENGINES(norm_backward, NORM_BACKWARD, grad_workspace, emit_grad)
ENGINES(gen_stats, GEN_STATS, stats_workspace, emit_stats)
ENGINES(bn_finalize, BN_FINALIZE, NULL, emit_finalize)
ENGINES(bn_bwd_weights, BN_BWD_WEIGHTS, weights_workspace, emit_weights)
