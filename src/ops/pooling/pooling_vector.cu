// SPDX-License-Identifier: Apache-2.0
//
// Pooling of two-dimensional images straight from memory: a thread has a few neighbours of a row or a
// run of channels; long windows are shared by lanes, joined in a fixed order. No atomics.
#include "ops/pooling/pooling_state.cuh"

namespace {

// ---- Images of three dimensions ----

// Planes, windows of 2 columns at a stride of 2, W = 2Q, and of two rows at most: V columns of x.
template <class T, int V, int MODE>
__device__ __forceinline__ void forward_deep(const pool_vector_args &a)
{
    constexpr int K = V / 2;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const int run = (int)wd_take_rest(n, a.by_w);
    const int p = (int)wd_take_rest(n, a.by_h);
    const int z = (int)wd_take_rest(n, a.by_outer);
    const span rows = rows_of(a, p);
    const span depth(z, a.stride_d, a.pad_d, a.size_d, a.image_d);
    const T *x = static_cast<const T *>(a.x) +
                 (size_t)n * (uint32_t)(a.image_d * a.image_h) * (uint32_t)a.image_w + run * V;
    window_state<MODE, false> t[K];
    int covered[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
        t[k].clear();
        covered[k] = 2 * rows.extent() * depth.extent();
    }
    for (int d = depth.low; d < depth.high; d += 2) {
        wd_run<T, V> line[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int h = rows.low + r % 2;
            if (d + r / 2 < depth.high && h < rows.high) {
                line[r].load(x + (uint32_t)(((d + r / 2) * a.image_h + h) * a.image_w));
            }
        }
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            if (d + r / 2 >= depth.high || rows.low + r % 2 >= rows.high) continue;
#pragma unroll
            for (int i = 0; i < V; ++i) t[i / 2].see(wd_widen(line[r].get(i)));
        }
    }
    put_windows<T, K, MODE, false>(a, item * K, t, covered);
}

// ---- Lanes share a window ----

// Loads of a thread that are under way at once.
constexpr int AT_ONCE = 2, PIXELS_AT_ONCE = 7;

// Planes: `lanes` threads a window, a power of two, at most a block.
template <class T, int MODE>
__device__ __forceinline__ void forward_lanes(const pool_vector_args &a)
{
    constexpr int V = 16 / (int)sizeof(T);
    __shared__ float of_warp[POOL_THREADS / 32];
    const uint32_t lanes = a.lanes;
    const uint32_t item = (blockIdx.x * POOL_THREADS + threadIdx.x) / lanes;
    const uint32_t lane = threadIdx.x % lanes;
    uint32_t plane = item < a.count ? item : a.count - 1;
    const int q = (int)wd_take_rest(plane, a.by_w);
    const int p = (int)wd_take_rest(plane, a.by_h);
    const span rows = rows_of(a, p), columns = columns_of(a, q);
    const T *x = static_cast<const T *>(a.x);
    const uint32_t image = plane * (uint32_t)(a.image_h * a.image_w);
    const uint32_t covered = (uint32_t)(rows.extent() * columns.extent());
    window_state<MODE, false> t;
    t.clear();
    if (covered > 0 && a.aligned && columns.extent() == a.image_w) {
        // whole rows: aligned runs, of which the window's elements count; a few are under way at once
        const uint32_t first = image + (uint32_t)(rows.low * a.image_w);
        const uint32_t end = first + covered;
#pragma unroll 1
        for (uint32_t at = (first / V + lane) * V; at < end; at += lanes * V * AT_ONCE) {
            wd_run<T, V> run[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; ++u) {
                const uint32_t from = at + u * lanes * V;
                if (from < end && from + V <= a.total) run[u].load(x + from);
            }
#pragma unroll
            for (int u = 0; u < AT_ONCE; ++u) {
                const uint32_t from = at + u * lanes * V;
                if (from >= end) continue;
                if (from + V <= a.total) {
                    const bool inside = from >= first && from + V <= end;
#pragma unroll
                    for (int i = 0; i < V; ++i) {
                        const bool in = inside || (from + i >= first && from + i < end);
                        t.see(in ? wd_widen(run[u].get(i)) : nothing<MODE, float>());
                    }
                } else {
#pragma unroll 1
                    for (uint32_t i = from < first ? first : from; i < end; ++i) {
                        t.see(element(x + i));
                    }
                }
            }
        }
    } else if (covered > 0) {
        const uint32_t extent = (uint32_t)columns.extent();
        const uint32_t first = image + (uint32_t)(rows.low * a.image_w + columns.low);
#pragma unroll 1
        for (uint32_t k = lane; k < covered; k += lanes) {
            const uint32_t r = k / extent;
            t.see(element(x + first + r * (uint32_t)a.image_w + (k - r * extent)));
        }
    }
#pragma unroll 1
    for (int step = (int)min(lanes, 32u) / 2; step > 0; step /= 2) {
        t.see(__shfl_xor_sync(0xffffffffu, t.value, step));
    }
    if (lanes > 32) { // a block
        if (lane % 32 == 0) of_warp[lane / 32] = t.value;
        __syncthreads();
        if (lane == 0) {
#pragma unroll 1
            for (uint32_t w = 1; w < lanes / 32; ++w) t.see(of_warp[w]);
        }
    }
    if (lane == 0 && item < a.count) {
        const float value = t.result(a, (int)covered);
        wd_put_run<T, 1>(a, item, &value);
    }
}

// Pixels: a block a window and tile_runs of V channels; its rows of threads share the pixels.
template <class T, int V, int MODE>
__device__ __forceinline__ void forward_columns(const pool_vector_args &a)
{
    __shared__ float of_thread[V][POOL_THREADS];
    const uint32_t column = threadIdx.x % a.tile_runs;
    const uint32_t row = threadIdx.x / a.tile_runs;
    const uint32_t rows_at_once = POOL_THREADS / a.tile_runs;
    uint32_t n = blockIdx.x;
    const uint32_t run = wd_take_rest(n, a.by_w) * a.tile_runs + column;
    const uint32_t window = n;
    const int q = (int)wd_take_rest(n, a.by_h);
    const int p = (int)wd_take_rest(n, a.by_outer);
    const span rows = rows_of(a, p), columns = columns_of(a, q);
    const uint32_t extent = (uint32_t)columns.extent();
    const uint32_t covered = (uint32_t)rows.extent() * extent;
    const bool works = run * V < a.inner;
    const T *x = static_cast<const T *>(a.x) +
                 (size_t)n * (uint32_t)(a.image_h * a.image_w) * a.inner + run * V;
    window_state<MODE, false> t[V];
#pragma unroll
    for (int i = 0; i < V; ++i) t[i].clear();
    if (works) {
        const uint32_t first = (uint32_t)(rows.low * a.image_w + columns.low);
        const uint32_t skip = (uint32_t)a.image_w - extent;
        // loads of a few pixels are under way at once
        auto read = [&](auto at_once, auto pixel_of) {
            constexpr int AT = at_once.value;
#pragma unroll 1
            for (uint32_t k = row; k < covered; k += AT * rows_at_once) {
                wd_run<T, V> one[AT];
#pragma unroll
                for (int u = 0; u < AT; ++u) {
                    const uint32_t at = k + u * rows_at_once;
                    if (at < covered) one[u].load(x + (size_t)pixel_of(at) * a.inner);
                }
#pragma unroll
                for (int u = 0; u < AT; ++u) {
                    if (k + u * rows_at_once >= covered) break;
#pragma unroll
                    for (int i = 0; i < V; ++i) t[i].see(wd_widen(one[u].get(i)));
                }
            }
        };
        if (skip == 0) {
            read(std::integral_constant<int, PIXELS_AT_ONCE>(),
                 [&](uint32_t k) { return first + k; });
        } else { // rarely
            read(std::integral_constant<int, AT_ONCE>(),
                 [&](uint32_t k) { return first + k + k / extent * skip; });
        }
    }
#pragma unroll
    for (int i = 0; i < V; ++i) of_thread[i][threadIdx.x] = t[i].value;
    for (uint32_t step = POOL_THREADS / 2; step >= a.tile_runs; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                t[i].see(of_thread[i][threadIdx.x + step]);
                of_thread[i][threadIdx.x] = t[i].value;
            }
        }
    }
    if (row == 0 && works) {
        float value[V];
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] = t[i].result(a, (int)covered);
        wd_put_run<T, V>(a, window * a.inner + run * V, value);
    }
}

template <class T, int V, int SIZE>
__device__ __forceinline__ void pool_pairs(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_pairs<T, V, SIZE, mode.value, false>(a); });
}

template <class T, int V> __device__ __forceinline__ void pool_deep(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_deep<T, V, mode.value>(a); });
}

template <class T, int V, int SIZE>
__device__ __forceinline__ void pool_pixel(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_pixel<T, V, SIZE, mode.value, false>(a); });
}

template <class T> __device__ __forceinline__ void pool_lanes(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_lanes<T, mode.value>(a); });
}

template <class T, int V> __device__ __forceinline__ void pool_columns(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_columns<T, V, mode.value>(a); });
}

} // namespace

#define WD_KERNELS_ROWS "ops/pooling/pooling_vector_kernels.def"
#include "ops/kernels_device.inc"
