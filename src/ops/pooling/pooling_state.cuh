// SPDX-License-Identifier: Apache-2.0
//
// Windows of two-dimensional images straight from memory, a thread a window or a few: what they come
// to, or where their maxima are.
#ifndef WD_OPS_POOLING_STATE_CUH
#define WD_OPS_POOLING_STATE_CUH

#include "ops/pooling/pooling_vector_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

// What has been seen of a window: the sum or the largest, and where it is if CODES are kept.
template <int MODE, bool CODES> struct window_state {
    float value;
    uint32_t code;

    __device__ __forceinline__ void clear()
    {
        value = nothing<MODE, float>();
        code = POOL_NO_CODE;
    }
    __device__ __forceinline__ void see(float v)
    {
        take<MODE>(value, v);
    }
    // Elements come in row-major order where codes are kept. One that is not `in` is nothing().
    __device__ __forceinline__ void see_at(float v, uint32_t at, bool in)
    {
        if constexpr (!CODES) {
            see(v);
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
            return covered > 0 ? value * (a.exclude ? inverse<float>(covered) : a.inverse) : 0.0f;
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

template <class T> __device__ __forceinline__ float element(const T *from)
{
    return wd_widen(__ldg(from));
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
        wd_put_run<T, V>(a, at, value);
    }
}

// ---- A thread a window or a few ----

// The window of V channels of a pixel, and their image. Planes are pixels of one channel.
template <class T, int V> struct pixel_window {
    uint32_t n, run;
    int q, p;
    span rows, columns;
    const T *x;

    __device__ __forceinline__ pixel_window(const pool_vector_args &a, uint32_t item)
        : n(item), run(wd_take_rest(n, a.by_w)), q((int)wd_take_rest(n, a.by_h)),
          p((int)wd_take_rest(n, a.by_outer)), rows(rows_of(a, p)), columns(columns_of(a, q)),
          x(static_cast<const T *>(a.x) + n * (uint32_t)(a.image_h * a.image_w) * a.inner + run * V)
    {
    }
    __device__ __forceinline__ int extent() const
    {
        return rows.extent() * columns.extent();
    }
};

// A window of any size, element by element in row-major order.
template <class T, int MODE> struct window_walk {
    const T *x;             // the next element
    uint32_t inner, behind; // from one to the next, and more from a row to the next
    int wide, column;
    window_state<MODE, false> t;

    __device__ __forceinline__ window_walk(const pool_vector_args &a, const pixel_window<T, 1> &at)
        : x(at.x + (uint32_t)(at.rows.low * a.image_w + at.columns.low) * a.inner), inner(a.inner),
          behind((uint32_t)(a.image_w - at.columns.extent()) * a.inner), wide(at.columns.extent()),
          column(0)
    {
        t.clear();
    }

    // The next N elements, which there are.
    template <int N> __device__ __forceinline__ void see()
    {
        float v[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            v[i] = element(x);
            column += 1;
            x += inner;
            if (column == wide) {
                column = 0;
                x += behind;
            }
        }
#pragma unroll
        for (int i = 0; i < N; ++i) t.see(v[i]);
    }
    __device__ __forceinline__ void see_all(int left)
    {
#pragma unroll 1
        for (; left >= 8; left -= 8) see<8>();
        if (left >= 4) {
            see<4>();
            left -= 4;
        }
#pragma unroll 1
        for (; left > 0; --left) see<1>();
    }
};

// One channel of a pixel: a window of SIZE x SIZE, or 0: any.
template <class T, int SIZE, int MODE>
__device__ __forceinline__ void forward_element(const pool_vector_args &a)
{
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    const pixel_window<T, 1> at(a, item);
    const int covered = at.extent();
    window_state<MODE, false> t;
    if constexpr (SIZE > 0) {
        t.clear();
#pragma unroll
        for (int r = 0; r < SIZE * SIZE; ++r) {
            const int h = at.rows.start + r / SIZE, w = at.columns.start + r % SIZE;
            if ((uint32_t)h < (uint32_t)a.image_h && (uint32_t)w < (uint32_t)a.image_w) {
                t.see(element(at.x + (uint32_t)(h * a.image_w + w) * a.inner));
            }
        }
    } else {
        window_walk<T, MODE> walk(a, at);
        walk.see_all(covered);
        t = walk.t;
    }
    put_windows<T, 1, MODE, false>(a, item, &t, &covered);
}

// Planes, every second column: 2 columns without padding and at most 2 rows, or 3x3 with one column of
// padding. A thread has V columns of x, aligned, and V / 2 windows.
template <class T, int V, int SIZE, int MODE, bool CODES>
__device__ __forceinline__ void forward_pairs(const pool_vector_args &a)
{
    constexpr int K = V / 2;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t plane = item;
    const int run = (int)wd_take_rest(plane, a.by_w);
    const int p = (int)wd_take_rest(plane, a.by_h);
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
        const bool in = (uint32_t)h < (uint32_t)(SIZE == 3 ? a.image_h : rows.high);
        left[r] = nothing<MODE, float>();
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
        const int h = rows.start + r;
        if ((uint32_t)h >= (uint32_t)(SIZE == 3 ? a.image_h : rows.high)) continue;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            if (SIZE == 3) {
                const bool in = k > 0 || run > 0;
                const float v = k > 0 ? wd_widen(line[r].get(k > 0 ? 2 * k - 1 : 0)) : left[r];
                t[k].see_at(v, r * SIZE, in);
            }
            t[k].see_at(wd_widen(line[r].get(2 * k)), r * SIZE + SIZE - 2, true);
            t[k].see_at(wd_widen(line[r].get(2 * k + 1)), r * SIZE + SIZE - 1, true);
        }
    }
    put_windows<T, K, MODE, CODES>(a, item * K, t, covered);
}

// Pixels: a window of V channels; SIZE x SIZE, all loads at once, or 0: any.
template <class T, int V, int SIZE, int MODE, bool CODES>
__device__ __forceinline__ void forward_pixel(const pool_vector_args &a)
{
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    const pixel_window<T, V> at(a, item);
    const span &rows = at.rows, &columns = at.columns;
    const T *const x = at.x;
    const int extent = at.extent();
    window_state<MODE, CODES> t[V];
    int covered[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
        t[i].clear();
        covered[i] = extent;
    }
    // A way of its own for windows all within the image pays but for runs of eight (measured).
    if (SIZE > 0 && V < 8 && extent == SIZE * SIZE) {
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
            for (int i = 0; i < V; ++i) t[i].see_at(wd_widen(line[r].get(i)), r, true);
        }
    } else if constexpr (SIZE > 0 && V == 8) {
        wd_run<T, V> line[SIZE * SIZE];
#pragma unroll
        for (int r = 0; r < SIZE * SIZE; ++r) {
            const int h = rows.start + r / SIZE, w = columns.start + r % SIZE;
            if ((uint32_t)h < (uint32_t)a.image_h && (uint32_t)w < (uint32_t)a.image_w) {
                line[r].load(x + (uint32_t)(h * a.image_w + w) * a.inner);
            }
        }
#pragma unroll
        for (int r = 0; r < SIZE * SIZE; ++r) {
            const int h = rows.start + r / SIZE, w = columns.start + r % SIZE;
            if ((uint32_t)h < (uint32_t)a.image_h && (uint32_t)w < (uint32_t)a.image_w) {
#pragma unroll
                for (int i = 0; i < V; ++i) t[i].see_at(wd_widen(line[r].get(i)), r, true);
            }
        }
    } else {
        for (int h = rows.low; h < rows.high; ++h) {
            const uint32_t code = (h - rows.start) * a.size_w - columns.start;
            const uint32_t pixel = (uint32_t)(h * a.image_w);
#pragma unroll 2
            for (int w = columns.low; w < columns.high; ++w) {
                wd_run<T, V> one;
                one.load(x + (pixel + w) * a.inner);
#pragma unroll
                for (int i = 0; i < V; ++i) t[i].see_at(wd_widen(one.get(i)), code + w, true);
            }
        }
    }
    put_windows<T, V, MODE, CODES>(a, item * V, t, covered);
}

// ---- Modes ----

template <class F> __device__ __forceinline__ void by_mode(const pool_vector_args &a, F run)
{
    wd_wait_for_previous();
    if (a.mode == POOL_AVERAGE) run(std::integral_constant<int, POOL_AVERAGE>());
    else if (a.mode == POOL_MAX) run(std::integral_constant<int, POOL_MAX>());
    else run(std::integral_constant<int, POOL_MAX_NAN>());
}

} // namespace

#endif
