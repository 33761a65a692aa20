/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax on the GPU over long rows of much memory, forward; neighbours of a row are
 * neighbours in memory. Blocks stay and have row after row, each its part, several on their way at
 * once (softmax_ring.cu); the blocks of a row tell each other in global memory, so that it is read
 * once whatever its length. The cuts depend on shape, type and device alone. */
#include "base/sizes.h"
#include "ops/softmax/softmax_gpu.h"
#include "ops/softmax/softmax_ring_args.h"

#define WD_KERNELS_MODULE softmax_ring
#define WD_KERNELS_ROWS "ops/softmax/softmax_ring_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = SOFTMAX_WARP,
    TYPE_F32 = 0,           /* place among the four types */
    SHARED_FIXED = 3 << 10, /* bound of a block's own and of the system's shared memory */
    /* Rows that clusters hold, but so that nothing else is on its way: 62 us for 64 rows of 1 MiB, 50 by
     * a ring. Longer ones are read twice: 52 us for 16 rows of 4 MB, 60 by a ring. */
    ROW_BYTES_MIN = 700 << 10,
    ROW_BYTES_MAX = 1500 << 10,
    BYTES_MIN = 48 << 20,  /* of a tensor: below, there are too few rows to be in turn */
    TURN_BYTES = 10 << 10, /* what a turn costs beyond its bytes, in bytes */
    TOLD_BYTES = 32 << 10, /* what a turn takes in a team at least: to be told and to tell */
    COUNTERS = WD_COUNTERS_BYTES / 32, /* a sector each */
    THREAD_RUNS = 4, /* of a turn: it costs a thread some 200 instructions besides */
    THREADS_FEW = 96,
};

/* How rows are dealt out; teams is 0 where that does not go. */
struct cut {
    int64_t teams;
    int64_t blocks; /* of a team */
    int64_t runs;   /* of a block's part */
    int64_t slots;
};

/* Runs of the longest row that starts anywhere, or of all rows where each is whole runs. */
static int64_t runs_of(const struct wd_softmax_shape *s, bool whole)
{
    if (whole && s->length % s->elements == 0) return s->length / s->elements;
    return (s->length + 2 * s->elements - 2) / s->elements;
}

/* The cut that takes the least time: turns of as many bytes as a block's part has, and what comes on
 * top of them. As if rows began anywhere, so that pointers do not change it. */
static struct cut cut_of(const struct wd_softmax_shape *s, const struct wd_device *device)
{
    struct cut best = {.teams = 0, .blocks = 1};
    int64_t least = INT64_MAX;
    int64_t all = device->multiprocessors;
    int64_t room = device->shared_per_block - SHARED_FIXED;
    for (int64_t blocks = 2; blocks <= all && device->grids_meet; ++blocks) {
        struct cut c = {.blocks = blocks};
        int64_t bytes;
        int64_t time;
        c.runs = wd_ceil_div(runs_of(s, false), blocks);
        bytes = c.runs * SOFTMAX_BYTES;
        c.slots = wd_least(room / bytes, SOFTMAX_RING_SLOTS);
        c.teams = wd_least(all / blocks, s->outer);
        if (c.slots < SOFTMAX_RING_DELAY + 2) continue;
        if (c.teams * SOFTMAX_RING_DELAY > COUNTERS) continue;
        time = wd_most(bytes + TURN_BYTES, TOLD_BYTES) *
               (wd_ceil_div(s->outer, c.teams) + SOFTMAX_RING_DELAY);
        if (time < least) best = c, least = time;
    }
    return best;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_softmax_shape s;
    struct cut c;
    if (!wd_softmax_gpu_match(problem, &s, reason)) return false;
    WD_NEED(s.type == TYPE_F32, reason, NOT_SUPPORTED_DATA_TYPE, "fp32 is taken alone");
    WD_NEED(s.inner == 1, reason, NOT_SUPPORTED_LAYOUT,
            "neighbours of a row are %lld elements apart", (long long)s.inner);
    WD_NEED(s.length * s.bytes >= ROW_BYTES_MIN && s.length * s.bytes <= ROW_BYTES_MAX &&
                s.total * s.bytes >= BYTES_MIN,
            reason, NOT_SUPPORTED_SHAPE, "%lld rows of %lld elements are no work for a ring",
            (long long)s.outer, (long long)s.length);
    c = cut_of(&s, problem->device);
    WD_NEED(c.teams > 0, reason, NOT_SUPPORTED_SHAPE,
            "several rows of %lld elements are more than the device's shared memory",
            (long long)s.length);
    return true;
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct wd_softmax_shape s;
    wd_softmax_see(&s, wd_slot(problem->graph, problem->node, 0), problem->node->attr.softmax.mode);
    *(struct cut *)prepared = cut_of(&s, problem->device);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_softmax_shape s;
    struct cut c;
    wd_softmax_see(&s, wd_slot(problem->graph, problem->node, 0), problem->node->attr.softmax.mode);
    c = cut_of(&s, problem->device);
    return c.teams * c.blocks * SOFTMAX_RING_KEPT * s.pair;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct softmax_ring_args a = {.counters = NULL};
    struct wd_softmax_shape s;
    struct cut own;
    struct cut c = *(const struct cut *)wd_call_prepared(call, prepare, &own);
    bool alike;
    int64_t threads;
    uint32_t shared;
    void *counters = NULL;
    wd_softmax_gpu_args(call, queue->device, &s, &a.rows, &alike);
    if (!alike) a.rows.shift = 0;
    a.rows.runs = wd_ceil_div(runs_of(&s, a.rows.shift == 0), c.blocks);
    a.rows.cluster = (uint32_t)c.blocks;
    a.teams = (uint32_t)c.teams;
    a.slots = (uint32_t)c.slots;
    a.apart = !alike;
    shared = (uint32_t)(c.slots * a.rows.runs * SOFTMAX_BYTES);
    /* and a warp that carries */
    threads = wd_softmax_multiple_up(wd_ceil_div(a.rows.runs, THREAD_RUNS), WARP);
    threads = wd_clamp(threads, THREADS_FEW, SOFTMAX_RING_THREADS - WARP) + WARP;
    WD_TRY(queue->ops->counters(queue, &counters));
    a.counters = counters;
    return wd_emit_meeting_kernel(queue, &kernel_rows[KERNEL_softmax_ring_f32], c.teams * c.blocks,
                                  (uint32_t)threads, shared, &a);
}

const struct wd_engine wd_engine_softmax_forward_ring = {
    .name = "softmax_forward_ring",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct cut),
    .emit = emit,
};
