// SPDX-License-Identifier: Apache-2.0
//
// What the norm_ring kernels share: where a thread is, the ring of runs on their way, and what the
// blocks of a team post to each other.
#ifndef WD_OPS_NORM_RING_DEVICE_CUH
#define WD_OPS_NORM_RING_DEVICE_CUH

#include "gpu/device/post.cuh"
#include "ops/norm/norm_kept_device.cuh"
#include "ops/norm/norm_ring_args.h"

namespace {

constexpr uint32_t BATCH = NORM_RING_BATCH;
constexpr uint32_t COPIES = NORM_RING_COPIES;

struct ring_seat {
    uint32_t team;
    uint32_t rank;
    uint32_t row;     // of the block's rows at a time
    uint32_t place;   // run of the row
    uint32_t begin;   // row of the panel, the block's first
    uint32_t all;     // rows of the block
    uint32_t slots;   // runs of the thread in a panel
    uint32_t batches; // of the block's threads in a panel, at least one
    int64_t step;     // elements from one run of a thread to the next
};

__device__ __forceinline__ ring_seat ring_seat_of(const norm_ring_args &a)
{
    ring_seat s;
    s.team = blockIdx.x / a.blocks;
    s.rank = blockIdx.x - s.team * a.blocks;
    s.row = threadIdx.x / a.across;
    s.place = threadIdx.x - s.row * a.across;
    s.begin = min(s.rank * a.part, a.height);
    s.all = min(a.part, a.height - s.begin);
    s.slots = s.row < a.rows && s.row < s.all ? (s.all - s.row - 1) / a.rows + 1 : 0;
    s.batches = max((s.all + a.rows * BATCH - 1) / (a.rows * BATCH), 1u);
    s.step = (int64_t)a.rows * a.width;
    return s;
}

// The thread's first run of a panel.
template <class T>
__device__ __forceinline__ int64_t ring_base(const norm_ring_args &a, const ring_seat &s,
                                             uint32_t panel)
{
    return ((int64_t)panel * a.height + s.begin + s.row) * a.width + s.place * RUN<T>;
}

// ---- The ring ----

// What is asked for next: runs of a panel, and their place.
struct ring_ahead {
    int64_t at; // elements
    uint32_t panel;
    uint32_t slot;
    uint32_t place;
};

// A batch of both tensors, or of one; none where panels have ended, so that batches can be counted.
template <class T, int TENSORS>
__device__ __forceinline__ void ask(const norm_ring_args &a, const ring_seat &s, uint4 *ring,
                                    ring_ahead &next)
{
    if (next.panel < a.panels) {
        uint4 *to = ring + next.place * blockDim.x + threadIdx.x;
#pragma unroll
        for (uint32_t i = 0; i < BATCH; ++i) {
            if (next.slot + i >= s.slots) break;
            const int64_t at = next.at + i * s.step;
            fetch(to + i * blockDim.x, static_cast<const T *>(a.x) + at, a.runs != 0, 0, RUN<T>);
            if constexpr (TENSORS == 2) {
                fetch(to + (a.ring + i) * blockDim.x, static_cast<const T *>(a.dy) + at,
                      a.runs != 0, 0, RUN<T>);
            }
        }
        next.at += BATCH * s.step;
        next.slot += BATCH;
        if (next.slot >= s.batches * BATCH) {
            next.slot = 0;
            next.panel += a.teams;
            next.at = ring_base<T>(a, s, next.panel);
        }
    }
    next.place += BATCH;
    if (next.place == a.ring) next.place = 0;
    wd_copies_end();
}

// Until at most so many batches are under way.
__device__ __forceinline__ void await_batches(uint32_t under_way)
{
    switch (under_way) {
    case 0: wd_copies_wait<0>(); break;
    case 1: wd_copies_wait<1>(); break;
    case 2: wd_copies_wait<2>(); break;
    case 3: wd_copies_wait<3>(); break;
    case 4: wd_copies_wait<4>(); break;
    case 5: wd_copies_wait<5>(); break;
    case 6: wd_copies_wait<6>(); break;
    case 7: wd_copies_wait<7>(); break;
    case 8: wd_copies_wait<8>(); break;
    case 9: wd_copies_wait<9>(); break;
    case 10: wd_copies_wait<10>(); break;
    default: wd_copies_wait<11>(); break;
    }
}

// f(slot, place in the ring) of the thread's runs of a panel, batch by batch; `behind` after each.
template <class F, class BEFORE, class BEHIND>
__device__ __forceinline__ void for_runs(const norm_ring_args &a, const ring_seat &s,
                                         uint32_t &place, const BEFORE &before, const F &f,
                                         const BEHIND &behind)
{
#pragma unroll 1
    for (uint32_t b = 0; b < s.batches; ++b) {
        before(b);
        const uint32_t at = place * blockDim.x + threadIdx.x;
#pragma unroll
        for (uint32_t i = 0; i < BATCH; ++i) {
            if (b * BATCH + i < s.slots) f(b * BATCH + i, at + i * blockDim.x);
        }
        place += BATCH;
        if (place == a.ring) place = 0;
        behind();
    }
}

// ---- What lies behind the ring ----

struct ring_areas {
    float4 *table;  // by thread
    float4 *groups; // by group
    pair *partial;  // by group of this block's and warp of blocks
    float2 *found;  // by column
    float2 *over;   // by column; forward what differences are from, backward sums over panels
    float2 *given;  // backward: three panels' statistics
    float4 *lines;  // planes: by channel that the block has something of
};

__device__ __forceinline__ uint32_t warps_of_blocks(const norm_ring_args &a)
{
    return (a.blocks + WARP - 1) / WARP;
}

// Groups that this block adds up over blocks.
__device__ __forceinline__ uint32_t groups_of_block(const norm_ring_args &a, const ring_seat &s)
{
    return s.rank < a.groups ? (a.groups - s.rank - 1) / a.blocks + 1 : 0;
}

// ---- Posts ----

__device__ __forceinline__ uint64_t *post_at(const norm_ring_args &a, const ring_seat &s,
                                             uint32_t turn, uint32_t group, uint32_t rank)
{
    const uint32_t row = (s.team * COPIES + turn % COPIES) * a.groups + group;
    return a.posts + ((int64_t)row * (a.blocks + 1) + rank) * NORM_RING_POST;
}

__device__ __forceinline__ void post_double(uint64_t *to, double value, uint32_t tag)
{
    wd_post(to, __int_as_float(__double2loint(value)), tag);
    wd_post(to + 1, __int_as_float(__double2hiint(value)), tag);
}

__device__ __forceinline__ void post_pair(uint64_t *to, const pair &p, uint32_t turn)
{
    post_double(to, p.first, turn + 1);
    post_double(to + 2, p.second, turn + 1);
}

__device__ __forceinline__ pair await_pair(const uint64_t *from, uint32_t turn)
{
    float word[NORM_RING_POST];
    wd_posts_await(from, turn + 1, word);
    return {__hiloint2double(__float_as_int(word[1]), __float_as_int(word[0])),
            __hiloint2double(__float_as_int(word[3]), __float_as_int(word[2]))};
}

// What was left there by an earlier kernel must not be taken for a post of this one.
__device__ __forceinline__ void begin_ring_posts(const norm_ring_args &a, const ring_seat &s)
{
    for (uint32_t i = threadIdx.x; i < COPIES * a.groups * NORM_RING_POST; i += blockDim.x) {
        const uint32_t word = i % NORM_RING_POST;
        const uint32_t row = i / NORM_RING_POST;
        const uint32_t group = row / COPIES;
        post_at(a, s, row % COPIES, group, s.rank)[word] = 0;
        if (group % a.blocks == s.rank) post_at(a, s, row % COPIES, group, a.blocks)[word] = 0;
    }
}

// Sums over blocks of the groups that are this block's, by warps: 32 blocks each.
__device__ __forceinline__ void add_posts(const norm_ring_args &a, const ring_seat &s,
                                          const ring_areas &area, uint32_t turn)
{
    const uint32_t lane = threadIdx.x % WARP;
    const uint32_t across = warps_of_blocks(a);
    const uint32_t items = groups_of_block(a, s) * across;
    for (uint32_t item = threadIdx.x / WARP; item < items; item += blockDim.x / WARP) {
        const uint32_t rank = item % across * WARP + lane;
        const uint32_t group = s.rank + item / across * a.blocks;
        pair all = {0.0, 0.0};
        if (rank < a.blocks) all = await_pair(post_at(a, s, turn, group, rank), turn);
        __syncwarp();
        all = sum_of_lanes(all, WARP);
        if (lane == 0) area.partial[item] = all;
    }
}

__device__ __forceinline__ pair added(const norm_ring_args &a, const ring_areas &area, uint32_t i)
{
    const uint32_t across = warps_of_blocks(a);
    pair all = area.partial[i * across];
    for (uint32_t w = 1; w < across; ++w) add(all, area.partial[i * across + w]);
    return all;
}

// Waits for a batch of the panel that is summed, where `behind` batches have been asked for less than
// the ring has room for.
__device__ __forceinline__ void await_batch(const norm_ring_args &a, uint32_t behind, uint32_t b)
{
    await_batches(a.ring / BATCH - behind - b - 1);
}

// Posts what follows from all blocks' posts of a turn, for the groups that are this block's.
__device__ __forceinline__ void post_statistics(const norm_ring_args &a, const ring_seat &s,
                                                const ring_areas &area, uint32_t turn)
{
    const uint32_t mine = groups_of_block(a, s);
    for (uint32_t i = threadIdx.x; i < mine; i += blockDim.x) {
        const uint32_t group = s.rank + i * a.blocks;
        const pair all = added(a, area, i);
        const double mean = all.first * a.inverse;
        const double variance = fmax(all.second * a.inverse - mean * mean, 0.0);
        const float inv_std = 1.0f / sqrtf((float)(variance + a.epsilon));
        const int64_t share = (int64_t)(s.team + turn * a.teams) * a.groups + group;
        post_pair(post_at(a, s, turn, group, a.blocks), {mean, inv_std}, turn);
        if (a.mean) a.mean[share] = (float)mean;
        if (a.inv_std) a.inv_std[share] = inv_std;
    }
}

// Statistics of a group of the panel of a turn.
__device__ __forceinline__ float2 given_of(const norm_ring_args &a, const ring_seat &s,
                                           uint32_t turn, uint32_t group)
{
    const uint32_t panel = s.team + turn * a.teams;
    if (panel >= a.panels || group >= a.groups) return make_float2(0.0f, 0.0f);
    const int64_t share = (int64_t)panel * a.groups + group;
    return make_float2(a.given_mean[share], a.given_inv_std[share]);
}

constexpr uint32_t GIVEN = 3; // panels: one is written, one summed, one comes next

__device__ __forceinline__ float2 *given_at(const norm_ring_args &a, const ring_areas &area,
                                            uint32_t turn)
{
    return area.given + turn % GIVEN * a.groups;
}

// `first` is the thread's first group's, which was asked for earlier.
__device__ __forceinline__ void take_given(const norm_ring_args &a, const ring_seat &s,
                                           const ring_areas &area, uint32_t turn, float2 first)
{
    float2 *to = given_at(a, area, turn);
    for (uint32_t g = threadIdx.x; g < a.groups; g += blockDim.x) {
        to[g] = g == threadIdx.x ? first : given_of(a, s, turn, g);
    }
}

__device__ __forceinline__ void post_gradients(const norm_ring_args &a, const ring_seat &s,
                                               const ring_areas &area, uint32_t turn)
{
    const uint32_t mine = groups_of_block(a, s);
    for (uint32_t i = threadIdx.x; i < mine; i += blockDim.x) {
        const uint32_t group = s.rank + i * a.blocks;
        const pair all = added(a, area, i);
        post_pair(post_at(a, s, turn, group, a.blocks),
                  {all.first * a.inverse, all.second * a.inverse}, turn);
    }
}

// ---- The walk ----

template <int TENSORS>
__device__ __forceinline__ void post_results(const norm_ring_args &a, const ring_seat &s,
                                             const ring_areas &area, uint32_t turn)
{
    if constexpr (TENSORS == 1) post_statistics(a, s, area, turn);
    else post_gradients(a, s, area, turn);
}

// Behind the barrier with which the sums of a turn begin: what follows from the posts of the last one.
template <int TENSORS>
__device__ __forceinline__ void post_last(const norm_ring_args &a, const ring_seat &s,
                                          const ring_areas &area, uint32_t turn)
{
    if (a.lag && turn > 0) post_results<TENSORS>(a, s, area, turn - 1);
}

// sum(seat, place, turn, behind) posts what the block finds of its turn's panel; put(seat, turn, next)
// awaits what follows from all posts of it, and writes it.
template <class T, int TENSORS, class BEGIN, class SUM, class PUT>
__device__ __forceinline__ void walk(const norm_ring_args &a, uint4 *ring, const ring_areas &area,
                                     const BEGIN &begin, const SUM &sum, const PUT &put)
{
    const ring_seat s = ring_seat_of(a);
    ring_ahead next = {ring_base<T>(a, s, s.team), s.team, 0, 0};
    uint32_t place = 0;
    wd_wait_for_previous();
    for (uint32_t k = 0; k < a.ring / BATCH; ++k) ask<T, TENSORS>(a, s, ring, next);
    begin_ring_posts(a, s);
    for (uint32_t turn = 0; TENSORS == 2 && turn <= a.lag; ++turn) {
        take_given(a, s, area, turn, given_of(a, s, turn, threadIdx.x));
    }
    begin();
    wd_meet(a.counters + s.team * WD_COUNTER_WORDS, a.blocks, s.rank == 0);
    for (uint32_t turn = 0;; ++turn) {
        const bool more = s.team + turn * a.teams < a.panels;
        if (a.lag && turn > 0) {
            add_posts(a, s, area, turn - 1);
            if (!more) {
                __syncthreads();
                post_results<TENSORS>(a, s, area, turn - 1);
            }
        }
        if (more) sum(s, place, turn, turn > 0 ? a.lag * s.batches : 0);
        if (a.lag) {
            if (turn > 0) put(s, turn - 1, next);
        } else if (more) {
            add_posts(a, s, area, turn);
            __syncthreads();
            post_results<TENSORS>(a, s, area, turn);
            put(s, turn, next);
        }
        if (!more) return;
    }
}

} // namespace

#endif
