// SPDX-License-Identifier: Apache-2.0
//
// Sums of samples whose channels share statistics: neighbours that do are a set, of which a unit has channels of two at
// most, so that a thread joins its columns before any others are asked. Blocks show each other what sets have, not
// columns, and a set's lanes do all that follows by themselves.
#ifndef WD_OPS_NORM_BN_GRID_SETS_CUH
#define WD_OPS_NORM_BN_GRID_SETS_CUH

#include "gpu/device/opaque.cuh"
#include "ops/norm/bn_grid_shares.cuh"
#include "ops/norm/bn_grid_sums.cuh"

namespace {

// Words of other blocks that a lane asks for at once: registers are full of what threads hold.
constexpr int SET_BATCH = 5;

// The thread's share of a set.
__device__ __forceinline__ lane_share set_of(const bn_grid_args &a)
{
    return share_of_lane(a.set_bits);
}

// The set of a unit's first column, and which columns from there on are the next one's.
struct unit_sets {
    uint32_t first, next;
};

template <class T>
__device__ __forceinline__ unit_sets sets_of_unit(const bn_grid_args &a, uint32_t run)
{
    const uint32_t set = wd_fastdiv_quotient(run * UNIT<T>, a.by_members);
    return {set, (set + 1) * a.members - run * UNIT<T>};
}

// The set of an item.
template <class T>
__device__ __forceinline__ uint32_t set_of_item(const bn_grid_args &a, uint32_t item)
{
    const uint32_t place = wd_fastdiv_quotient(item, a.by_runs);
    return wd_fastdiv_quotient((item - place * a.runs) * UNIT<T> + place, a.by_members);
}

// The first channel of a set, which the last team may not have.
__device__ __forceinline__ uint32_t channel_of_set(const bn_grid_args &a, const spot &p,
                                                   uint32_t set)
{
    return p.range * a.items + set * a.members;
}

// An element near a set's others: the middle one of three, from three of its columns. All blocks have the same.
template <class T>
__device__ __forceinline__ acc<T> pivot_of_set(const bn_grid_args &a, const spot &p, uint32_t set)
{
    const T *x = static_cast<const T *>(a.bn.x);
    const uint32_t origin = p.range * a.stride + p.sample * a.sample;
    acc<T> some[3];
#pragma unroll
    for (uint32_t k = 0; k < 3; ++k) {
        const uint32_t column = set * a.members + k * (a.members - 1) / 2;
        const uint32_t row = a.all_rows / 8 * (1 + 3 * k);
        some[k] = wd_widen(x[(int64_t)(origin + row * a.width) * UNIT<T> + column]);
    }
    return wd_middle_of(some[0], some[1], some[2]);
}

// The block's sums of the lane's set. An entry's neighbours are rows, one more than a multiple of two, so that lanes
// meet in no bank.
template <class T>
__device__ __forceinline__ double2 sums_of_set(const bn_grid_args &a, const spot &p,
                                               const unit_pairs<acc<T>> &own)
{
    using A = acc<T>;
    constexpr uint32_t V = UNIT<T>;
    unit_pairs<A> *entries = reinterpret_cast<unit_pairs<A> *>(memory());
    const lane_share s = set_of(a);
    const uint32_t pitch = a.lanes | 1;
    double2 all = make_double2(0.0, 0.0);
    if (p.lane < a.lanes) entries[p.run * pitch + p.lane] = own;
    __syncthreads();
    if (s.index < a.sets) {
        const uint32_t begin = s.index * a.members, end = (begin + a.members - 1) / V + 1;
#pragma unroll 1
        for (uint32_t row = s.share; row < a.lanes; row += 1u << a.set_bits) {
#pragma unroll 4
            for (uint32_t u = begin / V; u < end; ++u) {
                const A *of = entries[u * pitch + row].of + (u * V < begin ? 2 : 0);
                all = plus(all, make_double2(of[0], of[1]));
            }
        }
    }
    return sum_of_lanes(a.set_bits, all);
}

// A set's words on a bank of the board, one a block.
__device__ __forceinline__ uint64_t *words_of_set(const bn_grid_args &a, const spot &p,
                                                  uint64_t *bank)
{
    // found anew in every turn, for registers are few
    return bank + (wd_opaque(p.group) * a.sets + set_of(a).index) * a.blocks;
}

// see(first word, step, count, numbers): the sums of all blocks.
template <class F>
__device__ __forceinline__ double2 sums_of_blocks(const bn_grid_args &a, uint64_t *words, F see)
{
    const lane_share s = set_of(a);
    const uint32_t lanes = 1u << a.set_bits;
    double2 all = make_double2(0.0, 0.0);
    if (s.index < a.sets) {
#pragma unroll 1
        for (uint32_t k = s.share; k < a.blocks; k += SET_BATCH * lanes) {
            float2 some[SET_BATCH];
            see(words + k, lanes, (a.blocks - k + lanes - 1) / lanes, some);
#pragma unroll
            for (int i = 0; i < SET_BATCH; ++i) all = plus(all, make_double2(some[i].x, some[i].y));
        }
    }
    return sum_of_lanes(a.set_bits, all);
}

} // namespace

#endif
