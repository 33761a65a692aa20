/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization on the GPU in one kernel, where the elements of a parameter lie in runs and fit the
 * registers of a block: training and backward of small images, and of few. */
#include "ops/norm/bn_gpu.h"

#define WD_KERNELS_MODULE bn_chip
#define WD_KERNELS_ROWS "ops/norm/bn_chip_kernels.def"
#include "ops/kernels_host.inc"

enum way { RUNS, ELEMENTS };

enum {
    UNITS_A_THREAD = 4,
    ELEMENTS_A_THREAD = 16,
    BLOCKS_MIN = 32,       /* fewer leave most of the chip idle ... */
    TOTAL_SMALL = 1 << 16, /* ... which counts where there is more to do than this */
    TYPES = 3,
};

/* The cut of a problem: its way, units of a block's parameters, blocks; and the arguments but for pointers and
 * scalars. */
struct chip {
    struct wd_bn_gpu_space space;
    enum way way;
    int64_t units;
    int64_t blocks;
    struct bn_vector_args args;
};

static struct wd_kernel_row *row_of(const struct wd_problem *problem, enum way way)
{
    int first = problem->node->op == WD_OP_BN_TRAINING ? KERNEL_bn_chip_forward_runs_f32
                                                       : KERNEL_bn_chip_backward_runs_f32;
    return &kernel_rows[first + TYPES * (int)way + wd_bn_gpu_type(problem)];
}

static void cut(struct chip *c)
{
    const struct wd_bn_gpu_space *s = &c->space;
    c->blocks = s->params;
    if (s->inner % BN_RUN == 0) {
        c->way = RUNS;
        c->units = s->outer * s->inner / BN_RUN;
    } else {
        c->way = ELEMENTS;
        c->units = s->outer * s->inner;
    }
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    bool training = problem->node->op == WD_OP_BN_TRAINING;
    int reserve = training ? WD_BN_TRAIN_RESERVE : WD_BN_GRAD_RESERVE;
    struct chip c;
    int64_t most;
    if (!wd_bn_gpu_match(problem, &c.space, false, reason)) return false;
    cut(&c);
    WD_NEED(c.space.inner > 1 || c.space.params == 1, reason, NOT_SUPPORTED_LAYOUT,
            "parameters lie side by side");
    most = row_of(problem, c.way)->threads *
           (int64_t)(c.way == ELEMENTS ? ELEMENTS_A_THREAD : UNITS_A_THREAD);
    WD_NEED(c.units <= most, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements or runs a parameter are more than the %lld that a block holds",
            (long long)c.units, (long long)most);
    WD_NEED(c.way != ELEMENTS || !wd_slot(problem->graph, problem->node, reserve), reason,
            NOT_SUPPORTED_SHAPE,
            "planes are no multiple of %d, and share bytes of the reserve space", BN_RUN);
    WD_NEED(c.blocks <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE, "%lld parameters are too many",
            (long long)c.space.params);
    WD_NEED(c.blocks >= BLOCKS_MIN || c.space.total <= TOTAL_SMALL, reason, NOT_SUPPORTED_SHAPE,
            "%lld blocks are too few for %lld elements", (long long)c.blocks,
            (long long)c.space.total);
    return true;
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct chip *c = prepared;
    wd_bn_gpu_see(&c->space, problem);
    cut(c);
    c->args = wd_bn_gpu_args(problem, &c->space);
    c->args.units = (uint32_t)c->units;
    c->args.width = c->space.params;
    c->args.by_plane =
        wd_fastdiv_of((uint32_t)(c->way == RUNS ? c->space.inner / BN_RUN : c->space.inner));
}

cudnnStatus_t wd_bn_chip_emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct chip own;
    const struct chip *c = wd_call_prepared(call, prepare, &own);
    struct bn_vector_args a = c->args;
    struct wd_kernel_row *row = row_of(&call->problem, c->way);
    uint32_t threads = c->units < row->threads ? (uint32_t)(c->units + 31) / 32 * 32 : row->threads;
    wd_bn_gpu_bind(&a, call);
    return wd_emit_kernel(queue, row, c->blocks, threads, 0, &a);
}

const struct wd_engine wd_engine_bn_training_chip = {
    .name = "bn_training_chip",
    .op = WD_OP_BN_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct chip),
    .emit = wd_bn_chip_emit,
};

const struct wd_engine wd_engine_bn_backward_chip = {
    .name = "bn_backward_chip",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct chip),
    .emit = wd_bn_chip_emit,
};
