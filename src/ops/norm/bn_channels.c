/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch norm's training and gradients on the GPU of planes, where a channel is large: norm_clusters' kernels, of which a channel is a
 * share of as many rows as there are samples. What is added to results, made of them or lies off the boundaries goes the way of bn_vector. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/bn_gpu.h"
#include "ops/norm/norm_clusters.h"

/* Bytes of a channel that other engines are as fast with. Measured on an H200, us, by blocks and before: fp32 128x512x14x14 (98 KB) 39.5 and
 * 45.8, backward 51.7 and 56.9; 64x1024x14x14 (49 KB) 47.5 and 34.8, backward 53.5 and 46.0. */
enum { LEAST = 96 << 10 };

/* A cut, and the arguments of bn_vector and of the kernel but for pointers and scalars. */
struct work {
    struct wd_bn_gpu_space space;
    struct wd_share_cut cut;
    struct bn_vector_args bn;
    struct norm_clusters_args args;
};

static bool is_training(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_BN_TRAINING;
}

static const struct wd_engine *any(const struct wd_problem *problem)
{
    return is_training(problem) ? &wd_engine_bn_training_vector : &wd_engine_bn_backward_vector;
}

static int64_t bytes_of_plane(const struct work *w, const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    return w->space.inner * (int64_t)wd_dtype_bytes(x->dtype);
}

/* Of a problem that matches but for its shape; whether channels are cut. */
static bool see(struct work *w, const struct wd_problem *problem)
{
    memset(w, 0, sizeof *w);
    (void)wd_bn_gpu_see(&w->space, problem);
    w->cut.shares = w->space.params;
    w->cut.units = w->space.outer * (bytes_of_plane(w, problem) / NORM_ROWS_UNIT);
    w->cut.two = !is_training(problem);
    w->cut.least = LEAST;
    w->cut.may_halve = true;
    w->cut.may_meet = true;
    w->bn = wd_bn_gpu_args(problem, &w->space);
    return wd_share_cut(&w->cut, problem->device);
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct work *w = prepared;
    struct norm_clusters_args *a = &w->args;
    int64_t row;
    (void)see(w, problem);
    a->cut = wd_share_args_of(&w->cut);
    row = w->cut.units / w->space.outer;
    a->epsilon = w->bn.epsilon;
    a->inverse = 1.0 / (double)w->bn.terms;
    a->less = 1.0 / (double)wd_most(1, w->bn.terms - 1);
    a->stride = (uint32_t)row;
    a->by_row = wd_fastdiv_of((uint32_t)row);
    a->jump = w->space.outer > 1 ? (uint32_t)((w->space.params - 1) * row) : 0;
    a->batch = 1;
    a->each = a->together = 1;
    a->groups = (uint32_t)w->space.params;
}

static bool are_neighbours(const struct work *w)
{
    const struct bn_vector_args *a = &w->bn;
    const struct bn_param *const all[] = {&a->scale,        &a->bias,        &a->mean,   &a->var,
                                          &a->running_mean, &a->running_var, &a->dscale, &a->dbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        if (all[i]->stride > 1) return false;
    }
    return true;
}

static bool has(const struct wd_problem *problem, int slot)
{
    return wd_slot(problem->graph, problem->node, slot) != NULL;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_norm_attr *attr = &problem->node->attr.norm;
    struct work w;
    bool fits;
    if (!wd_bn_gpu_match(problem, &w.space, false, reason)) return false;
    if (!any(problem)->match(problem, reason)) return false;
    WD_NEED(attr->ops == CUDNN_BATCHNORM_OPS_BN, reason, NOT_SUPPORTED,
            "more than the norm is to be done");
    WD_NEED(is_training(problem)
                ? has(problem, WD_BN_TRAIN_RUNNING_MEAN) == has(problem, WD_BN_TRAIN_RUNNING_VAR)
                : has(problem, WD_BN_GRAD_SAVED_MEAN) && has(problem, WD_BN_GRAD_DSCALE) &&
                      has(problem, WD_BN_GRAD_DBIAS),
            reason, NOT_SUPPORTED, "one of two numbers a channel is missing");
    fits = see(&w, problem);
    WD_NEED(bytes_of_plane(&w, problem) % NORM_ROWS_UNIT == 0, reason, NOT_SUPPORTED_SHAPE,
            "planes of %lld elements, no whole 16 bytes", (long long)w.space.inner);
    WD_NEED(are_neighbours(&w), reason, NOT_SUPPORTED_LAYOUT, "parameters are no neighbours");
    WD_NEED(fits, reason, NOT_SUPPORTED_SHAPE,
            "%lld channels of %lld times 16 bytes are too few, too small or too large",
            (long long)w.cut.shares, (long long)w.cut.units);
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    return any(problem)->workspace(problem);
}

static struct norm_rows_param param_of(const struct bn_param *p)
{
    return (struct norm_rows_param){p->data, NORM_ROWS_F32, 0};
}

static struct norm_clusters_args args_of(const struct work *w, const struct bn_vector_args *bn)
{
    struct norm_clusters_args a = w->args;
    a.x = bn->x;
    a.dy = bn->dy;
    a.y = bn->y;
    a.scale = param_of(&bn->scale);
    a.bias = param_of(&bn->bias);
    if (w->cut.two) {
        a.given_mean = bn->mean.data;
        a.given_inv_std = bn->var.data;
    } else {
        a.mean = bn->mean.data;
        a.inv_std = bn->var.data;
    }
    a.factor = bn->factor;
    a.alpha_param = bn->alpha_param;
    a.beta_param = bn->beta_param;
    a.running_mean = bn->running_mean.data;
    a.running_var = bn->running_var.data;
    a.dscale = bn->dscale.data;
    a.dbias = bn->dbias.data;
    return a;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_problem *problem = &call->problem;
    struct work own;
    const struct work *w = wd_call_prepared(call, prepare, &own);
    struct bn_vector_args bn = w->bn;
    struct norm_clusters_args a;
    wd_bn_gpu_bind(&bn, call);
    if (!bn.aligned || bn.alpha != 1.0F || bn.beta != 0.0F) return any(problem)->emit(call, queue);
    a = args_of(w, &bn);
    return norm_clusters_launch(queue, &w->cut, &a, wd_bn_gpu_type(problem));
}

const struct wd_engine wd_engine_bn_training_channels = {
    .name = "bn_training_channels",
    .op = WD_OP_BN_TRAINING,
    .device = WD_GPU,
    .kernels = &wd_norm_halves_kernels, /* and norm_training_clusters' */
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};

const struct wd_engine wd_engine_bn_backward_channels = {
    .name = "bn_backward_channels",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};
