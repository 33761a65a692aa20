/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance and group norm of much data, channels last: each sample is a batch norm of its own, in which the channels of
 * a group share statistics. One launch of bn_grid's kernels, or backward a turn of one, has as many samples as share out
 * the processors well, and keeps as much of them as shared memory and registers hold; the rest is read twice. The saved
 * mean of a group with an infinity may be that infinity, as of batch norm, where other engines say NaN. */
#include <math.h>
#include <string.h>

#include "base/board.h"
#include "base/sizes.h"
#include "ops/norm/bn_grid_cut.h"
#include "ops/norm/norm_groups.h"

enum {
    HALVES = 1,          /* bytes of x, forward: halves of what the chip holds (README.md), */
    HALVES_BACK = 2,     /* and backward */
    MEMBERS = 64,        /* of a group: a thread joins them one by one, where they are no set */
    COLUMNS_MOST = 320,  /* of a team of blocks, ... */
    COLUMNS_TWICE = 160, /* ... and where turns show columns, so that the board has them twice */
    COLUMNS_LEAST = 128, /* of a team, where there are as many, unless teams are even with fewer */
    LAUNCHES_MOST = 32,
    SHARE_BITS = 3,    /* eight lanes that join a column, at most, */
    SET_BITS = 5,      /* and a warp a set of channels, */
    SET_LEAST = 10,    /* of which forward there are so many */
    LAUNCH_MB = 28,    /* what could move while a launch, or a turn, begins */
    CACHED_TENTHS = 7, /* of what is read again, where half of the second-level cache has it */
    WORD_BYTES = 500, /* likewise while each block reads a word of the board: 132 x 256 take 4 us */
};

/* A problem that matches; the cut of the samples of a launch. */
struct work {
    struct norm_groups_shape shape;
    struct wd_bn_grid_cut cut;
    int64_t at_launch; /* samples */
};

/* Whether channels that share statistics are joined as sets (bn_grid_sets.cuh): not where a unit may have some of three, nor
 * forward where they are so few that joining them one by one takes no longer. Measured on an H200, us: training 16x1280x32x32
 * g32 31.9 is 30.1, 8x640x64x64 g32 31.3 is 30.4, 8x320x128x128 g32 62.2 is 61.4, 64x256x56x56 g32 68.0 is 69.0. */
static bool has_sets(const struct norm_groups_shape *s)
{
    if (s->arrays == 1) return s->each >= SET_LEAST;
    return s->each >= BN_RUN || 2 * s->each == BN_RUN;
}

/* What moves, in bytes at the rate of all processors with all threads, if a launch or turn has so many samples and a team of
 * blocks so many columns; 0: a team would be one block. Each column counts as a word of the board, also where
 * blocks show sets: with words of sets what has been measured is cut the same, but other shapes get more and smaller turns,
 * which lost where they were tried (SAMPLES.md). */
static double cost(const struct norm_groups_shape *s, int64_t samples, int64_t columns,
                   const struct wd_device *device)
{
    int64_t ranges = wd_ceil_div(s->channels, columns);
    int64_t blocks = device->multiprocessors / (samples * ranges);
    int64_t units = columns / BN_RUN;
    int64_t threads = BN_GRID_THREADS / units * units;
    double bytes = (double)samples * (double)(s->channels * s->plane * s->size);
    double held =
        (double)device->multiprocessors *
        (double)(device->shared_per_block + (int64_t)BN_GRID_HELD_SAMPLES(s->arrays) * s->arrays *
                                                BN_GRID_THREADS * BN_GRID_UNIT);
    double again = fmax(0, s->arrays * bytes - held);
    double moved = (s->arrays + 1) * bytes + again -
                   (1 - CACHED_TENTHS / 10.0) * fmin(again, (double)device->l2_bytes / 2);
    double busy = (double)(blocks * samples * ranges) / device->multiprocessors;
    busy *= (double)threads / BN_GRID_THREADS;
    busy *= (double)s->channels / (double)(ranges * columns);
    if (blocks < 2) return 0;
    /* the last launch may have fewer samples, which take as long */
    return (double)wd_ceil_div(s->samples, samples) *
           (moved / busy + ((double)LAUNCH_MB * (1 << 20)) +
            (double)(WORD_BYTES * blocks * columns));
}

/* The most columns of a team. Where blocks show columns, the board has a word for each of them from as many blocks as
 * there are processors; sets are fewer, and need no such bound. */
static int64_t most_columns(const struct norm_groups_shape *s, const struct wd_device *device)
{
    int64_t banks = s->arrays > 1 ? 2 : 1;
    if (has_sets(s)) return COLUMNS_MOST;
    return wd_least(banks > 1 ? COLUMNS_TWICE : COLUMNS_MOST,
                    WD_BOARD_WORDS / (banks * device->multiprocessors));
}

/* The samples of a launch and the columns of a team, which are whole units and whole groups; where a team cannot have all
 * channels, down to equal shares of as few teams as can (192 backward: 96 twice). False where there are none. */
static bool share(struct work *w, const struct wd_device *device)
{
    const struct norm_groups_shape *s = &w->shape;
    int64_t step = s->each / wd_gcd(s->each, BN_RUN) * BN_RUN;
    int64_t most = most_columns(s, device) / step * step;
    int64_t first = wd_least(COLUMNS_LEAST, s->channels);
    double least = 0;
    if (most == 0) return false;
    first = wd_least(first, wd_ceil_div(s->channels, wd_ceil_div(s->channels, most)));
    first = wd_least(wd_ceil_div(first, step) * step, most);
    for (int64_t launches = 1; launches <= wd_least(s->samples, LAUNCHES_MOST); ++launches) {
        int64_t samples = wd_ceil_div(s->samples, launches);
        for (int64_t c = first; c <= most; c += step) {
            double all = cost(s, samples, c, device);
            if (all == 0 || (least > 0 && all >= least)) continue;
            least = all;
            w->cut.samples = samples;
            w->cut.columns = c;
        }
    }
    return least > 0;
}

static int64_t sets_of(const struct work *w)
{
    return has_sets(&w->shape) ? w->cut.items / w->shape.each : 0;
}

/* Backward all samples in one launch, in turns; forward that gains nothing. */
static bool has_turns(const struct work *w)
{
    return w->shape.arrays > 1;
}

/* Words of the board, of which turns have two sets. */
static int64_t words_of(const struct work *w)
{
    int64_t sets = sets_of(w), words = w->cut.groups * w->cut.blocks;
    return words * (sets > 0 ? sets : w->cut.items) * (has_turns(w) ? 2 : 1);
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
    c->holds = BN_GRID_HELD_SAMPLES(s->arrays);
    if (!share(w, problem->device)) return false;
    if (!wd_bn_grid_cut(c, s->size, s->arrays, problem->device)) return false;
    w->at_launch = has_turns(w) ? s->samples : c->samples;
    return c->meets && c->blocks > 1 && words_of(w) <= WD_BOARD_WORDS;
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    (void)see(prepared, problem);
}

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

static bool is_inference(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_INFERENCE;
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
    int halves = is_backward(problem) ? HALVES_BACK : HALVES;
    struct work w;
    int64_t bytes;
    if (!wd_norm_groups_match(problem, reason)) return false;
    WD_NEED(!is_inference(problem) || !wd_norm_groups_given(problem), reason, NOT_SUPPORTED,
            "the statistics are given");
    (void)wd_norm_groups_see(&w.shape, problem);
    WD_NEED(is_fp32(problem, p.scale) && (is_backward(problem) || is_fp32(problem, p.bias)), reason,
            NOT_SUPPORTED_DATA_TYPE, "scale or bias is missing or not fp32");
    WD_NEED(w.shape.columns, reason, NOT_SUPPORTED_LAYOUT, "channels are not last");
    WD_NEED(w.shape.size == 2 && w.shape.channels % BN_RUN == 0, reason, NOT_SUPPORTED_SHAPE,
            "%lld channels of %d bytes, needed are multiples of %d, of two bytes",
            (long long)w.shape.channels, w.shape.size, BN_RUN);
    WD_NEED(w.shape.each <= MEMBERS, reason, NOT_SUPPORTED_SHAPE,
            "groups of %lld channels, %d at most", (long long)w.shape.each, MEMBERS);
    bytes = w.shape.samples * w.shape.channels * w.shape.plane * w.shape.size;
    WD_NEED(2 * bytes >= halves * device->multiprocessors * device->shared_per_block, reason,
            NOT_SUPPORTED_SHAPE, "x has %lld bytes, less than %d halves of what the chip holds",
            (long long)bytes, halves);
    WD_NEED(bytes / BN_GRID_UNIT <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "x has %lld bytes, more than 2^31 units", (long long)bytes);
    WD_NEED(see(&w, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld samples of %lld channels do not go by teams of blocks that meet",
            (long long)w.shape.samples, (long long)w.shape.channels);
    return true;
}

/* Rows of what is found of channels: of each block where they are sets. */
static int64_t found_rows(const struct work *w)
{
    return w->shape.samples * (sets_of(w) > 0 ? w->cut.blocks : 1);
}

static int64_t found_bytes(const struct wd_problem *problem, const struct work *w)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    if (!is_backward(problem)) return 0;
    if (!wd_norm_tensor(problem, p.dscale) && !wd_norm_tensor(problem, p.dbias)) return 0;
    return found_rows(w) * w->shape.channels * (int64_t)sizeof(struct norm_kept_sums);
}

static int64_t workspace(const struct wd_problem *problem)
{
    int64_t bytes = wd_norm_groups_any(problem)->workspace(problem);
    struct work w;
    return see(&w, problem) ? wd_most(found_bytes(problem, &w), bytes) : bytes;
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
    bn->dy = wd_norm_data(call, p.dy);
    bn->scale = (struct bn_param){wd_norm_data(call, p.scale), 1};
    bn->bias = (struct bn_param){wd_norm_data(call, p.bias), 1};
    bn->mean = (struct bn_param){wd_norm_data(call, p.mean), 1};
    bn->var = (struct bn_param){wd_norm_data(call, p.inv_std), 1};
    if (is_backward(&call->problem)) {
        a.dscale = wd_norm_param(call, p.dscale);
        a.dbias = wd_norm_param(call, p.dbias);
        a.found = found_bytes(&call->problem, w) > 0 ? call->workspace : NULL;
        a.found_rows = a.found ? (uint32_t)found_rows(w) : 0;
    } else {
        int epsilon = is_inference(&call->problem) ? NORM_INFER_EPSILON : NORM_TRAIN_EPSILON;
        bn->epsilon = wd_call_view(call, epsilon).value;
    }
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
    while (a.share_bits < SHARE_BITS && (2 << a.share_bits) * w->cut.items <= w->cut.threads)
        ++a.share_bits;
    a.sets = (uint32_t)sets_of(w);
    while (a.set_bits < SET_BITS && (2 << a.set_bits) * a.sets <= w->cut.threads) ++a.set_bits;
    a.inv_set = 1.0 / ((double)w->shape.each * (double)s->outer);
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
    const struct norm_groups_shape *s = &w->shape;
    bool backward = is_backward(&call->problem);
    int64_t bytes = w->cut.space.total * s->size;
    if (!wd_norm_aligned(a.bn.x) || !wd_norm_aligned(a.bn.y) ||
        (backward && !wd_norm_aligned(a.bn.dy))) {
        return wd_norm_groups_any(&call->problem)->emit(call, queue);
    }
    for (int64_t n = 0; n < s->samples; n += w->at_launch) {
        struct wd_bn_grid_cut c = w->cut;
        struct bn_grid_args one = a;
        one.samples = (uint32_t)wd_least(w->at_launch, s->samples - n);
        one.at_once = (uint32_t)c.samples;
        /* of what a turn asks for ahead, later parts are fewer than waits count with */
        if (one.samples > one.at_once && one.parts < BN_GRID_AHEAD) one.shallow = 1;
        one.bn.x = (const char *)a.bn.x + n * bytes;
        one.bn.y = (char *)a.bn.y + n * bytes;
        one.bn.mean.data = behind(a.bn.mean.data, n * s->groups * (int64_t)sizeof(float));
        one.bn.var.data = behind(a.bn.var.data, n * s->groups * (int64_t)sizeof(float));
        c.groups = c.groups / c.samples * wd_least(c.samples, s->samples - n);
        if (backward) {
            one.bn.dy = (const char *)a.bn.dy + n * bytes;
            WD_TRY(wd_bn_grid_back_samples(queue, &c, &one, type));
        } else {
            WD_TRY(wd_bn_grid_train_samples(queue, &c, &one, type));
        }
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

const struct wd_engine wd_engine_norm_backward_samples = {
    .name = "norm_backward_samples",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};

const struct wd_engine wd_engine_norm_inference_samples = {
    .name = "norm_inference_samples",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};
