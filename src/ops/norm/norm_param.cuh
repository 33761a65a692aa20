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

} // namespace

#endif
