// SPDX-License-Identifier: Apache-2.0
//
// Gradients of windows that do not overlap, straight from memory: a thread has a window of a run of
// channels, or the windows of a run of columns, finds its maximum and writes all of dx up to the next
// window. And averages over whole planes.
#include "ops/pooling/pooling_tile_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

// What belongs to a window of an axis: start is where it begins, low .. high-1 what it covers of the
// image, from .. to-1 what is written with it.
struct land {
    int start;
    int low;
    int high;
    int from;
    int to;
    __device__ __forceinline__ land(const pool_axis &x, int at)
        : start(at * x.stride - x.pad), low(max(start, 0)), high(min(start + x.size, x.image)),
          from(at == 0 ? 0 : max(start, 0)),
          to(at == x.windows - 1 ? x.image : min(start + x.stride, x.image))
    {
    }
    __device__ __forceinline__ int covered() const
    {
        return max(high - low, 0);
    }
};

template <class A> __device__ __forceinline__ A mean_factor(const pool_tile_args &a, int covered)
{
    return a.exclude ? covered > 0 ? inverse<A>(covered) : (A)0 : (A)a.inverse;
}

// Pixels: a window of V channels. SIZE rows and columns at most, or 0: any. Each mode by its own code: one
// loop that hands on for all of them took 1.27 of the time of averages.
template <class T, int V, int MODE, int SIZE>
__device__ __forceinline__ void apart_pixel(const pool_tile_args &a)
{
    // of single elements one, for six blocks a processor
    constexpr int AT_ONCE = V > 1 ? 2 : 1;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.total) return;
    uint32_t n = item;
    const uint32_t run = wd_take_rest(n, a.by_tile_inner);
    const land column(a.axis[2], (int)wd_take_rest(n, a.axis[2].by_tiles));
    const land row(a.axis[1], (int)wd_take_rest(n, a.axis[1].by_tiles));
    const land depth(a.axis[0], (int)wd_take_rest(n, a.axis[0].by_tiles));
    const uint32_t image = n * (uint32_t)a.axis[0].image;
    const uint32_t high = (uint32_t)a.axis[1].image, wide = (uint32_t)a.axis[2].image;
    // elements are less than 2^31
    auto at = [&](int d, int h, int w) {
        const uint32_t line = (image + (uint32_t)d) * high + (uint32_t)h;
        return ((line * wide + (uint32_t)w) * a.inner + run) * V;
    };
    wd_run<T, V> dy;
    dy.load(static_cast<const T *>(a.from) + (size_t)item * V);
    window_place<MODE, float> t[V];
    float share[V];
    const T *x = static_cast<const T *>(a.x);
#pragma unroll
    for (int i = 0; i < V; ++i) {
        t[i].clear();
        share[i] = wd_widen(dy.get(i));
    }
    if (MODE == POOL_AVERAGE) {
        const float factor =
            mean_factor<float>(a, depth.covered() * row.covered() * column.covered());
#pragma unroll
        for (int i = 0; i < V; ++i) share[i] *= factor;
    } else {
        auto see = [&](int d, int h, int w, const wd_run<T, V> &one) {
            const int code = ((d - depth.start) * a.axis[1].size + h - row.start) * a.axis[2].size +
                             w - column.start;
#pragma unroll
            for (int i = 0; i < V; ++i) t[i].take(wd_widen(one.get(i)), (uint32_t)code);
        };
#pragma unroll 1
        for (int d = depth.low; d < depth.high; ++d) {
            if constexpr (SIZE > 0) {
                wd_run<T, V> line[SIZE * SIZE];
#pragma unroll
                for (int r = 0; r < SIZE * SIZE; ++r) {
                    const int h = row.low + r / SIZE, w = column.low + r % SIZE;
                    if (h < row.high && w < column.high) line[r].load(x + at(d, h, w));
                }
#pragma unroll
                for (int r = 0; r < SIZE * SIZE; ++r) {
                    const int h = row.low + r / SIZE, w = column.low + r % SIZE;
                    if (h < row.high && w < column.high) see(d, h, w, line[r]);
                }
            } else {
#pragma unroll 1
                for (int h = row.low; h < row.high; ++h) {
#pragma unroll AT_ONCE
                    for (int w = column.low; w < column.high; ++w) {
                        wd_run<T, V> one;
                        one.load(x + at(d, h, w));
                        see(d, h, w, one);
                    }
                }
            }
        }
    }
    for (int d = depth.from; d < depth.to; ++d) {
        for (int h = row.from; h < row.to; ++h) {
#pragma unroll AT_ONCE
            for (int w = column.from; w < column.to; ++w) {
                const bool in = d >= depth.low && d < depth.high && h >= row.low && h < row.high &&
                                w >= column.low && w < column.high;
                const int code =
                    ((d - depth.start) * a.axis[1].size + h - row.start) * a.axis[2].size + w -
                    column.start;
                float value[V];
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    const bool gets = MODE == POOL_AVERAGE || t[i].code == (uint32_t)code;
                    value[i] = in && gets ? share[i] : 0.0f;
                }
                put_scaled<T, V>(a, at(d, h, w), value);
            }
        }
    }
}

// Planes, windows of two columns at a stride of two, W = 2Q, and of two rows at most: V columns.
template <class T, int V, int MODE>
__device__ __forceinline__ void apart_pairs(const pool_tile_args &a)
{
    constexpr int K = V / 2;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.total) return;
    uint32_t n = item;
    const uint32_t run = wd_take_rest(n, a.by_tile_inner);
    const land row(a.axis[1], (int)wd_take_rest(n, a.axis[1].by_tiles));
    const land depth(a.axis[0], (int)wd_take_rest(n, a.axis[0].by_tiles));
    const uint32_t image = n * (uint32_t)a.axis[0].image;
    const uint32_t high = (uint32_t)a.axis[1].image, wide = (uint32_t)a.axis[2].image;
    auto at = [&](int d, int h) {
        return ((image + (uint32_t)d) * high + (uint32_t)h) * wide + run * V;
    };
    wd_run<T, K> dy;
    dy.load(static_cast<const T *>(a.from) + (size_t)item * K);
    window_place<MODE, float> t[K];
    float share[K];
    const T *x = static_cast<const T *>(a.x);
#pragma unroll
    for (int i = 0; i < K; ++i) {
        t[i].clear();
        share[i] = wd_widen(dy.get(i));
    }
    if (MODE == POOL_AVERAGE) {
        const float factor = mean_factor<float>(a, 2 * depth.covered() * row.covered());
#pragma unroll
        for (int i = 0; i < K; ++i) share[i] *= factor;
    } else {
        for (int d = depth.low; d < depth.high; ++d) {
            wd_run<T, V> line[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                if (row.low + r < row.high) line[r].load(x + at(d, row.low + r));
            }
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const int h = row.low + r;
                if (h >= row.high) continue;
                const int code = ((d - depth.start) * a.axis[1].size + h - row.start) * 2;
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    t[i / 2].take(wd_widen(line[r].get(i)), (uint32_t)(code + i % 2));
                }
            }
        }
    }
    for (int d = depth.from; d < depth.to; ++d) {
#pragma unroll 2
        for (int h = row.from; h < row.to; ++h) {
            const bool in = d >= depth.low && d < depth.high && h >= row.low && h < row.high;
            const int code = ((d - depth.start) * a.axis[1].size + h - row.start) * 2;
            float value[V];
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const bool gets = MODE == POOL_AVERAGE || t[i / 2].code == (uint32_t)(code + i % 2);
                value[i] = in && gets ? share[i / 2] : 0.0f;
            }
            put_scaled<T, V>(a, at(d, h), value);
        }
    }
}

// Planes that are one window each: runs of V neighbours of dx, wherever planes end; a thread has a few, a
// block apart.
template <class T, int V> __device__ __forceinline__ void apart_plane(const pool_tile_args &a)
{
    const uint32_t begin = (blockIdx.x * POOL_PLANE_RUNS * blockDim.x + threadIdx.x) * V;
    const T *dy = static_cast<const T *>(a.from);
    const float factor = a.exclude ? inverse<float>((int)a.by_plane.divisor) : (float)a.inverse;
    float own[POOL_PLANE_RUNS];
#pragma unroll
    for (int u = 0; u < POOL_PLANE_RUNS; ++u) {
        const uint32_t first = begin + u * blockDim.x * V;
        if (first < a.total) own[u] = wd_widen(dy[wd_fastdiv_quotient(first, a.by_plane)]) * factor;
    }
#pragma unroll
    for (int u = 0; u < POOL_PLANE_RUNS; ++u) {
        const uint32_t first = begin + u * blockDim.x * V;
        if (first >= a.total) return;
        const uint32_t next =
            (wd_fastdiv_quotient(first, a.by_plane) + 1) * a.by_plane.divisor; // plane
        float value[V];
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] = own[u];
        if (next < first + V) {
#pragma unroll
            for (int i = 1; i < V; ++i) {
                const uint32_t at = min(first + i, a.total - 1);
                if (at >= next) {
                    value[i] = wd_widen(dy[wd_fastdiv_quotient(at, a.by_plane)]) * factor;
                }
            }
        }
        if (first + V <= a.total) {
            put_scaled<T, V>(a, first, value);
        } else {
            for (int i = 0; i < V; ++i) {
                if (first + i < a.total) put_scaled<T, 1>(a, first + i, value + i);
            }
        }
    }
}

// ---- Modes ----

template <class T, int V> __device__ __forceinline__ void grad_mean(const pool_tile_args &a)
{
    wd_wait_for_previous();
    apart_pixel<T, V, POOL_AVERAGE, 0>(a);
}

// Averages of runs have a kernel of their own, for they need half the registers.
template <class T, int V, int SIZE>
__device__ __forceinline__ void grad_pixel(const pool_tile_args &a)
{
    wd_wait_for_previous();
    if (V == 1 && a.mode == POOL_AVERAGE) apart_pixel<T, V, POOL_AVERAGE, SIZE>(a);
    else if (a.mode == POOL_MAX) apart_pixel<T, V, POOL_MAX, SIZE>(a);
    else apart_pixel<T, V, POOL_MAX_NAN, SIZE>(a);
}

template <class T, int V> __device__ __forceinline__ void grad_pairs(const pool_tile_args &a)
{
    wd_wait_for_previous();
    if (a.mode == POOL_AVERAGE) apart_pairs<T, V, POOL_AVERAGE>(a);
    else if (a.mode == POOL_MAX) apart_pairs<T, V, POOL_MAX>(a);
    else apart_pairs<T, V, POOL_MAX_NAN>(a);
}

template <class T, int V> __device__ __forceinline__ void grad_plane(const pool_tile_args &a)
{
    wd_wait_for_previous();
    apart_plane<T, V>(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_vector_back_kernels.def"
#include "ops/kernels_device.inc"
