// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm over rows that registers hold, a row by a few threads that end with it: many
// small blocks at different phases keep memory busier than few that stay, fetch ahead and carry their
// parameters along. These come from the first cache.
#ifndef WD_OPS_NORM_PLAIN_CUH
#define WD_OPS_NORM_PLAIN_CUH

#include "gpu/device/depend.cuh"
#include "ops/norm/norm_rows_walk.cuh"

namespace {

// C columns of a thread: runs of a unit that lie `lanes` units apart, or singles `lanes` apart.
template <class T, bool RUNS>
__device__ __forceinline__ uint32_t plain_column(const norm_rows_args &a, uint32_t lane, int i)
{
    constexpr int E = EACH<T>;
    if (RUNS) return (i / E * a.lanes + lane) * E + i % E;
    return i * a.lanes + lane;
}

template <class P, int N, bool RUNS>
__device__ __forceinline__ void plain_param_as(const void *data, uint32_t first, uint32_t step,
                                               uint32_t count, float *to)
{
    const P *from = static_cast<const P *>(data) + first;
    if constexpr (RUNS) {
        wd_run<P, N> r;
        r.load(from);
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = wd_widen(r.get(i));
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            to[i] = 0.0f;
            if ((uint32_t)i < count) to[i] = wd_widen(from[i * step]);
        }
    }
}

// N of the thread's columns, of which `count` are there, `otherwise` where there is no parameter.
template <int N, bool RUNS>
__device__ __forceinline__ void plain_param(const norm_rows_param &p, float otherwise,
                                            uint32_t first, uint32_t step, uint32_t count,
                                            float *to)
{
    if (!p.data) {
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = otherwise;
    } else if (p.type == NORM_ROWS_F32) {
        plain_param_as<float, N, RUNS>(p.data, first, step, count, to);
    } else if (p.type == NORM_ROWS_F16) {
        plain_param_as<half16, N, RUNS>(p.data, first, step, count, to);
    } else {
        plain_param_as<bfloat16, N, RUNS>(p.data, first, step, count, to);
    }
}

// The numbers of the row, of what its threads found.
template <bool SHORT>
__device__ __forceinline__ numbers plain_numbers(const norm_rows_args &a, part p, uint32_t group)
{
    __shared__ part of_warp[WARPS];
    if constexpr (SHORT) {
        p = join<true>(p, a.lanes, a.inverse);
    } else {
        const uint32_t warps = a.lanes / WARP;
        const float columns = warps == 1 ? 0.0f : sum_of_lanes(p.count, WARP);
        const float inverse = columns > 0.0f ? 1.0f / columns : 0.0f;
        p = join<true>(p, WARP, warps == 1 ? a.inverse : inverse);
        if (warps > 1) {
            p.count = columns;
            if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = p;
            __syncthreads(); // all rows of the block: a barrier of their own each costs places of blocks
            p = join_all<true>(&of_warp[group * warps], warps, a.inverse);
        }
    }
    return numbers_of(a, p);
}

__device__ __forceinline__ uint32_t plain_bytes(const norm_rows_args &a, const norm_rows_param &p)
{
    if (!p.data) return 0;
    return a.length * (p.type == NORM_ROWS_F32 ? (uint32_t)sizeof(float) : 2);
}

// Both parameters on their way to the caches, a line a load.
__device__ __forceinline__ float plain_touch(const norm_rows_args &a)
{
    constexpr uint32_t LINE = 128; // bytes
    const uint32_t scale = plain_bytes(a, a.scale), bias = plain_bytes(a, a.bias);
    float sum = 0.0f;
    for (uint32_t i = threadIdx.x * LINE; i < max(scale, bias); i += blockDim.x * LINE) {
        float of_scale = 0.0f, of_bias = 0.0f;
        if (i < scale) of_scale = static_cast<const float *>(a.scale.data)[i / sizeof(float)];
        if (i < bias) of_bias = static_cast<const float *>(a.bias.data)[i / sizeof(float)];
        sum += of_scale + of_bias;
    }
    return sum;
}

// A unit of y, of parameters in single precision or none.
template <class T>
__device__ __forceinline__ void plain_put(const norm_rows_args &a, const unit<T> &x,
                                          const numbers &n, uint32_t column, T *y)
{
    constexpr int E = EACH<T>;
    wd_run<float, E> scale, bias;
    unit<T> out;
#pragma unroll
    for (int k = 0; k < E; ++k) scale.word[k] = bias.word[k] = 0;
    if (a.scale.data) scale.load(static_cast<const float *>(a.scale.data) + column);
    if (a.bias.data) bias.load(static_cast<const float *>(a.bias.data) + column);
#pragma unroll
    for (int k = 0; k < E; k += 2) {
        float v[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const float xhat = fmaf(wide_of<T>(x, k + j) - n.mean, n.inv_std, n.shift);
            v[j] = fmaf(scale.get(k + j), xhat, bias.get(k + j));
        }
        narrow_pair(out, k, v[0], v[1]);
    }
    if (a.streaming) out.store_streaming(y + column);
    else out.store(y + column);
}

// SHORT: rows of up to a warp's threads, several in a warp.
template <class T, int C, bool RUNS, bool SHORT>
__device__ __forceinline__ void plain(const norm_rows_args &a)
{
    constexpr int E = EACH<T>;
    const uint32_t group = threadIdx.x / a.lanes;
    const uint32_t lane = threadIdx.x - group * a.lanes;
    const int64_t row = (int64_t)blockIdx.x * a.groups + group;
    const bool there = row < a.rows;
    const T *x = static_cast<const T *>(a.x) + row * a.length;
    T *y = static_cast<T *>(a.y) + row * a.length;
    const uint32_t places = RUNS ? a.length / E : a.length;
    uint32_t mine = there && lane < places ? (places - lane - 1) / a.lanes + 1 : 0;
    if (RUNS) mine *= E;
    numbers n = {0.0f, 0.0f, 0.0f};
    unit<T> u[C / E];
    float touched = 0.0f;
    wd_wait_for_previous();
#pragma unroll
    for (int i = 0; i < C; i += E) {
        if constexpr (RUNS) {
            if ((uint32_t)i < mine) u[i / E].load(x + plain_column<T, RUNS>(a, lane, i));
        } else {
#pragma unroll
            for (int k = 0; k < E; ++k) {
                T one;
                wd_narrow(one, 0.0f);
                if ((uint32_t)(i + k) < mine) one = x[plain_column<T, RUNS>(a, lane, i + k)];
                u[i / E].put(k, one);
            }
        }
    }
    // else all first blocks wait for memory at once, as often as a thread has units
    constexpr bool TOUCHES = RUNS && !SHORT;
    if (TOUCHES && blockIdx.x < a.first) touched = plain_touch(a);
    if (a.given_inv_std) {
        n = {given(a.given_mean, a, row), given(a.given_inv_std, a, row), 0.0f};
    } else {
        part p = {0.0f, 0.0f, 0.0f, (float)mine};
        float sum = 0.0f;
        if (mine > 0 && a.centered) p.pivot = wd_widen(u[0].get(0));
#pragma unroll
        for (int i = 0; i < C; i += E) {
            if ((uint32_t)i >= mine) continue;
#pragma unroll
            for (int k = 0; k < E; ++k) {
                const float d = wd_widen(u[i / E].get(k)) - p.pivot;
                if (!RUNS && (uint32_t)(i + k) >= mine) continue;
                sum += d;
                p.squares = fmaf(d, d, p.squares);
            }
        }
        if (a.centered && mine > 0) {
            p.rest = sum * (1.0f / p.count);
            p.squares = fmaf(-sum, p.rest, p.squares);
            if (p.squares < 0.0f) p.squares = 0.0f;
        }
        if (SHORT && a.centered) { // of few columns once more, around their mean
            p.squares = 0.0f;
#pragma unroll
            for (int i = 0; i < C; ++i) {
                const float d = (wd_widen(u[i / E].get(i % E)) - p.pivot) - p.rest;
                if ((uint32_t)i < mine) p.squares = fmaf(d, d, p.squares);
            }
        }
        n = plain_numbers<SHORT>(a, p, group);
        if (lane == 0 && there) {
            if (a.mean) a.mean[row] = n.mean;
            if (a.inv_std) a.inv_std[row] = n.inv_std;
        }
    }
    if (TOUCHES && a.rows < 0) a.mean[0] = touched; // never: so that it is not left out
    if constexpr (RUNS && !SHORT && sizeof(T) == sizeof(float)) {
        // of single precision, or none: nothing to ask for each unit; of two bytes that takes 56 registers, not 48
        if (a.scale.type == NORM_ROWS_F32 && a.bias.type == NORM_ROWS_F32) {
#pragma unroll
            for (int i = 0; i < C; i += E) {
                if ((uint32_t)i < mine)
                    plain_put<T>(a, u[i / E], n, plain_column<T, RUNS>(a, lane, i), y);
            }
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < C; i += E) {
        float scale[E], bias[E], v[E];
        const uint32_t column = plain_column<T, RUNS>(a, lane, i);
        if ((uint32_t)i >= mine) continue;
        plain_param<E, RUNS>(a.scale, 0.0f, column, a.lanes, mine - i, scale);
        plain_param<E, RUNS>(a.bias, 0.0f, column, a.lanes, mine - i, bias);
#pragma unroll
        for (int k = 0; k < E; ++k) {
            const float xhat = fmaf(wd_widen(u[i / E].get(k)) - n.mean, n.inv_std, n.shift);
            v[k] = fmaf(scale[k], xhat, bias[k]);
        }
        if constexpr (RUNS) {
            unit<T> out;
#pragma unroll
            for (int k = 0; k < E; k += 2) narrow_pair(out, k, v[k], v[k + 1]);
            if (a.streaming) out.store_streaming(y + column);
            else out.store(y + column);
        } else {
#pragma unroll
            for (int k = 0; k < E; ++k) {
                if ((uint32_t)(i + k) < mine) wd_narrow(y[column + k * a.lanes], v[k]);
            }
        }
    }
}

// Rows that a warp has each, of twice the columns a thread.
template <class T> __device__ __forceinline__ void plain_warp(const norm_rows_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    plain<T, 64, true, false>(a);
#endif
}

} // namespace

#endif
