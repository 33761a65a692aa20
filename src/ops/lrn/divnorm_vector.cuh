// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization. A thread has a run of four pixels and walks down the rows: sums over windows are
// taken along a row in registers, then down the columns in shared memory, a column of numbers a thread.
// What a window holds is added up anew (window_sums.cuh), so that a NaN or an infinity ends where its window
// ends. Forward, threads have nothing to do with each other; backward, those of a strip exchange the shares of
// their pixels, row by row.
//
// A window's deviations from the mean m of its own pixel are put together from sums of x - r and of its
// square, r being one number for the strip. Where that cancels (the mean is far from r beside the
// deviations), or where the sums are not finite, they are added up term by term.
#ifndef WD_OPS_LRN_DIVNORM_VECTOR_CUH
#define WD_OPS_LRN_DIVNORM_VECTOR_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/item.cuh"
#include "gpu/device/roots.cuh"
#include "gpu/device/vector.cuh"
#include "ops/lrn/any_power.cuh"
#include "ops/lrn/divnorm_vector_args.h"
#include "ops/lrn/window_sums.cuh"

namespace {

enum { RUN = DIVNORM_RUN };

// A call's numbers, in the accumulator's type.
template <class A> __device__ __forceinline__ const auto &numbers(const divnorm_vector_args &a)
{
    if constexpr (sizeof(A) == 8) return a.full;
    else return a.single;
}

// s^-B, and 1 / s; s is positive, infinite or NaN.
template <class A> __device__ __forceinline__ A power(const divnorm_vector_args &a, A s, A &inverse)
{
    const A r = wd_inverse_root(s);
    inverse = r * r;
    if (a.power == DIVNORM_POWER_THREE_QUARTERS) return r * wd_root(r);
    if (a.power == DIVNORM_POWER_HALF) return r;
    if (a.power == DIVNORM_POWER_ONE) return inverse;
    return any_power(s, numbers<A>(a).exponent);
}

template <class T> __device__ __forceinline__ T narrowed(typename wd_accumulator<T>::type v)
{
    T r;
    wd_narrow(r, v);
    return r;
}

// Element v of a few, v not known when compiled.
template <class A> __device__ __forceinline__ A pick(const A *from, int v)
{
    const A low = v & 1 ? from[1] : from[0], high = v & 1 ? from[3] : from[2];
    return v & 2 ? high : low;
}

constexpr __device__ __host__ int runs_of(int pixels)
{
    return (pixels + RUN - 1) / RUN;
}

// A thread's part of a strip. N: the window, 0 for any.
template <class T, int N> struct strip {
    typedef typename wd_accumulator<T>::type A;
    typedef wd_run<T, RUN> run;
    static constexpr int WINDOW = N ? N : DIVNORM_WINDOW_MAX;
    static constexpr int BACK = (WINDOW - 1) / 2, AHEAD = WINDOW - 1 - BACK;
    static constexpr int COUNT = RUN + WINDOW - 1; // of a row, as many as the windows of a run need
    static constexpr int LEFT = N ? runs_of(BACK) : 0;
    static constexpr int RUNS = N ? LEFT + 1 + runs_of(AHEAD) : runs_of(COUNT);
    static constexpr int SKIP = N ? LEFT * RUN - BACK : 0;
    const divnorm_vector_args &a;
    const int n;
    int lane;  // in the strip
    int first; // its column
    int top, bottom;
    int64_t in, to; // the plane's first elements
    A reference;
    T fill;        // the same: x - reference is 0 where there is no x
    A across[RUN]; // pixels of a window along a row that are the plane's
    bool owns;

    __device__ __forceinline__ strip(const divnorm_vector_args &args)
        : a(args), n(N ? N : args.window)
    {
        uint32_t s = blockIdx.x * (uint32_t)a.per_warp + threadIdx.x % (uint32_t)a.per_warp;
        lane = (int)(threadIdx.x / (uint32_t)a.per_warp);
        const bool works = lane < a.lanes && s < a.strips;
        if (!works) s = 0;
        const int part = (int)wd_take_rest(s, a.by_part) * (a.lanes - 2 * a.halo) - a.halo;
        top = (int)wd_take_rest(s, a.by_segment) * a.rows;
        bottom = min(top + a.rows, a.height);
        const int64_t channel = wd_take_rest(s, a.by_channel);
        in = s * a.in.image + channel * a.in.channel;
        to = s * a.to.image + channel * a.to.channel;
        first = works ? (part + lane) * RUN : a.width;
        owns = works && lane >= a.halo && lane < a.lanes - a.halo;
        // the mean in the middle of the strip, where there is one and it is a number
        reference =
            mean_at(top + (bottom - top) / 2, min(max(part + a.lanes / 2, 0) * RUN, a.width - 1));
        if (!(reference - reference == 0)) reference = 0;
        wd_narrow(fill, reference);
#pragma unroll
        for (int v = 0; v < RUN; ++v) across[v] = (A)inside(first + v, a.width);
    }

    // How many pixels of a window along a dimension are the plane's.
    __device__ __forceinline__ int inside(int at, int extent) const
    {
        return min(at + a.ahead + 1, extent) - max(at - a.back, 0);
    }
    __device__ __forceinline__ bool has(int h, int w) const
    {
        return (uint32_t)h < (uint32_t)a.height && (uint32_t)w < (uint32_t)a.width;
    }
    __device__ __forceinline__ A at(const void *from, int h, int w) const
    {
        return wd_widen(static_cast<const T *>(from)[in + h * a.in.row + w * a.in.pixel]);
    }
    __device__ __forceinline__ A mean_at(int h, int w) const
    {
        return a.means ? at(a.means, h, w) : (A)0;
    }

    // The thread's run of a row, `value` where there is none.
    __device__ __forceinline__ void load_own(const void *from, int h, T value, run &r) const
    {
        const T *row = static_cast<const T *>(from) + in + h * a.in.row;
        const bool is_row = (uint32_t)h < (uint32_t)a.height;
#pragma unroll
        for (int v = 0; v < RUN; ++v) r.put(v, value);
        if (a.in_whole) {
            if (is_row && (uint32_t)first < (uint32_t)a.width) r.load(row + first);
        } else if (is_row) {
#pragma unroll
            for (int v = 0; v < RUN; ++v) {
                const int w = first + v;
                if ((uint32_t)w < (uint32_t)a.width) r.put(v, row[w * a.in.pixel]);
            }
        }
    }

    // x of a row, as far as the windows of the run reach.
    __device__ __forceinline__ void load_row(int h, run *r) const
    {
        const T *row = static_cast<const T *>(a.x) + in + h * a.in.row;
        const bool is_row = (uint32_t)h < (uint32_t)a.height;
#pragma unroll
        for (int i = 0; i < RUNS * RUN; ++i) r[i / RUN].put(i % RUN, fill);
        if (N && a.in_whole) {
#pragma unroll
            for (int i = 0; i < RUNS; ++i) {
                const int w = first + (i - LEFT) * RUN;
                if (is_row && (uint32_t)w < (uint32_t)a.width) r[i].load(row + w);
            }
        } else if (is_row) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const int w = first - a.back + i;
                if ((uint32_t)w < (uint32_t)a.width) {
                    r[(i + SKIP) / RUN].put((i + SKIP) % RUN, row[w * a.in.pixel]);
                }
            }
        }
    }

    // Sums of x - reference and of its square along a row.
    __device__ __forceinline__ void sum_row(const run *r, bool both, pack<A, RUN> &s,
                                            pack<A, RUN> &q) const
    {
        A w[COUNT], square[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            w[i] = wd_widen(r[(i + SKIP) / RUN].get((i + SKIP) % RUN)) - reference;
            square[i] = w[i] * w[i];
        }
        window_sums<RUN, N, WINDOW>(square, n, q.v);
        if (both) window_sums<RUN, N, WINDOW>(w, n, s.v);
    }

    // From sums s of x - r and q of its square over `count` pixels those of x - m; false where they
    // cancel.
    __device__ __forceinline__ bool shift(A count, A m, bool both, A &s, A &q) const
    {
        const A by = m - reference, all = q;
        q = q - by * (2 * s - count * by);
        s = s - count * by;
        const A least = both ? q : numbers<A>(a).k + numbers<A>(a).factor * q;
        const A most = both ? all : numbers<A>(a).factor * all;
        return most <= DIVNORM_TRUST * least;
    }

    // The deviations of the run's windows in row h from the means m, and their squares; where they cancel
    // term by term.
    __device__ __forceinline__ void deviations(int h, const A *m, bool both, A *s, A *q) const
    {
        const A down = (A)inside(h, a.height);
        uint32_t again = 0;
#pragma unroll
        for (int v = 0; v < RUN; ++v) {
            if (!shift(across[v] * down, m[v], both, s[v], q[v]) && has(h, first + v)) {
                again |= 1u << v;
            }
        }
#pragma unroll 1
        for (int v = 0; again >> v; ++v) {
            if (!(again >> v & 1)) continue;
            const A mean = pick(m, v);
            A sum = 0, squares = 0;
#pragma unroll 1
            for (int i = 0; i < n * n; ++i) {
                const int row = h - a.back + i / n, column = first + v - a.back + i % n;
                if (!has(row, column)) continue;
                const A d = at(a.x, row, column) - mean;
                sum += d;
                squares += d * d;
            }
#pragma unroll
            for (int u = 0; u < RUN; ++u) {
                if (u == v) s[u] = sum, q[u] = squares;
            }
        }
    }

    // The run's results in row h.
    __device__ __forceinline__ void put(void *out, int h, const A *value) const
    {
        const int64_t row = to + h * a.to.row;
        run old, r;
        T *base = static_cast<T *>(out) + row;
        if (a.to_whole) {
            if ((uint32_t)first >= (uint32_t)a.width) return;
            if (__builtin_expect(a.scales && !a.blends, 1)) {
#pragma unroll
                for (int v = 0; v < RUN; ++v) {
                    r.put(v, narrowed<T>(numbers<A>(a).alpha * value[v]));
                }
                r.store(base + first);
                return;
            }
            if (a.blends) old.load(base + first);
#pragma unroll
            for (int v = 0; v < RUN; ++v) {
                A one = a.scales ? numbers<A>(a).alpha * value[v] : (A)0;
                if (a.blends) one += numbers<A>(a).beta * wd_widen(old.get(v));
                r.put(v, narrowed<T>(one));
            }
            r.store(base + first);
            return;
        }
#pragma unroll
        for (int v = 0; v < RUN; ++v) {
            const int w = first + v;
            if ((uint32_t)w >= (uint32_t)a.width) continue;
            A one = a.scales ? numbers<A>(a).alpha * value[v] : (A)0;
            if (a.blends) one += numbers<A>(a).beta * wd_widen(base[w * a.to.pixel]);
            base[w * a.to.pixel] = narrowed<T>(one);
        }
    }

    __device__ __forceinline__ static void widen(const run &r, A *to)
    {
#pragma unroll
        for (int v = 0; v < RUN; ++v) to[v] = wd_widen(r.get(v));
    }
};

template <class T, int N> __device__ __forceinline__ void div_forward(const divnorm_vector_args &a)
{
    typedef strip<T, N> mine;
    typedef typename mine::A A;
    wd_wait_for_previous();
    const mine t(a);
    walked_sum<A, RUN, DIVNORM_THREADS> squares(0, t.n), sums(t.n + 1, t.n);
    typename mine::run row[mine::RUNS], x_next, mean_next;
    int h = t.top - a.lead, k = 0;
    const T none = narrowed<T>(0);
    t.load_row(h, row);
    t.load_own(a.x, h - a.ahead, none, x_next);
    mean_next = x_next;
    if (a.means) t.load_own(a.means, h - a.ahead, none, mean_next);
#pragma unroll 1
    for (int i = 0; i < a.trip; ++i, ++h) {
        const int c = h - a.ahead; // the row whose windows are whole now
        pack<A, RUN> s_row, q_row;
        A x[RUN], m[RUN], s[RUN], q[RUN];
        t.sum_row(row, a.means, s_row, q_row);
        t.widen(x_next, x);
        t.widen(mean_next, m);
        if (i + 1 < a.trip) {
            t.load_row(h + 1, row);
            t.load_own(a.x, c + 1, none, x_next);
            if (a.means) t.load_own(a.means, c + 1, none, mean_next);
        }
        squares.add(q_row, k, t.n, q);
        if (a.means) sums.add(s_row, k, t.n, s);
        k = k + 1 < t.n ? k + 1 : 0;
        if (c < t.top || c >= t.bottom) continue;
        if (a.means) t.deviations(c, m, false, s, q);
#pragma unroll
        for (int v = 0; v < RUN; ++v) {
            A inverse;
            x[v] *= power(a, numbers<A>(a).k + numbers<A>(a).factor * q[v], inverse);
        }
        t.put(a.out, c, x);
    }
}

// The same backward: what the threads of a strip exchange.
template <class T, int N> struct exchange {
    typedef strip<T, N> mine;
    typedef typename mine::A A;
    static constexpr int LEFT = runs_of(mine::AHEAD), RIGHT = runs_of(mine::BACK);
    static constexpr int SKIP = LEFT * RUN - mine::AHEAD;
    const mine &t;
    thread_column<A, RUN, DIVNORM_THREADS> share, product, bounds;
    A largest_share, largest_mean; // of what the thread has seen

    __device__ __forceinline__ exchange(const mine &strip)
        : t(strip), share(4 * (strip.n + 1)), product(4 * (strip.n + 1) + strip.n),
          bounds(4 * (strip.n + 1) + strip.n + 1), largest_share(0), largest_mean(0)
    {
        const pack<A, RUN> none = {};
        for (int i = 0; i <= t.n + 1; ++i) share[i] = none;
    }

    // The sums of the run's mirrored windows along a row of numbers that all threads have a run of.
    __device__ __forceinline__ pack<A, RUN> sum_row(const pack<A, RUN> *from) const
    {
        A w[(LEFT + 1 + RIGHT) * RUN];
        pack<A, RUN> r;
        const pack<A, RUN> none = {};
        if (N) {
#pragma unroll
            for (int d = -LEFT; d <= RIGHT; ++d) {
                pack<A, RUN> one = none;
                if ((uint32_t)(t.lane + d) < (uint32_t)t.a.lanes) one = from[d * t.a.per_warp];
#pragma unroll
                for (int v = 0; v < RUN; ++v) w[(d + LEFT) * RUN + v] = one.v[v];
            }
            window_sums<RUN, N, mine::WINDOW>(w + SKIP, t.n, r.v);
        } else {
#pragma unroll
            for (int i = 0; i < mine::COUNT; ++i) {
                const int e = i - t.a.ahead, d = e >> 2;
                w[i] = 0;
                if (i < RUN + t.n - 1 && (uint32_t)(t.lane + d) < (uint32_t)t.a.lanes) {
                    w[i] = from[d * t.a.per_warp].v[e & (RUN - 1)];
                }
            }
            window_sums<RUN, N, mine::WINDOW>(w, t.n, r.v);
        }
        return r;
    }

    // Bounds of what neighbours have.
    __device__ __forceinline__ void see_bounds()
    {
#pragma unroll
        for (int d = -LEFT; d <= RIGHT; ++d) {
            if (d == 0 || (uint32_t)(t.lane + d) >= (uint32_t)t.a.lanes) continue;
            const pack<A, RUN> one = bounds.base[d * t.a.per_warp];
            largest_share = fmax(largest_share, one.v[0]);
            largest_mean = fmax(largest_mean, one.v[1]);
        }
    }

    // What pixel v of the run collects in row h, term by term; the newest shares are row k's.
    __device__ __forceinline__ A collect_terms(int h, int v, A value, int k) const
    {
        A r = 0;
#pragma unroll 1
        for (int i = 0; i < t.n * t.n; ++i) {
            const int row = i / t.n, e = v - t.a.ahead + i % t.n;
            const int slot = k - (t.n - 1 - row), y = h - t.a.ahead + row;
            if (!t.has(y, t.first + e)) continue;
            const A one = (share.base + (e >> 2) * t.a.per_warp +
                           (slot < 0 ? slot + t.n : slot) * DIVNORM_THREADS)
                              ->v[e & (RUN - 1)];
            r += (value - t.mean_at(y, t.first + e)) * one;
        }
        return r;
    }

    // The gradient of row h from the sums of shares, and of shares times means.
    __device__ __forceinline__ void collect(int h, int k, const A *x, const A *direct, const A *s,
                                            const A *p) const
    {
        const A terms = (A)(t.n * t.n);
        uint32_t again = 0;
        A value[RUN];
#pragma unroll
        for (int v = 0; v < RUN; ++v) {
            const A by = x[v] - t.reference;
            A r = by * s[v];
            if (t.a.means) {
                r -= p[v];
                const A most = (fabs(by) + largest_mean) * largest_share * terms;
                const bool fine = fabs(by) >= (A)1.25 * largest_mean ||
                                  most <= 16 * DIVNORM_TRUST * (fabs(direct[v]) + fabs(r));
                if (!(fine && r == r) && t.has(h, t.first + v)) again |= 1u << v;
            }
            value[v] = direct[v] + r;
        }
#pragma unroll 1
        for (int v = 0; again >> v; ++v) {
            if (!(again >> v & 1)) continue;
            const A r = pick(direct, v) + collect_terms(h, v, pick(x, v), k);
#pragma unroll
            for (int u = 0; u < RUN; ++u) {
                if (u == v) value[u] = r;
            }
        }
        t.put(t.a.out, h, value);
    }
};

template <class T, int N> __device__ __forceinline__ void div_backward(const divnorm_vector_args &a)
{
    typedef strip<T, N> mine;
    typedef typename mine::A A;
    wd_wait_for_previous();
    const mine t(a);
    exchange<T, N> e(t);
    walked_sum<A, RUN, DIVNORM_THREADS> squares(0, t.n), sums(t.n + 1, t.n);
    walked_sum<A, RUN, DIVNORM_THREADS> shares(2 * t.n + 2, t.n), products(3 * t.n + 3, t.n);
    const thread_column<A, RUN, DIVNORM_THREADS> direct_kept(4 * (t.n + 1) + t.n + 2);
    const bool both = a.means || a.dmeans;
    typename mine::run row[mine::RUNS], x_next, mean_next, dy_next, out_next;
    constexpr bool EARLY = sizeof(T) < 8; // of doubles there are too many to be loaded a row ahead
    int h = t.top - a.lead, k = 0, kept = 0;
    const T none = narrowed<T>(0);
    for (int i = 0; i <= a.back; ++i) direct_kept[i] = {};
    const auto load_owned = [&](int at) {
        t.load_own(a.x, at - a.ahead, none, x_next);
        t.load_own(a.dy, at - a.ahead, none, dy_next);
        t.load_own(a.x, at - (t.n - 1), none, out_next);
        t.load_own(a.means ? a.means : a.x, a.means ? at - a.ahead : -1, none, mean_next);
    };
    if (EARLY) {
        t.load_row(h, row);
        load_owned(h);
    }
#pragma unroll 1
    for (int i = 0; i < a.trip; ++i, ++h) {
        const int c = h - a.ahead;  // the row whose windows are whole now
        const int own = c - a.back; // the row whose shares are
        pack<A, RUN> s_row = {}, q_row, share = {}, product = {}, direct = {};
        A x[RUN], dy[RUN], m[RUN], s[RUN], q[RUN], out[RUN];
        if (!EARLY) t.load_row(h, row);
        t.sum_row(row, both, s_row, q_row);
        if (!EARLY) load_owned(h);
        t.widen(x_next, x);
        t.widen(mean_next, m);
        t.widen(dy_next, dy);
        t.widen(out_next, out);
        if (EARLY && i + 1 < a.trip) {
            t.load_row(h + 1, row);
            load_owned(h + 1);
        }
        squares.add(q_row, k, t.n, q);
        if (both) sums.add(s_row, k, t.n, s);
        if (c >= t.top - a.ahead && (uint32_t)c < (uint32_t)a.height) {
            if (both) t.deviations(c, m, a.dmeans, s, q);
#pragma unroll
            for (int v = 0; v < RUN; ++v) {
                A inverse;
                const A to = power(a, numbers<A>(a).k + numbers<A>(a).factor * q[v], inverse);
                const bool is = (uint32_t)(t.first + v) < (uint32_t)a.width;
                const A mean = is ? m[v] - t.reference : (A)0;
                direct.v[v] = dy[v] * to;
                share.v[v] = is ? numbers<A>(a).share * direct.v[v] * x[v] * inverse : (A)0;
                product.v[v] = share.v[v] * mean;
                s[v] = -share.v[v] * s[v];
                e.largest_share = fmax(e.largest_share, fabs(share.v[v]));
                e.largest_mean = fmax(e.largest_mean, fabs(mean));
            }
            if (a.dmeans && t.owns && c >= t.top && c < t.bottom) t.put(a.dmeans, c, s);
        }
        __syncthreads(); // what is overwritten has been read
        e.share[k] = share;
        e.product[0] = product;
        e.bounds[0].v[0] = e.largest_share;
        e.bounds[0].v[1] = e.largest_mean;
        direct_kept[kept] = direct;
        kept = kept < a.back ? kept + 1 : 0; // the oldest
        __syncthreads();
        shares.add(e.sum_row(&e.share[k]), k, t.n, s);
        if (a.means) {
            products.add(e.sum_row(&e.product[0]), k, t.n, q);
            e.see_bounds();
        }
        if (own >= t.top && own < t.bottom && t.owns) {
            direct = direct_kept[kept];
            e.collect(own, k, out, direct.v, s, q);
        }
        k = k + 1 < t.n ? k + 1 : 0;
    }
}

} // namespace

#endif
