// SPDX-License-Identifier: Apache-2.0
//
// Planes that are one window each: a block stages as many as fit and has a few lanes for each of them.
#ifndef WD_OPS_POOLING_BAND_PLANES_CUH
#define WD_OPS_POOLING_BAND_PLANES_CUH

#include "ops/pooling/pooling_band.cuh"

namespace {

// Planes of a block.
struct planes_box {
    uint32_t outer; // the first
    uint32_t images;
    uint32_t elements; // of each
    uint32_t base;     // where the first element lies
};

template <class T>
__device__ __forceinline__ void planes_stage(const pool_band_args &a, planes_box &b)
{
    b.elements = (uint32_t)(a.axis[0].image * a.axis[1].image) * (uint32_t)a.axis[2].image;
    b.outer = blockIdx.x * a.tile_outer;
    b.images = min(a.tile_outer, a.outer - b.outer);
    const reach all[3] = {{0, a.axis[0].image}, {0, a.axis[1].image}, {0, a.axis[2].image}};
    const placed px =
        place_of(b.outer, b.images, all, a.axis[0].image, a.axis[1].image, a.axis[2].image, 1);
    stage_band<T>(a.from, a.x, px, 1);
    wd_copies_wait_all();
    __syncthreads();
    b.base = first_at<T>(a.from, a.x, px);
}

template <class T, int MODE>
__device__ __forceinline__ void band_planes(const pool_band_args &a, const planes_box &b)
{
    using A = acc<T>;
    const uint32_t elements = b.elements, images = b.images, outer = b.outer;
    const T *x = reinterpret_cast<const T *>(band_at(b.base));
    const uint32_t lane = threadIdx.x % a.lanes, groups = blockDim.x / a.lanes;
    const A factor = a.exclude ? inverse<A>((int)elements) : (A)a.inverse;
    // all lanes of a warp go on together
    for (uint32_t first = 0; first < images; first += groups) {
        const uint32_t plane = first + threadIdx.x / a.lanes;
        const T *from = x + min(plane, images - 1) * elements;
        A value = nothing<MODE, A>();
#pragma unroll 8
        for (uint32_t i = lane; i < elements; i += a.lanes) take<MODE>(value, wd_widen(from[i]));
        for (uint32_t step = a.lanes / 2; step > 0; step /= 2) {
            take<MODE>(value, __shfl_xor_sync(0xffffffffu, value, (int)step));
        }
        if (lane == 0 && plane < images) {
            if (MODE == POOL_AVERAGE) value *= factor;
            else if (MODE == POOL_MAX && value != value) value = (A)a.lowest;
            wd_put_run<T, 1>(a, outer + plane, &value);
        }
    }
}

} // namespace

#endif
