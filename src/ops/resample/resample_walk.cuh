// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums, forward and backward alike: out = sum of weight * weight * weight * from. A thread
// has a few places of a line and walks down the rows of `out`; each line of `from` under them is added
// up once a thread, and what counts for which row is looked up in shared memory.
#ifndef WD_OPS_RESAMPLE_WALK_CUH
#define WD_OPS_RESAMPLE_WALK_CUH

#include "ops/resample/resample_walk_lines.cuh"

namespace {

// Lines one after the other: the next one, before `limit`, is read while this one is added up.
template <class LINE> struct ahead {
    typename LINE::raw raw;
    int line;
    int limit;
    __device__ __forceinline__ explicit ahead(int end) : line(-1), limit(end)
    {
    }
    __device__ __forceinline__ void sums(const LINE &across, int wanted, typename LINE::A *sum)
    {
        if constexpr (LINE::AHEAD) {
            if (!across.is_deep()) {
                if (line != wanted) across.fetch(wanted, raw);
                across.reduce(raw, sum);
                line = wanted + 1 < limit ? wanted + 1 : -1;
                if (line >= 0) across.fetch(line, raw);
                return;
            }
        }
        across.sums(wanted, sum);
    }
};

// ---- Walks ----

// At most two lines a row: their sums are kept, so that a line that the next rows need as well is added
// up once.
template <class LINE>
__device__ __forceinline__ void walk_pairs(const resample_walk_args &a, const walker &w,
                                           const LINE &across, typename LINE::type *line,
                                           size_t pitch)
{
    constexpr int N = LINE::N;
    typedef typename LINE::A A;
    const walk_row<A> *rows = rows_of<A>(a, w.walk);
    A upper[N], lower[N]; // of line have - 1 and line `have`
    int have = -1;
    ahead<LINE> next(w.end > w.begin ? rows[w.end - w.begin - 1].first + 2 : 0);
    next.limit = min(next.limit, a.axis[1].from);
#pragma unroll
    for (int i = 0; i < N; ++i) upper[i] = lower[i] = 0;
    for (int row = w.begin; row < w.end; ++row, line += pitch) {
        const walk_row<A> r = *rows++;
        A sum[N];
        // rows begin no earlier than the ones before them
        const int last = r.first + (r.uses >> 1);
        have = max(have, r.first - 1);
#pragma unroll 1
        while (r.uses && have < last) {
#pragma unroll
            for (int i = 0; i < N; ++i) upper[i] = lower[i];
            next.sums(across, ++have, lower);
        }
        // a line that does not count may hold anything
        if (r.uses == 3) {
#pragma unroll
            for (int i = 0; i < N; ++i) {
                sum[i] = r.weight[0] * upper[i];
                sum[i] += r.weight[1] * lower[i];
            }
        } else if (r.uses == 0) {
#pragma unroll
            for (int i = 0; i < N; ++i) sum[i] = 0;
        } else if (have == last) {
            const A by = r.uses == 2 ? r.weight[1] : r.weight[0];
#pragma unroll
            for (int i = 0; i < N; ++i) sum[i] = by * lower[i];
        } else {
#pragma unroll
            for (int i = 0; i < N; ++i) sum[i] = r.weight[0] * upper[i];
        }
        across.put(line, sum);
    }
}

// Line by line, each added to the rows that it counts for, of which at most ACTIVE are open.
template <class LINE, int ACTIVE>
__device__ __forceinline__ void walk_lines(const resample_walk_args &a, const walker &w,
                                           const LINE &across, typename LINE::type *line,
                                           size_t pitch)
{
    constexpr int N = LINE::N;
    typedef typename LINE::A A;
    const walk_row<A> *rows = rows_of<A>(a, w.walk);
    const A *weight = weights_of<A>(a, w.walk);
    if (w.begin >= w.end) return;
    const int line0 = taps_of<A>(a, 1, (uint32_t)w.begin).first;
    ahead<LINE> next(rows[w.end - w.begin - 1].uses);
    A open[ACTIVE][N];
#pragma unroll
    for (int k = 0; k < ACTIVE; ++k) {
#pragma unroll
        for (int i = 0; i < N; ++i) open[k][i] = 0;
    }
    for (int row = w.begin; row < w.end; ++row, line += pitch) {
        const walk_row<A> r = *rows++;
        for (int from = r.first; from < r.uses; ++from) {
            A made[N];
            next.sums(across, from, made);
#pragma unroll
            for (int k = 0; k < ACTIVE; ++k) {
                const A by = weight[(from - line0) * ACTIVE + k];
                if (by == 0) continue;
#pragma unroll
                for (int i = 0; i < N; ++i) {
                    if (across.is_idle(i)) break;
                    open[k][i] += by * made[i];
                }
            }
        }
        across.put(line, open[0]);
#pragma unroll
        for (int k = 0; k < ACTIVE; ++k) {
#pragma unroll
            for (int i = 0; i < N; ++i)
                open[k][i] = k + 1 < ACTIVE ? open[k + 1 < ACTIVE ? k + 1 : 0][i] : (A)0;
        }
    }
}

// ACTIVE 0: at most two lines a row.
template <class LINE, int ACTIVE>
__device__ __forceinline__ void walk_rows(const resample_walk_args &a, const walker &w,
                                          const LINE &across)
{
    const size_t pitch = (size_t)(uint32_t)a.axis[2].out * a.inner;
    typename LINE::type *line =
        static_cast<typename LINE::type *>(a.out) +
        (((size_t)w.outer * (uint32_t)a.axis[0].out + w.depth) * (uint32_t)a.axis[1].out +
         (uint32_t)w.begin) *
            pitch;
    if constexpr (ACTIVE == 0) walk_pairs<LINE>(a, w, across, line, pitch);
    else walk_lines<LINE, ACTIVE>(a, w, across, line, pitch);
}

template <class A, int ACTIVE>
__device__ __forceinline__ void note(const resample_walk_args &a, const walker &w)
{
    if constexpr (ACTIVE == 0) note_rows<A>(a, w);
    else note_lines<A, ACTIVE>(a, w);
}

template <class T, int V, int TAPS, int ACTIVE>
__device__ __forceinline__ void resample_walk(const resample_walk_args &a)
{
    wd_wait_for_previous();
    const walker w(a);
    note<acc<T>, ACTIVE>(a, w);
    __syncthreads();
    if (w.thread >= w.units || w.begin >= w.end) return;
    uint32_t column = w.unit + w.thread;
    const uint32_t channel = wd_take_rest(column, a.by_run) * V;
    const direct_line<T, V, TAPS> across(a, w, column, channel);
    walk_rows<direct_line<T, V, TAPS>, ACTIVE>(a, w, across);
}

template <class T, int PLACES, int TAPS, int ACTIVE>
__device__ __forceinline__ void resample_walk_staged(const resample_walk_args &a)
{
    typedef staged_line<T, PLACES, TAPS> line;
    wd_wait_for_previous();
    const walker w(a);
    stage_of s;
    s.set<acc<T>>(a, w, (uint32_t)sizeof(T));
    stage_lines<T>(a, s);
    note<acc<T>, ACTIVE>(a, w);
    const line across(a, w, s, [](uint32_t) { return 0u; });
    __syncthreads();
    walk_rows<line, ACTIVE>(a, w, across);
}

} // namespace

#endif
