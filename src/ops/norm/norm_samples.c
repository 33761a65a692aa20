/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance and group norm of much data, channels last: each sample is a batch norm of its own, in which the channels of
 * a group share statistics. One launch of bn_grid's kernels has as many samples as share out the processors well, and
 * keeps as much of them as shared memory holds; the rest is read twice. The saved mean of a group with an infinity
 * may be that infinity, as of batch norm, where other engines say NaN. */
#include <math.h>
#include <string.h>

#include "base/board.h"
#include "base/sizes.h"
#include "ops/norm/bn_grid_cut.h"
#include "ops/norm/norm_groups.h"

extern const struct wd_engine wd_engine_norm_training_kept;
extern const struct wd_engine wd_engine_norm_training_groups;

enum {
    CHIPS = 1,    /* bytes of x: times what the chip holds (README.md) */
    MEMBERS = 64, /* of a group: a thread joins them one by one */
    COLUMNS =
        320, /* of a team of blocks; as many for each processor's block have room on the board */
    LAUNCH_MB = 24, /* what moves while a launch begins and its blocks show each other sums */
};

/* A problem that matches; the cut of the samples of a launch. */
struct work {
    struct norm_groups_shape shape;
    struct wd_bn_grid_cut cut;
};

/* The columns of a team: as many as can be, in equal shares, of whole units and whole groups. */
static int64_t columns_of(const struct norm_groups_shape *s)
{
    int64_t step = s->each / wd_gcd(s->each, BN_RUN) * BN_RUN;
    int64_t ranges = wd_ceil_div(s->channels, COLUMNS);
    while (wd_ceil_div(wd_ceil_div(s->channels, ranges), step) * step > COLUMNS) ++ranges;
    return wd_ceil_div(wd_ceil_div(s->channels, ranges), step) * step;
}

/* Samples of a launch: the processors shared out well, and few launches. */
static int64_t samples_of(const struct norm_groups_shape *s, int64_t ranges, int64_t processors)
{
    int64_t bytes = s->samples * s->channels * s->plane * s->size;
    int64_t best = 0, least = INT64_MAX;
    for (int64_t launches = 1; launches <= s->samples; ++launches) {
        int64_t samples = wd_ceil_div(s->samples, launches);
        int64_t busy = processors / (samples * ranges) * (samples * ranges);
        int64_t cost;
        if (busy < 2 * samples * ranges) continue; /* blocks of a team */
        cost = launches * ((int64_t)LAUNCH_MB << 20) + bytes / 2 * 3 / busy * processors;
        if (cost < least) best = samples, least = cost;
    }
    return best;
}

/* False where blocks would not meet. */
static bool see(struct work *w, const struct wd_problem *problem)
{
    const struct norm_groups_shape *s = &w->shape;
    struct wd_bn_grid_cut *c = &w->cut;
    memset(w, 0, sizeof *w);
    (void)wd_norm_groups_see(&w->shape, problem);
    c->space = (struct wd_bn_gpu_space){
        .outer = s->plane, .params = s->channels, .inner = 1, .total = s->channels * s->plane};
    c->columns = columns_of(s);
    c->samples =
        samples_of(s, wd_ceil_div(s->channels, c->columns), problem->device->multiprocessors);
    return c->samples > 0 && wd_bn_grid_cut(c, s->size, 1, problem->device) &&
           wd_bn_grid_has_board(c);
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
    bytes = w.shape.samples * w.shape.channels * w.shape.plane * w.shape.size;
    WD_NEED(bytes >= CHIPS * device->multiprocessors * device->shared_per_block, reason,
            NOT_SUPPORTED_SHAPE, "x has %lld bytes, less than %d times what the chip holds",
            (long long)bytes, CHIPS);
    WD_NEED(bytes / BN_GRID_UNIT <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "x has %lld bytes, more than 2^31 units", (long long)bytes);
    WD_NEED(see(&w, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld samples of %lld channels do not go by teams of blocks that meet",
            (long long)w.shape.samples, (long long)w.shape.channels);
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
    return other(problem)->workspace(problem);
}

static struct bn_grid_args args_of(const struct wd_call *call, const struct work *w,
                                   const struct wd_device *device)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    const struct wd_bn_gpu_space *s = &w->cut.space;
    struct bn_grid_args a;
    struct bn_vector_args *bn = &a.bn;
    memset(&a, 0, sizeof a);
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
    for (int64_t n = 0; n < w->shape.samples; n += w->cut.samples) {
        struct wd_bn_grid_cut c = w->cut;
        struct bn_grid_args one = a;
        one.bn.x = (const char *)a.bn.x + n * bytes;
        one.bn.y = (char *)a.bn.y + n * bytes;
        one.bn.mean.data = behind(a.bn.mean.data, n * w->shape.groups * (int64_t)sizeof(float));
        one.bn.var.data = behind(a.bn.var.data, n * w->shape.groups * (int64_t)sizeof(float));
        c.groups = c.groups / c.samples * wd_least(c.samples, w->shape.samples - n);
        WD_TRY(wd_bn_grid_train_samples(queue, &c, &one, type));
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
