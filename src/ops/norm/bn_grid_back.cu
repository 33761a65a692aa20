// SPDX-License-Identifier: Apache-2.0
//
// Backward of batch normalization as bn_grid.cu does training: x and dy are kept together.
#include "ops/norm/bn_grid_sums.cuh"

namespace {

template <class T, bool ALIGNED> struct backward_writer {
    static constexpr int V = UNIT<T>;
    using A = acc<T>;
    A mean[V], factor[V], base[V], slope[V];
    bool joined;

    __device__ __forceinline__ void begin(const bn_grid_args &a, const spot &p)
    {
        const column_numbers<A> *n = reinterpret_cast<const column_numbers<A> *>(memory());
        joined = is_joined(a, p);
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
        put_blended<T, ALIGNED>(a, dx, at, there, joined);
        if (a.bn.dz) {
            put_unit<T, ALIGNED>(a, a.bn.dz, dy, at, there, joined);
        }
    }
};

template <class T, int BATCH, bool ALIGNED> __device__ void grid_backward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>;
    using A = acc<T>;
    const spot p = spot_of<T>(a);
    const T *x = static_cast<const T *>(a.bn.x), *dy = static_cast<const T *>(a.bn.dy);
    const uint32_t kept = min(a.kept, p.rounds);
    double value[2 * V];
    wd_wait_for_previous();
    {
        A mean[V], sum[V], product[V];
        const auto add = [&](const unit<T> &ux, unit<T> ug, uint32_t bits) {
            if (a.bn.reserve) wd_mask_run(ug, bits);
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const A g = wd_widen(ug.get(i));
                sum[i] += g;
                product[i] += g * (wd_widen(ux.get(i)) - mean[i]);
            }
        };
        for (uint32_t r = 0; r < kept; ++r) {
            keep<T, ALIGNED>(a, kept_at<T, 2>(r, 0), x, at_round(a, p, r));
            keep<T, ALIGNED>(a, kept_at<T, 2>(r, 1), dy, at_round(a, p, r));
        }
        wd_copies_end();
#pragma unroll
        for (int i = 0; i < V; ++i) {
            mean[i] = p.active ? param<A>(a.bn.mean, param_of_column<T>(a, p, i)) : (A)0;
            sum[i] = product[i] = (A)0;
        }
        uint32_t r = kept;
        for (; r + BATCH <= p.rounds; r += BATCH) {
            unit<T> ux[BATCH], ug[BATCH];
            uint32_t bits[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const uint32_t at = at_round(a, p, r + b);
                get<T, ALIGNED>(a, ux[b], x, at);
                get<T, ALIGNED>(a, ug[b], dy, at);
                bits[b] = bits_at<T>(a, at);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) add(ux[b], ug[b], bits[b]);
        }
        for (; r < p.rounds; ++r) {
            const uint32_t at = at_round(a, p, r);
            unit<T> ux, ug;
            get<T, ALIGNED>(a, ux, x, at);
            get<T, ALIGNED>(a, ug, dy, at);
            add(ux, ug, bits_at<T>(a, at));
        }
        for (r = 0; r < kept; r += BATCH) {
            uint32_t bits[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                bits[b] = bits_at<T>(a, at_round(a, p, min(r + b, kept - 1)));
            }
            if (r == 0) wd_copies_wait_all();
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (r + b >= kept) break;
                unit<T> ux, ug;
                ux.load(kept_at<T, 2>(r + b, 0));
                ug.load(kept_at<T, 2>(r + b, 1));
                add(ux, ug, bits[b]);
                if (a.bn.reserve) {
                    // the second time without the bits
                    wd_mask_run(ug, bits[b]);
                    ug.store(kept_at<T, 2>(r + b, 1));
                }
            }
        }
        const int64_t tail = ((int64_t)a.rows * a.pitch + p.first) * V;
        if (p.block == a.blocks - 1 && p.lane == 0 && tail < a.bn.total) {
            const uint32_t bits =
                a.bn.reserve ? a.bn.reserve[tail / BN_RUN] >> tail % BN_RUN : 0xffu;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (tail + i >= a.bn.total) break;
                const A g = masked(wd_widen(dy[tail + i]), bits, i);
                sum[i] += g;
                product[i] += g * (wd_widen(x[tail + i]) - mean[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < V; ++i) value[2 * i] = sum[i], value[2 * i + 1] = product[i];
    }
    const uint32_t c = param_of_item<T>(a, p, threadIdx.x);
    const bool mine = threadIdx.x < a.items && c < a.bn.params;
    A scale = 0, inv_std = 0, old_dscale = 0, old_dbias = 0;
    column_numbers<A> n = {};
    if (mine) {
        n.mean = param<A>(a.bn.mean, c);
        inv_std = param<A>(a.bn.var, c);
        scale = param<A>(a.bn.scale, c);
        old_dscale = old_param<A>(a.bn.dscale, c, a.bn.beta_param);
        old_dbias = old_param<A>(a.bn.dbias, c, a.bn.beta_param);
    }
    const double2 all = exchange<T>(a, p, value);
    if (mine) {
        const double scaled = (double)scale * inv_std;
        const double dscale = all.y * inv_std;
        n.factor = (A)scaled;
        n.base = (A)(-scaled * all.x * a.inv_terms);
        n.slope = (A)(-scaled * dscale * inv_std * a.inv_terms);
        reinterpret_cast<column_numbers<A> *>(memory())[threadIdx.x] = n;
        if (p.block == 0) {
            const double alpha = a.bn.alpha_param, beta = a.bn.beta_param;
            set_param<A>(a.bn.dscale, c, old_dscale, dscale, alpha, beta);
            set_param<A>(a.bn.dbias, c, old_dbias, all.x, alpha, beta);
        }
    }
    __syncthreads();
    backward_writer<T, ALIGNED> w;
    if (p.active) w.begin(a, p);
    // rounds of all threads, for those of a warp go together
    for (uint32_t end = a.rounds; end > a.kept;) {
        unit<T> ux[BATCH], ug[BATCH];
        uint32_t bits[BATCH];
        const uint32_t begin = end > a.kept + BATCH ? end - BATCH : a.kept;
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const uint32_t at = at_round(a, p, begin + b);
            if (begin + b < min(end, p.rounds)) {
                get<T, ALIGNED>(a, ux[b], x, at);
                get<T, ALIGNED>(a, ug[b], dy, at);
                bits[b] = bits_at<T>(a, at);
            }
        }
        if (!ALIGNED) __syncwarp();
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const uint32_t r = begin + b;
            if (a.bn.reserve) wd_mask_run(ug[b], bits[b]);
            if (r < end) w.write(a, ux[b], ug[b], at_round(a, p, r), r < p.rounds);
        }
        end = begin;
    }
    for (uint32_t r = 0; r < a.kept; ++r) {
        unit<T> ux, ug;
        if (r < kept) {
            ux.load(kept_at<T, 2>(r, 0));
            ug.load(kept_at<T, 2>(r, 1));
        }
        w.write(a, ux, ug, at_round(a, p, r), r < kept);
    }
    behind_rows<T>(a, p, [&](int64_t at) {
        run<T> u;
        A g[BN_RUN], dx[BN_RUN];
        fetch(u, a.bn.x, at, a.bn.total, false);
        fetch_gradient<T>(a.bn, g, at);
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) {
            const uint32_t column = threadIdx.x * BN_RUN + i;
            const column_numbers<A> n = reinterpret_cast<const column_numbers<A> *>(
                memory())[item_of_column<T>(a, column / V, column % V)];
            dx[i] = n.factor * g[i] + n.base + n.slope * (wd_widen(u.get(i)) - n.mean);
        }
        finish_backward<T>(a.bn, dx, g, at);
    });
    leave(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/bn_grid_back_kernels.def"
#include "ops/kernels_device.inc"
