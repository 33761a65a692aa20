// SPDX-License-Identifier: Apache-2.0
//
// The grid generator. Forward, a thread has runs of 16 bytes of the grid. Backward, a block has a segment of an
// image, and adds up in a fixed order; a second kernel adds what segments have.
#ifndef WD_OPS_SPATIAL_GRID_VECTOR_CUH
#define WD_OPS_SPATIAL_GRID_VECTOR_CUH

#include "ops/spatial/spatial_vector.cuh"

namespace {

__device__ __forceinline__ float fused(float a, float b, float c)
{
    return fmaf(a, b, c);
}
__device__ __forceinline__ double fused(double a, double b, double c)
{
    return fma(a, b, c);
}

// u or v: (2 at - (extent - 1)) / (extent - 1), corrected once, so that both ends are exact.
template <class A> __device__ __forceinline__ A place_of(int at, int extent, A inverse)
{
    const A of = (A)(extent - 1);
    const A n = (A)(2 * at - (extent - 1));
    const A about = n * inverse;
    return extent > 1 ? fused(fused(-of, about, n), inverse, about) : (A)-1;
}

// A pixel of the grid, and its neighbours in memory's order.
template <class A> struct pixel {
    int w, h;
    uint32_t n;
    A u, v;
    // The number `at` of all pixels, or of an image's. Those before the first have columns below 0.
    __device__ __forceinline__ pixel(const grid_vector_args &a, int at)
    {
        n = (uint32_t)max(at, 0);
        w = (int)take_rest(n, a.by_column);
        h = (int)take_rest(n, a.by_row);
        if (at < 0) w = at;
        u = place_of<A>(w, a.columns, (A)a.inverse_w);
        v = place_of<A>(h, a.rows, (A)a.inverse_h);
    }
    // True where another row, or another image, begins.
    __device__ __forceinline__ bool next(const grid_vector_args &a)
    {
        bool wraps = ++w == a.columns;
        if (wraps) {
            w = 0;
            if (++h == a.rows) {
                h = 0;
                n += 1;
            }
            v = place_of<A>(h, a.rows, (A)a.inverse_h);
        }
        u = place_of<A>(w, a.columns, (A)a.inverse_w);
        return wraps;
    }
};

// What a row of the grid has in common.
template <class T, class A> struct transform {
    A by_u[2], rest[2];
    __device__ __forceinline__ void load(const grid_vector_args &a, const pixel<A> &at)
    {
        if (at.n >= a.images) return;
        const T *theta = static_cast<const T *>(a.theta) + 6 * (int64_t)at.n;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            by_u[k] = wd_widen(theta[3 * k]);
            rest[k] = fused(wd_widen(theta[3 * k + 1]), at.v, wd_widen(theta[3 * k + 2]));
        }
    }
};

// ODD: runs begin with the second number of a pixel.
template <class T, int V, int ODD>
__device__ __forceinline__ void forward_run(const grid_vector_args &a, int first)
{
    typedef typename accumulator<T>::type A;
    T *to = static_cast<T *>(a.grid) + first; // first counts from the first element of the grid
    pixel<A> at(a, (first - ODD) / 2);
    transform<T, A> row;
    wd_run<T, V> run;
    row.by_u[0] = row.by_u[1] = row.rest[0] = row.rest[1] = 0;
    row.load(a, at);
#pragma unroll
    for (int j = 0; j < V / 2 + ODD; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const int i = 2 * j - ODD + k;
            T narrow;
            if (i < 0 || i >= V) continue;
            wd_narrow(narrow, fused(row.by_u[k], at.u, row.rest[k]));
            run.put(i, narrow);
        }
        if (at.next(a)) row.load(a, at);
    }
    if (first >= 0 && first + V <= (int)a.elements) {
        if (a.streaming) run.store_streaming(to);
        else run.store(to);
        return;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
        if (first + i >= 0 && first + i < (int)a.elements) to[i] = run.get(i);
    }
}

// A thread has `turns` runs, a block's threads side by side.
template <class T, int V> __device__ __forceinline__ void grid_forward(const grid_vector_args &a)
{
    uint32_t r = blockIdx.x * a.turns * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
#pragma unroll 1
    for (uint32_t k = 0; k < a.turns && r < a.count; ++k, r += blockDim.x) {
        const int first = (int)(r * V) - (int)a.skip;
        if (a.skip & 1) forward_run<T, V, 1>(a, first);
        else forward_run<T, V, 0>(a, first);
    }
}

// The same, K runs in the code: faster where there are many, in fp32.
template <class T, int V, int K>
__device__ __forceinline__ void grid_forward_many(const grid_vector_args &a)
{
    const uint32_t own = blockIdx.x * (K * blockDim.x) + threadIdx.x;
    wd_wait_for_previous();
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const uint32_t r = own + k * blockDim.x;
        if (r >= a.count) return;
        const int first = (int)(r * V) - (int)a.skip;
        if (a.skip & 1) forward_run<T, V, 1>(a, first);
        else forward_run<T, V, 0>(a, first);
    }
}

// The same where rows are whole runs of aligned memory: a block has a segment of an image's rows, and a
// thread goes down a column of runs, so that u is the column's and only v is new.
template <class T, int V> __device__ __forceinline__ void grid_rows(const grid_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    const int across = (int)a.by_line.divisor;
    const int together = max(SPATIAL_THREADS / across, 1); // rows that the block has at once
    uint32_t n = blockIdx.x, row = threadIdx.x;
    const int begin = (int)take_rest(n, a.by_segment) * (int)a.segment;
    const int end = min(begin + (int)a.segment, a.rows);
    int q = (int)take_rest(row, a.by_line);
    A theta[6];
    wd_wait_for_previous();
    if ((int)row >= together) return; // few: no whole row is left for them
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        theta[i] = wd_widen(static_cast<const T *>(a.theta)[6 * (int64_t)n + i]);
    }
#pragma unroll 1
    for (; q < across; q += SPATIAL_THREADS) {
        A u[V / 2];
        int h = begin + (int)row;
        T *to = static_cast<T *>(a.grid) + n * (int64_t)a.elements + ((int64_t)h * across + q) * V;
#pragma unroll
        for (int i = 0; i < V / 2; ++i) {
            u[i] = place_of<A>(q * (V / 2) + i, a.columns, (A)a.inverse_w);
        }
#pragma unroll 2
        for (; h < end; h += together) {
            const A v = place_of<A>(h, a.rows, (A)a.inverse_h);
            const A rest[2] = {fused(theta[1], v, theta[2]), fused(theta[4], v, theta[5])};
            wd_run<T, V> run;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                T narrow;
                wd_narrow(narrow, fused(theta[i % 2 * 3], u[i / 2], rest[i % 2]));
                run.put(i, narrow);
            }
            if (a.streaming) run.store_streaming(to);
            else run.store(to);
            to += (int64_t)together * across * V;
        }
    }
}

// Elements first .. first+V-1 of an image's gradient; 0 where it has none.
template <class T, int V>
__device__ __forceinline__ void gradient_run(const grid_vector_args &a, const T *image, int first,
                                             wd_run<T, V> &run)
{
    if (first >= 0 && first + V <= (int)a.elements) {
        run.load(image + first);
        return;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
        T value;
        wd_narrow(value, (typename accumulator<T>::type)0);
        if (first + i >= 0 && first + i < (int)a.elements) value = image[first + i];
        run.put(i, value);
    }
}

template <class T, int V, int ODD, class A>
__device__ __forceinline__ void collect_run(const grid_vector_args &a, const wd_run<T, V> &run,
                                            int first, A *sums)
{
    pixel<A> at(a, (first - ODD) / 2);
#pragma unroll
    for (int j = 0; j < V / 2 + ODD; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const int i = 2 * j - ODD + k;
            if (i < 0 || i >= V) continue;
            const A g = wd_widen(run.get(i));
            sums[3 * k] = fused(g, at.u, sums[3 * k]);
            sums[3 * k + 1] = fused(g, at.v, sums[3 * k + 1]);
            sums[3 * k + 2] += g;
        }
        if (j + 1 < V / 2 + ODD) at.next(a);
    }
}

// Runs r, r + a block's threads .. end-1 of an image that begins `skip` elements behind aligned memory:
// a few are asked for at once.
template <class T, int V, int ODD, class A>
__device__ __forceinline__ void collect_runs(const grid_vector_args &a, const T *image, int skip,
                                             int r, int end, A *sums)
{
    constexpr int U = 4;
    for (; r < end; r += U * SPATIAL_THREADS) {
        wd_run<T, V> run[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int one = min(r + u * SPATIAL_THREADS, end - 1);
            gradient_run<T, V>(a, image, one * V - skip, run[u]);
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int one = r + u * SPATIAL_THREADS;
            if (one < end) collect_run<T, V, ODD>(a, run[u], one * V - skip, sums);
        }
    }
}

// The same where rows are whole runs of aligned memory: a thread goes down a column of runs, so that u is
// the column's and only v is new. Rows from .. to-1 of the image.
template <class T, int V, class A>
__device__ __forceinline__ void collect_rows(const grid_vector_args &a, const T *image, int from,
                                             int to, A *sums)
{
    constexpr int U = 4;
    const int across = (int)a.by_line.divisor;
    const int together = max(SPATIAL_THREADS / across, 1); // rows that the block has at once
    uint32_t row = threadIdx.x;
    int q = (int)take_rest(row, a.by_line);
    if ((int)row >= together) return; // few: no whole row is left for them
#pragma unroll 1
    for (; q < across; q += SPATIAL_THREADS) {
        A own[V], by_v[2] = {0, 0};
        int h = from + (int)row;
        const T *at = image + ((int64_t)h * across + q) * V;
        const int64_t step = (int64_t)together * across * V;
#pragma unroll
        for (int i = 0; i < V; ++i) own[i] = 0;
#pragma unroll 1
        for (; h < to; h += U * together) {
            wd_run<T, V> run[U];
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (h + u * together < to) run[u].load(at);
                at += step;
            }
#pragma unroll
            for (int u = 0; u < U; ++u) {
                A both[2] = {0, 0};
                if (h + u * together >= to) continue;
                const A v = place_of<A>(h + u * together, a.rows, (A)a.inverse_h);
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    const A g = wd_widen(run[u].get(i));
                    own[i] += g;
                    both[i % 2] += g;
                }
                by_v[0] = fused(both[0], v, by_v[0]);
                by_v[1] = fused(both[1], v, by_v[1]);
            }
        }
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const A u = place_of<A>(q * (V / 2) + i / 2, a.columns, (A)a.inverse_w);
            sums[i % 2 * 3] = fused(own[i], u, sums[i % 2 * 3]);
            sums[i % 2 * 3 + 2] += own[i];
        }
        sums[1] += by_v[0];
        sums[4] += by_v[1];
    }
}

// Six sums of a block's threads, in the first of them: warp by warp, then those in order.
template <class A> __device__ __forceinline__ void sum_block(A *sums)
{
    constexpr int WARPS = SPATIAL_THREADS / 32;
    __shared__ A shared[6 * WARPS];
#pragma unroll
    for (int i = 0; i < 6; ++i) {
#pragma unroll
        for (int by = 16; by > 0; by /= 2) {
            sums[i] += __shfl_down_sync(0xffffffffu, sums[i], (uint32_t)by);
        }
        if (threadIdx.x % 32 == 0) shared[i * WARPS + (int)threadIdx.x / 32] = sums[i];
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        sums[i] = shared[i * WARPS];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) sums[i] += shared[i * WARPS + w];
    }
}

template <class T, class A>
__device__ __forceinline__ void put_sums(const grid_vector_args &a, uint32_t image, const A *sums)
{
    T *to = static_cast<T *>(a.theta) + 6 * (int64_t)image;
#pragma unroll
    for (int i = 0; i < 6; ++i) wd_narrow(to[i], sums[i]);
}

// A block's segment: runs of V elements that lie at aligned addresses, or rows of them.
template <class T, int V> __device__ __forceinline__ void grid_backward(const grid_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    uint32_t n = blockIdx.x;
    const int segment = (int)take_rest(n, a.by_segment);
    const T *image = static_cast<const T *>(a.grid) + n * (int64_t)a.elements;
    const int begin = segment * (int)a.segment;
    A sums[6] = {0, 0, 0, 0, 0, 0};
    wd_wait_for_previous();
    if (a.by_rows) {
        collect_rows<T, V>(a, image, begin, min(begin + (int)a.segment, a.rows), sums);
    } else {
        const int skip = (int)((uintptr_t)image % 16 / sizeof(T));
        const int runs = ((int)a.elements + skip + V - 1) / V;
        const int end = min(begin + (int)a.segment, runs), first = begin + (int)threadIdx.x;
        if (skip & 1) collect_runs<T, V, 1>(a, image, skip, first, end, sums);
        else collect_runs<T, V, 0>(a, image, skip, first, end, sums);
    }
    sum_block(sums);
    if (threadIdx.x > 0) return;
    if (!a.partial) {
        put_sums<T>(a, n, sums);
        return;
    }
#pragma unroll
    for (int i = 0; i < 6; ++i) static_cast<A *>(a.partial)[blockIdx.x * 6 + i] = sums[i];
}

// What the segments of an image have, at most one a thread.
template <class T> __device__ __forceinline__ void grid_finish(const grid_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    const A *from = static_cast<const A *>(a.partial) + (int64_t)blockIdx.x * a.segments * 6;
    A sums[6] = {0, 0, 0, 0, 0, 0};
    wd_wait_for_previous();
    if (threadIdx.x < a.segments) {
#pragma unroll
        for (int i = 0; i < 6; ++i) sums[i] = from[threadIdx.x * 6 + i];
    }
    sum_block(sums);
    if (threadIdx.x == 0) put_sums<T>(a, blockIdx.x, sums);
}

} // namespace

#endif
