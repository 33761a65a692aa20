// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization in one kernel whose blocks are all there at once (bn_grid_args.h): a thread sums
// its units, those it keeps on their way into shared memory; blocks of a group exchange their sums and
// meet; then every thread writes what it kept, and reads the rest again, from the last round to the
// first, since the cache has what was read last. Training: sums are differences from a
// thread's first element in the accumulator's type, turned into differences from the parameter's first
// element in double.
#include "ops/norm/bn_grid_sums.cuh"

namespace {

template <class T, bool ALIGNED> struct forward_writer {
    static constexpr int V = UNIT<T>;
    using A = acc<T>;
    A mean[V], factor[V], base[V];
    bool joined;

    __device__ __forceinline__ void begin(const bn_grid_args &a, const spot &p)
    {
        const column_numbers<A> *n = reinterpret_cast<const column_numbers<A> *>(memory());
        joined = is_joined(a, p);
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const column_numbers<A> one = n[item_of_column<T>(a, p.run, i)];
            mean[i] = one.mean, factor[i] = one.factor, base[i] = one.base;
        }
    }

    // All threads of a warp come here together; those that are not `there` write nothing.
    __device__ __forceinline__ void write(const bn_grid_args &a, const unit<T> &x, const unit<T> &z,
                                          uint32_t at, bool there) const
    {
        A v[V];
#pragma unroll
        for (int i = 0; i < V; ++i) v[i] = factor[i] * (wd_widen(x.get(i)) - mean[i]) + base[i];
        if (a.bn.z) {
#pragma unroll
            for (int i = 0; i < V; ++i) v[i] += wd_widen(z.get(i));
        }
        if (a.bn.activates) {
            const scalars_of<A> s(a.bn);
            uint32_t bits = 0;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (v[i] > s.low) bits |= 1u << i;
            }
            if (!a.clips) {
#pragma unroll
                for (int i = 0; i < V; ++i) v[i] = v[i] > s.low ? v[i] : s.low;
            } else {
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    if (v[i] > s.high) bits &= ~(1u << i);
                    const A clipped = v[i] > s.low ? (v[i] > s.high ? s.high : v[i]) : s.low;
                    v[i] = v[i] != v[i] && a.bn.keeps_nan ? v[i] : clipped;
                }
            }
            if (a.bn.reserve) put_bits<T>(a.bn.reserve, bits, at, there);
        }
        put_blended<T, ALIGNED>(a, v, at, there, joined);
    }
};

template <class T, int BATCH, bool ALIGNED> __device__ void grid_forward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>;
    using A = acc<T>;
    const spot p = spot_of<T>(a);
    const T *x = static_cast<const T *>(a.bn.x);
    const uint32_t kept = min(a.kept, p.rounds);
    A pivot[V], sum[V], squares[V];
    uint32_t more = 0; // bits: columns with an element behind the last whole row
    double value[2 * V];
    wd_wait_for_previous();
    {
        unit<T> begin = {}, origin = {};
        const auto add = [&](const unit<T> &u) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const A d = wd_widen(u.get(i)) - pivot[i];
                sum[i] += d;
                squares[i] += d * d;
            }
        };
        for (uint32_t r = 0; r < kept; ++r) {
            keep<T, ALIGNED>(a, kept_at<T, 1>(r, 0), x, at_round(a, p, r));
        }
        wd_copies_end();
        if (p.rounds > 0) get<T, ALIGNED>(a, begin, x, at_round(a, p, 0));
        if (p.active) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                origin.put(i, x[param_of_column<T>(a, p, i) * a.bn.inner]);
            }
        }
#pragma unroll
        for (int i = 0; i < V; ++i) pivot[i] = wd_widen(begin.get(i)), sum[i] = squares[i] = (A)0;
        uint32_t r = kept;
        for (; r + BATCH <= p.rounds; r += BATCH) {
            unit<T> u[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                get<T, ALIGNED>(a, u[b], x, at_round(a, p, r + b));
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) add(u[b]);
        }
        for (; r < p.rounds; ++r) {
            unit<T> u;
            get<T, ALIGNED>(a, u, x, at_round(a, p, r));
            add(u);
        }
        wd_copies_wait_all();
        for (r = 0; r < kept; ++r) {
            unit<T> u;
            u.load(kept_at<T, 1>(r, 0));
            add(u);
        }
        const int64_t tail = ((int64_t)a.rows * a.pitch + p.first) * V;
        if (p.block == a.blocks - 1 && p.lane == 0 && tail < a.bn.total) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (tail + i >= a.bn.total) break;
                const A value = wd_widen(x[tail + i]);
                if (p.rounds == 0) pivot[i] = value;
                sum[i] += value - pivot[i];
                squares[i] += (value - pivot[i]) * (value - pivot[i]);
                more |= 1u << i;
            }
        }
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const double count = p.rounds + (more >> i & 1);
            const double d = (double)pivot[i] - (double)wd_widen(origin.get(i));
            const double s = sum[i];
            value[2 * i] = count > 0.0 ? s + count * d : 0.0;
            value[2 * i + 1] = count > 0.0 ? (double)squares[i] + d * (2.0 * s + count * d) : 0.0;
        }
    }
    const uint32_t c = param_of_item<T>(a, p, threadIdx.x);
    const bool mine = threadIdx.x < a.items && c < a.bn.params;
    const double kept_share = 1.0 - a.bn.factor;
    A scale = 0, bias = 0, old_mean = 0, old_var = 0, origin = 0;
    if (mine) {
        scale = param<A>(a.bn.scale, c);
        bias = param<A>(a.bn.bias, c);
        origin = wd_widen(x[c * a.bn.inner]);
        old_mean = old_param<A>(a.bn.running_mean, c, kept_share);
        old_var = old_param<A>(a.bn.running_var, c, kept_share);
    }
    const double2 all = exchange<T>(a, p, value);
    if (mine) {
        const double rest = all.x * a.inv_terms;
        const double left = all.y - all.x * rest;
        const double around = left > 0.0 || left != left ? left : 0.0;
        const double mean = (double)origin + rest;
        const double inv_std = rsqrt(around * a.inv_terms + a.bn.epsilon);
        column_numbers<A> n;
        n.mean = (A)mean;
        n.factor = scale * (A)inv_std;
        // what rounding cut off the mean
        n.base =
            bias - n.factor * (A)(sizeof(A) == 4 ? mean - n.mean : rest - (mean - (double)origin));
        n.slope = 0;
        reinterpret_cast<column_numbers<A> *>(memory())[threadIdx.x] = n;
        if (p.block == 0) {
            const double unbiased = around * a.inv_less;
            set_param<A>(a.bn.mean, c, 0, mean, 1.0, 0.0);
            set_param<A>(a.bn.var, c, 0, inv_std, 1.0, 0.0);
            set_param<A>(a.bn.running_mean, c, old_mean, mean, a.bn.factor, kept_share);
            set_param<A>(a.bn.running_var, c, old_var, unbiased, a.bn.factor, kept_share);
        }
    }
    __syncthreads();
    forward_writer<T, ALIGNED> w;
    if (p.active) w.begin(a, p);
    // rounds of all threads, for those of a warp go together
    for (uint32_t end = a.rounds; end > a.kept;) {
        unit<T> u[BATCH], z[BATCH];
        const uint32_t begin = end > a.kept + BATCH ? end - BATCH : a.kept;
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const uint32_t r = begin + b;
            if (r < min(end, p.rounds)) get<T, ALIGNED>(a, u[b], x, at_round(a, p, r));
        }
        if (a.bn.z) {
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const uint32_t r = begin + b;
                if (r < min(end, p.rounds)) get<T, ALIGNED>(a, z[b], a.bn.z, at_round(a, p, r));
            }
        }
        if (!ALIGNED) __syncwarp();
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const uint32_t r = begin + b;
            if (r < end) w.write(a, u[b], z[b], at_round(a, p, r), r < p.rounds);
        }
        end = begin;
    }
    const uint32_t most = min(a.kept, a.rounds);
    for (uint32_t begin = 0; begin < most; begin += BATCH) {
        unit<T> z[BATCH];
        if (a.bn.z) {
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const uint32_t r = begin + b;
                if (r < kept) get<T, ALIGNED>(a, z[b], a.bn.z, at_round(a, p, r));
            }
        }
        if (!ALIGNED) __syncwarp();
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const uint32_t r = begin + b;
            unit<T> u;
            if (r < kept) u.load(kept_at<T, 1>(r, 0));
            if (r < most) w.write(a, u, z[b], at_round(a, p, r), r < kept);
        }
    }
    behind_rows<T>(a, p, [&](int64_t at) {
        run<T> u;
        A v[BN_RUN];
        fetch(u, a.bn.x, at, a.bn.total, false);
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) {
            const uint32_t column = threadIdx.x * BN_RUN + i;
            const column_numbers<A> n = reinterpret_cast<const column_numbers<A> *>(
                memory())[item_of_column<T>(a, column / V, column % V)];
            v[i] = n.factor * (wd_widen(u.get(i)) - n.mean) + n.base;
        }
        finish_forward<T>(a.bn, v, at);
    });
    leave(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/bn_grid_kernels.def"
#include "ops/kernels_device.inc"
