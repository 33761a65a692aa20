// SPDX-License-Identifier: Apache-2.0
//
// Normal numbers of 16 bits. A block of threads spreads the table's lines to all 2^15 sizes in shared memory,
// in y's type and scale, so that an element is one look-up; what is in the tail (an element of 2,048) is made
// later, by as many threads side by side as there are such elements. Small tensors take the lines as they are,
// and so do tiles, which have them in shared memory.
#ifndef WD_OPS_RNG_NORMAL_CUH
#define WD_OPS_RNG_NORMAL_CUH

#include "gpu/device/halves.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/warp.cuh"
#include "ops/rng/rng_elements.cuh"

namespace {

// Of a block of threads; the sizes, where it has them, stand behind it, and a tile behind these.
struct normal_memory {
    uint32_t listed;
    uint32_t unused[3];
    uint32_t list[RNG_NORMAL_LISTED]; // blocks of bits of which some elements are in the tail
};
static_assert(sizeof(normal_memory) == RNG_NORMAL_FIXED, "what the host asks for");

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

// All threads of a block come. A size in the tail is told by its sign.
__device__ __forceinline__ void bring_sizes(const rng_vector_args &a, normal_memory *memory)
{
    uint4 *to = reinterpret_cast<uint4 *>(memory + 1);
    if (threadIdx.x == 0) memory->listed = 0;
    for (uint32_t i = threadIdx.x; a.near && i < RNG_ENTRIES; i += blockDim.x) {
        const uint32_t entry = rng_normal_table[i];
        uint32_t word[8];
#pragma unroll
        for (int w = 0; w < 8; ++w) {
            const uint32_t place = 0x3c403c00u + 0x00800080u * (uint32_t)w; // 1 and sixteenths
            word[w] =
                wd_halves_fma(__byte_perm(entry, 0, 0x3232), place, __byte_perm(entry, 0, 0x1010));
        }
        if (a.plain) scale<8>(a, word);
        if (i == 0) {
#pragma unroll
            for (int w = 0; w < 8; ++w) word[w] = 0x80008000u;
        }
        to[2 * i] = make_uint4(word[0], word[1], word[2], word[3]);
        to[2 * i + 1] = make_uint4(word[4], word[5], word[6], word[7]);
    }
    __syncthreads();
}

// Sizes by the table's lines: two at a time by one product and sum of fp16.
__device__ __forceinline__ void sizes_of_lines(const uint32_t *table, const uint32_t *number,
                                               uint32_t *word)
{
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const uint32_t low = table[number[w] >> 4 & (RNG_ENTRIES - 1)];
        const uint32_t high = table[number[w] >> 20 & (RNG_ENTRIES - 1)];
        const uint32_t place = (number[w] << 6 & 0x03c003c0u) | 0x3c003c00u; // 1 and sixteenths
        word[w] =
            wd_halves_fma(__byte_perm(low, high, 0x7632), place, __byte_perm(low, high, 0x5410));
    }
}

// Sizes become y's elements; whether some are in the tail.
__device__ __forceinline__ bool finish_sizes(const rng_vector_args &a, const uint32_t *number,
                                             uint32_t *word)
{
    uint32_t tails = 0; // where an upper bit is set
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        tails |= word[w];
        word[w] ^= number[w] & 0x80008000u;
    }
    if (!a.plain) scale<4>(a, word);
    return (tails & 0x80008000u) != 0;
}

struct normal_halves {
    typedef uint16_t stored;
    static constexpr int IN_BLOCK = WD_PHILOX_HALVES;
    static constexpr bool TAILS = true;

    // All of a block; whether some are in the tail, in place of which there is anything.
    static __device__ __forceinline__ bool all(const rng_vector_args &a, const wd_drawing &d,
                                               uint32_t block, uint32_t *word)
    {
        const char *sizes = wd_dynamic_shared<const char>() + sizeof(normal_memory);
        uint32_t number[4];
        wd_draw(d, block, number);
        if (a.near) {
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const uint32_t low = number[w] << 1 & 0xfffeu, high = number[w] >> 15 & 0xfffeu;
                word[w] = __byte_perm(*reinterpret_cast<const uint16_t *>(sizes + low),
                                      *reinterpret_cast<const uint16_t *>(sizes + high), 0x5410);
            }
        } else {
            sizes_of_lines(rng_normal_table, number, word);
        }
        return finish_sizes(a, number, word);
    }
};

// Halves of words, the lowest one last.
__device__ __forceinline__ void turn_halves(uint32_t *word)
{
    const uint32_t lowest = word[0];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        word[w] = word[w] >> 16 | (w < 3 ? word[w + 1] : lowest) << 16;
    }
}

// Where element i of the index lies, of as many as 2^31 if channels are neighbours.
__device__ __forceinline__ int64_t place_of(const rng_vector_args &a, int64_t i)
{
    if (a.channels == 0) return i;
    const uint32_t row = wd_fastdiv_quotient((uint32_t)i, a.by_plane);
    const uint32_t image = wd_fastdiv_quotient(row, a.by_image);
    const uint32_t pixel = (uint32_t)i - row * a.plane;
    return ((int64_t)image * a.plane + pixel) * a.channels + (row - image * a.channels);
}

// An element in the tail, as y has it.
__device__ __forceinline__ uint32_t tail_of(const rng_vector_args &a, uint32_t half,
                                            uint32_t second)
{
    const float z = rng_tail_number(half, root(rng_tail_square(half, second & 0xffffu)));
    const float value[1][2] = {{fmaf(a.scale.step_f, z, a.scale.base_f), 0.0f}};
    uint32_t word;
    pack<1>(a, value, &word);
    return word & 0xffffu;
}

// A block's elements in the tail, stored one by one.
__device__ __forceinline__ void put_tails(const rng_vector_args &a, const wd_drawing &d,
                                          uint32_t block)
{
    uint32_t first[4], second[4];
    wd_draw(d, block, first);
    wd_draw_second(d, block, second);
#pragma unroll 1
    for (int i = 0; i < WD_PHILOX_HALVES; ++i) {
        const int64_t at = (int64_t)block * WD_PHILOX_HALVES + i;
        const uint32_t half = first[0] & 0xffffu;
        if (rng_is_tail(half) && at < a.count) {
            static_cast<uint16_t *>(a.y)[place_of(a, at)] = (uint16_t)tail_of(a, half, second[0]);
        }
        turn_halves(first);
        turn_halves(second);
    }
}

// All threads of a block come, each with a bit for a block of bits of which some elements are in the tail, whose
// number block_of tells; they have stored all other elements of these.
template <class F>
__device__ __forceinline__ void mend(const rng_vector_args &a, const wd_drawing &d, uint32_t bits,
                                     const F &block_of)
{
    normal_memory *memory = wd_dynamic_shared<normal_memory>();
    for (;;) {
        while (bits != 0) {
            const uint32_t slot = atomicAdd(&memory->listed, 1u);
            if (slot >= RNG_NORMAL_LISTED) break; // the next time
            memory->list[slot] = block_of(wd_lowest(bits));
            bits &= bits - 1;
        }
        __syncthreads();
        const uint32_t listed = memory->listed;
        for (uint32_t i = threadIdx.x; i < min(listed, (uint32_t)RNG_NORMAL_LISTED);
             i += blockDim.x) {
            put_tails(a, d, memory->list[i]);
        }
        __syncthreads();
        if (threadIdx.x == 0) memory->listed = 0;
        __syncthreads();
        if (listed <= RNG_NORMAL_LISTED) return;
    }
}

// ---- Tiles ----

// The table where threads read it from all banks at once.
__device__ __forceinline__ uint32_t *near_table()
{
    __shared__ __align__(16) uint32_t table[RNG_ENTRIES];
    return table;
}

// All threads of a block come.
__device__ __forceinline__ void bring_table()
{
    uint4 *table = reinterpret_cast<uint4 *>(near_table());
    const uint4 *from = reinterpret_cast<const uint4 *>(rng_normal_table);
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < RNG_ENTRIES / 4; i += blockDim.x) table[i] = from[i];
    __syncthreads();
}

// By the table's lines, those in the tail at once: a tile in which they are made later waits for one thread.
struct table_halves {
    typedef uint16_t stored;
    static constexpr int IN_BLOCK = WD_PHILOX_HALVES;
    static constexpr bool TABLE = true;

    static __device__ __forceinline__ void all(const rng_vector_args &a, const wd_drawing &d,
                                               uint32_t block, uint32_t *word)
    {
        uint32_t number[4], second[4];
        wd_draw(d, block, number);
        sizes_of_lines(near_table(), number, word);
        if (!finish_sizes(a, number, word)) return;
        wd_draw_second(d, block, second);
        uint32_t tails = 0; // bit 15 - w of word w's lower half, and 31 - w of its upper one
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            // a carry where there are bits
            const uint32_t entry = (number[w] & RNG_ENTRY_BITS * 0x10001u) + 0x7fff7fffu;
            tails |= (~entry & 0x80008000u) >> w;
        }
#pragma unroll 1
        for (; tails != 0; tails &= tails - 1) {
            const uint32_t bit = wd_lowest(tails), at = 15 - bit % 16, high = bit & 16;
            const auto pick = [&](const uint32_t *from) {
                return (at & 2 ? (at & 1 ? from[3] : from[2]) : (at & 1 ? from[1] : from[0])) >>
                       high;
            };
            const uint32_t made = tail_of(a, pick(number) & 0xffffu, pick(second)) << high;
#pragma unroll
            for (uint32_t w = 0; w < 4; ++w) {
                if (w == at) word[w] = (word[w] & ~(0xffffu << high)) | made;
            }
        }
    }
};

} // namespace

#endif
