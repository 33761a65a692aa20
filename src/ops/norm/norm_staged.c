/* SPDX-License-Identifier: Apache-2.0
 *
 * Group and instance norm on the GPU, channels last, and large planes of instance norm: samples that the shared memory
 * of the chip holds, several at once and one turn of them after the other, forward also larger ones.
 * norm_staged_args.h says who has what. What lies off the boundaries goes another way. */
#include <string.h>

#include "base/board.h"
#include "base/sizes.h"
#include "ops/norm/norm_groups.h"
#include "ops/norm/norm_staged_args.h"

#define WD_KERNELS_MODULE norm_staged
#define WD_KERNELS_ROWS "ops/norm/norm_staged_kernels.def"
#include "ops/kernels_host.inc"

enum {
    RUN = 8,           /* elements of a unit */
    MEMBERS_LEAST = 8, /* of a set, else it has to be half of a unit, or a channel */
    BUSY_LEAST = 7,    /* of eight threads of a group those that have a unit */
    AHEAD = 20, /* rounds that the second-level cache is asked for, of 132 processors 20 MB */
    JOIN_BYTES = 155 << 10, /* of a processor, what memory could move while blocks join */
    PLANE_LEAST = 1 << 20,  /* bytes of a plane of x (and dy), of which clusters have less */
    SET_BYTES = 16,
    KNOWN_BYTES = 8,
    COUNTER_BYTES = 8,
    HEAD_BYTES = 16,
    COST_MOST = 7, /* of a cut, in quarters of what reading and writing alone cost */
};

struct work {
    struct norm_groups_shape shape;
    struct norm_staged_args args; /* but for pointers */
    int64_t shared;
    bool deep;      /* samples are larger than the ring */
    int64_t groups; /* of blocks that have a sample each */
    int64_t cost;   /* of the cut */
};

/* Neighbouring lanes, a power of two, for each of so many. */
static uint32_t bits_for(int64_t many)
{
    uint32_t bits = 0;
    while (bits < 5 && (many << (bits + 1)) <= NORM_STAGED_GROUP) bits += 1;
    return bits;
}

/* What lies behind a ring of so many places. */
static int64_t lay(struct work *w, int64_t places)
{
    struct norm_staged_args *a = &w->args;
    int64_t at = places * NORM_STAGED_PLACE;
    int64_t pitch = NORM_STAGED_PITCH(a->lanes), channels = (int64_t)a->runs * RUN;
    a->places = (uint32_t)places;
    a->entries = (uint32_t)at;
    at += a->runs * pitch * SET_BYTES;
    a->numbers = (uint32_t)at;
    at += (int64_t)2 * SET_BYTES * a->sets;
    a->params = (uint32_t)at;
    at += 2 * (int64_t)sizeof(float) * channels;
    a->counters = (uint32_t)at;
    at += (2 * places + 2) * COUNTER_BYTES;
    a->known = (uint32_t)at;
    at += (int64_t)2 * KNOWN_BYTES * a->sets;
    a->head = (uint32_t)at;
    at += HEAD_BYTES;
    a->totals = (uint32_t)at;
    if (w->shape.arrays > 1) at += channels * KNOWN_BYTES;
    return at;
}

/* Of a block's sample. */
static int64_t places_of(const struct work *w, int64_t rounds)
{
    return wd_ceil_div(rounds, NORM_STAGED_EACH(w->shape.arrays));
}

/* What a cut costs in bytes that memory could move: to begin with a turn's reading, then its writing and the next one's
 * reading, which joins hide behind, or the other way round; of samples that the ring does not hold their reading, a
 * join and their writing, with what neither the ring nor the cache has kept. */
static int64_t cost(const struct work *w, const struct norm_staged_args *a, int64_t places,
                    const struct wd_device *device)
{
    int64_t turns = wd_ceil_div(a->samples, a->at_once), processors = device->multiprocessors;
    int64_t one = a->rounds * processors * (int64_t)(a->lanes * a->runs) * NORM_STAGED_UNIT;
    int64_t read = w->shape.arrays * one;
    int64_t kept = processors * places * NORM_STAGED_PLACE + device->l2_bytes / 2;
    int64_t join = processors * JOIN_BYTES;
    if (w->deep) return turns * (2 * one + wd_most(one - kept, 0) + join);
    return read + turns * one + (turns - 1) * wd_most(read, join) + join;
}

/* Samples of a turn, and blocks of each, with a ring of `places`. False where that does not hold them; deep: where it
 * does. */
static bool share(struct work *w, int64_t places, const struct wd_device *device)
{
    struct norm_staged_args *a = &w->args;
    int64_t samples = a->samples, best = 0;
    for (int64_t at_once = wd_least(samples, device->multiprocessors); at_once > 0; --at_once) {
        struct norm_staged_args one = *a;
        int64_t blocks, all;
        /* as few of each turn as there can be of so many turns */
        if (wd_ceil_div(samples, wd_ceil_div(samples, at_once)) != at_once) continue;
        blocks = wd_least(device->multiprocessors / at_once, wd_ceil_div(a->rows, a->lanes));
        if (blocks < 1) continue;
        one.at_once = (uint32_t)at_once;
        one.rounds = (uint32_t)wd_ceil_div(a->rows, blocks * a->lanes);
        one.blocks = (uint32_t)wd_ceil_div(a->rows, (int64_t)one.rounds * a->lanes);
        /* the last block has a round less, or more */
        if (w->deep ? places_of(w, one.rounds - 1) <= places : places_of(w, one.rounds) > places)
            continue;
        if (2 * at_once * one.blocks * one.sets > WD_BOARD_WORDS) continue;
        all = cost(w, &one, places, device);
        if (best > 0 && all >= best) continue;
        best = all;
        *a = one;
        w->groups = at_once;
        w->cost = best;
    }
    return best > 0;
}

/* False where neither way does it: samples that the ring does not hold go forward alone. */
static bool cut(struct work *w, const struct wd_device *device)
{
    struct norm_staged_args *a = &w->args;
    int64_t most = device->shared_per_block / NORM_STAGED_PLACE;
    while (most > 0 && lay(w, most) > device->shared_per_block) most -= 1;
    if (!share(w, most, device)) {
        w->deep = w->shape.arrays == 1;
        if (!w->deep || most == 0 || !share(w, most, device)) return false;
    }
    w->shared = lay(w, most);
    a->ahead =
        (uint32_t)(w->deep ? device->l2_bytes / 2 / (device->multiprocessors * NORM_STAGED_PLACE)
                           : AHEAD / w->shape.arrays);
    return true;
}

static bool see(struct work *w, const struct wd_problem *problem)
{
    struct norm_staged_args *a = &w->args;
    const struct norm_groups_shape *s = &w->shape;
    bool planes;
    memset(w, 0, sizeof *w);
    (void)wd_norm_groups_see(&w->shape, problem);
    planes = !s->columns;
    a->runs = planes ? 1 : (uint32_t)(s->channels / RUN);
    a->lanes = NORM_STAGED_GROUP / a->runs;
    if (8 * a->lanes * a->runs < NORM_STAGED_GROUP * BUSY_LEAST) return false;
    a->rows = (uint32_t)(planes ? s->plane / RUN : s->plane);
    a->members = planes ? RUN : (uint32_t)s->each;
    a->sets = planes ? 1 : (uint32_t)s->groups;
    a->planes = planes;
    a->samples = (uint32_t)(planes ? s->samples * s->channels : s->samples);
    a->set_bits = bits_for(a->sets);
    a->pair_bits = bits_for(2 * (int64_t)a->runs);
    a->sample = (int64_t)a->rows * a->runs * NORM_STAGED_UNIT;
    a->inv_terms = 1.0 / ((double)s->each * (double)s->plane);
    if (!cut(w, problem->device)) return false;
    a->step = (int64_t)(a->blocks * a->lanes * a->runs) * NORM_STAGED_UNIT;
    a->by_blocks = wd_fastdiv_of(a->blocks);
    a->by_runs = wd_fastdiv_of(a->runs);
    a->by_members = wd_fastdiv_of(a->members);
    a->by_channels = wd_fastdiv_of((uint32_t)s->channels);
    return true;
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    (void)see(prepared, problem);
}

static bool is_fp32(const struct wd_problem *problem, int slot)
{
    const struct wd_tensor *t = wd_norm_tensor(problem, slot);
    return t && t->dtype == CUDNN_DATA_FLOAT;
}

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_device *device = problem->device;
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    struct work w;
    const struct norm_groups_shape *s = &w.shape;
    int64_t bytes;
    if (!wd_norm_groups_match(problem, reason)) return false;
    WD_NEED(!wd_norm_groups_given(problem), reason, NOT_SUPPORTED, "the statistics are given");
    WD_NEED(device->grids_meet && wd_norm_cluster_max(device) > 1, reason, NOT_SUPPORTED,
            "the device has no bulk copies, or no grids that meet");
    (void)wd_norm_groups_see(&w.shape, problem);
    WD_NEED(is_fp32(problem, p.scale) && (is_backward(problem) || is_fp32(problem, p.bias)), reason,
            NOT_SUPPORTED_DATA_TYPE, "scale or bias is missing or not fp32");
    WD_NEED(s->columns || (s->each == 1 && s->plane % RUN == 0 &&
                           s->plane * s->size * s->arrays >= PLANE_LEAST),
            reason, NOT_SUPPORTED_LAYOUT,
            "channels are not last, and planes of %lld elements are not a channel's, of whole "
            "units and large",
            (long long)s->plane);
    WD_NEED(s->size == 2 &&
                (!s->columns || (s->channels % RUN == 0 && s->channels <= RUN * NORM_STAGED_GROUP)),
            reason, NOT_SUPPORTED_SHAPE,
            "%lld channels of %d bytes, needed are multiples of %d up to %d, of two bytes",
            (long long)s->channels, s->size, RUN, RUN * NORM_STAGED_GROUP);
    bytes = s->samples * s->channels * s->plane * s->size;
    WD_NEED(2 * bytes >= s->arrays * device->multiprocessors * device->shared_per_block, reason,
            NOT_SUPPORTED_SHAPE, "x has %lld bytes, less than %d halves of what the chip holds",
            (long long)bytes, s->arrays);
    WD_NEED(s->each == 1 || 2 * s->each == RUN || s->each >= MEMBERS_LEAST, reason,
            NOT_SUPPORTED_SHAPE, "groups of %lld channels, of which a unit has some of three",
            (long long)s->each);
    WD_NEED(
        see(&w, problem), reason, NOT_SUPPORTED_SHAPE,
        "samples of %lld rows of %lld channels are more than the chip holds, have more sets than "
        "the board has words for, or leave threads idle",
        (long long)s->plane, (long long)s->channels);
    WD_NEED(4 * w.cost <= COST_MOST * (s->arrays + 1) * bytes, reason, NOT_SUPPORTED_SHAPE,
            "samples of %lld rows of %lld channels: %lld at once cost more than %d quarters of "
            "reading and writing them",
            (long long)s->plane, (long long)s->channels, (long long)w.groups, COST_MOST);
    return true;
}

/* Of what blocks find for dscale and dbias. */
static int64_t found_bytes(const struct wd_problem *problem, const struct work *w)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    int64_t rows;
    if (!is_backward(problem)) return 0;
    if (!wd_norm_tensor(problem, p.dscale) && !wd_norm_tensor(problem, p.dbias)) return 0;
    rows = w->shape.columns ? w->groups * w->args.blocks : w->shape.samples;
    return rows * w->shape.channels * (int64_t)sizeof(struct norm_kept_sums);
}

static int64_t workspace(const struct wd_problem *problem)
{
    int64_t bytes = wd_norm_groups_any(problem)->workspace(problem);
    struct work w;
    return see(&w, problem) ? wd_most(found_bytes(problem, &w), bytes) : bytes;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    enum wd_op op = call->problem.node->op;
    struct wd_norm_places p = wd_norm_places(op);
    bool backward = is_backward(&call->problem);
    int type = wd_norm_type(wd_call_tensor(call, p.x)->dtype) - NORM_ROWS_F16;
    struct work own;
    const struct work *w = wd_call_prepared(call, prepare, &own);
    struct norm_staged_args a = w->args;
    void *counters = NULL;
    a.x = wd_norm_data(call, p.x);
    a.y = wd_norm_data(call, p.y);
    a.dy = wd_norm_data(call, p.dy);
    if (!wd_norm_aligned(a.x) || !wd_norm_aligned(a.y) || (backward && !wd_norm_aligned(a.dy)))
        return wd_norm_groups_any(&call->problem)->emit(call, queue);
    a.scale = wd_norm_data(call, p.scale);
    a.bias = wd_norm_data(call, p.bias);
    a.mean = wd_norm_data(call, p.mean);
    a.inv_std = wd_norm_data(call, p.inv_std);
    if (backward) {
        a.dscale = wd_norm_param(call, p.dscale);
        a.dbias = wd_norm_param(call, p.dbias);
        if (found_bytes(&call->problem, w) > 0) a.found = call->workspace;
    } else {
        int epsilon = op == WD_OP_NORM_INFERENCE ? NORM_INFER_EPSILON : NORM_TRAIN_EPSILON;
        a.epsilon = wd_call_view(call, epsilon).value;
    }
    WD_TRY(queue->ops->counters(queue, &counters));
    a.board = (uint32_t *)counters + WD_COUNTERS_BYTES / sizeof(uint32_t);
    type += backward  ? KERNEL_norm_staged_back_f16
            : w->deep ? KERNEL_norm_staged_deep_f16
                      : KERNEL_norm_staged_f16;
    return wd_emit_meeting_kernel(queue, &kernel_rows[type], w->groups * a.blocks,
                                  NORM_STAGED_THREADS, (uint32_t)w->shared, &a);
}

const struct wd_engine wd_engine_norm_training_staged = {
    .name = "norm_training_staged",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};

const struct wd_engine wd_engine_norm_inference_staged = {
    .name = "norm_inference_staged",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};

const struct wd_engine wd_engine_norm_backward_staged = {
    .name = "norm_backward_staged",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};
