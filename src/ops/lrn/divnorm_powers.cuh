// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization: powers of strengths, of any of its kernels' arguments.
#ifndef WD_OPS_LRN_DIVNORM_POWERS_CUH
#define WD_OPS_LRN_DIVNORM_POWERS_CUH

#include "gpu/device/roots.cuh"
#include "ops/lrn/any_power.cuh"
#include "ops/lrn/lrn_numbers.h"

namespace {

// A call's numbers, in the accumulator's type.
template <class A, class ARGS> __device__ __forceinline__ const auto &numbers(const ARGS &a)
{
    if constexpr (sizeof(A) == 8) return a.full;
    else return a.single;
}

// s^-B, and 1 / s, of strengths s, which are positive, infinite or NaN.
template <int RUN, class A, class ARGS>
__device__ __forceinline__ void powers_of(const ARGS &a, const A *s, A *power, A *inverse)
{
    A r[RUN];
#pragma unroll
    for (int v = 0; v < RUN; ++v) {
        r[v] = wd_inverse_root(s[v]);
        inverse[v] = r[v] * r[v];
    }
    if (a.power == LRN_POWER_THREE_QUARTERS) {
#pragma unroll
        for (int v = 0; v < RUN; ++v) power[v] = r[v] * wd_root(r[v]);
    } else if (a.power == LRN_POWER_ANY) {
#pragma unroll
        for (int v = 0; v < RUN; ++v) power[v] = any_power(s[v], numbers<A>(a).exponent);
    } else {
#pragma unroll
        for (int v = 0; v < RUN; ++v) power[v] = a.power == LRN_POWER_ONE ? inverse[v] : r[v];
    }
}

// The same, s being k + factor * q.
template <int RUN, class A, class ARGS>
__device__ __forceinline__ void powers(const ARGS &a, const A *q, A *power, A *inverse)
{
    const auto &n = numbers<A>(a);
    A s[RUN];
#pragma unroll
    for (int v = 0; v < RUN; ++v) s[v] = n.k + n.factor * q[v];
    powers_of<RUN>(a, s, power, inverse);
}

} // namespace

#endif
