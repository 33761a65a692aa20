/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions on the GPU whose innermost dim in memory stays: threads side by side along it, sharing
 * the rows. reduce_vector_args.h says how x is walked; the cuts depend on shape, type and device
 * alone, but for whether x begins at whole runs. Also the second stage of reduce_rows. */
#include "base/sizes.h"
#include "ops/reduce/reduce_gpu.h"

#define WD_KERNELS_MODULE reduce_columns
#define WD_KERNELS_ROWS "ops/reduce/reduce_columns_kernels.def"
#include "ops/kernels_host.inc"

enum {
    TYPES = 3,        /* fp32, fp64, those of two bytes */
    ACROSS_RUNS = 32, /* threads side by side, at least: long pieces of memory */
    ACROSS_ONES = 128,
    ACROSS_SMALL = 4,      /* times fewer of small x, */
    SMALL_BYTES = 2 << 20, /* for more blocks */
    THREAD_ROWS = 4,       /* that a thread has in flight: they pay for a segment */
    JOINED_RUNS = 256,     /* of joined rows: a block has them */
    JOINED_TURNS = 8,      /* rows that are joined beyond need, to fill lanes */
    JOINED_MIN = 1 << 16,  /* elements of x that pay for it */
    FINISH_ROWS = 4,       /* states of a thread, twice at most */
    BLOCKS_A_PROCESSOR = 4,
    PLACES = 1 << 16, /* rows that go into a number with what is picked */
};

/* How x is walked. */
struct tiling {
    bool runs; /* a thread has a run, else one element */
    bool joined;
    int64_t elements; /* of a thread */
    int64_t pitch;    /* of rows */
    int64_t rows;
    int64_t positions;
    int64_t across;
    int64_t tiles;
    struct wd_reduce_cut cut;
};

/* Rows of k2 that are joined until they are whole runs, and enough of them to fill lanes. */
static bool join(struct tiling *t, const struct wd_reduce_space *s)
{
    int64_t runs = s->k2 / wd_gcd(s->k2, s->elements);
    int64_t best = 1;
    if (s->indices || s->k0 > 1 || s->r0 > 1 || s->k1 > 1) return false;
    if (runs > JOINED_RUNS || s->total < JOINED_MIN) return false;
    for (int64_t turns = 2; turns <= JOINED_TURNS && turns * runs <= JOINED_RUNS; ++turns) {
        /* lanes filled: turns * runs of a power of two */
        if (turns * wd_power_up(best * runs) > best * wd_power_up(turns * runs)) best = turns;
    }
    t->runs = t->joined = true;
    t->elements = s->elements;
    t->positions = best * runs;
    t->pitch = wd_most(t->positions * s->elements, 1);
    t->rows = wd_ceil_div(s->total + s->elements - 1, t->pitch); /* however x is shifted */
    t->across = wd_power_up(t->positions);
    return true;
}

/* Sums of much of two bytes are cut into as many blocks as the device has at once: two waves of them took longer (add
 * fp16 NHWC 128x64x112x112 to channels: 59.4 us, then 55.2). Of fp32 they did not (add NHWC 64x64x112x112: 55.9, 56.3).
 * What else is reduced has other counts of blocks at once, and has not been measured. */
static void fill_wave(struct tiling *t, const struct wd_reduce_space *s, int64_t worth,
                      const struct wd_device *device)
{
    int64_t wave = (int64_t)device->multiprocessors * BLOCKS_A_PROCESSOR;
    if (s->class != WD_REDUCE_SUM || s->bytes != 2 || s->total * s->bytes <= SMALL_BYTES) return;
    if (t->cut.segments == 1 || t->cut.cluster > 1 || t->tiles > wave) return;
    t->cut.segments = wd_most(1, wd_least(wd_reduce_gpu_fill(t->tiles, wave), worth));
}

static struct tiling tile(const struct wd_reduce_space *s, bool aligned,
                          const struct wd_device *device)
{
    int64_t enough = (int64_t)device->multiprocessors * BLOCKS_A_PROCESSOR;
    int64_t narrowest;
    int64_t worth;
    struct tiling t = {.runs = aligned && s->k2 % s->elements == 0 && !s->permuted,
                       .pitch = s->k2,
                       .rows = s->terms,
                       .tiles = 1};
    if (t.runs || !join(&t, s)) {
        t.elements = t.runs ? s->elements : 1;
        narrowest = t.runs ? ACROSS_RUNS : ACROSS_ONES;
        if (s->total * s->bytes <= SMALL_BYTES) narrowest /= ACROSS_SMALL;
        t.positions = s->outputs / t.elements;
        t.across = wd_least(REDUCE_THREADS, wd_power_up(t.positions));
        while (t.across > narrowest && wd_ceil_div(t.positions, t.across) < enough &&
               t.rows * t.across >= 2 * THREAD_ROWS * REDUCE_THREADS) {
            t.across /= 2;
        }
        t.tiles = wd_ceil_div(t.positions, t.across);
    }
    worth = t.rows * t.across / (REDUCE_THREADS * THREAD_ROWS);
    t.cut = wd_reduce_gpu_cut(s, device, t.tiles, worth, WD_REDUCE_BLOCKS, false);
    fill_wave(&t, s, worth, device);
    return t;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_reduce_space s;
    if (!wd_reduce_gpu_match(&s, problem, reason)) return false;
    WD_NEED(s.k2 > 1 || s.terms == 1 || s.permuted, reason, NOT_SUPPORTED_LAYOUT,
            "the innermost %lld elements fall on one output", (long long)s.r1);
    WD_NEED(s.terms < INT32_MAX / 2, reason, NOT_SUPPORTED_SHAPE,
            "%lld terms are too many to be counted", (long long)s.terms);
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reduce_space s = wd_reduce_gpu_see(problem);
    struct tiling aligned = tile(&s, true, problem->device);
    struct tiling stray = tile(&s, false, problem->device);
    return wd_most(wd_reduce_gpu_workspace(&s, &aligned.cut),
                   wd_reduce_gpu_workspace(&s, &stray.cut));
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_reduce_space s = wd_reduce_gpu_see(&call->problem);
    struct reduce_vector_args a;
    struct tiling t;
    int kernel;
    WD_TRY(wd_reduce_gpu_args(call, &s, &a));
    t = tile(&s, a.shift == 0, queue->device);
    kernel = t.runs ? KERNEL_reduce_columns_runs_sum_f32 : KERNEL_reduce_columns_one_sum_f32;
    kernel += (int)s.class * TYPES + wd_reduce_gpu_type(&s);
    if (kernel == KERNEL_reduce_columns_runs_sum_f16 && s.type == REDUCE_BF16) {
        kernel = KERNEL_reduce_columns_runs_sum_bf16;
    }
    wd_reduce_gpu_set_cut(&a, &t.cut, t.rows);
    wd_reduce_gpu_set_lanes(&a, t.across);
    a.pitch = (uint32_t)t.pitch;
    a.positions = (uint32_t)t.positions;
    a.joined = t.joined;
    a.by_run = wd_fastdiv_of((uint32_t)(t.joined ? t.positions : s.k2 / t.elements));
    a.by_r1 = wd_fastdiv_of((uint32_t)(t.joined ? t.rows : s.r1));
    /* rows that follow one another, and that 16 bits count */
    if (kernel == KERNEL_reduce_columns_one_pick_16 && s.r1 >= t.rows && t.rows <= PLACES &&
        !t.joined && a.counted == 0) {
        kernel = KERNEL_reduce_columns_places_16;
    }
    WD_TRY(wd_emit_cluster_kernel(
        queue, &kernel_rows[kernel], t.tiles * a.segments, REDUCE_THREADS, (uint32_t)t.cut.cluster,
        wd_reduce_gpu_shared(&s, REDUCE_THREADS, t.across, t.elements), &a));
    return wd_reduce_gpu_finish(queue, &s, &a);
}

cudnnStatus_t wd_reduce_gpu_finish(struct wd_queue *queue, const struct wd_reduce_space *s,
                                   const struct reduce_vector_args *args)
{
    struct reduce_vector_args a = *args;
    int kernel = KERNEL_reduce_finish_sum_f32 + 2 * (int)s->class + (s->type == REDUCE_F64);
    int64_t across = wd_least(REDUCE_THREADS, wd_power_up(s->outputs));
    if (a.segments == 1 || a.cluster > 1) return CUDNN_STATUS_SUCCESS;
    /* a thread that reads many, one after the other, takes longer than all the rest */
    while (across > 1 && a.segments * across >= 2 * FINISH_ROWS * REDUCE_THREADS) across /= 2;
    a.units = a.segments;
    a.segments = 1;
    a.joined = 0;
    wd_reduce_gpu_set_lanes(&a, across);
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(s->outputs, across),
                          REDUCE_THREADS, wd_reduce_gpu_shared(s, REDUCE_THREADS, across, 1), &a);
}

const struct wd_engine wd_engine_reduce_columns = {
    .name = "reduce_columns",
    .op = WD_OP_REDUCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
