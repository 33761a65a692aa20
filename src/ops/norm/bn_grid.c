/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization by columns (channels last, or one channel) in one kernel whose blocks are all
 * there at once and keep of x, and of dy, as much as their shared memory holds: training, and backward
 * with saved statistics. bn_grid_args.h says how x is cut; the cut depends on its shape and on the
 * device alone. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/bn_gpu.h"
#include "ops/norm/bn_grid_args.h"

#define WD_KERNELS_MODULE bn_grid
#define WD_KERNELS_ROWS "ops/norm/bn_grid_kernels.def"
#include "ops/kernels_host.inc"

enum {
    TYPES = 4,
    COLUMNS_MAX = BN_GRID_THREADS, /* of a group: a thread works out what follows for one of them */
    ROUNDS_PAY = 4,                /* of a block, for one more in the group */
    APART = 8,                     /* words from counter to counter (gpu/device/grid.cuh) */
    SUM_BYTES = 16,                /* of an item of a block */
};

struct cut {
    struct wd_bn_gpu_space space;
    int64_t unit; /* elements */
    int64_t pitch;
    int64_t rows;
    int64_t runs;
    int64_t lanes;
    int64_t groups;
    int64_t blocks; /* of a group */
    int64_t rounds;
    int64_t kept;
    int64_t items;
    int64_t shared; /* bytes */
};

static bool is_training(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_BN_TRAINING;
}

static int64_t gcd(int64_t a, int64_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/* The units of a group's row: so many that what a block reads of the others' sums, a number of columns
 * and of blocks, is the same for all shapes. */
static int64_t runs_of(const struct cut *c)
{
    int64_t columns = 8 * BN_RUN;
    while (columns < c->space.params && columns < COLUMNS_MAX &&
           4 * columns * columns <= 64 * c->space.params) {
        columns *= 2;
    }
    return columns / c->unit;
}

/* False where x does not lie by columns, or has too many of them. */
static bool cut(struct cut *c, const struct wd_problem *problem)
{
    const struct wd_device *device = problem->device;
    const struct wd_bn_gpu_space *s = &c->space;
    int64_t size = wd_dtype_bytes(wd_slot(problem->graph, problem->node, 0)->dtype);
    int64_t round = BN_GRID_THREADS * BN_GRID_UNIT * (is_training(problem) ? 1 : 2);
    int64_t room;
    if (s->inner > 1 && s->params > 1) return false;
    c->unit = BN_GRID_UNIT / size;
    c->pitch = s->params * (BN_RUN / gcd(s->params, BN_RUN));
    c->runs = c->pitch > s->params ? c->pitch / c->unit : wd_least(runs_of(c), s->params / c->unit);
    if (c->runs * c->unit > COLUMNS_MAX) return false;
    c->groups = wd_ceil_div(c->pitch, c->runs * c->unit);
    c->lanes = BN_GRID_THREADS / c->runs;
    c->rows = s->total / c->pitch;
    c->items = wd_least(c->runs * c->unit, s->params);
    room = device->grids_meet ? device->multiprocessors / c->groups : 1;
    if (room < 1 || c->rows > INT32_MAX || s->params > INT32_MAX) return false;
    c->blocks = wd_clamp(wd_ceil_div(c->rows, c->lanes * ROUNDS_PAY), 1, room);
    c->rounds = wd_most(wd_ceil_div(c->rows, c->lanes * c->blocks), 1);
    c->blocks = wd_most(wd_ceil_div(c->rows, c->lanes * c->rounds), 1);
    c->kept = wd_least((device->shared_per_block - BN_GRID_AREA) / round, c->rounds);
    c->shared = BN_GRID_AREA + c->kept * round;
    return true;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct cut c;
    if (!wd_bn_gpu_match(problem, &c.space, true, reason)) return false;
    WD_NEED(is_training(problem) ||
                wd_slot(problem->graph, problem->node, WD_BN_GRAD_SAVED_MEAN) != NULL,
            reason, NOT_SUPPORTED, "the statistics were not saved");
    WD_NEED(cut(&c, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld parameters of runs of %lld elements: needed are single elements, or one "
            "parameter, and "
            "rows that fit %d columns a multiprocessor",
            (long long)c.space.params, (long long)c.space.inner, COLUMNS_MAX);
    return true;
}

/* With room for rounding up to where two doubles may lie. */
static int64_t workspace(const struct wd_problem *problem)
{
    struct cut c;
    wd_bn_gpu_see(&c.space, problem);
    cut(&c, problem);
    return c.blocks > 1 ? c.groups * c.blocks * c.items * SUM_BYTES + SUM_BYTES : 0;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_problem *problem = &call->problem;
    struct bn_grid_args a;
    struct wd_kernel_row *row;
    struct cut c;
    void *counters = NULL;
    memset(&a, 0, sizeof a);
    wd_bn_gpu_see(&c.space, problem);
    cut(&c, problem);
    a.bn = is_training(problem) ? wd_bn_gpu_training(call, &c.space, queue->device)
                                : wd_bn_gpu_backward(call, &c.space, queue->device);
    a.sums = (double *)(((uintptr_t)call->workspace + SUM_BYTES - 1) / SUM_BYTES * SUM_BYTES);
    a.pitch = c.pitch;
    a.rows = (uint32_t)c.rows;
    a.runs = (uint32_t)c.runs;
    a.lanes = (uint32_t)c.lanes;
    a.blocks = (uint32_t)c.blocks;
    a.rounds = (uint32_t)c.rounds;
    a.kept = (uint32_t)c.kept;
    a.items = (uint32_t)c.items;
    a.together = (uint32_t)wd_most(BN_GRID_AREA / (c.runs * c.unit * SUM_BYTES), 1);
    a.half_warp = c.runs < 32 && (c.runs & (c.runs - 1)) == 0 ? (uint32_t)c.runs : 32;
    row = &kernel_rows[(is_training(problem) ? KERNEL_bn_grid_forward_f32
                                             : KERNEL_bn_grid_backward_f32) +
                       wd_bn_gpu_type(problem)];
    if (c.blocks == 1) {
        return wd_emit_kernel(queue, row, c.groups, BN_GRID_THREADS, (uint32_t)c.shared, &a);
    }
    WD_TRY(queue->ops->counters(queue, &counters));
    a.counters = counters;
    return wd_emit_meeting_kernel(queue, row, c.groups * c.blocks, BN_GRID_THREADS,
                                  (uint32_t)c.shared, &a);
}

const struct wd_engine wd_engine_bn_training_grid = {
    .name = "bn_training_grid",
    .op = WD_OP_BN_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_bn_backward_grid = {
    .name = "bn_backward_grid",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
