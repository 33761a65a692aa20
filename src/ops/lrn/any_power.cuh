// SPDX-License-Identifier: Apache-2.0
//
// Powers that no root gives.
#ifndef WD_OPS_LRN_ANY_POWER_CUH
#define WD_OPS_LRN_ANY_POWER_CUH

namespace {

// s^exponent, s positive. Of floats the kernels decide whether it is called.
__device__ __noinline__ double any_power(double s, double exponent)
{
    return pow(s, exponent);
}

} // namespace

#endif
