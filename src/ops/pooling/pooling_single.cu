// SPDX-License-Identifier: Apache-2.0
//
// Pooling of two-dimensional images straight from memory at any alignment: a thread a window, whose
// neighbours' loads the first cache joins.
#include "ops/pooling/pooling_state.cuh"

namespace {

template <class T, int SIZE> __device__ __forceinline__ void single(const pool_vector_args &a)
{
    by_mode(a, [&](auto mode) { forward_element<T, SIZE, mode.value>(a); });
}

} // namespace

#define WD_KERNELS_ROWS "ops/pooling/pooling_single_kernels.def"
#include "ops/kernels_device.inc"
