// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm of few rows, where what counts is how often somebody waits for memory: a row has
// a block, a thread one unit of it, and all that a thread needs, of the row and of the parameters, is asked
// for before anything is looked at.
#include "gpu/device/depend.cuh"
#include "ops/norm/norm_middle.cuh"
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

// In single precision, in its place; zeros where there is none.
template <class T>
__device__ __forceinline__ void widen_param(raw_param<T> &raw, const norm_rows_param &p)
{
    constexpr int E = EACH<T>;
    wd_run<half16, E> halves;
    wd_run<bfloat16, E> brains;
#pragma unroll
    for (int i = 0; i < E / 2; ++i) halves.word[i] = brains.word[i] = raw.word[i];
    if (p.type == NORM_ROWS_F16) {
#pragma unroll
        for (int i = 0; i < E; ++i) raw.put(i, wd_widen(halves.get(i)));
    } else {
#pragma unroll
        for (int i = 0; i < E; ++i) raw.put(i, wd_widen(brains.get(i)));
    }
}

// The sum and the squares over the block, by one barrier; all threads get them.
__device__ __forceinline__ float2 few_sums(float2 mine)
{
    constexpr uint32_t SOME_WARPS = 8; // are read at once
    __shared__ float4 of_warp[WARP / 2];
    float2 *places = reinterpret_cast<float2 *>(of_warp);
    const uint32_t warps = blockDim.x / WARP;
    const uint32_t all = (warps + SOME_WARPS - 1) / SOME_WARPS * SOME_WARPS;
    mine.x = sum_of_warp(mine.x);
    mine.y = sum_of_warp(mine.y);
    if (threadIdx.x % WARP == 0) places[threadIdx.x / WARP] = mine;
    if (warps + threadIdx.x < all) places[warps + threadIdx.x] = make_float2(0.0f, 0.0f);
    __syncthreads();
    mine = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (uint32_t first = 0; first < all; first += SOME_WARPS) {
        float4 pair[SOME_WARPS / 2];
#pragma unroll
        for (uint32_t i = 0; i < SOME_WARPS / 2; ++i) pair[i] = of_warp[first / 2 + i];
        mine.x += ((pair[0].x + pair[0].z) + (pair[1].x + pair[1].z)) +
                  ((pair[2].x + pair[2].z) + (pair[3].x + pair[3].z));
        mine.y += ((pair[0].y + pair[0].w) + (pair[1].y + pair[1].w)) +
                  ((pair[2].y + pair[2].w) + (pair[3].y + pair[3].w));
    }
    return mine;
}

// 1 / sqrt(v) without the division's way; as exact but for the last bit.
__device__ __forceinline__ float few_inv_std(float v)
{
    const float r = rsqrtf(v);
    const float left = fmaf(-v * r, r, 1.0f);
    return fabsf(left) < 1.0f ? fmaf(0.5f * r, left, r) : r; // of 0 and of what is not finite
}

// The squares around the mean, by a second barrier: all threads of the block.
template <class T>
__device__ __forceinline__ float few_squares(const unit<T> &x, bool there, const part &all)
{
    __shared__ float of_warp[WARP];
    float squares = 0.0f;
    unit<T> left = x;
#pragma unroll 1
    for (int w = 0; w < 4 && there; ++w) {
#pragma unroll
        for (int i = 0; i < EACH<T> / 4; ++i) {
            const float d = (wd_widen(left.get(i)) - all.pivot) - all.rest;
            squares = fmaf(d, d, squares);
        }
        left.word[0] = left.word[1], left.word[1] = left.word[2], left.word[2] = left.word[3];
    }
    squares = sum_of_warp(squares);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = squares;
    __syncthreads();
    squares = 0.0f;
#pragma unroll 1
    for (uint32_t w = 0; w < blockDim.x / WARP; ++w) squares += of_warp[w];
    return squares;
}

// Of the squares around one number: with less than this left of them for those around the mean, it lies far out.
constexpr float FEW_LEFT = 0x1p-4f;

// The numbers of the row: sums of differences from one number, of three elements the middle one. Where that lies
// far out all threads find so, and take the squares again.
template <class T>
__device__ __forceinline__ numbers few_numbers(const norm_rows_args &a, const unit<T> &x,
                                               bool there, float around)
{
    constexpr int E = EACH<T>;
    float2 sums = make_float2(0.0f, 0.0f);
    part all = {around, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < E && there; ++i) {
        const float d = wd_widen(x.get(i)) - around;
        sums.x += d;
        sums.y = fmaf(d, d, sums.y);
    }
    sums = few_sums(sums);
    if (!a.centered) sums.x = 0.0f; // and no product of an infinite one
    all.rest = sums.x * a.inverse;
    all.squares = fmaf(-sums.x, all.rest, sums.y);
    const bool far = all.squares < FEW_LEFT * sums.y;
    if (all.squares < 0.0f) all.squares = 0.0f; // a NaN stays one
    numbers n;
    n.inv_std = few_inv_std(fmaf(all.squares, a.inverse, a.epsilon));
    n.mean = all.pivot + all.rest;
    if (far) n.inv_std = few_inv_std(fmaf(few_squares(x, there, all), a.inverse, a.epsilon));
    n.shift = ((n.mean - all.pivot) - all.rest) * n.inv_std;
    return n;
}

template <class T> __device__ __forceinline__ void few(const norm_rows_args &a)
{
    constexpr int E = EACH<T>;
    const uint32_t units = a.length / E;
    const uint32_t column = threadIdx.x * E;
    const bool there = threadIdx.x < units;
    const uint32_t row = blockIdx.x; // few: 32 bits count all elements
    const uint32_t at = row * a.length + column;
    numbers n = {0.0f, 0.0f, 0.0f};
    float around = 0.0f;
    T some[3];
    unit<T> x;
    raw_param<T> scale, bias;
#pragma unroll
    for (int i = 0; i < E; ++i) scale.word[i] = bias.word[i] = 0;
    wd_wait_for_previous();
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const uint32_t of_three = i == 0 ? 0 : i == 1 ? a.length / 2 : a.length - 1;
        some[i] = static_cast<const T *>(a.x)[row * a.length + of_three];
    }
    if (there) {
        ask_param<T>(scale, a.scale, column);
        ask_param<T>(bias, a.bias, column);
        x.load(static_cast<const T *>(a.x) + at);
    }
    // here, not at the end, where nothing else would be done meanwhile; one branch for all that are so already
    if (a.scale.type != NORM_ROWS_F32 || a.bias.type != NORM_ROWS_F32) {
        if (a.scale.type != NORM_ROWS_F32) widen_param<T>(scale, a.scale);
        if (a.bias.type != NORM_ROWS_F32) widen_param<T>(bias, a.bias);
    }
    if (a.given_inv_std) {
        n = {given(a.given_mean, a, row), a.given_inv_std[row], 0.0f};
    } else {
        around = wd_middle_of(wd_widen(some[0]), wd_widen(some[1]), wd_widen(some[2]));
        // of a NaN or an infinity nothing could be taken
        if (!(fabsf(around) <= (a.centered ? 3.0e38f : -1.0f))) around = 0.0f;
        n = few_numbers<T>(a, x, there, around);
        if (threadIdx.x == 0) {
            if (a.mean) a.mean[row] = n.mean;
            if (a.inv_std) a.inv_std[row] = n.inv_std;
        }
    }
    if (!there) return;
    unit<T> out;
#pragma unroll
    for (int i = 0; i < E; i += 2) {
        float v[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const float xhat = fmaf(wd_widen(x.get(i + k)) - n.mean, n.inv_std, n.shift);
            v[k] = fmaf(scale.get(i + k), xhat, bias.get(i + k));
        }
        narrow_pair(out, i, v[0], v[1]);
    }
    out.store(static_cast<T *>(a.y) + at);
}

} // namespace

#define WD_KERNELS_ROWS "ops/norm/norm_few_kernels.def"
#include "ops/kernels_device.inc"
