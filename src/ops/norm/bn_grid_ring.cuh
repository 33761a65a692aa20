// SPDX-License-Identifier: Apache-2.0
//
// The places of bn_grid: rounds of a thread's units on their way through shared memory, by parts of EACH
// rounds. The first parts stay in places of their own, since the cache has those that were read last. The others go
// round the last BN_GRID_AHEAD places: as soon as a part has been used, its place is asked for a later one, so that
// so many are under way, without a register. The walk that writes goes back from the last part.
#ifndef WD_OPS_NORM_BN_GRID_RING_CUH
#define WD_OPS_NORM_BN_GRID_RING_CUH

#include "ops/norm/bn_grid_device.cuh"

namespace {

// The next place of those from `first` on.
__device__ __forceinline__ uint32_t place_after(uint32_t place, uint32_t first, uint32_t places)
{
    return place + 1 == places ? first : place + 1;
}

// The place of `part`, where the part after it is at `place`.
__device__ __forceinline__ uint32_t place_before(const bn_grid_args &a, uint32_t place,
                                                 uint32_t part)
{
    return (place == a.stays && part >= a.stays ? a.parts : place) - 1;
}

// The 16 bytes that are copied with a thread's own where the next thread's are not what follows in memory.
__device__ __forceinline__ uint32_t edge_slot(const bn_grid_args &a, const spot &p)
{
    return blockDim.x + (p.ends_row ? p.lane : a.lanes + threadIdx.x / 32);
}

// Elements of 16 bytes, those of the tensor.
template <class T>
__device__ __forceinline__ void copy_elements(unsigned char *to, const T *from, int64_t first,
                                              int64_t total)
{
#pragma unroll 1
    for (int i = 0; i < UNIT<T>; ++i) {
        if (first + i >= 0 && first + i < total) reinterpret_cast<T *>(to)[i] = from[first + i];
    }
}

// Unit `at` of a tensor, on its way to a row of places at `row`. Not ALIGNED: the aligned 16 bytes in which
// it begins, and those in which the last one of neighbours ends.
template <class T, bool ALIGNED>
__device__ __forceinline__ void send(const bn_grid_args &a, const spot &p, unsigned char *row,
                                     const void *from, uint32_t at)
{
    unsigned char *to = row + threadIdx.x * BN_GRID_UNIT;
    const uint4 *first = static_cast<const uint4 *>(from) + at;
    const uint32_t behind = ALIGNED ? 0 : (uint32_t)(reinterpret_cast<uintptr_t>(from) % 16);
    if (ALIGNED || behind == 0) {
        wd_copy_async<BN_GRID_UNIT, false>(to, first);
        return;
    }
    // not what lies before and behind the tensor
    const uint4 *near =
        reinterpret_cast<const uint4 *>(reinterpret_cast<uintptr_t>(first) & ~(uintptr_t)15);
    const int64_t element = (int64_t)at * UNIT<T> - behind / (uint32_t)sizeof(T);
    const T *all = static_cast<const T *>(from);
    if (at > 0) wd_copy_async<BN_GRID_UNIT, false>(to, near);
    else copy_elements<T>(to, all, element, a.bn.total);
    if (!p.edge) return;
    to = row + edge_slot(a, p) * BN_GRID_UNIT;
    if (at + 1 < a.units) wd_copy_async<BN_GRID_UNIT, false>(to, near + 1);
    else copy_elements<T>(to, all, element + UNIT<T>, a.bn.total);
}

// What was sent, as the thread's unit.
template <class T, bool ALIGNED>
__device__ __forceinline__ void receive(const bn_grid_args &a, const spot &p, unit<T> &u,
                                        const unsigned char *row, const void *from)
{
    const uint4 *own = reinterpret_cast<const uint4 *>(row) + threadIdx.x;
    const uint32_t behind = ALIGNED ? 0 : (uint32_t)(reinterpret_cast<uintptr_t>(from) % 16);
    const uint4 v = *own;
    if (ALIGNED || behind == 0) {
        u.word[0] = v.x, u.word[1] = v.y, u.word[2] = v.z, u.word[3] = v.w;
        return;
    }
    const uint4 w = p.edge ? reinterpret_cast<const uint4 *>(row)[edge_slot(a, p)] : own[1];
    const uint32_t low[4] = {v.x, v.y, v.z, v.w}, high[4] = {w.x, w.y, w.z, w.w};
    wd_shift_words(u.word, low, high, behind);
}

// Until part number `turn` of those that were sent since is here; at most BN_GRID_AHEAD - 1 later ones are not.
// Then all threads of a warp see what one of them was sent.
template <bool ALIGNED> __device__ __forceinline__ void await_part(const bn_grid_args &a)
{
    if (a.shallow) wd_copies_wait<0>();
    else wd_copies_wait<BN_GRID_AHEAD - 1>();
    if (!ALIGNED) __syncwarp();
}

// Rows of places: of array `array` of round `e` of a part at `place`; those of z lie behind them all.
template <int ARRAYS, int EACH>
__device__ __forceinline__ unsigned char *row_of(const bn_grid_args &a, uint32_t place, int e,
                                                 int array)
{
    return memory() + BN_GRID_AREA + (place * EACH + e) * a.round_bytes +
           array * a.slots * BN_GRID_UNIT;
}

template <int EACH>
__device__ __forceinline__ unsigned char *row_of_z(const bn_grid_args &a, uint32_t place, int e)
{
    return memory() + BN_GRID_AREA + a.parts * EACH * a.round_bytes +
           (place * EACH + e) * a.slots * BN_GRID_UNIT;
}

// 0 for elements whose bit is 0.
template <class T> __device__ __forceinline__ void mask_unit(unit<T> &u, uint32_t bits)
{
    if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            // four bits to four bytes that are full of them
            const uint32_t four = ((bits >> 4 * i & 15u) * 0x204081u & 0x1010101u) * 0xffu;
            u.word[2 * i] &= __byte_perm(four, 0, 0x1100);
            u.word[2 * i + 1] &= __byte_perm(four, 0, 0x3322);
        }
    } else {
        wd_mask_run(u, bits);
    }
}

// The bits of unit `at`, from the lowest on, and others behind them.
template <class T> __device__ __forceinline__ uint32_t bits_at(const bn_grid_args &a, uint32_t at)
{
    constexpr uint32_t UNITS = BN_RUN / UNIT<T>; // of a byte
    return (uint32_t)a.bn.reserve[at / UNITS] >> at % UNITS * UNIT<T>;
}

} // namespace

#endif
