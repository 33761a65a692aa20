// SPDX-License-Identifier: Apache-2.0
//
// Places by cell, then by place, in shared memory: a block counts those of each cell, finds where a cell's begin, lists them
// in no order, and counts which of its cell come before each: so lists are the same in every run.
#ifndef WD_OPS_SPATIAL_SAMPLER_CELLS_CUH
#define WD_OPS_SPATIAL_SAMPLER_CELLS_CUH

#include <stdint.h>

namespace {

// How many places of cells from .. to-1 there are.
__device__ __forceinline__ uint32_t places_of_cells(const uint32_t *filled, int from, int to)
{
    uint32_t own = 0;
#pragma unroll 1
    for (int i = from; i < to; ++i) own += filled[i];
    return own;
}

// Where the lists of these cells begin, from `at` on; nothing is in them yet.
__device__ __forceinline__ void begin_cells(uint32_t *begin, uint32_t *filled, int from, int to,
                                            uint32_t at)
{
#pragma unroll 1
    for (int i = from; i < to; ++i) {
        begin[i] = at;
        at += filled[i];
        filled[i] = 0;
    }
}

// Lists `count` places by cell: of each its number and its cell.
template <int THREADS>
__device__ __forceinline__ void list_by_cell(const uint4 *found, uint32_t count,
                                             const uint32_t *begin, uint32_t *filled,
                                             uint32_t *listed)
{
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        const uint4 one = found[i];
        listed[begin[one.y] + atomicAdd(filled + one.y, 1u)] = one.x;
    }
}

// Where a place is among all in order.
__device__ __forceinline__ uint32_t rank_of(const uint4 &one, const uint32_t *begin,
                                            const uint32_t *listed)
{
    const uint32_t end = begin[one.y + 1];
    uint32_t rank = begin[one.y];
#pragma unroll 1
    for (uint32_t j = begin[one.y]; j < end; ++j) rank += listed[j] < one.x;
    return rank;
}

} // namespace

#endif
