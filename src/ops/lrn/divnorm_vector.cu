// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization of planes. A block has a tile of 32 x 32 pixels in shared memory, with what
// the windows reach around it; a thread has four pixels of a row, and adds up the deviations of their
// windows from their own means, term by term: sums of squares that are put together from parts would
// cancel where means are large. Backward, a first kernel leaves every pixel's share h and dy s^-B in a
// scratch that stays in the second-level cache, a second one collects the shares.
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/lrn/divnorm_vector_args.h"

namespace {

enum { V = 4, REACH = DIVNORM_LEFT + V + 8 };

template <class T> struct accumulator {
    typedef float type;
};
template <> struct accumulator<double> {
    typedef double type;
};

// n = quotient * divisor + the result; n becomes the quotient.
__device__ __forceinline__ uint32_t take_rest(uint32_t &n, const wd_fastdiv &by)
{
    const uint32_t quotient = wd_fastdiv_quotient(n, by);
    const uint32_t rest = n - quotient * by.divisor;
    n = quotient;
    return rest;
}

// s^exponent; s is positive, infinite or NaN.
__device__ __forceinline__ float power(float s, float exponent)
{
    return exp2f(exponent * log2f(s));
}
__device__ __noinline__ double power(double s, double exponent)
{
    return pow(s, exponent);
}

// A block's tile, and a thread's four pixels in it.
struct spot {
    int64_t plane; // its first element
    int top, left; // of the tile
    int line;      // of the thread, in the tile
    int column;    // its first, likewise
    __device__ __forceinline__ spot(const divnorm_vector_args &a)
    {
        uint32_t n = blockIdx.x;
        left = (int)take_rest(n, a.by_tile_w) * DIVNORM_SIDE;
        top = (int)take_rest(n, a.by_tile_h) * DIVNORM_SIDE;
        plane = (int64_t)n * a.height * a.width;
        line = (int)threadIdx.x / (DIVNORM_SIDE / V);
        column = (int)threadIdx.x % (DIVNORM_SIDE / V) * V;
    }
    __device__ __forceinline__ bool has(const divnorm_vector_args &a, int v) const
    {
        return top + line < a.height && left + column + v < a.width;
    }
    __device__ __forceinline__ int64_t at(const divnorm_vector_args &a) const
    {
        return plane + (int64_t)(top + line) * a.width + left + column;
    }
};

// The tile of `from`, with `before` lines and columns before it and `behind` behind; 0 outside of the
// plane.
template <class A, class S>
__device__ __forceinline__ void load_tile(const divnorm_vector_args &a, const spot &at,
                                          const S *from, int before, int behind, A *tile)
{
    const int lines = DIVNORM_SIDE + before + behind;
    for (int i = (int)threadIdx.x; i < lines * DIVNORM_PITCH; i += DIVNORM_THREADS) {
        const int column = i % DIVNORM_PITCH - DIVNORM_LEFT;
        const int h = at.top + i / DIVNORM_PITCH - before;
        const int w = at.left + column;
        A value = 0;
        if (column >= -before && column < DIVNORM_SIDE + behind &&
            (uint32_t)h < (uint32_t)a.height && (uint32_t)w < (uint32_t)a.width) {
            value = wd_widen(from[at.plane + (int64_t)h * a.width + w]);
        }
        tile[i] = value;
    }
}

// A line's elements around a thread's pixels; that `o` beyond pixel v is w[DIVNORM_LEFT + v + o]. Of
// the elements from `low` to `high` beyond, at least.
template <int LOW, int HIGH, class A> __device__ __forceinline__ void load_line(const A *line, A *w)
{
#pragma unroll
    for (int i = 0; i < REACH; i += V) {
        if (i + V <= DIVNORM_LEFT + LOW || i >= DIVNORM_LEFT + V + HIGH) continue;
        if constexpr (sizeof(A) == 4) {
            const float4 four = *reinterpret_cast<const float4 *>(line + i);
            w[i] = four.x, w[i + 1] = four.y, w[i + 2] = four.z, w[i + 3] = four.w;
        } else {
            const double2 two = *reinterpret_cast<const double2 *>(line + i);
            const double2 more = *reinterpret_cast<const double2 *>(line + i + 2);
            w[i] = two.x, w[i + 1] = two.y, w[i + 2] = more.x, w[i + 3] = more.y;
        }
    }
}

// Of each pixel's window the deviations from its mean, and their squares. N: the window, 0 for any.
// EDGE: some of it may lie outside, which does not count.
template <int N, bool EDGE, bool SUMS, class A>
__device__ __forceinline__ void deviations(const divnorm_vector_args &a, const spot &at,
                                           const A *tile, const A *mean, A *sum, A *squares)
{
    constexpr int BACK = N ? (N - 1) / 2 : 7, AHEAD = N ? N - 1 - BACK : 8;
    const int h = at.top + at.line;
    const int last = min(a.back + a.ahead, a.height - 1 - h + a.back);
    uint32_t inside = 0; // bit i: element i of a line is one of the plane
#pragma unroll
    for (int i = 0; EDGE && i < REACH; ++i) {
        if ((uint32_t)(at.left + at.column + i - DIVNORM_LEFT) < (uint32_t)a.width) {
            inside |= 1u << i;
        }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) sum[v] = squares[v] = 0;
#pragma unroll 1
    for (int r = max(a.back - h, 0); r <= last; ++r) {
        A w[REACH];
        load_line<-BACK, AHEAD>(tile + (at.line + r) * DIVNORM_PITCH + at.column, w);
#pragma unroll
        for (int o = -BACK; o <= AHEAD; ++o) {
            if (!N && (o < -a.back || o > a.ahead)) continue;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int i = DIVNORM_LEFT + v + o;
                A d = w[i] - mean[v];
                if (EDGE && !(inside >> i & 1)) d = 0;
                if (SUMS) sum[v] += d;
                squares[v] += d * d;
            }
        }
    }
}

template <class T, class A>
__device__ __forceinline__ void load_four(const divnorm_vector_args &a, const spot &at,
                                          const void *from, A *value)
{
#pragma unroll
    for (int v = 0; v < V; ++v) {
        value[v] = 0;
        if (from && at.has(a, v)) value[v] = wd_widen(static_cast<const T *>(from)[at.at(a) + v]);
    }
}

template <class T, class A>
__device__ __forceinline__ void put(const divnorm_vector_args &a, void *out, int64_t at, A value)
{
    T *to = static_cast<T *>(out) + at;
    A r = a.scales ? (A)a.alpha * value : (A)0;
    if (a.blends) r += (A)a.beta * wd_widen(*to);
    wd_narrow(*to, r);
}

// The sums of a tile that is in memory.
template <int N, bool SUMS, class A>
__device__ __forceinline__ void sums_of(const divnorm_vector_args &a, const spot &at, const A *tile,
                                        const A *mean, A *sum, A *squares)
{
    const bool inner = at.left >= a.back && at.left + DIVNORM_SIDE + a.ahead <= a.width;
    if (!a.means || inner) deviations<N, false, SUMS>(a, at, tile, mean, sum, squares);
    else deviations<N, true, SUMS>(a, at, tile, mean, sum, squares);
}

template <class T, int N> __device__ __forceinline__ void div_forward(const divnorm_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    __shared__ __align__(16) A tile[DIVNORM_LINES * DIVNORM_PITCH];
    const spot at(a);
    A mean[V], sum[V], s[V];
    wd_wait_for_previous();
    load_tile(a, at, static_cast<const T *>(a.x), a.back, a.ahead, tile);
    load_four<T>(a, at, a.means, mean);
    __syncthreads();
    sums_of<N, false>(a, at, tile, mean, sum, s);
#pragma unroll
    for (int v = 0; v < V; ++v) {
        const A x = tile[(at.line + a.back) * DIVNORM_PITCH + DIVNORM_LEFT + at.column + v];
        if (!at.has(a, v)) continue;
        put<T>(a, a.out, at.at(a) + v, x * power((A)a.k + (A)a.factor * s[v], (A)a.exponent));
    }
}

// Each pixel's share, and the gradient of its mean.
template <class T, int N> __device__ __forceinline__ void div_share(const divnorm_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    __shared__ __align__(16) A tile[DIVNORM_LINES * DIVNORM_PITCH];
    const spot at(a);
    A mean[V], dy[V], sum[V], s[V];
    wd_wait_for_previous();
    load_tile(a, at, static_cast<const T *>(a.x), a.back, a.ahead, tile);
    load_four<T>(a, at, a.means, mean);
    load_four<T>(a, at, a.dy, dy);
    __syncthreads();
    if (a.dmeans) sums_of<N, true>(a, at, tile, mean, sum, s);
    else sums_of<N, false>(a, at, tile, mean, sum, s);
#pragma unroll
    for (int v = 0; v < V; ++v) {
        const A x = tile[(at.line + a.back) * DIVNORM_PITCH + DIVNORM_LEFT + at.column + v];
        const int64_t here = at.at(a) + v;
        if (!at.has(a, v)) continue;
        const A strength = (A)a.k + (A)a.factor * s[v];
        const A direct = dy[v] * power(strength, (A)a.exponent);
        const A h = (A)a.share * direct * x / strength;
        static_cast<A *>(a.direct)[here] = direct;
        static_cast<A *>(a.shares)[here] = h;
        if (a.dmeans) put<T>(a, a.dmeans, here, -h * sum[v]);
    }
}

// Each pixel collects from those that have it in their windows.
template <class T, int N> __device__ __forceinline__ void div_collect(const divnorm_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    constexpr int BACK = N ? (N - 1) / 2 : 7, AHEAD = N ? N - 1 - BACK : 8;
    WD_DYNAMIC_SHARED(unsigned char, shared);
    A *shares = reinterpret_cast<A *>(shared);
    A *means = shares + DIVNORM_LINES * DIVNORM_PITCH;
    const spot at(a);
    A x[V], sum[V];
    wd_wait_for_previous();
    load_tile(a, at, static_cast<const A *>(a.shares), a.ahead, a.back, shares);
    if (a.means) load_tile(a, at, static_cast<const T *>(a.means), a.ahead, a.back, means);
    load_four<T>(a, at, a.x, x);
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v) sum[v] = 0;
#pragma unroll 1
    for (int r = 0; r <= a.back + a.ahead; ++r) {
        const int line = (at.line + r) * DIVNORM_PITCH + at.column;
        A h[REACH], m[REACH];
        load_line<-AHEAD, BACK>(shares + line, h);
        if (a.means) {
            load_line<-AHEAD, BACK>(means + line, m);
        } else {
#pragma unroll
            for (int i = 0; i < REACH; ++i) m[i] = 0;
        }
#pragma unroll
        for (int o = -AHEAD; o <= BACK; ++o) {
            if (!N && (o < -a.ahead || o > a.back)) continue;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                sum[v] += (x[v] - m[DIVNORM_LEFT + v + o]) * h[DIVNORM_LEFT + v + o];
            }
        }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
        const int64_t here = at.at(a) + v;
        if (!at.has(a, v)) continue;
        put<T>(a, a.out, here, static_cast<const A *>(a.direct)[here] + sum[v]);
    }
}

} // namespace

#define WD_KERNELS_ROWS "ops/lrn/divnorm_vector_kernels.def"
#include "ops/kernels_device.inc"
