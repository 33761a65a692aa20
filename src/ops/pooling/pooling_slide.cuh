// SPDX-License-Identifier: Apache-2.0
//
// Long windows that begin at every element of a plane: sums and maxima down the columns, then along the rows,
// in shared memory. A thread makes several neighbours at once: what all of them share is put together once,
// what some share grows from there to either side, so nothing is ever taken out of a sum again. Between the
// passes rows lie with what is around them, so that the second one asks for no edges; rows differ by an odd
// pitch, for its lanes have a row each; what it makes goes out by rows.
#ifndef WD_OPS_POOLING_SLIDE_CUH
#define WD_OPS_POOLING_SLIDE_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/shared.cuh"
#include "ops/pooling/pooling_slide_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

__device__ __forceinline__ unsigned char *slide_at(uint32_t bytes)
{
    return wd_dynamic_shared<unsigned char>() + bytes;
}

// How many elements of the image window `at` covers along an axis.
__device__ __forceinline__ int slide_covers(const pool_slide_axis &x, int at)
{
    const int start = at - x.image_pad;
    return max(min(start + x.size, x.image) - max(start, 0), 0);
}

// N windows of `size` (at least N) elements, each beginning one later; load(i) is the first one's element i. TURN: of
// what all share, elements a turn.
template <int MODE, int N, int TURN, class LOAD>
__device__ __forceinline__ void slide(int size, LOAD load, float (&value)[N])
{
    float shared = load(N - 1);
    int i = N;
#pragma unroll 1
    for (; TURN > 1 && i + TURN <= size; i += TURN) {
#pragma unroll
        for (int j = 0; j < TURN; ++j) take<MODE>(shared, load(i + j));
    }
#pragma unroll 1
    for (; i < size; ++i) take<MODE>(shared, load(i));
    float before = nothing<MODE, float>();
    value[N - 1] = shared;
#pragma unroll
    for (int k = N - 2; k >= 0; --k) {
        take<MODE>(before, load(k));
        value[k] = shared;
        take<MODE>(value[k], before);
    }
    float after = nothing<MODE, float>();
#pragma unroll
    for (int k = 1; k < N; ++k) {
        take<MODE>(after, load(size + k - 1));
        take<MODE>(value[k], after);
    }
}

// A block's rows.
struct slide_part {
    uint32_t outer; // the first plane
    uint32_t images;
    int first; // row of each
    int rows;
    int low; // the first row of `from`
    int lows;
};

__device__ __forceinline__ slide_part slide_part_of(const pool_slide_args &a)
{
    uint32_t n = blockIdx.x;
    slide_part p;
    p.first = (int)wd_take_rest(n, a.by_tiles) * a.rows;
    p.rows = min(a.rows, a.high.outs - p.first);
    p.outer = n * a.images;
    p.images = min(a.images, a.outer - p.outer);
    // of several planes all rows, so that they are one piece of memory
    const int start = p.first - a.high.pad;
    p.low = a.images > 1 ? 0 : max(start, 0);
    p.lows = a.images > 1 ? a.high.ins
                          : max(min(start + p.rows - 1 + a.high.size, a.high.ins) - p.low, 0);
    return p;
}

// Rows as they lie in memory, by 16 bytes; returns where the first element is.
template <class T>
__device__ __forceinline__ const T *slide_stage(const pool_slide_args &a, const slide_part &p)
{
    const uintptr_t begin = (uintptr_t)a.from, end = begin + (size_t)a.total * sizeof(T);
    const size_t row = (size_t)p.outer * (uint32_t)a.high.ins + (uint32_t)p.low;
    const uintptr_t first = begin + row * (uint32_t)a.wide.ins * sizeof(T);
    const uint32_t before = (uint32_t)(first % 16);
    const uintptr_t source = first - before;
    const uint32_t bytes =
        p.images * (uint32_t)p.lows * (uint32_t)a.wide.ins * (uint32_t)sizeof(T) + before;
    uint32_t at = threadIdx.x * 16;
    if (source >= begin && source + bytes + 15 <= end) { // and most are
        const char *chunk = reinterpret_cast<const char *>(source) + at;
#pragma unroll 1
        for (; at < bytes; at += POOL_SLIDE_THREADS * 16, chunk += POOL_SLIDE_THREADS * 16) {
            wd_copy_async<16, false>(slide_at(at), chunk);
        }
    }
#pragma unroll 1
    for (; at < bytes; at += POOL_SLIDE_THREADS * 16) {
        const uintptr_t chunk = source + at;
        if (chunk >= begin && chunk + 16 <= end) {
            wd_copy_async<16, false>(slide_at(at), reinterpret_cast<const void *>(chunk));
            continue;
        }
        // what lies around the tensor is not read
        for (uint32_t i = 0; i < 16; i += (uint32_t)sizeof(T)) {
            if (chunk + i < begin || chunk + i >= end) continue;
            *reinterpret_cast<T *>(slide_at(at + i)) = *reinterpret_cast<const T *>(chunk + i);
        }
    }
    return reinterpret_cast<const T *>(slide_at(before));
}

// Down the columns: rows of `from` to rows of windows. WEIGHS: each row counts by its weight.
template <class T, int MODE, int N, bool WEIGHS>
__device__ __forceinline__ void slide_down(const pool_slide_args &a, const slide_part &p,
                                           const T *x)
{
    const pool_slide_axis &high = a.high, &wide = a.wide;
    const float *weights = reinterpret_cast<const float *>(slide_at(a.weights_at));
    float *middle = reinterpret_cast<float *>(slide_at(a.middle_at));
    const uint32_t columns = (uint32_t)wide.ins, groups = a.by_groups.divisor;
    const uint32_t items = p.images * groups * columns;
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t m = item;
        const uint32_t c = wd_take_rest(m, a.by_columns);
        const int o = (int)wd_take_rest(m, a.by_groups) * N;
        // the first window's first row among those that there are
        const int h0 = p.first + o - high.pad - p.low;
        const T *column = x + m * (uint32_t)p.lows * columns + c;
        float value[N];
        if (!WEIGHS && h0 >= 0 && h0 + high.size + N - 1 <= p.lows) {
            // all rows are there, as they are for most
            const char *first = reinterpret_cast<const char *>(column + (uint32_t)h0 * columns);
            const uint32_t pitch = columns * (uint32_t)sizeof(T);
            slide<MODE, N, 4>(
                high.size,
                [&](int i) {
                    return wd_widen(*reinterpret_cast<const T *>(first + (uint32_t)i * pitch));
                },
                value);
        } else {
            slide<MODE, N, 1>(
                high.size,
                [&](int i) {
                    float v = nothing<MODE, float>();
                    int h = h0 + i;
                    if (a.edge) h = min(max(h, 0), p.lows - 1);
                    if ((uint32_t)h < (uint32_t)p.lows) {
                        v = wd_widen(column[(uint32_t)h * columns]);
                        if (WEIGHS) v *= weights[h];
                    }
                    return v;
                },
                value);
        }
        if (WEIGHS) {
            const float share = inverse<float>(slide_covers(wide, (int)c));
#pragma unroll
            for (int k = 0; k < N; ++k) value[k] *= share;
        }
        const uint32_t at = c + (uint32_t)wide.pad;
        if (at >= a.middle_pitch) continue;
        float *to = middle + (m * (uint32_t)p.rows + (uint32_t)o) * a.middle_pitch + at;
        float *line = to;
        if (o + N <= p.rows) {
#pragma unroll
            for (int k = 0; k < N; ++k, line += a.middle_pitch) *line = value[k];
        } else {
#pragma unroll
            for (int k = 0; k < N - 1; ++k, line += a.middle_pitch) {
                if (o + k < p.rows) *line = value[k];
            }
        }
        // of an edge that is repeated also what lies beyond it
        if (!a.edge || (c > 0 && c < columns - 1)) continue;
        const int from = c == 0 ? -wide.pad : 0;
        const int end = c == columns - 1 ? (int)(a.middle_pitch - at) : 0;
#pragma unroll 1
        for (int k = o; k < min(o + N, p.rows); ++k, to += a.middle_pitch) {
#pragma unroll 1
            for (int i = from; i < end; ++i) to[i] = *to;
        }
    }
    if (a.edge) return;
    // and around them: half a warp a row
    constexpr int LANES = 16;
    const int rows = (int)p.images * p.rows, right = wide.pad + wide.ins;
    const int pads = wide.pad + max((int)a.middle_pitch - right, 0);
    const int lane = (int)threadIdx.x % LANES;
    float *line = middle + threadIdx.x / LANES * a.middle_pitch;
#pragma unroll 1
    for (int row = (int)threadIdx.x / LANES; row < rows; row += (int)blockDim.x / LANES) {
#pragma unroll 1
        for (int i = lane; i < pads; i += LANES) {
            line[i < wide.pad ? i : wide.ins + i] = nothing<MODE, float>();
        }
        line += blockDim.x / LANES * a.middle_pitch;
    }
}

template <int MODE, int N>
__device__ __forceinline__ void slide_along(const pool_slide_args &a, const slide_part &p)
{
    const float *middle = reinterpret_cast<const float *>(slide_at(a.middle_at));
    float *made = reinterpret_cast<float *>(slide_at(0));
    const uint32_t rows = p.images * (uint32_t)p.rows;
    const uint32_t groups = ((uint32_t)a.wide.outs + N - 1) / N;
    // of fewer rows than blocks usually have some lanes are idle
    const uint32_t items = groups * a.by_rows.divisor;
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t group = item;
        const uint32_t row = wd_take_rest(group, a.by_rows);
        if (row >= rows) continue;
        const float *from = middle + row * a.middle_pitch + group * N;
        float value[N];
        slide<MODE, N, 4>(
            a.wide.size, [&](int i) { return from[i]; }, value);
        float *to = made + row * a.out_pitch + group * N;
#pragma unroll
        for (int k = 0; k < N; ++k) to[k] = value[k];
    }
}

// V elements of a thread: a block's rows are one piece of memory. Nothing is to be found out about an element but, of a
// maximum, whether anything was a candidate.
template <class T, int V>
__device__ __forceinline__ void slide_put_runs(const pool_slide_args &a, T *out, uint32_t rows,
                                               float scale)
{
    constexpr uint32_t STEP = POOL_SLIDE_THREADS;
    const bool maximum = a.mode == POOL_MAX;
    const uint32_t runs = a.by_runs.divisor, all = rows * runs;
    const uint32_t more = wd_fastdiv_quotient(STEP, a.by_runs), further = STEP - more * runs;
    const uint32_t ahead = more * a.out_pitch + V * further, wrap = a.out_pitch - V * runs;
    const uint32_t row = wd_fastdiv_quotient(threadIdx.x, a.by_runs);
    uint32_t run = threadIdx.x - row * runs;
    const float *from =
        reinterpret_cast<const float *>(slide_at(0)) + (row * a.out_pitch + V * run);
    out += threadIdx.x * V;
#pragma unroll 1
    for (uint32_t at = threadIdx.x; at < all; at += STEP, out += STEP * V) {
        wd_run<T, V> made;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            T one;
            float value = from[i];
            if (maximum && value != value) value = a.lowest;
            wd_narrow(one, value * scale);
            made.put(i, one);
        }
        made.store(out);
        from += ahead;
        run += further;
        if (run >= runs) {
            run -= runs;
            from += wrap;
        }
    }
}

// What is made goes out, a warp a row, by 4 bytes a thread: rows follow each other in memory, whichever plane's
// they are.
template <class T>
__device__ __forceinline__ void slide_put(const pool_slide_args &a, const slide_part &p)
{
    constexpr int V = 4 / (int)sizeof(T);
    const int lane = (int)threadIdx.x % 32, warps = (int)blockDim.x / 32;
    const int wide = a.wide.outs, rows = (int)p.images * p.rows;
    const bool sum = a.mode == POOL_AVERAGE, maximum = a.mode == POOL_MAX;
    const bool counts = sum && a.exclude && !a.spread;
    const float factor = sum && !a.exclude ? a.inverse : 1.0f;
    const size_t first = (size_t)p.outer * (uint32_t)a.high.outs + (uint32_t)p.first;
    if (a.by_runs.divisor > 0) {
        T *const to = static_cast<T *>(a.out) + first * (uint32_t)wide;
        const bool single = a.by_runs.divisor == (uint32_t)wide;
        if (single) slide_put_runs<T, 1>(a, to, (uint32_t)rows, a.alpha * factor);
        else slide_put_runs<T, POOL_SLIDE_RUN>(a, to, (uint32_t)rows, a.alpha * factor);
        return;
    }
    int row = (int)threadIdx.x / 32;
    const float *from = reinterpret_cast<const float *>(slide_at(0)) + (uint32_t)row * a.out_pitch;
    size_t to = (first + (uint32_t)row) * (uint32_t)wide;
#pragma unroll 1
    for (; row < rows; row += warps) {
        // elements of the row that come before a whole run of memory
        const int odd = V == 1 ? 0 : (int)(((uintptr_t)a.out / sizeof(T) + to) % V);
        float of_row = factor;
        if (counts) of_row = inverse<float>(slide_covers(a.high, p.first + row % p.rows));
#pragma unroll 1
        for (int q = lane * V - odd; q < wide; q += 32 * V) {
            float value[V];
#pragma unroll
            for (int i = 0; i < V; ++i) {
                value[i] = 0.0f;
                if (V > 1 && (q + i < 0 || q + i >= wide)) continue;
                value[i] = from[q + i];
                if (maximum && value[i] != value[i]) value[i] = a.lowest;
                if (counts) value[i] *= inverse<float>(slide_covers(a.wide, q + i));
            }
            if (V == 1 || (q >= 0 && q + V <= wide)) {
                put_results<T, V>(a, to + (size_t)(int64_t)q, value, of_row);
            } else {
                const int i = q < 0 ? 1 : 0;
                float one = i == 0 ? value[0] : value[V - 1];
                put_results<T, 1>(a, to + (size_t)(int64_t)(q + i), &one, of_row);
            }
        }
        from += (uint32_t)warps * a.out_pitch;
        to += (uint32_t)(warps * wide);
    }
}

template <class T, int MODE>
__device__ __forceinline__ void slide_both(const pool_slide_args &a, const slide_part &p,
                                           const T *x)
{
    if (MODE == POOL_AVERAGE && a.spread && a.exclude) {
        slide_down<T, MODE, POOL_SLIDE_FEW, MODE == POOL_AVERAGE>(a, p, x);
    } else if (a.high.size >= POOL_SLIDE_MANY) {
        slide_down<T, MODE, POOL_SLIDE_MANY, false>(a, p, x);
    } else {
        slide_down<T, MODE, POOL_SLIDE_FEW, false>(a, p, x);
    }
    __syncthreads();
    if (a.wide.size >= POOL_SLIDE_MANY) slide_along<MODE, POOL_SLIDE_MANY>(a, p);
    else slide_along<MODE, POOL_SLIDE_FEW>(a, p);
}

template <class T> __device__ __forceinline__ void pool_slide(const pool_slide_args &a)
{
    const slide_part p = slide_part_of(a);
    wd_wait_for_previous();
    const T *x = slide_stage<T>(a, p);
    if (a.spread && a.exclude) {
        float *weights = reinterpret_cast<float *>(slide_at(a.weights_at));
        for (int i = (int)threadIdx.x; i < p.lows; i += (int)blockDim.x) {
            weights[i] = inverse<float>(slide_covers(a.high, p.low + i));
        }
    }
    wd_copies_wait_all();
    __syncthreads();
    if (a.mode == POOL_AVERAGE) slide_both<T, POOL_AVERAGE>(a, p, x);
    else if (a.mode == POOL_MAX) slide_both<T, POOL_MAX>(a, p, x);
    else slide_both<T, POOL_MAX_NAN>(a, p, x);
    __syncthreads();
    slide_put<T>(a, p);
}

} // namespace

#endif
