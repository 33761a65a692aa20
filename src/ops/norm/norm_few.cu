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

// What a thread's unit has.
template <class T>
__device__ __forceinline__ part few_part(const norm_rows_args &a, const unit<T> &x, bool there)
{
    constexpr int E = EACH<T>;
    part p = {0.0f, 0.0f, 0.0f, there ? (float)E : 0.0f};
    float sum = 0.0f;
    if (!there) return p;
    if (a.centered) p.pivot = wd_widen(x.get(0));
#pragma unroll
    for (int i = 0; i < E; ++i) sum += wd_widen(x.get(i)) - p.pivot;
    if (a.centered) p.rest = sum * (1.0f / E);
#pragma unroll
    for (int i = 0; i < E; ++i) {
        const float d = (wd_widen(x.get(i)) - p.pivot) - p.rest;
        p.squares = fmaf(d, d, p.squares);
    }
    return p;
}

template <class T> __device__ __forceinline__ void few(const norm_rows_args &a)
{
    constexpr int E = EACH<T>;
    __shared__ part of_warp[WARP]; // as many warps as lanes, at most
    const uint32_t units = a.length / E, warp = threadIdx.x / WARP;
    const uint32_t column = threadIdx.x * E;
    const bool there = threadIdx.x < units;
    const int64_t row = blockIdx.x;
    const int64_t at = row * a.length + column;
    numbers n = {0.0f, 0.0f, 0.0f};
    unit<T> x;
    raw_param<T> raw_scale, raw_bias;
#pragma unroll
    for (int i = 0; i < E; ++i) raw_scale.word[i] = raw_bias.word[i] = 0;
    wd_wait_for_previous();
    if (there) {
        x.load(static_cast<const T *>(a.x) + at);
        ask_param<T>(raw_scale, a.scale, column);
        ask_param<T>(raw_bias, a.bias, column);
    }
    if (a.given_inv_std) {
        n = {given(a.given_mean, a, row), a.given_inv_std[row], 0.0f};
    } else {
        part p = few_part<T>(a, x, there);
        if (blockDim.x == WARP) {
            p = join_warp<true>(p, a.inverse);
        } else {
            const float columns = (float)(min(WARP, units - warp * WARP) * E);
            p = join_warp<true>(p, 1.0f / columns);
            p.count = columns;
            if (threadIdx.x % WARP == 0) of_warp[warp] = p;
            __syncthreads();
            p = join_all<true>(of_warp, blockDim.x / WARP, a.inverse);
        }
        n = numbers_of(a, p);
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
