// SPDX-License-Identifier: Apache-2.0
//
// Powers that no root gives.
#ifndef WD_OPS_LRN_ANY_POWER_CUH
#define WD_OPS_LRN_ANY_POWER_CUH

#include "gpu/device/logs.cuh"
#include "gpu/device/math.cuh"

namespace {

// s^exponent, s positive: 2^-22 times the exponent off where s is near 1, else as much as a rounded logarithm would be.
__device__ __forceinline__ float any_power(float s, float exponent)
{
    return wd_about_exp2(exponent * wd_about_log2(s));
}
__device__ __noinline__ double any_power(double s, double exponent)
{
    return pow(s, exponent);
}

} // namespace

#endif
