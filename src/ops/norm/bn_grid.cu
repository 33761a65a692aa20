// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization in one kernel whose blocks are all there at once (bn_grid_args.h): a thread sums
// its units as they go through the ring in shared memory; blocks of a group exchange their sums and
// meet; then every thread writes what the ring and its registers have kept, and reads the rest again, from
// the last round to the first, since the cache has what was read last. Training: sums are of
// differences from an element of the parameter's, the same for all.
#include "ops/norm/bn_grid_ring.cuh"
#include "ops/norm/bn_grid_sets.cuh"

namespace {

__device__ __forceinline__ uint32_t sign_of(float v)
{
    return __float_as_uint(v) >> 31;
}

__device__ __forceinline__ uint32_t sign_of(double v)
{
    return (uint32_t)__double2hiint(v) >> 31;
}

// PLAIN: neither z nor an activation, and y takes nothing of what it was. CYCLIC: columns as each_item() has them.
template <class T, bool LED, bool ADDS, bool PLAIN, bool CYCLIC = false> struct forward_writer {
    static constexpr int V = UNIT<T>;
    using A = acc<T>;
    A mean[V], factor[V], base[V];

    __device__ __forceinline__ void begin(const bn_grid_args &a, const spot &p)
    {
        const column_numbers<A> *n = reinterpret_cast<const column_numbers<A> *>(memory());
        each_item<T, CYCLIC>(a, p.run, [&](int i, uint32_t item) {
            const column_numbers<A> one = n[item];
            mean[i] = one.mean, factor[i] = one.factor, base[i] = one.base;
        });
    }

    // All threads of a warp come here together; those that are not `there` write nothing.
    __device__ __forceinline__ void write(const bn_grid_args &a, const unit<T> &x, const unit<T> &z,
                                          uint32_t at, bool there) const
    {
        A v[V];
        widen_unit<T>(v, x);
#pragma unroll
        for (int i = 0; i < V; ++i) v[i] = factor[i] * (v[i] - mean[i]) + base[i];
        if constexpr (PLAIN) {
            unit<T> u;
            wd_narrow_run(u, v);
            put_whole_unit<T>(a, a.bn.y, u, at, there);
            return;
        }
        if (ADDS && a.bn.z) {
#pragma unroll
            for (int i = 0; i < V; ++i) v[i] += wd_widen(z.get(i));
        }
        if (a.bn.activates) {
            const scalars_of<A> s(a.bn);
            uint32_t bits = 0;
            if (!a.clips) {
#pragma unroll
                for (int i = V - 1; i >= 0; --i) {
                    v[i] = max(v[i], s.low);
                    bits = bits << 1 |
                           sign_of(s.low - v[i]); // it passed where the difference is negative
                }
            } else {
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    if (v[i] > s.low && !(v[i] > s.high)) bits |= 1u << i;
                    const A clipped = v[i] > s.low ? (v[i] > s.high ? s.high : v[i]) : s.low;
                    v[i] = v[i] != v[i] && a.bn.keeps_nan ? v[i] : clipped;
                }
            }
            if (a.bn.reserve) put_bits<T, LED>(a, bits, at, there);
        }
        put_blended<T, LED>(a, v, at, there);
    }
};

// Statistics of a thread's parameter become those of all neighbours that share them (Chan, Golub and LeVeque
// 1983), which have equally many elements. All threads come here together.
template <class T>
__device__ __forceinline__ void join_members(const bn_grid_args &a, bool mine, double &mean,
                                             double &around)
{
    double sum = 0, squares = 0, inside = 0, near = 0;
    show_to_members(mine, make_double2(mean, around));
    if (mine) {
        near = first_member<T>(a).x;
        each_member<T>(a, [&](const double2 &one) {
            const double d = one.x - near;
            sum += d;
            squares += d * d;
            inside += one.y;
        });
        const double rest = sum / a.members, apart = squares - sum * rest;
        mean = near + rest;
        around = inside + (double)a.bn.terms * (apart > 0.0 || apart != apart ? apart : 0.0);
        around /= a.members;
    }
    __syncthreads();
}

// What channels of sets follow from their sums: of samples. All threads come here together; `scale` and `bias` are those of
// item threadIdx.x, if it is `mine`.
template <class T>
__device__ __forceinline__ void join_sets(const bn_grid_args &a, const spot &p, bool mine,
                                          acc<T> scale, acc<T> bias, acc<T> pivot,
                                          const acc<T> (&value)[2 * UNIT<T>])
{
    using A = acc<T>;
    struct alignas(4 * sizeof(A)) set_numbers {
        A mean, inv_std, cut_off;
    };
    set_numbers *numbers = reinterpret_cast<set_numbers *>(memory() + a.shown);
    const lane_share s = set_of(a);
    const uint32_t next = sets_of_unit<T>(a, p.run).next, c = channel_of_set(a, p, s.index);
    const unit_pairs<A> own = pairs_of_unit<T>(0, next, value);
    const uint4 asked = wd_board_ask(a.board);
    const wd_board board = wd_board_of(a.board, asked);
    double2 all = sums_of_set<T>(a, p, own);
    uint64_t *words = words_of_set(a, p, board.bank);
    if (s.index < a.sets && s.share == 0)
        wd_board_show(words + p.block, (float)all.x, (float)all.y);
    wd_board_clear(board);
    all = sums_of_blocks(a, words,
                         [](const uint64_t *from, uint32_t step, uint32_t count,
                            float2(&to)[SET_BATCH]) { wd_board_see(from, step, count, to); });
    if (s.index < a.sets && s.share == 0) {
        const double rest = all.x * a.inv_set, left = all.y - all.x * rest;
        const double around = left > 0.0 || left != left ? left : 0.0, mean = (double)pivot + rest;
        const double inv_std = rsqrt(around * a.inv_set + a.bn.epsilon);
        numbers[s.index] = {(A)mean, (A)inv_std, (A)(mean - (A)mean)};
        if (p.block == 0 && c < a.bn.params) {
            const uint32_t at = statistic_of(a, p, c);
            set_param<A>(a.bn.mean, at, 0, mean, 1.0, 0.0);
            set_param<A>(a.bn.var, at, 0, inv_std, 1.0, 0.0);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) wd_board_leave(a.board, asked, gridDim.x * a.sets);
    if (mine) {
        const set_numbers of = numbers[set_of_item<T>(a, threadIdx.x)];
        column_numbers<A> n;
        n.mean = of.mean;
        n.factor = scale * of.inv_std;
        n.base = bias - n.factor * of.cut_off;
        n.slope = 0;
        reinterpret_cast<column_numbers<A> *>(memory())[threadIdx.x] = n;
    }
}

// EACH rounds are a part of the ring. SAMPLES: as many batch norms at once, by single columns of which a.members
// share statistics, and nothing behind whole rows. PLAIN: as the writer has it.
template <class T, bool LED, bool BOARD, bool SAMPLES = false, bool PLAIN = SAMPLES>
__device__ void grid_forward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>, EACH = BN_GRID_EACH(1);
    constexpr bool JUMPS = !BOARD, ADDS = !BOARD; // what goes by the board has neither
    constexpr bool CYCLIC = BOARD && !SAMPLES;
    using A = acc<T>;
    constexpr int HELD = SAMPLES ? BN_GRID_HELD_SAMPLES(1) : BOARD ? BN_GRID_HELD(1, LED) : 0;
    constexpr int HELD_FIRST = HELD < 8 ? HELD : 8; // that are asked for at once
    static_assert(HELD == 0 || HELD >= EACH * (BN_GRID_AHEAD - 1), "");
    spot p = spot_of<LED, SAMPLES>(a);
    unsigned char *const ring = ring_of<PLAIN>();
    const bool holds = HELD > 0 && a.held > 0 && p.active;
    if (holds) p.base += HELD * p.step;
    const T *x = static_cast<const T *>(a.bn.x);
    const uint32_t parts = (a.rounds + EACH - 1) / EACH,
                   ahead = min(a.parts, (uint32_t)BN_GRID_AHEAD);
    A value[2 * V]; // sums of differences from the pivot, and of their squares
    // `full`: all threads that have units have all of the part
    const auto send_part = [&](uint32_t place, uint32_t part, bool full) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const uint32_t r = part * EACH + e;
            if (full && !LED ? p.active : r < p.rounds)
                send<T, LED>(a, row_of<1, EACH>(a, ring, place, e, 0), x, at_round<JUMPS>(a, p, r));
        }
    };
    const auto send_z = [&](uint32_t place, uint32_t part) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const uint32_t r = part * EACH + e;
            if (r < p.rounds)
                send<T, LED>(a, row_of_z<EACH>(a, place, e), a.bn.z, at_round<JUMPS>(a, p, r));
        }
    };
    wd_wait_for_previous();
    const bool sets = SAMPLES && a.sets > 0;
    ask_for_pivots(a, p);
    unit<T> held[HELD > 0 ? HELD : 1] = {};
    const auto at_held = [&](int h) { return p.base - (HELD - h) * p.step; };
    const auto get_held = [&](int h) {
        if (h == 0) get<T, LED>(a, held[h], x, at_held(h));
        else get<T, false>(a, held[h], x, at_held(h));
    };
    if (holds) {
#pragma unroll
        for (int h = 0; h < HELD_FIRST; ++h) get_held(h);
    }
    // where threads hold some, the first parts are asked for as these come: no more is on its way than later
    const bool after_held = HELD > 0 && a.held > 0;
    const auto send_first = [&](uint32_t part) {
        if (part < min(ahead, parts)) send_part(part, part, false);
        wd_copies_end();
    };
    if (!after_held) {
#pragma unroll
        for (uint32_t k = 0; k < BN_GRID_AHEAD; ++k) send_first(k);
    }
    const uint32_t c = param_of_item<T>(a, p, threadIdx.x);
    const bool mine = threadIdx.x < a.items && c < a.bn.params;
    const double kept_share = 1.0 - a.bn.factor;
    A scale = 0, bias = 0, old_mean = 0, old_var = 0, own_pivot = 0;
    uint32_t place = 0; // of the part after the last one
    {
        A pivot[V] = {};
        if (sets) {
            const uint32_t set = set_of(a).index;
            if (set < a.sets && channel_of_set(a, p, set) < a.bn.params)
                own_pivot = pivot_of_set<T>(a, p, set);
            if (p.active) {
                const unit_sets of = sets_of_unit<T>(a, p.run);
                const A first = pivot_of_set<T>(a, p, of.first);
                const A second = of.next < V ? pivot_of_set<T>(a, p, of.first + 1) : first;
#pragma unroll
                for (int i = 0; i < V; ++i) pivot[i] = i < of.next ? first : second;
            }
        } else if (single_columns(a) && p.active) {
            pivots_of_columns<T>(a, p, pivot);
        }
        if (mine) {
            if (!sets) own_pivot = pivot_of<T>(a, p, threadIdx.x);
            scale = param<A>(a.bn.scale, c);
            bias = param<A>(a.bn.bias, c);
            if (p.block ==
                0) { // which writes them, too, and with a board waits for nobody's reading
                old_mean = old_param<A>(a.bn.running_mean, c, kept_share);
                old_var = old_param<A>(a.bn.running_var, c, kept_share);
            }
        }
        if (!single_columns(a)) pivots_of_items<T, CYCLIC>(a, p, own_pivot, pivot);
        // what is before x adds nothing
        if (LED && holds && at_held(0) == 0) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                T none;
                wd_narrow(none, pivot[i]);
                if (i < a.bn.lead) held[0].put(i, none);
            }
        }
        if (LED && p.active && p.rounds > 0 && p.base == 0) {
            // the thread itself has put the others of the unit there
            T *first = reinterpret_cast<T *>(row_of<1, EACH>(a, ring, 0, 0, 0)) + threadIdx.x * V;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (i < a.bn.lead) wd_narrow(first[i], pivot[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < 2 * V; ++i) value[i] = (A)0;
        uint32_t next = ahead == a.parts ? a.stays : ahead;
        unit<T> u[EACH];
        const auto receive_part = [&]() {
            await_part(a);
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                receive<T>(u[e], row_of<1, EACH>(a, ring, place, e, 0));
            }
            place = place_after(place, a.stays, a.parts);
        };
        const auto add = [&](const unit<T> &one) {
            A v[V];
            widen_unit<T>(v, one);
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const A d = v[i] - pivot[i];
                value[2 * i] += d;
                value[2 * i + 1] += d * d;
            }
        };
        if (after_held) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (holds) add(held[h]);
                if (holds && h + HELD_FIRST < HELD) get_held(h + HELD_FIRST);
#pragma unroll
                for (int k = 0; k < BN_GRID_AHEAD; ++k) {
                    const int after = HELD - 1 - (BN_GRID_AHEAD - 1 - k) * EACH;
                    if (h == (after > 0 ? after : 0)) send_first(k);
                }
            }
        }
        // all threads that have units have all of those before the last part
        uint32_t part = 0;
        for (; part + ahead + 1 < parts; ++part) {
            receive_part();
            send_part(next, part + ahead, true);
            wd_copies_end();
            next = place_after(next, a.stays, a.parts);
#pragma unroll
            for (int e = 0; e < EACH; ++e) add(u[e]);
        }
#pragma unroll 1
        for (; part + 1 < parts; ++part) {
            receive_part();
            if (part + ahead < parts) send_part(next, part + ahead, false);
            wd_copies_end();
            next = place_after(next, a.stays, a.parts);
#pragma unroll
            for (int e = 0; e < EACH; ++e) add(u[e]);
        }
        receive_part();
        wd_copies_end();
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if ((parts - 1) * EACH + e < p.rounds) add(u[e]);
        }
#pragma unroll
        for (int i = 0; i < 2 * V; ++i) value[i] = p.active && !p.copies ? value[i] : (A)0;
        const int64_t tail = ((int64_t)a.all_rows * a.pitch + p.first) * V;
        if (!SAMPLES && p.block == a.blocks - 1 && p.active && !p.copies && p.lane == 0 &&
            tail < a.bn.total) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (tail + i >= a.bn.total) break;
                const A d = wd_widen(x[tail + i]) - pivot[i];
                value[2 * i] += d;
                value[2 * i + 1] += d * d;
            }
        }
    }
    for (uint32_t k = 0; k < BN_GRID_AHEAD; ++k) {
        if (ADDS && a.bn.z && k < min(a.beside, parts)) send_z(k, parts - 1 - k);
        wd_copies_end();
    }
    double mean = 0, inv_std = 0, around = 0;
    if (sets) {
        join_sets<T>(a, p, mine, scale, bias, own_pivot, value);
    } else {
        const double2 all = exchange<T, LED, BOARD, CYCLIC, SAMPLES>(a, p, value);
        double cut_off = 0;
        if (mine) {
            const double rest = all.x * a.inv_terms;
            const double left = all.y - all.x * rest;
            around = left > 0.0 || left != left ? left : 0.0;
            mean = (double)own_pivot + rest;
            cut_off = rest - (mean - (double)own_pivot);
        }
        if constexpr (SAMPLES) join_members<T>(a, mine, mean, around);
        if (mine) {
            inv_std = rsqrt(around * a.inv_terms + a.bn.epsilon);
            column_numbers<A> n;
            n.mean = (A)mean;
            n.factor = scale * (A)inv_std;
            // what rounding cut off the mean
            n.base = bias - n.factor * (A)(sizeof(A) == 4 ? mean - n.mean : cut_off);
            n.slope = 0;
            reinterpret_cast<column_numbers<A> *>(memory())[threadIdx.x] = n;
        }
    }
    __syncthreads();
    forward_writer<T, LED, ADDS, PLAIN, CYCLIC> w;
    if (p.active) w.begin(a, p);
    // rounds of all threads, for those of a warp go together; `full` as above, of threads that have units
    uint32_t beside = 0;
    const auto write_part = [&](uint32_t part, bool full) {
        unit<T> u[EACH], z[EACH];
        place = place_before(a, place, part);
        await_part(a);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            receive<T>(u[e], row_of<1, EACH>(a, ring, place, e, 0));
            if (ADDS && a.bn.z) receive<T>(z[e], row_of_z<EACH>(a, beside, e));
        }
        // which is not the last one
        if (part >= a.parts) send_part(place, part - (a.parts - a.stays), true);
        if (ADDS && a.bn.z && part >= a.beside) send_z(beside, part - a.beside);
        wd_copies_end();
        if (ADDS) beside = place_after(beside, 0, a.beside);
#pragma unroll
        for (int e = EACH - 1; e >= 0; --e) {
            const uint32_t r = part * EACH + e;
            if (full || r < a.rounds) {
                w.write(a, u[e], z[e], at_round<JUMPS>(a, p, r),
                        full || (r < p.rounds && !p.copies));
            }
        }
    };
    // of a warp, that need each other's bits
    constexpr bool TOGETHER = LED || !(PLAIN || V == BN_RUN);
    if constexpr (!TOGETHER) {
        if (p.active) {
            write_part(parts - 1, false);
            for (uint32_t part = parts - 1; part-- > 0;) write_part(part, true);
        }
    } else {
        for (uint32_t part = parts; part-- > 0;) write_part(part, false);
    }
    if (HELD > 0 && (TOGETHER ? a.held > 0 : holds)) {
        const bool there = !TOGETHER || (p.active && !p.copies);
        if constexpr (PLAIN) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) w.write(a, held[h], held[h], at_held(h), there);
        } else {
            // the code of outputs once
#pragma unroll 1
            for (int h = 0; h < HELD; ++h) {
                w.write(a, held[0], held[0], at_held(h), there);
                move_up(held);
            }
        }
    }
    if constexpr (SAMPLES) {
        if (!sets && mine && p.block == 0 && c % a.members == 0) {
            const uint32_t at = statistic_of(a, p, c);
            set_param<A>(a.bn.mean, at, 0, mean, 1.0, 0.0);
            set_param<A>(a.bn.var, at, 0, inv_std, 1.0, 0.0);
        }
        return; // rows are whole
    }
    behind_rows<T>(a, p, [&](int64_t at, const column_numbers<A> &n, bool behind) {
        A v = 0;
        if (at < a.bn.total) {
            v = n.factor * (wd_widen(x[at]) - n.mean) + n.base;
            if (a.bn.z) v += wd_widen(static_cast<const T *>(a.bn.z)[at]);
        }
        if (a.bn.activates) {
            uint32_t bits = activate<A, 1>(a.bn, &v);
            bits = at < a.bn.total ? bits << threadIdx.x % BN_RUN : 0;
#pragma unroll
            for (uint32_t m = 1; m < BN_RUN; m *= 2) bits |= __shfl_xor_sync(0xffffffffu, bits, m);
            if (a.bn.reserve && threadIdx.x % BN_RUN == 0 && at < a.bn.total)
                a.bn.reserve[(at - a.bn.lead) / BN_RUN] = (uint8_t)bits;
        }
        if (behind) put_element<T>(a, v, at);
    });
    if (mine && p.block == 0) {
        set_param<A>(a.bn.mean, c, 0, mean, 1.0, 0.0);
        set_param<A>(a.bn.var, c, 0, inv_std, 1.0, 0.0);
        set_param<A>(a.bn.running_mean, c, old_mean, mean, a.bn.factor, kept_share);
        set_param<A>(a.bn.running_var, c, old_var, around * a.inv_less, a.bn.factor, kept_share);
    }
    leave(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/bn_grid_kernels.def"
#include "ops/kernels_device.inc"
