/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions on the GPU whose innermost dim in memory is reduced: threads, warps, blocks or many
 * blocks share a row of neighbours. reduce_vector_args.h says how x is walked; the cuts depend on
 * shape, type and device alone. */
#include "base/sizes.h"
#include "ops/reduce/reduce_gpu.h"

#define WD_KERNELS_MODULE reduce_rows
#define WD_KERNELS_ROWS "ops/reduce/reduce_rows_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    TYPES = 3,              /* fp32, fp64, those of two bytes */
    LANE_UNITS = 4,         /* runs that a thread has in flight */
    WARP_UNITS = 128,       /* of a row that is never worth a block */
    WARP_UNITS_MANY = 512,  /* likewise where there are many */
    WARP_UNITS_MOST = 2048, /* or very many: warps do not wait for each other */
    SEGMENT_UNITS = 4,      /* of a thread: pay for a segment */
    BLOCKS_FEW = 2,         /* of a processor: with fewer, blocks are smaller */
    THREADS_FEW = 64,
    SHORT_BYTES = 1024,     /* of a row that goes through shared memory */
    SHORT_TERMS = 16,       /* of a thread, about */
    SHORT_PICKED = 32,      /* likewise, where two are picked from at once */
    SHORT_CHUNK = 12 << 10, /* bytes of a block, wanted */
};

/* Short rows that are not whole runs: most would have an edge. */
static bool is_short(const struct wd_reduce_space *s)
{
    return s->r0 == 1 && s->r1 % s->elements != 0 && s->r1 * s->bytes <= SHORT_BYTES;
}

/* Runs of an output, but for edges. */
static int64_t units_of(const struct wd_reduce_space *s)
{
    return s->r0 * wd_ceil_div(s->r1, s->elements);
}

/* Runs of the longest piece that starts anywhere, or of all where each is whole runs. */
static int64_t piece_runs(const struct wd_reduce_space *s, bool aligned)
{
    if (aligned && s->r1 % s->elements == 0) return s->r1 / s->elements;
    return (s->r1 + 2 * s->elements - 2) / s->elements;
}

static bool is_few(const struct wd_reduce_space *s, const struct wd_device *device)
{
    int64_t units = units_of(s);
    return units <= WARP_UNITS ||
           (units <= WARP_UNITS_MANY && s->outputs >= 8 * (int64_t)device->multiprocessors) ||
           (units <= WARP_UNITS_MOST && s->outputs >= 64 * (int64_t)device->multiprocessors);
}

static int64_t block_threads(int64_t units)
{
    return wd_clamp(wd_power_up(units / LANE_UNITS), THREADS_FEW, REDUCE_THREADS);
}

static struct wd_reduce_cut cut_of(const struct wd_reduce_space *s, const struct wd_device *device)
{
    int64_t units = units_of(s);
    if (is_short(s) || is_few(s, device)) return (struct wd_reduce_cut){1, 1};
    return wd_reduce_gpu_cut(s, device, s->outputs, units / (block_threads(units) * SEGMENT_UNITS),
                             WD_REDUCE_BLOCKS, false);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_reduce_space s;
    if (!wd_reduce_gpu_match(&s, problem, reason)) return false;
    WD_NEED(s.k2 == 1 && s.r1 > 1, reason, NOT_SUPPORTED_LAYOUT,
            "%lld neighbours in memory fall on as many outputs", (long long)s.k2);
    WD_NEED(!s.permuted, reason, NOT_SUPPORTED_LAYOUT, "indices count otherwise than x lies");
    WD_NEED(s.r0 * piece_runs(&s, false) < INT32_MAX / 2, reason, NOT_SUPPORTED_SHAPE,
            "%lld terms are too many to be counted", (long long)s.terms);
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reduce_space s = wd_reduce_gpu_see(problem);
    struct wd_reduce_cut cut = cut_of(&s, problem->device);
    return wd_reduce_gpu_workspace(&s, &cut);
}

/* Smaller blocks where there are not enough to go round. */
static int64_t threads_for(int64_t wanted, const struct wd_device *device)
{
    int64_t threads = REDUCE_THREADS;
    while (threads > THREADS_FEW &&
           wanted < threads * BLOCKS_FEW * (int64_t)device->multiprocessors) {
        threads /= 2;
    }
    return threads;
}

static cudnnStatus_t emit_short(const struct wd_reduce_space *s, struct wd_queue *queue,
                                struct reduce_vector_args *a)
{
    int64_t terms = s->class == WD_REDUCE_PICK && s->bytes == 2 ? SHORT_PICKED : SHORT_TERMS;
    int64_t lanes = wd_least(WARP, wd_power_up(wd_ceil_div(s->r1, terms)));
    int64_t threads = threads_for(s->outputs * lanes, queue->device);
    int64_t step = threads / lanes; /* rows that a block has at once */
    int64_t enough = BLOCKS_FEW * 4 * (int64_t)queue->device->multiprocessors;
    int64_t rows = wd_most(1, SHORT_CHUNK / (step * s->r1 * s->bytes)) * step;
    while (rows > step && s->outputs < rows * enough) rows -= step;
    wd_reduce_gpu_set_lanes(a, lanes);
    a->block_rows = (uint32_t)rows;
    return wd_emit_kernel(
        queue,
        &kernel_rows[KERNEL_reduce_short_sum_f32 + (int)s->class * TYPES + wd_reduce_gpu_type(s)],
        wd_ceil_div(s->outputs, rows), (uint32_t)threads,
        (uint32_t)(rows * s->r1 * s->bytes + 2 * REDUCE_BYTES), a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_reduce_space s = wd_reduce_gpu_see(&call->problem);
    struct wd_reduce_cut cut = cut_of(&s, queue->device);
    struct wd_kernel_row *row =
        &kernel_rows[KERNEL_reduce_rows_sum_f32 + (int)s.class * TYPES + wd_reduce_gpu_type(&s)];
    struct reduce_vector_args a;
    int64_t units = units_of(&s);
    int64_t threads;
    int64_t runs;
    WD_TRY(wd_reduce_gpu_args(call, &s, &a));
    if (is_short(&s)) return emit_short(&s, queue, &a);
    runs = piece_runs(&s, a.shift == 0);
    a.whole_rows = s.r0 == 1 && a.shift == 0 && s.r1 % s.elements == 0;
    a.by_run = wd_fastdiv_of((uint32_t)runs);
    wd_reduce_gpu_set_cut(&a, &cut, s.r0 * runs);
    if (is_few(&s, queue->device)) {
        int64_t lanes = wd_least(WARP, wd_power_up(wd_ceil_div(units, LANE_UNITS)));
        threads = threads_for(s.outputs * lanes, queue->device);
        wd_reduce_gpu_set_lanes(&a, lanes);
        return wd_emit_kernel(queue, row, wd_ceil_div(s.outputs, threads / lanes),
                              (uint32_t)threads, 0, &a);
    }
    threads = block_threads(units);
    wd_reduce_gpu_set_lanes(&a, 2 * WARP); /* a block */
    WD_TRY(wd_emit_cluster_kernel(queue, row, s.outputs * a.segments, (uint32_t)threads,
                                  (uint32_t)cut.cluster, wd_reduce_gpu_shared(&s, threads, 1, 1),
                                  &a));
    return wd_reduce_gpu_finish(queue, &s, &a);
}

const struct wd_engine wd_engine_reduce_rows = {
    .name = "reduce_rows",
    .op = WD_OP_REDUCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
