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
    s.begin = min(s.rank * a.part, a.plane);
    s.all = min(a.part, a.plane - s.begin);
    s.slots = s.row < a.rows && s.row < s.all ? (s.all - s.row - 1) / a.rows + 1 : 0;
    s.batches = max((s.all + a.rows * BATCH - 1) / (a.rows * BATCH), 1u);
    s.step = (int64_t)a.rows * a.channels;
    return s;
}

// The thread's first run of a panel.
template <class T>
__device__ __forceinline__ int64_t ring_base(const norm_ring_args &a, const ring_seat &s,
                                             uint32_t panel)
{
    return ((int64_t)panel * a.plane + s.begin + s.row) * a.channels + s.place * RUN<T>;
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

__device__ __forceinline__ ring_areas ring_areas_of(const norm_ring_args &a, uint4 *behind)
{
    ring_areas r;
    r.table = reinterpret_cast<float4 *>(behind);
    r.groups = r.table + blockDim.x;
    r.partial = reinterpret_cast<pair *>(r.groups + a.groups);
    r.found = reinterpret_cast<float2 *>(r.partial + ((a.groups + a.blocks - 1) / a.blocks) *
                                                         warps_of_blocks(a));
    r.over = r.found + a.channels;
    r.given = r.over + a.channels;
    return r;
}

// ---- Posts ----

__device__ __forceinline__ uint64_t *post_at(const norm_ring_args &a, const ring_seat &s,
                                             uint32_t turn, uint32_t group, uint32_t rank)
{
    const uint32_t row = (s.team * COPIES + turn % COPIES) * a.groups + group;
    return a.posts + ((int64_t)row * (a.blocks + 1) + rank) * NORM_RING_POST;
}

__device__ __forceinline__ void post_pair(uint64_t *to, const pair &p, uint32_t turn)
{
    uint32_t word[4];
    memcpy(word, &p, sizeof word);
#pragma unroll
    for (int i = 0; i < 4; ++i) wd_post(to + i, __uint_as_float(word[i]), turn + 1);
}

__device__ __forceinline__ pair await_pair(const uint64_t *from, uint32_t turn)
{
    float word[4];
    pair p;
    wd_posts_await(from, turn + 1, word);
    memcpy(&p, word, sizeof p);
    return p;
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

// ---- Sums of columns ----

// Rows of a run that a lane adds up, at least.
constexpr uint32_t RING_ADDED_LEAST = 2;

// Two sums of every column over the rows of the block, two columns at a time.
template <class T>
__device__ __forceinline__ void ring_columns(const norm_ring_args &a, const float (&one)[RUN<T>],
                                             const float (&other)[RUN<T>], const ring_areas &area)
{
    uint32_t adders = WARP;
    while (adders > 1 && (a.across * adders > blockDim.x || RING_ADDED_LEAST * adders > a.rows)) {
        adders /= 2;
    }
    const uint32_t items = a.across * adders;
#pragma unroll
    for (int c = 0; c < RUN<T>; c += 2) {
        if (c > 0) __syncthreads();
        area.table[threadIdx.x] = make_float4(one[c], other[c], one[c + 1], other[c + 1]);
        __syncthreads();
        for (uint32_t item = threadIdx.x; item - threadIdx.x % WARP < items; item += blockDim.x) {
            const uint32_t place = item / adders;
            float4 all = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (item < items) {
                const float4 *from = area.table + place;
#pragma unroll 4
                for (uint32_t row = item % adders; row < a.rows; row += adders) {
                    const float4 some = from[row * a.across];
                    all.x += some.x, all.y += some.y, all.z += some.z, all.w += some.w;
                }
            }
            for (uint32_t lanes = 1; lanes < adders; lanes *= 2) {
                all.x += __shfl_xor_sync(WHOLE_WARP, all.x, (int)lanes);
                all.y += __shfl_xor_sync(WHOLE_WARP, all.y, (int)lanes);
                all.z += __shfl_xor_sync(WHOLE_WARP, all.z, (int)lanes);
                all.w += __shfl_xor_sync(WHOLE_WARP, all.w, (int)lanes);
            }
            if (item % adders == 0 && item < items) {
                area.found[place * RUN<T> + c] = make_float2(all.x, all.y);
                area.found[place * RUN<T> + c + 1] = make_float2(all.z, all.w);
            }
        }
    }
    __syncthreads();
}

// f(group, whether it is one) by `lanes` side by side for each.
template <class F>
__device__ __forceinline__ void for_ring_groups(const norm_ring_args &a, uint32_t lanes, const F &f)
{
    for (uint32_t g = threadIdx.x / lanes; g - threadIdx.x % WARP / lanes < a.groups;
         g += blockDim.x / lanes) {
        f(min(g, a.groups - 1), g < a.groups);
    }
}

__device__ __forceinline__ uint32_t lanes_of_group(const norm_ring_args &a)
{
    uint32_t lanes = 1;
    while (lanes < WARP && 2 * lanes < a.each) lanes *= 2;
    return lanes;
}

} // namespace

#endif
