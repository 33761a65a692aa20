// SPDX-License-Identifier: Apache-2.0
//
// As norm_rows_bulk.cuh, of rows whose statistics are not given: clusters, of one block too, draw the rows behind
// their first ones from a counter. Memory does not serve all parts of the chip alike, and who has a fixed share of the
// rows waits for the slowest. Where rows are too few for that, all are a cluster's first ones.
#ifndef WD_OPS_NORM_ROWS_DRAWN_CUH
#define WD_OPS_NORM_ROWS_DRAWN_CUH

#include "ops/norm/norm_rows_bulk.cuh"

namespace {

constexpr uint32_t NEVER = 0xffffffffu; // a turn

// A row is told `ahead` turns before it is looked at and put by all warps two lags and a turn after: less than these.
constexpr uint32_t DRAWN = 16;
struct __align__(128) drawn_sums
{
    float4 drawn[DRAWN]; // rows that the cluster has drawn: the bits of the first word
    uint64_t told[DRAWN];
};

// The rows of a cluster, in turn: its first ones lie as far apart as clusters are many, the others it draws, so that
// those which memory serves sooner have more of them.
struct drawn_rows {
    uint32_t first, step, own, end;
};

// Of a turn whose row has been seen to be there.
__device__ __forceinline__ uint32_t drawn_row(const drawn_rows &w, const drawn_sums &of,
                                              uint32_t turn)
{
    if (turn < w.own) return w.first + turn * w.step;
    return __float_as_uint(of.drawn[(turn - w.own) % DRAWN].x);
}

// By each warp, a turn after another.
__device__ __forceinline__ uint32_t drawn_next(const drawn_rows &w, drawn_sums &of, uint32_t turn)
{
    const uint32_t n = turn - w.own;
    if (turn >= w.own) wd_counter_wait(&of.told[n % DRAWN], n / DRAWN & 1);
    return drawn_row(w, of, turn);
}

// By the first warp of each block, in each turn: the first block tells all of them the row of turn `turn`, which it
// has drawn a turn ago, and draws another. Returns the number drawn.
__device__ __forceinline__ uint32_t drawn_show(const norm_rows_args &a, const drawn_rows &w,
                                               uint32_t rank, drawn_sums &of, uint32_t turn,
                                               uint32_t number)
{
    const uint32_t lane = threadIdx.x, rest = (uint32_t)a.rows - w.own * w.step;
    if (turn >= w.own) {
        const uint32_t at = (turn - w.own) % DRAWN;
        if (lane == 0 && a.cluster > 1) wd_counter_expect(&of.told[at], sizeof(float4));
        if (rank > 0) return 0;
        number = wd_number_of(__shfl_sync(WHOLE_WARP, number, 0));
        const float4 row = make_float4(__uint_as_float(w.own * w.step + number), 0.0f, 0.0f, 0.0f);
        if (a.cluster > 1) {
            if (lane < a.cluster) wd_counter_send(&of.drawn[at], &of.told[at], lane, row);
        } else if (lane == 0) { // where there are no clusters nothing can be sent
            of.drawn[at] = row;
            wd_arrive(&of.told[at], 1);
        }
        if (lane == 0) wd_drawn(a.counters, number, rest + w.step);
        if (number >= rest) return 0;
    }
    if (rank == 0 && lane == 0 && turn + 1 >= w.own) number = wd_draw_number(a.counters);
    return number;
}

template <class T, int C, int KIND>
__device__ __forceinline__ void drawn_walk(const norm_rows_args &a, bulk_sums &of,
                                           drawn_sums &drawn, uint4 *places)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
    constexpr uint32_t STRIP = U * WARP; // units
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t rank = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    const uint32_t rows = (uint32_t)a.rows; // less than 2^31, and a step less than 2^20
    const uint32_t stride = U * blockDim.x;
    const uint32_t warps = a.lanes / WARP, left = a.share - (warps - 1) * STRIP;
    const bool less = warp == warps - 1; // which may have fewer units: it alone asks for each
    const uint32_t strip = less ? left : STRIP;
    const int units = less ? (lane < left ? (int)((left - lane - 1) / WARP + 1) : 0) : U;
    seat s = seat_of<T, C, false>(a);
    s.stride = WARP * E;
    s.first = s.before + warp * (WARP * C) + lane * E;
    uint4 *strips = places + warp * STRIP;
    uint64_t *landed = &of.landed[0][warp];
    float scale[C], bias[C];
    if (threadIdx.x < DRAWN) wd_counter_begin(&drawn.told[threadIdx.x]);
    bulk_begin(a, of);
    wd_wait_for_previous();
    drawn_rows w = {blockIdx.x / a.cluster, (uint32_t)a.step, a.later, NEVER};
    const int64_t far = (int64_t)a.length * (int64_t)sizeof(T);
    const char *from =
        static_cast<const char *>(a.x) + (int64_t)(s.first - lane * E) * (int64_t)sizeof(T);
    char *to = static_cast<char *>(a.y) + (int64_t)s.first * (int64_t)sizeof(T);
    uint32_t last = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < a.ahead; ++r) { // fewer than are the cluster's own
        const uint32_t row = drawn_row(w, drawn, r);
        if (lane == 0 && row < rows)
            bulk_ask(strips + last * stride, from + row * far, strip, landed + last * BULK_WARPS);
        if (row >= rows && w.end == NEVER) w.end = r;
        if (++last == a.ring) last = 0;
    }
    uint32_t next = 0, present = 0, phase = 0, says = 0, number = 0;
    bulk_params<T, C>(s, units, a.scale, scale);
    bulk_params<T, C>(s, units, a.bias, bias);
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn) {
        if (turn > 0 && w.end == NEVER) {
            const uint32_t row = drawn_next(w, drawn, turn + a.ahead - 1);
            if (row >= rows) w.end = turn + a.ahead - 1;
            else if (lane == 0)
                bulk_ask(strips + last * stride, from + row * far, strip,
                         landed + last * BULK_WARPS);
            if (++last == a.ring) last = 0;
        }
        const bool looks = turn < w.end, puts = turn >= a.lag;
        if (puts && turn - a.lag >= w.end) break;
        if (warp == 0 && w.end == NEVER && turn + a.ahead + 1 >= w.own)
            number = drawn_show(a, w, rank, drawn, turn + a.ahead, number);
        if (looks) {
            wd_counter_wait(landed + next * BULK_WARPS, phase);
            const uint4 *at = strips + next * stride + lane;
            const float4 mine =
                less ? bulk_look<T, C, KIND, true>(at, units) : bulk_look<T, C, KIND, false>(at, U);
            const float4 all = bulk_join<KIND>(
                mine, {less ? (float)(units * E) : C, less ? a.by_left : 1.0f / (WARP * C)});
            if (lane == 0) {
                if (a.cluster > 1) wait_for_readers<BULK_COPIES>(of.read, turn);
                of.of_block[turn % BULK_COPIES][warp] = all;
                wd_arrive(&of.arrived[turn % BULK_COPIES], warps);
            }
            if (++next == a.ring) next = 0, phase ^= 1;
        }
        if (puts) {
            const uint32_t row = drawn_row(w, drawn, turn - a.lag);
            const numbers n = bulk_hear<T, C, KIND>(a, of, turn - a.lag);
            if (threadIdx.x == 0 && rank == 0) {
                if (a.mean) a.mean[row] = n.mean;
                if (a.inv_std) a.inv_std[row] = n.inv_std;
            }
            const uint4 *at = strips + present * stride + lane;
            if (less) bulk_put<T, C, KIND, true>(a, at, to + row * far, units, n, scale, bias);
            else bulk_put<T, C, KIND, false>(a, at, to + row * far, U, n, scale, bias);
            if (++present == a.ring) present = 0;
            __syncwarp(); // its place is asked for next
        }
        // in turn, so that none is later than the others, and when these have had time to look too
        if (a.cluster > 1 && looks) {
            if (warp == says) bulk_say<T, C, KIND>(a, rank, of, turn);
            if (++says == warps) says = 0;
        }
    }
}

template <class T, int C> __device__ __forceinline__ void rows_drawn(const norm_rows_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    __shared__ bulk_sums of;
    __shared__ drawn_sums drawn;
    WD_DYNAMIC_SHARED(uint4, places);
    bulk_sums &here = *wd_opaque_shared(&of);
    drawn_sums &told = *wd_opaque_shared(&drawn);
    uint4 *ring = wd_opaque_shared(places);
    if (a.centered) drawn_walk<T, C, CENTRED>(a, here, told, ring);
    else drawn_walk<T, C, RAW>(a, here, told, ring);
#endif
}

} // namespace

#endif
