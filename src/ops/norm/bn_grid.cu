// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization in one kernel whose blocks are all there at once (bn_grid_args.h): a thread sums
// its units, those it keeps on their way into shared memory; blocks of a group exchange their sums and
// meet; then every thread writes what it kept, and reads the rest again, from the last round to the
// first, since the cache has what was read last. Training: sums are of
// differences from an element of the parameter's, the same for all.
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

// READ units are under way at once of those that are summed, BATCH of those that are written.
template <class T, int READ, bool ALIGNED> __device__ void grid_forward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>;
    constexpr uint32_t BATCH = BN_GRID_BATCH;
    using A = acc<T>;
    const spot p = spot_of(a);
    const T *x = static_cast<const T *>(a.bn.x);
    const uint32_t kept = min(a.kept, p.rounds), each = (kept + PARTS - 1) / PARTS;
    A value[2 * V]; // sums of differences from the pivot, and of their squares
    wd_wait_for_previous();
    for (uint32_t part = 0, r = 0; part < PARTS; ++part) {
        for (; r < min(kept, (part + 1) * each); ++r) {
            keep<T, ALIGNED>(a, kept_at<T, 1>(r, 0), x, at_round(a, p, r));
        }
        wd_copies_end();
    }
    const uint32_t c = param_of_item<T>(a, p, threadIdx.x);
    const bool mine = threadIdx.x < a.items && c < a.bn.params;
    const double kept_share = 1.0 - a.bn.factor;
    A scale = 0, bias = 0, old_mean = 0, old_var = 0, own_pivot = 0;
    {
        A pivot[V];
        if (p.active) pivots_of<T, ALIGNED>(a, p, pivot);
        if (mine) {
            own_pivot = pivot_of<T>(a, p, threadIdx.x);
            scale = param<A>(a.bn.scale, c);
            bias = param<A>(a.bn.bias, c);
            old_mean = old_param<A>(a.bn.running_mean, c, kept_share);
            old_var = old_param<A>(a.bn.running_var, c, kept_share);
        }
#pragma unroll
        for (int i = 0; i < 2 * V; ++i) value[i] = (A)0;
        const auto add = [&](const unit<T> &u) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const A d = wd_widen(u.get(i)) - pivot[i];
                value[2 * i] += d;
                value[2 * i + 1] += d * d;
            }
        };
        uint32_t part = 0, k = 0;
        const auto add_part = [&]() {
            wait_for_part(part);
            part += 1;
            for (; k < min(kept, part * each); ++k) {
                unit<T> u;
                u.load(kept_at<T, 1>(k, 0));
                add(u);
            }
        };
        uint32_t r = kept;
        for (; r + READ <= p.rounds; r += READ) {
            unit<T> u[READ];
#pragma unroll
            for (int b = 0; b < READ; ++b) get<T, ALIGNED>(a, u[b], x, at_round(a, p, r + b));
            if (part < PARTS) add_part();
#pragma unroll
            for (int b = 0; b < READ; ++b) add(u[b]);
        }
        for (; r < p.rounds; ++r) {
            unit<T> u;
            get<T, ALIGNED>(a, u, x, at_round(a, p, r));
            add(u);
        }
        while (part < PARTS) add_part();
        const int64_t tail = ((int64_t)a.rows * a.pitch + p.first) * V;
        if (p.block == a.blocks - 1 && p.active && p.lane == 0 && tail < a.bn.total) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (tail + i >= a.bn.total) break;
                const A d = wd_widen(x[tail + i]) - pivot[i];
                value[2 * i] += d;
                value[2 * i + 1] += d * d;
            }
        }
    }
    const double2 all = exchange<T>(a, p, value);
    double mean = 0, inv_std = 0, around = 0;
    if (mine) {
        const double rest = all.x * a.inv_terms;
        const double left = all.y - all.x * rest;
        around = left > 0.0 || left != left ? left : 0.0;
        mean = (double)own_pivot + rest;
        inv_std = rsqrt(around * a.inv_terms + a.bn.epsilon);
        column_numbers<A> n;
        n.mean = (A)mean;
        n.factor = scale * (A)inv_std;
        // what rounding cut off the mean
        n.base = bias -
                 n.factor * (A)(sizeof(A) == 4 ? mean - n.mean : rest - (mean - (double)own_pivot));
        n.slope = 0;
        reinterpret_cast<column_numbers<A> *>(memory())[threadIdx.x] = n;
    }
    __syncthreads();
    forward_writer<T, ALIGNED> w;
    if (p.active) w.begin(a, p);
    // rounds of all threads, for those of a warp go together
    uint32_t k = 0;
    const auto write_kept = [&]() {
        unit<T> z[BATCH];
        if (a.bn.z && kept > 0) {
#pragma unroll
            for (uint32_t b = 0; b < BATCH; ++b) {
                get<T, ALIGNED>(a, z[b], a.bn.z, at_round(a, p, min(k + b, kept - 1)));
            }
        }
        if (!ALIGNED) __syncwarp();
#pragma unroll
        for (uint32_t b = 0; b < BATCH; ++b) {
            unit<T> u;
            if (k + b < kept) u.load(kept_at<T, 1>(k + b, 0));
            if (k + b < a.kept) w.write(a, u, z[b], at_round(a, p, k + b), k + b < kept);
        }
        k += BATCH;
    };
    for (uint32_t end = a.rounds; end > a.kept && a.rows > 0;) {
        unit<T> u[BATCH], z[BATCH];
        const uint32_t begin = end > a.kept + BATCH ? end - BATCH : a.kept;
        const uint32_t last = p.rounds > 0 ? p.rounds - 1 : 0;
#pragma unroll
        for (uint32_t b = 0; b < BATCH; ++b) {
            get<T, ALIGNED>(a, u[b], x, at_round(a, p, min(begin + b, last)));
        }
        if (a.bn.z) {
#pragma unroll
            for (uint32_t b = 0; b < BATCH; ++b) {
                get<T, ALIGNED>(a, z[b], a.bn.z, at_round(a, p, min(begin + b, last)));
            }
        }
        for (uint32_t q = 0; q < a.quota && k < a.kept; ++q) write_kept();
        if (!ALIGNED) __syncwarp();
#pragma unroll
        for (uint32_t b = 0; b < BATCH; ++b) {
            const uint32_t r = begin + b;
            if (r < end) w.write(a, u[b], z[b], at_round(a, p, r), r < p.rounds);
        }
        end = begin;
    }
    while (k < a.kept) write_kept();
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
