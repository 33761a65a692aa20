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
    uint32_t keep;    // of these that stay till they are written; the others are read again
    uint32_t step;    // elements from one run of a thread to the next
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
    s.keep = min(s.batches, a.keep);
    s.step = a.rows * a.width;
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

// What is asked for next: a batch of a panel, and its place. Batches are asked for from the first to the
// last, then those that do not stay once more from there on to the first: what was read last may still be
// in the cache.
struct ring_ahead {
    int64_t at; // elements
    uint32_t panel;
    uint32_t batch;
    uint32_t place;
    uint32_t asked;  // batches, ever
    uint32_t freed;  // of these
    uint32_t oldest; // place of the first that has not been written
    uint32_t steps;
    bool again;
};

// The oldest that has not been looked at, of all that were asked for.
struct ring_seen {
    uint32_t place;
    uint32_t count;
};

__device__ __forceinline__ void move_place(const norm_ring_args &a, uint32_t &place)
{
    place += BATCH;
    if (place == a.ring) place = 0;
}

template <class T>
__device__ __forceinline__ void ask_on(const norm_ring_args &a, const ring_seat &s,
                                       ring_ahead &next)
{
    const int64_t step = (int64_t)BATCH * s.step;
    bool ends;
    if (!next.again) {
        next.batch += 1, next.at += step;
        ends = next.batch == s.batches;
        if (ends && s.keep < s.batches) {
            ends = false;
            next.again = true;
            next.batch = s.batches - s.keep - 1;
            next.at -= (s.keep + 1) * step;
        }
    } else {
        ends = next.batch == 0;
        next.batch -= 1, next.at -= step;
    }
    if (!ends) return;
    next.again = false;
    next.batch = 0;
    next.panel += a.teams;
    next.at = ring_base<T>(a, s, next.panel);
}

// A run into the thread's own words; off the boundaries element by element, in few instructions.
template <class T> __device__ __forceinline__ void ask_run(uint4 *to, const T *from, bool whole)
{
    if (whole) {
        wd_copy_async<16, false>(to, from);
        return;
    }
    T *own = reinterpret_cast<T *>(to);
#pragma unroll 1
    for (int i = 0; i < RUN<T>; ++i) own[i] = from[i];
}

// From registers, off the boundaries by way of the thread's own words, where nothing is left to be read.
template <class T>
__device__ __forceinline__ void put_run(const norm_ring_args &a, T *to, const float (&v)[RUN<T>],
                                        uint4 *words)
{
    run<T> r;
    narrow(r, v);
    if (a.runs) {
        if (a.streaming) r.store_streaming(to);
        else r.store(to);
        return;
    }
    T *own = reinterpret_cast<T *>(words);
    r.store(own);
#pragma unroll 1
    for (int i = 0; i < RUN<T>; ++i) to[i] = own[i];
}

// A batch of both tensors, or of one; none where panels have ended, so that batches can be counted.
template <class T, int TENSORS>
__device__ __forceinline__ void ask(const norm_ring_args &a, const ring_seat &s, uint4 *ring,
                                    ring_ahead &next)
{
    if (next.panel < a.panels) {
        uint4 *to = ring + next.place * a.threads + threadIdx.x;
#pragma unroll
        for (uint32_t i = 0; i < BATCH; ++i) {
            if (next.batch * BATCH + i >= s.slots) break;
            const int64_t at = next.at + i * s.step;
            ask_run(to + i * a.threads, static_cast<const T *>(a.x) + at, a.runs != 0);
            if constexpr (TENSORS == 2) {
                ask_run(to + (a.ring + i) * a.threads, static_cast<const T *>(a.dy) + at,
                        a.runs != 0);
            }
        }
        ask_on<T>(a, s, next);
    }
    move_place(a, next.place);
    next.asked += 1;
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

// Until so many of what has not been looked at are there.
template <class T, int TENSORS>
__device__ __forceinline__ void await_seen(const norm_ring_args &a, const ring_seat &s, uint4 *ring,
                                           ring_ahead &next, const ring_seen &seen,
                                           uint32_t batches)
{
    while (next.asked < seen.count + batches) ask<T, TENSORS>(a, s, ring, next);
    await_batches(next.asked - seen.count - batches);
}

// Asks for a batch by and by: not more of them under way than keep memory busy, behind whom what others
// ask for would have to wait.
template <class T, int TENSORS>
__device__ __forceinline__ void go_on(const norm_ring_args &a, const ring_seat &s, uint4 *ring,
                                      ring_ahead &next, bool always)
{
    next.steps += 1;
    if (next.asked - next.freed >= a.ring / BATCH || (!always && next.steps % 2 > 0)) return;
    await_batches(a.ahead - 1);
    ask<T, TENSORS>(a, s, ring, next);
}

// f(place in the ring) of the thread's runs of the panel that is summed; what does not stay makes room.
template <class T, int TENSORS, class F>
__device__ __forceinline__ void see_runs(const norm_ring_args &a, const ring_seat &s, uint4 *ring,
                                         ring_seen &seen, ring_ahead &next, const F &f)
{
#pragma unroll 1
    for (uint32_t b = 0; b < s.batches; ++b) {
        await_seen<T, TENSORS>(a, s, ring, next, seen, 1);
        const uint32_t at = seen.place * a.threads + threadIdx.x;
#pragma unroll
        for (uint32_t i = 0; i < BATCH; ++i) {
            if (b * BATCH + i < s.slots) f(at + i * a.threads);
        }
        move_place(a, seen.place);
        seen.count += 1;
        const bool goes = b + s.keep < s.batches;
        if (goes) {
            next.freed += 1;
            move_place(a, next.oldest);
        }
        go_on<T, TENSORS>(a, s, ring, next, goes || seen.count <= s.batches);
    }
}

// f(slot, place in the ring) of the thread's runs of the panel that is written.
template <class T, int TENSORS, class F>
__device__ __forceinline__ void put_runs(const norm_ring_args &a, const ring_seat &s, uint4 *ring,
                                         ring_seen &seen, ring_ahead &next, const F &f)
{
#pragma unroll 1
    for (uint32_t k = 0; k < s.batches; ++k) {
        uint32_t b = s.batches - s.keep + k;
        if (k >= s.keep) {
            b = s.batches - 1 - k;
            await_seen<T, TENSORS>(a, s, ring, next, seen, 1);
            move_place(a, seen.place);
            seen.count += 1;
        }
        const uint32_t at = next.oldest * a.threads + threadIdx.x;
#pragma unroll
        for (uint32_t i = 0; i < BATCH; ++i) {
            if (b * BATCH + i < s.slots) f(b * BATCH + i, at + i * a.threads);
        }
        next.freed += 1;
        move_place(a, next.oldest);
        go_on<T, TENSORS>(a, s, ring, next, s.keep < s.batches);
    }
}

// ---- What lies behind the ring ----

struct ring_areas {
    float4 *table;  // by thread
    pair *results;  // of two turns, by group
    float4 *groups; // by group
    float2 *found;  // by column
    float2 *over;   // by column; forward what differences are from, backward sums over panels
    float2 *given;  // backward: three panels' statistics
    float4 *lines;  // planes: by channel that the block has something of
};

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

// What follows from all blocks' posts of a turn, for one of the groups that are this block's: forward the
// statistics, backward means of the two sums.
template <int TENSORS>
__device__ __forceinline__ pair result_of(const norm_ring_args &a, const ring_seat &s,
                                          const pair &all, uint32_t turn, uint32_t group)
{
    if constexpr (TENSORS == 2) return {all.first * a.inverse, all.second * a.inverse};
    const double mean = all.first * a.inverse;
    const double variance = fmax(all.second * a.inverse - mean * mean, 0.0);
    const float inv_std = 1.0f / sqrtf((float)(variance + a.epsilon));
    const int64_t share = (int64_t)(s.team + turn * a.teams) * a.groups + group;
    if (threadIdx.x % WARP == 0) {
        if (a.mean) a.mean[share] = (float)mean;
        if (a.inv_std) a.inv_std[share] = inv_std;
    }
    return {mean, inv_std};
}

// The block's last warp has nothing else to do than to add up posts, and to take those that follow, so
// that nobody waits for the way there.
template <int TENSORS>
__device__ __forceinline__ void exchange_turn(const norm_ring_args &a, const ring_seat &s,
                                              const ring_areas &area, uint32_t turn)
{
    const uint32_t lane = threadIdx.x % WARP;
    for (uint32_t group = s.rank; group < a.groups; group += a.blocks) {
        pair all = {0.0, 0.0};
        for (uint32_t rank = lane; rank < a.blocks; rank += WARP) {
            add(all, await_pair(post_at(a, s, turn, group, rank), turn));
        }
        __syncwarp();
        all = result_of<TENSORS>(a, s, sum_of_lanes(all, WARP), turn, group);
        if (lane == 0) post_pair(post_at(a, s, turn, group, a.blocks), all, turn);
    }
    __syncwarp();
    for (uint32_t group = lane; group < a.groups; group += WARP) {
        area.results[turn % 2 * a.groups + group] =
            await_pair(post_at(a, s, turn, group, a.blocks), turn);
    }
    __syncwarp();
}

// Barriers: of all who have runs, and of these and the warp that exchanges.
__device__ __forceinline__ void meet_others(const norm_ring_args &a)
{
    wd_barrier(1, a.threads);
}
__device__ __forceinline__ void meet_exchange(const norm_ring_args &a)
{
    wd_barrier(2, a.threads + WARP);
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
    for (uint32_t g = threadIdx.x; g < a.groups; g += a.threads) {
        to[g] = g == threadIdx.x ? first : given_of(a, s, turn, g);
    }
}

// ---- The walk ----

// sum(seat, seen, next, turn) posts what the block finds of its turn's panel; put, likewise, awaits what
// follows from all posts of it, and writes it.
template <class T, int TENSORS, class BEGIN, class SUM, class PUT>
__device__ __forceinline__ void walk(const norm_ring_args &a, uint4 *ring, const ring_areas &area,
                                     const BEGIN &begin, const SUM &sum, const PUT &put)
{
    const ring_seat s = ring_seat_of(a);
    const bool exchanges = threadIdx.x >= a.threads;
    ring_ahead next = {ring_base<T>(a, s, s.team), s.team, 0, 0, 0, 0, 0, 0, false};
    ring_seen seen = {0, 0};
    wd_wait_for_previous();
    for (uint32_t k = 0; !exchanges && k < a.ahead; ++k) ask<T, TENSORS>(a, s, ring, next);
    begin_ring_posts(a, s);
    for (uint32_t turn = 0; TENSORS == 2 && !exchanges && turn <= a.lag; ++turn) {
        take_given(a, s, area, turn, given_of(a, s, turn, threadIdx.x));
    }
    if (!exchanges) begin();
    wd_meet(a.counters + s.team * WD_COUNTER_WORDS, a.blocks, s.rank == 0);
    for (uint32_t turn = 0;; ++turn) {
        const bool more = s.team + turn * a.teams < a.panels;
        if (exchanges) {
            if (!more) return;
            exchange_turn<TENSORS>(a, s, area, turn);
            meet_exchange(a);
            continue;
        }
        if (more) sum(s, seen, next, turn);
        if (turn >= a.lag && (a.lag || more)) put(s, seen, next, turn - a.lag);
        if (!more) return;
    }
}

} // namespace

#endif
