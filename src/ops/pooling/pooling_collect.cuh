// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima, a box of dx at a time: the elements of all windows over the box are staged,
// each window's first largest is found and noted beside its dy, then each element collects from the
// windows over it, in row-major order.
#ifndef WD_OPS_POOLING_COLLECT_CUH
#define WD_OPS_POOLING_COLLECT_CUH

#include "ops/pooling/pooling_tile.cuh"

namespace {

template <class T, int V> struct collecting {
    using A = acc<T>;
    static constexpr int ROWS = V > 1 ? POOL_OF_RUNS : POOL_COLLECTED;

    const pool_tile_args &a;
    uint32_t outer0, outers, inner0;
    stretch out[3];  // made: out0, outs; windows over it: in0, ins
    stretch from[3]; // of x, staged: in0, ins

    __device__ __forceinline__ explicit collecting(const pool_tile_args &args) : a(args)
    {
        const box b = box_of<true>(args, blockIdx.x);
        outer0 = b.outer0;
        outers = b.outers;
        inner0 = b.inner0;
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            const pool_axis &x = a.axis[i];
            const int start = b.on[i].in0 * x.stride - x.pad;
            const int end = start + (b.on[i].ins - 1) * x.stride + x.size;
            out[i] = from[i] = b.on[i];
            from[i].in0 = max(start, 0);
            from[i].ins = b.on[i].ins > 0 ? max(min(end, x.image) - from[i].in0, 0) : 0;
        }
    }

    // Runs of what is kept of windows: dy, and the codes.
    __device__ __forceinline__ T *shares(uint32_t at) const
    {
        return reinterpret_cast<T *>(memory_at(a.at.shares)) + (size_t)at * V;
    }
    __device__ __forceinline__ uint8_t *codes(uint32_t at) const
    {
        return memory_at(a.at.codes) + (size_t)at * V;
    }

    template <int MODE> __device__ __forceinline__ void find() const
    {
        const pool_axis *x = a.axis;
        const uint32_t wide = x[2].by_overs.divisor;
        const uint32_t items =
            outers * x[0].by_overs.divisor * x[1].by_overs.divisor * wide * a.tile_inner;
        const uint32_t step = a.tile_inner * V * (uint32_t)sizeof(T);
        for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
            uint32_t n = item;
            const uint32_t c = wd_take_rest(n, a.by_tile_inner);
            const int q = (int)wd_take_rest(n, x[2].by_overs);
            const int p = (int)wd_take_rest(n, x[1].by_overs);
            const int z = (int)wd_take_rest(n, x[0].by_overs);
            if (q >= out[2].ins || p >= out[1].ins || z >= out[0].ins || inner0 + c >= a.inner) {
                continue;
            }
            // elements are less than 2^31
            const uint32_t deep =
                (outer0 + n) * (uint32_t)x[0].windows + (uint32_t)(out[0].in0 + z);
            const uint32_t high_at = deep * (uint32_t)x[1].windows + (uint32_t)(out[1].in0 + p);
            const uint32_t at = high_at * (uint32_t)x[2].windows + (uint32_t)(out[2].in0 + q);
            wd_run<T, V> dy;
            dy.load(static_cast<const T *>(a.from) + (at * a.inner + inner0 + c) * V);
            // where the window begins within what is staged
            const int column = (out[2].in0 + q) * x[2].stride - x[2].pad - from[2].in0;
            const int row = (out[1].in0 + p) * x[1].stride - x[1].pad - from[1].in0;
            const int depth = (out[0].in0 + z) * x[0].stride - x[0].pad - from[0].in0;
            window_place<MODE, A> t[V];
#pragma unroll
            for (int i = 0; i < V; ++i) t[i].clear();
            auto see = [&](uint32_t row_bytes, int w, uint32_t code) {
                wd_run<T, V> run;
                run.load(reinterpret_cast<const T *>(memory_at(row_bytes + (uint32_t)w * step)));
#pragma unroll
                for (int i = 0; i < V; ++i) t[i].take(wd_widen(run.get(i)), code);
            };
            const uint32_t high = x[1].by_ins.divisor;
            const uint32_t lane = c * V * (uint32_t)sizeof(T);
            const int low_d = max(depth, 0), end_d = min(depth + x[0].size, from[0].ins);
            const int low_h = max(row, 0), end_h = min(row + x[1].size, from[1].ins);
            const int low_w = max(column, 0), end_w = min(column + x[2].size, from[2].ins);
#pragma unroll 1
            for (int d = low_d; d < end_d; ++d) {
#pragma unroll 1
                for (int h = low_h; h < end_h; ++h) {
                    const uint32_t plane = n * x[0].by_ins.divisor + (uint32_t)d;
                    const uint32_t line = row_at<T, V>(a, plane * high + (uint32_t)h) + lane;
                    const int code = ((d - depth) * x[1].size + h - row) * x[2].size - column;
#pragma unroll 1
                    for (int w = low_w; w < end_w; ++w) see(line, w, (uint32_t)(code + w));
                }
            }
            dy.store(shares(item));
            uint8_t *to = codes(item);
            if constexpr (V == 1) {
                *to = (uint8_t)t[0].code;
            } else if constexpr (V == 2) {
                *reinterpret_cast<uint16_t *>(to) = (uint16_t)(t[0].code | t[1].code << 8);
            } else {
#pragma unroll
                for (int i = 0; i < V; i += 4) {
                    *reinterpret_cast<uint32_t *>(to + i) =
                        t[i].code | t[i + 1].code << 8 | t[i + 2].code << 16 | t[i + 3].code << 24;
                }
            }
        }
        __syncthreads();
    }

    __device__ __forceinline__ void collect() const
    {
        const pool_axis *x = a.axis;
        const uint32_t wide = x[2].by_overs.divisor;
        const uint32_t row_runs = a.by_row.divisor;
        // what comes before the box's first window where all of them are counted from 0
        const uint32_t above = (uint32_t)out[0].in0 * x[1].by_overs.divisor + (uint32_t)out[1].in0;
        const uint32_t origin = (above * wide + (uint32_t)out[2].in0) * a.tile_inner;
        const uint32_t items = outers * (uint32_t)x[0].outs * x[1].by_groups.divisor * row_runs;
        for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
            uint32_t n = item;
            uint32_t at = wd_take_rest(n, a.by_row);
            const int h0 = (int)wd_take_rest(n, x[1].by_groups) * ROWS;
            const int d0 = (int)wd_take_rest(n, x[0].by_groups);
            const uint32_t c = wd_take_rest(at, a.by_tile_inner);
            const int w = out[2].out0 + (int)at, h = out[1].out0 + h0, d = out[0].out0 + d0;
            if ((int)at >= out[2].outs || h0 >= out[1].outs || d0 >= out[0].outs ||
                inner0 + c >= a.inner) {
                continue;
            }
            const int first_q = first_over(x[2], w), end_q = end_over(x[2], w);
            const int first_p = first_over(x[1], h);
            const int end_p = end_over(x[1], min(h + ROWS, out[1].out0 + out[1].outs) - 1);
            const int first_z = first_over(x[0], d), end_z = end_over(x[0], d);
            A sum[ROWS][V];
#pragma unroll
            for (int k = 0; k < ROWS; ++k) {
#pragma unroll
                for (int i = 0; i < V; ++i) sum[k][i] = (A)0;
            }
#pragma unroll 1
            for (int z = first_z; z < end_z; ++z) {
                const int deep = (d - (z * x[0].stride - x[0].pad)) * x[1].size;
                const uint32_t plane = n * x[0].by_overs.divisor + (uint32_t)z;
#pragma unroll 1
                for (int p = first_p; p < end_p; ++p) {
                    const int row = h - (p * x[1].stride - x[1].pad);
                    int code[ROWS]; // of this column's first element in each row
#pragma unroll
                    for (int k = 0; k < ROWS; ++k) {
                        const bool in = (uint32_t)(row + k) < (uint32_t)x[1].size;
                        code[k] = in ? (deep + row + k) * x[2].size : -(1 << 28);
                    }
                    const uint32_t line = plane * x[1].by_overs.divisor + (uint32_t)p;
#pragma unroll 1
                    for (int q = first_q; q < end_q; ++q) {
                        const uint32_t of = (line * wide + (uint32_t)q) * a.tile_inner + c - origin;
                        const int column = w - (q * x[2].stride - x[2].pad);
                        wd_run<T, V> dy;
                        dy.load(shares(of));
                        uint32_t word[(V + 3) / 4];
                        if constexpr (V == 1) word[0] = *codes(of);
                        else if constexpr (V == 2)
                            word[0] = *reinterpret_cast<uint16_t *>(codes(of));
                        else {
#pragma unroll
                            for (int i = 0; i < V; i += 4) {
                                word[i / 4] = *reinterpret_cast<uint32_t *>(codes(of) + i);
                            }
                        }
#pragma unroll
                        for (int i = 0; i < V; ++i) {
                            const A share = wd_widen(dy.get(i));
                            const int own = (int)(word[i / 4] >> (8 * (i % 4)) & 0xffu) - column;
#pragma unroll
                            for (int k = 0; k < ROWS; ++k)
                                sum[k][i] += own == code[k] ? share : (A)0;
                        }
                    }
                }
            }
            const uint32_t deep = (outer0 + n) * (uint32_t)x[0].image + (uint32_t)d;
            const uint32_t top = deep * (uint32_t)x[1].image + (uint32_t)h;
#pragma unroll
            for (int k = 0; k < ROWS; ++k) {
                if (h0 + k >= out[1].outs) break;
                const uint32_t pixel = (top + k) * (uint32_t)x[2].image + (uint32_t)w;
                put_results<T, V>(a, (pixel * a.inner + inner0 + c) * V, sum[k]);
            }
        }
    }

    __device__ __forceinline__ void run() const
    {
        const extents whole = {a.axis[0].image, a.axis[1].image, a.axis[2].image};
        box b;
        b.outer0 = outer0, b.outers = outers, b.inner0 = inner0;
        stage<T, V>(a, static_cast<const T *>(a.x), whole, b, from);
        if (a.mode == POOL_MAX) find<POOL_MAX>();
        else find<POOL_MAX_NAN>();
        collect();
    }
};

} // namespace

#endif
