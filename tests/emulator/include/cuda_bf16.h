// SPDX-License-Identifier: Apache-2.0
//
// In place of the toolkit's header: bfloat16 as the kernels use it.
#ifndef EMULATOR_CUDA_BF16_H
#define EMULATOR_CUDA_BF16_H

#include "base/dtype.h"

struct __nv_bfloat16 {
    uint16_t bits;
};
struct __align__(4) __nv_bfloat162
{
    __nv_bfloat16 x, y;
};

static inline float __bfloat162float(__nv_bfloat16 v)
{
    return emulator_bits<float>((uint32_t)v.bits << 16);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float v)
{
    return {(uint16_t)wd_encode_small(v, 8, 7, 0, 0)};
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}

#endif
