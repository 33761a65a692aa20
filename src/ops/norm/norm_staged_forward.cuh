// SPDX-License-Identifier: Apache-2.0
//
// Forward of norm_staged. Sums are of differences from an element of the set's, the same for all blocks.
#ifndef WD_OPS_NORM_STAGED_FORWARD_CUH
#define WD_OPS_NORM_STAGED_FORWARD_CUH

#include "ops/norm/norm_middle.cuh"
#include "ops/norm/norm_staged_ask.cuh"

namespace {

struct alignas(16) set_numbers {
    float mean, inv_std, cut_off, unused; // what rounding cut off the mean
};

__device__ __forceinline__ set_numbers *numbers_of(const norm_staged_args &a, uint32_t turn)
{
    return reinterpret_cast<set_numbers *>(memory() + a.numbers) + turn % 2 * a.sets;
}

__device__ __forceinline__ float *pivots_of(const norm_staged_args &a, uint32_t turn)
{
    return reinterpret_cast<float *>(memory() + a.known) + turn % 2 * a.sets;
}

// An element near a set's others: the middle one of three, of three of its columns; of infinite ones 0, so that the
// mean is infinite, not NaN.
template <class T>
__device__ __forceinline__ float pivot_of(const norm_staged_args &a, uint32_t sample, uint32_t set)
{
    const T *x = reinterpret_cast<const T *>(static_cast<const char *>(a.x) + sample * a.sample);
    float some[3];
#pragma unroll
    for (uint32_t k = 0; k < 3; ++k) {
        const uint32_t column = set * a.members + k * (a.members - 1) / 2;
        const uint32_t row = a.rows / 8 * (1 + 3 * k);
        some[k] = wd_widen(x[(int64_t)row * (a.runs * E) + column]);
    }
    const float middle = wd_middle_of(some[0], some[1], some[2]);
    return middle - middle == 0.0f ? middle : 0.0f;
}

// Deviations from 0 up to which the mean may be in the base: of two bytes an element that says as much.
constexpr float NEAR = 4.0f;

template <bool IS> struct truth {
    static constexpr bool is = IS;
};

// DEEP: samples are larger than the ring.
template <class T, bool DEEP>
__device__ __forceinline__ void adds(const norm_staged_args &a, const seat &s, const ring<1> &r)
{
    ring_at at = {0, 0};
    deep_at deep = {0, 0};
    uint32_t turn = 0;
    each_of(a.sets, 0, [&](uint32_t set, bool is, uint32_t) {
        if (is) pivots_of(a, 0)[set] = pivot_of<T>(a, s.team, set);
    });
    wd_barrier(MEETING, 2 * GROUP);
#pragma unroll 1
    for (uint32_t sample = s.team; sample < a.samples; sample += a.at_once, ++turn) {
        const uint32_t bit = wd_board_bit(turn);
        float value[2 * E], pivot[E];
        each_column(a, s, [&](int i, uint32_t set) { pivot[i] = pivots_of(a, turn)[set]; });
#pragma unroll
        for (int i = 0; i < 2 * E; ++i) value[i] = 0.0f;
        const auto receive = [&](unit<T>(&u)[EACH<1>]) {
            const uint32_t place = DEEP ? deep.where(a, turn) : at.place;
            wd_counter_wait(r.landed + place, DEEP ? deep.lap : at.parity);
#pragma unroll
            for (uint32_t e = 0; e < EACH<1>; ++e) r.load(u[e], s, place, e, 0);
            if (DEEP) deep.up(a);
            else at.advance(a);
            return place;
        };
        const auto add = [&](const unit<T> &u) {
            float v[E];
            widen_unit<T>(v, u);
#pragma unroll
            for (int i = 0; i < E; ++i) {
                const float d = v[i] - pivot[i];
                value[2 * i] += d;
                value[2 * i + 1] += d * d;
            }
        };
        unit<T> u[EACH<1>];
        const uint32_t kept = DEEP ? EACH<1> * a.places : 0; // rounds
        if (DEEP) deep.begin(a, turn, 0);
#pragma unroll 1
        for (uint32_t k = EACH<1>; k < s.rounds; k += EACH<1>) {
            const uint32_t place = receive(u);
            if (DEEP && k + kept < s.rounds + EACH<1>) leave_place(r, place);
#pragma unroll
            for (uint32_t e = 0; e < EACH<1>; ++e) add(u[e]);
        }
        receive(u);
#pragma unroll
        for (uint32_t e = 0; e < EACH<1>; ++e) {
            if (s.lane < rows_of_last<1>(a, s, e)) add(u[e]);
        }
        const uint32_t later = sample + a.at_once;
        if (!DEEP && !AHEAD_LATE) ask_ahead<1>(a, s, {a.x}, later);
        const auto shows = [&](uint32_t set, double2 all) { show(a, s, turn, set, all); };
        if (a.members == 1) {
            sums_of_columns(a, s, value, shows);
        } else {
            sums_of_sets(
                a, s, value, [](int) { return 1.0f; }, shows);
        }
        if (!DEEP && AHEAD_LATE) ask_ahead<1>(a, s, {a.x}, later);
        if (turn == 0) clear_board(a);
        each_of(a.sets, a.set_bits, [&](uint32_t set, bool is, uint32_t lane) {
            const bool joins = is && lane == 0;
            float next = 0.0f;
            if (joins && later < a.samples) next = pivot_of<T>(a, later, set);
            const double2 all = sums_of_team(a, words_of(a, s, turn, set), is, lane, bit);
            if (!joins) return;
            const double rest = all.x * a.inv_terms, left = all.y - all.x * rest;
            const double around = left > 0.0 || left != left ? left : 0.0;
            const double mean = (double)pivots_of(a, turn)[set] + rest;
            const float inv_std = (float)rsqrt(around * a.inv_terms + a.epsilon);
            numbers_of(a, turn)[set] = {(float)mean, inv_std, (float)(mean - (float)mean), 0.0f};
            pivots_of(a, turn + 1)[set] = next;
            if (s.block > 0) return;
            if (a.mean) a.mean[sample * (int64_t)a.sets + set] = (float)mean;
            if (a.inv_std) a.inv_std[sample * (int64_t)a.sets + set] = inv_std;
        });
        wd_barrier(ADDING, GROUP);
        if (threadIdx.x == 0) {
            // of samples larger than the ring all have waited already
            if (DEEP) wd_arrive(r.told, 1);
            else tell(r, turn);
            if (later >= a.samples) wd_board_leave(a.board, *head_of(a), 2 * gridDim.x * a.sets);
        }
        // what is read again for those that write is all there: no wait is two phases late
        if (DEEP && later < a.samples) wd_counter_wait(r.heard, turn % 2);
    }
}

template <class T, bool DEEP>
__device__ __forceinline__ void writes(const norm_staged_args &a, const seat &s, const ring<1> &r)
{
    const float *params = reinterpret_cast<const float *>(memory() + a.params) + s.run * E;
    ring_at at = {0, 0};
    deep_at deep = {0, 0};
    uint32_t turn = 0;
    get_params<1>(a);
#pragma unroll 1
    for (uint32_t sample = s.team; sample < a.samples; sample += a.at_once, ++turn) {
        float factor[E], base[E], mean[E], scale = 0.0f, bias = 0.0f;
        bool near = !DEEP; // means are no further from 0 than digits allow
        char *to =
            static_cast<char *>(a.y) + first_round(a, s, sample) + s.index * NORM_STAGED_UNIT;
        if (a.planes) scale = a.scale[channel_of(a, sample)], bias = a.bias[channel_of(a, sample)];
        wd_counter_wait(r.told, turn % 2);
        each_column(a, s, [&](int i, uint32_t set) {
            const set_numbers n = numbers_of(a, turn)[set];
            if (!a.planes) scale = params[i], bias = params[a.runs * E + i];
            factor[i] = scale * n.inv_std;
            base[i] = fmaf(-factor[i], n.cut_off, bias);
            mean[i] = n.mean;
            near = near && fabsf(n.mean) * n.inv_std <= NEAR;
        });
        // then they are in the base
        near = wd_ballot(near) == WHOLE_WARP;
#pragma unroll
        for (int i = 0; i < E; ++i) {
            if (!near) continue;
            base[i] = fmaf(-factor[i], mean[i], base[i]);
            mean[i] = 0.0f;
        }
        if (!DEEP) hear(r);
        const uint32_t parts = (s.rounds + EACH<1> - 1) / EACH<1>;
        const int64_t step = DEEP ? -a.step : a.step;
        const auto write = [&](const unit<T> &u, bool there, auto subtracts) {
            float v[E];
            unit<T> result;
            widen_unit<T>(v, u);
#pragma unroll
            for (int i = 0; i < E; ++i)
                v[i] = fmaf(factor[i], subtracts.is ? v[i] - mean[i] : v[i], base[i]);
            wd_narrow_run(result, v);
            T *at_y = reinterpret_cast<T *>(wd_opaque_global(to));
            to += step;
            if (!there) return;
            // what is read again is to stay in the cache
            if (STREAMS || DEEP) result.store_streaming(at_y);
            else result.store(at_y);
        };
        unit<T> u[EACH<1>];
        if constexpr (DEEP) {
            const auto take = [&]() {
                const uint32_t place = deep.where(a, turn);
                // of what the ring keeps that phase is over
                wd_counter_wait(r.landed + place, deep.lap);
#pragma unroll
                for (uint32_t e = 0; e < EACH<1>; ++e) r.load(u[e], s, place, e, 0);
                leave_place(r, place);
                deep.down(a);
            };
            to += (int64_t)(parts * EACH<1> - 1) * a.step;
            deep.begin(a, turn, parts - 1);
            take();
#pragma unroll
            for (uint32_t e = EACH<1>; e-- > 0;)
                write(u[e], s.lane < rows_of_last<1>(a, s, e), truth<true>{});
#pragma unroll 1
            for (uint32_t part = 1; part < parts; ++part) {
                take();
#pragma unroll
                for (uint32_t e = EACH<1>; e-- > 0;) write(u[e], s.active, truth<true>{});
            }
            hear(r);
            continue;
        }
        const auto receive = [&](unit<T>(&u)[EACH<1>]) {
#pragma unroll
            for (uint32_t e = 0; e < EACH<1>; ++e) r.load(u[e], s, at.place, e, 0);
            leave_place(r, at.place);
            at.advance(a);
        };
        // adding warps have seen that the rounds are there, and told of it
        const auto walk = [&](auto subtracts) {
#pragma unroll 1
            for (uint32_t part = 1; part < parts; ++part) {
                receive(u);
#pragma unroll
                for (uint32_t e = 0; e < EACH<1>; ++e) write(u[e], s.active, subtracts);
            }
        };
        if (near) walk(truth<false>{});
        else walk(truth<true>{});
        receive(u);
#pragma unroll
        for (uint32_t e = 0; e < EACH<1>; ++e) {
            write(u[e], s.lane < rows_of_last<1>(a, s, e), truth<true>{});
        }
    }
}

template <class T, bool DEEP = false>
__device__ __forceinline__ void staged(const norm_staged_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    const seat s = seat_of(a);
    const ring<1> r = ring_of<1>(a);
    begin(a, r);
    if (threadIdx.x < GROUP) {
        adds<T, DEEP>(a, s, r);
    } else if (threadIdx.x < 2 * GROUP) {
        writes<T, DEEP>(a, s, r);
    } else if (threadIdx.x == 2 * GROUP) {
        if (DEEP) ask_for_parts(a, s, r);
        else ask_for_rounds<1>(a, s, r, {a.x});
    }
#endif
}

} // namespace

#endif
