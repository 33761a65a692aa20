/* SPDX-License-Identifier: Apache-2.0
 *
 * See bn_grid_cut.h. No state. */
#include "ops/norm/bn_grid_cut.h"

#include <string.h>

#include "base/board.h"
#include "base/sizes.h"

enum {
    TYPES = 4,
    NARROW_TYPES = 3, /* all but fp64 */
    WARP = 32,
    HALF = BN_GRID_THREADS / 2, /* of which a processor has two blocks */
    ROUNDS_PAY = 2,             /* of a block, for one more in the group */
    CLUSTER_MOST = 8,
    NARROWEST = 16,          /* columns */
    BLOCK_RESERVED = 1024,   /* bytes of shared memory that a block costs besides its own */
    APART = 8,               /* words from counter to counter (gpu/device/grid.cuh) */
    CLUSTER_HOLDS = 7 << 18, /* bytes of a channel, of bn_cluster */
    SUM_BYTES = 16,          /* of an item of a block */
    MASK_BYTES = 4,          /* of a thread, a word around its bits */
    LED_ROWS = 16,           /* at least: pivots come from rows behind the first */
};

/* Of `units` side by side, how many of half the threads have one. */
static int64_t busy(int64_t units)
{
    return units > 0 ? HALF / units * units : 0;
}

/* The columns of a group of single elements: so many that what a block reads of the others' sums, a
 * number of columns and of blocks, is the same for all shapes. */
static int64_t columns_of(int64_t params)
{
    int64_t columns = 8 * BN_RUN;
    while (columns < HALF && 4 * columns * columns <= 64 * params) columns *= 2;
    return wd_least(columns, params);
}

/* The row of a plane that is too large for one: a part of it that occupies most threads. */
static int64_t part_of(int64_t plane, int64_t unit)
{
    int64_t best = 0;
    for (int64_t width = BN_RUN; width <= plane && width / unit <= HALF; width += BN_RUN) {
        if (plane % width == 0 && (best == 0 || busy(width / unit) >= busy(best / unit))) {
            best = width;
        }
    }
    return best;
}

/* The parameters of a group of small planes: units are whole ones, and most threads have one. */
static int64_t planes_of(int64_t plane, int64_t unit)
{
    int64_t least = BN_RUN / wd_gcd(plane, BN_RUN);
    int64_t best = least;
    for (int64_t n = least; n * plane <= BN_GRID_COLUMNS; n += least) {
        if (busy(n * plane / unit) >= busy(best * plane / unit)) best = n;
    }
    return best;
}

/* The blocks of a group that have work. */
static int64_t wanted(const struct wd_bn_grid_cut *c, int64_t threads)
{
    return wd_ceil_div(c->rows * (c->width / c->unit), threads * ROUNDS_PAY);
}

/* Little goes by narrow groups, where the chip has room for clusters of them. Measured on an H200,
 * fp16 2x64x28x28: 64 columns 8.2 us, 32 columns 6.9, 16 columns 6.1. */
static void narrow(struct wd_bn_grid_cut *c, const struct wd_device *device)
{
    struct wd_bn_grid_cut own = *c;
    while (own.width > NARROWEST && own.width % (2 * BN_RUN) == 0 && wanted(&own, HALF) > 1) {
        struct wd_bn_grid_cut half = own;
        half.items = half.width = own.width / 2;
        half.groups = wd_ceil_div(half.space.params, half.items);
        if (half.groups * wd_least(wanted(&half, HALF), CLUSTER_MOST) > device->multiprocessors) {
            break;
        }
        own = half;
    }
    if (wanted(&own, HALF) <= CLUSTER_MOST) *c = own;
}

/* How rows and groups lie. False where they would be too wide, or would not begin at units. */
static bool lay(struct wd_bn_grid_cut *c)
{
    const struct wd_bn_gpu_space *s = &c->space;
    int64_t inner = s->params == 1 ? 1 : s->inner;
    int64_t own = s->params * inner;
    c->pitch = own * (BN_RUN / wd_gcd(own, BN_RUN));
    c->plane = 1;
    c->span = inner;
    c->width = c->pitch;
    c->items = s->params;
    if (c->pitch == own && inner == 1) {
        c->items = c->width = c->whole ? own : c->columns > 0 ? c->columns : columns_of(own);
    } else if (c->pitch == own && inner <= BN_GRID_COLUMNS) {
        c->items = wd_least(planes_of(inner, c->unit), s->params);
        c->width = c->items * inner;
    } else if (inner > BN_GRID_COLUMNS) {
        if (inner % BN_RUN != 0) return false;
        c->width = c->span = part_of(inner, c->unit);
        c->plane = inner / c->width;
        c->items = 1;
    }
    c->groups = wd_ceil_div(s->params, c->items) * c->samples;
    c->rows = s->total / c->pitch * c->plane;
    return c->items == 1 ? c->width / c->unit <= HALF : c->width <= BN_GRID_COLUMNS;
}

int64_t wd_bn_grid_round_bytes(const struct wd_bn_grid_cut *c)
{
    return c->arrays * c->slots * BN_GRID_UNIT + c->masks * c->threads;
}

/* The rings, with places for so many units side by side: z's as long as it has to be ahead, and half of the
 * room at most. */
static void lay_rings(struct wd_bn_grid_cut *c, int64_t slots)
{
    int64_t each = BN_GRID_EACH(c->arrays);
    int64_t all = wd_ceil_div(c->rounds, each);
    int64_t beside = slots * BN_GRID_UNIT * each;
    int64_t part;
    c->slots = slots;
    part = wd_bn_grid_round_bytes(c) * each;
    c->beside = c->adds ? wd_least(wd_least(BN_GRID_AHEAD, all), c->room / 2 / beside) : 0;
    c->parts = wd_least((c->room - c->beside * beside) / part, all);
    c->kept = wd_least(c->parts * each, c->rounds);
    c->shared = BN_GRID_AREA + c->parts * part + c->beside * beside + c->items * SUM_BYTES;
}

/* Blocks of so many threads, `blocks` a group. Answers whether all of x is kept. */
static bool share(struct wd_bn_grid_cut *c, int64_t threads, int64_t blocks, int64_t room)
{
    c->threads = threads;
    c->lanes = threads / wd_most(c->width / c->unit, 1);
    if (c->lanes < 1) return false;
    c->blocks = blocks;
    c->rounds = wd_most(wd_ceil_div(c->rows, c->lanes * blocks), 1);
    c->room = room - BN_GRID_AREA - c->items * SUM_BYTES;
    lay_rings(c, threads);
    return c->kept == c->rounds;
}

/* Where half of the columns of a group fit a block of half a processor, but not all, and groups are many: half of
 * them, so that no blocks wait for one another. Measured on an H200, training per-activation fp16 256x64x56x56:
 * 84.4 us by clusters of two blocks, 74.7 so. */
static void halve(struct wd_bn_grid_cut *c, const struct wd_device *device)
{
    struct wd_bn_grid_cut all = *c;
    struct wd_bn_grid_cut half = *c;
    int64_t room = device->shared_per_processor / 2 - BLOCK_RESERVED;
    if (c->width < HALF || c->groups < 2 * device->multiprocessors) return;
    half.items = half.width = c->width / 2;
    if (share(&all, HALF, 1, room) || !share(&half, HALF, 1, room)) return;
    c->items = c->width = half.width;
    c->groups = wd_ceil_div(c->space.params, c->items) * c->samples;
}

/* What shared memory does not keep, registers may: the first rounds, which all threads have. */
static void hold(struct wd_bn_grid_cut *c)
{
    int64_t slices = c->lanes * c->blocks;
    if (c->holds == 0 || c->kept >= c->rounds || c->rows / slices <= c->holds) return;
    c->held = c->holds;
    c->rows -= c->held * slices;
    c->rounds = wd_ceil_div(c->rows, slices);
    lay_rings(c, c->threads);
}

/* The threads of a block that has one of each column: all, but of little no more than that takes. What a warp
 * does besides its elements is most of it then. */
static int64_t threads_of(const struct wd_bn_grid_cut *c, const struct wd_device *device)
{
    int64_t least = wd_ceil_div(c->width, WARP) * WARP;
    int64_t blocks = wanted(c, least);
    bool little = device->cooperative && blocks <= CLUSTER_MOST &&
                  c->groups * blocks <= device->multiprocessors;
    return little ? least : BN_GRID_THREADS;
}

static bool spread(struct wd_bn_grid_cut *c, const struct wd_device *device)
{
    /* a thread works out what follows for a column */
    bool two = c->items == 1 || c->width <= HALF;
    int64_t threads = two ? HALF : threads_of(c, device);
    int64_t room =
        two ? device->shared_per_processor / 2 - BLOCK_RESERVED : device->shared_per_block;
    int64_t most = device->cooperative ? CLUSTER_MOST : 1;
    bool clusters = c->columns == 0;
    int64_t worth = wanted(c, threads);
    int64_t meeting = device->grids_meet ? device->multiprocessors / c->groups : 0;
    int64_t blocks = 1;
    c->meets = false;
    /* the smallest cluster that keeps everything, two blocks a processor if they may be small; more
     * blocks where the chip has room and they have work */
    while (clusters && blocks < most && !share(c, threads, blocks, room)) blocks *= 2;
    while (clusters && blocks < most && blocks < worth &&
           c->groups * blocks * 2 <= device->multiprocessors) {
        blocks *= 2;
    }
    if (clusters && share(c, threads, blocks, room) &&
        (c->groups * blocks >= device->multiprocessors || worth <= most || meeting <= most)) {
        return true;
    }
    if (meeting > 1) {
        c->meets = true;
        blocks = wd_clamp(wanted(c, BN_GRID_THREADS), 1, meeting);
        share(c, BN_GRID_THREADS, blocks, device->shared_per_block);
        blocks = wd_most(wd_ceil_div(c->rows, c->lanes * c->rounds), 1);
        share(c, BN_GRID_THREADS, blocks, device->shared_per_block);
        hold(c);
        return c->lanes > 0;
    }
    /* most of it, where processors have two blocks, or all of what one block holds */
    share(c, threads, most, room);
    if (two && 4 * c->kept >= 3 * c->rounds) return true;
    share(c, BN_GRID_THREADS, most, device->shared_per_block);
    return c->lanes > 0;
}

bool wd_bn_grid_cut(struct wd_bn_grid_cut *c, int64_t size, int arrays,
                    const struct wd_device *device)
{
    const struct wd_bn_gpu_space *s = &c->space;
    c->unit = BN_GRID_UNIT / size;
    c->arrays = arrays;
    c->held = 0;
    if (!lay(c)) return false;
    if (c->span == 1 && c->items == c->width && device->cooperative && !c->whole &&
        c->columns == 0) {
        narrow(c, device);
        halve(c, device);
    }
    return c->rows <= INT32_MAX / 2 && s->total / c->unit <= INT32_MAX && s->params <= INT32_MAX &&
           spread(c, device) && c->groups * c->blocks <= INT32_MAX;
}

static bool is_training(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_BN_TRAINING;
}

static bool has(const struct wd_problem *problem, int slot)
{
    return wd_slot(problem->graph, problem->node, slot) != NULL;
}

static bool cut(struct wd_bn_grid_cut *c, const struct wd_problem *problem, bool whole)
{
    int64_t size = wd_dtype_bytes(wd_slot(problem->graph, problem->node, 0)->dtype);
    c->whole = whole;
    c->columns = 0;
    c->samples = 1;
    c->holds = 0;
    c->adds = is_training(problem) && has(problem, WD_BN_TRAIN_Z);
    c->masks = !is_training(problem) && has(problem, WD_BN_GRAD_RESERVE) ? MASK_BYTES : 0;
    if (!wd_bn_grid_cut(c, size, is_training(problem) ? 1 : 2, problem->device)) return false;
    if (wd_bn_grid_has_board(c)) {
        c->holds = BN_GRID_HELD(c->arrays, false);
        hold(c);
    }
    return true;
}

/* Whether another engine is not faster. Measured on an H200, us:
 * - small planes of which bn_cluster's clusters hold a channel, and there are enough of them: training fp32
 *   64x1024x14x14 45.4 where it takes 40.0 (64x512x28x28 74.6 for 74.2, 64x256x56x56 146 for 150);
 * - backward of large planes with a reserve space, fp32 64x256x56x56 327 to 342: bn_vector. */
static bool pays(const struct wd_bn_grid_cut *c, const struct wd_problem *problem)
{
    const struct wd_bn_gpu_space *s = &c->space;
    bool training = is_training(problem);
    if (c->unit == 2 || s->inner == 1 || s->params == 1) return true;
    if (training && !has(problem, WD_BN_TRAIN_RESERVE)) {
        return s->inner > BN_GRID_COLUMNS || s->inner % 4 != 0 || !problem->device->cooperative ||
               s->params < problem->device->multiprocessors ||
               s->outer * s->inner / c->unit * BN_GRID_UNIT > CLUSTER_HOLDS;
    }
    if (!training && c->plane == 1 && wd_bn_cluster_slots(problem, s) > 0) return false;
    return training || c->plane == 1 || !has(problem, WD_BN_GRAD_RESERVE) ||
           s->total / c->unit * BN_GRID_UNIT < BN_LARGE;
}

static const struct wd_engine *other(const struct wd_problem *problem)
{
    return is_training(problem) ? &wd_engine_bn_training_vector : &wd_engine_bn_backward_vector;
}

bool wd_bn_grid_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_bn_grid_cut c;
    if (!wd_bn_gpu_match(problem, &c.space, true, reason)) return false;
    WD_NEED(is_training(problem) || has(problem, WD_BN_GRAD_SAVED_MEAN), reason, NOT_SUPPORTED,
            "the statistics were not saved");
    /* which has pointers that are misaligned otherwise */
    if (!other(problem)->match(problem, reason)) return false;
    WD_NEED(cut(&c, problem, false), reason, NOT_SUPPORTED_SHAPE,
            "%lld parameters of runs of %lld elements: rows of them have more than %d columns, or "
            "planes are no multiple of %d",
            (long long)c.space.params, (long long)c.space.inner, BN_GRID_COLUMNS, BN_RUN);
    WD_NEED(pays(&c, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld parameters of runs of %lld elements are faster otherwise",
            (long long)c.space.params, (long long)c.space.inner);
    return true;
}

/* Whether blocks that meet show each other sums on the board, not in the workspace and by a meeting: with channels
 * last. Measured on an H200, us: training fp16 256x256x14x14 24.4 is 23.0, 63x61x111x113 off the boundaries 84.4 is
 * 78.8, backward 124.8 is 121.1; but with z 1x64x1x65536 14.2 is 15.4, and planes gain nothing. */
bool wd_bn_grid_has_board(const struct wd_bn_grid_cut *c)
{
    return c->meets && c->blocks > 1 && c->unit > 2 && c->space.inner == 1 && c->space.params > 1 &&
           !c->adds && c->groups * c->blocks * c->items <= WD_BOARD_WORDS;
}

int64_t wd_bn_grid_sums_bytes(const struct wd_bn_grid_cut *c)
{
    if (wd_bn_grid_has_board(c)) return 0;
    return c->meets && c->blocks > 1 ? c->groups * c->blocks * c->items * SUM_BYTES + SUM_BYTES : 0;
}

int64_t wd_bn_grid_workspace(const struct wd_problem *problem)
{
    struct wd_bn_grid_cut c;
    int64_t bytes = other(problem)->workspace(problem);
    wd_bn_gpu_see(&c.space, problem);
    for (int whole = 0; whole < 2; ++whole) {
        if (cut(&c, problem, whole)) bytes = wd_most(wd_bn_grid_sums_bytes(&c), bytes);
    }
    return bytes;
}

static bool is_single(const struct wd_bn_grid_cut *c)
{
    return c->span == 1 && c->items == c->width;
}

static void move_back(const void **tensor, int64_t bytes)
{
    if (*tensor) *tensor = (const char *)*tensor - bytes;
}

/* Tensors that all lie off the boundaries by as much begin there: the units of rows are whole ones then. Bits of a
 * forward call need those of the next unit, whose input must not be overwritten before. False where that cannot be. */
static bool lead(struct wd_bn_grid_cut *c, struct bn_grid_args *a, const struct wd_problem *problem)
{
    struct bn_vector_args *bn = &a->bn;
    bool bits = is_training(problem) && bn->reserve;
    int64_t bytes = bn->lead * (BN_GRID_UNIT / c->unit);
    const void *y = bn->y, *dz = bn->dz;
    if (bn->lead == 0 || c->plane > 1 || c->unit == 2) return false;
    if (c->width < c->pitch && !is_single(c)) return false;
    if (c->width < c->pitch && bits && !cut(c, problem, true)) return false;
    if (bits && (bn->x == bn->y || bn->z == bn->y)) return false;
    a->copying = bits ? (uint32_t)(BN_RUN / c->unit) : 0;
    c->rows = (c->space.total + bn->lead) / c->pitch;
    c->lanes = wd_least(c->lanes, c->threads / WARP * (WARP - a->copying) / (c->width / c->unit));
    if (c->rows < LED_ROWS || c->lanes < 1) return false;
    c->rounds = wd_ceil_div(c->rows, c->lanes * c->blocks);
    c->masks *= 2; /* bits of a unit may be in two words */
    lay_rings(c, c->threads);
    c->held = 0;
    if (c->holds > 0) c->holds = BN_GRID_HELD(c->arrays, true);
    hold(c);
    bn->total += bn->lead;
    move_back(&bn->x, bytes), move_back(&bn->dy, bytes), move_back(&bn->z, bytes);
    move_back(&y, bytes), move_back(&dz, bytes);
    bn->y = (void *)y, bn->dz = (void *)dz;
    bn->aligned = true;
    return true;
}

void wd_bn_grid_prepare(const struct wd_problem *problem, void *prepared)
{
    struct wd_bn_grid_work *w = prepared;
    memset(w, 0, sizeof *w);
    wd_bn_gpu_see(&w->cut.space, problem);
    if (!cut(&w->cut, problem, false)) {
        w->cut.groups = 0;
        return;
    }
    w->args.bn = wd_bn_gpu_args(problem, &w->cut.space);
    wd_bn_grid_say(&w->args, &w->cut);
}

static cudnnStatus_t launch_meeting(struct wd_queue *queue, const struct wd_bn_grid_cut *c,
                                    struct bn_grid_args *a, struct wd_kernel_row *row)
{
    void *counters = NULL;
    WD_TRY(queue->ops->counters(queue, &counters));
    a->counters = counters;
    a->board = (uint32_t *)counters + WD_COUNTERS_BYTES / sizeof(uint32_t);
    return wd_emit_meeting_kernel(queue, row, c->groups * c->blocks, (uint32_t)c->threads,
                                  (uint32_t)c->shared, a);
}

cudnnStatus_t wd_bn_grid_launch_board(struct wd_queue *queue, const struct wd_bn_grid_cut *c,
                                      struct bn_grid_args *a, struct wd_kernel_row *row)
{
    a->blends = a->bn.wide_alpha != 1.0 || a->bn.wide_beta != 0.0;
    return launch_meeting(queue, c, a, row);
}

/* Whether kernels need nothing besides sums and outputs of them. */
static bool is_plain(const struct bn_grid_args *a)
{
    return !a->bn.activates && !a->bn.reserve && !a->bn.dz && !a->blends;
}

cudnnStatus_t wd_bn_grid_launch(struct wd_queue *queue, const struct wd_bn_grid_cut *c,
                                struct bn_grid_args *a, struct wd_kernel_row *rows, int type)
{
    struct wd_kernel_row *row = &rows[a->bn.lead > 0 ? TYPES + type : type];
    a->blends = a->bn.wide_alpha != 1.0 || a->bn.wide_beta != 0.0;
    if (!c->meets) {
        return wd_emit_cluster_kernel(queue, row, c->groups * c->blocks, (uint32_t)c->threads,
                                      a->blocks, (uint32_t)c->shared, a);
    }
    if (wd_bn_grid_has_board(c)) {
        row = &rows[TYPES + NARROW_TYPES + type];
        if (a->bn.lead > 0) row += NARROW_TYPES;
        else if (is_plain(a)) row += 2 * NARROW_TYPES;
    }
    return launch_meeting(queue, c, a, row);
}

double *wd_bn_grid_sums(void *workspace)
{
    return (double *)(((uintptr_t)workspace + SUM_BYTES - 1) / SUM_BYTES * SUM_BYTES);
}

cudnnStatus_t wd_bn_grid_emit(const struct wd_call *call, struct wd_queue *queue,
                              struct wd_kernel_row *rows)
{
    const struct wd_problem *problem = &call->problem;
    int type = wd_bn_gpu_type(problem);
    struct wd_bn_grid_work own;
    const struct wd_bn_grid_work *w = wd_call_prepared(call, wd_bn_grid_prepare, &own);
    struct bn_grid_args a = w->args;
    struct wd_bn_grid_cut c;
    if (w->cut.groups == 0) return CUDNN_STATUS_INTERNAL_ERROR;
    wd_bn_gpu_bind(&a.bn, call);
    a.sums = wd_bn_grid_sums(call->workspace);
    if (a.bn.aligned) return wd_bn_grid_launch(queue, &w->cut, &a, rows, type);
    c = w->cut;
    if (!lead(&c, &a, problem)) return other(problem)->emit(call, queue);
    wd_bn_grid_say(&a, &c);
    return wd_bn_grid_launch(queue, &c, &a, rows, type);
}
