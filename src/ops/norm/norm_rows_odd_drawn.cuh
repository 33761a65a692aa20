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
constexpr uint32_t ODD_HEAR = 4;   // lanes of a warp that read what its group's warps said
static_assert(NORM_ROWS_AHEAD_MAX + 2 <= WARP, "numbers are kept that long");
struct __align__(128) odd_sums
{
    float4 of_block[ODD_SAID][BULK_WARPS];
    float columns[BULK_WARPS]; // of a row, that a warp has
    // lanes that hear of a group's warps, which say so what they have read too
    uint64_t arrived[ODD_SAID][ODD_GROUPS];
    uint64_t landed[NORM_ROWS_AHEAD_MAX + 1][BULK_WARPS];
    uint64_t told[ODD_DRAWN];
    uint64_t read[ODD_DRAWN]; // by all warps of the block
    uint32_t drawn[ODD_DRAWN];
    uint32_t
        rest; // numbers of the class that are nobody's own, for the thread that tells them: registers are short
};

__device__ __forceinline__ void odd_begin(const norm_rows_args &a, odd_sums &of)
{
    const uint32_t warps = a.lanes / WARP;
    if (threadIdx.x % WARP == 0) {
#pragma unroll 1
        for (uint32_t i = 0; i < a.ring; ++i) wd_counter_begin(&of.landed[i][threadIdx.x / WARP]);
    }
    if (threadIdx.x < ODD_SAID * ODD_GROUPS)
        wd_arrivals_begin(&of.arrived[threadIdx.x / ODD_GROUPS][threadIdx.x % ODD_GROUPS],
                          warps * ODD_HEAR);
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

// By a warp, of a row: what its warps left, pivot, distance of the mean from it, squares around the mean. Few lanes read, for each has to arrive when it
// has read.
template <int KIND>
__device__ __forceinline__ numbers odd_numbers_of(const norm_rows_args &a, const float4 *of,
                                                  const float *columns, uint32_t warps)
{
    const uint32_t lane = threadIdx.x % WARP;
    float4 all = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float sum = 0.0f;
    if (lane < ODD_HEAR) {
        all = *of;
        if (KIND == RAW || !(fabsf(all.y) <= 3.0e38f)) all.y = 0.0f;
        all.z = 0.0f;
#pragma unroll
        for (uint32_t k = 0; k < BULK_WARPS / ODD_HEAR; ++k) {
            if (lane + k * ODD_HEAR >= warps) break;
            const float4 its = of[lane + k * ODD_HEAR];
            const float count = columns[lane + k * ODD_HEAR];
            const float d = KIND == RAW || count == 0.0f ? 0.0f : (its.x - all.x) + (its.y - all.y);
            sum = fmaf(count, d, sum);
            all.z += fmaf(count * d, d, its.z);
        }
    }
    all.z = sum_of_lanes(all.z, ODD_HEAR);
    if (KIND == CENTRED) {
        sum = sum_of_lanes(sum, ODD_HEAR);
        const float mean = sum * a.inverse, squares = fmaf(-sum, mean, all.z);
        all.y += mean;
        all.z = squares < 0.0f ? 0.0f : squares; // a NaN stays one
    }
    numbers n = bulk_numbers(a, all);
    n.mean = __shfl_sync(WHOLE_WARP, n.mean, 0);
    n.inv_std = __shfl_sync(WHOLE_WARP, n.inv_std, 0);
    n.shift = __shfl_sync(WHOLE_WARP, n.shift, 0);
    return n;
}

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
    if (lane == 0) of.columns[warp] = columns;
    const float own_inverse = mine > 0.0f ? 1.0f / mine : 0.0f;
    const bulk_parts parts = {mine, columns > 0.0f ? 1.0f / columns : 0.0f};
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
            } else {
                if (lane == 0) of.of_block[turn % ODD_SAID][warp] = all;
                if (lane < ODD_HEAR)
                    wd_arrive(&of.arrived[turn % ODD_SAID][group], warps * ODD_HEAR);
            }
            if (++next == a.ring) next = 0, phase ^= 1;
        }
        if (turn > 0) {
            const uint32_t before = turn - 1, copy = before % ODD_SAID;
            const uint32_t row = numbered.at(before) * a.groups + group;
            if (!alone) {
                wd_counter_wait(&of.arrived[copy][group], before / ODD_SAID & 1);
                n = odd_numbers_of<KIND>(a, of.of_block[copy] + group * warps,
                                         of.columns + group * warps, warps);
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
            __syncwarp(); // its place is asked for next
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
