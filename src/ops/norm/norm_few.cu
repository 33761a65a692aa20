// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm of few rows, where what counts is how often somebody waits for memory: a row has
// a block, a thread one unit of it, and all that a thread needs, of the row and of the parameters, is asked
// for before anything is looked at.
#include "gpu/device/depend.cuh"
#include "ops/norm/norm_rows_walk.cuh"

namespace {

// A thread's numbers of a parameter as they lie in memory.
template <class T> using raw_param = wd_run<float, EACH<T>>;

// Nothing of it is looked at here, so that the next load does not wait for this one.
template <class T>
__device__ __forceinline__ void ask_param(raw_param<T> &to, const norm_rows_param &p,
                                          uint32_t column)
{
    if (!p.data) return;
    if (p.type == NORM_ROWS_F32) {
        to.load(static_cast<const float *>(p.data) + column);
    } else {
        wd_run<half16, EACH<T>> halves; // or bf16: bits are bits
        halves.load(static_cast<const half16 *>(p.data) + column);
#pragma unroll
        for (int i = 0; i < EACH<T> / 2; ++i) to.word[i] = halves.word[i];
    }
}

// Zeros where there is none.
template <class T>
__device__ __forceinline__ void widen_param(float (&to)[EACH<T>], const raw_param<T> &raw,
                                            const norm_rows_param &p)
{
    constexpr int E = EACH<T>;
    wd_run<half16, E> halves;
    wd_run<bfloat16, E> brains;
#pragma unroll
    for (int i = 0; i < E / 2; ++i) halves.word[i] = brains.word[i] = raw.word[i];
#pragma unroll
    for (int i = 0; i < E; ++i) {
        to[i] = p.type == NORM_ROWS_F32   ? raw.get(i)
                : p.type == NORM_ROWS_F16 ? wd_widen(halves.get(i))
                                          : wd_widen(brains.get(i));
    }
}

// Over the block; all threads get it.
__device__ __forceinline__ float few_sum(float mine, float *of_warp)
{
    const uint32_t warps = blockDim.x / WARP;
    mine = sum_of_warp(mine);
    if (warps == 1) return mine;
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = mine;
    if (threadIdx.x < 3) of_warp[warps + threadIdx.x] = 0.0f; // up to a whole four
    __syncthreads();
    mine = 0.0f;
#pragma unroll 2
    for (uint32_t i = 0; i < warps; i += 4) {
        const float4 four = *reinterpret_cast<const float4 *>(of_warp + i);
        mine += (four.x + four.y) + (four.z + four.w);
    }
    return mine;
}

// The numbers of the row: the mean from differences from its first element, then squares around it.
template <class T>
__device__ __forceinline__ numbers few_numbers(const norm_rows_args &a, const unit<T> &x,
                                               bool there, float first)
{
    constexpr int E = EACH<T>;
    __shared__ float4 of_warp[2][WARP / 4 + 1];
    part all = {first, 0.0f, 0.0f, 0.0f};
    float sum = 0.0f;
    if (a.centered) {
#pragma unroll
        for (int i = 0; i < E && there; ++i) sum += wd_widen(x.get(i)) - first;
        all.rest = few_sum(sum, &of_warp[0][0].x) * a.inverse;
    }
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < E && there; ++i) {
        const float d = (wd_widen(x.get(i)) - first) - all.rest;
        sum = fmaf(d, d, sum);
    }
    all.squares = few_sum(sum, &of_warp[1][0].x);
    return numbers_of(a, all);
}

template <class T> __device__ __forceinline__ void few(const norm_rows_args &a)
{
    constexpr int E = EACH<T>;
    const uint32_t units = a.length / E;
    const uint32_t column = threadIdx.x * E;
    const bool there = threadIdx.x < units;
    const int64_t row = blockIdx.x;
    const int64_t at = row * a.length + column;
    numbers n = {0.0f, 0.0f, 0.0f};
    T first;
    unit<T> x;
    raw_param<T> raw_scale, raw_bias;
#pragma unroll
    for (int i = 0; i < E; ++i) raw_scale.word[i] = raw_bias.word[i] = 0;
    wd_wait_for_previous();
    first = static_cast<const T *>(a.x)[row * a.length];
    if (there) {
        x.load(static_cast<const T *>(a.x) + at);
        ask_param<T>(raw_scale, a.scale, column);
        ask_param<T>(raw_bias, a.bias, column);
    }
    if (a.given_inv_std) {
        n = {given(a.given_mean, a, row), a.given_inv_std[row], 0.0f};
    } else {
        n = few_numbers<T>(a, x, there, a.centered ? wd_widen(first) : 0.0f);
        if (threadIdx.x == 0) {
            if (a.mean) a.mean[row] = n.mean;
            if (a.inv_std) a.inv_std[row] = n.inv_std;
        }
    }
    if (!there) return;
    float scale[E], bias[E];
    unit<T> out;
    widen_param<T>(scale, raw_scale, a.scale);
    widen_param<T>(bias, raw_bias, a.bias);
#pragma unroll
    for (int i = 0; i < E; i += 2) {
        float v[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const float xhat = fmaf(wd_widen(x.get(i + k)) - n.mean, n.inv_std, n.shift);
            v[k] = fmaf(scale[i + k], xhat, bias[i + k]);
        }
        narrow_pair(out, i, v[0], v[1]);
    }
    out.store(static_cast<T *>(a.y) + at);
}

} // namespace

#define WD_KERNELS_ROWS "ops/norm/norm_few_kernels.def"
#include "ops/kernels_device.inc"
