// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization, forward and backward, of a tile (divnorm_tile.cuh).
#ifndef WD_OPS_LRN_DIVNORM_VECTOR_CUH
#define WD_OPS_LRN_DIVNORM_VECTOR_CUH

#include "gpu/device/prefetch.cuh"
#include "ops/lrn/divnorm_tile.cuh"

namespace {

template <class T, int N, int QUADS> struct normalization : tile<T, N, QUADS> {
    typedef tile<T, N, QUADS> base;
    typedef typename base::A A;
    typedef typename base::quad quad;
    using base::a;
    using base::across, base::squares, base::sums, base::words;
    using base::first, base::right, base::top, base::bottom, base::low, base::high;
    using base::keep, base::put, base::sum_columns;
    using base::load_quads, base::load_run;
    using base::n, base::reference, base::begin, base::end, base::start;
    using base::place, base::turn, base::has, base::mean_at, base::in_at;
    static constexpr int RUN = base::RUN, DOWN = base::DOWN;
    static constexpr int BACK = base::BACK, AHEAD = base::AHEAD;

    __device__ __forceinline__ normalization(const divnorm_vector_args &args) : base(args)
    {
    }
    __device__ __forceinline__ A *shares() const
    {
        return squares() + 2 * words;
    }
    __device__ __forceinline__ A *products() const // of shares and means
    {
        return squares() + 3 * words;
    }
    __device__ __forceinline__ A *direct() const // what of a gradient is a pixel's own
    {
        return squares() + 4 * words;
    }
    template <int OF>
    __device__ __forceinline__ void sum_row(const A *from, int r, int back, A *out) const
    {
        base::template sum_row<OF>(from, r, back, out);
    }
    template <bool SUMS>
    __device__ __forceinline__ void deviations(int h, int w, const A *m, A *s, A *q) const
    {
        base::template deviations<SUMS>(h, w, m, s, q);
    }

    // Rows of a plane without gaps are asked for.
    __device__ __forceinline__ void ask(const void *from, int begin_row, int end_row) const
    {
        const char *at = reinterpret_cast<const char *>(base::input(from) + begin_row * a.in.row);
        const int bytes = (end_row - begin_row) * a.in.row * (int)sizeof(T);
        for (int i = (int)threadIdx.x * WD_LINE; i < bytes; i += (int)blockDim.x * WD_LINE) {
            wd_prefetch_line(at + i);
        }
    }
    // What comes after the first sums, and the rows of x that the next tile adds, while columns are added up.
    __device__ __forceinline__ void ask_ahead() const
    {
        if (!a.asks) return;
        if (a.means) ask(a.means, low, high);
        if (a.dy) ask(a.dy, low, high);
        if (bottom < end) {
            ask(a.x, min(high + a.ahead, a.height), min(high + a.ahead + a.rows, a.height));
        }
    }

    __device__ __forceinline__ void forward()
    {
        const uint32_t items = (uint32_t)a.planes * a.by_shared.divisor * a.by_row.divisor;
#pragma unroll 1
        for (int h = begin; h < end; h += a.rows) {
            start(h);
            ask_ahead();
            __syncthreads(); // the sums of the last tile have been read
            sum_columns(a.means);
            __syncthreads();
            divide(items);
        }
    }

    // What is divided by the strengths.
    __device__ __forceinline__ void divide(uint32_t items)
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < items; i += blockDim.x) {
            uint32_t p = i;
            const int run = a.before + (int)wd_take_rest(p, a.by_shared) * QUADS;
            const int h = low + (int)wd_take_rest(p, a.by_row);
            const int w = first + run * QUAD;
            wd_run<T, QUAD> x[QUADS];
            A m[RUN], s[RUN], q[RUN], power[RUN], inverse[RUN];
            if (h >= high || w >= right || !turn(p)) continue;
            const int at = in_at(h, w);
            load_quads(a.x, at, w, narrowed<T>(0), x);
            if (a.means) load_run(a.means, at, w, narrowed<T>(reference), m);
            sum_row<BACK>(squares() + place(p, h), run, a.back, q);
            if (a.means) {
                sum_row<BACK>(sums() + place(p, h), run, a.back, s);
                deviations<false>(h, w, m, s, q);
            }
            powers<RUN>(a, q, power, inverse);
#pragma unroll
            for (int v = 0; v < RUN; ++v) power[v] *= wd_widen(x[v / QUAD].get(v % QUAD));
            put(a.out, h, w, power);
        }
    }

    // What pixel v of the run at h, w collects, term by term.
    __device__ __forceinline__ A collect_terms(uint32_t p, int h, int w, A value) const
    {
        A r = 0;
#pragma unroll 1
        for (int i = 0; i < n * n; ++i) {
            const int row = h - a.ahead + i / n, column = w - a.ahead + i % n;
            if (!has(row, column)) continue;
            r += (value - mean_at(row, column)) * shares()[place(p, row) + column - first];
        }
        return r;
    }

    // A run from quad r of those that are stored on.
    __device__ __forceinline__ void keep_run(A *to_row, int r, const A *value) const
    {
#pragma unroll
        for (int u = 0; u < QUADS; ++u) {
            quad one;
#pragma unroll
            for (int v = 0; v < QUAD; ++v) one.v[v] = value[u * QUAD + v];
            if (u == 0 || r + u < a.stored) store_pack(to_row + u * QUAD, one);
        }
    }
    __device__ __forceinline__ void kept_run(const A *row, int r, A *value) const
    {
#pragma unroll
        for (int u = 0; u < QUADS; ++u) {
            quad one = {};
            if (u == 0 || r + u < a.stored) one = *reinterpret_cast<const quad *>(row + u * QUAD);
#pragma unroll
            for (int v = 0; v < QUAD; ++v) value[u * QUAD + v] = one.v[v];
        }
    }

    // Each pixel's share, and what is its own alone.
    __device__ __forceinline__ void share(A &largest_share, A &largest_mean)
    {
        const uint32_t items = (uint32_t)a.planes * a.by_shared.divisor * a.by_row.divisor;
        const bool both = a.means || a.dmeans;
        const int inner = a.before ? quads_of(a.ahead) : 0, start = a.before - inner;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < items; i += blockDim.x) {
            uint32_t p = i;
            const int run = start + (int)wd_take_rest(p, a.by_shared) * QUADS;
            const int h = low + (int)wd_take_rest(p, a.by_row);
            const int w = first + run * QUAD;
            A x[RUN], dy[RUN], m[RUN] = {}, s[RUN], q[RUN], power[RUN], inverse[RUN];
            A share[RUN] = {}, product[RUN] = {}, own[RUN] = {};
            if (h >= high || !turn(p)) continue;
            if ((uint32_t)w < (uint32_t)a.width) {
                const int at = in_at(h, w);
                load_run(a.x, at, w, narrowed<T>(0), x);
                load_run(a.dy, at, w, narrowed<T>(0), dy);
                if (a.means) load_run(a.means, at, w, narrowed<T>(reference), m);
                sum_row<BACK>(squares() + place(p, h), run, a.back, q);
                if (both) {
                    sum_row<BACK>(sums() + place(p, h), run, a.back, s);
                    if (a.dmeans) deviations<true>(h, w, m, s, q);
                    else deviations<false>(h, w, m, s, q);
                }
                powers<RUN>(a, q, power, inverse);
#pragma unroll
                for (int v = 0; v < RUN; ++v) {
                    const bool is = w + v < a.width;
                    const A mean = is ? m[v] - reference : (A)0;
                    own[v] = dy[v] * power[v];
                    share[v] = is ? numbers<A>(a).share * own[v] * x[v] * inverse[v] : (A)0;
                    product[v] = share[v] * mean;
                    s[v] = -share[v] * s[v];
                    largest_share = fmax(largest_share, fabs(share[v]));
                    largest_mean = fmax(largest_mean, fabs(mean));
                }
                if (a.dmeans && h >= top && h < bottom && run >= a.before && w < right) {
                    put(a.dmeans, h, w, s);
                }
            }
            const int at = place(p, h) + run * QUAD;
            keep_run(shares() + at, run, share);
            keep_run(direct() + at, run, own);
            if (a.means) keep_run(products() + at, run, product);
        }
    }

    // The sums of mirrored windows down the columns of shares, or of products.
    __device__ __forceinline__ void sum_again(const A *from, A *into) const
    {
        const uint32_t items = (uint32_t)a.planes * a.by_columns.divisor * a.by_own_steps.divisor;
        typedef pack<A, PAIR> pair;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < items; i += blockDim.x) {
            uint32_t p = i;
            const int column = (int)wd_take_rest(p, a.by_columns) * PAIR;
            const int h = top + (int)wd_take_rest(p, a.by_own_steps) * DOWN;
            const int at = place(p, h) + column;
            const A *row = from + at - a.ahead * a.pitch;
            pair s[DOWN];
            if (h >= bottom) continue;
            if constexpr (N > 0) {
                constexpr int ROWS = DOWN + N - 1;
                A w[PAIR][ROWS], one[DOWN];
                const bool inner = h - AHEAD >= low && h - AHEAD + ROWS <= high;
                pair r[ROWS];
                if (inner) {
#pragma unroll
                    for (int j = 0; j < ROWS; ++j, row += a.pitch) {
                        r[j] = *reinterpret_cast<const pair *>(row);
                    }
                } else {
#pragma unroll
                    for (int j = 0; j < ROWS; ++j, row += a.pitch) {
                        const int y = h - AHEAD + j;
                        r[j] = {};
                        if (y >= low && y < high) r[j] = *reinterpret_cast<const pair *>(row);
                    }
                }
#pragma unroll
                for (int j = 0; j < ROWS; ++j) {
#pragma unroll
                    for (int v = 0; v < PAIR; ++v) w[v][j] = r[j].v[v];
                }
#pragma unroll
                for (int v = 0; v < PAIR; ++v) {
                    window_sums<DOWN, N>(w[v], one);
#pragma unroll
                    for (int j = 0; j < DOWN; ++j) s[j].v[v] = one[j];
                }
            } else {
#pragma unroll
                for (int j = 0; j < DOWN; ++j) s[j] = {};
#pragma unroll 2
                for (int j = 0; j < DOWN + n - 1; ++j, row += a.pitch) {
                    const int y = h - a.ahead + j;
                    if (y < low || y >= high) continue;
                    const pair r = *reinterpret_cast<const pair *>(row);
#pragma unroll
                    for (int d = 0; d < DOWN; ++d) {
                        if ((uint32_t)(j - d) >= (uint32_t)n) continue;
#pragma unroll
                        for (int v = 0; v < PAIR; ++v) s[d].v[v] += r.v[v];
                    }
                }
            }
            keep(into + at, h, bottom, s);
        }
    }

    __device__ __forceinline__ void collect(A largest_share, A largest_mean)
    {
        const uint32_t items = (uint32_t)a.planes * a.by_own.divisor * a.by_own_row.divisor;
        const A terms = (A)(n * n);
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < items; i += blockDim.x) {
            uint32_t p = i;
            const int run = a.before + (int)wd_take_rest(p, a.by_own) * QUADS;
            const int h = top + (int)wd_take_rest(p, a.by_own_row);
            const int w = first + run * QUAD, at = place(p, h);
            A own[RUN], x[RUN], s[RUN], q[RUN], value[RUN];
            uint32_t again = 0;
            if (h >= bottom || w >= right || !turn(p)) continue;
            kept_run(direct() + at + run * QUAD, run, own);
            load_run(a.x, in_at(h, w), w, narrowed<T>(0), x);
            sum_row<AHEAD>(sums() + at, run, a.ahead, s);
            if (a.means) sum_row<AHEAD>(squares() + at, run, a.ahead, q);
#pragma unroll
            for (int v = 0; v < RUN; ++v) {
                const A by = x[v] - reference;
                A r = by * s[v];
                if (a.means) {
                    r -= q[v];
                    const A most = (fabs(by) + largest_mean) * largest_share * terms;
                    const bool fine = fabs(by) >= (A)1.25 * largest_mean ||
                                      most <= 16 * DIVNORM_TRUST * (fabs(own[v]) + fabs(r));
                    if (!(fine && r == r) && w + v < a.width) again |= 1u << v;
                }
                value[v] = own[v] + r;
            }
#pragma unroll 1
            for (int v = 0; again >> v; ++v) {
                if (!(again >> v & 1)) continue;
                const A r = pick<RUN>(own, v) + collect_terms(p, h, w + v, pick<RUN>(x, v));
#pragma unroll
                for (int u = 0; u < RUN; ++u) {
                    if (u == v) value[u] = r;
                }
            }
            put(a.out, h, w, value);
        }
    }

    __device__ __forceinline__ void backward()
    {
#pragma unroll 1
        for (int h = begin; h < end; h += a.rows) {
            start(h);
            ask_ahead();
            __syncthreads(); // what the last tile kept has been read
            backward_tile();
        }
    }

    __device__ __forceinline__ void backward_tile()
    {
        __shared__ A bounds[2][DIVNORM_THREADS / 32];
        A largest_share = 0, largest_mean = 0;
        sum_columns(a.means || a.dmeans);
        __syncthreads();
        share(largest_share, largest_mean);
        if (a.means) {
            for (int o = 16; o > 0; o /= 2) {
                largest_share = fmax(largest_share, __shfl_xor_sync(0xffffffffu, largest_share, o));
                largest_mean = fmax(largest_mean, __shfl_xor_sync(0xffffffffu, largest_mean, o));
            }
            if (threadIdx.x % 32 == 0) {
                bounds[0][threadIdx.x / 32] = largest_share;
                bounds[1][threadIdx.x / 32] = largest_mean;
            }
        }
        __syncthreads();
        sum_again(shares(), sums());
        if (a.means) {
            sum_again(products(), squares());
            for (uint32_t i = 0; i < blockDim.x / 32; ++i) {
                largest_share = fmax(largest_share, bounds[0][i]);
                largest_mean = fmax(largest_mean, bounds[1][i]);
            }
        }
        __syncthreads();
        collect(largest_share, largest_mean);
    }
};

template <class T, int N> __device__ __forceinline__ void div_forward(const divnorm_vector_args &a)
{
    wd_wait_for_previous();
    normalization<T, N, sizeof(T) == 2 ? DIVNORM_QUADS_HALF : 1>(a).forward();
}

template <class T, int N> __device__ __forceinline__ void div_backward(const divnorm_vector_args &a)
{
    wd_wait_for_previous();
    normalization<T, N, 1>(a).backward();
}

} // namespace

#endif
