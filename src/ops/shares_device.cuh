// SPDX-License-Identifier: Apache-2.0
//
// What kernels of shares that clusters hold (shares.h) have in common: a thread's place in shares, its units on their way, and what the
// blocks of a cluster tell each other. A thread reads what it copied itself, so that blocks meet once a share: when all that a share
// has is looked at. Each block sends what it found to all; nobody waits for what it wrote to memory before.
// Whoever includes this has said before how many threads a block has: SHARE_THREADS.
#ifndef WD_OPS_SHARES_DEVICE_CUH
#define WD_OPS_SHARES_DEVICE_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/barrier.cuh"
#include "gpu/device/cluster.cuh"
#include "gpu/device/hints.cuh"
#include "ops/shares.h"

namespace {

constexpr uint32_t QUAD = WD_SHARE_QUAD;
constexpr uint32_t HELD = WD_SHARE_HELD;
constexpr uint32_t ACROSS = SHARE_THREADS;     // units from one of a thread to its next
constexpr uint32_t QUAD_UNITS = QUAD * ACROSS; // of a block
constexpr uint32_t SHARE_WARPS = ACROSS / 32;
constexpr uint32_t HALF = 16; // lanes of half a warp

// What blocks found, of this turn and the last: a P of sixteen bytes each, and two numbers of each warp. Of teams, what the board's head was.
template <class P> struct __align__(128) share_room
{
    P of_block[2][WD_SHARE_BLOCKS];
    float2 of_warp[2][SHARE_WARPS];
    uint64_t here[2];
    uint32_t asked;
};

struct share_seat {
    uint32_t rank;
    uint32_t step;  // shares from one to the next
    uint32_t begin; // the thread's first unit in a share, and how many it has
    uint32_t count;
    uint32_t kept; // quads, of those of the block that all threads have
};

__device__ __forceinline__ share_seat share_seat_of(const wd_share_args &a)
{
    share_seat s;
    s.rank = blockIdx.x % a.cluster;
    s.step = gridDim.x / a.cluster;
    const uint32_t before = min(s.rank * a.part, a.units);
    const uint32_t length = min(a.part, a.units - before);
    s.begin = before + threadIdx.x;
    s.count = threadIdx.x < length ? (length - threadIdx.x - 1) / ACROSS + 1 : 0;
    s.kept = min(length / QUAD_UNITS, a.quads);
    return s;
}

// Where a quad of the thread is.
struct quad_places {
    uint32_t at[QUAD];
};

// A quad of the thread from memory. AGAIN: it is read once more. Not WHOLE: as far as there is one, zeros for others.
template <bool AGAIN, bool WHOLE>
__device__ __forceinline__ void load_quad(uint4 (&to)[QUAD], const void *tensor,
                                          const quad_places &p, uint32_t quad = 0,
                                          uint32_t count = 0)
{
    const uint4 *from = static_cast<const uint4 *>(tensor);
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i) {
        if (WHOLE || quad * QUAD + i < count)
            to[i] = AGAIN ? wd_load_again(from + p.at[i]) : wd_load_once(from + p.at[i]);
        else to[i] = make_uint4(0, 0, 0, 0);
    }
}

__device__ __forceinline__ void take_quad(uint4 (&to)[QUAD], const uint4 *places)
{
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i) to[i] = places[i * ACROSS];
}

// A quad of the thread on its way to shared memory.
__device__ __forceinline__ void copy_quad(uint4 *places, const void *tensor, const quad_places &p)
{
    const uint4 *from = static_cast<const uint4 *>(tensor);
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i)
        wd_copy_async<16, false>(places + i * ACROSS, from + p.at[i]);
}

// For a quad that `later` others were asked for after; of more than four for some of these too.
__device__ __forceinline__ void wait_for_quad(uint32_t later)
{
    if (later >= 4) wd_copies_wait<4>();
    else if (later == 3) wd_copies_wait<3>();
    else if (later == 2) wd_copies_wait<2>();
    else if (later == 1) wd_copies_wait<1>();
    else wd_copies_wait<0>();
}

// Of clusters; a block that has its shares by itself has nobody to begin with.
template <class P>
__device__ __forceinline__ void begin_share(const wd_share_args &a, share_room<P> &room)
{
    if (a.cluster == 1) return;
    if (threadIdx.x == 0) {
        wd_counter_begin(&room.here[0]);
        wd_counter_begin(&room.here[1]);
    }
    wd_cluster_arrive();
}

// What the share of a turn comes to, of what each warp has of it; all threads get it. F has P none(), P of(float2) and
// P over(P, lanes): that of neighbouring lanes, a power of two.
template <class F, class P>
__device__ __forceinline__ P all_of_share(uint32_t cluster, uint32_t rank, share_room<P> &room,
                                          uint32_t turn, float2 of_warp)
{
    static_assert(SHARE_WARPS <= HALF && WD_SHARE_BLOCKS == HALF, "a lane has one");
    static_assert(sizeof(P) == sizeof(float4), "what is sent at once");
    const uint32_t lane = threadIdx.x % HALF, copy = turn % 2;
    P all;
    if (threadIdx.x % 32 == 0) room.of_warp[copy][threadIdx.x / 32] = of_warp;
    if (turn == 0 && cluster > 1) wd_cluster_wait(); // nobody sends to who has not begun
    __syncthreads();
    if (cluster == 1) return F::over(F::of(room.of_warp[copy][lane % SHARE_WARPS]), SHARE_WARPS);
    if (threadIdx.x < 32) {
        float4 bits;
        all = F::over(F::of(room.of_warp[copy][lane % SHARE_WARPS]), SHARE_WARPS);
        memcpy(&bits, &all, sizeof bits);
        if (threadIdx.x == 0) wd_counter_expect(&room.here[copy], cluster * sizeof bits);
        if (threadIdx.x < cluster)
            wd_counter_send(&room.of_block[copy][rank], &room.here[copy], threadIdx.x, bits);
    }
    wd_counter_wait(&room.here[copy], turn / 2 & 1);
    all = F::none();
    if (lane < cluster) all = room.of_block[copy][lane];
    return F::over(all, HALF);
}

} // namespace

#endif
