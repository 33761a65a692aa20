// SPDX-License-Identifier: Apache-2.0
//
// How samples go in turns (bn_grid_turns_backward.cuh): blocks stay, and have one sample after the other. As a turn's outputs are
// written from their places (and registers), the next turn's parts are asked for in them, so that memory reads while it
// writes. The order of the places is the opposite in every other turn, since those that were asked for last are free last.
#ifndef WD_OPS_NORM_BN_GRID_TURNS_CUH
#define WD_OPS_NORM_BN_GRID_TURNS_CUH

#include "gpu/device/board_turns.cuh"
#include "ops/norm/bn_grid_ring.cuh"
#include "ops/norm/bn_grid_sets.cuh"

namespace {

// After a turn's words have been read, of which a block has `each`: in the last one.
__device__ __forceinline__ void leave_in_turn(const bn_grid_args &a, const wd_board_turns &b,
                                              bool last, uint32_t each)
{
    if (last && threadIdx.x == 0)
        wd_board_leave_told(a.board, make_uint4(b.asked, 0, 0, 0), 2 * gridDim.x * each);
}

// The thread's share of an item.
__device__ __forceinline__ lane_share item_of(const bn_grid_args &a)
{
    return share_of_lane(a.share_bits);
}

// The sums of an item over the block: all its lanes have them. Sums of threads are in single precision, so they lie in
// shared memory as such, half of each thread's at once.
template <class T>
__device__ __forceinline__ double2 sums_of_item(const bn_grid_args &a,
                                                const acc<T> (&value)[2 * UNIT<T>])
{
    constexpr int V = UNIT<T>;
    static_assert(BN_GRID_THREADS * V / 2 * sizeof(float2) <= BN_GRID_AREA, "");
    float2 *area = reinterpret_cast<float2 *>(memory());
    const lane_share own = item_of(a);
    const uint32_t place = wd_fastdiv_quotient(own.index, a.by_runs);
    double2 all = make_double2(0.0, 0.0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (half > 0) __syncthreads();
#pragma unroll
        for (int i = 0; i < V / 2; ++i) {
            const int of = 2 * (half * V / 2 + i);
            area[i * blockDim.x + threadIdx.x] = make_float2(value[of], value[of + 1]);
        }
        __syncthreads();
        if (own.index < a.items && place / (V / 2) == half) {
            const float2 *from = area + place % (V / 2) * blockDim.x + (own.index - place * a.runs);
#pragma unroll 4
            for (uint32_t r = own.share; r < a.lanes; r += 1u << a.share_bits) {
                const float2 one = from[r * a.runs];
                all = plus(all, make_double2(one.x, one.y));
            }
        }
    }
    return make_double2(sum_of_lanes(a.share_bits, all.x), sum_of_lanes(a.share_bits, all.y));
}

// Likewise over the team's blocks, in this turn.
template <class T>
__device__ __forceinline__ double2 sums_of_team(const bn_grid_args &a, const spot &p,
                                                const acc<T> (&value)[2 * UNIT<T>],
                                                wd_board_turns &b)
{
    constexpr int BATCH = 8;
    const lane_share own = item_of(a);
    const uint32_t shares = 1u << a.share_bits, bit = wd_board_bit(b.turn);
    const uint4 asked = wd_board_ask_in_turn(a.board, b);
    double2 all = sums_of_item<T>(a, value);
    uint64_t *words =
        wd_board_set(a.board, b, gridDim.x * a.items) + p.group * a.blocks * a.items + own.index;
    if (own.index < a.items && own.share == 0)
        wd_board_show_in_turn(words + p.block * a.items, (float)all.x, (float)all.y, bit);
    wd_board_clear_in_turn(a.board, asked);
    all = make_double2(0.0, 0.0);
    if (own.index < a.items) {
#pragma unroll 1
        for (uint32_t k = own.share; k < a.blocks; k += BATCH * shares) {
            float2 some[BATCH];
            const uint32_t left = (a.blocks - k + shares - 1) / shares;
            wd_board_see_in_turn(words + k * a.items, shares * a.items, left, bit, some);
#pragma unroll
            for (int i = 0; i < BATCH; ++i) all = plus(all, make_double2(some[i].x, some[i].y));
        }
    }
    b.turn += 1;
    return make_double2(sum_of_lanes(a.share_bits, all.x), sum_of_lanes(a.share_bits, all.y));
}

// What neighbours that share statistics show each other: a pair an item, where a turn's beginning had other things.
__device__ __forceinline__ double2 *shown_of(const bn_grid_args &a)
{
    return reinterpret_cast<double2 *>(memory() + a.shown);
}

// All threads show what they have; the last turn's have read all words then.
__device__ __forceinline__ void show_to_neighbours(const bn_grid_args &a, const wd_board_turns &b,
                                                   bool mine, double2 own, bool last)
{
    const lane_share s = item_of(a);
    if (mine && s.share == 0) shown_of(a)[s.index] = own;
    __syncthreads();
    leave_in_turn(a, b, last, a.items);
}

template <class T> __device__ __forceinline__ uint32_t first_neighbour(const bn_grid_args &a)
{
    const uint32_t item = item_of(a).index, place = wd_fastdiv_quotient(item, a.by_runs);
    const uint32_t column = (item - place * a.runs) * UNIT<T> + place;
    return wd_fastdiv_quotient(column, a.by_members) * a.members;
}

template <class T>
__device__ __forceinline__ double2 neighbour_at(const bn_grid_args &a, uint32_t column)
{
    return shown_of(a)[column % UNIT<T> * a.runs + column / UNIT<T>];
}

// Those of the thread's neighbours that are its share's.
template <class T, class F>
__device__ __forceinline__ void each_neighbour(const bn_grid_args &a, F f)
{
    const uint32_t first = first_neighbour<T>(a);
#pragma unroll 4
    for (uint32_t k = item_of(a).share; k < a.members; k += 1u << a.share_bits)
        f(neighbour_at<T>(a, first + k));
}

// Places of a turn: bytes of shared memory from `origin` on, `stride` apart, which is negative every other turn.
struct turns_places {
    uint32_t origin, stride;

    __device__ __forceinline__ unsigned char *at(uint32_t place) const
    {
        return memory() + (origin + place * stride);
    }
};

__device__ __forceinline__ turns_places places_of(const bn_grid_args &a, uint32_t each)
{
    return {BN_GRID_AREA, each * a.round_bytes};
}

__device__ __forceinline__ void turn_places(const bn_grid_args &a, turns_places &s)
{
    s.origin += (a.parts - 1) * s.stride;
    s.stride = 0u - s.stride;
}

} // namespace

#endif
