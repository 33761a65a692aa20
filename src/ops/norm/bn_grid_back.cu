// SPDX-License-Identifier: Apache-2.0
//
// Backward of batch normalization as bn_grid.cu does training: x and dy are kept together.
#include "ops/norm/bn_grid_products.cuh"
#include "ops/norm/bn_grid_sums.cuh"
#include "ops/norm/bn_grid_turns_backward.cuh"

namespace {

// PLAIN: no dz, and dx takes nothing of what it was. CYCLIC: columns as each_item() has them.
template <class T, bool LED, bool PLAIN, bool CYCLIC = false> struct backward_writer {
    static constexpr int V = UNIT<T>;
    using A = acc<T>;
    A mean[V], factor[V], base[V], slope[V];

    __device__ __forceinline__ void begin(const bn_grid_args &a, const spot &p)
    {
        const column_numbers<A> *n = reinterpret_cast<const column_numbers<A> *>(memory());
        each_item<T, CYCLIC>(a, p.run, [&](int i, uint32_t item) {
            const column_numbers<A> one = n[item];
            mean[i] = one.mean, factor[i] = one.factor, base[i] = one.base, slope[i] = one.slope;
        });
    }

    // All threads of a warp come here together; those that are not `there` write nothing.
    __device__ __forceinline__ void write(const bn_grid_args &a, const unit<T> &x,
                                          const unit<T> &dy, uint32_t at, bool there) const
    {
        A g[V], dx[V];
        widen_unit<T>(g, dy);
        widen_unit<T>(dx, x);
#pragma unroll
        for (int i = 0; i < V; ++i)
            dx[i] = factor[i] * g[i] + base[i] + slope[i] * (dx[i] - mean[i]);
        if constexpr (PLAIN) {
            unit<T> u;
            wd_narrow_run(u, dx);
            put_unit<T, LED>(a, a.bn.y, u, at, there);
            return;
        }
        put_blended<T, LED>(a, dx, at, there);
        if (a.bn.dz) put_unit<T, LED>(a, a.bn.dz, dy, at, there);
    }
};

// PLAIN: as the writer has it, and no reserve space.
template <class T, bool LED, bool BOARD, bool PLAIN = false>
__device__ void grid_backward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>;
    constexpr bool JUMPS = !BOARD; // what goes by the board does not
    constexpr bool CYCLIC = BOARD;
    constexpr int HELD = BOARD ? BN_GRID_HELD(2, LED) : 0;
    using A = acc<T>;
    spot p = spot_of<LED>(a);
    const bool after_held = HELD > 0 && a.held > 0, holds = after_held && p.active;
    if (holds) p.base += HELD * p.step;
    unsigned char *const ring = ring_of<false>();
    const T *x = static_cast<const T *>(a.bn.x), *dy = static_cast<const T *>(a.bn.dy);
    const uint32_t ahead = min(a.parts, (uint32_t)BN_GRID_AHEAD);
    A value[2 * V]; // sums of dy, and of dy times x - mean
    // `full`: all threads that have units have the round
    const auto send_round = [&](uint32_t to, uint32_t r, bool full) {
        if (full && !LED ? !p.active : r >= p.rounds) return;
        const uint32_t at = at_round<JUMPS>(a, p, r);
        unsigned char *row = row_of<2, 1>(a, ring, to, 0, 0);
        send_both<T, LED>(a, row, x, dy, at);
        if (!PLAIN && a.bn.reserve) send_bits<T, LED>(a, row, at);
    };
    uint32_t place = 0; // of the round after the last one
    unit<T> ux, ug;
    const auto receive_round = [&](uint32_t r, bool full) {
        const unsigned char *row = row_of<2, 1>(a, ring, place, 0, 0);
        await_part(a);
        receive_both<T>(a, ux, ug, row);
        if (!PLAIN && a.bn.reserve && (full || r < p.rounds))
            mask_unit<T>(ug, receive_bits<T, LED>(a, row, at_round<JUMPS>(a, p, r)));
    };
    // where threads hold some, the first rounds are asked for as these come: no more is on its way than later
    const auto send_first = [&](uint32_t r) {
        if (r < ahead) send_round(r, r, false);
        wd_copies_end();
    };
    constexpr int MOST = HELD > 0 ? HELD : 1;
    unit<T> held_x[MOST] = {}, held_dy[MOST] = {};
    uint32_t held_bits[MOST];
    const auto at_held = [&](int h) { return p.base - (HELD - h) * p.step; };
    wd_wait_for_previous();
    if (holds) {
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            if (h == 0) {
                get<T, LED>(a, held_x[h], x, at_held(h));
                get<T, LED>(a, held_dy[h], dy, at_held(h));
            } else {
                get<T, false>(a, held_x[h], x, at_held(h));
                get<T, false>(a, held_dy[h], dy, at_held(h));
            }
            if (!PLAIN && a.bn.reserve) held_bits[h] = bits_of_unit<T, LED>(a, at_held(h));
        }
    }
    if (!after_held) {
#pragma unroll
        for (uint32_t r = 0; r < BN_GRID_AHEAD; ++r) send_first(r);
    }
    const uint32_t c = param_of_item<T>(a, p, threadIdx.x);
    const bool mine = threadIdx.x < a.items && c < a.bn.params;
    A scale = 0, inv_std = 0, old_dscale = 0, old_dbias = 0;
    column_numbers<A> n = {};
    {
        A mean[V];
        if (p.active) {
            each_param<T, CYCLIC>(
                a, p, [&](int i, uint32_t column) { mean[i] = param<A>(a.bn.mean, column); });
        }
        if (mine) {
            n.mean = param<A>(a.bn.mean, c);
            inv_std = param<A>(a.bn.var, c);
            scale = param<A>(a.bn.scale, c);
            if (p.block ==
                0) { // which writes them, too, and with a board waits for nobody's reading
                old_dscale = old_param<A>(a.bn.dscale, c, a.bn.beta_param);
                old_dbias = old_param<A>(a.bn.dbias, c, a.bn.beta_param);
            }
        }
#pragma unroll
        for (int i = 0; i < 2 * V; ++i) value[i] = (A)0;
        uint32_t next = ahead == a.parts ? a.stays : ahead;
        const auto add = [&](const unit<T> &one_x, const unit<T> &one_dy) {
            add_products<T>(value, one_x, one_dy, mean);
        };
        const auto add_round = [&](uint32_t r, bool sends, bool full) {
            receive_round(r, full && !LED);
            if (sends || r + ahead < a.rounds) send_round(next, r + ahead, sends);
            wd_copies_end();
            place = place_after(place, a.stays, a.parts);
            next = place_after(next, a.stays, a.parts);
            if (full || r < p.rounds) add(ux, ug);
        };
        if (after_held) {
            static_assert(HELD <= BN_GRID_AHEAD, "");
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (holds && !PLAIN && a.bn.reserve) mask_unit<T>(held_dy[h], held_bits[h]);
                if (holds) add(held_x[h], held_dy[h]);
                send_first(h);
            }
#pragma unroll
            for (uint32_t later = HELD; later < BN_GRID_AHEAD; ++later) send_first(later);
        }
        uint32_t r = 0;
        for (; r + ahead + 1 < a.rounds; ++r) add_round(r, true, true);
#pragma unroll 1
        for (; r < a.rounds; ++r) add_round(r, false, false);
#pragma unroll
        for (int i = 0; i < 2 * V; ++i) value[i] = p.active ? value[i] : (A)0;
        const int64_t tail = ((int64_t)a.all_rows * a.pitch + p.first) * V;
        if (p.block == a.blocks - 1 && p.active && p.lane == 0 && tail < a.bn.total) {
            const int64_t element = tail - a.bn.lead;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (tail + i >= a.bn.total) break;
                const uint32_t bits =
                    a.bn.reserve ? a.bn.reserve[(element + i) / BN_RUN] >> (element + i) % BN_RUN
                                 : 1u;
                const A g = masked(wd_widen(dy[tail + i]), bits, 0);
                value[2 * i] += g;
                value[2 * i + 1] += g * (wd_widen(x[tail + i]) - mean[i]);
            }
        }
    }
    const double2 all = exchange<T, LED, BOARD, CYCLIC>(a, p, value);
    double dscale = 0;
    if (mine) {
        const double scaled = (double)scale * inv_std;
        dscale = all.y * inv_std;
        n.factor = (A)scaled;
        n.base = (A)(-scaled * all.x * a.inv_terms);
        n.slope = (A)(-scaled * dscale * inv_std * a.inv_terms);
        reinterpret_cast<column_numbers<A> *>(memory())[threadIdx.x] = n;
    }
    __syncthreads();
    backward_writer<T, LED, PLAIN, CYCLIC> w;
    if (p.active) w.begin(a, p);
    // rounds of all threads, for those of a warp go together; `full` as above, of threads that have units
    const auto write_round = [&](uint32_t r, bool full) {
        place = place_before(a, place, r);
        receive_round(r, full);
        // which is not the last one
        if (r >= a.parts) send_round(place, r - (a.parts - a.stays), true);
        wd_copies_end();
        w.write(a, ux, ug, at_round<JUMPS>(a, p, r), full || r < p.rounds);
    };
    if constexpr (!LED) {
        if (p.active) {
            write_round(a.rounds - 1, false);
            for (uint32_t r = a.rounds - 1; r-- > 0;) write_round(r, true);
        }
    } else {
        for (uint32_t r = a.rounds; r-- > 0;) write_round(r, false);
    }
    if (LED ? after_held : holds) {
        // the code of outputs once
#pragma unroll 1
        for (int h = 0; h < HELD; ++h) {
            w.write(a, held_x[0], held_dy[0], at_held(h), !LED || p.active);
            move_up(held_x);
            move_up(held_dy);
        }
    }
    behind_rows<T>(a, p, [&](int64_t at, const column_numbers<A> &n, bool behind) {
        if (!behind) return;
        const int64_t element = at - a.bn.lead;
        T given = dy[at];
        if (a.bn.reserve && !(a.bn.reserve[element / BN_RUN] >> element % BN_RUN & 1))
            wd_narrow(given, (A)0);
        const A g = wd_widen(given);
        put_element<T>(a, n.factor * g + n.base + n.slope * (wd_widen(x[at]) - n.mean), at);
        if (a.bn.dz) static_cast<T *>(a.bn.dz)[at] = given;
    });
    if (mine && p.block == 0) {
        const double alpha = a.bn.alpha_param, beta = a.bn.beta_param;
        set_param<A>(a.bn.dscale, c, old_dscale, dscale, alpha, beta);
        set_param<A>(a.bn.dbias, c, old_dbias, all.x, alpha, beta);
    }
    leave(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/bn_grid_back_kernels.def"
#include "ops/kernels_device.inc"
