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

// 0 where there is none.
__device__ __forceinline__ float param_at(const norm_rows_param &p, uint32_t channel)
{
    if (!p.data) return 0.0f;
    switch (p.type) {
    case NORM_ROWS_F32: return static_cast<const float *>(p.data)[channel];
    case NORM_ROWS_F16: return wd_widen(static_cast<const half16 *>(p.data)[channel]);
    default: return wd_widen(static_cast<const bfloat16 *>(p.data)[channel]);
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
