// SPDX-License-Identifier: Apache-2.0
//
// Local response normalization where channels are neighbours (NHWC). A thread has a run of elements,
// in memory's order, and sees the runs on either side of it through the first-level cache; where
// pixels are whole runs a neighbour is another pixel's or it is not, else (`flat`) every term is
// masked by its channel. Backward, windows of five compute what neighbours share for themselves;
// longer ones exchange squares and shares through shared memory, in tiles that overlap.
#ifndef WD_OPS_LRN_PIXELS_CUH
#define WD_OPS_LRN_PIXELS_CUH

#include "ops/lrn/lrn_vector.cuh"

namespace {
namespace pixels {

// Run r; elements that are not the tensor's read as 0.
template <class T, int V>
__device__ __forceinline__ void load_run(const lrn_vector_args &a, const void *from, int r,
                                         wd_run<T, V> &run)
{
    const T *at = static_cast<const T *>(from);
    const int first = r * V;
    clear(run);
    if (!a.loose && first >= (int)a.skip && first + V <= (int)a.elements) {
        run.load(at + first);
    } else if (V > 1) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if (first + v >= (int)a.skip && first + v < (int)a.elements) run.put(v, at[first + v]);
        }
    }
}

template <class T, int V, class A>
__device__ __forceinline__ void put_run(const lrn_vector_args &a, int r, const A *value)
{
    T *to = static_cast<T *>(a.out.data) + r * V;
    const int first = r * V;
    if (!a.loose && first >= (int)a.skip && first + V <= (int)a.elements) {
        put<T, V>(a, to, value);
    } else if (V > 1) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if (first + v >= (int)a.skip && first + v < (int)a.elements) {
                put<T, 1>(a, to + v, value + v);
            }
        }
    }
}

// Elements `first + i`, i = 0 .. COUNT-1, have the channels c[i].
template <int COUNT>
__device__ __forceinline__ void channels_from(const lrn_vector_args &a, int first, int *c)
{
    uint32_t n = (uint32_t)first + a.phase;
    c[0] = (int)wd_take_rest(n, a.by_channel);
#pragma unroll
    for (int i = 1; i < COUNT; ++i) c[i] = c[i - 1] + 1 < a.channels ? c[i - 1] + 1 : 0;
}

__device__ __forceinline__ bool is_channel(const lrn_vector_args &a, int c)
{
    return (uint32_t)c < (uint32_t)a.channels;
}

constexpr __device__ __host__ int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

// Rounds down, for negative n too.
constexpr __device__ __host__ int floor_div(int n, int by)
{
    return n >= 0 ? n / by : -((by - 1 - n) / by);
}

// LEFT runs before run r, r itself, and RIGHT behind it. N = 0: only those that the window reaches.
template <class T, int V, int LEFT, int RIGHT, bool WHOLE, bool ALL, class A>
__device__ __forceinline__ void load_around(const lrn_vector_args &a, const void *from, int r,
                                            int in_pixel, int runs, A *w)
{
#pragma unroll
    for (int d = -LEFT; d <= RIGHT; ++d) {
        wd_run<T, V> run;
        bool needed = !WHOLE || (uint32_t)(in_pixel + d) < (uint32_t)runs;
        if (!ALL && d < 0) needed = needed && (-d - 1) * V < a.back;
        if (!ALL && d > 0) needed = needed && (d - 1) * V < a.ahead;
        clear(run);
        if (needed) load_run<T, V>(a, from, r + d, run);
#pragma unroll
        for (int v = 0; v < V; ++v) w[(d + LEFT) * V + v] = wd_widen(run.get(v));
    }
}

// For elements 0 .. V-1 of w the sums of squares from BACK before to AHEAD behind them, as far as they are of
// their pixel. c: channels of theirs and of AHEAD more. What is of another pixel is not added, one element at a time.
template <int V, int BACK, int AHEAD, class A>
__device__ __forceinline__ void sums_of_pixels(const lrn_vector_args &a, const int *c, const A *w,
                                               A *sums)
{
    A before[V], behind[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
        sums[v] = w[v] * w[v];
        before[v] = behind[v] = 0;
    }
    // of those from d before on, the one that is furthest first
#pragma unroll
    for (int d = BACK; d > 0; --d) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if (c[v] >= d) before[v] += w[v - d] * w[v - d];
        }
    }
#pragma unroll
    for (int d = AHEAD; d > 0; --d) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if (c[v] < a.channels - d) behind[v] += w[v + d] * w[v + d];
        }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] += before[v] + behind[v];
}

// N: the window, 0 for any.
template <class T, int V, int N, bool WHOLE>
__device__ __forceinline__ void forward(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int BACK = N ? (N - 1) / 2 : LRN_BACK_MAX;
    constexpr int AHEAD = N ? N - 1 - BACK : LRN_AHEAD_MAX;
    constexpr int LEFT = ceil_div(BACK, V), RIGHT = ceil_div(AHEAD, V);
    const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    uint32_t pixel = (uint32_t)r;
    int in_pixel = 0;
    int c[V];
    A w[(LEFT + 1 + RIGHT) * V], s[V], power[V], inverse[V];
    wd_wait_for_previous();
    if ((uint32_t)r >= a.count) return;
    if (WHOLE) in_pixel = (int)wd_take_rest(pixel, a.by_run);
    else channels_from<V>(a, r * V, c);
    load_around<T, V, LEFT, RIGHT, WHOLE, N != 0>(a, a.x.data, r, in_pixel, (int)a.by_run.divisor,
                                                  w);
    if constexpr (N != 0 && !WHOLE) {
        sums_of_pixels<V, BACK, AHEAD>(a, c, w + LEFT * V, s);
    } else {
#pragma unroll
        for (int v = 0; v < V; ++v) s[v] = 0;
#pragma unroll
        for (int o = -BACK; o <= AHEAD; ++o) {
            if (!N && (o < -a.back || o > a.ahead)) continue;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const A x = w[LEFT * V + v + o];
                if (WHOLE || is_channel(a, c[v] + o)) s[v] += x * x;
            }
        }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) s[v] = numbers<A>(a).k + numbers<A>(a).factor * s[v];
    powers<V>(a, s, power, inverse);
#pragma unroll
    for (int v = 0; v < V; ++v) power[v] *= w[LEFT * V + v];
    put_run<T, V>(a, r, power);
}

template <class T, int V, int N, bool WHOLE>
__device__ __forceinline__ void backward_window(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int BACK = (N - 1) / 2, AHEAD = N - 1 - BACK;
    constexpr int SIDE = ceil_div(N - 1, V);                            // runs of x
    constexpr int LEFT = ceil_div(AHEAD, V), RIGHT = ceil_div(BACK, V); // of dy
    constexpr int SHARES = AHEAD + V + BACK; // of the elements -AHEAD .. V-1+BACK
    const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    uint32_t pixel = (uint32_t)r;
    int in_pixel = 0;
    int c[SHARES];
    A x[(2 * SIDE + 1) * V], dy[(LEFT + 1 + RIGHT) * V];
    A s[SHARES], power[SHARES], inverse[SHARES], value[V];
    wd_wait_for_previous();
    if ((uint32_t)r >= a.count) return;
    if (WHOLE) in_pixel = (int)wd_take_rest(pixel, a.by_run);
    else channels_from<SHARES>(a, r * V - AHEAD, c);
    load_around<T, V, SIDE, SIDE, WHOLE, true>(a, a.x.data, r, in_pixel, (int)a.by_run.divisor, x);
    load_around<T, V, LEFT, RIGHT, WHOLE, true>(a, a.dy.data, r, in_pixel, (int)a.by_run.divisor,
                                                dy);
#pragma unroll
    for (int i = 0; i < SHARES; ++i) {
        const int e = i - AHEAD;
        A sum = 0;
#pragma unroll
        for (int o = -BACK; o <= AHEAD; ++o) {
            const A one = x[SIDE * V + e + o];
            if (WHOLE || is_channel(a, c[i] + o)) sum += one * one;
        }
        s[i] = numbers<A>(a).k + numbers<A>(a).factor * sum;
    }
    powers<SHARES>(a, s, power, inverse);
#pragma unroll
    for (int i = 0; i < SHARES; ++i) {
        const int e = i - AHEAD;
        const bool is_own = e >= 0 && e < V;
        const bool in =
            is_own || !WHOLE || (uint32_t)(in_pixel + floor_div(e, V)) < (uint32_t)a.by_run.divisor;
        power[i] *= dy[LEFT * V + e];
        inverse[i] = in ? power[i] * x[SIDE * V + e] * inverse[i] : (A)0; // now the share
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
        A sum = 0;
#pragma unroll
        for (int o = -AHEAD; o <= BACK; ++o) {
            if (WHOLE || is_channel(a, c[v + AHEAD] + o)) sum += inverse[v + AHEAD + o];
        }
        value[v] = power[v + AHEAD] + x[SIDE * V + v] * numbers<A>(a).share * sum;
    }
    put_run<T, V>(a, r, value);
}

// Values of a tile: element v of thread t's run at row v, so that neighbours in time are neighbours
// in memory, with room for what neighbours of the first and last thread would have.
template <class A, int V> struct tile {
    static constexpr int PAD = ceil_div(LRN_AHEAD_MAX, V);
    static constexpr int ROW = LRN_TILE_THREADS + 2 * PAD;
    A *base;
    __device__ __forceinline__ tile(int which)
        : base(reinterpret_cast<A *>(lrn_shared()) + which * V * ROW + PAD)
    {
        if (threadIdx.x >= PAD) return;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            base[v * ROW + (int)threadIdx.x - PAD] = 0;
            base[v * ROW + LRN_TILE_THREADS + (int)threadIdx.x] = 0;
        }
    }
    __device__ __forceinline__ void set(int v, A value)
    {
        base[v * ROW + threadIdx.x] = value;
    }
    // For each of the own elements, all of run `in_pixel` of a pixel, the sum of those from `back` before
    // it to `ahead` behind it, as far as they are of its pixel: those before it, and the others.
    __device__ __forceinline__ void sum_whole(const lrn_vector_args &a, const A *own, int in_pixel,
                                              int back, int ahead, A *sums) const
    {
        constexpr int REACH = LRN_AHEAD_MAX;
        A left[V + REACH - 1], right[V + REACH], before[V];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            right[v] = own[v];
            if (v < V - 1) left[V - 2 - v] = own[v];
        }
#pragma unroll
        for (int d = 1; d <= PAD; ++d) {
            const bool is_left = in_pixel >= d && (d - 1) * V < back;
            const bool is_right = in_pixel + d < (int)a.by_run.divisor && (d - 1) * V < ahead;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int l = V - 2 - (v - d * V), r = v + d * V;
                if (l < V + REACH - 1) left[l] = is_left ? base[v * ROW + (int)threadIdx.x - d] : 0;
                if (r < V + REACH) right[r] = is_right ? base[v * ROW + (int)threadIdx.x + d] : 0;
            }
        }
        window_sums<V, 0, REACH>(left, back, before);
        window_sums<V, 0, REACH + 1>(right, ahead + 1, sums);
#pragma unroll
        for (int v = 0; v < V; ++v) sums[v] += before[V - 1 - v];
    }
    // For each of the own elements the sum of those from `low` to `high` beyond it, FIRST and LAST
    // the widest that there are, as far as they are of its pixel.
    template <int FIRST, int LAST>
    __device__ __forceinline__ void sum(const lrn_vector_args &a, int low, int high, const int *c,
                                        A *sums)
    {
        A w[LAST - FIRST + V];
#pragma unroll
        for (int i = 0; i < LAST - FIRST + V; ++i) {
            const int run = floor_div(FIRST + i, V);
            w[i] = base[(FIRST + i - run * V) * ROW + (int)threadIdx.x + run];
        }
#pragma unroll
        for (int v = 0; v < V; ++v) sums[v] = 0;
#pragma unroll
        for (int o = FIRST; o <= LAST; ++o) {
            if (o < low || o > high) continue;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                if (is_channel(a, c[v] + o)) sums[v] += w[v + o - FIRST];
            }
        }
    }
};

// x and dy of a tile's run, which may lie beyond the tensor: 0 there.
template <class T, int V>
__device__ __forceinline__ void load_both(const lrn_vector_args &a, int r, bool in, wd_run<T, V> &x,
                                          wd_run<T, V> &dy)
{
    clear(x);
    clear(dy);
    if (!in) return;
    load_run<T, V>(a, a.x.data, r, x);
    load_run<T, V>(a, a.dy.data, r, dy);
}

// Of a run's sums of squares what dx has of its own dy, and what each element's share in those around it is.
template <class T, int V, class A>
__device__ __forceinline__ void own_and_shares(const lrn_vector_args &a, const wd_run<T, V> &x,
                                               const wd_run<T, V> &dy, A (&sums)[V], A (&own)[V],
                                               A (&share)[V])
{
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] = numbers<A>(a).k + numbers<A>(a).factor * sums[v];
    powers<V>(a, sums, own, share);
#pragma unroll
    for (int v = 0; v < V; ++v) {
        own[v] *= wd_widen(dy.get(v));
        share[v] *= own[v] * wd_widen(x.get(v));
    }
}

// WHOLE: pixels are whole runs.
template <class T, int V, bool WHOLE>
__device__ __forceinline__ void backward_tile(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    const int t = (int)threadIdx.x;
    const int r = (int)blockIdx.x * (LRN_TILE_THREADS - 2 * a.margin) - a.margin + t;
    const bool in = (uint32_t)r < a.count;
    tile<A, V> squares(0), shares(1);
    wd_run<T, V> x, dy;
    int c[V];
    int in_pixel = 0;
    A s[V], power[V], share[V], sum[V];
    wd_wait_for_previous();
    load_both<T, V>(a, r, in, x, dy);
    if (WHOLE) {
        uint32_t pixel = in ? (uint32_t)r : 0;
        in_pixel = (int)wd_take_rest(pixel, a.by_run);
    } else {
        channels_from<V>(a, in ? r * V : 0, c);
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
        power[v] = wd_widen(x.get(v)) * wd_widen(x.get(v)); // for now
        squares.set(v, power[v]);
    }
    __syncthreads();
    if (WHOLE) squares.sum_whole(a, power, in_pixel, a.back, a.ahead, s);
    else squares.template sum<-LRN_BACK_MAX, LRN_AHEAD_MAX>(a, -a.back, a.ahead, c, s);
    own_and_shares<T, V>(a, x, dy, s, power, share);
#pragma unroll
    for (int v = 0; v < V; ++v) shares.set(v, share[v]);
    __syncthreads();
    if (!in || t < a.margin || t >= LRN_TILE_THREADS - a.margin) return;
    if (WHOLE) shares.sum_whole(a, share, in_pixel, a.ahead, a.back, sum);
    else shares.template sum<-LRN_AHEAD_MAX, LRN_BACK_MAX>(a, -a.ahead, a.back, c, sum);
#pragma unroll
    for (int v = 0; v < V; ++v) power[v] += wd_widen(x.get(v)) * numbers<A>(a).share * sum[v];
    put_run<T, V>(a, r, power);
}

// Sums from either end of a tile's runs: a window that is longer than a run is the end of one, all of those
// between, of which there is at most one, and the beginning of another. Element v of thread t's run is in row v
// (from it to the end) and row V + v (from the beginning to it).
template <class A, int V> struct run_ends {
    static constexpr int ROW = LRN_TILE_THREADS + 2;
    A *at;
    __device__ __forceinline__ run_ends(int which)
        : at(reinterpret_cast<A *>(lrn_shared()) + which * 2 * V * ROW + 1 + threadIdx.x)
    {
    }
    __device__ __forceinline__ A set(const A *own) const
    {
        A begin = own[0], end = own[V - 1];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if (v > 0) begin += own[v], end += own[V - 1 - v];
            at[(V + v) * ROW] = begin;
            at[(V - 1 - v) * ROW] = end;
        }
        return begin;
    }
    // For each of the own elements the sum of those from `back` before it to `ahead` behind it. COVERS: each such
    // window has all of the own run, whose sum is `total`. left, right: the runs beside it are of its pixel.
    template <bool COVERS>
    __device__ __forceinline__ void sum(int back, int ahead, bool left, bool right, A total,
                                        A *sums) const
    {
        const A *before = at - 1 + (V - back) * ROW, *behind = at + 1 + ahead * ROW;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            sums[v] = total;
            if (!COVERS && v + ahead < V) sums[v] = at[(V + v + ahead) * ROW];
            else if (!COVERS && v >= back) sums[v] = at[(v - back) * ROW];
            A one = 0;
            if (left && ((COVERS && v < V - 1) || v < back)) one = before[v * ROW];
            sums[v] += one;
            one = 0;
            if (right && ((COVERS && v > 0) || v + ahead >= V)) one = behind[v * ROW];
            sums[v] += one;
        }
    }
    __device__ __forceinline__ void sum(int back, int ahead, bool left, bool right, A total,
                                        A *sums) const
    {
        if (back >= V - 1 && ahead >= V - 1) sum<true>(back, ahead, left, right, total, sums);
        else sum<false>(back, ahead, left, right, total, sums);
    }
};

// Windows of more than a run, up to two. Pixels are whole runs.
template <class T, int V> __device__ __forceinline__ void backward_long(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    static_assert(LRN_WINDOW_MAX <= 2 * V, "one run at most between those that a window ends in");
    const int t = (int)threadIdx.x;
    const int r = (int)blockIdx.x * (LRN_TILE_THREADS - 2 * a.margin) - a.margin + t;
    const bool in = (uint32_t)r < a.count;
    const run_ends<A, V> squares(0), shares(1);
    wd_run<T, V> x, dy;
    uint32_t pixel = in ? (uint32_t)r : 0;
    const int in_pixel = (int)wd_take_rest(pixel, a.by_run);
    // no thread is beside the first and the last one: their results are others'
    const bool left = in_pixel > 0 && t > 0;
    const bool right = in_pixel + 1 < (int)a.by_run.divisor && t + 1 < LRN_TILE_THREADS;
    A s[V], power[V], share[V];
    wd_wait_for_previous();
    load_both<T, V>(a, r, in, x, dy);
#pragma unroll
    for (int v = 0; v < V; ++v) power[v] = wd_widen(x.get(v)) * wd_widen(x.get(v)); // for now
    A total = squares.set(power);
    __syncthreads();
    squares.sum(a.back, a.ahead, left, right, total, s);
    own_and_shares<T, V>(a, x, dy, s, power, share);
    total = shares.set(share);
    __syncthreads();
    if (!in || t < a.margin || t >= LRN_TILE_THREADS - a.margin) return;
    shares.sum(a.ahead, a.back, left, right, total, s);
#pragma unroll
    for (int v = 0; v < V; ++v) power[v] += wd_widen(x.get(v)) * numbers<A>(a).share * s[v];
    put_run<T, V>(a, r, power);
}

} // namespace pixels
} // namespace

#endif
