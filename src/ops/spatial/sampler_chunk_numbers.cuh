// SPDX-License-Identifier: Apache-2.0
//
// What lists of the sampler's gradients by chunks (sampler_chunk_lists.cuh) count, and how they divide.
#ifndef WD_OPS_SPATIAL_SAMPLER_CHUNK_NUMBERS_CUH
#define WD_OPS_SPATIAL_SAMPLER_CHUNK_NUMBERS_CUH

#include "gpu/device/located.cuh"
#include "ops/spatial/sampler_chunks_args.h"

namespace {

// Numbers that the threads of a block have in common.
struct chunk_counts {
    uint32_t near, more, chunks;
    int first_row; // negative
    uint32_t lost; // more than there is room for
    // Of the first stage: kept here, for the compiler would keep how far after it what is in registers lies.
    wd_located first_cell;
};

// Division of numbers up to CHUNK_ELEMENTS by one of them, or twice that.
struct little_divisor {
    uint32_t by, times;
    __device__ __forceinline__ explicit little_divisor(int divisor)
        : by((uint32_t)divisor), times((1u << 20) / (uint32_t)divisor + 1)
    {
    }
    // n = quotient * divisor + the result; n becomes the quotient.
    __device__ __forceinline__ uint32_t rest(uint32_t &n) const
    {
        const uint32_t all = n;
        n = all * times >> 20;
        return all - n * by;
    }
};

static_assert(sizeof(chunk_counts) <= CHUNK_COUNTS, "have room");

} // namespace

#endif
