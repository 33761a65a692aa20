// SPDX-License-Identifier: Apache-2.0
//
// Pointwise kernels for fp16 and bf16: the definition's formulas with functions that are a few units
// in the last place of single precision off, which is nothing to half of one (and with quotients and
// roots likewise: cmake/cuda.cmake compiles files named *_half.cu so).
#include "ops/pointwise/pointwise_args.h"

namespace {

__device__ __forceinline__ float half_exp(float x)
{
    return __expf(x);
}

// Near 0 by its series, where the difference would lose digits.
__device__ __forceinline__ float half_tanh(float x)
{
    const float square = x * x;
    const float e = __expf(2.0f * fabsf(x));
    const float far = 1.0f - __fdividef(2.0f, e + 1.0f);
    const float near = fabsf(x) * (1.0f - square * (0.33333334f - square * 0.13333333f));
    return copysignf(square < 0.01f ? near : e > 1e30f ? 1.0f : far, x);
}

__device__ __forceinline__ float half_expm1(float x)
{
    const float near = x * (1.0f + x * (0.5f + x * (0.16666667f + x * 0.041666668f)));
    return fabsf(x) < 0.125f ? near : __expf(x) - 1.0f;
}

__device__ __forceinline__ float half_log1p(float x)
{
    const float near = x * (1.0f - x * (0.5f - x * (0.33333334f - x * 0.25f)));
    return fabsf(x) < 0.0625f ? near : logf(1.0f + x);
}

__device__ __forceinline__ float half_erf(float x)
{
    return erff(x);
}
__device__ __forceinline__ float half_log(float x)
{
    return logf(x);
}
__device__ __forceinline__ float half_sqrt(float x)
{
    return sqrtf(x);
}
__device__ __forceinline__ float half_fabs(float x)
{
    return fabsf(x);
}
__device__ __forceinline__ float half_ceil(float x)
{
    return ceilf(x);
}
__device__ __forceinline__ float half_floor(float x)
{
    return floorf(x);
}
// modes that these kernels do not have
__device__ __forceinline__ float half_sin(float x)
{
    return x;
}
__device__ __forceinline__ float half_cos(float x)
{
    return x;
}
__device__ __forceinline__ float half_tan(float x)
{
    return x;
}
__device__ __forceinline__ float half_fmod(float x, float)
{
    return x;
}
__device__ __forceinline__ float half_pow(float x, float)
{
    return x;
}
__device__ __forceinline__ float half_atan2(float x, float)
{
    return x;
}

} // namespace

#define WD_ACC float
#define WD_NAME(x) x##_f32
#define WD_M(x) half_##x
#define WD_ACC_IS_DOUBLE 0
#include "ops/pointwise/pointwise_def.h"
#undef WD_ACC
#undef WD_NAME
#undef WD_M
#undef WD_ACC_IS_DOUBLE
#define WD_POINTWISE_VALUE pw_value_f32
#define WD_POINTWISE_SINGLE
#include "ops/pointwise/pointwise_vector.cuh"

#define WD_KERNELS_ROWS "ops/pointwise/pointwise_half_kernels.def"
#include "ops/kernels_device.inc"
