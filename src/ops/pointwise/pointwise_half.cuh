// SPDX-License-Identifier: Apache-2.0
//
// The definition's formulas for results of half precision (half_value): with functions that are a few
// units in the last place of single precision off, which is nothing to half of one (and with quotients
// and roots likewise: cmake/cuda.cmake compiles files named *_half.cu so).
#ifndef WD_OPS_POINTWISE_HALF_CUH
#define WD_OPS_POINTWISE_HALF_CUH

#include "gpu/device/half.cuh"
#include "ops/pointwise/pointwise_args.h"

namespace {

__device__ __forceinline__ float half_exp(float x)
{
    return __expf(x); // bfloat16 has numbers below the normal ones
}
__device__ __forceinline__ float half_tanh(float x)
{
    return wd_half_tanh(x);
}
__device__ __forceinline__ float half_expm1(float x)
{
    return wd_half_expm1(x);
}
__device__ __forceinline__ float half_log1p(float x)
{
    return wd_half_log1p(x);
}
__device__ __forceinline__ float half_erf(float x)
{
    return wd_half_erf(x);
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

namespace {

// Where the definition's formula has a shorter form with these functions.
__device__ __forceinline__ float half_value(const wd_pointwise_attr *p, float x, float b, float t,
                                            int has_t)
{
    constexpr float ROOT_2_PI = 0.39894228040143268f; // 1 / sqrt(2 pi)
    switch (p->mode) {
    case CUDNN_POINTWISE_GELU_FWD: return x * wd_half_phi(x);
    case CUDNN_POINTWISE_GELU_BWD:
        return b * fmaf(x * ROOT_2_PI, wd_half_exp2(-0.5f * WD_LOG2_E * x * x), wd_half_phi(x));
    // (1 + tanh u) / 2 is the sigmoid of 2 u
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
        return x * wd_half_sigmoid(2.0f * pw_gelu_inner_f32(x));
    case CUDNN_POINTWISE_SWISH_FWD: return x * wd_half_sigmoid((float)p->swish_beta * x);
    default: return pw_value_f32(p, x, b, t, has_t);
    }
}

} // namespace

#define WD_POINTWISE_VALUE half_value
#define WD_POINTWISE_SINGLE

#endif
