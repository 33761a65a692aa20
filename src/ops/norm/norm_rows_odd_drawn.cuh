// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm over many rows off the boundaries that part of a block or a block has, of two bytes an element, whose statistics are not
// given: as norm_rows_drawn.cuh, by classes (norm_rows_odd_strip.cuh). A block's groups of warps have a row each. Each class has a counter, from
// which its blocks draw the rows behind their first ones, a group's worth at a time: by one row a warp, draws were what it waited for.
#ifndef WD_OPS_NORM_ROWS_ODD_DRAWN_CUH
#define WD_OPS_NORM_ROWS_ODD_DRAWN_CUH

#include "ops/norm/norm_rows_drawn.cuh"
#include "ops/norm/norm_rows_odd_forward.cuh"
#include "ops/norm/norm_rows_odd_strip.cuh"

namespace {

constexpr uint32_t ODD_DRAWN = 16; // numbers that are told and some warp has not read
constexpr uint32_t ODD_GROUPS = 4; // of a block, at most
constexpr uint32_t ODD_SAID = 4;   // turns: warps of a group are within one of another
static_assert(NORM_ROWS_AHEAD_MAX + 2 <= WARP, "numbers are kept that long");
struct __align__(128) odd_sums
{
    float4 of_block[ODD_SAID][BULK_WARPS];
    uint64_t arrived[ODD_SAID][ODD_GROUPS];
    uint64_t landed[NORM_ROWS_AHEAD_MAX + 1][BULK_WARPS];
    uint64_t told[ODD_DRAWN];
    uint64_t read[ODD_DRAWN]; // by all warps of the block
    uint32_t drawn[ODD_DRAWN];
    // numbers of the class that are nobody's own, for the thread that tells them: registers are short
    uint32_t rest;
};

__device__ __forceinline__ void odd_begin(const norm_rows_args &a, odd_sums &of)
{
    const uint32_t warps = a.lanes / WARP;
    if (threadIdx.x % WARP == 0) {
#pragma unroll 1
        for (uint32_t i = 0; i < a.ring; ++i) wd_counter_begin(&of.landed[i][threadIdx.x / WARP]);
    }
    if (threadIdx.x < ODD_SAID * ODD_GROUPS)
        wd_arrivals_begin(&of.arrived[threadIdx.x / ODD_GROUPS][threadIdx.x % ODD_GROUPS], warps);
    if (threadIdx.x < ODD_DRAWN) {
        wd_arrivals_begin(&of.told[threadIdx.x], 1);
        wd_arrivals_begin(&of.read[threadIdx.x], blockDim.x / WARP);
    }
    __syncthreads();
}

// The rows of a block by numbers, of as many rows as it has at once: its first ones lie as far apart as the class has blocks, the others are drawn.
struct odd_numbers {
    uint32_t first, blocks, own;
    uint32_t kept; // of the last turns, by a lane each

    // By a warp, a turn after another.
    __device__ __forceinline__ uint32_t next(odd_sums &of, uint32_t turn)
    {
        const uint32_t lane = threadIdx.x % WARP, n = turn - own;
        uint32_t number = first + turn * blocks;
        if (turn >= own) {
            if (lane == 0) {
                wd_counter_wait(&of.told[n % ODD_DRAWN], n / ODD_DRAWN & 1);
                number = of.drawn[n % ODD_DRAWN];
                wd_arrive(&of.read[n % ODD_DRAWN], blockDim.x / WARP);
            }
            number = __shfl_sync(WHOLE_WARP, number, 0);
        }
        if (lane == turn % WARP) kept = number;
        return number;
    }
    // Of a turn that is not put yet.
    __device__ __forceinline__ uint32_t at(uint32_t turn) const
    {
        return __shfl_sync(WHOLE_WARP, kept, turn % WARP);
    }
    // By one thread of a block: tells the number of `turn`, which it has drawn a turn ago, and draws another.
    __device__ __forceinline__ uint32_t tell(odd_sums &of, uint32_t *counter, uint32_t turn,
                                             uint32_t drawn) const
    {
        const uint32_t rest = of.rest, n = turn - own;
        if (turn >= own) {
            drawn = wd_number_of(drawn);
            wait_for_readers<ODD_DRAWN>(of.read, n);
            of.drawn[n % ODD_DRAWN] = own * blocks + drawn;
            wd_arrive(&of.told[n % ODD_DRAWN], 1);
            wd_drawn(counter, drawn, rest + blocks);
            if (drawn >= rest) return drawn;
        }
        return turn + 1 >= own ? wd_draw_number(counter) : drawn;
    }
};

template <class T, int C, int KIND>
__device__ __forceinline__ void odd_drawn_walk(const norm_rows_args &a, odd_sums &of, uint4 *places)
{
    constexpr uint32_t E = EACH<T>, U = UNITS<T, C>, PLACE = U * WARP + STRIP_ENDS;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t warps = a.lanes / WARP, group = threadIdx.x / a.lanes; // of a row
    const bool alone = warps == 1;
    const odd_class its = odd_class_of<T>(a, blockIdx.x % a.classes);
    const odd_strip s = odd_strip_of<T, U>(a, its.first, 0);
    odd_numbers numbered = {blockIdx.x / a.classes, (uint32_t)a.step / a.classes, a.later, 0};
    const uint32_t stride = blockDim.x / WARP * PLACE;
    uint32_t *counter = a.counters + its.first * WD_COUNTER_WORDS;
    uint4 *place = places + warp * PLACE;
    uint64_t *landed = &of.landed[0][warp];
    const char *from = odd_strip_from<T>(a.x, a, s, its.first);
    char *to = static_cast<char *>(a.y) + (int64_t)its.first * a.length * (int64_t)sizeof(T);
    const auto lies = [&](uint32_t in) -> odd_part<T> {
        const uint4 *at = place + in * stride;
        return {at + 1 + lane, reinterpret_cast<const T *>(at) + s.at, s.count, s.at > 0};
    };
    float scale[C + 1], bias[C + 1]; // the last is the single's
    if (threadIdx.x == 0) {
        const uint32_t numbers_of_class = (its.rows + a.groups - 1) / a.groups;
        of.rest = numbers_of_class - numbered.own * numbered.blocks;
    }
    odd_begin(a, of);
    wd_wait_for_previous();
    uint32_t last = 0, next = 0, present = 0, phase = 0, number = 0, end = NEVER;
#pragma unroll 1
    for (uint32_t r = 0; r < a.ahead; ++r) { // fewer than are the block's own
        const uint32_t row = numbered.next(of, r) * a.groups + group;
        if (lane == 0)
            odd_strip_ask(s, place + last * stride, from + row * its.far,
                          landed + last * BULK_WARPS);
        if (++last == a.ring) last = 0;
    }
    odd_seat seat;
    seat.first = s.first, seat.stride = WARP * E, seat.count = s.count, seat.single = s.single;
    odd_param<T, C>(seat, a.scale, scale);
    odd_param<T, C>(seat, a.bias, bias);
    const float mine = (float)(s.count * E + (s.has_single() ? 1 : 0)), columns = sum_of_warp(mine);
    const float own_inverse = mine > 0.0f ? 1.0f / mine : 0.0f;
    const bulk_parts parts = {mine, columns > 0.0f ? 1.0f / columns : 0.0f};
    bulk_parts of_warps = {0.0f, a.inverse};
    if (lane == 0) of.of_block[0][warp].x = columns;
    __syncthreads();
    if (lane % BULK_WARPS < warps)
        of_warps.count = of.of_block[0][group * warps + lane % BULK_WARPS].x;
    __syncthreads(); // before it is what is said of a row
    numbers n = {0.0f, 0.0f, 0.0f};
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn) {
        // turn 0 only looks; the row of the turn before is put while this one's has been looked at
        if (turn > 0 && end == NEVER) {
            const uint32_t wanted = turn + a.ahead - 1;
            const uint32_t row = numbered.next(of, wanted) * a.groups + group;
            if (row >= its.rows) end = wanted;
            else if (lane == 0)
                odd_strip_ask(s, place + last * stride, from + row * its.far,
                              landed + last * BULK_WARPS);
            if (++last == a.ring) last = 0;
        }
        if (turn > end) break;
        if (threadIdx.x == 0 && end == NEVER)
            number = numbered.tell(of, counter, turn + a.ahead, number);
        numbers of_next = {0.0f, 0.0f, 0.0f};
        if (turn < end) {
            wd_counter_wait(landed + next * BULK_WARPS, phase);
            const float4 found = s.ends ? odd_look<T, C, KIND, true>(lies(next), own_inverse)
                                        : odd_look<T, C, KIND, false>(lies(next), own_inverse);
            const float4 all = bulk_join<KIND>(found, parts);
            if (alone) {
                of_next = bulk_numbers(a, all);
            } else if (lane == 0) {
                of.of_block[turn % ODD_SAID][warp] = all;
                wd_arrive(&of.arrived[turn % ODD_SAID][group], warps);
            }
            if (++next == a.ring) next = 0, phase ^= 1;
        }
        if (turn > 0) {
            const uint32_t before = turn - 1, copy = before % ODD_SAID;
            const uint32_t row = numbered.at(before) * a.groups + group;
            if (!alone) {
                wd_counter_wait(&of.arrived[copy][group], before / ODD_SAID & 1);
                float4 all = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (lane % BULK_WARPS < warps)
                    all = of.of_block[copy][group * warps + lane % BULK_WARPS];
                n = bulk_numbers(a, bulk_join<KIND, BULK_WARPS>(all, of_warps));
            }
            if (lane == 0 && warp == group * warps) {
                if (a.mean) a.mean[its.first + row * a.classes] = n.mean;
                if (a.inv_std) a.inv_std[its.first + row * a.classes] = n.inv_std;
            }
            T *row_to = reinterpret_cast<T *>(to + row * its.far);
            if (s.ends)
                odd_put<T, C, KIND, true>(a, lies(present), row_to, s.first, s.single, n, scale,
                                          bias);
            else
                odd_put<T, C, KIND, false>(a, lies(present), row_to, s.first, s.single, n, scale,
                                           bias);
            if (++present == a.ring) present = 0;
            // its place is asked for next, and all have read what the warps said
            if (alone) __syncwarp();
            else wd_barrier_of_warp();
        }
        n = of_next;
    }
}

template <class T, int C> __device__ __forceinline__ void rows_odd_drawn(const norm_rows_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    __shared__ odd_sums of;
    WD_DYNAMIC_SHARED(uint4, places);
    odd_sums &here = *wd_opaque_shared(&of);
    uint4 *ring = wd_opaque_shared(places);
    if (a.centered) odd_drawn_walk<T, C, CENTRED>(a, here, ring);
    else odd_drawn_walk<T, C, RAW>(a, here, ring);
#endif
}

} // namespace

#endif
