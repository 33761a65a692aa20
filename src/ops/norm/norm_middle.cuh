// SPDX-License-Identifier: Apache-2.0
//
// The number that sums of differences are around.
#ifndef WD_OPS_NORM_MIDDLE_CUH
#define WD_OPS_NORM_MIDDLE_CUH

// Of three numbers the middle one, so that a single one that lies far out does no harm; NaN only of three.
template <class A> __device__ __forceinline__ A wd_middle_of(A a, A b, A c)
{
    return max(min(a, b), min(max(a, b), c));
}

#endif
