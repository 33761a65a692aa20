// SPDX-License-Identifier: Apache-2.0
//
// Instance norm of small images with channels last: all that a thread needs is asked for before
// anything is looked at, and stays in registers. norm_spot_args.h says who has what.
#include "ops/norm/norm_kept_device.cuh"
#include "ops/norm/norm_spot_args.h"

namespace {

constexpr uint32_t SPOT_WARPS = NORM_SPOT_THREADS / WARP;

template <int N> struct spot_room {
    float of_warp[SPOT_WARPS][N];
    float all[N];
};

// A lane gives half of the numbers it has to the one that keeps these, and so on until it has one: a
// fifth of the exchanges that sums of each take. A loop over halves would not be unrolled.
template <int HALF, int N>
__device__ __forceinline__ void give_halves(float (&mine)[N], uint32_t lane)
{
    if constexpr (HALF > 0) {
        constexpr uint32_t DISTANCE = WARP * HALF / N;
        const bool upper = (lane & DISTANCE) != 0;
#pragma unroll
        for (int i = 0; i < HALF; ++i) {
            const float given = upper ? mine[i] : mine[i + HALF];
            const float own = upper ? mine[i + HALF] : mine[i];
            mine[i] = own + __shfl_xor_sync(WHOLE_WARP, given, (int)DISTANCE);
        }
        give_halves<HALF / 2>(mine, lane);
    }
}

// N numbers over the threads of the block, in room.all.
template <int N> __device__ __forceinline__ void sum_all(float (&mine)[N], spot_room<N> &room)
{
    const uint32_t lane = threadIdx.x % WARP;
    give_halves<N / 2>(mine, lane);
#pragma unroll
    for (uint32_t distance = WARP / N / 2; distance > 0; distance /= 2) {
        mine[0] += __shfl_xor_sync(WHOLE_WARP, mine[0], (int)distance);
    }
    if (lane % (WARP / N) == 0) room.of_warp[threadIdx.x / WARP][lane / (WARP / N)] = mine[0];
    __syncthreads();
    if (threadIdx.x < N) {
        float all = 0.0f;
#pragma unroll 4
        for (uint32_t w = 0; w < blockDim.x / WARP; ++w) all += room.of_warp[w][threadIdx.x];
        room.all[threadIdx.x] = all;
    }
    __syncthreads();
}

template <class T> __device__ __forceinline__ void spot(const norm_spot_args &a)
{
    __shared__ spot_room<RUN<T>> first;
    __shared__ spot_room<2 * RUN<T>> second;
    const uint32_t sample = blockIdx.x / a.tiles;
    const uint32_t channel = (blockIdx.x - sample * a.tiles) * RUN<T>;
    const uint32_t row = threadIdx.x;
    const int64_t at = (int64_t)sample * a.plane * a.channels + channel;
    const T *x = static_cast<const T *>(a.x) + at;
    run<T> r[NORM_SPOT_SLOTS], begin;
    uint32_t scale[RUN<T>], bias[RUN<T>];
    wd_wait_for_previous();
    begin.load(x);
#pragma unroll
    for (uint32_t k = 0; k < NORM_SPOT_SLOTS; ++k) {
        r[k] = begin;
        if (row + k * blockDim.x < a.plane) r[k].load(x + (row + k * blockDim.x) * a.channels);
    }
    params_at(scale, a.scale, channel, RUN<T>);
    params_at(bias, a.bias, channel, RUN<T>);
    // of differences from the first row: where there is none they are nothing
    float mean[RUN<T>], sum[RUN<T>];
    widen(mean, begin);
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) sum[i] = 0.0f;
#pragma unroll
    for (uint32_t k = 0; k < NORM_SPOT_SLOTS; ++k) {
        float v[RUN<T>];
        widen(v, r[k]);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) sum[i] += v[i] - mean[i];
    }
    sum_all(sum, first);
    // around the mean, whose rounding is made up for
    float both[2 * RUN<T>];
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        mean[i] = fmaf(first.all[i], a.inverse, mean[i]);
        both[i] = both[i + RUN<T>] = 0.0f;
    }
#pragma unroll
    for (uint32_t k = 0; k < NORM_SPOT_SLOTS; ++k) {
        float v[RUN<T>];
        if (row + k * blockDim.x >= a.plane) break;
        widen(v, r[k]);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            const float d = v[i] - mean[i];
            both[i] += d;
            both[i + RUN<T>] = fmaf(d, d, both[i + RUN<T>]);
        }
    }
    sum_all(both, second);
    float factor[RUN<T>], base[RUN<T>];
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        const float rest = second.all[i] * a.inverse;
        float variance = fmaf(second.all[i + RUN<T>], a.inverse, -rest * rest);
        if (variance < 0.0f) variance = 0.0f; // a NaN stays one
        const float inv_std = 1.0f / sqrtf(variance + a.epsilon);
        factor[i] = param_of(a.scale, scale[i]) * inv_std;
        base[i] = fmaf(-rest, factor[i], param_of(a.bias, bias[i]));
        if (row == 0) {
            const uint32_t share = sample * a.channels + channel + i;
            if (a.mean) a.mean[share] = mean[i] + rest;
            if (a.inv_std) a.inv_std[share] = inv_std;
        }
    }
    T *y = static_cast<T *>(a.y) + at;
#pragma unroll
    for (uint32_t k = 0; k < NORM_SPOT_SLOTS; ++k) {
        float v[RUN<T>];
        if (row + k * blockDim.x >= a.plane) break;
        widen(v, r[k]);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) v[i] = fmaf(factor[i], v[i] - mean[i], base[i]);
        put(y + (row + k * blockDim.x) * a.channels, v, true, 0, RUN<T>, false);
    }
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/norm_spot_kernels.def"
#include "ops/kernels_device.inc"
