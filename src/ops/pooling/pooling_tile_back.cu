// SPDX-License-Identifier: Apache-2.0
//
// Gradients of pooling, a box of dx at a time: any types, layouts, alignments and windows.
#include "ops/pooling/pooling_collect.cuh"
#include "ops/pooling/pooling_tile_body.cuh"

namespace {

template <class T, int V, int WAY>
__device__ __forceinline__ void spread_tile(const pool_tile_args &a)
{
    wd_wait_for_previous();
    const box b = tile_staged<T, V, true>(a);
    tile_pooling<T, V, POOL_AVERAGE, true, WAY>(a, b).run();
}

template <class T, int V> __device__ __forceinline__ void collect_tile(const pool_tile_args &a)
{
    wd_wait_for_previous();
    collecting<T, V>(a).run();
}

} // namespace

// Rows of 80 registers would be squeezed to 64 on some processors, and spill.
#define WD_KERNELS_BOUNDS(threads, registers) threads, (registers) == 80 ? 3 : 0
#define WD_KERNELS_ROWS "ops/pooling/pooling_tile_back_kernels.def"
#include "ops/kernels_device.inc"
