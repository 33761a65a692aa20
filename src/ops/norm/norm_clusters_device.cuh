// SPDX-License-Identifier: Apache-2.0
//
// What norm_clusters' kernels share beyond what those of all shares do (ops/shares_device.cuh): where a share's units are, and sums.
#ifndef WD_OPS_NORM_CLUSTERS_DEVICE_CUH
#define WD_OPS_NORM_CLUSTERS_DEVICE_CUH

#include "gpu/device/board_turns.cuh"
#include "ops/norm/norm_clusters_args.h"
#include "ops/norm/norm_kept_device.cuh"

// Blocks of a processor.
#ifndef NORM_CLUSTERS_AT_ONCE
#define NORM_CLUSTERS_AT_ONCE 1
#endif
enum { SHARE_THREADS = WD_SHARE_THREADS / NORM_CLUSTERS_AT_ONCE };
#include "ops/shares_device.cuh"

namespace {

using cluster_room = share_room<pair>;
static_assert(sizeof(cluster_room) % 128 == 0, "units behind it lie in sectors as in memory");

// Where unit `u` of a share is in its tensor, which has less than 2^31.
__device__ __forceinline__ uint32_t place_of(const norm_clusters_args &a, uint32_t share,
                                             uint32_t u)
{
    return share * a.stride + u + wd_fastdiv_quotient(u, a.by_row) * a.jump;
}

__device__ __forceinline__ quad_places places_of(const norm_clusters_args &a, const share_seat &s,
                                                 uint32_t share, uint32_t quad)
{
    quad_places p;
    const uint32_t u = s.begin + quad * QUAD_UNITS;
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i) p.at[i] = share * a.stride + u + i * ACROSS;
    if (a.jump == 0) return p;
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i)
        p.at[i] += wd_fastdiv_quotient(u + i * ACROSS, a.by_row) * a.jump;
    return p;
}

// The same quad of the share that comes next.
__device__ __forceinline__ quad_places places_after(const norm_clusters_args &a, uint32_t step,
                                                    quad_places p)
{
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i) p.at[i] += step * a.stride;
    return p;
}

template <class T>
__device__ __forceinline__ void widen_unit(float (&to)[RUN<T>], const uint4 &unit)
{
    run<T> r;
    r.word[0] = unit.x, r.word[1] = unit.y, r.word[2] = unit.z, r.word[3] = unit.w;
    widen(to, r);
}

__device__ __forceinline__ float sum_of_warp(float v)
{
#pragma unroll
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) v += __shfl_xor_sync(WHOLE_WARP, v, lanes);
    return v;
}

// Two sums over the share of a turn; all threads get them. They are added up in double from warps on.
struct cluster_sums {
    static __device__ __forceinline__ pair none()
    {
        return {0.0, 0.0};
    }
    static __device__ __forceinline__ pair of(float2 sums)
    {
        return {sums.x, sums.y};
    }
    static __device__ __forceinline__ pair over(const pair &p, uint32_t lanes)
    {
        return sum_of_lanes(p, lanes);
    }
};

// Likewise over a team, by the board: a block shows a word a turn, in single precision. `last`: it has no more turns.
__device__ __forceinline__ pair sums_of_team(const norm_clusters_args &a, uint32_t rank,
                                             cluster_room &room, uint32_t turn, float2 of_warp,
                                             bool last)
{
    const uint32_t lane = threadIdx.x % WARP, copy = turn % 2;
    wd_board_turns board = {0, turn};
    if (turn == 0) {
        const uint4 asked = wd_board_ask_in_turn(a.board, board);
        if (threadIdx.x == 0) room.asked = board.asked;
        wd_board_clear_in_turn(a.board, asked);
    }
    if (lane == 0) room.of_warp[copy][threadIdx.x / WARP] = of_warp;
    __syncthreads();
    if (threadIdx.x < WARP) {
        const uint32_t bit = wd_board_bit(turn);
        board.asked = room.asked;
        uint64_t *words = wd_board_set(a.board, board, gridDim.x) + (blockIdx.x - rank);
        pair all = cluster_sums::over(cluster_sums::of(room.of_warp[copy][lane % SHARE_WARPS]),
                                      SHARE_WARPS);
        if (lane == 0)
            wd_board_show_in_turn(words + rank, (float)all.first, (float)all.second, bit);
        all = cluster_sums::none();
#pragma unroll 1
        for (uint32_t block = lane; block < a.cut.cluster; block += WARP) {
            float2 one[1];
            wd_board_see_in_turn(words + block, 0, 1, bit, one);
            all = {all.first + one[0].x, all.second + one[0].y};
        }
        all = cluster_sums::over(all, WARP);
        if (lane == 0) room.of_block[copy][0] = all;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        wd_board_leave(a.board, make_uint4(room.asked, 0, 0, 0), 2 * gridDim.x);
    return room.of_block[copy][0];
}

__device__ __forceinline__ pair sums_of_cluster(const norm_clusters_args &a, uint32_t rank,
                                                cluster_room &room, uint32_t turn, float first,
                                                float second, bool last)
{
    first = sum_of_warp(first);
    second = sum_of_warp(second);
    // asked in kernels of two blocks a processor, too, which have no teams: without it nvcc gives `forward`'s old averages to registers that addresses of the
    // next share's first quads have, and a warp waits for these quads (GROUPS.md; H200, us: instance training 2x32x96x96x96 67.1 is 74.6)
    if (a.board) return sums_of_team(a, rank, room, turn, make_float2(first, second), last);
    return all_of_share<cluster_sums>(a.cut.cluster, rank, room, turn, make_float2(first, second));
}

// To memory, past the caches that keep what is read again.
template <class T>
__device__ __forceinline__ void put_unit(void *tensor, uint32_t at, const float (&value)[RUN<T>])
{
    run<T> out;
    narrow(out, value);
    out.store_streaming(static_cast<T *>(tensor) + (int64_t)at * RUN<T>);
}

} // namespace

#endif
