// SPDX-License-Identifier: Apache-2.0
//
// Powers that no root gives.
#ifndef WD_OPS_LRN_ANY_POWER_CUH
#define WD_OPS_LRN_ANY_POWER_CUH

namespace {

// s^exponent, s positive. Floats' is not called: around calls registers are spilled.
__device__ __forceinline__ float any_power(float s, float exponent)
{
    return exp2f(exponent * log2f(s));
}
__device__ __noinline__ double any_power(double s, double exponent)
{
    return pow(s, exponent);
}

} // namespace

#endif
