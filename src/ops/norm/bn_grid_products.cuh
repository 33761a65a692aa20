// SPDX-License-Identifier: Apache-2.0
//
// What the backward kernels of bn_grid share: x and dy go through the ring side by side, and a unit's part of the sums is of
// their products.
#ifndef WD_OPS_NORM_BN_GRID_PRODUCTS_CUH
#define WD_OPS_NORM_BN_GRID_PRODUCTS_CUH

#include "ops/norm/bn_grid_ring.cuh"

namespace {

// a round is a part
static_assert(BN_GRID_EACH(2) == 1, "");

// Units `at` of x and dy, on their way to a round's places from `row` on.
template <class T, bool LED>
__device__ __forceinline__ void send_both(const bn_grid_args &a, unsigned char *row, const T *x,
                                          const T *dy, uint32_t at)
{
    send<T, LED>(a, row, x, at);
    send<T, LED>(a, row + a.slots * BN_GRID_UNIT, dy, at);
}

// What was sent.
template <class T>
__device__ __forceinline__ void receive_both(const bn_grid_args &a, unit<T> &x, unit<T> &dy,
                                             const unsigned char *row)
{
    receive<T>(x, row);
    receive<T>(dy, row + a.slots * BN_GRID_UNIT);
}

// A unit's part of the sums of dy, and of dy times x - mean.
template <class T>
__device__ __forceinline__ void add_products(acc<T> (&value)[2 * UNIT<T>], const unit<T> &x,
                                             const unit<T> &dy, const acc<T> (&mean)[UNIT<T>])
{
    acc<T> g[UNIT<T>], d[UNIT<T>];
    widen_unit<T>(g, dy);
    widen_unit<T>(d, x);
#pragma unroll
    for (int i = 0; i < UNIT<T>; ++i) {
        value[2 * i] += g[i];
        value[2 * i + 1] += g[i] * (d[i] - mean[i]);
    }
}

} // namespace

#endif
