// SPDX-License-Identifier: Apache-2.0
//
// Separable pooling of a staged box: sums and maxima of windows, and the gradient of averages, which
// is a sum over windows. Rows first, then columns, then depth; each thread makes K neighbours along
// the axis of its pass from one set of loads.
#ifndef WD_OPS_POOLING_TILE_BODY_CUH
#define WD_OPS_POOLING_TILE_BODY_CUH

#include "ops/pooling/pooling_tile.cuh"

namespace {

// How many elements of an axis window `at` covers.
__device__ __forceinline__ int covered(const pool_axis &x, int at)
{
    const int start = at * x.stride - x.pad;
    return max(min(start + x.size, x.image) - max(start, 0), 0);
}

template <class T, int V, int MODE, bool SPREAD, int WAY> struct tile_pooling {
    using A = acc<T>;
    // maxima are elements and stay what they are
    using M = typename std::conditional<MODE == POOL_AVERAGE, A, T>::type;
    static constexpr int COLUMNS = V > 1 ? POOL_OF_RUNS : POOL_COLUMNS;
    static constexpr int ROWS = V > 1 ? POOL_OF_RUNS : POOL_ROWS;

    const pool_tile_args &a;
    const box &b;

    __device__ __forceinline__ tile_pooling(const pool_tile_args &args, const box &of)
        : a(args), b(of)
    {
    }

    // With padding left out, what a window along an axis hands to each of its elements.
    __device__ __forceinline__ A *weights(int axis) const
    {
        uint32_t before = axis < 2 ? a.axis[2].by_ins.divisor : 0;
        if (axis < 1) before += a.axis[1].by_ins.divisor;
        return reinterpret_cast<A *>(memory_at(a.at.weights + before * 8));
    }

    __device__ __forceinline__ void make_weights() const
    {
        if (!SPREAD || !a.exclude) return;
#pragma unroll
        for (int d = 0; d < 3; ++d) {
            A *to = weights(d);
            for (int i = (int)threadIdx.x; i < b.on[d].ins; i += (int)blockDim.x) {
                to[i] = inverse<A>(covered(a.axis[d], b.on[d].in0 + i));
            }
        }
    }

    __device__ __forceinline__ void weigh(int axis, int i, A *v) const
    {
        if (!SPREAD || !a.exclude) return;
        const A weight = weights(axis)[i];
#pragma unroll
        for (int e = 0; e < V; ++e) v[e] *= weight;
    }

    __device__ __forceinline__ void finish(int z, int p, uint32_t outer, uint32_t at, A *v) const
    {
        uint32_t q = at;
        const uint32_t c = wd_take_rest(q, a.by_tile_inner);
        if ((int)q >= b.on[2].outs || b.inner0 + c >= a.inner) return;
        const int column = b.on[2].out0 + (int)q;
        if (MODE == POOL_AVERAGE) {
            A factor = (A)a.inverse;
            if (a.exclude) {
                factor = (A)1;
                if (!SPREAD) {
                    const int n =
                        covered(a.axis[0], z) * covered(a.axis[1], p) * covered(a.axis[2], column);
                    factor = n > 0 ? inverse<A>(n) : (A)0;
                }
            }
#pragma unroll
            for (int i = 0; i < V; ++i) v[i] *= factor;
        } else if (MODE == POOL_MAX) {
#pragma unroll
            for (int i = 0; i < V; ++i) v[i] = v[i] != v[i] ? (A)a.lowest : v[i];
        } else if (covered(a.axis[0], z) == 0 || covered(a.axis[1], p) == 0 ||
                   covered(a.axis[2], column) == 0) {
#pragma unroll
            for (int i = 0; i < V; ++i) v[i] = (A)a.lowest;
        }
        const pool_axis *x = a.axis;
        const int high = SPREAD ? x[1].image : x[1].windows,
                  wide = SPREAD ? x[2].image : x[2].windows;
        const int deep = SPREAD ? x[0].image : x[0].windows;
        const size_t row = ((size_t)outer * deep + z) * high + p;
        put_results<T, V>(a, ((row * wide + column) * a.inner + b.inner0 + c) * V, v);
    }

    __device__ __forceinline__ void columns() const
    {
        const pool_axis &x = a.axis[2];
        const uint32_t rows = b.outers * a.axis[0].by_ins.divisor * a.axis[1].by_ins.divisor;
        const uint32_t items = rows * x.by_groups.divisor * a.tile_inner;
        const uint32_t step = a.tile_inner * V * (uint32_t)sizeof(T);
        for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
            uint32_t row = item;
            const uint32_t c = wd_take_rest(row, a.by_tile_inner);
            const int o = (int)wd_take_rest(row, x.by_groups) * COLUMNS;
            const uint32_t from = row_at<T, V>(a, row) + c * V * (uint32_t)sizeof(T);
            A value[COLUMNS][V];
            along<MODE, SPREAD, WAY, COLUMNS, V>(
                x, b.on[2], b.on[2].out0 + o,
                [&](int i, A *v) {
                    wd_run<T, V> run;
                    run.load(reinterpret_cast<const T *>(memory_at(from + (uint32_t)i * step)));
#pragma unroll
                    for (int e = 0; e < V; ++e) v[e] = wd_widen(run.get(e));
                    weigh(2, i, v);
                },
                value);
            const uint32_t to = (row * (uint32_t)x.outs + o) * a.tile_inner + c;
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) {
                if (o + k < x.outs) {
                    store_between<M, V>(a.at.middle, a.at.half, to + k * a.tile_inner, value[k]);
                }
            }
        }
        __syncthreads();
    }

    __device__ __forceinline__ void rows() const
    {
        const pool_axis &x = a.axis[1];
        const uint32_t row = a.by_row.divisor;
        const uint32_t items = b.outers * a.axis[0].by_ins.divisor * x.by_groups.divisor * row;
        for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
            uint32_t n = item;
            const uint32_t at = wd_take_rest(n, a.by_row);
            const int o = (int)wd_take_rest(n, x.by_groups) * ROWS;
            const uint32_t from = n * x.by_ins.divisor * row + at;
            A value[ROWS][V];
            along<MODE, SPREAD, WAY, ROWS, V>(
                x, b.on[1], b.on[1].out0 + o,
                [&](int i, A *v) {
                    load_between<M, V>(a.at.middle, a.at.half, from + (uint32_t)i * row, v);
                    weigh(1, i, v);
                },
                value);
#pragma unroll
            for (int k = 0; k < ROWS; ++k) {
                if (o + k >= b.on[1].outs) break;
                if (a.volume) {
                    store_between<M, V>(a.at.second, a.at.second_half,
                                        (n * (uint32_t)x.outs + o + k) * row + at, value[k]);
                } else {
                    finish(0, b.on[1].out0 + o + k, b.outer0 + n, at, value[k]);
                }
            }
        }
    }

    __device__ __forceinline__ void depth() const
    {
        const pool_axis &x = a.axis[0];
        // anew: what only this pass needs would take registers from the others
        uint32_t block = blockIdx.x;
        wd_forget<0>(block);
        const box again = box_of<SPREAD>(a, block);
        const uint32_t plane = a.by_plane.divisor;
        const uint32_t items = again.outers * x.by_groups.divisor * plane;
        __syncthreads();
        for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
            uint32_t n = item;
            uint32_t p = wd_take_rest(n, a.by_plane);
            const int o = (int)wd_take_rest(n, x.by_groups) * POOL_OF_RUNS;
            const uint32_t from = n * x.by_ins.divisor * plane + p;
            A value[POOL_OF_RUNS][V];
            along<MODE, SPREAD, POOL_ANY, POOL_OF_RUNS, V>(
                x, again.on[0], again.on[0].out0 + o,
                [&](int i, A *v) {
                    load_between<M, V>(a.at.second, a.at.second_half, from + (uint32_t)i * plane,
                                       v);
                    weigh(0, i, v);
                },
                value);
            const uint32_t at = wd_take_rest(p, a.by_row);
            if ((int)p >= again.on[1].outs) continue;
#pragma unroll
            for (int k = 0; k < POOL_OF_RUNS; ++k) {
                if (o + k >= again.on[0].outs) break;
                finish(again.on[0].out0 + o + k, again.on[1].out0 + (int)p, again.outer0 + n, at,
                       value[k]);
            }
        }
    }

    __device__ __forceinline__ void run() const
    {
        columns();
        rows();
        if (a.volume) depth();
    }
};

// Stages a block's box, by the same code whatever is made of it.
template <class T, int V, bool SPREAD>
__device__ __forceinline__ box tile_staged(const pool_tile_args &a)
{
    const pool_axis *x = a.axis;
    const box b = box_of<SPREAD>(a, blockIdx.x);
    const extents whole = SPREAD ? extents{x[0].windows, x[1].windows, x[2].windows}
                                 : extents{x[0].image, x[1].image, x[2].image};
    if (SPREAD) tile_pooling<T, V, POOL_AVERAGE, SPREAD, POOL_ANY>(a, b).make_weights();
    stage<T, V>(a, static_cast<const T *>(a.from), whole, b, b.on);
    return b;
}

} // namespace

#endif
