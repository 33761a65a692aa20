/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums and products of much memory on the GPU whose innermost dim is reduced, rows in one piece or in several,
 * wherever they begin (reduce_pieces.cu). The cuts depend on shape, type and device alone, but for
 * whether x begins at whole runs. No state. */
#include "base/sizes.h"
#include "ops/reduce/reduce_gpu.h"

#define WD_KERNELS_MODULE reduce_pieces
#define WD_KERNELS_ROWS "ops/reduce/reduce_pieces_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    BLOCK_WARPS = REDUCE_THREADS / WARP,
    BYTES_MIN = 2 << 20, /* of x; below, clusters save a launch */
    SHORT_BYTES = 1024,  /* of rows that are no whole runs: better through shared memory */
    WARP_ROWS = 16,      /* of a processor: as many warps keep it busy */
    WARP_TILES = 1,      /* of a row that is never worth a block */
    BLOCKS_OF_SUMS = 5,  /* of a processor, as it has them at once */
    SEGMENT_TILES = 4,   /* of a warp: pay for a segment */
    LANE_THREADS = 128,  /* of a block of rows */
};

/* Runs of a piece, wherever it starts, and so many where all are whole. */
static int64_t runs_of(const struct wd_reduce_space *s, bool aligned)
{
    if (aligned && s->r1 % s->elements == 0) return s->r1 / s->elements;
    return (s->r1 + 2 * s->elements - 2) / s->elements;
}

static int64_t lanes_of(const struct wd_reduce_space *s)
{
    return wd_least(WARP, wd_power_up(wd_ceil_div(s->r1, s->elements * REDUCE_PIECE_RUNS)));
}

static int64_t tiles_of(const struct wd_reduce_space *s, bool aligned)
{
    return wd_ceil_div(runs_of(s, aligned), REDUCE_PIECE_RUNS * lanes_of(s));
}

static bool by_block(const struct wd_reduce_space *s, const struct wd_device *device)
{
    return s->r0 * tiles_of(s, true) > WARP_TILES &&
           s->outputs < WARP_ROWS * (int64_t)device->multiprocessors;
}

/* Segments are whole turns of a block's warps: for the one tile more that 1024 of 65537 had, seven of eight warps
 * waited a turn of nine. */
static struct wd_reduce_cut cut_of(const struct wd_reduce_space *s, const struct wd_device *device)
{
    int64_t tiles = s->r0 * tiles_of(s, true);
    int64_t turns;
    /* Sums by one wave of blocks (add fp16 128x64x112x112 to channels: 56.6 us, then 51.8), but of one output, of which
     * whole turns made more than a wave (36.3, then 42.2); products have not been measured. */
    bool fills = s->outputs > 1 && s->class == WD_REDUCE_SUM;
    struct wd_reduce_cut cut = {1, 1};
    if (!by_block(s, device)) return cut;
    cut = wd_reduce_gpu_cut(s, device, s->outputs, tiles / (BLOCK_WARPS * SEGMENT_TILES),
                            fills ? (int64_t)BLOCKS_OF_SUMS : (int64_t)WD_REDUCE_BLOCKS, fills);
    if (cut.segments == 1) return cut;
    if (fills) turns = wd_ceil_div(tiles, cut.segments * BLOCK_WARPS); /* no more than a wave */
    else turns = (tiles / cut.segments + BLOCK_WARPS / 2) / BLOCK_WARPS;
    cut.segments = wd_ceil_div(tiles, wd_most(turns, 1) * BLOCK_WARPS);
    return cut;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_reduce_space s;
    if (!wd_reduce_gpu_match(&s, problem, reason)) return false;
    WD_NEED(s.type != REDUCE_F64 && s.class != WD_REDUCE_PICK, reason, NOT_SUPPORTED_DATA_TYPE,
            "sums and products of fp32, fp16 and bf16 are taken");
    WD_NEED(s.k2 == 1 && s.r1 >= s.elements, reason, NOT_SUPPORTED_LAYOUT,
            "%lld neighbours in memory fall on as many outputs, %lld on one", (long long)s.k2,
            (long long)s.r1);
    WD_NEED(s.total * s.bytes > BYTES_MIN, reason, NOT_SUPPORTED_SHAPE, "%lld elements are few",
            (long long)s.total);
    WD_NEED(s.r1 % s.elements == 0 || s.r1 * s.bytes > SHORT_BYTES, reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements are short and no whole runs", (long long)s.r1);
    /* fp32 64x3x512x512 to channels: 55.5 us, and 53.0 by reduce_rows */
    WD_NEED(s.r1 % (s.elements * REDUCE_PIECE_RUNS * WARP) != 0, reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements have no ends", (long long)s.r1);
    WD_NEED(s.r1 < INT32_MAX / 2 && s.r0 * tiles_of(&s, false) < INT32_MAX / 2, reason,
            NOT_SUPPORTED_SHAPE, "%lld terms are too many to be counted", (long long)s.terms);
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reduce_space s = wd_reduce_gpu_see(problem);
    struct wd_reduce_cut cut = cut_of(&s, problem->device);
    return wd_reduce_gpu_workspace(&s, &cut);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_reduce_space s = wd_reduce_gpu_see(&call->problem);
    struct wd_reduce_cut cut = cut_of(&s, queue->device);
    int kernel = s.class == WD_REDUCE_PRODUCT ? KERNEL_reduce_pieces_product_f32
                                              : KERNEL_reduce_pieces_sum_f32;
    struct wd_kernel_row *row = &kernel_rows[kernel + (s.type > REDUCE_F64)];
    struct reduce_vector_args a;
    int64_t tiles;
    WD_TRY(wd_reduce_gpu_args(call, &s, &a));
    tiles = tiles_of(&s, a.shift == 0);
    a.by_run = wd_fastdiv_of((uint32_t)tiles);
    wd_reduce_gpu_set_cut(&a, &cut, s.r0 * tiles);
    if (!by_block(&s, queue->device)) {
        int64_t lanes = lanes_of(&s);
        wd_reduce_gpu_set_lanes(&a, lanes);
        return wd_emit_kernel(queue, row, wd_ceil_div(s.outputs, LANE_THREADS / lanes),
                              LANE_THREADS, 0, &a);
    }
    wd_reduce_gpu_set_lanes(&a, 2 * WARP); /* a block */
    a.per_segment = (uint32_t)(wd_ceil_div(a.per_segment, BLOCK_WARPS) * BLOCK_WARPS);
    a.segments = (uint32_t)wd_ceil_div(a.units, a.per_segment);
    WD_TRY(wd_emit_kernel(queue, row, s.outputs * a.segments, REDUCE_THREADS,
                          wd_reduce_gpu_shared(&s, REDUCE_THREADS, 1, 1), &a));
    return wd_reduce_gpu_finish(queue, &s, &a);
}

const struct wd_engine wd_engine_reduce_pieces = {
    .name = "reduce_pieces",
    .op = WD_OP_REDUCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
