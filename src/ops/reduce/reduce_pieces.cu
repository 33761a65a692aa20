// SPDX-License-Identifier: Apache-2.0
//
// Sums and products over rows, or pieces of rows, wherever they begin. A tile is REDUCE_PIECE_RUNS runs of 16 bytes
// for each of a row's lanes, all of one piece; what of a piece is no whole run on a boundary is added
// element by element, so that no run is masked. Rows are of few lanes, of a warp, or of a block, whose
// warps take tiles in turn. See reduce_pieces.c.
#include "ops/reduce/reduce_device.cuh"
#include "ops/reduce/reduce_terms.cuh"

namespace {

constexpr int RUNS = REDUCE_PIECE_RUNS;

// Elements lane, lane + lanes, ... of `n`, the first of which is `from`.
template <int OP, class T>
__device__ __forceinline__ void add_ends(const reduce_vector_args &a, const T *from, uint32_t n,
                                         uint32_t lane, uint32_t lanes,
                                         terms<OP, float, run_of<T>> &sum)
{
#pragma unroll 1
    for (uint32_t e = lane; e < n; e += lanes) add_one<OP, T>(a, from[e], e, sum);
}

// Tile `t` of a piece.
template <int OP, class T>
__device__ __forceinline__ void add_tile(const reduce_vector_args &a, const T *piece,
                                         uint32_t before, uint32_t t, uint32_t lane, uint32_t lanes,
                                         terms<OP, float, run_of<T>> &sum)
{
    constexpr uint32_t V = run_of<T>;
    const uint32_t line = (uint32_t)a.line;
    const uint32_t first = before > 0, behind = max((before + line) / V, first); // whole runs
    const uint32_t unit = t * RUNS * lanes + lane;
    const T *from = piece + ((int64_t)unit * V - before);
    wd_run<T, V> run[RUNS];
    bool whole[RUNS];
#pragma unroll
    for (int i = 0; i < RUNS; ++i) {
        whole[i] = unit + i * lanes - first < behind - first;
        if (whole[i]) run[i].load(from + i * lanes * V);
    }
    if (t == 0) add_ends<OP>(a, piece, before > 0 ? min(line, V - before) : 0, lane, lanes, sum);
    if (t == a.by_run.divisor - 1 && before + line > behind * V) {
        const uint32_t at = behind * V - before;
        add_ends<OP>(a, piece + at, line - at, lane, lanes, sum);
    }
#pragma unroll
    for (int i = 0; i < RUNS; ++i) {
        float w[V];
        if (!whole[i]) continue;
        take<OP>(a, run[i], w);
        sum.add(a, w, 0, 0);
    }
    sum.flush();
}

template <int OP, class T> __device__ void reduce_pieces(const reduce_vector_args &a)
{
    const bool by_block = a.lanes > 32;
    const uint32_t lanes = by_block ? 32 : a.lanes;
    const uint32_t lane = threadIdx.x & (lanes - 1);
    uint32_t row, segment = 0, tile, end, step;
    if (by_block) {
        row = blockIdx.x / a.segments;
        segment = blockIdx.x - row * a.segments;
        tile = segment * a.per_segment + threadIdx.x / 32;
        end = min((segment + 1) * a.per_segment, a.units);
        step = blockDim.x / 32;
    } else {
        row = blockIdx.x * (blockDim.x >> a.lane_bits) + (threadIdx.x >> a.lane_bits);
        tile = 0;
        end = row < a.outputs ? a.units : 0;
        step = 1;
    }
    const uint32_t k0 = wd_fastdiv_quotient(row, a.by_k1);
    const int64_t base = k0 * a.slice + (row - k0 * a.by_k1.divisor) * a.line;
    terms<OP, float, run_of<T>> sum;
    sum.begin(a);
    wd_wait_for_previous();
#pragma unroll 1
    for (; tile < end; tile += step) {
        const uint32_t piece = wd_fastdiv_quotient(tile, a.by_run);
        const int64_t start = base + piece * a.piece;
        add_tile<OP>(a, static_cast<const T *>(a.x) + start,
                     (uint32_t)(a.shift + start) & (run_of<T> - 1), tile - piece * a.by_run.divisor,
                     lane, lanes, sum);
    }
    state<OP, float> mine[1] = {sum.get(a)};
    if (by_block) conclude<OP, float, 1>(a, mine, 1, row, segment);
    else conclude_lanes<OP, float>(a, mine[0], row, lane);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/reduce/reduce_pieces_kernels.def"
#include "ops/kernels_device.inc"
