// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of bn_grid share: where a thread's units lie and how they come and go, and how
// sums of threads become sums of the group's blocks: in double, in an order that the cut fixes.
#ifndef WD_OPS_NORM_BN_GRID_DEVICE_CUH
#define WD_OPS_NORM_BN_GRID_DEVICE_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/cluster.cuh"
#include "gpu/device/grid.cuh"
#include "gpu/device/opaque.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/words.cuh"
#include "ops/norm/bn_device.cuh"
#include "ops/norm/bn_grid_args.h"

namespace {

template <class T> constexpr int UNIT = BN_GRID_UNIT / (int)sizeof(T);
template <class T> using unit = wd_run<T, UNIT<T>>;

// All elements of a unit; of bf16 by an instruction each.
template <class T>
__device__ __forceinline__ void widen_unit(acc<T> (&to)[UNIT<T>], const unit<T> &u)
{
#pragma unroll
    for (int i = 0; i < UNIT<T>; ++i) to[i] = wd_widen(u.get(i));
}
template <>
__device__ __forceinline__ void widen_unit<bfloat16>(float (&to)[8], const unit<bfloat16> &u)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        to[2 * i] = __uint_as_float(u.word[i] << 16);
        to[2 * i + 1] = __uint_as_float(u.word[i] & 0xffff0000u);
    }
}

struct spot {
    uint32_t group;
    uint32_t sample;
    uint32_t range; // of columns: the group, or that of its sample
    uint32_t block; // of the group
    uint32_t run;   // of the group's row
    uint32_t lane;
    uint32_t row;    // of round 0
    uint32_t slices; // rows from round to round
    uint32_t rounds; // of this thread
    uint32_t first;  // unit of the group's first row
    uint32_t base;   // of round 0, and from round to round, in one plane
    uint32_t step;
    bool active;
    bool copies; // its units are another thread's, or another block's, for the bits that follow
};

// LED: all tensors of x's shape lie off the boundaries by a.bn.lead elements, and have been moved back by them.
// SAMPLES: of as many batch norms at once.
template <bool LED, bool SAMPLES = false>
__device__ __forceinline__ spot spot_of(const bn_grid_args &a)
{
    spot p;
    const uint32_t copies = LED ? a.copying : 0, own = 32 - copies;
    const uint32_t index = threadIdx.x - threadIdx.x / 32 * copies;
    p.group = wd_fastdiv_quotient(blockIdx.x, a.by_blocks);
    p.block = blockIdx.x - p.group * a.blocks;
    p.sample = SAMPLES ? wd_fastdiv_quotient(p.group, a.by_ranges) : 0;
    p.range = SAMPLES ? p.group - p.sample * a.by_ranges.divisor : p.group;
    p.lane = wd_fastdiv_quotient(index, a.by_runs);
    p.run = index - p.lane * a.runs;
    p.first = p.range * a.stride + p.run;
    p.copies = LED && (threadIdx.x % 32 >= own || (copies > 0 && p.lane >= a.lanes));
    // the last group may have fewer columns
    p.active = index < a.lanes * a.runs + copies && p.first < a.pitch;
    p.row = p.block * a.lanes + p.lane;
    p.slices = a.blocks * a.lanes;
    // all rounds but the last one are full
    p.rounds = a.rounds - ((a.rounds - 1) * p.slices + p.row >= a.rows);
    if (SAMPLES) p.first += p.sample * a.sample;
    if (!p.active) p.first = p.row = p.slices = p.rounds = 0;
    p.base = p.first + p.row * a.width;
    p.step = p.slices * a.width;
    return p;
}

// A row's first unit, as the thread has them.
__device__ __forceinline__ uint32_t at_row(const bn_grid_args &a, uint32_t row)
{
    const uint32_t at = row * a.width;
    return a.jump == 0 ? at : at + wd_fastdiv_quotient(row, a.by_plane) * a.jump;
}

// The thread's unit of round r. JUMPS: rows may lie otherwise than evenly.
template <bool JUMPS = true>
__device__ __forceinline__ uint32_t at_round(const bn_grid_args &a, const spot &p, uint32_t r)
{
    const uint32_t at = p.base + r * p.step;
    if (!JUMPS || a.jump == 0) return at;
    return at + wd_fastdiv_quotient(p.row + r * p.slices, a.by_plane) * a.jump;
}

__device__ __forceinline__ unsigned char *memory(void)
{
    WD_DYNAMIC_SHARED(unsigned char, bytes);
    return bytes;
}

__device__ __forceinline__ double2 *area_of(void)
{
    return reinterpret_cast<double2 *>(memory());
}

// Unit `at` of a tensor. LED: of the first one what the tensor has.
template <class T, bool LED>
__device__ __forceinline__ void get(const bn_grid_args &a, unit<T> &to, const void *from,
                                    uint32_t at)
{
    const uint4 *first = static_cast<const uint4 *>(from) + at;
    if (LED && at == 0) {
#pragma unroll
        for (int i = 0; i < UNIT<T>; ++i) {
            if (i >= a.bn.lead) to.put(i, reinterpret_cast<const T *>(first)[i]);
        }
        return;
    }
    const uint4 v = *first;
    to.word[0] = v.x, to.word[1] = v.y, to.word[2] = v.z, to.word[3] = v.w;
}

// Stores a unit where it is `there`.
template <class T, bool LED>
__device__ __forceinline__ void put_unit(const bn_grid_args &a, void *to, const unit<T> &u,
                                         uint32_t at, bool there)
{
    T *first = reinterpret_cast<T *>(static_cast<uint4 *>(to) + at);
    if (!there) return;
    if (LED && at == 0) {
#pragma unroll
        for (int i = 0; i < UNIT<T>; ++i) {
            if (i >= a.bn.lead) first[i] = u.get(i);
        }
        return;
    }
    if (a.bn.streaming) u.store_streaming(first);
    else u.store(first);
}

// Likewise, not LED: the address is found once, whichever way it is stored.
template <class T>
__device__ __forceinline__ void put_whole_unit(const bn_grid_args &a, void *to, const unit<T> &u,
                                               uint32_t at, bool there)
{
    if (!there) return;
    T *first = reinterpret_cast<T *>(wd_opaque_global(static_cast<uint4 *>(to) + at));
    if (a.bn.streaming) u.store_streaming(first);
    else u.store(first);
}

// Bits of a unit to the byte of eight elements. LED: the byte has the end of one run of eight elements and the
// beginning of the next; what is behind whole rows is not written here.
template <class T, bool LED>
__device__ __forceinline__ void put_bits(const bn_grid_args &a, uint32_t bits, uint32_t at,
                                         bool there)
{
    constexpr uint32_t UNITS = BN_RUN / UNIT<T>; // of a byte
    uint8_t *to = a.bn.reserve + at / UNITS;
    if constexpr (LED) {
        uint32_t all = bits;
#pragma unroll
        for (uint32_t k = 1; k <= UNITS; ++k)
            all |= __shfl_down_sync(0xffffffffu, bits, k) << k * UNIT<T>;
        if (there && at % UNITS == 0 && at + UNITS < a.units) *to = (uint8_t)(all >> a.bn.lead);
    } else {
        bits <<= at % UNITS * UNIT<T>;
#pragma unroll
        for (uint32_t m = 1; m < UNITS; m *= 2) bits |= __shfl_xor_sync(0xffffffffu, bits, m);
        if (there && at % UNITS == 0) *to = (uint8_t)bits;
    }
}

// alpha * v + beta * old, to y.
template <class T, bool LED>
__device__ __forceinline__ void put_blended(const bn_grid_args &a, acc<T> (&v)[UNIT<T>],
                                            uint32_t at, bool there)
{
    using A = acc<T>;
    if (a.blends) {
        const scalars_of<A> s(a.bn);
        unit<T> old = {};
        if (s.beta != (A)0 && there) get<T, LED>(a, old, a.bn.y, at);
#pragma unroll
        for (int i = 0; i < UNIT<T>; ++i) {
            v[i] = s.alpha != (A)0 ? s.alpha * v[i] : (A)0;
            if (s.beta != (A)0) v[i] += s.beta * wd_widen(old.get(i));
        }
    }
    unit<T> u;
    wd_narrow_run(u, v);
    put_unit<T, LED>(a, a.bn.y, u, at, there);
}

template <class A> struct column_numbers {
    A mean, factor, base, slope;
};

// What threads hold in registers, one after another by the code of the first: the others move up.
template <class U, int N> __device__ __forceinline__ void move_up(U (&held)[N])
{
#pragma unroll
    for (int next = 1; next < N; ++next) held[next - 1] = held[next];
}

} // namespace

#endif
