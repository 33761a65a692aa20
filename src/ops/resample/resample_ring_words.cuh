// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums of lines of any alignment, straight from memory: a thread has some elements of a line of
// `out`, 16-bit ones by two where they make an aligned word, and of each line of `from` loads the elements
// that its own are sums of, one by one. The L1 hands most of them out more than once; nothing is staged, and
// nothing is waited for but what is loaded, which is a line ahead.
#ifndef WD_OPS_RESAMPLE_RING_WORDS_CUH
#define WD_OPS_RESAMPLE_RING_WORDS_CUH

#include "gpu/device/prefetch.cuh"
#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_walk.cuh"

namespace {

// K words of E elements, a warp apart; words of all planes are counted on. Where lines begin between two
// words, the first one has an element of them, and the last one, too.
template <class T, int E, int K, int TAPS> struct word_line {
    static constexpr int N = E * K;
    static constexpr uint32_t SECTOR = 16 / sizeof(T); // threads of which one asks the L2
    static_assert(TAPS <= 3, "shares of a weight");
    typedef T type;
    typedef acc<T> A;
    struct raw {
        T value[N][TAPS];
    };
    const resample_walk_args &a;
    const T *from;
    uint32_t at[N][TAPS]; // elements from a line of the first plane on
    A weight[N][TAPS];
    uint32_t to[K];
    uint32_t there; // elements of the tensor, as bits
    uint32_t empty; // those without a tap
    bool plain;     // of the warp: all there, none is, and nothing is blended
    uint32_t pitch;

    __device__ __forceinline__ word_line(const resample_ring_args &args, const walker &w)
        : a(args.walk), from(static_cast<const T *>(args.walk.from)), there(0), empty(0)
    {
        const uint32_t before = E > 1 ? (uint32_t)((uintptr_t)a.out / sizeof(T) % E) : 0;
        const int length = a.axis[2].out * (int)a.inner;
        const uint32_t plane = (uint32_t)(a.axis[1].out * length);
        const uint32_t first = w.thread / RING_WARP * (RING_WARP * K) + w.thread % RING_WARP;
        pitch = (uint32_t)a.axis[2].from * a.inner;
        const uint32_t from_plane = (uint32_t)a.axis[1].from * pitch;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            uint32_t outer = w.unit + min(first + k * RING_WARP, w.units - 1);
            const int begin = (int)(wd_take_rest(outer, args.by_line) * E) - (int)before;
            to[k] = outer * plane + (uint32_t)begin;
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const int i = k * E + e;
                uint32_t column = (uint32_t)min(max(begin + e, 0), length - 1);
                if (first + k * RING_WARP < w.units && (int)column == begin + e) there |= 1u << i;
                const uint32_t channel = wd_take_rest(column, a.by_run);
                const taps_of<A> across(a, 2, column);
                const int count = min(across.count, TAPS);
                if (count <= 0) empty |= 1u << i;
#pragma unroll
                for (int t = 0; t < TAPS; ++t) {
                    // the last one is shared out: a weight of 0 would make NaN of what is infinite
                    const int tap = max(min(t, count - 1), 0);
                    const int times = TAPS - max(count, 1) + 1;
                    const A share = times == 1 ? (A)1 : times == 2 ? (A)(1.0 / 2) : (A)(1.0 / 3);
                    weight[i][t] = count > 0 ? across.weight(a, 2, tap) : (A)0;
                    if (t >= count - 1) weight[i][t] *= share;
                    at[i][t] = outer * from_plane + channel +
                               (count > 0 ? (uint32_t)(across.first + tap) * a.inner : 0);
                }
            }
        }
        plain = wd_ballot(there + 1 != 1u << N || empty != 0) == 0 && !a.blends;
    }

    __device__ __forceinline__ void fetch(const T *line, raw &r) const
    {
#pragma unroll
        for (int i = 0; i < N; ++i) {
#pragma unroll
            for (int t = 0; t < TAPS; ++t) r.value[i][t] = line[at[i][t]];
        }
    }

    // Asks the L2 for a line: a thread for those beside it.
    __device__ __forceinline__ void prefetch(const T *line) const
    {
        if (threadIdx.x % SECTOR != 0) return;
#pragma unroll
        for (int k = 0; k < K; ++k) wd_prefetch_line(line + at[k * E][0]);
    }

    __device__ __forceinline__ void reduce(const raw &r, A *sum) const
    {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            sum[i] = weight[i][0] * wd_widen(r.value[i][0]);
#pragma unroll
            for (int t = 1; t < TAPS; ++t) sum[i] += weight[i][t] * wd_widen(r.value[i][t]);
        }
    }

    __device__ __forceinline__ void put_word(T *line, int k, const A *sum, bool whole) const
    {
        wd_run<T, E> run;
#pragma unroll
        for (int e = 0; e < E; ++e) {
            T narrow;
            wd_narrow(narrow, sum[k * E + e]);
            run.put(e, narrow);
        }
        if (whole) {
            run.store(line + to[k]);
            return;
        }
#pragma unroll
        for (int e = 0; e < E; ++e) {
            if (there >> (k * E + e) & 1) line[to[k] + (uint32_t)e] = run.get(e);
        }
    }

    // Of a warp at a line's end, or where a window has no tap, or what is blended.
    __device__ __forceinline__ void put_asking(T *line, const A *sum) const
    {
        constexpr uint32_t WHOLE = (1u << E) - 1;
        A made[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            made[i] = empty >> i & 1 ? (A)0 : sum[i];
            if (a.blends && (there >> i & 1)) {
                made[i] += (A)a.beta * wd_widen(line[to[i / E] + (uint32_t)(i % E)]);
            }
        }
#pragma unroll
        for (int k = 0; k < K; ++k) put_word(line, k, made, (there >> (k * E) & WHOLE) == WHOLE);
    }

    __device__ __forceinline__ void put(T *line, const A *sum) const
    {
        if (!plain) {
            put_asking(line, sum);
            return;
        }
#pragma unroll
        for (int k = 0; k < K; ++k) put_word(line, k, sum, true);
    }
};

// The lines of a walk in their order: the next one is loaded while this one is added up, and the L2 is asked
// for the one behind it.
template <class LINE> struct word_lines {
    typedef typename LINE::type T;
    const LINE &across;
    typename LINE::raw raw;
    const T *at; // of `line`
    int line;    // that is loaded
    int last;    // of the walk

    __device__ __forceinline__ word_lines(const LINE &of, int end)
        : across(of), at(of.from), line(-1), last(end)
    {
    }
    __device__ __forceinline__ void sums(int wanted, typename LINE::A *sum)
    {
        if (line != wanted) {
            line = wanted;
            at = across.from + (size_t)(uint32_t)wanted * across.pitch;
            across.fetch(at, raw);
        }
        across.reduce(raw, sum);
        if (line >= last) return;
        ++line;
        at += across.pitch;
        across.fetch(at, raw);
        if (line < last) across.prefetch(at + across.pitch);
    }
};

// Line by line, as walk_lines has it.
template <class LINE, int ACTIVE>
__device__ __forceinline__ void word_walk(const resample_walk_args &a, const walker &w,
                                          const LINE &across, typename LINE::type *to,
                                          uint32_t pitch)
{
    constexpr int N = LINE::N;
    typedef typename LINE::A A;
    const walk_row<A> *rows = rows_of<A>(a, w.walk);
    const walk_row<A> *end = rows + (w.end - w.begin);
    const A *weight = weights_of<A>(a, w.walk) - ACTIVE * taps_of<A>(a, 1, (uint32_t)w.begin).first;
    word_lines<LINE> lines(across, end[-1].uses - 1);
    A open[ACTIVE][N];
#pragma unroll
    for (int k = 0; k < ACTIVE; ++k) {
#pragma unroll
        for (int i = 0; i < N; ++i) open[k][i] = 0;
    }
#pragma unroll 1
    for (; rows < end; ++rows, to += pitch) {
        const walk_row<A> r = *rows;
#pragma unroll 1
        for (int line = r.first; line < r.uses; ++line) {
            A made[N];
            lines.sums(line, made);
#pragma unroll
            for (int k = 0; k < ACTIVE; ++k) {
                const A by = weight[line * ACTIVE + k];
                if (by == 0) continue;
#pragma unroll
                for (int i = 0; i < N; ++i) open[k][i] += by * made[i];
            }
        }
        across.put(to, open[0]);
#pragma unroll
        for (int k = 0; k < ACTIVE; ++k) {
#pragma unroll
            for (int i = 0; i < N; ++i)
                open[k][i] = k + 1 < ACTIVE ? open[k + 1 < ACTIVE ? k + 1 : 0][i] : (A)0;
        }
    }
}

template <class T, int E, int K, int TAPS, int ACTIVE>
__device__ __forceinline__ void resample_ring_words(const resample_ring_args &a)
{
    typedef word_line<T, E, K, TAPS> line;
    wd_wait_for_previous();
    const walker w(a.walk);
    note<acc<T>, ACTIVE>(a.walk, w);
    const line across(a, w);
    __syncthreads();
    const uint32_t pitch = (uint32_t)a.walk.axis[2].out * a.walk.inner;
    T *to = static_cast<T *>(a.walk.out) + (size_t)(uint32_t)w.begin * pitch;
    word_walk<line, ACTIVE>(a.walk, w, across, to, pitch);
}

} // namespace

#endif
