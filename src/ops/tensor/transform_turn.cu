// SPDX-License-Identifier: Apache-2.0
//
// Elements moved from one layout to another. Where neighbours stay neighbours, rows are copied; else
// tiles go through shared memory, so that both sides are read and written in 16 bytes, whatever their
// rows begin at: what is loaded beyond a row stays in shared memory, stores have masked ends.
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/tensor/transform_turn_args.h"

namespace {

template <class T> constexpr int run_of = TURN_BYTES / (int)sizeof(T);

// ---- Values: types of one size differ only where they are scaled ----

template <class T> __device__ __forceinline__ T blend_as(const turn_args &a, T value, const T *to)
{
    using A = decltype(wd_widen(T()));
    A v = a.alpha != 0.0 ? (A)a.alpha * wd_widen(value) : (A)0;
    if (a.beta != 0.0) v += (A)a.beta * wd_widen(*to);
    wd_narrow(value, v);
    return value;
}

template <class T> __device__ __forceinline__ T blended(const turn_args &a, T value, const T *to)
{
    if (a.plain) return value;
    if constexpr (sizeof(T) == 2) {
        if (a.bfloat) {
            bfloat16 as;
            memcpy(&as, &value, sizeof as);
            as = blend_as<bfloat16>(a, as, reinterpret_cast<const bfloat16 *>(to));
            memcpy(&value, &as, sizeof as);
            return value;
        }
    }
    return blend_as<T>(a, value, to);
}

template <class T>
__device__ __forceinline__ void put_run(const turn_args &a, wd_run<T, run_of<T>> &run, T *to)
{
    if (!a.plain) {
#pragma unroll
        for (int j = 0; j < run_of<T>; ++j) run.put(j, blended(a, run.get(j), to + j));
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

// ---- Tiles ----

struct tile {
    int64_t x; // its first element
    int64_t y;
    uint32_t na; // extents
    uint32_t nb;
};

__device__ __forceinline__ tile tile_of(const turn_args &a)
{
    tile t;
    uint32_t rest = wd_fastdiv_quotient(blockIdx.x, a.by_tile_a);
    const uint32_t a0 = (blockIdx.x - rest * a.by_tile_a.divisor) * a.ta;
    const uint32_t further = wd_fastdiv_quotient(rest, a.by_tile_b);
    const uint32_t b0 = (rest - further * a.by_tile_b.divisor) * a.tb;
    t.na = min(a.ta, a.a - a0);
    t.nb = min(a.tb, a.b - b0);
    t.x = a0 + b0 * a.x_row;
    t.y = b0 + a0 * a.y_row;
    rest = further;
    for (int d = a.rank - 1; d >= 0; --d) {
        const uint32_t next = wd_fastdiv_quotient(rest, a.dim[d]);
        const uint32_t at = rest - next * a.dim[d].divisor;
        t.x += at * a.x_stride[d];
        t.y += at * a.y_stride[d];
        rest = next;
    }
    return t;
}

// A run to a row of shared memory, which begins at a whole word.
template <class T> __device__ __forceinline__ void put_row(T *to, const wd_run<T, run_of<T>> &run)
{
    if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int w = 0; w < 4; ++w) reinterpret_cast<uint32_t *>(to)[w] = run.word[w];
    } else {
#pragma unroll
        for (int j = 0; j < run_of<T>; ++j) to[j] = run.get(j);
    }
}

template <class T>
__device__ __forceinline__ void load_runs(const turn_args &a, const tile &t, T *shared)
{
    constexpr int V = run_of<T>, RUNS = 4;
    const T *x = static_cast<const T *>(a.x) + t.x;
    const uint32_t units = t.nb * a.by_x.divisor;
    for (uint32_t first = threadIdx.x; first < units; first += RUNS * blockDim.x) {
        wd_run<T, V> run[RUNS];
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            const uint32_t u = first + i * blockDim.x;
            const uint32_t row = wd_fastdiv_quotient(u, a.by_x);
            const uint32_t k = (u - row * a.by_x.divisor) * V;
            if (u < units && k < t.na) run[i].load(x + row * a.x_row + k);
        }
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            const uint32_t u = first + i * blockDim.x;
            const uint32_t row = wd_fastdiv_quotient(u, a.by_x);
            const uint32_t k = (u - row * a.by_x.divisor) * V;
            if (u < units && k < t.na) put_row<T>(shared + row * a.pitch + k, run[i]);
        }
    }
}

// The run of x from element `at` on, which the tensor may not have all of.
template <class T>
__device__ __forceinline__ void get_run(const turn_args &a, wd_run<T, run_of<T>> &run, const T *x,
                                        int64_t at)
{
    if (at >= 0 && at + run_of<T> <= a.total) {
        run.load(x + at);
        return;
    }
#pragma unroll
    for (int j = 0; j < run_of<T>; ++j) {
        if (at + j >= 0 && at + j < a.total) run.put(j, x[at + j]);
    }
}

// Rows that begin anywhere: aligned runs from the boundary at or before each. Their elements lie a pitch apart
// in shared memory, from `shared` on: where the pitch is that of x, modulo a run, by whole runs.
template <class T>
__device__ __forceinline__ void load_shifted(const turn_args &a, const tile &t, T *shared)
{
    constexpr int V = run_of<T>, RUNS = 4;
    const T *x = static_cast<const T *>(a.x);
    const uint32_t units = t.nb * a.by_x.divisor;
    const uint32_t start = (uint32_t)(a.x_shift + t.x);
    for (uint32_t first = threadIdx.x; first < units; first += RUNS * blockDim.x) {
        wd_run<T, V> run[RUNS];
        int to[RUNS];
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            const uint32_t u = first + i * blockDim.x;
            const uint32_t row = wd_fastdiv_quotient(u, a.by_x);
            const uint32_t k = (u - row * a.by_x.divisor) * V;
            const uint32_t before = (start + row * a.x_step) & (V - 1);
            const int64_t at = t.x + row * a.x_row + k - before;
            to[i] = u < units && k < t.na + before ? (int)(row * a.pitch + k - before) : INT32_MIN;
            if (to[i] == INT32_MIN) continue;
            get_run(a, run[i], x, at);
        }
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            if (to[i] == INT32_MIN) continue;
            if (a.by_runs) run[i].store(shared + to[i]);
            else put_row<T>(shared + to[i], run[i]);
        }
    }
}

// The tile is a piece of x: it is stored as it lies, from the boundary at or before its start.
template <class T>
__device__ __forceinline__ void load_chunk(const turn_args &a, const tile &t, T *shared)
{
    constexpr int V = run_of<T>, RUNS = 4;
    const T *x = static_cast<const T *>(a.x);
    const int before = (int)((a.x_shift + t.x) & (V - 1));
    const int length = (int)(t.nb * t.na) + before;
    for (int first = (int)threadIdx.x * V; first < length; first += RUNS * V * (int)blockDim.x) {
        wd_run<T, V> run[RUNS];
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            const int e = first + i * V * (int)blockDim.x;
            const int64_t at = t.x + e - before;
            if (e >= length) continue;
            get_run(a, run[i], x, at);
        }
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            const int e = first + i * V * (int)blockDim.x;
            if (e < length) run[i].store(shared + e);
        }
    }
}

// Where the element (k along b, row along a) lies in shared memory.
template <class T> struct tile_rows {
    const T *first;
    uint32_t pitch;

    __device__ __forceinline__ T at(int k, uint32_t row) const
    {
        return first[k * (int)pitch + (int)row];
    }
};

template <class T>
__device__ __forceinline__ void store_runs(const turn_args &a, const tile &t,
                                           const tile_rows<T> &rows)
{
    constexpr int V = run_of<T>;
    T *y = static_cast<T *>(a.y) + t.y;
    const uint32_t units = t.na * a.by_y.divisor;
    for (uint32_t u = threadIdx.x; u < units; u += blockDim.x) {
        const uint32_t row = wd_fastdiv_quotient(u, a.by_y);
        const uint32_t k = (u - row * a.by_y.divisor) * V;
        wd_run<T, V> run;
        if (k >= t.nb) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) run.put(j, rows.at((int)k + j, row));
        put_run(a, run, y + row * a.y_row + k);
    }
}

// Of a run that is not whole in y, elements lo .. hi - 1. `to` is aligned to runs.
template <class T>
__device__ __forceinline__ void put_part(const turn_args &a, wd_run<T, run_of<T>> &run, T *to,
                                         int lo, int hi)
{
    constexpr int V = run_of<T>, PAIR = sizeof(T) == 2 ? 2 : 1;
#pragma unroll
    for (int j = 0; j < V; j += PAIR) {
        if (PAIR == 2 && a.plain && j >= lo && j + 1 < hi) {
            *reinterpret_cast<uint32_t *>(to + j) = run.word[j / 2];
            continue;
        }
#pragma unroll
        for (int e = j; e < j + PAIR; ++e) {
            if (e >= lo && e < hi) to[e] = blended(a, run.get(e), to + e);
        }
    }
}

// Rows of y that begin anywhere. Shared memory has room for the elements before a row and behind it.
template <class T>
__device__ __forceinline__ void store_shifted(const turn_args &a, const tile &t,
                                              const tile_rows<T> &rows)
{
    constexpr int V = run_of<T>;
    T *y = static_cast<T *>(a.y) + t.y;
    const uint32_t units = t.na * a.by_y.divisor;
    const uint32_t start = (uint32_t)(a.y_shift + t.y);
    for (uint32_t u = threadIdx.x; u < units; u += blockDim.x) {
        const uint32_t row = wd_fastdiv_quotient(u, a.by_y);
        const int before = (int)((start + row * a.y_step) & (V - 1));
        const int k = (int)(u - row * a.by_y.divisor) * V - before;
        T *to = y + row * a.y_row + k;
        wd_run<T, V> run;
        if (k >= (int)t.nb) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) run.put(j, rows.at(k + j, row));
        if (k >= 0 && k + V <= (int)t.nb) put_run(a, run, to);
        else put_part(a, run, to, max(-k, 0), min((int)t.nb - k, V));
    }
}

// The tile is a piece of y.
template <class T>
__device__ __forceinline__ void store_chunk(const turn_args &a, const tile &t,
                                            const tile_rows<T> &rows)
{
    constexpr int V = run_of<T>;
    T *y = static_cast<T *>(a.y) + t.y;
    const int length = (int)(t.nb * t.na);
    const int shift = (int)((a.y_shift + t.y) & (V - 1));
    const int n = (int)a.by_y.divisor;
    for (int e = (int)threadIdx.x * V - shift; e < length; e += V * (int)blockDim.x) {
        const uint32_t from = (uint32_t)max(e, 0);
        uint32_t row = wd_fastdiv_quotient(from, a.by_y);
        int k = (int)(from - row * a.by_y.divisor);
        wd_run<T, V> run;
        if (e >= 0 && e + V <= length) {
            if (n >= V) { // a row of y ends in it once at most
                const int on = (int)rows.pitch, back = on - (n * on - 1);
                const T *at = rows.first + (k * on + (int)row);
#pragma unroll
                for (int j = 0; j < V; ++j) {
                    run.put(j, *at);
                    at += k + j + 1 == n ? back : on;
                }
            } else {
#pragma unroll
                for (int j = 0; j < V; ++j) {
                    run.put(j, rows.at(k, row));
                    if (++k == n) k = 0, row += 1;
                }
            }
            put_run(a, run, y + e);
            continue;
        }
#pragma unroll
        for (int j = 0; j < V; ++j) {
            if (e + j < 0 || e + j >= length) continue;
            run.put(j, rows.at(k, row));
            if (++k == n) k = 0, row += 1;
        }
        put_part(a, run, y + e, max(-e, 0), min(length - e, V));
    }
}

// SHIFTED: rows of x begin anywhere.
template <class T, bool SHIFTED> __device__ void turn_tiles(const turn_args &a)
{
    WD_DYNAMIC_SHARED(unsigned char, shared);
    T *first = reinterpret_cast<T *>(shared) + a.lead;
    const tile t = tile_of(a);
    const uint32_t start = (uint32_t)(a.x_shift + t.x) & (run_of<T> - 1);
    wd_wait_for_previous();
    if (SHIFTED) load_shifted<T>(a, t, first += start);
    else if (a.x_way == TURN_RUNS) load_runs<T>(a, t, first);
    else load_chunk<T>(a, t, first);
    __syncthreads();
    if (!SHIFTED && a.x_way == TURN_CHUNK) first += start;
    const tile_rows<T> rows = {first, a.pitch};
    if (a.y_way == TURN_RUNS) store_runs<T>(a, t, rows);
    else if (a.y_way == TURN_CHUNK) store_chunk<T>(a, t, rows);
    else store_shifted<T>(a, t, rows);
}

// ---- Rows ----

// Runs of rows that lie elsewhere, or single elements from anywhere.
template <class T, int V> __device__ void turn_rows(const turn_args &a)
{
    constexpr int RUNS = 4;
    const T *x = static_cast<const T *>(a.x);
    T *y = static_cast<T *>(a.y);
    wd_wait_for_previous();
    for (uint32_t first = blockIdx.x * blockDim.x * RUNS + threadIdx.x; first < a.count;
         first += gridDim.x * blockDim.x * RUNS) {
        wd_run<T, V> run[RUNS];
        int64_t to[RUNS];
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            const uint32_t u = first + i * blockDim.x;
            uint32_t rest = wd_fastdiv_quotient(u, a.by_tile_a);
            const uint32_t k = (u - rest * a.by_tile_a.divisor) * V;
            int64_t from = V > 1 ? k : k * a.x_row;
            to[i] = k;
            if (u >= a.count) continue;
            for (int d = a.rank - 1; d >= 0; --d) {
                const uint32_t next = wd_fastdiv_quotient(rest, a.dim[d]);
                const uint32_t at = rest - next * a.dim[d].divisor;
                from += at * a.x_stride[d];
                to[i] += at * a.y_stride[d];
                rest = next;
            }
            run[i].load(x + from);
        }
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            if (first + i * blockDim.x >= a.count) continue;
            if constexpr (V > 1) put_run(a, run[i], y + to[i]);
            else y[to[i]] = blended(a, run[i].get(0), y + to[i]);
        }
    }
}

} // namespace

#define WD_KERNELS_ROWS "ops/tensor/transform_turn_kernels.def"
#include "ops/kernels_device.inc"
