// SPDX-License-Identifier: Apache-2.0
//
// Backward of norm_staged: x and dy come together. While the other blocks' sums of a sample are on their way, a block
// adds what it has found of channels to its totals, which all blocks add up for dscale and dbias when the last sample
// is being written.
#ifndef WD_OPS_NORM_STAGED_BACK_CUH
#define WD_OPS_NORM_STAGED_BACK_CUH

#include "ops/norm/norm_staged_ask.cuh"

namespace {

// dx = scale inv_std dy + slope x + base
struct alignas(16) back_numbers {
    float inv_std, slope, base, unused;
};

__device__ __forceinline__ back_numbers *back_numbers_of(const norm_staged_args &a, uint32_t turn)
{
    return reinterpret_cast<back_numbers *>(memory() + a.numbers) + turn % 2 * a.sets;
}

// Mean and inv_std of sets.
__device__ __forceinline__ float2 *statistics_of(const norm_staged_args &a, uint32_t turn)
{
    return reinterpret_cast<float2 *>(memory() + a.known) + turn % 2 * a.sets;
}

__device__ __forceinline__ float2 statistic_at(const norm_staged_args &a, uint32_t sample,
                                               uint32_t set)
{
    const int64_t at = sample * (int64_t)a.sets + set;
    return make_float2(a.mean[at], a.inv_std[at]);
}

// A channel a warp, from rows of what has been found.
__device__ __forceinline__ void finish_params(const norm_staged_args &a, uint32_t rows,
                                              uint32_t channels)
{
    const uint32_t lane = threadIdx.x % WARP;
    const float2 *found = reinterpret_cast<const float2 *>(a.found);
#pragma unroll 1
    for (uint32_t c = blockIdx.x + threadIdx.x / WARP * gridDim.x; c < channels;
         c += GROUP_WARPS * gridDim.x) {
        double2 all = make_double2(0.0, 0.0);
        if (lane == 0) wd_await(a.board, head_of(a)->x);
        __syncwarp();
#pragma unroll 2
        for (uint32_t row = lane; row < rows; row += WARP) {
            const float2 one = __ldcg(found + (int64_t)row * channels + c);
            all = plus(all, one.x, one.y);
        }
        all = sum_of_lanes(all, 5);
        if (lane > 0) continue;
        set_param(a.dbias, c, (float)all.x);
        set_param(a.dscale, c, (float)all.y);
    }
}

template <class T>
__device__ __forceinline__ void adds_back(const norm_staged_args &a, const seat &s,
                                          const ring<2> &r)
{
    const float *scale = reinterpret_cast<const float *>(memory() + a.params);
    float2 *totals = reinterpret_cast<float2 *>(memory() + a.totals);
    const uint32_t channels = a.runs * E;
    ring_at at = {0, 0};
    uint32_t turn = 0;
    for (uint32_t set = threadIdx.x; set < a.sets; set += GROUP)
        statistics_of(a, 0)[set] = statistic_at(a, s.team, set);
    for (uint32_t c = threadIdx.x; !a.planes && c < channels; c += GROUP)
        totals[c] = make_float2(0.0f, 0.0f);
    wd_barrier(MEETING, 2 * GROUP);
#pragma unroll 1
    for (uint32_t sample = s.team; sample < a.samples; sample += a.at_once, ++turn) {
        float value[2 * E], mean[E];
        each_column(a, s, [&](int i, uint32_t set) { mean[i] = statistics_of(a, turn)[set].x; });
#pragma unroll
        for (int i = 0; i < 2 * E; ++i) value[i] = 0.0f;
        unit<T> x, dy;
        const auto receive = [&]() {
            wd_counter_wait(r.landed + at.place, at.parity);
            r.load(x, s, at.place, 0, 0);
            r.load(dy, s, at.place, 0, 1);
            at.advance(a);
        };
        const auto add = [&]() {
            float g[E], d[E];
            widen_unit<T>(g, dy);
            widen_unit<T>(d, x);
#pragma unroll
            for (int i = 0; i < E; ++i) {
                value[2 * i] += g[i];
                value[2 * i + 1] += g[i] * (d[i] - mean[i]);
            }
        };
#pragma unroll 2
        for (uint32_t k = 1; k < s.rounds; ++k) {
            receive();
            add();
        }
        receive();
        if (s.lane < s.last) add();
        const uint32_t later = sample + a.at_once;
        if (!AHEAD_LATE) ask_ahead<2>(a, s, {a.x, a.dy}, later);
        const auto total = [&](uint32_t c, double2 all) {
            const uint32_t set = wd_fastdiv_quotient(c, a.by_members);
            totals[c].x += (float)all.x;
            totals[c].y += (float)(all.y * statistics_of(a, turn)[set].y);
        };
        if (a.members == 1) {
            sums_of_columns(a, s, value, [&](uint32_t c, double2 all) {
                const double by = scale[c];
                show(a, s, turn, c, make_double2(by * all.x, by * all.y));
                total(c, all);
            });
        } else {
            sums_of_sets(
                a, s, value, [&](int i) { return a.planes ? 1.0f : scale[s.run * E + i]; },
                [&](uint32_t set, double2 all) { show(a, s, turn, set, all); });
        }
        if (AHEAD_LATE) ask_ahead<2>(a, s, {a.x, a.dy}, later);
        if (a.members > 1 && a.found && !a.planes) {
            wd_barrier(ADDING, GROUP);
            sums_of_columns(a, s, value, total);
        }
        if (turn == 0) clear_board(a);
        each_of(a.sets, a.set_bits, [&](uint32_t set, bool is, uint32_t lane) {
            const bool joins = is && lane == 0;
            float2 next = make_float2(0.0f, 0.0f);
            double by = 1.0;
            if (joins && later < a.samples) next = statistic_at(a, later, set);
            if (a.planes && joins) by = a.scale[channel_of(a, sample)];
            double2 all = sums_of_team(a, words_of(a, s, turn, set), is, lane, wd_board_bit(turn));
            if (!joins) return;
            const float2 own = statistics_of(a, turn)[set];
            const double each = own.y * a.inv_terms;
            if (a.planes) {
                float2 *found = reinterpret_cast<float2 *>(a.found);
                if (found && s.block == 0)
                    found[sample] = make_float2((float)all.x, (float)(all.y * own.y));
                all = make_double2(by * all.x, by * all.y);
            }
            const float slope = (float)(-each * all.y * own.y * own.y);
            const float base = (float)(-each * all.x - (double)slope * own.x);
            back_numbers_of(a, turn)[set] = {own.y, slope, base, 0.0f};
            statistics_of(a, turn + 1)[set] = next;
        });
        wd_barrier(ADDING, GROUP);
        if (threadIdx.x == 0) tell(r, turn);
    }
    if (!a.found) {
        if (threadIdx.x == 0) wd_board_leave(a.board, *head_of(a), 2 * gridDim.x * a.sets);
        return;
    }
    if (!a.planes) {
        for (uint32_t c = threadIdx.x; c < channels; c += GROUP)
            reinterpret_cast<float2 *>(a.found)[blockIdx.x * channels + c] = totals[c];
        wd_barrier(ADDING, GROUP);
    }
    if (threadIdx.x == 0) wd_board_leave_told(a.board, *head_of(a), 2 * gridDim.x * a.sets);
    __syncwarp();
    if (a.planes) {
        finish_params(a, wd_fastdiv_quotient(a.samples, a.by_channels), a.by_channels.divisor);
    } else {
        finish_params(a, gridDim.x, channels);
    }
}

template <class T>
__device__ __forceinline__ void writes_back(const norm_staged_args &a, const seat &s,
                                            const ring<2> &r)
{
    const float *params = reinterpret_cast<const float *>(memory() + a.params) + s.run * E;
    ring_at at = {0, 0};
    uint32_t turn = 0;
    get_params<2>(a);
#pragma unroll 1
    for (uint32_t sample = s.team; sample < a.samples; sample += a.at_once, ++turn) {
        float factor[E], slope[E], base[E], scale = 0.0f;
        char *to =
            static_cast<char *>(a.y) + first_round(a, s, sample) + s.index * NORM_STAGED_UNIT;
        if (a.planes) scale = a.scale[channel_of(a, sample)];
        wd_counter_wait(r.told, turn % 2);
        each_column(a, s, [&](int i, uint32_t set) {
            const back_numbers n = back_numbers_of(a, turn)[set];
            factor[i] = (a.planes ? scale : params[i]) * n.inv_std;
            slope[i] = n.slope;
            base[i] = n.base;
        });
        hear(r);
        const auto write = [&](bool there) {
            unit<T> x, dy, result;
            float g[E], v[E];
            r.load(x, s, at.place, 0, 0);
            r.load(dy, s, at.place, 0, 1);
            leave_place(r, at.place);
            at.advance(a);
            widen_unit<T>(g, dy);
            widen_unit<T>(v, x);
#pragma unroll
            for (int i = 0; i < E; ++i) v[i] = fmaf(factor[i], g[i], fmaf(slope[i], v[i], base[i]));
            wd_narrow_run(result, v);
            T *at_y = reinterpret_cast<T *>(wd_opaque_global(to));
            to += a.step;
            if (!there) return;
            if (STREAMS) result.store_streaming(at_y);
            else result.store(at_y);
        };
#pragma unroll 2
        for (uint32_t k = 1; k < s.rounds; ++k) write(s.active);
        write(s.lane < s.last);
    }
}

template <class T> __device__ __forceinline__ void staged_back(const norm_staged_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    const seat s = seat_of(a);
    const ring<2> r = ring_of<2>(a);
    begin(a, r);
    if (threadIdx.x < GROUP) {
        adds_back<T>(a, s, r);
    } else if (threadIdx.x < 2 * GROUP) {
        writes_back<T>(a, s, r);
    } else if (threadIdx.x == 2 * GROUP) {
        ask_for_rounds<2>(a, s, r, {a.x, a.dy});
    }
#endif
}

} // namespace

#endif
