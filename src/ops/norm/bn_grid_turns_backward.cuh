// SPDX-License-Identifier: Apache-2.0
//
// Backward of samples (bn_grid_turns.cuh): as bn_grid_back.cu, but in turns, by single columns and the board alone.
#ifndef WD_OPS_NORM_BN_GRID_TURNS_BACKWARD_CUH
#define WD_OPS_NORM_BN_GRID_TURNS_BACKWARD_CUH

#include "ops/norm/bn_grid_products.cuh"
#include "ops/norm/bn_grid_turns.cuh"
#include "ops/norm/norm_param.cuh"

namespace {

// What shared memory has of items, and of sets where a turn ends. Means lie where threads join, and are those of the next turn
// while outputs are written.
template <class A> struct turns_numbers {
    A *means, *scales;
    double2 *sets;
};

template <class A>
__device__ __forceinline__ turns_numbers<A> turns_numbers_of(const bn_grid_args &a)
{
    A *means = reinterpret_cast<A *>(memory() + BN_GRID_AREA / 2);
    A *scales = reinterpret_cast<A *>(memory() + a.shown);
    return {means, scales, reinterpret_cast<double2 *>(scales + 2 * a.items)};
}

// What a sample's sums, or a block's part of them, add to a channel's dbias and dscale, to a row of what is found.
template <class A>
__device__ __forceinline__ void put_found(const bn_grid_args &a, uint32_t row, uint32_t c,
                                          double2 sums, A inv_std)
{
    float *found = a.found + 2 * (row * a.bn.params + c);
    found[0] = (float)sums.x;
    found[1] = (float)(sums.y * inv_std);
}

// Of each set the sums of what its channels have, times their scales, to shared memory; while the other blocks' are on their
// way, a block leaves what it has of channels itself.
template <class T>
__device__ __forceinline__ void join_sets(const bn_grid_args &a, const spot &p,
                                          const acc<T> (&value)[2 * UNIT<T>], wd_board_turns &b,
                                          bool mine, uint32_t c, acc<T> inv_std, bool last)
{
    using A = acc<T>;
    const turns_numbers<A> numbers = turns_numbers_of<A>(a);
    const lane_share s = set_of(a);
    const uint32_t next = sets_of_unit<T>(a, p.run).next, bit = wd_board_bit(b.turn);
    unit_pairs<A> own = {};
#pragma unroll
    for (int i = 0; i < UNIT<T>; ++i) {
        const A scale = p.active ? numbers.scales[i * a.runs + p.run] : (A)0;
        const A first = scale * value[2 * i], second = scale * value[2 * i + 1];
        own.of[0] += i < next ? first : (A)0;
        own.of[1] += i < next ? second : (A)0;
        own.of[2] += i < next ? (A)0 : first;
        own.of[3] += i < next ? (A)0 : second;
    }
    const uint4 asked = wd_board_ask_in_turn(a.board, b);
    double2 all = sums_of_set<T>(a, p, own);
    uint64_t *words = words_of_set(a, p, wd_board_set(a.board, b, gridDim.x * a.sets));
    if (s.index < a.sets && s.share == 0)
        wd_board_show_in_turn(words + p.block, (float)all.x, (float)all.y, bit);
    wd_board_clear_in_turn(a.board, asked);
    if (a.found) {
        __syncthreads();
        const double2 item = sums_of_item<T>(a, value);
        if (mine && item_of(a).share == 0) {
            put_found(a, p.sample * a.blocks + p.block, c, item, inv_std);
        }
    }
    all = sums_of_blocks(
        a, words, [&](const uint64_t *from, uint32_t step, uint32_t count, float2(&to)[SET_BATCH]) {
            wd_board_see_in_turn(from, step, count, bit, to);
        });
    if (s.index < a.sets && s.share == 0) numbers.sets[s.index] = all;
    b.turn += 1;
    __syncthreads();
    leave_in_turn(a, b, last, a.sets);
}

// dscale and dbias, a channel a warp, from what all blocks have found by the last turn: rows of it are asked for while others
// write, into a thread's sums, which that turn needs no more. All threads of a warp come here together.
__device__ __forceinline__ uint32_t first_param(void)
{
    return blockIdx.x + threadIdx.x / 32 * gridDim.x;
}

template <int N>
__device__ __forceinline__ void ask_for_params(const bn_grid_args &a, uint32_t asked, uint32_t c,
                                               float (&rows)[N])
{
    const float2 *found = reinterpret_cast<const float2 *>(a.found) + c;
    if (c >= a.bn.params) return;
    if (threadIdx.x % 32 == 0) wd_await(a.board, asked);
    __syncwarp();
#pragma unroll
    for (uint32_t k = 0; k < N / 2; ++k) {
        const uint32_t row = threadIdx.x % 32 + 32 * k;
        if (row >= a.found_rows) break;
        const float2 one = __ldcg(found + (int64_t)row * a.bn.params);
        rows[2 * k] = one.x, rows[2 * k + 1] = one.y;
    }
}

template <int N>
__device__ __forceinline__ void finish_params(const bn_grid_args &a, uint32_t asked,
                                              float (&rows)[N])
{
    const float2 *found = reinterpret_cast<const float2 *>(a.found);
#pragma unroll 1
    for (uint32_t c = first_param(); c < a.bn.params; c += blockDim.x / 32 * gridDim.x) {
        double2 all = make_double2(0.0, 0.0);
        if (c != first_param()) ask_for_params(a, asked, c, rows);
#pragma unroll
        for (int k = 0; k < N / 2; ++k) all = plus(all, make_double2(rows[2 * k], rows[2 * k + 1]));
#pragma unroll 1
        for (uint32_t row = threadIdx.x % 32 + 16 * N; row < a.found_rows; row += 32) {
            const float2 one = __ldcg(found + (int64_t)row * a.bn.params + c);
            all = plus(all, make_double2(one.x, one.y));
        }
        all = sum_of_lanes(5, all);
        if (threadIdx.x % 32 == 0) {
            set_param(a.dbias, c, (float)all.x);
            set_param(a.dscale, c, (float)all.y);
        }
    }
}

// As backward_writer, with what the mean adds in the base: of two bytes an element that says as much, and registers are few.
template <class T> struct turns_writer {
    static constexpr int V = UNIT<T>;
    using A = acc<T>;
    A factor[V], base[V], slope[V];

    __device__ __forceinline__ void begin(const bn_grid_args &a, const spot &p)
    {
        const column_numbers<A> *n = reinterpret_cast<const column_numbers<A> *>(memory());
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const column_numbers<A> one = n[i * a.runs + p.run];
            factor[i] = one.factor, base[i] = one.base, slope[i] = one.slope;
        }
    }

    __device__ __forceinline__ void write(const bn_grid_args &a, const unit<T> &x,
                                          const unit<T> &dy, uint32_t at, bool there) const
    {
        A g[V], dx[V];
        widen_unit<T>(g, dy);
        widen_unit<T>(dx, x);
#pragma unroll
        for (int i = 0; i < V; ++i) dx[i] = factor[i] * g[i] + (slope[i] * dx[i] + base[i]);
        unit<T> u;
        wd_narrow_run(u, dx);
        put_whole_unit<T>(a, a.bn.y, u, at, there);
    }
};

template <class T> __device__ void turns_backward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>, HELD = BN_GRID_HELD_SAMPLES(2);
    using A = acc<T>;
    spot p = spot_of<false, true>(a);
    const bool holds = a.held > 0 && p.active;
    const T *x = static_cast<const T *>(a.bn.x), *dy = static_cast<const T *>(a.bn.dy);
    const uint32_t rounds = a.rounds, ahead = min(a.parts, (uint32_t)BN_GRID_AHEAD);
    turns_places places = places_of(a, 1);
    uint32_t at = p.base + (a.held > 0 ? HELD * p.step : 0); // of round 0 in the ring, this turn
    // `full`: all threads that have units have the round
    const auto send_round = [&](uint32_t place, uint32_t r, uint32_t from, bool full) {
        if (full ? !p.active : r >= p.rounds) return;
        unsigned char *row = places.at(place);
        send_both<T, false>(a, row, x, dy, from + r * p.step);
    };
    unit<T> held_x[HELD] = {}, held_dy[HELD] = {};
    const auto get_held = [&](int h, uint32_t from) {
        get<T, false>(a, held_x[h], x, from - (HELD - h) * p.step);
        get<T, false>(a, held_dy[h], dy, from - (HELD - h) * p.step);
    };
    wd_wait_for_previous();
    if (holds) {
#pragma unroll
        for (int h = 0; h < HELD; ++h) get_held(h, at);
    }
    for (uint32_t r = 0; r < BN_GRID_AHEAD; ++r) {
        if (r < ahead) send_round(r, r, at, false);
        wd_copies_end();
    }
    const lane_share share = item_of(a);
    const uint32_t c = param_of_item<T>(a, p, share.index);
    const bool mine = share.index < a.items && c < a.bn.params;
    A scale = 0, inv_std = 0, own_mean = 0;
    if (mine) {
        own_mean = param<A>(a.bn.mean, statistic_of(a, p, c));
        inv_std = param<A>(a.bn.var, statistic_of(a, p, c));
        scale = param<A>(a.bn.scale, c);
    }
    const turns_numbers<A> numbers = turns_numbers_of<A>(a);
    if (share.index < a.items && share.share == 0) {
        numbers.means[share.index] = own_mean;
        if (a.sets > 0) numbers.scales[share.index] = scale;
    }
    wd_board_turns board = {0, 0};
    A value[2 * V]; // sums of dy, and of dy times x - mean
#pragma unroll
    for (int i = 0; i < 2 * V; ++i) value[i] = (A)0;
    uint32_t added = 0; // rounds, in the turn before
    bool more;
    __syncthreads();
#pragma unroll 1
    do {
        const bool first = board.turn == 0;
        more = p.sample + a.at_once < a.samples;
        uint32_t place = added; // of the round after the last one
        unit<T> ux, ug;
        const auto get_means = [&](A(&mean)[V]) {
#pragma unroll
            for (int i = 0; i < V; ++i)
                mean[i] = p.active ? numbers.means[i * a.runs + p.run] : (A)0;
        };
        const auto receive_round = [&]() {
            const unsigned char *row = places.at(place);
            await_part(a);
            receive_both<T>(a, ux, ug, row);
        };
        {
            A mean[V];
            get_means(mean);
            // before anybody joins where they are
            __syncthreads();
            const auto add = [&](const unit<T> &one_x, const unit<T> &one_dy) {
                add_products<T>(value, one_x, one_dy, mean);
            };
            // what has been asked for in the turn before stays; all threads that have units have all rounds before
            // the last one
            uint32_t r = added, next = ahead == a.parts || !first ? a.stays : ahead;
            if (!first) {
                const uint32_t end = min(a.parts == rounds ? rounds : a.stays, rounds - 1);
#pragma unroll 1
                for (; r < end; ++r) {
                    receive_round();
                    wd_copies_end();
                    place = place_after(place, a.stays, a.parts);
                    add(ux, ug);
                }
            }
            const auto add_round = [&](bool sends, bool full) {
                receive_round();
                if (sends || r + ahead < rounds) send_round(next, r + ahead, at, sends);
                wd_copies_end();
                place = place_after(place, a.stays, a.parts);
                next = place_after(next, a.stays, a.parts);
                if (full || r < p.rounds) add(ux, ug);
            };
            for (; r + ahead + 1 < rounds; ++r) add_round(true, true);
#pragma unroll 1
            for (; r < rounds; ++r) add_round(false, false);
            if (holds) {
#pragma unroll
                for (int h = 0; h < HELD; ++h) add(held_x[h], held_dy[h]);
            }
#pragma unroll
            for (int i = 0; i < 2 * V; ++i) value[i] = p.active ? value[i] : (A)0;
        }
        A next_mean = 0, next_inv_std = 0;
        if (more && mine) {
            const uint32_t of =
                statistic_of(a, p, c) + wd_fastdiv_quotient(a.at_once * a.bn.params, a.by_members);
            next_mean = param<A>(a.bn.mean, of);
            next_inv_std = param<A>(a.bn.var, of);
        }
        double2 all = make_double2(0.0, 0.0),
                shared = all; // of all that share statistics, each times its scale
        if (a.sets > 0) {
            join_sets<T>(a, p, value, board, mine, c, inv_std, !more);
            if (mine) shared = numbers.sets[set_of_item<T>(a, share.index)];
        } else {
            all = sums_of_team<T>(a, p, value, board);
            if (mine && share.share == 0 && p.block == 0 && a.found) {
                put_found(a, p.sample, c, all, inv_std);
            }
            show_to_neighbours(a, board, mine, make_double2(scale * all.x, scale * all.y), !more);
            if (mine) each_neighbour<T>(a, [&](const double2 &one) { shared = plus(shared, one); });
            shared = make_double2(sum_of_lanes(a.share_bits, shared.x),
                                  sum_of_lanes(a.share_bits, shared.y));
        }
        if (mine && share.share == 0) {
            column_numbers<A> n;
            const double each = inv_std * a.inv_set;
            n.mean = 0;
            n.factor = (A)((double)scale * inv_std);
            n.slope = (A)(-each * shared.y * inv_std * inv_std);
            n.base = (A)(-each * shared.x - (double)n.slope * own_mean);
            reinterpret_cast<column_numbers<A> *>(memory())[share.index] = n;
        }
        own_mean = next_mean, inv_std = next_inv_std;
        if (share.index < a.items && share.share == 0) numbers.means[share.index] = own_mean;
#pragma unroll
        for (int i = 0; i < 2 * V; ++i) value[i] = (A)0;
        p.sample += a.at_once;
        __syncthreads();
        turns_writer<T> w;
        w.begin(a, p);
        const uint32_t later = at + a.at_once * a.sample;
        const auto write_round = [&](uint32_t r) {
            place = place_before(a, place, r);
            receive_round();
            // which is not the last one
            if (r >= a.parts) send_round(place, r - (a.parts - a.stays), at, true);
            else if (more) send_round(place, a.parts - 1 - r, later, false);
            wd_copies_end();
            w.write(a, ux, ug, at + r * p.step, r < p.rounds);
        };
        // what was asked for so many rounds ago is here, and is added before the next ones are asked for
        const auto add_next = [&](uint32_t here) {
            A mean[V];
            get_means(mean);
#pragma unroll 1
            for (; added < here; ++added) {
                const unsigned char *row = places.at(a.parts - 1 - added);
                receive_both<T>(a, ux, ug, row);
                add_products<T>(value, ux, ug, mean);
            }
        };
        added = 0;
#pragma unroll 1
        for (uint32_t r = rounds; r > 0;) {
            const uint32_t end = r - min(r, (uint32_t)BN_GRID_AHEAD);
            const bool half = r > rounds / 2 && end <= rounds / 2;
#pragma unroll 1
            while (r > end) write_round(--r);
            if (!more && half && a.found_rows > 0)
                ask_for_params(a, board.asked, first_param(), value);
            if (!more || a.shallow || end + BN_GRID_AHEAD >= a.parts) continue;
            add_next(a.parts - end - BN_GRID_AHEAD);
            w.begin(a, p);
        }
        // last, so that the next ones are not asked for before the ring's
        if (holds) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                w.write(a, held_x[h], held_dy[h], at - (HELD - h) * p.step, true);
                if (more) get_held(h, later);
            }
        }
        if (!more && a.found_rows > 0) finish_params(a, board.asked, value);
        turn_places(a, places);
        at = later;
    } while (more);
}

} // namespace

#endif
