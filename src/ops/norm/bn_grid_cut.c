/* SPDX-License-Identifier: Apache-2.0
 *
 * See bn_grid_cut.h. No state. */
#include "ops/norm/bn_grid_cut.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"

enum {
    TYPES = 4,
    ROUNDS_PAY = 4, /* of a block, for one more in the group */
    CLUSTER_MOST = 8,
    BLOCK_RESERVED = 1024, /* bytes of shared memory that a block costs besides its own */
    APART = 8,             /* words from counter to counter (gpu/device/grid.cuh) */
    SUM_BYTES = 16,        /* of an item of a block */
};

static bool is_training(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_BN_TRAINING;
}

static int64_t gcd(int64_t a, int64_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/* Of `units` side by side, how many of the threads have one. */
static int64_t busy(int64_t units)
{
    return BN_GRID_THREADS / units * units;
}

/* The columns of a group of single elements: so many that what a block reads of the others' sums, a
 * number of columns and of blocks, is the same for all shapes. */
static int64_t columns_of(int64_t params)
{
    int64_t columns = 8 * BN_RUN;
    while (columns < BN_GRID_COLUMNS && 4 * columns * columns <= 64 * params) columns *= 2;
    return wd_least(columns, params);
}

/* The row of a plane that is too large for one: a part of it that occupies most threads. */
static int64_t part_of(int64_t plane, int64_t unit)
{
    int64_t best = 0;
    for (int64_t width = BN_RUN; width <= plane && width / unit <= BN_GRID_THREADS;
         width += BN_RUN) {
        if (plane % width == 0 && (best == 0 || busy(width / unit) >= busy(best / unit))) {
            best = width;
        }
    }
    return best;
}

/* The parameters of a group of small planes: units are whole ones, and most threads have one. */
static int64_t planes_of(int64_t plane, int64_t unit)
{
    int64_t least = BN_RUN / gcd(plane, BN_RUN);
    int64_t best = least;
    for (int64_t n = least; n * plane <= BN_GRID_COLUMNS; n += least) {
        if (busy(n * plane / unit) >= busy(best * plane / unit)) best = n;
    }
    return best;
}

/* How rows and groups lie. False where they would be too wide, or would not begin at units. */
static bool lay(struct wd_bn_grid_cut *c)
{
    const struct wd_bn_gpu_space *s = &c->space;
    int64_t inner = s->params == 1 ? 1 : s->inner;
    int64_t own = s->params * inner;
    c->pitch = own * (BN_RUN / gcd(own, BN_RUN));
    c->plane = 1;
    c->span = inner;
    c->width = c->pitch;
    c->items = s->params;
    if (c->pitch == own && inner == 1) {
        c->items = c->width = columns_of(own);
    } else if (c->pitch == own && inner <= BN_GRID_COLUMNS) {
        c->items = wd_least(planes_of(inner, c->unit), s->params);
        c->width = c->items * inner;
    } else if (inner > BN_GRID_COLUMNS) {
        if (inner % BN_RUN != 0) return false;
        c->width = c->span = part_of(inner, c->unit);
        c->plane = inner / c->width;
        c->items = 1;
    }
    c->groups = wd_ceil_div(s->params, c->items);
    c->rows = s->total / c->pitch * c->plane;
    return c->items == 1 ? c->width / c->unit <= BN_GRID_THREADS : c->width <= BN_GRID_COLUMNS;
}

/* Blocks of so many threads, `blocks` a group. Answers whether all of x is kept. */
static bool share(struct wd_bn_grid_cut *c, int64_t threads, int64_t blocks, int64_t room)
{
    c->threads = threads;
    c->lanes = threads / (c->width / c->unit);
    if (c->lanes < 1) return false;
    c->blocks = blocks;
    c->rounds = wd_most(wd_ceil_div(c->rows, c->lanes * blocks), 1);
    c->kept =
        wd_least((room - BN_GRID_AREA - c->items * SUM_BYTES) / (threads * c->bytes), c->rounds);
    c->shared = BN_GRID_AREA + c->kept * threads * c->bytes + c->items * SUM_BYTES;
    return c->kept == c->rounds;
}

static bool spread(struct wd_bn_grid_cut *c, const struct wd_device *device)
{
    /* a thread works out what follows for a column */
    bool two = c->items == 1 || c->width <= BN_GRID_THREADS / 2;
    int64_t threads = BN_GRID_THREADS / (two ? 2 : 1);
    int64_t room =
        two ? device->shared_per_processor / 2 - BLOCK_RESERVED : device->shared_per_block;
    int64_t most = device->cooperative ? CLUSTER_MOST : 1;
    int64_t wanted = wd_ceil_div(c->rows * c->width / c->unit, BN_GRID_THREADS * ROUNDS_PAY);
    int64_t meeting = device->grids_meet ? device->multiprocessors / c->groups : 0;
    int64_t blocks = 1;
    c->meets = false;
    /* the smallest cluster that keeps everything, two blocks a processor if they may be small; more of them where the chip
     * has room and they have work */
    while (blocks < most && !share(c, threads, blocks, room)) blocks *= 2;
    while (blocks < most && blocks < wanted && c->groups * blocks * 2 <= device->multiprocessors) {
        blocks *= 2;
    }
    if (share(c, threads, blocks, room) &&
        (c->groups * blocks >= device->multiprocessors || wanted <= most || meeting <= most)) {
        return true;
    }
    if (meeting > 1) {
        c->meets = true;
        blocks = wd_clamp(wanted, 1, meeting);
        share(c, BN_GRID_THREADS, blocks, device->shared_per_block);
        blocks = wd_most(wd_ceil_div(c->rows, c->lanes * c->rounds), 1);
        share(c, BN_GRID_THREADS, blocks, device->shared_per_block);
        return c->lanes > 0;
    }
    share(c, BN_GRID_THREADS, most, device->shared_per_block);
    return c->lanes > 0;
}

static bool cut(struct wd_bn_grid_cut *c, const struct wd_problem *problem)
{
    const struct wd_bn_gpu_space *s = &c->space;
    int64_t size = wd_dtype_bytes(wd_slot(problem->graph, problem->node, 0)->dtype);
    c->unit = BN_GRID_UNIT / size;
    c->bytes = BN_GRID_UNIT * (is_training(problem) ? 1 : 2);
    return lay(c) && c->rows <= INT32_MAX / 2 && s->total / c->unit <= INT32_MAX &&
           s->params <= INT32_MAX && spread(c, problem->device) &&
           c->groups * c->blocks <= INT32_MAX;
}

bool wd_bn_grid_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_bn_grid_cut c;
    if (!wd_bn_gpu_match(problem, &c.space, true, reason)) return false;
    WD_NEED(is_training(problem) ||
                wd_slot(problem->graph, problem->node, WD_BN_GRAD_SAVED_MEAN) != NULL,
            reason, NOT_SUPPORTED, "the statistics were not saved");
    WD_NEED(cut(&c, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld parameters of runs of %lld elements: rows of them have more than %d columns, or "
            "planes are no multiple of %d",
            (long long)c.space.params, (long long)c.space.inner, BN_GRID_COLUMNS, BN_RUN);
    return true;
}

/* With room for rounding up to where two doubles may lie. */
int64_t wd_bn_grid_workspace(const struct wd_problem *problem)
{
    struct wd_bn_grid_cut c;
    wd_bn_gpu_see(&c.space, problem);
    cut(&c, problem);
    return c.meets && c.blocks > 1 ? c.groups * c.blocks * c.items * SUM_BYTES + SUM_BYTES : 0;
}

cudnnStatus_t wd_bn_grid_emit(const struct wd_call *call, struct wd_queue *queue,
                              struct wd_kernel_row *rows)
{
    const struct wd_problem *problem = &call->problem;
    struct bn_grid_args a;
    struct wd_kernel_row *row;
    struct wd_bn_grid_cut c;
    void *counters = NULL;
    int64_t runs;
    memset(&a, 0, sizeof a);
    wd_bn_gpu_see(&c.space, problem);
    cut(&c, problem);
    a.bn = is_training(problem) ? wd_bn_gpu_training(call, &c.space, queue->device)
                                : wd_bn_gpu_backward(call, &c.space, queue->device);
    a.sums = (double *)(((uintptr_t)call->workspace + SUM_BYTES - 1) / SUM_BYTES * SUM_BYTES);
    runs = c.width / c.unit;
    a.pitch = (uint32_t)(c.pitch / c.unit);
    a.width = (uint32_t)runs;
    a.stride = (uint32_t)((c.plane > 1 ? c.space.inner : c.width) / c.unit);
    a.units = (uint32_t)(c.space.total / c.unit);
    a.blends = a.bn.wide_alpha != 1.0 || a.bn.wide_beta != 0.0;
    a.clips = a.bn.keeps_nan || a.bn.wide_high < INFINITY;
    a.by_plane = wd_fastdiv_of((uint32_t)c.plane);
    a.rows = (uint32_t)c.rows;
    a.runs = (uint32_t)runs;
    a.lanes = (uint32_t)c.lanes;
    a.blocks = (uint32_t)c.blocks;
    a.rounds = (uint32_t)c.rounds;
    a.kept = (uint32_t)c.kept;
    a.items = (uint32_t)c.items;
    a.span = (uint32_t)c.span;
    a.copies = (uint32_t)(c.width / (c.items * c.span));
    a.together = (uint32_t)wd_most(BN_GRID_AREA / (c.width * SUM_BYTES), 1);
    a.half_warp = runs < 32 && (runs & (runs - 1)) == 0 ? (uint32_t)runs : 32;
    a.shown = (uint32_t)(c.shared - c.items * SUM_BYTES);
    a.inv_terms = 1.0 / (double)a.bn.terms;
    a.inv_less = 1.0 / (double)wd_most(a.bn.terms - 1, 1);
    row = &rows[(a.bn.aligned ? 0 : TYPES) + wd_bn_gpu_type(problem)];
    if (!c.meets) {
        return wd_emit_cluster_kernel(queue, row, c.groups * c.blocks, (uint32_t)c.threads,
                                      a.blocks, (uint32_t)c.shared, &a);
    }
    WD_TRY(queue->ops->counters(queue, &counters));
    a.counters = counters;
    return wd_emit_meeting_kernel(queue, row, c.groups * c.blocks, (uint32_t)c.threads,
                                  (uint32_t)c.shared, &a);
}
