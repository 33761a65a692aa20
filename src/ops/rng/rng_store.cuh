// SPDX-License-Identifier: Apache-2.0
//
// How what a thread made of a random tensor gets to memory: 16 bytes to a boundary, elements elsewhere.
#ifndef WD_OPS_RNG_RNG_STORE_CUH
#define WD_OPS_RNG_RNG_STORE_CUH

#include "gpu/device/wide.cuh"
#include "ops/rng/rng_elements.cuh"

namespace {

template <int BYTES>
using piece = std::conditional_t<
    BYTES == 1, uint8_t,
    std::conditional_t<BYTES == 2, uint16_t, std::conditional_t<BYTES == 4, uint32_t, uint64_t>>>;

// Element i of those that words hold.
template <class P> __device__ __forceinline__ P element(const uint32_t *word, int i)
{
    if constexpr (sizeof(P) == 8) return (uint64_t)word[2 * i + 1] << 32 | word[2 * i];
    else if constexpr (sizeof(P) == 4) return word[i];
    else return (P)(word[i * (int)sizeof(P) / 4] >> (8 * (i * (int)sizeof(P) & 3)));
}

// 16 bytes to a boundary.
__device__ __forceinline__ void store_run(const rng_vector_args &a, void *to, const uint32_t *word)
{
    const uint4 run = make_uint4(word[0], word[1], word[2], word[3]);
    if (a.streaming) __stcs(static_cast<uint4 *>(to), run);
    else wd_store_global(static_cast<uint4 *>(to), run);
}

// The same at element `at`, those elements of it that are y's.
template <class P>
__device__ __forceinline__ void store(const rng_vector_args &a, int64_t at, const uint32_t *word)
{
    constexpr int COUNT = RNG_BYTES / (int)sizeof(P);
    P *y = static_cast<P *>(a.y);
    if (at >= 0 && at + COUNT <= a.count) {
        store_run(a, y + at, word);
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        if (at + i >= 0 && at + i < a.count) y[at + i] = element<P>(word, i);
    }
}

// The lane before, and before the first the last.
__device__ __forceinline__ uint32_t lane_before()
{
    return (threadIdx.x + 31) % 32;
}

// The 16 bytes behind the first 4 WORDS bytes and `bits` bits of those of the lane before and its own.
template <int WORDS, bool IN_WORDS>
__device__ __forceinline__ void take_over(const uint32_t *own, uint32_t before, uint32_t bits,
                                          uint32_t *to)
{
    uint32_t all[8];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if (w >= WORDS) all[w] = __shfl_sync(0xffffffffu, own[w], before);
        all[w + 4] = own[w];
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const uint32_t low = all[w + WORDS];
        if constexpr (IN_WORDS) to[w] = low;
        else to[w] = (uint32_t)(((uint64_t)all[w + WORDS + 1] << 32 | low) >> bits);
    }
}

// Likewise behind `bytes`, 1 to 15, a multiple of SIZE.
template <int SIZE>
__device__ __forceinline__ void take_from(const uint32_t *own, uint32_t bytes, uint32_t *to)
{
    constexpr bool IN_WORDS = SIZE >= 4;
    const uint32_t bits = bytes % 4 * 8, before = lane_before();
    if (bytes < 4) take_over<0, IN_WORDS>(own, before, bits, to);
    else if (bytes < 8) take_over<1, IN_WORDS>(own, before, bits, to);
    else if (bytes < 12) take_over<2, IN_WORDS>(own, before, bits, to);
    else take_over<3, IN_WORDS>(own, before, bits, to);
}

} // namespace

#endif
