// SPDX-License-Identifier: Apache-2.0
//
// What the channels of a stage are in shared memory, of an element of x, a place's dy, or an element of dx: see
// sampler_chunks.cuh. Of fp32 they lie in four planes; of two bytes in a cell of 8 bytes, and those of dx in two planes
// of pairs.
#ifndef WD_OPS_SPATIAL_SAMPLER_CHUNK_CELLS_CUH
#define WD_OPS_SPATIAL_SAMPLER_CHUNK_CELLS_CUH

#include "gpu/device/words.cuh"
#include "ops/spatial/sampler_chunk_lists.cuh"

namespace {

template <class T> struct chunk_cell {
    static constexpr bool PLANES = chunk_tile<T>::PLANES;
    static constexpr int U = CHUNK_CHANNELS, OUT_PLANES = PLANES ? 4 : 2;

    // Two neighbouring cells, of two elements of each channel.
    static __device__ __forceinline__ uint4 pair_of(uint32_t w0, uint32_t w1, uint32_t w2,
                                                    uint32_t w3)
    {
        return make_uint4(__byte_perm(w0, w1, 0x5410), __byte_perm(w2, w3, 0x5410),
                          __byte_perm(w0, w1, 0x7632), __byte_perm(w2, w3, 0x7632));
    }
    // Where an element's dx is in its plane: a channel, or two of two bytes.
    static __device__ __forceinline__ uint32_t out_cell(uint32_t number)
    {
        const uint32_t unit = number >> 2;
        return (PLANES ? unit : unit ^ (unit >> 3 & 1)) * 16 + (number & 3) * 4;
    }
    // The channels of an element or place, of a stage whose planes, or cells, are so far after those of the first.
    static __device__ __forceinline__ void read(wd_located at, const uint32_t *stage, float *value)
    {
        if constexpr (PLANES) {
#pragma unroll
            for (int u = 0; u < U; ++u) {
                value[u] = *wd_located_at<const float>(at, stage[u]);
            }
        } else {
            const uint2 cell = *wd_located_at<const uint2>(at, stage[0]);
            wd_run<T, U> run;
            run.word[0] = cell.x;
            run.word[1] = cell.y;
#pragma unroll
            for (int u = 0; u < U; ++u) value[u] = wd_widen(run.get(u));
        }
    }
    static __device__ __forceinline__ void write(wd_located at, uint32_t into, const float *value)
    {
#pragma unroll
        for (int p = 0; p < OUT_PLANES; ++p) {
            uint32_t *const to_plane = wd_located_at<uint32_t>(at, into + p * CHUNK_OUT_PLANE);
            if constexpr (PLANES) *to_plane = __float_as_uint(value[p]);
            else *to_plane = wd_narrow_pair(value[2 * p], value[2 * p + 1], T());
        }
    }
    static __device__ __forceinline__ void take(wd_located at, const uint32_t *stage, float share,
                                                const float *x, float *sums, float &product)
    {
        float one[U];
        read(at, stage, one);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            sums[u] += share * one[u];
            product += x[u] * one[u];
        }
    }
};

} // namespace

#endif
