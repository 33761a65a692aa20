// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization, a tile of a plane (or some small planes) a block. Sums over windows are taken down
// the columns of the input, from memory, then along the rows of those sums, through shared memory; backward the
// same once more with the shares of pixels. Every window is added up anew, so that a NaN or an infinity ends
// where its window ends.
//
// A window's deviations from the mean m of its own pixel are put together from sums of x - r and of its
// square, r being one number for the tile. Where that cancels (the mean is far from r beside the
// deviations), or where the sums are not finite, they are added up term by term.
#ifndef WD_OPS_LRN_DIVNORM_TILE_CUH
#define WD_OPS_LRN_DIVNORM_TILE_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/item.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "gpu/device/wide.cuh"
#include "ops/lrn/divnorm_powers.cuh"
#include "ops/lrn/divnorm_vector_args.h"

namespace {

enum { QUAD = DIVNORM_QUAD, PAIR = DIVNORM_PAIR };

template <class T> __device__ __forceinline__ T narrowed(typename wd_accumulator<T>::type v)
{
    T r;
    wd_narrow(r, v);
    return r;
}

// Element v of a run, v not known when compiled.
template <int RUN, class A> __device__ __forceinline__ A pick(const A *from, int v)
{
    A r = from[0];
#pragma unroll
    for (int u = 1; u < RUN; ++u) r = u == v ? from[u] : r;
    return r;
}

constexpr __device__ __host__ int quads_of(int pixels)
{
    return (pixels + QUAD - 1) / QUAD;
}

template <class A, int V> struct alignas(sizeof(A) * V > 16 ? 16 : sizeof(A) * V) pack {
    A v[V];
};

template <class A> __device__ __forceinline__ void store_pack(A *to, const pack<A, 2> &one)
{
    wd_store_wide(to, one.v[0], one.v[1]);
}
template <class A> __device__ __forceinline__ void store_pack(A *to, const pack<A, 4> &one)
{
    wd_store_wide(to, one.v[0], one.v[1], one.v[2], one.v[3]);
}

// Sums of N neighbours: out[i] of in[i] .. in[i + N - 1]. What all windows of a group have is added up once,
// what is before and behind it grows from window to window.
template <int COUNT, int N, class A>
__device__ __forceinline__ void window_sums(const A *in, A *out)
{
    constexpr int GROUP = COUNT < N - 1 ? COUNT : N - 1;
    static_assert(COUNT % GROUP == 0, "groups are full");
#pragma unroll
    for (int g = 0; g < COUNT; g += GROUP) {
        A sum = in[g + GROUP - 1];
#pragma unroll
        for (int i = GROUP; i < N; ++i) sum += in[g + i];
        out[g + GROUP - 1] = sum;
#pragma unroll
        for (int i = GROUP - 2; i >= 0; --i) {
            sum += in[g + i];
            out[g + i] = sum;
        }
        sum = 0;
#pragma unroll
        for (int i = 1; i < GROUP; ++i) {
            sum += in[g + N - 1 + i];
            out[g + i] += sum;
        }
    }
}

// Sums of N neighbours' squares: of COUNT windows, as window_sums.
template <int COUNT, int N>
__device__ __forceinline__ void window_squares(const float *in, float *out)
{
    constexpr int GROUP = COUNT < N - 1 ? COUNT : N - 1;
#pragma unroll
    for (int g = 0; g < COUNT; g += GROUP) {
        float sum = in[g + GROUP - 1] * in[g + GROUP - 1];
#pragma unroll
        for (int i = GROUP; i < N; ++i) sum = fmaf(in[g + i], in[g + i], sum);
        out[g + GROUP - 1] = sum;
#pragma unroll
        for (int i = GROUP - 2; i >= 0; --i) {
            sum = fmaf(in[g + i], in[g + i], sum);
            out[g + i] = sum;
        }
        sum = in[g + N] * in[g + N];
        out[g + 1] += sum;
#pragma unroll
        for (int i = 2; i < GROUP; ++i) {
            sum = fmaf(in[g + N - 1 + i], in[g + N - 1 + i], sum);
            out[g + i] += sum;
        }
    }
}

// What a block works on. N: the window, 0 for any. QUADS of a thread, along a row.
template <class T, int N, int QUADS> struct tile {
    typedef typename wd_accumulator<T>::type A;
    static constexpr int RUN = QUADS * QUAD;
    static constexpr int BACK = N ? (N - 1) / 2 : 0;
    static constexpr int AHEAD = N ? N - 1 - BACK : 0;
    typedef pack<A, QUAD> quad;
    static constexpr int DOWN = N ? DIVNORM_DOWN : DIVNORM_DOWN_ANY; // rows of a thread, by columns
    const divnorm_vector_args &a;
    const int n;
    int words;       // of each array
    int first;       // column of what is stored; a pixel of the plane's or before it
    int right;       // column where results end
    int begin, end;  // rows of the block
    int top, bottom; // of the results of a tile
    int low, high;   // of its sums and shares
    uint32_t group;  // the first plane
    int64_t in, to;  // the plane's first elements
    A reference;

    __device__ __forceinline__ tile(const divnorm_vector_args &args)
        : a(args), n(N ? N : args.window)
    {
        uint32_t s = blockIdx.x;
        words = a.planes * a.stored_rows * a.pitch;
        first = ((int)wd_take_rest(s, a.by_part) * a.quads - a.before) * QUAD;
        right = min(first + (a.before + a.quads) * QUAD, a.width);
        begin = (int)wd_take_rest(s, a.by_segment) * a.rows * a.tiles;
        end = min(begin + a.rows * a.tiles, a.height);
        group = s * (uint32_t)a.planes;
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < a.pitch + QUAD; i += (int)blockDim.x) {
            const int w = first + i; // the last run of two quads may begin with the last one
            across()[i] = (A)(min(w + a.ahead + 1, a.width) - max(w - a.back, 0));
        }
        if (a.planes == 1) find(0);
    }

    // Of columns: of x, later of shares and products.
    __device__ __forceinline__ A *squares() const
    {
        return wd_dynamic_shared<A>();
    }
    __device__ __forceinline__ A *sums() const
    {
        return squares() + words;
    }
    // Pixels of a window along a row that are the plane's.
    __device__ __forceinline__ A *across() const
    {
        return squares() + (a.dy ? 5 : 2) * words;
    }

    // Turns to the tile whose results begin with row h.
    __device__ __forceinline__ void start(int h)
    {
        top = h;
        bottom = min(top + a.rows, end);
        low = a.dy ? max(top - a.ahead, 0) : top;
        high = a.dy ? min(bottom + a.back, a.height) : bottom;
    }

    // Turns to plane p of the block's; false where there is none.
    __device__ __forceinline__ bool find(uint32_t p)
    {
        uint32_t image = group + p;
        if (image >= a.total) return false;
        const int64_t channel = wd_take_rest(image, a.by_channel);
        in = image * a.in.image + channel * a.in.channel;
        to = image * a.to.image + channel * a.to.channel;
        // the mean in the middle, where there is one and it is a number
        reference = mean_at(begin + (end - begin) / 2,
                            min(max(first, 0) + a.stored / 2 * QUAD, a.width - 1));
        if (!(reference - reference == 0)) reference = 0;
        return true;
    }
    __device__ __forceinline__ bool turn(uint32_t p)
    {
        return a.planes == 1 || find(p);
    }

    // Where the sums of a row begin.
    __device__ __forceinline__ int place(uint32_t p, int h) const
    {
        return ((int)p * a.stored_rows + h - low) * a.pitch;
    }
    // How many rows of a window are the plane's.
    __device__ __forceinline__ int inside(int h) const
    {
        return min(h + a.ahead + 1, a.height) - max(h - a.back, 0);
    }
    __device__ __forceinline__ bool has(int h, int w) const
    {
        return (uint32_t)h < (uint32_t)a.height && (uint32_t)w < (uint32_t)a.width;
    }
    __device__ __forceinline__ A mean_at(int h, int w) const
    {
        return a.means ? wd_widen(input(a.means)[in_at(h, w)]) : (A)0;
    }

    __device__ __forceinline__ const T *input(const void *from) const
    {
        return static_cast<const T *>(from) + in;
    }
    // Where the pixel at h, w is, in the planes of x, means and dy; of the results.
    __device__ __forceinline__ int in_at(int h, int w) const
    {
        return h * a.in.row + w * a.in.pixel;
    }
    __device__ __forceinline__ int to_at(int h, int w) const
    {
        return h * a.to.row + w * a.to.pixel;
    }

    // The run whose first pixel is the plane's, at column w and `at` in memory; `none` behind a row.
    __device__ __forceinline__ void load_quads(const void *from, int at, int w, T none,
                                               wd_run<T, QUAD> *quads) const
    {
        const T *first_pixel = input(from) + at;
#pragma unroll
        for (int u = 0; u < RUN; u += QUAD) {
            wd_run<T, QUAD> &r = quads[u / QUAD];
#pragma unroll
            for (int v = 0; v < QUAD; ++v) r.put(v, none);
            if (a.in_whole) {
                if (u == 0 || w + u < a.width) r.load(first_pixel + u);
            } else {
#pragma unroll
                for (int v = 0; v < QUAD; ++v) {
                    if (w + u + v < a.width) r.put(v, first_pixel[(u + v) * a.in.pixel]);
                }
            }
        }
    }
    __device__ __forceinline__ void load_run(const void *from, int at, int w, T none,
                                             A *values) const
    {
        wd_run<T, QUAD> quads[QUADS];
        load_quads(from, at, w, none, quads);
#pragma unroll
        for (int v = 0; v < RUN; ++v) values[v] = wd_widen(quads[v / QUAD].get(v % QUAD));
    }

    // ROWS rows of a pair of columns of x; `fill` where there are none.
    template <int ROWS>
    __device__ __forceinline__ void load_columns(int h, int w, T fill, wd_run<T, PAIR> *r) const
    {
        const T *row = input(a.x) + (int64_t)h * a.in.row;
        if (ROWS > 1 && a.in_whole && h >= 0 && h + ROWS <= a.height &&
            (uint32_t)w < (uint32_t)a.width) {
            row += w;
#pragma unroll
            for (int j = 0; j < ROWS; ++j, row += a.in.row) r[j].load(row);
            return;
        }
#pragma unroll
        for (int j = 0; j < ROWS; ++j) {
#pragma unroll
            for (int v = 0; v < PAIR; ++v) r[j].put(v, fill);
        }
        if (a.in_whole) {
            const uint32_t height = (uint32_t)w < (uint32_t)a.width ? (uint32_t)a.height : 0;
            row += w;
#pragma unroll
            for (int j = 0; j < ROWS; ++j, row += a.in.row) {
                if ((uint32_t)(h + j) < height) r[j].load(row);
            }
        } else {
#pragma unroll
            for (int v = 0; v < PAIR; ++v) {
                const uint32_t height =
                    (uint32_t)(w + v) < (uint32_t)a.width ? (uint32_t)a.height : 0;
                const T *at = row + (w + v) * a.in.pixel;
#pragma unroll
                for (int j = 0; j < ROWS; ++j, at += a.in.row) {
                    if ((uint32_t)(h + j) < height) r[j].put(v, *at);
                }
            }
        }
    }

    // The rows of a pair of columns, those before `end`.
    __device__ __forceinline__ void keep(A *to_sums, int h, int end, const pack<A, PAIR> *s) const
    {
        if (h + DOWN <= end) {
#pragma unroll
            for (int j = 0; j < DOWN; ++j, to_sums += a.pitch) {
                store_pack(to_sums, s[j]);
            }
            return;
        }
#pragma unroll
        for (int j = 0; j < DOWN; ++j, to_sums += a.pitch) {
            if (h + j < end) store_pack(to_sums, s[j]);
        }
    }

    // Sums of x - reference and of its square down the columns.
    __device__ __forceinline__ void sum_columns(bool both)
    {
        typedef wd_run<T, PAIR> pair;
        const uint32_t items = (uint32_t)a.planes * a.by_columns.divisor * a.by_steps.divisor;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < items; i += blockDim.x) {
            uint32_t p = i;
            const int column = (int)wd_take_rest(p, a.by_columns) * PAIR;
            const int h = low + (int)wd_take_rest(p, a.by_steps) * DOWN;
            if (h >= high || !turn(p)) continue;
            const T fill = narrowed<T>(reference); // which it is
            const int at = place(p, h) + column;
            pack<A, PAIR> s[DOWN];
            if constexpr (N > 0) {
                constexpr int ROWS = DOWN + N - 1;
                pair r[ROWS];
                A w[PAIR][ROWS], one[DOWN];
                load_columns<ROWS>(h - a.back, first + column, fill, r);
#pragma unroll
                for (int v = 0; v < PAIR; ++v) {
#pragma unroll
                    for (int j = 0; j < ROWS; ++j) w[v][j] = wd_widen(r[j].get(v)) - reference;
                }
                if (both) { // and kept before there are squares, which take as many registers
#pragma unroll
                    for (int v = 0; v < PAIR; ++v) {
                        window_sums<DOWN, N>(w[v], one);
#pragma unroll
                        for (int j = 0; j < DOWN; ++j) s[j].v[v] = one[j];
                    }
                    keep(sums() + at, h, high, s);
                }
#pragma unroll
                for (int v = 0; v < PAIR; ++v) {
#pragma unroll
                    for (int j = 0; j < ROWS; ++j) w[v][j] *= w[v][j];
                    window_sums<DOWN, N>(w[v], one);
#pragma unroll
                    for (int j = 0; j < DOWN; ++j) s[j].v[v] = one[j];
                }
                keep(squares() + at, h, high, s);
            } else {
                pack<A, PAIR> q[DOWN];
#pragma unroll
                for (int j = 0; j < DOWN; ++j) s[j] = {}, q[j] = {};
#pragma unroll 2
                for (int j = 0; j < DOWN + n - 1; ++j) {
                    pair r;
                    load_columns<1>(h - a.back + j, first + column, fill, &r);
#pragma unroll
                    for (int v = 0; v < PAIR; ++v) {
                        const A w = wd_widen(r.get(v)) - reference;
#pragma unroll
                        for (int d = 0; d < DOWN; ++d) {
                            if ((uint32_t)(j - d) >= (uint32_t)n) continue;
                            s[d].v[v] += w;
                            q[d].v[v] += w * w;
                        }
                    }
                }
                keep(squares() + at, h, high, q);
                if (both) keep(sums() + at, h, high, s);
            }
        }
    }

    // Sums along a row of what is at `from`, for the run from quad r of those that are stored on: `back`
    // pixels before each are in its window. OF: of the window N.
    template <int OF>
    __device__ __forceinline__ void sum_row(const A *from, int r, int back, A *out) const
    {
        if constexpr (N > 0) {
            constexpr int LEFT = quads_of(OF), RIGHT = QUADS - 1 + quads_of(N - 1 - OF);
            A w[(LEFT + 1 + RIGHT) * QUAD];
            from += r * QUAD;
#pragma unroll
            for (int d = -LEFT; d <= RIGHT; ++d) {
                quad one = {};
                if (d == 0 || (uint32_t)(r + d) < (uint32_t)a.stored) {
                    one = *reinterpret_cast<const quad *>(from + d * QUAD);
                }
#pragma unroll
                for (int v = 0; v < QUAD; ++v) w[(d + LEFT) * QUAD + v] = one.v[v];
            }
            window_sums<RUN, N>(w + LEFT * QUAD - OF, out);
        } else {
#pragma unroll
            for (int v = 0; v < RUN; ++v) out[v] = 0;
#pragma unroll 1
            for (int j = 0; j < RUN + n - 1; ++j) {
                const int w = r * QUAD - back + j;
                if ((uint32_t)w >= (uint32_t)a.pitch) continue;
                const A one = from[w];
#pragma unroll
                for (int v = 0; v < RUN; ++v) {
                    if ((uint32_t)(j - v) < (uint32_t)n) out[v] += one;
                }
            }
        }
    }

    // From sums s of x - r and q of its square those of x - m, in the windows around the run at h, w; where
    // one cancels, all are added up term by term. SUMS: s is wanted, not the strength alone.
    template <bool SUMS>
    __device__ __forceinline__ void deviations(int h, int w, const A *m, A *s, A *q) const
    {
        const A down = (A)inside(h);
        const A part = (SUMS ? (A)1 : numbers<A>(a).factor) / DIVNORM_TRUST;
        A counts[RUN];
#pragma unroll
        for (int u = 0; u < QUADS; ++u) {
            const quad one = *reinterpret_cast<const quad *>(across() + (w - first) + u * QUAD);
#pragma unroll
            for (int v = 0; v < QUAD; ++v) counts[u * QUAD + v] = one.v[v];
        }
        bool fine = true;
#pragma unroll
        for (int v = 0; v < RUN; ++v) {
            const A by = m[v] - reference, less = counts[v] * down * by, all = q[v];
            q[v] = q[v] - by * (2 * s[v] - less);
            if (SUMS) s[v] = s[v] - less;
            fine = fine &
                   (part * all <= (SUMS ? q[v] : numbers<A>(a).k + numbers<A>(a).factor * q[v]));
        }
        if (__builtin_expect(!fine, 0)) add_terms(h, w, m, s, q);
    }
    __device__ __forceinline__ void add_terms(int h, int w, const A *m, A *s, A *q) const
    {
#pragma unroll 1
        for (int v = 0; v < RUN && w + v < a.width; ++v) {
            const A mean = pick<RUN>(m, v);
            A sum = 0, square_sum = 0;
#pragma unroll 1
            for (int i = 0; i < n * n; ++i) {
                const int row = h - a.back + i / n, column = w + v - a.back + i % n;
                if (!has(row, column)) continue;
                const A d = wd_widen(input(a.x)[in_at(row, column)]) - mean;
                sum += d;
                square_sum += d * d;
            }
#pragma unroll
            for (int u = 0; u < RUN; ++u) {
                if (u == v) s[u] = sum, q[u] = square_sum;
            }
        }
    }

    // The results of the run at h, w, as far as they are the tile's.
    __device__ __forceinline__ void put(void *into, int h, int w, const A *value) const
    {
        T *base = static_cast<T *>(into) + to + to_at(h, w);
#pragma unroll
        for (int u = 0; u < RUN; u += QUAD) {
            wd_run<T, QUAD> r;
            if (u > 0 && w + u >= right) break;
            if (__builtin_expect(a.to_whole && a.scales && !a.blends, 1)) {
#pragma unroll
                for (int v = 0; v < QUAD; ++v) {
                    r.put(v, narrowed<T>(numbers<A>(a).alpha * value[u + v]));
                }
                r.store(base + u);
                continue;
            }
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                T *at = base + (u + v) * a.to.pixel;
                if (w + u + v >= right) continue;
                A one = a.scales ? numbers<A>(a).alpha * value[u + v] : (A)0;
                if (a.blends) one += numbers<A>(a).beta * wd_widen(*at);
                *at = narrowed<T>(one);
            }
        }
    }
};

} // namespace

#endif
