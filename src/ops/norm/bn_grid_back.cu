// SPDX-License-Identifier: Apache-2.0
//
// Backward of batch normalization as bn_grid.cu does training: x and dy are kept together.
#include "ops/norm/bn_grid_ring.cuh"
#include "ops/norm/bn_grid_sums.cuh"

namespace {

template <class T, bool LED> struct backward_writer {
    static constexpr int V = UNIT<T>;
    using A = acc<T>;
    A mean[V], factor[V], base[V], slope[V];

    __device__ __forceinline__ void begin(const bn_grid_args &a, const spot &p)
    {
        const column_numbers<A> *n = reinterpret_cast<const column_numbers<A> *>(memory());
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const column_numbers<A> one = n[item_of_column<T>(a, p.run, i)];
            mean[i] = one.mean, factor[i] = one.factor, base[i] = one.base, slope[i] = one.slope;
        }
    }

    // All threads of a warp come here together; those that are not `there` write nothing.
    __device__ __forceinline__ void write(const bn_grid_args &a, const unit<T> &x,
                                          const unit<T> &dy, uint32_t at, bool there) const
    {
        A g[V], dx[V];
#pragma unroll
        for (int i = 0; i < V; ++i) {
            g[i] = wd_widen(dy.get(i));
            dx[i] = factor[i] * g[i] + base[i] + slope[i] * (wd_widen(x.get(i)) - mean[i]);
        }
        put_blended<T, LED>(a, dx, at, there);
        if (a.bn.dz) put_unit<T, LED>(a, a.bn.dz, dy, at, there);
    }
};

template <class T, bool LED> __device__ void grid_backward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>, EACH = BN_GRID_EACH;
    using A = acc<T>;
    const spot p = spot_of<LED>(a);
    const T *x = static_cast<const T *>(a.bn.x), *dy = static_cast<const T *>(a.bn.dy);
    const uint32_t parts = (a.rounds + EACH - 1) / EACH,
                   ahead = min(a.parts, (uint32_t)BN_GRID_AHEAD);
    A value[2 * V]; // sums of dy, and of dy times x - mean
    const auto send_part = [&](uint32_t to, uint32_t part) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const uint32_t r = part * EACH + e;
            if (r >= p.rounds) continue;
            const uint32_t at = at_round(a, p, r);
            send<T, LED>(a, row_of<2, EACH>(a, to, e, 0), x, at);
            send<T, LED>(a, row_of<2, EACH>(a, to, e, 1), dy, at);
        }
    };
    // those of a part are asked for while another is worked on
    uint32_t bits[EACH];
    const auto fetch_bits = [&](uint32_t part) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const uint32_t r = part * EACH + e;
            if (r < p.rounds) bits[e] = bits_at<T, LED>(a, at_round(a, p, r));
        }
    };
    uint32_t place = 0; // of the part after the last one
    unit<T> ux[EACH], ug[EACH];
    const auto receive_part = [&]() {
        await_part(a);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            receive<T>(ux[e], row_of<2, EACH>(a, place, e, 0));
            receive<T>(ug[e], row_of<2, EACH>(a, place, e, 1));
        }
        if (!a.bn.reserve) return;
#pragma unroll
        for (int e = 0; e < EACH; ++e) mask_unit<T>(ug[e], bits[e]);
    };
    wd_wait_for_previous();
    for (uint32_t part = 0; part < BN_GRID_AHEAD; ++part) {
        if (part < min(ahead, parts)) send_part(part, part);
        wd_copies_end();
    }
    if (a.bn.reserve) fetch_bits(0);
    const uint32_t c = param_of_item<T>(a, p, threadIdx.x);
    const bool mine = threadIdx.x < a.items && c < a.bn.params;
    A scale = 0, inv_std = 0, old_dscale = 0, old_dbias = 0;
    column_numbers<A> n = {};
    {
        A mean[V];
        if (p.active) {
#pragma unroll
            for (int i = 0; i < V; ++i)
                mean[i] = param<A>(a.bn.mean, param_of_column<T>(a, p, p.run, i));
        }
        if (mine) {
            n.mean = param<A>(a.bn.mean, c);
            inv_std = param<A>(a.bn.var, c);
            scale = param<A>(a.bn.scale, c);
            old_dscale = old_param<A>(a.bn.dscale, c, a.bn.beta_param);
            old_dbias = old_param<A>(a.bn.dbias, c, a.bn.beta_param);
        }
#pragma unroll
        for (int i = 0; i < 2 * V; ++i) value[i] = (A)0;
        const auto add = [&](const unit<T> &one, const unit<T> &gradient) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const A g = wd_widen(gradient.get(i));
                value[2 * i] += g;
                value[2 * i + 1] += g * (wd_widen(one.get(i)) - mean[i]);
            }
        };
        uint32_t next = ahead == a.parts ? a.stays : ahead;
        // all threads that have units have all of those before the last part
        for (uint32_t part = 0; part + 1 < parts; ++part) {
            receive_part();
            if (a.bn.reserve) fetch_bits(part + 1);
            if (part + ahead < parts) send_part(next, part + ahead);
            wd_copies_end();
            place = place_after(place, a.stays, a.parts);
            next = place_after(next, a.stays, a.parts);
#pragma unroll
            for (int e = 0; e < EACH; ++e) add(ux[e], ug[e]);
        }
        receive_part();
        wd_copies_end();
        place = place_after(place, a.stays, a.parts);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if ((parts - 1) * EACH + e < p.rounds) add(ux[e], ug[e]);
        }
#pragma unroll
        for (int i = 0; i < 2 * V; ++i) value[i] = p.active ? value[i] : (A)0;
        const int64_t tail = ((int64_t)a.rows * a.pitch + p.first) * V;
        if (p.block == a.blocks - 1 && p.active && p.lane == 0 && tail < a.bn.total) {
            const uint32_t bits = a.bn.reserve ? bits_at<T, LED>(a, (uint32_t)(tail / V)) : 0xffu;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (tail + i >= a.bn.total) break;
                const A g = masked(wd_widen(dy[tail + i]), bits, i);
                value[2 * i] += g;
                value[2 * i + 1] += g * (wd_widen(x[tail + i]) - mean[i]);
            }
        }
    }
    const double2 all = exchange<T>(a, p, value);
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
    backward_writer<T, LED> w;
    if (p.active) w.begin(a, p);
    // rounds of all threads, for those of a warp go together
    for (uint32_t part = parts; part-- > 0;) {
        place = place_before(a, place, part);
        receive_part();
        if (a.bn.reserve && part > 0) fetch_bits(part - 1);
        if (part >= a.parts) send_part(place, part - (a.parts - a.stays));
        wd_copies_end();
#pragma unroll
        for (int e = EACH - 1; e >= 0; --e) {
            const uint32_t r = part * EACH + e;
            if (r < a.rounds) w.write(a, ux[e], ug[e], at_round(a, p, r), r < p.rounds);
        }
    }
    behind_rows<T>(a, p, [&](int64_t at) {
        run<T> u, dy;
        A g[BN_RUN], dx[BN_RUN];
        fetch(u, a.bn.x, at, a.bn.total, false);
        fetch(dy, a.bn.dy, at, a.bn.total, false);
        const uint32_t bits = a.bn.reserve ? bits_at<T, LED, BN_RUN>(a, (uint32_t)(at / V)) : 0xffu;
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) {
            g[i] = masked(wd_widen(dy.get(i)), bits, i);
            const uint32_t column = threadIdx.x * BN_RUN + i;
            const column_numbers<A> n = reinterpret_cast<const column_numbers<A> *>(
                memory())[item_of_column<T>(a, column / V, column % V)];
            dx[i] = n.factor * g[i] + n.base + n.slope * (wd_widen(u.get(i)) - n.mean);
        }
        finish_backward<T>(a.bn, dx, g, at);
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
