// SPDX-License-Identifier: Apache-2.0
//
// Softmax over rows that a warp holds, or a block of eight; neighbours of a row are neighbours in memory. Rows
// that are whole runs of 16 bytes are loaded into registers by runs (few), others element by element
// (direct): where there is little to do, and where the tensors lie differently on the boundaries of 16
// bytes. See softmax_rows.c.
#include "ops/softmax/softmax_device.cuh"

namespace {

// ---- Rows by runs ----

// Runs first, first + lanes, ... of the `n` that a row has.
template <class T, int R>
__device__ __forceinline__ void load_runs(run<T> *to, const T *from, uint32_t first, uint32_t lanes,
                                          uint32_t n, acc<T> pad)
{
#pragma unroll
    for (int i = 0; i < R; ++i) {
#pragma unroll
        for (int j = 0; j < run_of<T>; ++j) to[i].put(j, narrow<T>(pad));
        if (first + i * lanes < n) to[i].load(from + (first + i * lanes) * run_of<T>);
    }
#pragma unroll
    for (int i = 0; i < R; ++i) forget<1>(to[i]);
}

// What is scaled or blended goes one by one: that is rare, and would double the code.
template <class T, int R, bool BACKWARD, bool LOG>
__device__ __forceinline__ void store_runs(const softmax_vector_args &a, T *to, uint32_t first,
                                           uint32_t n, run<T> *x, run<T> *dy,
                                           const totals<acc<T>> &all)
{
    constexpr int V = run_of<T>;
    const acc<T> number = BACKWARD ? (acc<T>)0 : prepared<T>(all.sum, LOG);
#pragma unroll
    for (int i = 0; i < R; ++i) {
        forget<2 + LOG>(x[i]);
        if (BACKWARD) forget<2 + LOG>(dy[i]);
    }
    if (!a.plain) {
#pragma unroll 1
        for (int i = 0; i < R; ++i) {
            const run<T> one = pick<R>(x, i), one_dy = BACKWARD ? pick<R>(dy, i) : one;
            acc<T> v[V];
            if (first + i * a.lanes >= n) break;
#pragma unroll
            for (int j = 0; j < V; ++j) {
                v[j] = result<T, BACKWARD>(wd_widen(one.get(j)), wd_widen(one_dy.get(j)), all,
                                           number, LOG);
            }
            blend_run<T, V>(a, to + (first + i * a.lanes) * V, v);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < R; ++i) {
        const uint32_t index = first + i * a.lanes;
        run<T> out;
        if (index >= n) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            out.put(j, narrow<T>(result<T, BACKWARD>(wd_widen(x[i].get(j)),
                                                     BACKWARD ? wd_widen(dy[i].get(j)) : (acc<T>)0,
                                                     all, number, LOG)));
        }
        if (a.streaming) out.store_streaming(to + index * V);
        else out.store(to + index * V);
    }
}

// Joined over the lanes of a row within a warp, or over the block where that has a row.
template <class A, bool MAX> __device__ __forceinline__ A joined(A mine, uint32_t lanes)
{
    __shared__ A part[8];
    mine = MAX ? max_of_lanes(mine, min(lanes, 32u)) : sum_of_lanes(mine, min(lanes, 32u));
    if (lanes <= 32) return mine;
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
    __syncthreads();
    // every warp has them; of the block's up to 8 warps
    mine = MAX ? lowest<A>() : (A)0;
    if (threadIdx.x % 8 < lanes / 32) mine = part[threadIdx.x % 8];
    return MAX ? max_of_lanes(mine, 8) : sum_of_lanes(mine, 8);
}

// Several rows a warp, or one, or one a block.
template <class T, int R, bool BACKWARD> __device__ void rows_few(const softmax_vector_args &a)
{
    using A = acc<T>;
    constexpr int V = run_of<T>;
    const bool by_block = !BACKWARD && a.lanes > 32;
    const uint32_t lane = by_block ? threadIdx.x : threadIdx.x & (a.lanes - 1);
    const int64_t row =
        by_block ? (int64_t)blockIdx.x
                 : (int64_t)blockIdx.x * (blockDim.x >> a.lane_bits) + (threadIdx.x >> a.lane_bits);
    const uint32_t n = row < a.rows ? (uint32_t)a.runs : 0;
    const int64_t at = row * a.length;
    run<T> x[R], dy[BACKWARD ? R : 1];
    totals<A> all = {0, 0};
    wd_wait_for_previous();
    load_runs<T, R>(x, static_cast<const T *>(a.x) + at, lane, a.lanes, n,
                    BACKWARD ? (A)0 : lowest<A>());
    if constexpr (BACKWARD) {
        load_runs<T, R>(dy, static_cast<const T *>(a.dy) + at, lane, a.lanes, n, (A)0);
    } else {
        A max = lowest<A>();
#pragma unroll
        for (int i = 0; i < R; ++i) {
#pragma unroll
            for (int j = 0; j < V; ++j) max = larger(max, wd_widen(x[i].get(j)));
        }
#pragma unroll
        for (int i = 0; i < R; ++i) forget<0>(x[i]);
        all.max = joined<A, true>(max, a.lanes);
    }
    A sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < R; ++i) {
#pragma unroll
        for (int j = 0; j < V; ++j) {
            sum[j % 2] += term<T, BACKWARD>(
                wd_widen(x[i].get(j)), BACKWARD ? wd_widen(dy[i].get(j)) : (A)0, all.max, a.log);
        }
    }
    if constexpr (BACKWARD) all.sum = sum_of_lanes(sum[0] + sum[1], a.lanes);
    else all.sum = joined<A, false>(sum[0] + sum[1], a.lanes);
    T *to = static_cast<T *>(a.y) + at;
    if (a.log) store_runs<T, R, BACKWARD, true>(a, to, lane, n, x, dy, all);
    else store_runs<T, R, BACKWARD, false>(a, to, lane, n, x, dy, all);
}

// ---- Rows by elements ----

// Elements lane, lane + lanes, ... of a row. A thread's E are looked at by groups, of which those
// behind the row's end are left out for all threads together.
template <class T, int E, bool BACKWARD> struct lane_row {
    using A = acc<T>;
    static constexpr int GROUP = E < 8 ? E : 8;
    const softmax_vector_args &a;
    uint32_t lane;
    uint32_t lanes;
    uint32_t n; // elements of the row, 0 where there is none
    A x[E];
    A dy[BACKWARD ? E : 1];

    __device__ __forceinline__ bool is_behind(int group) const
    {
        return group > 0 && group * lanes >= (uint32_t)a.length;
    }

    __device__ __forceinline__ void load(A *to, const T *from, A pad)
    {
#pragma unroll
        for (int g = 0; g < E; g += GROUP) {
#pragma unroll
            for (int j = 0; j < GROUP; ++j) to[g + j] = pad;
            if (is_behind(g)) continue;
#pragma unroll
            for (int j = 0; j < GROUP; ++j) {
                const uint32_t k = lane + (g + j) * lanes;
                if (k < n) to[g + j] = wd_widen(from[k]);
            }
        }
    }

    // x becomes y before it is scaled.
    __device__ __forceinline__ void forward()
    {
        constexpr A lower = sizeof(T) == 2 ? (A)1 / (1 << HEADROOM) : (A)1;
        A max = lowest<A>();
        A sum[2] = {0, 0};
#pragma unroll
        for (int e = 0; e < E; ++e) max = larger(max, x[e]);
        max = max_of_lanes(max, lanes);
#pragma unroll
        for (int g = 0; g < E; g += GROUP) {
            if (is_behind(g)) continue;
#pragma unroll
            for (int j = 0; j < GROUP; ++j) {
                const A less = x[g + j] - max;
                const A e = raised_exp<T>(less);
                sum[j % 2] += e;
                x[g + j] = a.log ? less : e;
            }
        }
        sum[0] = sum_of_lanes(sum[0] + sum[1], lanes);
        A factor = 1, offset = 0;
        if (a.log) offset = -log_of(sum[0] * lower);
        else if constexpr (sizeof(T) == 2) factor = wd_half_reciprocal(sum[0]);
        else factor = (A)1 / sum[0];
#pragma unroll
        for (int e = 0; e < E; ++e) x[e] = x[e] * factor + offset;
    }

    // x becomes dx.
    __device__ __forceinline__ void backward()
    {
        A sum[2] = {0, 0};
#pragma unroll
        for (int e = 0; e < E; ++e) sum[e % 2] += a.log ? dy[e] : x[e] * dy[e];
        sum[0] = sum_of_lanes(sum[0] + sum[1], lanes);
#pragma unroll
        for (int g = 0; g < E; g += GROUP) {
            if (is_behind(g)) continue;
#pragma unroll
            for (int j = 0; j < GROUP; ++j) {
                x[g + j] = a.log ? dy[g + j] - element_exp<T>(x[g + j]) * sum[0]
                                 : x[g + j] * (dy[g + j] - sum[0]);
            }
        }
    }

    // `old` is y's row in global memory.
    __device__ __forceinline__ void store(T *to, const T *old)
    {
        const A alpha = (A)a.alpha, beta = (A)a.beta;
#pragma unroll
        for (int g = 0; g < E; g += GROUP) {
            if (is_behind(g)) continue;
#pragma unroll
            for (int j = 0; j < GROUP; ++j) {
                const uint32_t k = lane + (g + j) * lanes;
                if (k >= n) continue;
                A v = x[g + j];
                if (!a.plain) v = scaled(v, alpha) + (beta != 0 ? beta * wd_widen(old[k]) : (A)0);
                wd_narrow(to[k], v);
            }
        }
    }

    __device__ __forceinline__ void run(const T *from, const T *from_dy, T *to, const T *old)
    {
        load(x, from, BACKWARD ? (A)0 : lowest<A>());
        if constexpr (BACKWARD) {
            load(dy, from_dy, (A)0);
            backward();
        } else {
            forward();
        }
        store(to, old);
    }
};

template <class T, int E, bool BACKWARD> __device__ void rows_direct(const softmax_vector_args &a)
{
    const uint32_t lanes = E > 8 ? 32 : a.lanes;
    const int64_t row =
        (int64_t)blockIdx.x * (blockDim.x >> a.lane_bits) + (threadIdx.x >> a.lane_bits);
    const int64_t at = row * a.length;
    lane_row<T, E, BACKWARD> mine = {a, threadIdx.x & (lanes - 1), lanes,
                                     row < a.rows ? (uint32_t)a.length : 0};
    T *to = static_cast<T *>(a.y) + at;
    wd_wait_for_previous();
    mine.run(static_cast<const T *>(a.x) + at, static_cast<const T *>(a.dy) + at, to, to);
}

} // namespace

#define WD_KERNELS_ROWS "ops/softmax/softmax_rows_kernels.def"
#include "ops/kernels_device.inc"
