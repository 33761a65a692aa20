// SPDX-License-Identifier: Apache-2.0
//
// Pooling of two-dimensional images. Forward, a thread has an output, a few neighbours of a row, or a
// run of channels; long windows are shared by lanes, joined in a fixed order. Backward, a thread has a
// run of dx and collects from the windows over it in row-major order; maxima are found beforehand and
// noted as codes. No atomics.
#include <type_traits>

#include "gpu/device/depend.cuh"
#include "gpu/device/vector.cuh"
#include "ops/pooling/pooling_vector_args.h"

namespace {

// ---- A window ----

__device__ __forceinline__ float nan_or_larger(float a, float b)
{
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

// 1 / n, rounded to nearest but for rare cases. A division would bring a call for denormal numbers.
__device__ __forceinline__ float inverse(int n)
{
    const float about = __fdividef(1.0f, (float)n);
    return fmaf(about, fmaf(-(float)n, about, 1.0f), about);
}

// What has been seen of a window: the sum or the largest. Nothing yet is NaN where NaN is no
// candidate; where it is one, every element is a candidate, and the window's extent tells.
template <int MODE, bool CODES> struct window_state {
    float value;
    uint32_t code;

    static __device__ __forceinline__ float nothing()
    {
        if (MODE == POOL_AVERAGE) return 0.0f;
        return __uint_as_float(MODE == POOL_MAX ? 0x7fc00000u : 0xff800000u);
    }
    __device__ __forceinline__ void clear()
    {
        value = nothing();
        code = POOL_NO_CODE;
    }
    // Elements come in row-major order where codes are kept. One that is not `in` is nothing().
    __device__ __forceinline__ void take(float v, uint32_t at, bool in)
    {
        if constexpr (!CODES) {
            if (MODE == POOL_AVERAGE) value += v;
            else if (MODE == POOL_MAX) value = fmaxf(value, v);
            else value = nan_or_larger(value, v);
        } else {
            bool takes = code == POOL_NO_CODE || v > value;
            if (MODE == POOL_MAX) takes = takes && v == v;
            else takes = takes || (v != v && value == value);
            if (takes && in) {
                value = v;
                code = at;
            }
        }
    }
    __device__ __forceinline__ float result(const pool_vector_args &a, int covered) const
    {
        if (MODE == POOL_AVERAGE) {
            return covered > 0 ? value * (a.exclude ? inverse(covered) : a.inverse) : 0.0f;
        }
        return covered == 0 || (MODE == POOL_MAX && value != value) ? a.lowest : value;
    }
};

// Where a window lies along one dimension: from `start`, low .. high-1 within the image.
struct span {
    int start;
    int low;
    int high;
    __device__ __forceinline__ span(int window, int stride, int pad, int size, int image)
        : start(window * stride - pad), low(max(start, 0)), high(min(start + size, image))
    {
    }
    __device__ __forceinline__ int extent() const
    {
        return max(high - low, 0);
    }
};

__device__ __forceinline__ span rows_of(const pool_vector_args &a, int p)
{
    return span(p, a.stride_h, a.pad_h, a.size_h, a.image_h);
}

__device__ __forceinline__ span columns_of(const pool_vector_args &a, int q)
{
    return span(q, a.stride_w, a.pad_w, a.size_w, a.image_w);
}

// n = quotient * divisor + the result; n becomes the quotient.
__device__ __forceinline__ uint32_t take_rest(uint32_t &n, const wd_fastdiv &by)
{
    const uint32_t quotient = wd_fastdiv_quotient(n, by);
    const uint32_t rest = n - quotient * by.divisor;
    n = quotient;
    return rest;
}

template <class T> __device__ __forceinline__ float element(const T *from)
{
    return wd_widen(__ldg(from));
}

// alpha * value + beta * out, to a run.
template <class T, int V>
__device__ __forceinline__ void put(const pool_vector_args &a, uint32_t at, const float *value)
{
    T *to = static_cast<T *>(a.out) + at;
    wd_run<T, V> old, run;
    if (a.blends) old.load(to);
#pragma unroll
    for (int i = 0; i < V; ++i) {
        float r = a.scales ? a.alpha * value[i] : 0.0f;
        if (a.blends) r += a.beta * wd_widen(old.get(i));
        T narrow;
        wd_narrow(narrow, r);
        run.put(i, narrow);
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

// The results of V windows, or where their maxima are.
template <class T, int V, int MODE, bool CODES>
__device__ __forceinline__ void put_windows(const pool_vector_args &a, uint32_t at,
                                            const window_state<MODE, CODES> *t, const int *covered)
{
    if constexpr (CODES) {
#pragma unroll
        for (int i = 0; i < V; ++i) a.codes[at + i] = (uint8_t)t[i].code;
    } else {
        float value[V];
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] = t[i].result(a, covered[i]);
        put<T, V>(a, at, value);
    }
}

// ---- Forward, a thread a window or a few ----

// Planes, one window; SIZE x SIZE, or 0: any.
template <class T, int SIZE, int MODE, bool CODES>
__device__ __forceinline__ void forward_plane(const pool_vector_args &a)
{
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t plane = item;
    const int q = (int)take_rest(plane, a.by_w);
    const int p = (int)take_rest(plane, a.by_h);
    const span rows = rows_of(a, p), columns = columns_of(a, q);
    const T *x = static_cast<const T *>(a.x);
    const int image = (int)(plane * (uint32_t)(a.image_h * a.image_w));
    const int covered = rows.extent() * columns.extent();
    window_state<MODE, CODES> t;
    t.clear();
    if constexpr (SIZE > 0) {
#pragma unroll
        for (int r = 0; r < SIZE; ++r) {
            const int h = rows.start + r;
#pragma unroll
            for (int s = 0; s < SIZE; ++s) {
                const bool in = (uint32_t)h < (uint32_t)a.image_h &&
                                (uint32_t)(columns.start + s) < (uint32_t)a.image_w;
                float v = t.nothing();
                if (in) v = element(x + (image + h * a.image_w + columns.start + s));
                t.take(v, r * SIZE + s, in);
            }
        }
    } else {
        for (int h = rows.low; h < rows.high; ++h) {
            const uint32_t code = (h - rows.start) * a.size_w - columns.start;
#pragma unroll 4
            for (int w = columns.low; w < columns.high; ++w) {
                t.take(element(x + (image + h * a.image_w + w)), code + w, true);
            }
        }
    }
    put_windows<T, 1, MODE, CODES>(a, item, &t, &covered);
}

// Planes, every second column: 2x2 without padding, or 3x3 with one column of it. A thread has V
// columns of x, aligned, and V / 2 windows.
template <class T, int V, int SIZE, int MODE, bool CODES>
__device__ __forceinline__ void forward_pairs(const pool_vector_args &a)
{
    constexpr int K = V / 2;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t plane = item;
    const int run = (int)take_rest(plane, a.by_w);
    const int p = (int)take_rest(plane, a.by_h);
    const span rows = rows_of(a, p);
    const T *x =
        static_cast<const T *>(a.x) + (size_t)plane * (uint32_t)(a.image_h * a.image_w) + run * V;
    window_state<MODE, CODES> t[K];
    wd_run<T, V> line[SIZE];
    float left[SIZE];
    int covered[K];
#pragma unroll
    for (int r = 0; r < SIZE; ++r) {
        const int h = rows.start + r;
        const bool in = (uint32_t)h < (uint32_t)a.image_h;
        left[r] = t[0].nothing();
        if (in) line[r].load(x + h * a.image_w);
        if (SIZE == 3 && in && run > 0) left[r] = element(x + h * a.image_w - 1);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
        t[k].clear();
        covered[k] = rows.extent() * columns_of(a, run * K + k).extent();
    }
#pragma unroll
    for (int r = 0; r < SIZE; ++r) {
        if ((uint32_t)(rows.start + r) >= (uint32_t)a.image_h) continue;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            if (SIZE == 3) {
                const bool in = k > 0 || run > 0;
                const float v = k > 0 ? wd_widen(line[r].get(k > 0 ? 2 * k - 1 : 0)) : left[r];
                t[k].take(v, r * SIZE, in);
            }
            t[k].take(wd_widen(line[r].get(2 * k)), r * SIZE + SIZE - 2, true);
            t[k].take(wd_widen(line[r].get(2 * k + 1)), r * SIZE + SIZE - 1, true);
        }
    }
    put_windows<T, K, MODE, CODES>(a, item * K, t, covered);
}

// Pixels: a window of V channels.
template <class T, int V, int SIZE, int MODE, bool CODES>
__device__ __forceinline__ void forward_pixel(const pool_vector_args &a)
{
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const uint32_t run = take_rest(n, a.by_w);
    const int q = (int)take_rest(n, a.by_h);
    const int p = (int)take_rest(n, a.by_outer);
    const span rows = rows_of(a, p), columns = columns_of(a, q);
    const T *x =
        static_cast<const T *>(a.x) + n * (uint32_t)(a.image_h * a.image_w) * a.inner + run * V;
    const int extent = rows.extent() * columns.extent();
    window_state<MODE, CODES> t[V];
    int covered[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
        t[i].clear();
        covered[i] = extent;
    }
    if (SIZE > 0 && extent == SIZE * SIZE) {
        wd_run<T, V> line[SIZE > 0 ? SIZE * SIZE : 1];
#pragma unroll
        for (int r = 0; r < SIZE; ++r) {
            const uint32_t pixel = (uint32_t)((rows.start + r) * a.image_w + columns.start);
#pragma unroll
            for (int s = 0; s < SIZE; ++s) line[r * SIZE + s].load(x + (pixel + s) * a.inner);
        }
#pragma unroll
        for (int r = 0; r < SIZE * SIZE; ++r) {
#pragma unroll
            for (int i = 0; i < V; ++i) t[i].take(wd_widen(line[r].get(i)), r, true);
        }
    } else {
        for (int h = rows.low; h < rows.high; ++h) {
            const uint32_t code = (h - rows.start) * a.size_w - columns.start;
            const uint32_t pixel = (uint32_t)(h * a.image_w);
#pragma unroll 1
            for (int w = columns.low; w < columns.high; ++w) {
                wd_run<T, V> one;
                one.load(x + (pixel + w) * a.inner);
#pragma unroll
                for (int i = 0; i < V; ++i) t[i].take(wd_widen(one.get(i)), code + w, true);
            }
        }
    }
    put_windows<T, V, MODE, CODES>(a, item * V, t, covered);
}

// ---- Forward, lanes share a window ----

// Planes: LANES threads a window, at most a block.
template <class T, int LANES, int MODE>
__device__ __forceinline__ void forward_lanes(const pool_vector_args &a)
{
    constexpr int V = 16 / (int)sizeof(T);
    __shared__ float of_warp[POOL_THREADS / 32];
    const uint32_t item = blockIdx.x * (POOL_THREADS / LANES) + threadIdx.x / LANES;
    const uint32_t lane = threadIdx.x % LANES;
    uint32_t plane = item < a.count ? item : a.count - 1;
    const int q = (int)take_rest(plane, a.by_w);
    const int p = (int)take_rest(plane, a.by_h);
    const span rows = rows_of(a, p), columns = columns_of(a, q);
    const T *x = static_cast<const T *>(a.x);
    const uint32_t image = plane * (uint32_t)(a.image_h * a.image_w);
    const uint32_t covered = (uint32_t)(rows.extent() * columns.extent());
    window_state<MODE, false> t;
    t.clear();
    if (covered > 0 && a.aligned && columns.extent() == a.image_w) {
        // whole rows: aligned runs, of which the window's elements count
        const uint32_t first = image + (uint32_t)(rows.low * a.image_w);
        const uint32_t end = first + covered;
#pragma unroll 2
        for (uint32_t at = (first / V + lane) * V; at < end; at += LANES * V) {
            if (at + V <= a.total) {
                wd_run<T, V> run;
                run.load(x + at);
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    const bool in = at + i >= first && at + i < end;
                    t.take(in ? wd_widen(run.get(i)) : t.nothing(), 0, in);
                }
            } else {
                for (uint32_t i = at < first ? first : at; i < end; ++i) {
                    t.take(element(x + i), 0, true);
                }
            }
        }
    } else if (covered > 0) {
        const uint32_t extent = (uint32_t)columns.extent();
        const uint32_t first = image + (uint32_t)(rows.low * a.image_w + columns.low);
        for (uint32_t k = lane; k < covered; k += LANES) {
            const uint32_t r = k / extent;
            t.take(element(x + first + r * (uint32_t)a.image_w + (k - r * extent)), 0, true);
        }
    }
#pragma unroll
    for (int step = (LANES < 32 ? LANES : 32) / 2; step > 0; step /= 2) {
        t.take(__shfl_xor_sync(0xffffffffu, t.value, step), 0, true);
    }
    if constexpr (LANES > 32) {
        if (lane % 32 == 0) of_warp[lane / 32] = t.value;
        __syncthreads();
        if (lane == 0) {
            for (int w = 1; w < LANES / 32; ++w) t.take(of_warp[w], 0, true);
        }
    }
    if (lane == 0 && item < a.count) {
        const float value = t.result(a, (int)covered);
        put<T, 1>(a, item, &value);
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
    const uint32_t run = take_rest(n, a.by_w) * a.tile_runs + column;
    const uint32_t window = n;
    const int q = (int)take_rest(n, a.by_h);
    const int p = (int)take_rest(n, a.by_outer);
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
#pragma unroll 4
        for (uint32_t k = row; k < covered; k += rows_at_once) {
            const uint32_t pixel = first + k + (skip > 0 ? k / extent * skip : 0);
            wd_run<T, V> one;
            one.load(x + (size_t)pixel * a.inner);
#pragma unroll
            for (int i = 0; i < V; ++i) t[i].take(wd_widen(one.get(i)), 0, true);
        }
    }
#pragma unroll
    for (int i = 0; i < V; ++i) of_thread[i][threadIdx.x] = t[i].value;
    for (uint32_t step = POOL_THREADS / 2; step >= a.tile_runs; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                t[i].take(of_thread[i][threadIdx.x + step], 0, true);
                of_thread[i][threadIdx.x] = t[i].value;
            }
        }
    }
    if (row == 0 && works) {
        float value[V];
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] = t[i].result(a, (int)covered);
        put<T, V>(a, window * a.inner + run * V, value);
    }
}

// ---- Backward ----

// The windows that cover something of first .. last of the image along one dimension.
struct covering {
    int first;
    int end;
    __device__ __forceinline__ covering(int from, int to, int pad, int size, int windows,
                                        const wd_fastdiv &by)
    {
        const int before = from + pad - size; // a window from here or earlier ends too soon
        first = before < 0 ? 0 : (int)wd_fastdiv_quotient((uint32_t)before, by) + 1;
        end = to + pad < 0 ? 0 : (int)wd_fastdiv_quotient((uint32_t)(to + pad), by) + 1;
        end = min(end, windows);
    }
};

__device__ __forceinline__ float inverse_of(const pool_vector_args &a, int rows, int q)
{
    return a.exclude ? inverse(rows * columns_of(a, q).extent()) : a.inverse;
}

// Planes: V neighbours of a row of dx.
template <class T, int V, bool CODES>
__device__ __forceinline__ void backward_plane(const pool_vector_args &a)
{
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t plane = item;
    const int w = (int)take_rest(plane, a.by_w) * V;
    const int h = (int)take_rest(plane, a.by_h);
    const covering over_h(h, h, a.pad_h, a.size_h, a.windows_h, a.by_stride_h);
    const covering over_w(w, w + V - 1, a.pad_w, a.size_w, a.windows_w, a.by_stride_w);
    const T *dy = static_cast<const T *>(a.dy);
    float sum[V];
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] = 0.0f;
    for (int p = over_h.first; p < over_h.end; ++p) {
        const span rows = rows_of(a, p);
        const uint32_t line = (plane * (uint32_t)a.windows_h + p) * (uint32_t)a.windows_w;
        const int code = (h - rows.start) * a.size_w;
#pragma unroll 2
        for (int q = over_w.first; q < over_w.end; ++q) {
            const int start = q * a.stride_w - a.pad_w;
            const float share = element(dy + line + q);
            if constexpr (CODES) {
                const int column = (int)a.codes[line + q] - code;
                const int at = (uint32_t)column < (uint32_t)a.size_w ? start + column - w : -1;
#pragma unroll
                for (int i = 0; i < V; ++i) sum[i] += at == i ? share : 0.0f;
            } else {
                const float mean = share * inverse_of(a, rows.extent(), q);
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    sum[i] += (uint32_t)(w + i - start) < (uint32_t)a.size_w ? mean : 0.0f;
                }
            }
        }
    }
    put<T, V>(a, item * V, sum);
}

// Pixels: V channels of a pixel of dx.
template <class T, int V, bool CODES>
__device__ __forceinline__ void backward_pixel(const pool_vector_args &a)
{
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const uint32_t run = take_rest(n, a.by_w);
    const int w = (int)take_rest(n, a.by_h);
    const int h = (int)take_rest(n, a.by_outer);
    const covering over_h(h, h, a.pad_h, a.size_h, a.windows_h, a.by_stride_h);
    const covering over_w(w, w, a.pad_w, a.size_w, a.windows_w, a.by_stride_w);
    float sum[V];
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] = 0.0f;
    for (int p = over_h.first; p < over_h.end; ++p) {
        const span rows = rows_of(a, p);
        const uint32_t line = (n * (uint32_t)a.windows_h + p) * (uint32_t)a.windows_w;
#pragma unroll 2
        for (int q = over_w.first; q < over_w.end; ++q) {
            const uint32_t at = (line + q) * a.inner + run * V;
            wd_run<T, V> share;
            share.load(static_cast<const T *>(a.dy) + at);
            if constexpr (CODES) {
                const int own = (h - rows.start) * a.size_w + w - (q * a.stride_w - a.pad_w);
                uint8_t code[V];
                if constexpr (V == 8) {
                    const uint2 bytes = *reinterpret_cast<const uint2 *>(a.codes + at);
                    memcpy(code, &bytes, 8);
                } else if constexpr (V == 4) {
                    const uint32_t bytes = *reinterpret_cast<const uint32_t *>(a.codes + at);
                    memcpy(code, &bytes, 4);
                } else {
#pragma unroll
                    for (int i = 0; i < V; ++i) code[i] = a.codes[at + i];
                }
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    sum[i] += code[i] == own ? wd_widen(share.get(i)) : 0.0f;
                }
            } else {
                const float factor = inverse_of(a, rows.extent(), q);
#pragma unroll
                for (int i = 0; i < V; ++i) sum[i] += wd_widen(share.get(i)) * factor;
            }
        }
    }
    put<T, V>(a, item * V, sum);
}

// ---- Modes ----

template <class F> __device__ __forceinline__ void by_mode(const pool_vector_args &a, F run)
{
    wd_wait_for_previous();
    if (a.mode == POOL_AVERAGE) run(std::integral_constant<int, POOL_AVERAGE>());
    else if (a.mode == POOL_MAX) run(std::integral_constant<int, POOL_MAX>());
    else run(std::integral_constant<int, POOL_MAX_NAN>());
}

// Of maxima alone: with codes.
template <class F> __device__ __forceinline__ void by_maximum(const pool_vector_args &a, F run)
{
    wd_wait_for_previous();
    if (a.mode == POOL_MAX) run(std::integral_constant<int, POOL_MAX>());
    else run(std::integral_constant<int, POOL_MAX_NAN>());
}

template <class T, int SIZE> __device__ __forceinline__ void pool_plane(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_plane<T, SIZE, mode.value, false>(a); });
}

template <class T, int SIZE> __device__ __forceinline__ void code_plane(const pool_vector_args &a)
{
    by_maximum(a, [&](auto mode) { forward_plane<T, SIZE, mode.value, true>(a); });
}

template <class T, int V, int SIZE>
__device__ __forceinline__ void pool_pairs(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_pairs<T, V, SIZE, mode.value, false>(a); });
}

template <class T, int V, int SIZE>
__device__ __forceinline__ void code_pairs(const pool_vector_args &a)
{
    by_maximum(a, [&](auto mode) { forward_pairs<T, V, SIZE, mode.value, true>(a); });
}

template <class T, int V, int SIZE>
__device__ __forceinline__ void pool_pixel(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_pixel<T, V, SIZE, mode.value, false>(a); });
}

template <class T, int V, int SIZE>
__device__ __forceinline__ void code_pixel(const pool_vector_args &a)
{
    by_maximum(a, [&](auto mode) { forward_pixel<T, V, SIZE, mode.value, true>(a); });
}

template <class T, int LANES> __device__ __forceinline__ void pool_lanes(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_lanes<T, LANES, mode.value>(a); });
}

template <class T, int V> __device__ __forceinline__ void pool_columns(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_columns<T, V, mode.value>(a); });
}

template <class T, int V, bool CODES>
__device__ __forceinline__ void grad_plane(const pool_vector_args &a)
{
    wd_wait_for_previous();
    backward_plane<T, V, CODES>(a);
}

template <class T, int V, bool CODES>
__device__ __forceinline__ void grad_pixel(const pool_vector_args &a)
{
    wd_wait_for_previous();
    backward_pixel<T, V, CODES>(a);
}

} // namespace

#define WD_KERNELS_ROWS "ops/pooling/pooling_vector_kernels.def"
#include "ops/kernels_device.inc"
