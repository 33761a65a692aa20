// SPDX-License-Identifier: Apache-2.0
//
// A box of a tensor in shared memory, and passes that put neighbours together along one axis after
// the other: sums and maxima over a window are those of its rows, so that the work grows with the
// window's edges and not with its volume, and memory sees each element once. A tensor of any
// alignment is staged by 16 bytes: where rows begin anywhere, whole lines of bytes are, from the
// 16-byte boundary before each.
#ifndef WD_OPS_POOLING_TILE_CUH
#define WD_OPS_POOLING_TILE_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/shared.cuh"
#include "ops/pooling/pooling_tile_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

__device__ __forceinline__ unsigned char *memory_at(uint32_t bytes)
{
    return wd_dynamic_shared<unsigned char>() + bytes;
}

// What a block has of an axis: results out0 .. out0+outs-1 of elements in0 .. in0+ins-1.
struct stretch {
    int out0;
    int outs;
    int in0;
    int ins;
};

// Forward: windows of elements of the image.
__device__ __forceinline__ stretch windows_stretch(const pool_axis &x, int tile)
{
    stretch s;
    s.out0 = tile * x.outs;
    s.outs = min(x.outs, x.windows - s.out0);
    const int start = s.out0 * x.stride - x.pad;
    s.in0 = x.whole ? 0 : max(start, 0);
    const int end = min(start + (s.outs - 1) * x.stride + x.size, x.image);
    s.ins = x.whole ? x.image : max(end - s.in0, 0);
    return s;
}

// Of the windows over elements first .. last of the image, the first one, and the one after the last.
__device__ __forceinline__ int first_over(const pool_axis &x, int first)
{
    const int before = first + x.pad - x.size; // a window from here or earlier ends too soon
    return before < 0 ? 0 : (int)wd_fastdiv_quotient((uint32_t)before, x.by_stride) + 1;
}
__device__ __forceinline__ int end_over(const pool_axis &x, int last)
{
    const int from = last + x.pad;
    return min(from < 0 ? 0 : (int)wd_fastdiv_quotient((uint32_t)from, x.by_stride) + 1, x.windows);
}

// Backward: elements of the image from the windows over them.
__device__ __forceinline__ stretch image_stretch(const pool_axis &x, int tile)
{
    stretch s;
    s.out0 = tile * x.outs;
    s.outs = min(x.outs, x.image - s.out0);
    s.in0 = x.whole ? 0 : first_over(x, s.out0);
    s.ins = x.whole ? x.windows : max(end_over(x, s.out0 + s.outs - 1) - s.in0, 0);
    return s;
}

// A block's part of the problem.
struct box {
    uint32_t outer0;
    uint32_t outers;
    uint32_t inner0;
    stretch on[3];
};

template <bool SPREAD> __device__ __forceinline__ box box_of(const pool_tile_args &a, uint32_t n)
{
    box b;
    b.inner0 = wd_take_rest(n, a.by_inner_tiles) * a.tile_inner;
#pragma unroll
    for (int i = 2; i >= 0; --i) {
        const int tile = (int)wd_take_rest(n, a.axis[i].by_tiles);
        b.on[i] = SPREAD ? image_stretch(a.axis[i], tile) : windows_stretch(a.axis[i], tile);
    }
    b.outer0 = n * a.tile_outer;
    b.outers = min(a.tile_outer, a.outer - b.outer0);
    return b;
}

// ---- Staging ----

// Of the tensor that is staged: its extents.
struct extents {
    int d;
    int h;
    int w;
};

// By runs of V: [outer][ins][ins][ins][tile_inner], without gaps.
template <class T, int V>
__device__ __forceinline__ void stage_runs(const pool_tile_args &a, const T *from,
                                           const extents &whole, const box &b, const stretch *on)
{
    const uint32_t rows =
        b.outers * (uint32_t)(a.axis[0].by_ins.divisor * a.axis[1].by_ins.divisor);
    const uint32_t items = rows * a.axis[2].by_ins.divisor * a.tile_inner;
    T *to = reinterpret_cast<T *>(memory_at(0));
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t n = item;
        const uint32_t c = wd_take_rest(n, a.by_tile_inner) + b.inner0;
        const int w = (int)wd_take_rest(n, a.axis[2].by_ins);
        const int h = (int)wd_take_rest(n, a.axis[1].by_ins);
        const int d = (int)wd_take_rest(n, a.axis[0].by_ins);
        if (w >= on[2].ins || h >= on[1].ins || d >= on[0].ins || c >= a.inner) continue;
        const size_t row = ((size_t)(b.outer0 + n) * whole.d + on[0].in0 + d) * whole.h;
        const size_t pixel = (row + on[1].in0 + h) * whole.w + on[2].in0 + w;
        const T *source = from + (pixel * a.inner + c) * V;
        if constexpr (V * sizeof(T) == 16) wd_copy_async<16, false>(to + (size_t)item * V, source);
        else to[item] = *source;
    }
}

// By lines of whole rows: each begins where its first byte lies within 16.
template <class T>
__device__ __forceinline__ void stage_lines(const pool_tile_args &a, const T *from,
                                            const extents &whole, const box &b, const stretch *on)
{
    const uint32_t deep = a.axis[0].by_ins.divisor, high = a.axis[1].by_ins.divisor;
    const uint32_t rows = b.outers * deep * high;
    const uint32_t lines = (rows + a.line_rows - 1) / a.line_rows;
    const uint32_t chunks = a.line_pitch / 16;
    const uintptr_t begin = (uintptr_t)from;
    const uintptr_t end = begin + (size_t)a.total * sizeof(T);
    // bytes of a line: of all of its rows that there are
    uint32_t in_line = (uint32_t)on[2].ins;
    if (a.line_rows > 1) in_line *= (uint32_t)on[1].ins;
    if (a.line_rows > high) in_line *= (uint32_t)on[0].ins;
    if (a.line_rows > high * deep) in_line *= b.outers;
    in_line *= a.inner * (uint32_t)sizeof(T);
    uint32_t *row_at = reinterpret_cast<uint32_t *>(memory_at(a.at.rows));
    for (uint32_t row = threadIdx.x; row < rows; row += blockDim.x) {
        const uint32_t line = wd_fastdiv_quotient(row, a.by_line_rows);
        uint32_t n = line * a.line_rows;
        const uint32_t in_row = row - n;
        const int h = (int)wd_take_rest(n, a.axis[1].by_ins);
        const int d = (int)wd_take_rest(n, a.axis[0].by_ins);
        const size_t above = ((size_t)(b.outer0 + n) * whole.d + on[0].in0 + d) * whole.h;
        const size_t pixel = (above + on[1].in0 + h) * whole.w + on[2].in0;
        const uint32_t phase = (uint32_t)((begin + pixel * a.inner * sizeof(T)) % 16);
        row_at[row] = line * a.line_pitch + phase + in_row * a.row_bytes;
    }
    for (uint32_t item = threadIdx.x; item < lines * chunks; item += blockDim.x) {
        uint32_t line = item;
        const uint32_t chunk = wd_take_rest(line, a.by_line_chunks);
        uint32_t n = line * a.line_rows;
        const int h = (int)wd_take_rest(n, a.axis[1].by_ins);
        const int d = (int)wd_take_rest(n, a.axis[0].by_ins);
        if (h >= on[1].ins || d >= on[0].ins) continue;
        const size_t above = ((size_t)(b.outer0 + n) * whole.d + on[0].in0 + d) * whole.h;
        const size_t pixel = (above + on[1].in0 + h) * whole.w + on[2].in0;
        const uintptr_t first = begin + pixel * a.inner * sizeof(T);
        const uintptr_t source = first - first % 16 + 16 * (uintptr_t)chunk;
        if (source >= first + in_line) continue;
        unsigned char *to = memory_at(item * 16);
        if (source >= begin && source + 16 <= end) {
            wd_copy_async<16, false>(to, reinterpret_cast<const void *>(source));
        } else { // what lies around the tensor is not read
            for (uint32_t i = 0; i < 16; i += (uint32_t)sizeof(T)) {
                if (source + i < first || source + i >= first + in_line) continue;
                *reinterpret_cast<T *>(to + i) = *reinterpret_cast<const T *>(source + i);
            }
        }
    }
}

template <class T, int V>
__device__ __forceinline__ void stage(const pool_tile_args &a, const T *from, const extents &whole,
                                      const box &b, const stretch *on)
{
    if (V == 1 && a.lines) stage_lines<T>(a, from, whole, b, on);
    else stage_runs<T, V>(a, from, whole, b, on);
    wd_copies_wait_all();
    __syncthreads();
}

// A row of the staged box, in bytes.
template <class T, int V>
__device__ __forceinline__ uint32_t row_at(const pool_tile_args &a, uint32_t row)
{
    if (V == 1 && a.lines) return reinterpret_cast<const uint32_t *>(memory_at(a.at.rows))[row];
    return row * a.axis[2].by_ins.divisor * a.tile_inner * (V * (uint32_t)sizeof(T));
}

// ---- Runs in between ----

// Runs of 32 bytes lie as two halves, each in a row of its own: 16 bytes a thread side by side.
template <class M, int V>
__device__ __forceinline__ void load_between(uint32_t base, uint32_t half, uint32_t at, acc<M> *v)
{
    constexpr int PARTS = V * (int)sizeof(M) > 16 ? 2 : 1;
    constexpr int N = V / PARTS;
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        wd_run<M, N> run;
        run.load(reinterpret_cast<const M *>(memory_at(base + part * half)) + (size_t)at * N);
#pragma unroll
        for (int i = 0; i < N; ++i) v[part * N + i] = wd_widen(run.get(i));
    }
}

template <class M, int V>
__device__ __forceinline__ void store_between(uint32_t base, uint32_t half, uint32_t at,
                                              const acc<M> *v)
{
    constexpr int PARTS = V * (int)sizeof(M) > 16 ? 2 : 1;
    constexpr int N = V / PARTS;
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        wd_run<M, N> run;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            M narrow;
            wd_narrow(narrow, v[part * N + i]);
            run.put(i, narrow);
        }
        run.store(reinterpret_cast<M *>(memory_at(base + part * half)) + (size_t)at * N);
    }
}

// ---- A pass ----

// K results of an axis, from its result o0 on. load(i, v) gives element i of those staged, as they
// are to be put together; `size` of them make a window.
template <int MODE, bool SPREAD, int WAY, int K, int V, class A, class LOAD>
__device__ __forceinline__ void along(const pool_axis &x, const stretch &on, int o0, LOAD load,
                                      A (*value)[V])
{
    A v[V];
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
        for (int i = 0; i < V; ++i) value[k][i] = nothing<MODE, A>();
    }
    auto give = [&](int k) {
#pragma unroll
        for (int i = 0; i < V; ++i) take<MODE>(value[k][i], v[i]);
    };
    if constexpr (WAY == POOL_RUN) {
        // what all K windows share, and before and after it what some do
        const int base = (SPREAD ? o0 + x.pad - x.size + 1 : o0 - x.pad) - on.in0;
#pragma unroll
        for (int j = 0; j < K - 1; ++j) {
            if ((uint32_t)(base + j) < (uint32_t)on.ins) {
                load(base + j, v);
#pragma unroll
                for (int k = 0; k <= j; ++k) give(k);
            }
        }
        const int high = min(base + x.size, on.ins);
        A shared[V];
#pragma unroll
        for (int i = 0; i < V; ++i) shared[i] = nothing<MODE, A>();
#pragma unroll 2
        for (int i = max(base + K - 1, 0); i < high; ++i) {
            load(i, v);
#pragma unroll
            for (int e = 0; e < V; ++e) take<MODE>(shared[e], v[e]);
        }
#pragma unroll
        for (int k = 0; k < K; ++k) {
#pragma unroll
            for (int e = 0; e < V; ++e) take<MODE>(value[k][e], shared[e]);
        }
#pragma unroll
        for (int j = 0; j < K - 1; ++j) {
            if ((uint32_t)(base + x.size + j) < (uint32_t)on.ins) {
                load(base + x.size + j, v);
#pragma unroll
                for (int k = j + 1; k < K; ++k) give(k);
            }
        }
    } else {
        int low, high, first; // `first` is what element `low` is of the first result's window
        if (SPREAD) {
            low = max(first_over(x, o0) - on.in0, 0);
            high = min(end_over(x, o0 + K - 1) - on.in0, on.ins);
            first = o0 - ((low + on.in0) * x.stride - x.pad);
        } else {
            const int base = o0 * x.stride - x.pad - on.in0;
            low = max(base, 0);
            high = min(base + (K - 1) * x.stride + x.size, on.ins);
            first = low - base;
        }
#pragma unroll 1
        for (int i = low; i < high; ++i) {
            load(i, v);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                const int d = SPREAD ? first + k : first - k * x.stride;
                if ((uint32_t)d < (uint32_t)x.size) give(k);
            }
            first += SPREAD ? -x.stride : 1;
        }
    }
}

} // namespace

#endif
