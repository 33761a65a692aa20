// SPDX-License-Identifier: Apache-2.0
//
// Backward of samples (bn_grid_turns.cuh): as bn_grid_back.cu, but in turns, by single columns and the board alone.
// Included by it, whose writers it uses.
#ifndef WD_OPS_NORM_BN_GRID_TURNS_BACKWARD_CUH
#define WD_OPS_NORM_BN_GRID_TURNS_BACKWARD_CUH

#include "ops/norm/bn_grid_turns.cuh"

namespace {

template <class T> __device__ void turns_backward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>, HELD = BN_GRID_HELD(2);
    using A = acc<T>;
    // a round is a part
    static_assert(BN_GRID_EACH(2) == 1, "");
    spot p = spot_of<false, true>(a);
    const bool holds = a.held > 0 && p.active;
    const T *x = static_cast<const T *>(a.bn.x), *dy = static_cast<const T *>(a.bn.dy);
    const uint32_t rounds = a.rounds, ahead = min(a.parts, (uint32_t)BN_GRID_AHEAD);
    turns_places places = places_of(a);
    uint32_t at = p.base + (a.held > 0 ? HELD * p.step : 0); // of round 0 in the ring, this turn
    // `full`: all threads that have units have the round
    const auto send_round = [&](uint32_t place, uint32_t r, uint32_t from, bool full) {
        if (full ? !p.active : r >= p.rounds) return;
        unsigned char *row = places.at(place);
        send<T, false>(a, row, x, from + r * p.step);
        send<T, false>(a, row + a.slots * BN_GRID_UNIT, dy, from + r * p.step);
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
    const turns_share share = share_of(a);
    const uint32_t c = param_of_item<T>(a, p, share.item);
    const bool mine = share.item < a.items && c < a.bn.params;
    A scale = 0, inv_std = 0, own_mean = 0;
    const auto get_statistics = [&]() {
        if (!mine) return;
        const uint32_t of = statistic_of(a, p, c);
        own_mean = param<A>(a.bn.mean, of);
        inv_std = param<A>(a.bn.var, of);
    };
    get_statistics();
    if (mine) scale = param<A>(a.bn.scale, c);
    turns_board board = turns_board_of(a);
    bool more;
#pragma unroll 1
    do {
        const bool first = board.turn == 0;
        more = p.sample + a.at_once < a.samples;
        uint32_t place = 0; // of the round after the last one
        unit<T> ux, ug;
        A value[2 * V]; // sums of dy, and of dy times x - mean
        const auto receive_round = [&]() {
            const unsigned char *row = places.at(place);
            await_part(a);
            receive<T>(ux, row);
            receive<T>(ug, row + a.slots * BN_GRID_UNIT);
        };
        {
            A *means = reinterpret_cast<A *>(memory() + a.shown);
            A mean[V];
            if (share.item < a.items && share.share == 0) means[share.item] = own_mean;
            __syncthreads();
#pragma unroll
            for (int i = 0; i < V; ++i) mean[i] = means[i * a.runs + p.run];
#pragma unroll
            for (int i = 0; i < 2 * V; ++i) value[i] = (A)0;
            const auto add = [&](const unit<T> &one_x, const unit<T> &one_dy) {
                add_products<T>(value, one_x, one_dy, mean);
            };
            if (holds) {
#pragma unroll
                for (int h = 0; h < HELD; ++h) add(held_x[h], held_dy[h]);
            }
            // what has been asked for in the turn before stays; all threads that have units have all rounds before
            // the last one
            uint32_t r = 0, next = ahead == a.parts || !first ? a.stays : ahead;
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
#pragma unroll
            for (int i = 0; i < 2 * V; ++i) value[i] = p.active ? value[i] : (A)0;
        }
        const double2 all = sums_of_team<T>(a, p, value, board);
        double2 shared =
            make_double2(0.0, 0.0); // of all that share statistics, each times its scale
        show_to_neighbours(a, board, mine, make_double2(scale * all.x, scale * all.y), !more);
        if (mine) each_neighbour<T>(a, [&](const double2 &one) { shared = plus(shared, one); });
        shared = make_double2(sum_of_shares(a, shared.x), sum_of_shares(a, shared.y));
        if (mine && share.share == 0) {
            column_numbers<A> n;
            const double each = inv_std * a.inv_terms / a.members;
            n.mean = own_mean;
            n.factor = (A)((double)scale * inv_std);
            n.base = (A)(-each * shared.x);
            n.slope = (A)(-each * shared.y * inv_std * inv_std);
            reinterpret_cast<column_numbers<A> *>(memory())[share.item] = n;
            if (p.block == 0 && a.found) {
                float *found = a.found + 2 * (p.sample * a.bn.params + c);
                found[0] = (float)all.x;
                found[1] = (float)(all.y * inv_std);
            }
        }
        p.sample += a.at_once;
        if (more) get_statistics();
        __syncthreads();
        backward_writer<T, false, true> w;
        if (p.active) w.begin(a, p);
        const uint32_t later = at + a.at_once * a.sample;
        if (holds) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                w.write(a, held_x[h], held_dy[h], at - (HELD - h) * p.step, true);
                if (more) get_held(h, later);
            }
        }
        const auto write_round = [&](uint32_t r, bool full) {
            place = place_before(a, place, r);
            receive_round();
            // which is not the last one
            if (r >= a.parts) send_round(place, r - (a.parts - a.stays), at, true);
            else if (more) send_round(place, a.parts - 1 - r, later, false);
            wd_copies_end();
            w.write(a, ux, ug, at + r * p.step, full || r < p.rounds);
        };
        if (p.active) {
            write_round(rounds - 1, false);
            for (uint32_t r = rounds - 1; r-- > 0;) write_round(r, true);
        }
        turn_places(a, places);
        at = later;
    } while (more);
}

} // namespace

#endif
