// SPDX-License-Identifier: Apache-2.0
//
// Random tensors whose memory is in the order of the index.
#ifndef WD_OPS_RNG_RNG_FLAT_CUH
#define WD_OPS_RNG_RNG_FLAT_CUH

#include "gpu/device/warp.cuh"
#include "ops/rng/rng_normal.cuh"
#include "ops/rng/rng_store.cuh"

namespace {

// How many blocks of bits 16 bytes are, or how many runs of 16 bytes share one.
template <class T, int WAY> struct shares {
    static constexpr int COUNT = RNG_BYTES / (int)sizeof(T);
    static constexpr int IN_BLOCK = elements<T, WAY>::IN_BLOCK;
    static constexpr int BLOCKS = COUNT > IN_BLOCK ? COUNT / IN_BLOCK : 1;
    static constexpr int PARTS = COUNT < IN_BLOCK ? IN_BLOCK / COUNT : 1;
    static constexpr int PARTS_LOG2 = PARTS == 4 ? 2 : PARTS == 2 ? 1 : 0;
    static_assert(PARTS == 1 << PARTS_LOG2, "a power of two");
};

// 16 bytes from block `block` on, or part `part` of it, which neighbours draw as well.
template <class T, int WAY, class D>
__device__ __forceinline__ void make_run(const rng_vector_args &a, const D &d, uint32_t block,
                                         uint32_t part, uint32_t *word)
{
    typedef elements<T, WAY> made;
    constexpr int BLOCKS = shares<T, WAY>::BLOCKS, PARTS = shares<T, WAY>::PARTS;
    constexpr int COUNT = made::IN_BLOCK / PARTS, WORDS = 4 / PARTS;
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        uint32_t number[4];
        made::draw(a, d, block + b, number);
#pragma unroll
        for (int p = 1; p < PARTS; ++p) {
#pragma unroll
            for (int w = 0; w < WORDS; ++w) {
                number[w] = part == p ? number[p * WORDS + w] : number[w];
            }
        }
        made::template make<COUNT>(a, number, word + b * (4 / BLOCKS));
    }
}

// Where two runs share a block of bits, two neighbours make that of one turn and that of the next, a block each, and
// hand each other halves.
template <class T, int WAY>
__device__ __forceinline__ void flat_by_two(const rng_vector_args &a, const wd_drawing &d,
                                            int64_t first)
{
    typedef elements<T, WAY> made;
    static_assert(shares<T, WAY>::PARTS == 2 && RNG_RUNS % 2 == 0, "two turns");
    const uint32_t threads = blockDim.x;
    const bool odd = threadIdx.x % 2 != 0;
    const bool whole = blockIdx.x < a.whole_blocks;
    uint32_t run = threadIdx.x;
    char *to = static_cast<char *>(a.y) + (first + run) * RNG_BYTES;
#pragma unroll 1
    for (uint32_t turn = 0; turn < a.runs; turn += 2) {
        uint32_t number[4], word[8], got[4];
        made::draw(a, d, (uint32_t)((first + run + (odd ? threads : 0)) / 2), number);
        made::template make<4>(a, number, word);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            got[w] = __shfl_xor_sync(0xffffffffu, odd ? word[w] : word[w + 4], 1);
            word[w] = odd ? got[w] : word[w];
            word[w + 4] = odd ? word[w + 4] : got[w];
        }
        if (whole) {
            store_run(a, to, word);
            store_run(a, to + (int64_t)threads * RNG_BYTES, word + 4);
        } else {
            constexpr int COUNT = shares<T, WAY>::COUNT;
            store<piece<sizeof(T)>>(a, (first + run) * COUNT, word);
            store<piece<sizeof(T)>>(a, (first + run + threads) * COUNT, word + 4);
        }
        run += 2 * threads;
        to += (int64_t)(2 * threads) * RNG_BYTES;
    }
}

// Elements of four bytes behind a boundary, in blocks of threads all of whose runs are y's: what the loop asks for
// again and again is known before it.
template <class T, int WAY, int WORDS, class D>
__device__ __forceinline__ void shifted_runs(const rng_vector_args &a, const D &d, uint32_t block,
                                             char *to)
{
    uint32_t step = blockDim.x / 32 * 31, bytes = step * RNG_BYTES;
    uint32_t before = lane_before(), turns = a.runs;
    wd_forget<0>(step);
    wd_forget<1>(bytes);
    wd_forget<2>(before);
    wd_forget<3>(turns);
#pragma unroll 1
    for (; turns > 0; --turns, block += step, to += bytes) {
        uint32_t word[4], shifted[4];
        make_run<T, WAY>(a, d, block, 0, word);
        take_over<WORDS, true>(word, before, 0, shifted);
        if (before != 31) store_run(a, to, shifted);
    }
}

template <class T, int WAY> __device__ __forceinline__ void flat(const rng_vector_args &a)
{
    typedef piece<sizeof(T)> P;
    typedef shares<T, WAY> in;
    // as the host's much_each() has it
    constexpr bool BOUND =
        WAY == CHANCE ? sizeof(T) == 1 : WAY == NORMAL && std::is_same<T, float>::value;
    const auto d = begin<std::conditional_t<BOUND, wd_prepared, wd_drawing>>(a);
    const uint32_t threads = blockDim.x, lane = threadIdx.x % 32;
    uint32_t word[8]; // what is stored is behind the first four
    if (a.shift == 0) {
        const int64_t first = (int64_t)blockIdx.x * (threads * a.runs); // of the block's runs
        if constexpr (sizeof(T) == 8 && WAY == NORMAL) {
            flat_by_two<T, WAY>(a, d, first);
            return;
        }
        char *to = static_cast<char *>(a.y) + (first + threadIdx.x) * RNG_BYTES;
        uint32_t block = (uint32_t)((first + threadIdx.x) / in::PARTS) * in::BLOCKS;
        const uint32_t part = threadIdx.x % in::PARTS, step = threads / in::PARTS * in::BLOCKS;
        if (blockIdx.x < a.whole_blocks) {
#pragma unroll 1
            for (uint32_t u = 0; u < a.runs; ++u, block += step, to += threads * RNG_BYTES) {
                make_run<T, WAY>(a, d, block, part, word + 4);
                store_run(a, to, word + 4);
            }
            return;
        }
#pragma unroll 1
        for (uint32_t run = threadIdx.x; run < threads * a.runs; run += threads, block += step) {
            if ((first + run) * in::COUNT >= a.count) return;
            make_run<T, WAY>(a, d, block, part, word + 4);
            store<P>(a, (first + run) * in::COUNT, word + 4);
        }
        return;
    }
    // a warp makes 32 runs of the index, of which the first one's are the last of the warp before
    int64_t base = ((int64_t)blockIdx.x * (threads * a.runs) + threadIdx.x) / 32 * 31 - 1;
    const uint32_t step = threads / 32 * 31;
    const int before = a.shift / (int)sizeof(T);
    const bool whole = blockIdx.x > 0 && blockIdx.x < a.whole_blocks;
    char *to = static_cast<char *>(a.y) - a.shift + (base + lane) * RNG_BYTES;
    if constexpr (BOUND && sizeof(T) == 4) {
        if (whole) {
            const uint32_t block = (uint32_t)(base + lane);
            if (a.shift == 4) shifted_runs<T, WAY, 3>(a, d, block, to);
            else if (a.shift == 8) shifted_runs<T, WAY, 2>(a, d, block, to);
            else shifted_runs<T, WAY, 1>(a, d, block, to);
            return;
        }
    }
#pragma unroll 1
    for (int u = 0; u < a.runs; ++u, base += step, to += step * RNG_BYTES) {
        const int64_t run = base + lane;
        uint32_t shifted[4];
        if (!whole && base * in::COUNT - before + in::COUNT >= a.count) return; // all of a warp
        make_run<T, WAY>(a, d, (uint32_t)(run >> in::PARTS_LOG2) * in::BLOCKS,
                         (uint32_t)run % in::PARTS, word + 4);
        take_from<(int)sizeof(T)>(word + 4, (uint32_t)(RNG_BYTES - a.shift), shifted);
        if (lane == 0) continue;
        if (whole) store_run(a, to, shifted);
        else store<P>(a, run * in::COUNT - before, shifted);
    }
}

// Normal numbers of 16 bits, by blocks of threads that stay: a thread makes a block of bits, 16 bytes, at a time.
template <class M>
__device__ __forceinline__ void aligned_normals(const rng_vector_args &a,
                                                const with_radii<wd_drawing> &d)
{
    constexpr int COUNT = WD_PHILOX_HALVES;
    const uint32_t all = gridDim.x * blockDim.x;
    const uint32_t whole = (uint32_t)(a.count / COUNT);
    uint32_t unit = blockIdx.x * blockDim.x + threadIdx.x, word[4];
    char *to = static_cast<char *>(a.y) + (int64_t)unit * RNG_BYTES;
#pragma unroll 1
    for (; unit < whole; unit += all, to += (int64_t)all * RNG_BYTES) {
        M::all(a, d, unit, word);
        store_run(a, to, word);
    }
    if (unit == whole && a.count % COUNT != 0) {
        M::all(a, d, unit, word);
        store<uint16_t>(a, (int64_t)unit * COUNT, word);
    }
}

// The same behind a boundary: a warp makes 32 runs of the index, of which the first one's are the last of the warp
// before.
template <class M>
__device__ __forceinline__ void shifted_normals(const rng_vector_args &a,
                                                const with_radii<wd_drawing> &d)
{
    constexpr int COUNT = WD_PHILOX_HALVES;
    const uint32_t all = gridDim.x * blockDim.x, lane = threadIdx.x % 32;
    const int before = a.shift / 2;
    uint32_t unit = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (uint32_t turn = 0; turn < a.turns; ++turn, unit += all) {
        const int64_t base = (int64_t)(unit / 32) * 31 - 1, at = base * COUNT - before;
        uint32_t word[4], shifted[4];
        if (at + COUNT >= a.count) return; // all of a warp
        M::all(a, d, (uint32_t)base + lane, word);
        take_from<2>(word, (uint32_t)(RNG_BYTES - a.shift), shifted);
        if (lane > 0) store<uint16_t>(a, at + lane * COUNT, shifted);
    }
}

template <bool NEAR>
__device__ __forceinline__ void normals(const rng_vector_args &a, with_radii<wd_drawing> &d)
{
    d.radii = radii_table<NEAR>();
    if (a.shift != 0) shifted_normals<normal_halves<NEAR>>(a, d);
    else aligned_normals<normal_halves<NEAR>>(a, d);
}

__device__ __forceinline__ void flat_normals(const rng_vector_args &a)
{
    auto d = begin<with_radii<wd_drawing>>(a);
    if (a.near) bring_radii();
    if (a.near) normals<true>(a, d);
    else normals<false>(a, d);
}

// A mask: a thread has a word, 32 elements. What is in a byte behind the last element stays.
__device__ __forceinline__ void flat_bits(const rng_vector_args &a)
{
    uint8_t *y = static_cast<uint8_t *>(a.y);
    const wd_drawing d = begin<wd_drawing>(a);
    const int64_t first = (int64_t)blockIdx.x * blockDim.x * RNG_RUNS + threadIdx.x;
#pragma unroll 1
    for (int u = 0; u < RNG_RUNS; ++u) {
        const int64_t at = (first + u * (int)blockDim.x) * RNG_WORD - a.shift;
        uint32_t bits = 0;
        if (at >= a.count) return;
#pragma unroll
        for (int b = 0; b < RNG_WORD / WD_PHILOX_HALVES; ++b) {
            uint32_t number[4];
            wd_draw_chances(d, a.threshold, (uint32_t)(at / WD_PHILOX_HALVES + b), number);
            bits |= (wd_bits_above(number) ^ 0xffu) << (WD_PHILOX_HALVES * b);
        }
        bits = (bits & (uint32_t)a.flip) ^ (uint32_t)a.none;
        if (at >= 0 && at + RNG_WORD <= a.count) {
            *reinterpret_cast<uint32_t *>(y + at / 8) = bits;
            continue;
        }
        for (int byte = 0; byte < RNG_WORD / 8; ++byte) {
            const int64_t from = at + 8 * byte;
            uint32_t mine = bits >> (8 * byte) & 0xffu;
            if (from < 0 || from >= a.count) continue;
            if (a.count - from < 8) {
                const uint32_t there = (1u << (a.count - from)) - 1u;
                mine = (mine & there) | (y[from / 8] & ~there);
            }
            y[from / 8] = (uint8_t)mine;
        }
    }
}

} // namespace

#endif
