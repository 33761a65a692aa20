// SPDX-License-Identifier: Apache-2.0
//
// Normal numbers of 16 bits: radii by look-ups, one for two elements, and sines of two pairs at once in fp16. Blocks of
// threads that make much bring the table to shared memory first.
#ifndef WD_OPS_RNG_NORMAL_CUH
#define WD_OPS_RNG_NORMAL_CUH

#include "gpu/device/halves.cuh"
#include "gpu/device/opaque.cuh"
#include "ops/rng/rng_elements.cuh"

namespace {

__device__ __forceinline__ float half_of(uint32_t word)
{
    const uint16_t bits = (uint16_t)word;
    half16 value;
    memcpy(&value, &bits, sizeof value);
    return __half2float(value);
}

// Numbers of fp16 in y's scale and type.
template <int WORDS> __device__ __forceinline__ void scale(const rng_vector_args &a, uint32_t *word)
{
    float value[WORDS][2];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        value[w][0] = fmaf(a.scale.step_f, half_of(word[w]), a.scale.base_f);
        value[w][1] = fmaf(a.scale.step_f, half_of(word[w] >> 16), a.scale.base_f);
    }
    pack<WORDS>(a, value, word);
}

// Numbers of fp16 as bf16.
template <int WORDS> __device__ __forceinline__ void convert(uint32_t *word)
{
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(half_of(word[w]), half_of(word[w] >> 16));
        memcpy(word + w, &pair, sizeof pair);
    }
}

__device__ __forceinline__ uint4 *near_radii()
{
    __shared__ __align__(16) uint4 radii[RNG_RADII / 8];
    return radii;
}

// All threads of a block come. Nobody writes to the table, so that it may come while the kernel before this one ends.
__device__ __forceinline__ void bring_radii()
{
    uint4 *to = near_radii();
    const uint4 *from = reinterpret_cast<const uint4 *>(rng_radii);
#pragma unroll 2
    for (uint32_t i = threadIdx.x; i < RNG_RADII / 8; i += blockDim.x) to[i] = from[i];
    __syncthreads();
}

// What normal numbers of 16 bits are drawn with.
template <class D> struct with_radii : D {
    const char *radii;
};

// Of shared memory where the table is near, whose address would be made anew for each block of bits.
template <bool NEAR> __device__ __forceinline__ const char *radii_table()
{
    if constexpr (NEAR) return wd_opaque_shared(reinterpret_cast<const char *>(near_radii()));
    else return reinterpret_cast<const char *>(rng_radii);
}

// The radii of two pairs; in the tail there is an upper bit.
__device__ __forceinline__ uint32_t radii_of(const char *table, uint32_t number)
{
    const uint32_t low = number & RNG_RADIUS_BITS, high = number >> 16 & RNG_RADIUS_BITS;
    return __byte_perm(*reinterpret_cast<const uint16_t *>(table + low),
                       *reinterpret_cast<const uint16_t *>(table + high), 0x5410);
}

// A radius in the tail.
__device__ __forceinline__ uint32_t tail_radius(uint32_t number, uint32_t second)
{
    const half16 value = __float2half_rn(root(rng_tail_square(number, second)));
    uint16_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

__device__ __forceinline__ void mend_tails(uint32_t number, uint32_t second, uint32_t &radii)
{
    if (radii & 0x8000u) radii = (radii & 0xffff0000u) | tail_radius(number, second);
    if (radii & 0x80000000u) {
        radii = (radii & 0xffffu) | tail_radius(number >> 16, second >> 16) << 16;
    }
}

// radius * sin(pi t / 2), of two pairs.
__device__ __forceinline__ uint32_t sines_of(uint32_t t, uint32_t radii)
{
    const uint32_t z = wd_halves_product(t, t), far = wd_halves_product(t, radii);
    uint32_t p = RNG_SINE_C2 * 0x10001u;
    p = wd_halves_fma(p, z, RNG_SINE_C1 * 0x10001u);
    p = wd_halves_fma(p, z, RNG_SINE_C0 * 0x10001u);
    return wd_halves_fma(far, p, far);
}

// Two pairs of a word for the radii and one for the angles.
__device__ __forceinline__ void two_pairs(uint32_t number, uint32_t angle, uint32_t radii,
                                          uint32_t *word)
{
    const uint32_t place = angle & 0x03ff03ffu;                        // as fp16, 2^-24 of it
    const uint32_t t = wd_halves_fma(place, 0x74007400u, 0x94009400u); // 1024ths, one less
    const uint32_t left = wd_halves_fma(t, 0xbc00bc00u, 0x3c003c00u);
    const uint32_t fine = (angle >> 5 & 0x03e003e0u) | 0x3c103c10u; // 1, 32nds and half a one
    word[0] = sines_of(wd_halves_fma(fine, 0x14001400u, t), radii) ^ (angle & 0x80008000u);
    word[1] = sines_of(wd_halves_fma(fine, 0x94009400u, left), radii) ^ (number & 0x80008000u);
}

struct halves_of_normals {};

template <bool NEAR> struct normal_halves : halves_of_normals {
    typedef uint16_t stored;
    static constexpr int IN_BLOCK = WD_PHILOX_HALVES;
    static constexpr bool TABLE = NEAR;

    // Those of several blocks, whose instructions are not each other's: a branch asks for all of them at once.
    template <int BLOCKS, class D>
    static __device__ __forceinline__ void some(const rng_vector_args &a, const with_radii<D> &d,
                                                const uint32_t *block, uint32_t (*word)[4])
    {
        uint32_t number[BLOCKS][4], radii[BLOCKS][2], any = 0;
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) wd_draw(d, block[b], number[b]);
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
            radii[b][0] = radii_of(d.radii, number[b][0]);
            radii[b][1] = radii_of(d.radii, number[b][2]);
            any |= radii[b][0] | radii[b][1];
        }
        if ((any & 0x80008000u) != 0) {
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b) {
                uint32_t second[4];
                if (BLOCKS > 1 && ((radii[b][0] | radii[b][1]) & 0x80008000u) == 0) continue;
                wd_draw_second(d, block[b], second);
                mend_tails(number[b][0], second[0], radii[b][0]);
                mend_tails(number[b][2], second[2], radii[b][1]);
            }
        }
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
            two_pairs(number[b][0], number[b][1], radii[b][0], word[b]);
            two_pairs(number[b][2], number[b][3], radii[b][1], word[b] + 2);
        }
        if (a.halves) return;
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
            if (a.plain) convert<4>(word[b]);
            else scale<4>(a, word[b]);
        }
    }

    template <class D>
    static __device__ __forceinline__ void all(const rng_vector_args &a, const D &d, uint32_t block,
                                               uint32_t *word)
    {
        uint32_t made[1][4];
        some<1>(a, d, &block, made);
#pragma unroll
        for (int w = 0; w < 4; ++w) word[w] = made[0][w];
    }
};

} // namespace

#endif
