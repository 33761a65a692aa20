// SPDX-License-Identifier: Apache-2.0
//
// How what threads have of the positions of a tile of columns is joined, through shared memory and the
// blocks of a cluster.
#ifndef WD_OPS_SOFTMAX_COLUMNS_JOIN_CUH
#define WD_OPS_SOFTMAX_COLUMNS_JOIN_CUH

#include "ops/softmax/softmax_device.cuh"

namespace {

// The totals of `width` positions, of which `fetch(place, part)` has those of each of `parts`, up to 16: a few
// lanes have a position's.
template <class A, class FETCH>
__device__ __forceinline__ void join_parts(uint32_t width, uint32_t parts, totals<A> *to,
                                           FETCH fetch)
{
    uint32_t bits = 0;
    while (1u << bits < parts) ++bits;
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t - threadIdx.x % 32 < width << bits; t += blockDim.x) {
        const uint32_t place = t >> bits, part = t & ((1u << bits) - 1);
        totals<A> one = {lowest<A>(), 0};
        if (place < width && part < parts) one = fetch(place, part);
        one = join_lanes(one, 1u << bits);
        if (place < width && part == 0) to[place] = one;
    }
}

// What the blocks of a cluster have of `width` positions each: from `block`, written by the block's join_parts,
// and behind it where there are several. All threads come; those of a cluster wait for it once more at
// their end.
template <class A>
__device__ __forceinline__ const totals<A> *join_blocks(uint32_t width, uint32_t cluster,
                                                        totals<A> *block)
{
    totals<A> *all = block + width;
    if (cluster == 1) {
        __syncthreads();
        return block;
    }
    __syncthreads();
    wd_cluster_arrive_first();
    wd_cluster_wait();
    join_parts(width, cluster, all, [&](uint32_t place, uint32_t rank) -> totals<A> {
        if constexpr (sizeof(A) == 4) return wd_of_cluster(&block[place], rank);
        else
            return {wd_of_cluster(&block[place].max, rank), wd_of_cluster(&block[place].sum, rank)};
    });
    wd_cluster_arrive_done();
    __syncthreads();
    return all;
}

} // namespace

#endif
