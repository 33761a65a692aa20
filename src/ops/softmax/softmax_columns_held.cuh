// SPDX-License-Identifier: Apache-2.0
//
// Softmax over columns of few channels: a thread has all of its positions. See softmax_columns.c.
#ifndef WD_OPS_SOFTMAX_COLUMNS_HELD_CUH
#define WD_OPS_SOFTMAX_COLUMNS_HELD_CUH

#include "ops/softmax/softmax_device.cuh"

namespace {

// Channels are looked at by groups, of which those behind the last channel are left out.
constexpr int CHANNEL_GROUP = 4;

template <class T, int R, int V, bool BACKWARD> struct held_columns {
    using A = acc<T>;
    const softmax_vector_args &a;
    wd_run<T, V> x[R];
    wd_run<T, V> dy[BACKWARD ? R : 1];
    totals<A> all[V];

    __device__ __forceinline__ void load(wd_run<T, V> *to, const T *from, A pad)
    {
#pragma unroll
        for (int g = 0; g < R; g += CHANNEL_GROUP) {
            if (g >= a.length) continue;
#pragma unroll
            for (int r = g; r < g + CHANNEL_GROUP; ++r) {
#pragma unroll
                for (int j = 0; j < V; ++j) to[r].put(j, narrow<T>(pad));
                if (r < a.length) to[r].load(from + r * a.inner);
            }
        }
    }

    // Single and double precision keep the exponentials in place of x.
    __device__ __forceinline__ void forward()
    {
        A sum[V];
#pragma unroll
        for (int j = 0; j < V; ++j) all[j].max = lowest<A>(), sum[j] = 0;
#pragma unroll
        for (int g = 0; g < R; g += CHANNEL_GROUP) {
            if (g >= a.length) continue;
#pragma unroll
            for (int r = g; r < g + CHANNEL_GROUP; ++r) {
#pragma unroll
                for (int j = 0; j < V; ++j) {
                    all[j].max = larger(all[j].max, wd_widen(x[r].get(j)));
                }
            }
        }
#pragma unroll
        for (int r = 0; r < R; ++r) forget<0>(x[r]);
#pragma unroll
        for (int g = 0; g < R; g += CHANNEL_GROUP) {
            if (g >= a.length) continue;
#pragma unroll
            for (int r = g; r < g + CHANNEL_GROUP; ++r) {
#pragma unroll
                for (int j = 0; j < V; ++j) {
                    const A less = wd_widen(x[r].get(j)) - all[j].max;
                    const A e = element_exp<T>(less);
                    sum[j] += e;
                    if constexpr (sizeof(T) > 2) x[r].put(j, a.log ? less : e);
                }
            }
        }
#pragma unroll
        for (int j = 0; j < V; ++j) all[j].sum = prepared<T>(sum[j], a.log);
    }

    __device__ __forceinline__ void backward()
    {
#pragma unroll
        for (int j = 0; j < V; ++j) all[j] = {0, 0};
#pragma unroll
        for (int g = 0; g < R; g += CHANNEL_GROUP) {
            if (g >= a.length) continue;
#pragma unroll
            for (int r = g; r < g + CHANNEL_GROUP; ++r) {
#pragma unroll
                for (int j = 0; j < V; ++j) {
                    const A y = wd_widen(x[r].get(j)), gradient = wd_widen(dy[r].get(j));
                    all[j].sum += a.log ? gradient : y * gradient;
                }
            }
        }
    }

    // Forward, `sum` is what prepared() has made of it.
    __device__ __forceinline__ A value(int r, int j) const
    {
        const A v = wd_widen(x[r].get(j));
        if constexpr (BACKWARD) {
            return result<T, true>(v, wd_widen(dy[r].get(j)), all[j], (A)0, a.log);
        } else if constexpr (sizeof(T) > 2) {
            return a.log ? v - all[j].sum : v * all[j].sum;
        } else {
            return result<T, false>(v, (A)0, all[j], all[j].sum, a.log);
        }
    }

    __device__ __forceinline__ void store(T *to)
    {
        const A alpha = (A)a.alpha, beta = (A)a.beta;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            forget<1>(x[r]);
            if (BACKWARD) forget<1>(dy[r]);
        }
#pragma unroll
        for (int g = 0; g < R; g += CHANNEL_GROUP) {
            if (g >= a.length) continue;
#pragma unroll
            for (int r = g; r < g + CHANNEL_GROUP; ++r) {
                wd_run<T, V> out;
                T *at = to + r * a.inner;
                if (r >= a.length) continue;
                if (beta != 0) out.load(at);
#pragma unroll
                for (int j = 0; j < V; ++j) {
                    A v = value(r, j);
                    if (!a.plain) {
                        v = scaled(v, alpha) + (beta != 0 ? beta * wd_widen(out.get(j)) : (A)0);
                    }
                    out.put(j, narrow<T>(v));
                }
                if (a.streaming) out.store_streaming(at);
                else out.store(at);
            }
        }
    }
};

// Threads are neighbours along the positions, V of them each; no two threads share anything.
template <class T, int R, int V, bool BACKWARD>
__device__ __forceinline__ void columns_held(const softmax_vector_args &a)
{
    using A = acc<T>;
    const int64_t position = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
    held_columns<T, R, V, BACKWARD> mine = {a};
    int64_t outer;
    wd_wait_for_previous();
    if (position >= a.rows) return;
    if (a.wide) outer = position / a.inner;
    else outer = wd_fastdiv_quotient((uint32_t)position, a.by_inner);
    const int64_t at = outer * a.length * a.inner + (position - outer * a.inner);
    mine.load(mine.x, static_cast<const T *>(a.x) + at, BACKWARD ? (A)0 : lowest<A>());
    if constexpr (BACKWARD) {
        mine.load(mine.dy, static_cast<const T *>(a.dy) + at, (A)0);
        mine.backward();
    } else {
        mine.forward();
    }
    mine.store(static_cast<T *>(a.y) + at);
}

// By runs of 16 bytes; of 4 bytes (fp64: 8); element by element.
template <class T, int R, bool BACKWARD> __device__ void columns_wide(const softmax_vector_args &a)
{
    columns_held<T, R, run_of<T>, BACKWARD>(a);
}

template <class T, int R, bool BACKWARD> __device__ void columns_word(const softmax_vector_args &a)
{
    columns_held<T, R, sizeof(T) == 2 ? 2 : 1, BACKWARD>(a);
}

template <class T, int R, bool BACKWARD> __device__ void columns_odd(const softmax_vector_args &a)
{
    columns_held<T, R, 1, BACKWARD>(a);
}

} // namespace

#endif
