// SPDX-License-Identifier: Apache-2.0
//
// What the pointwise kernels share: places of elements, and the definition's formulas, which the
// including file has compiled (WD_POINTWISE_VALUE; WD_POINTWISE_SINGLE where there are none for double).
#ifndef WD_OPS_POINTWISE_DEVICE_CUH
#define WD_OPS_POINTWISE_DEVICE_CUH

#include "ops/pointwise/pointwise_args.h"
#include "ops/pointwise/pointwise_vector_args.h"

namespace {

// Where element `index` of the walk lies.
template <class ARGS>
__device__ __forceinline__ int64_t offset_of(const ARGS &a, const pointwise_operand &o,
                                             uint32_t index)
{
    int64_t offset = 0;
    for (int d = a.rank - 1; d > 0; --d) {
        uint32_t rest = wd_fastdiv_quotient(index, a.dim[d]);
        offset += (int64_t)(int32_t)(index - rest * a.dim[d].divisor) * o.stride[d];
        index = rest;
    }
    return offset + (int64_t)(int32_t)index * o.stride[0];
}

// The definition's formulas; WD_POINTWISE_VALUE names those of single precision.
__device__ __forceinline__ float value_of(const wd_pointwise_attr *p, float x, float b, float t,
                                          int has_t)
{
    return WD_POINTWISE_VALUE(p, x, b, t, has_t);
}

#ifndef WD_POINTWISE_SINGLE
__device__ __forceinline__ double value_of(const wd_pointwise_attr *p, double x, double b, double t,
                                           int has_t)
{
    return pw_value_f64(p, x, b, t, has_t);
}
#endif

} // namespace

#endif
