// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums of runs of channels, by walks down the rows whose lines are asked for some lines ahead: a
// thread has its own 16 bytes of each tap of each line in shared memory, so that as many lines are under
// way as no registers would hold, and nobody waits for anybody. What neighbours share comes from the
// caches.
#ifndef WD_OPS_RESAMPLE_RING_RUNS_CUH
#define WD_OPS_RESAMPLE_RING_RUNS_CUH

#include "gpu/device/words.cuh"
#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_walk.cuh"

namespace {

// A run of V channels of a column. A window with fewer taps than others has its last one several times, with
// a share of its weight each: nothing is asked about that.
template <class T, int V, int TAPS> struct ring_run {
    static constexpr int N = V;
    static constexpr bool AHEAD = false; /* as walks know it */
    static constexpr int LINES = RING_RUN_LINES(TAPS);
    static constexpr uint32_t TAP = RING_RUN_BYTES * RING_RUN_THREADS;
    static_assert(TAPS <= 4, "shares of a weight");
    typedef T type;
    typedef acc<T> A;
    struct raw {};
    const resample_walk_args &a;
    const unsigned char *from[TAPS]; // of line 0
    A weight[TAPS];
    bool plain;     // there is a tap, and nothing is blended
    bool empty;     // there is no tap
    uint32_t pitch; // bytes
    uint32_t at;    // in a line of `out`
    unsigned char *slots;
    int last;
    mutable int used; // lines before it were added up

    __device__ __forceinline__ ring_run(const resample_walk_args &args, const walker &w,
                                        uint32_t column, uint32_t channel)
        : a(args)
    {
        const taps_of<A> across(a, 2, column);
        const int count = min(across.count, TAPS);
        const uint32_t line = (uint32_t)a.axis[2].from * a.inner;
        const T *plane = static_cast<const T *>(a.from) + channel +
                         (size_t)w.outer * (uint32_t)a.axis[1].from * line;
        empty = count <= 0;
        plain = !empty && !a.blends;
        pitch = line * (uint32_t)sizeof(T);
        at = column * a.inner + channel;
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            const int tap = max(min(t, count - 1), 0);
            // a weight of 0 would make NaN of what is infinite; shares are powers of two, so that nothing is rounded
            const int times = TAPS - max(count, 1) + 1;
            const A share = times == 1                                             ? (A)1
                            : times == 2 || (times == 3 && t == max(count, 1) - 1) ? (A)(1.0 / 2)
                                                                                   : (A)(1.0 / 4);
            weight[t] = empty ? (A)0 : across.weight(a, 2, tap);
            if (t >= count - 1) weight[t] *= share;
            from[t] = reinterpret_cast<const unsigned char *>(
                plane + (empty ? 0 : (size_t)(uint32_t)(across.first + tap) * a.inner));
        }
        slots = wd_dynamic_shared<unsigned char>() + a.stage_at + RING_RUN_BYTES * threadIdx.x;
        used = taps_of<A>(a, 1, (uint32_t)w.begin).first;
        last = taps_of<A>(a, 1, (uint32_t)w.end - 1).end(a, 1) - 1;
#pragma unroll 1
        for (int i = 0; i < LINES - 1; ++i) ask(used + i);
    }

    __device__ __forceinline__ unsigned char *slot(int line) const
    {
        return slots + (uint32_t)line % LINES * (TAPS * TAP);
    }

    // A group of copies, behind the last line of none.
    __device__ __forceinline__ void ask(int line) const
    {
        if (line <= last) {
            unsigned char *to = slot(line);
#pragma unroll
            for (int t = 0; t < TAPS; ++t) {
                wd_copy_async<RING_RUN_BYTES, true>(to + t * TAP,
                                                    from[t] + (size_t)(uint32_t)line * pitch);
            }
        }
        wd_copies_end();
    }

    __device__ __forceinline__ void sums(int line, A *sum) const
    {
#pragma unroll 1
        for (; used <= line; ++used) {
            wd_copies_wait<LINES - 2>();
            ask(used + LINES - 1); // where the line before was, which is added up
        }
        const unsigned char *mine = slot(line);
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            wd_run<T, V> run;
            run.load(reinterpret_cast<const T *>(mine + t * TAP));
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const A value = wd_widen(run.get(i));
                sum[i] = t == 0 ? weight[0] * value : sum[i] + weight[t] * value;
            }
        }
    }

    __device__ __forceinline__ void put(T *line, const A *sum) const
    {
        T *to = line + at;
        A value[V];
        wd_run<T, V> run;
        if (!plain) {
#pragma unroll
            for (int i = 0; i < V; ++i) value[i] = empty ? (A)0 : sum[i];
            put_sum<T, V>(a, to, value);
            return;
        }
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] = sum[i];
        wd_narrow_run(run, value);
        if (a.streaming) run.store_streaming(to);
        else run.store(to);
    }
};

// Line by line, as walk_lines has it. Of most rows one line is new, and counts for all that are open: it is added
// while these move up by one.
template <class LINE, int ACTIVE>
__device__ __forceinline__ void run_walk(const resample_walk_args &a, const walker &w,
                                         const LINE &across, typename LINE::type *to,
                                         uint32_t pitch)
{
    constexpr int N = LINE::N, OLD = ACTIVE - 1;
    typedef typename LINE::A A;
    const walk_row<A> *rows = rows_of<A>(a, w.walk);
    const walk_row<A> *end = rows + (w.end - w.begin);
    const A *weight = weights_of<A>(a, w.walk) - ACTIVE * taps_of<A>(a, 1, (uint32_t)w.begin).first;
    A open[OLD][N] = {}; // and of the newest row nothing yet
#pragma unroll 1
    for (; rows < end; ++rows, to += pitch) {
        const int first = rows->first, behind = rows->uses;
        A made[N], by[ACTIVE];
        if (first < behind) {
            across.sums(first, made);
            bool all = first + 1 == behind;
#pragma unroll
            for (int k = 0; k < ACTIVE; ++k) {
                by[k] = weight[first * ACTIVE + k];
                all = all && by[k] != 0;
            }
            if (all) {
                A sum[N];
#pragma unroll
                for (int i = 0; i < N; ++i) {
                    sum[i] = open[0][i] + by[0] * made[i];
#pragma unroll
                    for (int k = 1; k < OLD; ++k) open[k - 1][i] = open[k][i] + by[k] * made[i];
                    open[OLD - 1][i] = by[OLD] * made[i];
                }
                across.put(to, sum);
                continue;
            }
        }
        A newest[N] = {};
#pragma unroll 1
        for (int line = first; line < behind;) {
#pragma unroll
            for (int k = 0; k < ACTIVE; ++k) {
                if (by[k] == 0) continue;
#pragma unroll
                for (int i = 0; i < N; ++i) {
                    A &sum = k < OLD ? open[k < OLD ? k : 0][i] : newest[i];
                    sum += by[k] * made[i];
                }
            }
            if (++line >= behind) break;
            across.sums(line, made);
#pragma unroll
            for (int k = 0; k < ACTIVE; ++k) by[k] = weight[line * ACTIVE + k];
        }
        across.put(to, open[0]);
#pragma unroll
        for (int i = 0; i < N; ++i) {
#pragma unroll
            for (int k = 1; k < OLD; ++k) open[k - 1][i] = open[k][i];
            open[OLD - 1][i] = newest[i];
        }
    }
}

template <class T, int V, int TAPS, int ACTIVE>
__device__ __forceinline__ void resample_ring_runs(const resample_ring_args &a)
{
    typedef ring_run<T, V, TAPS> line;
    wd_wait_for_previous();
    const walker w(a.walk);
    note<acc<T>, ACTIVE>(a.walk, w);
    __syncthreads();
    if (w.thread >= w.units || w.begin >= w.end) return;
    uint32_t column = w.unit + w.thread;
    const uint32_t channel = wd_take_rest(column, a.walk.by_run) * V;
    const line across(a.walk, w, column, channel);
    if constexpr (ACTIVE == 0) {
        walk_rows<line, 0>(a.walk, w, across);
    } else {
        const uint32_t pitch = (uint32_t)a.walk.axis[2].out * a.walk.inner;
        T *to = static_cast<T *>(a.walk.out) +
                (w.outer * (size_t)(uint32_t)a.walk.axis[1].out + (uint32_t)w.begin) * pitch;
        run_walk<line, ACTIVE>(a.walk, w, across, to, pitch);
    }
    wd_copies_wait_all();
}

} // namespace

#endif
