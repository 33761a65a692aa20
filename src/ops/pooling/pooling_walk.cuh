// SPDX-License-Identifier: Apache-2.0
//
// Overlapping windows of pixels, straight from memory: a thread has a run of channels and a few columns
// of windows, and walks down the rows. Each row it loads is put together along itself once and kept in
// registers for the windows that follow; what it needs next is under way meanwhile. Gradients of averages whose windows begin at every element are
// such windows over dy.
#ifndef WD_OPS_POOLING_WALK_CUH
#define WD_OPS_POOLING_WALK_CUH

#include "gpu/device/packed.cuh"
#include "gpu/device/prefetch.cuh"
#include "ops/pooling/pooling_walk_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

// A row ahead in registers is few bytes under way: the L2 is asked for a row behind it, by each thread for its own column.
constexpr int ASKED_AHEAD = 2;

// A run of sums, or of maxima as they lie in memory.
template <class T, int V, int MODE> struct walked {
    wd_run<T, V> run;
    __device__ __forceinline__ void set(const wd_run<T, V> &v, float)
    {
        run = v;
    }
    __device__ __forceinline__ void join(const walked &other)
    {
#pragma unroll
        for (int i = 0; i < wd_run<T, V>::WORDS; ++i) {
            run.word[i] = wd_packed_larger<T, MODE == POOL_MAX_NAN>(run.word[i], other.run.word[i]);
        }
    }
    __device__ __forceinline__ void weigh(float)
    {
    }
    __device__ __forceinline__ float get(int i) const
    {
        return wd_widen(run.get(i));
    }
};
template <class T, int V> struct walked<T, V, POOL_AVERAGE> {
    float value[V];
    __device__ __forceinline__ void set(const wd_run<T, V> &v, float weight)
    {
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] = wd_widen(v.get(i)) * weight;
    }
    __device__ __forceinline__ void join(const walked &other)
    {
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] += other.value[i];
    }
    __device__ __forceinline__ void weigh(float weight)
    {
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] *= weight;
    }
    __device__ __forceinline__ float get(int i) const
    {
        return value[i];
    }
};

// How many elements of the image window `at` covers along an axis.
__device__ __forceinline__ int covers(const pool_walk_axis &x, int at, int stride)
{
    const int start = at * stride - x.image_pad;
    return max(min(start + x.size, x.image) - max(start, 0), 0);
}

// Windows of K x K (and any depth) at a stride of S, N side by side. SPREAD: gradients of averages.
// FLAT: images of two dimensions.
template <class T, int MODE, int K, int S, int N, bool SPREAD, bool FLAT>
__device__ __forceinline__ void walk(const pool_walk_args &a)
{
    constexpr int V = 16 / (int)sizeof(T);
    constexpr int IN = (N - 1) * S + K;
    constexpr bool SUM = MODE == POOL_AVERAGE;
    using state = walked<T, V, MODE>;
    uint32_t n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= a.items) return;
    const uint32_t run = wd_take_rest(n, a.by_inner) * V;
    const int q = (int)wd_take_rest(n, a.by_groups) * N;
    const int first = (int)wd_take_rest(n, a.by_strips) * a.strip;
    const int z = FLAT ? 0 : (int)wd_take_rest(n, a.by_deep);
    const pool_walk_axis &deep = a.axis[0], &high = a.axis[1], &wide = a.axis[2];
    const int last = min(first + a.strip, high.outs);
    const int end = (last - 1) * S - high.pad + K; // of the rows that are read
    const int depth = FLAT ? 0 : max(z * deep.stride - deep.pad, 0);
    const int depth_end = FLAT ? 1 : min(z * deep.stride - deep.pad + deep.size, deep.ins);
    const T *x = static_cast<const T *>(a.from) + run;
    const uint32_t image = n * (uint32_t)deep.ins;

    // Where columns are. Sums take nothing of those outside, maxima their neighbour's element again.
    uint32_t column[IN];
    float weight[IN];
    bool in[IN];
#pragma unroll
    for (int j = 0; j < IN; ++j) {
        const int w = q * S - wide.pad + j;
        in[j] = (uint32_t)w < (uint32_t)wide.ins;
        column[j] = (uint32_t)min(max(w, 0), wide.ins - 1) * a.inner;
        weight[j] = 1.0f;
        if (SPREAD && a.exclude) weight[j] = in[j] ? inverse<float>(covers(wide, w, 1)) : 0.0f;
    }
    const int ask_end = min(end, high.ins);
    // Under way: the next row, of deep images up to three of its depths.
    constexpr int DEPTHS = FLAT ? 1 : 3;
    wd_run<T, V> next[DEPTHS][IN];
    // Row h at depth d: sums take nothing beyond the last one, maxima see that again.
    auto fetch = [&](wd_run<T, V>(&to)[IN], int d, int h) {
        bool there = true;
        if (SUM) {
            there = (uint32_t)h < (uint32_t)high.ins && (FLAT || d < depth_end);
        } else {
            h = min(max(h, 0), high.ins - 1);
            if (!FLAT) d = min(d, depth_end - 1);
        }
        const uint32_t row = (image + (uint32_t)d) * (uint32_t)high.ins + (uint32_t)h;
        const T *line = x + (size_t)row * ((uint32_t)wide.ins * a.inner);
#pragma unroll
        for (int j = 0; j < IN; ++j) {
            if (SUM) {
#pragma unroll
                for (int i = 0; i < wd_run<T, V>::WORDS; ++i) to[j].word[i] = 0;
                if (there && in[j]) to[j].load(line + column[j]);
            } else {
                to[j].load(line + column[j]);
            }
        }
        const int ahead = h + ASKED_AHEAD;
        if (FLAT && SUM && (uint32_t)ahead < (uint32_t)ask_end) {
            const uint32_t other = image * (uint32_t)high.ins + (uint32_t)ahead;
            wd_prefetch_line(x + (size_t)other * ((uint32_t)wide.ins * a.inner) + column[K / 2]);
        }
    };
    int h = first * S - high.pad;
    state row[K][N];
    // Row h into `to`; what follows is fetched.
    auto read = [&](state *to) {
#pragma unroll 1
        for (int d = depth; d < depth_end; d += DEPTHS) {
            const bool deeper = !FLAT && d + DEPTHS < depth_end;
            const int then = deeper ? d + DEPTHS : depth, then_h = deeper ? h : h + 1;
#pragma unroll
            for (int e = 0; e < DEPTHS; ++e) {
                state of_depth[N];
#pragma unroll
                for (int k = 0; k < N; ++k) {
                    state one;
                    of_depth[k].set(next[e][k * S], weight[k * S]);
#pragma unroll
                    for (int j = 1; j < K; ++j) {
                        one.set(next[e][k * S + j], weight[k * S + j]);
                        of_depth[k].join(one);
                    }
                }
                if (then_h < end) fetch(next[e], then + e, then_h);
                if (!FLAT && SPREAD && a.exclude) {
                    const float share =
                        d + e < depth_end ? inverse<float>(covers(deep, d + e, 1)) : 0.0f;
#pragma unroll
                    for (int k = 0; k < N; ++k) of_depth[k].weigh(share);
                }
#pragma unroll
                for (int k = 0; k < N; ++k) {
                    if (!FLAT && (e > 0 || d > depth)) to[k].join(of_depth[k]);
                    else to[k] = of_depth[k];
                }
            }
        }
        if (SPREAD && a.exclude) {
            // a row outside is nothing, whatever its weight
            const float share =
                (uint32_t)h < (uint32_t)high.ins ? inverse<float>(covers(high, h, 1)) : 0.0f;
#pragma unroll
            for (int k = 0; k < N; ++k) to[k].weigh(share);
        }
        ++h;
    };
#pragma unroll
    for (int e = 0; e < DEPTHS; ++e) fetch(next[e], depth + e, h);
#pragma unroll
    for (int k = 0; k < K - S; ++k) read(row[k]);
#pragma unroll 1
    for (int p = first; p < last; ++p) {
#pragma unroll
        for (int k = K - S; k < K; ++k) read(row[k]);
        // elements are less than 2^31
        const uint32_t line =
            (n * (uint32_t)deep.outs + (uint32_t)z) * (uint32_t)high.outs + (uint32_t)p;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if (N > 1 && q + k >= wide.outs) break;
            state all = row[0][k];
#pragma unroll
            for (int i = 1; i < K; ++i) all.join(row[i][k]);
            float factor = 1.0f;
            if (SUM && !(SPREAD && a.exclude)) {
                factor = a.inverse;
                if (!SPREAD && a.exclude) {
                    factor = inverse<float>(covers(high, p, S) * covers(wide, q + k, S) *
                                            (FLAT ? 1 : depth_end - depth));
                }
            }
            float value[V];
#pragma unroll
            for (int i = 0; i < V; ++i) {
                value[i] = all.get(i);
                if (MODE == POOL_MAX && value[i] != value[i]) value[i] = a.lowest;
            }
            put_scaled<T, V>(a, (line * (uint32_t)wide.outs + (uint32_t)(q + k)) * a.inner + run,
                             value, factor);
        }
#pragma unroll
        for (int k = 0; k < K - S; ++k) {
#pragma unroll
            for (int i = 0; i < N; ++i) row[k][i] = row[k + S][i];
        }
    }
}

} // namespace

#endif
