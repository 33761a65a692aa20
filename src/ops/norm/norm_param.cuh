// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of groups, kept or read twice, share: warps, and a parameter of any type.
#ifndef WD_OPS_NORM_PARAM_CUH
#define WD_OPS_NORM_PARAM_CUH

#include "gpu/device/vector.cuh"
#include "ops/norm/norm_rows_args.h"

namespace {

constexpr uint32_t WARP = 32;
constexpr uint32_t WHOLE_WARP = 0xffffffffu;

// As it lies in memory: nobody waits for it before it is used. 0 where there is none.
__device__ __forceinline__ uint32_t param_bits(const norm_rows_param &p, uint32_t channel)
{
    if (!p.data) return 0;
    if (p.type == NORM_ROWS_F32) return static_cast<const uint32_t *>(p.data)[channel];
    return static_cast<const uint16_t *>(p.data)[channel];
}

__device__ __forceinline__ float param_of(const norm_rows_param &p, uint32_t bits)
{
    if (p.type == NORM_ROWS_F32) return __uint_as_float(bits);
    if (p.type == NORM_ROWS_BF16) return __uint_as_float(bits << 16);
    half16 one;
    memcpy(&one, &bits, sizeof one);
    return wd_widen(one);
}

__device__ __forceinline__ float param_at(const norm_rows_param &p, uint32_t channel)
{
    return param_of(p, param_bits(p, channel));
}

// Of `left` neighbours, at most N, asked for together; 0 for the others.
template <int N>
__device__ __forceinline__ void params_at(uint32_t (&to)[N], const norm_rows_param &p,
                                          uint32_t channel, int left)
{
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = 0;
    if (!p.data) return;
    if (p.type == NORM_ROWS_F32) {
        const uint32_t *from = static_cast<const uint32_t *>(p.data) + channel;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (i < left) to[i] = from[i];
        }
    } else {
        const uint16_t *from = static_cast<const uint16_t *>(p.data) + channel;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (i < left) to[i] = from[i];
        }
    }
}

__device__ __forceinline__ void set_param(const norm_rows_param &p, uint32_t channel, float value)
{
    if (!p.data) return;
    switch (p.type) {
    case NORM_ROWS_F32: static_cast<float *>(p.data)[channel] = value; break;
    case NORM_ROWS_F16: wd_narrow(static_cast<half16 *>(p.data)[channel], value); break;
    default: wd_narrow(static_cast<bfloat16 *>(p.data)[channel], value); break;
    }
}

// Rows of sums that a thread has asked for at once.
constexpr uint32_t PARAM_ROWS = 8;

// dscale and dbias of the channels from `first` on, CHANNELS at most, over rows of what was found of
// channels (dy, dy_xhat), those of which has(row, channel): lanes are channels and rows, and so are
// warps, of which a block has WARPS_MOST at most.
template <uint32_t CHANNELS, uint32_t WARPS_MOST, class SUMS, class HAS>
__device__ __forceinline__ void sum_params(const SUMS *of, uint32_t rows, uint32_t channels,
                                           uint32_t first, const norm_rows_param &dscale,
                                           const norm_rows_param &dbias, const HAS &has)
{
    __shared__ double of_warp[2][WARPS_MOST][CHANNELS];
    const uint32_t lane = threadIdx.x % CHANNELS;
    const uint32_t apart = blockDim.x / CHANNELS;
    const uint32_t channel = first + lane;
    double dy = 0.0, dy_xhat = 0.0;
    if (channel < channels) {
        for (uint32_t begin = threadIdx.x / CHANNELS; begin < rows; begin += PARAM_ROWS * apart) {
            SUMS some[PARAM_ROWS];
#pragma unroll
            for (uint32_t k = 0; k < PARAM_ROWS; ++k) {
                const uint32_t row = begin + k * apart;
                some[k].dy = some[k].dy_xhat = 0.0f;
                if (row < rows && has(row, channel)) {
                    some[k] = of[(int64_t)row * channels + channel];
                }
            }
#pragma unroll
            for (uint32_t k = 0; k < PARAM_ROWS; ++k) {
                dy += some[k].dy, dy_xhat += some[k].dy_xhat;
            }
        }
    }
    for (uint32_t lanes = CHANNELS; lanes < WARP; lanes *= 2) {
        dy += __shfl_xor_sync(WHOLE_WARP, dy, (int)lanes);
        dy_xhat += __shfl_xor_sync(WHOLE_WARP, dy_xhat, (int)lanes);
    }
    if (threadIdx.x % WARP < CHANNELS) {
        of_warp[0][threadIdx.x / WARP][lane] = dy;
        of_warp[1][threadIdx.x / WARP][lane] = dy_xhat;
    }
    __syncthreads();
    if (threadIdx.x >= CHANNELS || channel >= channels) return;
    for (uint32_t w = 1; w < blockDim.x / WARP; ++w) {
        dy += of_warp[0][w][lane], dy_xhat += of_warp[1][w][lane];
    }
    set_param(dbias, channel, (float)dy);
    set_param(dscale, channel, (float)dy_xhat);
}

} // namespace

#endif
