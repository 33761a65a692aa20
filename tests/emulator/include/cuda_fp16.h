// SPDX-License-Identifier: Apache-2.0
//
// In place of the toolkit's header: half precision as the kernels use it.
#ifndef EMULATOR_CUDA_FP16_H
#define EMULATOR_CUDA_FP16_H

#include "base/dtype.h"

struct __half {
    uint16_t bits;
};
struct __align__(4) __half2
{
    __half x, y;
};

static inline float __half2float(__half v)
{
    return wd_decode_small(v.bits, 5, 10, 0);
}
static inline __half __float2half_rn(float v)
{
    return {(uint16_t)wd_encode_small(v, 5, 10, 0, 0)};
}
static inline __half2 __floats2half2_rn(float x, float y)
{
    return {__float2half_rn(x), __float2half_rn(y)};
}

#endif
