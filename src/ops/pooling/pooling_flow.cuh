// SPDX-License-Identifier: Apache-2.0
//
// Rows that flow through shared memory: a warp copies them by 16 bytes at any alignment, a few steps ahead
// of the others, each of which has a column of results and walks down the rows. Every row is read once a
// tile and kept in registers as far as the next windows need it; blocks go from tile to tile without a
// pause.
#ifndef WD_OPS_POOLING_FLOW_CUH
#define WD_OPS_POOLING_FLOW_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/packed.cuh"
#include "gpu/device/shared.cuh"
#include "ops/pooling/pooling_flow_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

// A block's part of the results.
struct flow_tile {
    uint32_t outer; // first image
    uint32_t images;
    uint32_t first; // column
    uint32_t end;
    int unit; // first one
    int unit_end;
};

__device__ __forceinline__ flow_tile flow_tile_of(const pool_flow_args &a, uint32_t n)
{
    flow_tile t;
    t.first = wd_take_rest(n, a.by_strips) * a.by_columns.divisor;
    t.end = min(t.first + a.by_columns.divisor, a.row_columns);
    t.unit = (int)wd_take_rest(n, a.by_spans) * a.tile_units;
    t.unit_end = min(t.unit + a.tile_units, a.all_units);
    t.outer = n * a.images;
    t.images = min(a.images, a.outer - t.outer);
    return t;
}

// The elements of a row that a tile needs of a part: from the first on, and how many.
struct flow_line {
    int low;
    int count;
};

__device__ __forceinline__ flow_line flow_line_of(const pool_flow_args &a,
                                                  const pool_flow_part &part, const flow_tile &t)
{
    uint32_t first = t.first, last = t.end - 1;
    const int c_first = (int)wd_take_rest(first, a.by_inner);
    const int c_last = (int)wd_take_rest(last, a.by_inner);
    const int inner = (int)a.inner;
    const int low = ((int)first * part.per + part.off[1]) * inner + c_first;
    const int high = ((int)last * part.per + part.off[1] + part.span - 1) * inner + c_last + 1;
    flow_line line;
    line.low = part.whole ? 0 : max(low, 0);
    line.count = part.whole ? part.elements : max(min(high, part.elements) - line.low, 0);
    return line;
}

// Where element `low` of row h of the first image lies, modulo 2^32.
template <class T>
__device__ __forceinline__ uint32_t flow_phase(const void *tensor, const pool_flow_part &part,
                                               uint32_t outer, int h, int low)
{
    const uint32_t row = outer * (uint32_t)part.rows + (uint32_t)h;
    return (uint32_t)(uintptr_t)tensor +
           (row * (uint32_t)part.elements + (uint32_t)low) * (uint32_t)sizeof(T);
}

// A warp copies rows h .. h + rows - 1 as far as there are such, to the step at `slot`.
template <class T>
__device__ __forceinline__ void flow_copy(const pool_flow_part &part, const void *tensor,
                                          const flow_tile &t, const flow_line &line, int h,
                                          int rows, uint32_t slot)
{
    const uint32_t lane = threadIdx.x % 32;
    const uintptr_t begin = (uintptr_t)tensor;
    const uintptr_t end = begin + (size_t)part.total * sizeof(T);
    const uint32_t to = slot + part.at + flow_phase<T>(tensor, part, t.outer, h, line.low) % 16;
    const int first_row = max(h, 0), end_row = min(h + rows, part.rows);
    if (first_row >= end_row || line.count <= 0) return;
    const uint32_t together = part.whole ? (uint32_t)(end_row - first_row) : 1;
    const uint32_t bytes = (uint32_t)line.count * together * (uint32_t)sizeof(T);
    for (uint32_t g = 0; g < t.images; ++g) {
        for (int r = first_row; r < end_row; r += (int)together) {
            const size_t row = (size_t)(t.outer + g) * (uint32_t)part.rows + (uint32_t)r;
            const uintptr_t from =
                begin + (row * (uint32_t)part.elements + (uint32_t)line.low) * sizeof(T);
            const uint32_t before = (uint32_t)(from % 16);
            const uintptr_t source = from - before;
            const uint32_t at = to + g * part.image_pitch + (uint32_t)(r - h) * part.pitch - before;
            unsigned char *into = wd_dynamic_shared<unsigned char>() + at;
            const uint32_t chunks = (before + bytes + 15) / 16;
            // what lies around the tensor is not read
            const uint32_t low = source < begin;
            const uint32_t high = chunks - (source + (size_t)16 * chunks > end);
#pragma unroll 2
            for (uint32_t chunk = lane + (low && lane == 0 ? 32 : 0); chunk < high; chunk += 32) {
                wd_copy_async<16, false>(into + 16 * chunk,
                                         reinterpret_cast<const void *>(source + 16 * chunk));
            }
            if (low == 0 && high == chunks) continue;
            for (uint32_t b = lane * (uint32_t)sizeof(T); b < bytes;
                 b += 32 * (uint32_t)sizeof(T)) {
                const uint32_t chunk = (before + b) / 16;
                if (!(low && chunk == 0) && chunk < high) continue;
                *reinterpret_cast<T *>(into + before + b) = *reinterpret_cast<const T *>(from + b);
            }
        }
    }
}

// A result goes out, if there is such.
template <class T>
__device__ __forceinline__ void flow_put(const pool_flow_args &a, uint32_t to, float value,
                                         bool there)
{
    T narrow;
    wd_narrow(narrow, a.alpha * value);
    if (there) static_cast<T *>(a.out)[to] = narrow;
}

// A part as a thread sees it: where its columns' elements are within a step, `inner` apart.
template <class T, int SPAN> struct flow_columns {
    uint32_t first; // of the step's first row, but for the row's phase
    uint32_t phase;
    bool in[SPAN];

    // Of column c of pixel q in image g.
    __device__ __forceinline__ void begin(const pool_flow_args &a, const pool_flow_part &part,
                                          const void *tensor, const flow_tile &t, uint32_t g, int q,
                                          int c)
    {
        const flow_line line = flow_line_of(a, part, t);
        const int pixel = q * part.per + part.off[1];
#pragma unroll
        for (int s = 0; s < SPAN; ++s) in[s] = (uint32_t)(pixel + s) < (uint32_t)part.pixels;
        first = part.at + g * part.image_pitch +
                (uint32_t)(pixel * (int)a.inner + c - line.low) * (uint32_t)sizeof(T);
        phase = flow_phase<T>(tensor, part, t.outer, t.unit * part.per + part.off[0], line.low);
    }
    // Of the step at `slot` its first row; the next step's phase follows.
    __device__ __forceinline__ const unsigned char *step(const pool_flow_args &a,
                                                         const pool_flow_part &part, uint32_t slot)
    {
        const uint32_t at = slot + phase % 16 + first;
        phase += (uint32_t)(a.units * part.per) * (uint32_t)part.elements * (uint32_t)sizeof(T);
        // before the first element of all where a first column is outside, which is not read
        return wd_dynamic_shared<unsigned char>() + (int32_t)at;
    }
};

// The warp that copies, a few steps ahead of the others; they meet once a step.
template <class T, bool SHARES> __device__ __forceinline__ void flow_copies(const pool_flow_args &a)
{
    const int all = (int)((a.tiles - blockIdx.x + gridDim.x - 1) / gridDim.x * a.steps);
    uint32_t slot = 0, step = 0, tile = blockIdx.x;
    flow_tile t = flow_tile_of(a, tile);
    for (int i = 1 - POOL_FLOW_SLOTS; i < all; ++i) {
        if (i >= 0) {
            wd_copies_wait<POOL_FLOW_SLOTS - 2>();
            __syncthreads();
        }
        if (i + POOL_FLOW_SLOTS - 1 < all) {
            if (step == a.steps) {
                step = 0;
                tile += gridDim.x;
                t = flow_tile_of(a, tile);
            }
            const int unit = t.unit + (int)step * a.units;
#pragma unroll 1
            for (int part = 0; part < (SHARES ? 2 : 1); ++part) {
                const pool_flow_part &of = part == 0 ? a.from : a.shares;
                flow_copy<T>(of, part == 0 ? a.x : a.dy, t, flow_line_of(a, of, t),
                             unit * of.per + of.off[0], a.units * of.per, slot);
            }
            step += 1;
            slot = slot == (POOL_FLOW_SLOTS - 1) * a.slot ? 0 : slot + a.slot;
        }
        wd_copies_end();
    }
    wd_copies_wait_all();
}

// WORK is what a thread does with its column:
//   begin(a, t, g, q, c)  a tile: column c of pixel q in image g
//   step(a, slot)         a step's rows are at `slot`
//   unit(a, k, there)     unit k of the tile, the step's next, if there is such
//   MORE                  units beyond the tile's that it needs to see
//   UNROLL                units at once, of which a step has a multiple
template <class WORK> __device__ __forceinline__ void flow_works(const pool_flow_args &a)
{
    WORK work;
    uint32_t slot = 0;
    for (uint32_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        const flow_tile t = flow_tile_of(a, tile);
        uint32_t g = threadIdx.x;
        uint32_t column = t.first + wd_take_rest(g, a.by_columns);
        int units = 0; // of the tile
        if (g < t.images && column < t.end) {
            const int c = (int)wd_take_rest(column, a.by_inner);
            work.begin(a, t, g, (int)column, c);
            units = t.unit_end - t.unit + WORK::MORE;
        }
        int k = 0;
#pragma unroll 1
        for (uint32_t step = 0; step < a.steps; ++step) {
            __syncthreads();
            work.step(a, slot);
            slot = slot == (POOL_FLOW_SLOTS - 1) * a.slot ? 0 : slot + a.slot;
            const int end = min(k + a.units, units);
#pragma unroll 1
            for (; k < end; k += WORK::UNROLL) {
#pragma unroll
                for (int i = 0; i < WORK::UNROLL; ++i) work.unit(a, k + i, k + i < units);
            }
        }
    }
}

} // namespace

#endif
