// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm, and their gradients, over a few rows that no cluster holds: the whole chip has
// all of them. Each block has the same columns of every row (backward their parameters and sums in
// registers) and looks at a row while the next ones are on their way; then all blocks meet, once. So a row
// is read once.
#ifndef WD_OPS_NORM_WIDE_CUH
#define WD_OPS_NORM_WIDE_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/grid.cuh"
#include "gpu/device/shared.cuh"
#include "ops/norm/norm_rows_walk.cuh"
#include "ops/norm/norm_wide_args.h"

namespace {

constexpr int BATCH = NORM_WIDE_BATCH;
constexpr int PARTS_EACH = NORM_WIDE_BLOCKS / (int)WARP;

// Threads of a block. Forward nothing stays in registers but the parameters of some columns.
template <bool FORWARD>
constexpr uint32_t WIDE_THREADS = FORWARD ? NORM_WIDE_THREADS : NORM_WIDE_THREADS_BACKWARD;
constexpr uint32_t WIDE_WARPS = NORM_WIDE_THREADS / WARP;
static_assert(NORM_WIDE_THREADS >= NORM_WIDE_THREADS_BACKWARD &&
                  NORM_WIDE_THREADS_BACKWARD / WARP >= NORM_WIDE_BATCH,
              "a warp joins the parts of a row");

// xhat of a row, which element of the ring is its first one of the block, and where the unit of that one goes (forward).
struct __align__(16) wide_row
{
    float mean;
    float inv_std;
    float shift;
    uint32_t at;
    void *to;
};

struct room {
    part of_warp[BATCH][WIDE_WARPS];
    part of_row[BATCH];      // backward
    wide_row numbers[BATCH]; // forward
    uint64_t landed[BATCH];  // rows, forward
    float mean[BATCH];       // backward: what is given of the rows
    float inv_std[BATCH];
};

// The columns of a block, and where those of a thread are: its units of runs, or every so many of
// singles.
struct strip {
    uint32_t first;
    uint32_t count;
    uint32_t mine; // columns of the thread
};

template <class T, bool RUNS, uint32_t THREADS>
__device__ __forceinline__ strip strip_of(const norm_wide_args &w)
{
    constexpr uint32_t E = EACH<T>;
    const norm_rows_args &a = w.of;
    strip s;
    s.first = min(blockIdx.x * a.share * E, a.length);
    s.count = min(a.share * E, a.length - s.first);
    const uint32_t places = RUNS ? s.count / E : s.count;
    s.mine = threadIdx.x < places ? (places - threadIdx.x - 1) / THREADS + 1 : 0;
    if (RUNS) s.mine *= E;
    return s;
}

// Column i of the thread, from the strip's first.
template <class T, bool RUNS, uint32_t THREADS>
__device__ __forceinline__ uint32_t place_of_column(uint32_t i)
{
    constexpr uint32_t E = EACH<T>;
    if (RUNS) return (i / E * THREADS + threadIdx.x) * E + i % E;
    return i * THREADS + threadIdx.x;
}

// Elements between the first aligned sixteen bytes of a block's part of a row and its first column.
template <class T>
__device__ __forceinline__ uint32_t wide_shift_of(const norm_wide_args &w, const strip &s,
                                                  const void *from, int64_t row)
{
    const uint64_t at = reinterpret_cast<uintptr_t>(from) / sizeof(T);
    return (uint32_t)(at + (uint64_t)row * w.of.length + s.first) % EACH<T>;
}

// The block's part of a row on its way to place `at` of the ring, whole units: a little of what lies
// beside may come too.
template <class T, bool RUNS, uint32_t THREADS>
__device__ __forceinline__ void ask_row(const norm_wide_args &w, const strip &s, uint4 *ring,
                                        uint32_t at, const void *from, int64_t row)
{
    constexpr uint32_t E = EACH<T>;
    const norm_rows_args &a = w.of;
    if (row >= a.rows || s.count == 0) return;
    const uint32_t shift = RUNS ? 0 : wide_shift_of<T>(w, s, from, row);
    const uint32_t units = (shift + s.count + E - 1) / E;
    const T *first = static_cast<const T *>(from) + (row * a.length + s.first) - shift;
#pragma unroll 1
    for (uint32_t u = threadIdx.x; u < units; u += THREADS) {
        wd_copy_async<16, false>(&ring[at * w.row_units + u], first + u * E);
    }
}

// All rows, a group of copies each.
template <class T, bool RUNS, int TENSORS, uint32_t THREADS>
__device__ __forceinline__ void ask_rows(const norm_wide_args &w, const strip &s, room &of,
                                         uint4 *ring)
{
    const uint32_t mine = threadIdx.x;
    if (TENSORS == 2 && mine < w.batch) {
        const float *mean = w.of.given_mean;
        if (mean) wd_copy_async<4, false>(&of.mean[mine], mean + mine);
        wd_copy_async<4, false>(&of.inv_std[mine], w.of.given_inv_std + mine);
    }
    for (uint32_t r = 0; r < w.batch; ++r) {
        ask_row<T, RUNS, THREADS>(w, s, ring, r * TENSORS, w.of.x, r);
        if (TENSORS == 2) ask_row<T, RUNS, THREADS>(w, s, ring, r * TENSORS + 1, w.of.dy, r);
        wd_copies_end();
    }
}

// All but the `later` rows that are asked for last.
__device__ __forceinline__ void wait_but(uint32_t later)
{
    switch (later) {
    case 0: wd_copies_wait<0>(); break;
    case 1: wd_copies_wait<1>(); break;
    case 2: wd_copies_wait<2>(); break;
    case 3: wd_copies_wait<3>(); break;
    case 4: wd_copies_wait<4>(); break;
    case 5: wd_copies_wait<5>(); break;
    case 6: wd_copies_wait<6>(); break;
    default: wd_copies_wait<7>(); break;
    }
}

// E of the thread's columns, of place `at`; zeros where it has none.
template <class T, bool RUNS>
__device__ __forceinline__ void take_some(const norm_wide_args &w, const uint4 *ring, uint32_t at,
                                          uint32_t shift, uint32_t mine, int i, float *to)
{
    constexpr int E = EACH<T>;
    if constexpr (RUNS) {
        const uint4 word = ring[at * w.row_units + i / E * WIDE_THREADS<false> + threadIdx.x];
        unit<T> u;
        u.word[0] = word.x, u.word[1] = word.y, u.word[2] = word.z, u.word[3] = word.w;
#pragma unroll
        for (int k = 0; k < E; ++k) to[k] = wd_widen(u.get(k));
    } else {
        const T *from = reinterpret_cast<const T *>(ring + at * w.row_units) + shift;
#pragma unroll
        for (int k = 0; k < E; ++k) {
            to[k] = 0.0f;
            if ((uint32_t)(i + k) < mine)
                to[k] = wd_widen(from[place_of_column<T, RUNS, WIDE_THREADS<false>>(i + k)]);
        }
    }
}

template <class T, bool RUNS>
__device__ __forceinline__ void put_some(const norm_wide_args &w, const strip &s, int64_t row,
                                         int i, const float *value)
{
    constexpr int E = EACH<T>;
    const norm_rows_args &a = w.of;
    T *to = static_cast<T *>(a.y) + (row * a.length + s.first);
    if constexpr (RUNS) {
        unit<T> out;
#pragma unroll
        for (int k = 0; k < E; k += 2) narrow_pair(out, k, value[k], value[k + 1]);
        to += place_of_column<T, RUNS, WIDE_THREADS<false>>(i);
        if (a.streaming) out.store_streaming(to);
        else out.store(to);
    } else {
#pragma unroll
        for (int k = 0; k < E; ++k) {
            if ((uint32_t)(i + k) < s.mine)
                wd_narrow(to[place_of_column<T, RUNS, WIDE_THREADS<false>>(i + k)], value[k]);
        }
    }
}

template <class T, int C, bool RUNS>
__device__ __forceinline__ void read_some(const norm_wide_args &w, const strip &s,
                                          const norm_rows_param &p, float *to)
{
#pragma unroll
    for (int i = 0; i < C; ++i) {
        to[i] = 0.0f;
        const uint32_t column = s.first + place_of_column<T, RUNS, WIDE_THREADS<false>>(i);
        if ((uint32_t)i >= s.mine || !p.data) continue;
        if (p.type == NORM_ROWS_F32) to[i] = static_cast<const float *>(p.data)[column];
        else if (p.type == NORM_ROWS_F16)
            to[i] = wd_widen(static_cast<const half16 *>(p.data)[column]);
        else to[i] = wd_widen(static_cast<const bfloat16 *>(p.data)[column]);
    }
}

// ---- What is found of a row ----

template <class T, int C, bool RUNS>
__device__ __forceinline__ part look_backward(const norm_wide_args &w, const strip &s,
                                              const uint4 *ring, uint32_t at, int64_t row,
                                              float mean, float inv_std, const float *scale,
                                              float *dscale, float *dbias)
{
    constexpr int E = EACH<T>;
    const uint32_t shift = RUNS ? 0 : wide_shift_of<T>(w, s, w.of.x, row);
    const uint32_t shift_dy = RUNS ? 0 : wide_shift_of<T>(w, s, w.of.dy, row);
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < C; i += E) {
        float x[E], dy[E];
        if ((uint32_t)i >= s.mine) continue;
        take_some<T, RUNS>(w, ring, at, shift, s.mine, i, x);
        take_some<T, RUNS>(w, ring, at + 1, shift_dy, s.mine, i, dy);
#pragma unroll
        for (int k = 0; k < E; ++k) {
            const bool there = RUNS || (uint32_t)(i + k) < s.mine;
            const float d = there ? dy[k] : 0.0f;
            const float slope = there ? d * (x[k] - mean) : 0.0f;
            dscale[i + k] = fmaf(slope, inv_std, dscale[i + k]);
            dbias[i + k] += d;
            p.pivot = fmaf(d, scale[i + k], p.pivot);
            p.rest = fmaf(slope, scale[i + k], p.rest);
        }
    }
    return p;
}

// Tells the other blocks what its warps found of the rows; returns what to wait with.
template <bool FORWARD>
__device__ __forceinline__ uint32_t tell(const norm_wide_args &w, const strip &s, room &of)
{
    const uint32_t warp = threadIdx.x / WARP;
    uint32_t before = 0;
    __syncthreads();
    if (warp < w.batch) {
        const float count = (float)s.count;
        part p = join_all<FORWARD>(of.of_warp[warp], WIDE_THREADS<FORWARD> / WARP,
                                   count > 0.0f ? 1.0f / count : 0.0f);
        p.count = count;
        if (threadIdx.x % WARP == 0)
            static_cast<part *>(w.parts)[warp * gridDim.x + blockIdx.x] = p;
    }
    __syncthreads();
    if (threadIdx.x == 0) before = wd_come(w.counter, gridDim.x, blockIdx.x == 0);
    return before;
}

// What all blocks said of the row of a warp, on its way to registers.
__device__ __forceinline__ void fetch_parts(const norm_wide_args &w, part (&to)[PARTS_EACH])
{
    const uint32_t warp = threadIdx.x / WARP;
    const float4 *from = static_cast<const float4 *>(w.parts) + warp * gridDim.x;
#pragma unroll
    for (int k = 0; k < PARTS_EACH; ++k) {
        const uint32_t block = k * WARP + threadIdx.x % WARP;
        to[k] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (warp < w.batch && block < gridDim.x) {
            const float4 v = __ldcg(from + block);
            to[k] = {v.x, v.y, v.z, v.w};
        }
    }
}

template <bool FORWARD>
__device__ __forceinline__ part join_parts(const norm_wide_args &w, const part (&of)[PARTS_EACH])
{
    part all = {0.0f, 0.0f, 0.0f, 0.0f};
    float sum = 0.0f, squares = 0.0f;
    if constexpr (FORWARD) {
        all.pivot = __shfl_sync(WHOLE_WARP, of[0].pivot, 0);
#pragma unroll
        for (int k = 0; k < PARTS_EACH; ++k) {
            const float d = (of[k].pivot - all.pivot) + of[k].rest;
            if (of[k].count > 0.0f) sum = fmaf(of[k].count, d, sum);
        }
        all.rest = sum_of_lanes(sum, WARP) * w.of.inverse;
#pragma unroll
        for (int k = 0; k < PARTS_EACH; ++k) {
            const float d = ((of[k].pivot - all.pivot) + of[k].rest) - all.rest;
            if (of[k].count > 0.0f) squares += fmaf(of[k].count * d, d, of[k].squares);
        }
        all.squares = sum_of_lanes(squares, WARP);
    } else {
#pragma unroll
        for (int k = 0; k < PARTS_EACH; ++k) sum += of[k].pivot, squares += of[k].rest;
        all.pivot = sum_of_lanes(sum, WARP);
        all.rest = sum_of_lanes(squares, WARP);
    }
    return all;
}

// ---- What becomes of it ----

template <class T, int C, bool RUNS>
__device__ __forceinline__ void put_backward(const norm_wide_args &w, const strip &s,
                                             const uint4 *ring, uint32_t at, int64_t row,
                                             float mean, float inv_std, const part &all,
                                             const float *scale)
{
    constexpr int E = EACH<T>;
    const norm_rows_args &a = w.of;
    const uint32_t shift = RUNS ? 0 : wide_shift_of<T>(w, s, a.x, row);
    const uint32_t shift_dy = RUNS ? 0 : wide_shift_of<T>(w, s, a.dy, row);
    const float level = a.centered ? all.pivot * a.inverse : 0.0f;
    const float slope = (all.rest * a.inverse) * (inv_std * inv_std);
#pragma unroll
    for (int i = 0; i < C; i += E) {
        float x[E], dy[E];
        if ((uint32_t)i >= s.mine) continue;
        take_some<T, RUNS>(w, ring, at, shift, s.mine, i, x);
        take_some<T, RUNS>(w, ring, at + 1, shift_dy, s.mine, i, dy);
#pragma unroll
        for (int k = 0; k < E; ++k) {
            const float g = fmaf(dy[k], scale[i + k], -level);
            dy[k] = inv_std * fmaf(-slope, x[k] - mean, g);
        }
        put_some<T, RUNS>(w, s, row, i, dy);
    }
}

template <class T, int C, bool RUNS>
__device__ __forceinline__ void wide_backward(const norm_wide_args &w)
{
    constexpr uint32_t THREADS = WIDE_THREADS<false>;
    __shared__ room of;
    WD_DYNAMIC_SHARED(uint4, ring);
    const norm_rows_args &a = w.of;
    const strip s = strip_of<T, RUNS, THREADS>(w);
    const uint32_t warp = threadIdx.x / WARP;
    float scale[C], dscale[C], dbias[C];
    wd_wait_for_previous();
    if (threadIdx.x < BATCH) of.mean[threadIdx.x] = 0.0f; // of RMS norm none comes
    __syncwarp();
    ask_rows<T, RUNS, 2, THREADS>(w, s, of, ring);
    read_some<T, C, RUNS>(w, s, a.scale, scale);
#pragma unroll
    for (int i = 0; i < C; ++i) dscale[i] = dbias[i] = 0.0f;
#pragma unroll 1
    for (uint32_t r = 0; r < w.batch; ++r) {
        wait_but(w.batch - 1 - r);
        __syncthreads(); // what others copied
        const part p = join<false>(look_backward<T, C, RUNS>(w, s, ring, 2 * r, r, of.mean[r],
                                                             of.inv_std[r], scale, dscale, dbias),
                                   WARP, 0.0f);
        if (threadIdx.x % WARP == 0) of.of_warp[r][warp] = p;
    }
    const uint32_t before = tell<false>(w, s, of);
    part parts[PARTS_EACH];
    if (threadIdx.x == 0) wd_await(w.counter, before);
    __syncthreads();
    fetch_parts(w, parts);
    const part all = join_parts<false>(w, parts);
    if (warp < w.batch && threadIdx.x % WARP == 0) of.of_row[warp] = all;
    __syncthreads();
#pragma unroll 1
    for (uint32_t r = 0; r < w.batch; ++r)
        put_backward<T, C, RUNS>(w, s, ring, 2 * r, r, of.mean[r], of.inv_std[r], of.of_row[r],
                                 scale);
#pragma unroll
    for (int i = 0; i < C; ++i) {
        const uint32_t column = s.first + place_of_column<T, RUNS, THREADS>(i);
        if ((uint32_t)i >= s.mine) continue;
        write_param(a.dscale, column, dscale[i]);
        write_param(a.dbias, column, dbias[i]);
    }
}

} // namespace

#endif
