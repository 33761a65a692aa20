// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm of small images with channels last: all that a thread needs is asked for
// before anything is looked at, and stays in registers. norm_spot_args.h says who has what.
#include "ops/norm/norm_kept_device.cuh"
#include "ops/norm/norm_spot_args.h"

namespace {

constexpr uint32_t SPOT_WARPS = NORM_SPOT_THREADS / WARP;

struct spot_room {
    float of_warp[SPOT_WARPS][NORM_SPOT_COLUMNS];
    float of_column[NORM_SPOT_COLUMNS];
    float of_group[NORM_SPOT_COLUMNS];
};

// Sums of groups over the block, in room.of_group, from those of a thread's columns.
template <class T>
__device__ __forceinline__ void sum_groups(const norm_spot_args &a, float (&mine)[RUN<T>],
                                           spot_room &room)
{
    const uint32_t place = threadIdx.x % a.lanes;
    for (uint32_t lanes = a.lanes; lanes < WARP; lanes *= 2) {
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            mine[i] += __shfl_xor_sync(WHOLE_WARP, mine[i], (int)lanes);
        }
    }
    if (threadIdx.x % WARP < a.across) {
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            room.of_warp[threadIdx.x / WARP][place * RUN<T> + i] = mine[i];
        }
    }
    __syncthreads();
    for (uint32_t c = threadIdx.x; c < a.tile; c += blockDim.x) {
        float all = 0.0f;
#pragma unroll 4
        for (uint32_t w = 0; w < blockDim.x / WARP; ++w) all += room.of_warp[w][c];
        room.of_column[c] = all;
    }
    __syncthreads();
    for (uint32_t g = threadIdx.x; g < a.tile / a.each; g += blockDim.x) {
        float all = 0.0f;
#pragma unroll 4
        for (uint32_t c = 0; c < a.each; ++c) all += room.of_column[g * a.each + c];
        room.of_group[g] = all;
    }
    __syncthreads();
}

template <class T> __device__ __forceinline__ void spot(const norm_spot_args &a)
{
    __shared__ spot_room room;
    const uint32_t sample = blockIdx.x / a.tiles;
    const uint32_t first = (blockIdx.x - sample * a.tiles) * a.tile;
    const uint32_t row = threadIdx.x / a.lanes, rows = blockDim.x / a.lanes;
    const uint32_t place = threadIdx.x - row * a.lanes;
    const bool has = place < a.across;
    const uint32_t column = has ? place * RUN<T> : 0;
    const int64_t at = (int64_t)sample * a.plane * a.channels + first + column;
    const T *x = static_cast<const T *>(a.x) + at;
    run<T> r[NORM_SPOT_SLOTS], begin;
    uint32_t scale[RUN<T>], bias[RUN<T>];
    wd_wait_for_previous();
    begin.load(x);
#pragma unroll
    for (uint32_t k = 0; k < NORM_SPOT_SLOTS; ++k) {
        r[k] = begin;
        if (has && row + k * rows < a.plane) r[k].load(x + (row + k * rows) * a.channels);
    }
    params_at(scale, a.scale, first + column, RUN<T>);
    params_at(bias, a.bias, first + column, RUN<T>);
    float sum[RUN<T>], mean[RUN<T>];
    uint32_t group[RUN<T>];
    // of differences from the first row: where there is none they are nothing
    widen(mean, begin);
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        group[i] = wd_fastdiv_quotient(column + i, a.by_each);
        sum[i] = 0.0f;
    }
    if (a.each > 1) {
        // of a group differences are from one number
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            mean[i] = wd_widen(static_cast<const T *>(
                a.x)[(int64_t)sample * a.plane * a.channels + first + group[i] * a.each]);
        }
    }
#pragma unroll
    for (uint32_t k = 0; k < NORM_SPOT_SLOTS; ++k) {
        float v[RUN<T>];
        if (!has || row + k * rows >= a.plane) break;
        widen(v, r[k]);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) sum[i] += v[i] - mean[i];
    }
    sum_groups<T>(a, sum, room);
    // around the mean, whose rounding is made up for
    float squares[RUN<T>];
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        mean[i] = fmaf(room.of_group[group[i]], a.inverse, mean[i]);
        sum[i] = squares[i] = 0.0f;
    }
#pragma unroll
    for (uint32_t k = 0; k < NORM_SPOT_SLOTS; ++k) {
        float v[RUN<T>];
        if (!has || row + k * rows >= a.plane) break;
        widen(v, r[k]);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            const float d = v[i] - mean[i];
            sum[i] += d;
            squares[i] = fmaf(d, d, squares[i]);
        }
    }
    sum_groups<T>(a, sum, room);
    float rest[RUN<T>];
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) rest[i] = room.of_group[group[i]] * a.inverse;
    sum_groups<T>(a, squares, room);
    float factor[RUN<T>], base[RUN<T>];
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        const float variance =
            fmaxf(fmaf(room.of_group[group[i]], a.inverse, -rest[i] * rest[i]), 0.0f);
        const float inv_std = 1.0f / sqrtf(variance + a.epsilon);
        factor[i] = param_of(a.scale, scale[i]) * inv_std;
        base[i] = fmaf(-rest[i], factor[i], param_of(a.bias, bias[i]));
        if (row == 0 && has && (column + i) % a.each == 0) {
            const uint32_t share = (sample * a.channels + first + column + i) / a.each;
            if (a.mean) a.mean[share] = mean[i] + rest[i];
            if (a.inv_std) a.inv_std[share] = inv_std;
        }
    }
    T *y = static_cast<T *>(a.y) + at;
#pragma unroll
    for (uint32_t k = 0; k < NORM_SPOT_SLOTS; ++k) {
        float v[RUN<T>];
        if (!has || row + k * rows >= a.plane) break;
        widen(v, r[k]);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) v[i] = fmaf(factor[i], v[i] - mean[i], base[i]);
        put(y + (row + k * rows) * a.channels, v, true, 0, RUN<T>, false);
    }
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/norm_spot_kernels.def"
#include "ops/kernels_device.inc"
