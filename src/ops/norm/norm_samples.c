/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance and group norm of samples far larger than what the chip holds, channels last: each is a batch norm of
 * its own, by bn_grid's kernels, one launch after the other, in which the channels of a group share statistics. All of the chip is there for one sample, and as
 * much of it as shared memory holds is read once. The saved mean of a channel with an infinity is that
 * infinity, as of batch norm; NaN by other engines. */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/bn_grid_cut.h"
#include "ops/norm/norm_groups.h"

extern const struct wd_engine wd_engine_norm_training_kept;
extern const struct wd_engine wd_engine_norm_training_groups;

/* Measured at 2.2 times what the chip holds, of two bytes and whole units (README.md). Below, each launch's
 * first load and meeting count for more. */
enum { CHIPS = 2, MEMBERS = 32 /* a thread joins them one by one */ };

/* A problem that matches; the cut of one sample. */
struct work {
    struct norm_groups_shape shape;
    struct wd_bn_grid_cut cut;
};

/* False where blocks would not meet. */
static bool see(struct work *w, const struct wd_problem *problem)
{
    const struct norm_groups_shape *s = &w->shape;
    memset(w, 0, sizeof *w);
    (void)wd_norm_groups_see(&w->shape, problem);
    w->cut.space = (struct wd_bn_gpu_space){
        .outer = s->plane, .params = s->channels, .inner = 1, .total = s->channels * s->plane};
    if (!wd_bn_grid_cut(&w->cut, s->size, 1, problem->device)) return false;
    if (s->each > 1 && w->cut.items % s->each != 0) {
        w->cut.whole = true;
        if (!wd_bn_grid_cut(&w->cut, s->size, 1, problem->device)) return false;
    }
    return w->cut.meets && (s->each == 1 || wd_bn_grid_has_board(&w->cut));
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    (void)see(prepared, problem);
}

/* What is absent is not. */
static bool is_fp32(const struct wd_problem *problem, int slot)
{
    const struct wd_tensor *t = wd_norm_tensor(problem, slot);
    return t && t->dtype == CUDNN_DATA_FLOAT;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_device *device = problem->device;
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    struct work w;
    int64_t bytes;
    if (!wd_norm_groups_match(problem, reason)) return false;
    (void)wd_norm_groups_see(&w.shape, problem);
    WD_NEED(is_fp32(problem, p.scale) && is_fp32(problem, p.bias), reason, NOT_SUPPORTED_DATA_TYPE,
            "scale or bias is missing or not fp32");
    WD_NEED(w.shape.columns, reason, NOT_SUPPORTED_LAYOUT, "channels are not last");
    WD_NEED(w.shape.size == 2 && w.shape.channels % BN_RUN == 0, reason, NOT_SUPPORTED_SHAPE,
            "%lld channels of %d bytes, needed are multiples of %d, of two bytes",
            (long long)w.shape.channels, w.shape.size, BN_RUN);
    WD_NEED(w.shape.each <= MEMBERS, reason, NOT_SUPPORTED_SHAPE,
            "groups of %lld channels, %d at most", (long long)w.shape.each, MEMBERS);
    bytes = w.shape.channels * w.shape.plane * w.shape.size;
    WD_NEED(bytes >= CHIPS * device->multiprocessors * device->shared_per_block, reason,
            NOT_SUPPORTED_SHAPE, "a sample has %lld bytes, less than %d times what the chip holds",
            (long long)bytes, CHIPS);
    WD_NEED(see(&w, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld channels do not go by groups of blocks that meet", (long long)w.shape.channels);
    return true;
}

/* What takes tensors that lie otherwise. */
static const struct wd_engine *other(const struct wd_problem *problem)
{
    return wd_norm_kept_takes(problem) ? &wd_engine_norm_training_kept
                                       : &wd_engine_norm_training_groups;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct work w;
    (void)see(&w, problem);
    return wd_most(wd_bn_grid_sums_bytes(&w.cut), other(problem)->workspace(problem));
}

static struct bn_grid_args args_of(const struct wd_call *call, const struct work *w,
                                   const struct wd_device *device)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    const struct wd_bn_gpu_space *s = &w->cut.space;
    struct bn_grid_args a;
    struct bn_vector_args *bn = &a.bn;
    memset(&a, 0, sizeof a);
    a.sums = wd_bn_grid_sums(call->workspace);
    bn->x = wd_norm_data(call, p.x);
    bn->y = wd_norm_data(call, p.y);
    bn->scale = (struct bn_param){wd_norm_data(call, p.scale), 1};
    bn->bias = (struct bn_param){wd_norm_data(call, p.bias), 1};
    bn->mean = (struct bn_param){wd_norm_data(call, p.mean), 1};
    bn->var = (struct bn_param){wd_norm_data(call, p.inv_std), 1};
    bn->epsilon = wd_call_view(call, NORM_TRAIN_EPSILON).value;
    bn->wide_alpha = bn->alpha = 1.0F;
    bn->wide_high = bn->high = INFINITY;
    bn->aligned = true;
    bn->streaming = wd_tensor_extent(wd_call_tensor(call, p.x)) > device->l2_bytes;
    bn->total = s->total;
    bn->terms = s->outer;
    bn->inner = 1;
    bn->params = (uint32_t)s->params;
    bn->by_params = wd_fastdiv_of(bn->params);
    a.members = (uint32_t)w->shape.each;
    wd_bn_grid_say(&a, &w->cut);
    return a;
}

static void *behind(void *at, int64_t bytes)
{
    return at ? (char *)at + bytes : NULL;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct work own;
    const struct work *w = wd_call_prepared(call, prepare, &own);
    int type = wd_norm_type(wd_call_tensor(call, 0)->dtype);
    struct bn_grid_args a = args_of(call, w, queue->device);
    int64_t bytes = w->cut.space.total * w->shape.size;
    if (!wd_norm_aligned(a.bn.x) || !wd_norm_aligned(a.bn.y)) {
        return other(&call->problem)->emit(call, queue);
    }
    for (int64_t n = 0; n < w->shape.samples; ++n) {
        struct bn_grid_args one = a;
        one.bn.x = (const char *)a.bn.x + n * bytes;
        one.bn.y = (char *)a.bn.y + n * bytes;
        one.bn.mean.data = behind(a.bn.mean.data, n * w->shape.groups * (int64_t)sizeof(float));
        one.bn.var.data = behind(a.bn.var.data, n * w->shape.groups * (int64_t)sizeof(float));
        if (w->shape.each == 1) WD_TRY(wd_bn_grid_train(queue, &w->cut, &one, type));
        else WD_TRY(wd_bn_grid_train_grouped(queue, &w->cut, &one, type));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_norm_training_samples = {
    .name = "norm_training_samples",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};
