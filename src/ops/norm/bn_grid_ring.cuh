// SPDX-License-Identifier: Apache-2.0
//
// The places of bn_grid: rounds of a thread's units on their way through shared memory, by parts of EACH
// rounds. The first parts stay in places of their own, since the cache has those that were read last. The others go
// round the last BN_GRID_AHEAD places: as soon as a part has been used, its place is asked for a later one, so that
// so many are under way, without a register. The walk that writes goes back from the last part.
#ifndef WD_OPS_NORM_BN_GRID_RING_CUH
#define WD_OPS_NORM_BN_GRID_RING_CUH

#include "gpu/device/opaque.cuh"
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

// Unit `at` of a tensor, on its way to a row of places at `row`. LED: before a tensor's first element are zeros.
template <class T, bool LED>
__device__ __forceinline__ void send(const bn_grid_args &a, unsigned char *row, const void *from,
                                     uint32_t at)
{
    unsigned char *to = row + threadIdx.x * BN_GRID_UNIT;
    if (LED && at == 0) {
#pragma unroll 1
        for (uint32_t i = 0; i < UNIT<T>; ++i) {
            T none;
            wd_narrow(none, (acc<T>)0);
            reinterpret_cast<T *>(to)[i] = i < a.bn.lead ? none : static_cast<const T *>(from)[i];
        }
        return;
    }
    wd_copy_async<BN_GRID_UNIT, false>(to, static_cast<const uint4 *>(from) + at);
}

// What was sent, as the thread's unit.
template <class T> __device__ __forceinline__ void receive(unit<T> &u, const unsigned char *row)
{
    const uint4 v = reinterpret_cast<const uint4 *>(row)[threadIdx.x];
    u.word[0] = v.x, u.word[1] = v.y, u.word[2] = v.z, u.word[3] = v.w;
}

// Until part number `turn` of those that were sent since is here; at most BN_GRID_AHEAD - 1 later ones are not.
__device__ __forceinline__ void await_part(const bn_grid_args &a)
{
    if (a.shallow) wd_copies_wait<0>();
    else wd_copies_wait<BN_GRID_AHEAD - 1>();
}

// The first place. OPAQUE: of its address the compiler knows nothing, so that it does not find it anew for each part.
template <bool OPAQUE> __device__ __forceinline__ unsigned char *ring_of(void)
{
    return OPAQUE ? wd_opaque_shared(memory() + BN_GRID_AREA) : memory() + BN_GRID_AREA;
}

// Rows of places: of array `array` of round `e` of a part at `place`; those of z lie behind them all.
template <int ARRAYS, int EACH>
__device__ __forceinline__ unsigned char *row_of(const bn_grid_args &a, unsigned char *ring,
                                                 uint32_t place, int e, int array)
{
    return ring + (place * EACH + e) * a.round_bytes + array * a.slots * BN_GRID_UNIT;
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

// Where the bits of unit `at` begin: a byte of the reserve space, and a bit of it. LED: units are off the bytes by
// a.bn.lead elements; the bits of one may go on in the next byte, and those of the first begin before byte 0 (-1).
struct bit_place {
    uint32_t byte, bit;
};

template <class T, bool LED>
__device__ __forceinline__ bit_place bits_at(const bn_grid_args &a, uint32_t at)
{
    constexpr uint32_t UNITS = BN_RUN / UNIT<T>; // of a byte
    bit_place p = {at / UNITS, at % UNITS * UNIT<T>};
    if (LED) {
        p.byte -= p.bit < a.bn.lead;
        p.bit = (p.bit - a.bn.lead) % BN_RUN;
    }
    return p;
}

// Bytes of a thread for them: aligned words.
template <bool LED> constexpr uint32_t BIT_BYTES = LED ? 8 : 4;

// The bits of unit `at`, with the aligned four bytes around the byte (LED: and the next four, where it is their last
// one), behind a part's x and dy.
template <class T, bool LED>
__device__ __forceinline__ void send_bits(const bn_grid_args &a, unsigned char *row, uint32_t at)
{
    constexpr uint32_t OTHERS = 3; // bytes of four
    constexpr uint32_t BEHIND = LED ? OTHERS + 4 : OTHERS;
    unsigned char *to = row + 2 * a.slots * BN_GRID_UNIT + threadIdx.x * BIT_BYTES<LED>;
    const uint32_t byte = bits_at<T, LED>(a, at).byte;
    const uint32_t bytes =
        (uint32_t)((LED ? a.bn.total - a.bn.lead + (BN_RUN - 1) : a.bn.total) / BN_RUN);
    const uint8_t *from = a.bn.reserve + (LED ? (int64_t)(int32_t)byte : (int64_t)byte);
    const uint32_t place = (uint32_t) reinterpret_cast<uintptr_t>(from) % 4;
    // neither of the first three bytes nor of the last ones
    if (byte - OTHERS < max(bytes, OTHERS + BEHIND) - (OTHERS + BEHIND)) {
        wd_copy_async<4, true>(to, from - place);
        if (LED && place == OTHERS) wd_copy_async<4, true>(to + 4, from + 1);
    } else {
        if (!LED || byte < bytes) to[place] = *from;
        if (LED && byte + 1 < bytes) to[place + 1] = from[1];
    }
}

// The bits of unit `at`, from the lowest bit on, and others behind them.
template <class T, bool LED>
__device__ __forceinline__ uint32_t receive_bits(const bn_grid_args &a, const unsigned char *row,
                                                 uint32_t at)
{
    const unsigned char *to = row + 2 * a.slots * BN_GRID_UNIT + threadIdx.x * BIT_BYTES<LED>;
    const bit_place p = bits_at<T, LED>(a, at);
    const uint32_t place = ((uint32_t) reinterpret_cast<uintptr_t>(a.bn.reserve) + p.byte) % 4;
    if (!LED) return (uint32_t)to[place] >> p.bit;
    return (uint32_t)(*reinterpret_cast<const uint64_t *>(to) >> (place * 8 + p.bit));
}

// Likewise from the reserve space itself.
template <class T, bool LED>
__device__ __forceinline__ uint32_t bits_of_unit(const bn_grid_args &a, uint32_t at)
{
    const bit_place p = bits_at<T, LED>(a, at);
    if (!LED) return (uint32_t)a.bn.reserve[p.byte] >> p.bit;
    const uint32_t bytes = (uint32_t)((a.bn.total - a.bn.lead + (BN_RUN - 1)) / BN_RUN);
    uint32_t both = p.byte < bytes ? a.bn.reserve[p.byte] : 0u;
    if (p.byte + 1 < bytes) both |= (uint32_t)a.bn.reserve[p.byte + 1] << BN_RUN;
    return both >> p.bit;
}

} // namespace

#endif
