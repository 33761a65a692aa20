// SPDX-License-Identifier: Apache-2.0
//
// What norm_clusters' kernels share: a thread's place in shares, its units on their way, and what the blocks of a
// cluster tell each other. A thread reads what it copied itself, so that blocks meet once a share: when all that a share
// has is looked at. Each block sends its sums to all; nobody waits for what it wrote to memory before.
#ifndef WD_OPS_NORM_CLUSTERS_DEVICE_CUH
#define WD_OPS_NORM_CLUSTERS_DEVICE_CUH

#include "gpu/device/hints.cuh"
#include "ops/norm/norm_clusters_args.h"
#include "ops/norm/norm_kept_device.cuh"

namespace {

constexpr uint32_t QUAD = NORM_CLUSTERS_QUAD;
constexpr uint32_t HELD = NORM_CLUSTERS_HELD;
constexpr uint32_t ACROSS = NORM_CLUSTERS_THREADS; // units from one of a thread to its next
constexpr uint32_t QUAD_UNITS = QUAD * ACROSS;     // of a block
constexpr uint32_t CLUSTER_WARPS = ACROSS / WARP;
constexpr uint32_t HALF = WARP / 2; // lanes of half a warp

// What blocks found, of this turn and the last.
struct __align__(128) cluster_room
{
    pair of_block[2][NORM_CLUSTERS_BLOCKS];
    float2 of_warp[2][CLUSTER_WARPS];
    uint64_t here[2];
};
static_assert(sizeof(cluster_room) % 128 == 0, "units behind it lie in sectors as in memory");

struct cluster_seat {
    uint32_t rank;
    uint32_t step;  // shares from one to the next
    uint32_t begin; // the thread's first unit in a share, and how many it has
    uint32_t count;
    uint32_t kept; // quads, of those of the block that all threads have
};

__device__ __forceinline__ cluster_seat cluster_seat_of(const norm_clusters_args &a)
{
    cluster_seat s;
    s.rank = blockIdx.x % a.cluster;
    s.step = gridDim.x / a.cluster;
    const uint32_t before = min(s.rank * a.part, a.units);
    const uint32_t length = min(a.part, a.units - before);
    s.begin = before + threadIdx.x;
    s.count = threadIdx.x < length ? (length - threadIdx.x - 1) / ACROSS + 1 : 0;
    s.kept = min(length / QUAD_UNITS, a.quads);
    return s;
}

// Where unit `u` of a share is in its tensor, which has less than 2^31.
__device__ __forceinline__ uint32_t place_of(const norm_clusters_args &a, uint32_t share,
                                             uint32_t u)
{
    return share * a.stride + u + wd_fastdiv_quotient(u, a.by_row) * a.jump;
}

// Where a quad of the thread is.
struct quad_places {
    uint32_t at[QUAD];
};
__device__ __forceinline__ quad_places places_of(const norm_clusters_args &a, const cluster_seat &s,
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
__device__ __forceinline__ quad_places places_after(const norm_clusters_args &a,
                                                    const cluster_seat &s, quad_places p)
{
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i) p.at[i] += s.step * a.stride;
    return p;
}

template <class T>
__device__ __forceinline__ void widen_unit(float (&to)[RUN<T>], const uint4 &unit)
{
    run<T> r;
    r.word[0] = unit.x, r.word[1] = unit.y, r.word[2] = unit.z, r.word[3] = unit.w;
    widen(to, r);
}

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

__device__ __forceinline__ void begin_cluster(cluster_room &room)
{
    if (threadIdx.x < 2) wd_counter_begin(&room.here[threadIdx.x]);
    wd_cluster_arrive();
}

__device__ __forceinline__ float sum_of_warp(float v)
{
#pragma unroll
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) v += __shfl_xor_sync(WHOLE_WARP, v, lanes);
    return v;
}

// Two sums over the share of a turn; all threads get them. They are added up in double from warps on.
__device__ __forceinline__ pair sums_of_cluster(const norm_clusters_args &a, uint32_t rank,
                                                cluster_room &room, uint32_t turn, float first,
                                                float second)
{
    static_assert(CLUSTER_WARPS == HALF && NORM_CLUSTERS_BLOCKS == HALF, "a lane has one");
    const uint32_t lane = threadIdx.x % HALF, copy = turn % 2;
    pair all = {0.0, 0.0};
    first = sum_of_warp(first);
    second = sum_of_warp(second);
    if (threadIdx.x % WARP == 0)
        room.of_warp[copy][threadIdx.x / WARP] = make_float2(first, second);
    if (turn == 0) wd_cluster_wait(); // nobody sends to who has not begun
    __syncthreads();
    if (threadIdx.x < WARP) {
        float4 bits;
        const float2 one = room.of_warp[copy][lane];
        all = {one.x, one.y};
        all = sum_of_lanes(all, HALF);
        memcpy(&bits, &all, sizeof bits);
        if (threadIdx.x == 0) wd_counter_expect(&room.here[copy], a.cluster * sizeof bits);
        if (threadIdx.x < a.cluster)
            wd_counter_send(&room.of_block[copy][rank], &room.here[copy], threadIdx.x, bits);
    }
    wd_counter_wait(&room.here[copy], turn / 2 & 1);
    all = {0.0, 0.0};
    if (lane < a.cluster) all = room.of_block[copy][lane];
    return sum_of_lanes(all, HALF);
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
