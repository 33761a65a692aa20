// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of bn_grid share: where a thread's units lie and how they come and go, and how
// sums of threads become sums of the group's blocks: in double, in an order that the cut fixes.
#ifndef WD_OPS_NORM_BN_GRID_DEVICE_CUH
#define WD_OPS_NORM_BN_GRID_DEVICE_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/cluster.cuh"
#include "gpu/device/grid.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/shifted.cuh"
#include "gpu/device/words.cuh"
#include "ops/norm/bn_device.cuh"
#include "ops/norm/bn_grid_args.h"

namespace {

template <class T> constexpr int UNIT = BN_GRID_UNIT / (int)sizeof(T);
template <class T> using unit = wd_run<T, UNIT<T>>;

struct spot {
    uint32_t group;
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
    bool ends_row; // its unit is the last of the group's row
    bool edge;     // or of the warp's
};

__device__ __forceinline__ spot spot_of(const bn_grid_args &a)
{
    spot p;
    p.group = wd_fastdiv_quotient(blockIdx.x, a.by_blocks);
    p.block = blockIdx.x - p.group * a.blocks;
    p.lane = wd_fastdiv_quotient(threadIdx.x, a.by_runs);
    p.run = threadIdx.x - p.lane * a.runs;
    p.first = p.group * a.stride + p.run;
    // the last group may have fewer columns
    p.active = p.lane < a.lanes && p.first < a.pitch;
    p.row = p.block * a.lanes + p.lane;
    p.slices = a.blocks * a.lanes;
    // all rounds but the last one are full
    p.rounds = a.rounds - ((a.rounds - 1) * p.slices + p.row >= a.rows);
    p.ends_row = p.run + 1 == a.runs || p.first + 1 == a.pitch;
    p.edge = p.ends_row || threadIdx.x % 32 == 31;
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

// The thread's unit of round r.
__device__ __forceinline__ uint32_t at_round(const bn_grid_args &a, const spot &p, uint32_t r)
{
    const uint32_t at = p.base + r * p.step;
    if (a.jump == 0) return at;
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

// Unit `at` of a tensor. ALIGNED: pointers are to 16 bytes.
template <class T, bool ALIGNED>
__device__ __forceinline__ void get(const bn_grid_args &a, unit<T> &to, const void *from,
                                    uint32_t at)
{
    const uint4 *first = static_cast<const uint4 *>(from) + at;
    const uint32_t behind = ALIGNED ? 0 : (uint32_t)(reinterpret_cast<uintptr_t>(from) % 16);
    if (behind == 0) {
        const uint4 v = *first;
        to.word[0] = v.x, to.word[1] = v.y, to.word[2] = v.z, to.word[3] = v.w;
        return;
    }
    // not what lies before and behind the tensor
    if (at > 0 && at + 1 < a.units) {
        uint32_t low[4], high[4];
        wd_load_around(low, high, first);
        wd_shift_words(to.word, low, high, behind);
        return;
    }
#pragma unroll
    for (int i = 0; i < UNIT<T>; ++i) to.put(i, reinterpret_cast<const T *>(first)[i]);
}

// Stores a unit where it is `there`. Not ALIGNED: all threads of a warp come here together; a thread
// stores the 16 aligned bytes that its unit's end and the next thread's beginning are in, if that is
// its neighbour in memory (`joined`), and what is left alone of its own.
template <class T, bool ALIGNED>
__device__ __forceinline__ void put_unit(const bn_grid_args &a, void *to, const unit<T> &u,
                                         uint32_t at, bool there, bool joined)
{
    constexpr int V = UNIT<T>;
    T *first = reinterpret_cast<T *>(static_cast<uint4 *>(to) + at);
    const uint32_t behind = ALIGNED ? 0 : (uint32_t)(reinterpret_cast<uintptr_t>(to) % 16);
    if (behind == 0) {
        if (!there) return;
        if (a.bn.streaming) u.store_streaming(first);
        else u.store(first);
        return;
    }
    const uint32_t lane = threadIdx.x % 32;
    uint32_t next[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) next[i] = __shfl_down_sync(0xffffffffu, u.word[i], 1);
    const bool next_there = __shfl_down_sync(0xffffffffu, (uint32_t)there, 1);
    const bool shares = there && next_there && joined && lane < 31;
    const bool shared = __shfl_up_sync(0xffffffffu, (uint32_t)shares, 1) && lane > 0;
    const int head = (int)((16 - behind) / sizeof(T)); // elements in the 16 bytes before
    if (shares) {
        unit<T> both;
        wd_shift_words(both.word, u.word, next, 16 - behind);
        both.store(first + head);
    }
    if (!there) return;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        if (i < head ? !shared : !shares) first[i] = u.get(i);
    }
}

// Bits of a unit to and from the byte of eight elements.
template <class T>
__device__ __forceinline__ void put_bits(uint8_t *reserve, uint32_t bits, uint32_t at, bool there)
{
    constexpr uint32_t UNITS = BN_RUN / UNIT<T>; // of a byte
    bits <<= at % UNITS * UNIT<T>;
#pragma unroll
    for (uint32_t m = 1; m < UNITS; m *= 2) bits |= __shfl_xor_sync(0xffffffffu, bits, m);
    if (there && at % UNITS == 0) reserve[at / UNITS] = (uint8_t)bits;
}

// Whether the next thread's unit of a round follows this one's in memory.
__device__ __forceinline__ bool is_joined(const bn_grid_args &a, const spot &p)
{
    if (p.run + 1 < a.runs) return true;
    return a.runs == a.pitch && p.lane + 1 < a.lanes;
}

// alpha * v + beta * old, to y.
template <class T, bool ALIGNED>
__device__ __forceinline__ void put_blended(const bn_grid_args &a, acc<T> (&v)[UNIT<T>],
                                            uint32_t at, bool there, bool joined)
{
    using A = acc<T>;
    if (a.blends) {
        const scalars_of<A> s(a.bn);
        unit<T> old = {};
        if (s.beta != (A)0 && there) get<T, ALIGNED>(a, old, a.bn.y, at);
        if (!ALIGNED) __syncwarp();
#pragma unroll
        for (int i = 0; i < UNIT<T>; ++i) {
            v[i] = s.alpha != (A)0 ? s.alpha * v[i] : (A)0;
            if (s.beta != (A)0) v[i] += s.beta * wd_widen(old.get(i));
        }
    }
    unit<T> u;
    wd_narrow_run(u, v);
    put_unit<T, ALIGNED>(a, a.bn.y, u, at, there, joined);
}

template <class A> struct column_numbers {
    A mean, factor, base, slope;
};

} // namespace

#endif
