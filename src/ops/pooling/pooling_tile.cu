// SPDX-License-Identifier: Apache-2.0
//
// Pooling forward, a box at a time: any types, layouts, alignments and windows.
#include "ops/pooling/pooling_tile_body.cuh"

namespace {

template <class T, int V, int WAY>
__device__ __forceinline__ void pool_tile(const pool_tile_args &a)
{
    wd_wait_for_previous();
    const box b = tile_staged<T, V, false>(a);
    if (a.mode == POOL_AVERAGE) tile_pooling<T, V, POOL_AVERAGE, false, WAY>(a, b).run();
    else if (a.mode == POOL_MAX) tile_pooling<T, V, POOL_MAX, false, WAY>(a, b).run();
    else tile_pooling<T, V, POOL_MAX_NAN, false, WAY>(a, b).run();
}

} // namespace

// Boxes leave room for four blocks a processor: with fewer registers than that needs, values were
// spilled.
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_tile_kernels.def"
#include "ops/kernels_device.inc"
