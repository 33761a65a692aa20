// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima by windows of two or three, by two, where a pixel has several channels: each window hands
// its dy to one pixel, so a block adds up in shared memory, in single precision, those rows of a stretch of dx that
// windows may still reach. A line of windows after the other; of a line first those of even place, which have no
// pixel in common, then the others. Rows that are done go to dx by four elements at whatever alignment.
#ifndef WD_OPS_RESAMPLE_RING_SCATTER_CUH
#define WD_OPS_RESAMPLE_RING_SCATTER_CUH

#include "gpu/device/shared.cuh"
#include "gpu/device/words.cuh"
#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_ring_lines.cuh"
#include "ops/resample/resample_vector.cuh"

namespace {

// A row of dx in shared memory: elements first .. end-1 of it are a block's, of which 4 at a multiple of 4 are
// aligned in dx, too. What windows of other blocks have beside them is cleared as far as a later row, which may
// lie otherwise, has elements of its own there.
template <class T> struct __align__(16) scatter_row
{
    static constexpr int N = RING_SCATTER_RUN, EDGE = 2 * N;
    T *to;
    int at; // of all sums
    int first;
    int end;
    int low; // whole fours are low .. high-1
    int high;
    int stored; // rows of padding, and those before the walk, are only cleared

    __device__ __forceinline__ void put(float *all) const
    {
        float *sums = all + at;
        // carried along, for nvcc works addresses out anew in each turn else
        const uint32_t step = blockDim.x * N;
        float4 *four = reinterpret_cast<float4 *>(sums + low) + threadIdx.x;
        T *mine = to + low + threadIdx.x * N;
#pragma unroll 1
        for (int i = low + (int)threadIdx.x * N; i < high; i += (int)step) {
            const float4 has = *four;
            const float value[N] = {has.x, has.y, has.z, has.w};
            wd_run<T, N> run;
            wd_narrow_run(run, value);
            *four = make_float4(0, 0, 0, 0);
            if (stored) run.store(mine);
            four += blockDim.x;
            mine += step;
        }
        if (threadIdx.x < 2 * EDGE) {
            const int thread = (int)threadIdx.x;
            const int i = thread < EDGE ? low - EDGE + thread : high + thread - EDGE;
            if (i >= first && i < end && stored) wd_narrow(to[i], sums[i]);
            if (i >= 0) sums[i] = 0;
        }
    }
    // Where results are scaled or blended.
    __device__ __forceinline__ void put_asking(const ring_out &result, float *all) const
    {
        float *sums = all + at;
        for (int i = max(first - N, 0) + (int)threadIdx.x; i < end + N; i += (int)blockDim.x) {
            if (stored && i >= first && i < end) {
                wd_put_run<T, 1>(result, (size_t)(to + i - static_cast<T *>(result.out)), sums + i);
            }
            sums[i] = 0;
        }
    }
};

template <class T>
__device__ __forceinline__ void resample_ring_scatter(const resample_ring_scatter_args &a)
{
    constexpr int L = RING_SCATTER_UNITS, N = RING_SCATTER_RUN;
    const resample_places_axis &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    uint32_t *reach = wd_dynamic_shared<
        uint32_t>(); // by place: where in the rows, from the window's first column on
    scatter_row<T> *done = reinterpret_cast<scatter_row<T> *>(reach + 2 * RING_SCATTER_PLACES);
    float *sums = reinterpret_cast<float *>(reach) + RING_SCATTER_NOTES;
    uint32_t n = blockIdx.x;
    const uint32_t inner = a.p.inner;
    // one window more, whose third column is the first one's first
    const int from = (int)(wd_take_rest(n, a.p.by_column) * a.windows) - 1;
    const int begin = (int)(wd_take_rest(n, a.p.by_row) * a.rows);
    const int end = min(begin + (int)a.rows, (h.image + h.pad + 1) / 2);
    const int overlap = w.window - 2, last = min(end, h.windows) - 1;
    const uint32_t line_windows = (uint32_t)w.windows * inner;
    const uint32_t out_line = (uint32_t)w.image * inner;
    const uint32_t size = (uint32_t)a.p.place_size;
    // a thread's windows, those of even place first
    uint32_t at[L], base[L], absent[L]; // all bits of what is none
#pragma unroll
    for (int l = 0; l < L; ++l) {
        uint32_t window = threadIdx.x + (uint32_t)(l % (L / 2)) * blockDim.x;
        const uint32_t channel = wd_take_rest(window, a.by_inner);
        window = 2 * window + l / (L / 2);
        const int place = from + (int)window;
        base[l] = 2 * window * inner + channel;
        const bool is = window <= a.windows && (uint32_t)place < (uint32_t)w.windows;
        absent[l] = is ? 0 : ~0u;
        at[l] = is ? (uint32_t)place * inner + channel : 0;
    }
    const int column = 2 * from - w.pad; // of dx, that lies first in a row
    const int first = (max(column + 2, 0) - column) * (int)inner;
    const int till = (min(column + 2 + 2 * (int)a.windows, w.image) - column) * (int)inner;
    const ring_out result(a.p);
    const int start = max(begin - overlap, 0);
    const size_t line = (size_t)n * (uint32_t)h.windows + (uint32_t)start;
    const T *dy = static_cast<const T *>(a.p.from) + line * line_windows;
    const unsigned char *places =
        static_cast<const unsigned char *>(a.p.places) + line * line_windows * size;
    T *out = static_cast<T *>(a.p.out) + (size_t)n * (uint32_t)h.image * out_line +
             (ptrdiff_t)column * (ptrdiff_t)inner; // may lie before the row
    const uint32_t phase = (uint32_t)((uintptr_t)out / sizeof(T));
    // rows of dx as windows see them, with the padding
    auto shift_of = [&](int row) { return (phase + (uint32_t)(row - h.pad) * out_line) % N; };
    auto slot_of = [&](int row) { return (uint32_t)row % RING_SCATTER_ROWS * a.pitch; };
    // What a line of windows needs, by a thread each.
    const uint32_t thread = threadIdx.x, place_row = thread / (uint32_t)w.window;
    const uint32_t place_column = (thread - place_row * (uint32_t)w.window) * inner;
    auto find = [&](int o) {
        if (place_row < (uint32_t)w.window) {
            const int of = 2 * o + (int)place_row;
            reach[(o & 1) * RING_SCATTER_PLACES + thread] =
                slot_of(of) + shift_of(of) + place_column;
        }
        if (thread / 2 == RING_SCATTER_PLACES / 2) {
            const int of = 2 * o + (int)(thread % 2), shift = (int)shift_of(of);
            scatter_row<T> r;
            r.to = out + (ptrdiff_t)(of - h.pad) * (ptrdiff_t)out_line - shift;
            r.at = (int)slot_of(of);
            r.first = first + shift;
            r.end = till + shift;
            r.low = (r.first + N - 1) / N * N;
            r.high = max(r.end / N * N, r.low);
            r.stored = o >= begin && (uint32_t)(of - h.pad) < (uint32_t)h.image;
            done[(o & 1) * 2 + thread % 2] = r;
        }
    };
    T share[L];
    uint32_t place[L];
    auto load = [&]() {
#pragma unroll
        for (int l = 0; l < L; ++l) {
            share[l] = dy[at[l]];
            place[l] = places[(size_t)at[l] * size]; // the lowest byte tells all of them
        }
        dy += line_windows;
        places += (size_t)line_windows * size;
    };
    for (uint32_t i = threadIdx.x * N; i < RING_SCATTER_ROWS * a.pitch; i += blockDim.x * N) {
        *reinterpret_cast<float4 *>(sums + i) = make_float4(0, 0, 0, 0);
    }
    if (start <= last) load();
    find(start);
    const uint32_t most = (uint32_t)(h.window * w.window);
    __syncthreads();
    // The rows that no later window reaches, while those of even place are added up.
    auto store = [&](int o) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const scatter_row<T> row = done[(o & 1) * 2 + r];
            if (result.plain) row.put(sums);
            else row.put_asking(result, sums);
        }
    };
    float mine[L];
    uint32_t found[L];
    auto add = [&](int half, int o) {
        const uint32_t *to_place = reach + (o & 1) * RING_SCATTER_PLACES;
        uint32_t to[L / 2];
        float sum[L / 2];
#pragma unroll
        for (int i = 0; i < L / 2; ++i) {
            const int l = half * (L / 2) + i;
            to[i] = base[l] + to_place[min(found[l], most)];
            if (found[l] < most) sum[i] = sums[to[i]];
        }
#pragma unroll
        for (int i = 0; i < L / 2; ++i) {
            const int l = half * (L / 2) + i;
            if (found[l] < most) sums[to[i]] = sum[i] + mine[l];
        }
    };
#pragma unroll 1
    for (int o = start;; ++o) {
        if (o < end) {
#pragma unroll
            for (int l = 0; l < L; ++l) {
                mine[l] = wd_widen(share[l]);
                found[l] = place[l] | absent[l];
            }
            if (o < last) load();
            if (o <= last) add(0, o);
        }
        if (o > start) store(o - 1);
        if (o >= end) break;
        __syncthreads();
        if (o <= last) add(1, o);
        find(o + 1);
        __syncthreads();
    }
}

} // namespace

#endif
