// SPDX-License-Identifier: Apache-2.0
//
// The sampler of planes whose pixels are neighbours, with little arithmetic: a block has its image and
// its channels to itself, and a thread some places, one after the other. Of the four pixels around a
// place those that lie outside of the image are replaced by their neighbour in the cell, and the two
// share its weight: so nothing is asked about an element, and all loads of some channels are under way
// at once.
#ifndef WD_OPS_SPATIAL_SAMPLER_PLANES_CUH
#define WD_OPS_SPATIAL_SAMPLER_PLANES_CUH

#include "gpu/device/opaque.cuh"
#include "gpu/device/warp.cuh"
#include "ops/spatial/sampler_vector.cuh"

namespace {

// alpha and beta in the accumulator's type.
template <class A> struct factors {
    A alpha, beta;
};

// The four pixels around a place: where they are in a plane, and what each counts of y.
template <class A> struct taps {
    int from[4];
    A weight[4];

    // Weights of a pair of pixels, and their numbers: `in` of an extent is at least one of them.
    static __device__ __forceinline__ void pair(int first, int extent, A beyond, int &low,
                                                int &high, A &low_weight, A &high_weight)
    {
        low = max(first, 0);
        high = min(first + 1, extent - 1);
        low_weight = 1 - beyond;
        high_weight = beyond;
        if (first < 0) low_weight = high_weight = beyond / 2;
        else if (first + 1 >= extent) low_weight = high_weight = (1 - beyond) / 2;
    }
    __device__ __forceinline__ void set(const sampler_vector_args &a, const sight<A> &k, A alpha)
    {
        int top, bottom, left, right;
        A up, down, before, behind;
        pair(k.row, a.height, k.down, top, bottom, up, down);
        pair(k.column, a.width, k.right, left, right, before, behind);
        from[0] = top * a.x.row + left * a.x.column;
        from[1] = top * a.x.row + right * a.x.column;
        from[2] = bottom * a.x.row + left * a.x.column;
        from[3] = bottom * a.x.row + right * a.x.column;
        weigh(alpha * up, alpha * down, before, behind);
    }
    // The same where all four are in the image, and neighbours in memory.
    __device__ __forceinline__ void set_near(const sampler_vector_args &a, const sight<A> &k,
                                             A alpha)
    {
        from[0] = k.row * a.x.row + k.column;
        from[2] = from[0] + a.x.row;
        weigh(alpha * (1 - k.down), alpha * k.down, 1 - k.right, k.right);
    }
    __device__ __forceinline__ void weigh(A up, A down, A before, A behind)
    {
        weight[0] = up * before;
        weight[1] = up * behind;
        weight[2] = down * before;
        weight[3] = down * behind;
    }
};

// alpha * value + beta * what is there, which counts if OLD.
template <class T, bool OLD, class A>
__device__ __forceinline__ void put_value(const sampler_vector_args &a, const factors<A> &f, T *to,
                                          A value)
{
    wd_run<T, 1> run;
    T narrow;
    value = a.scales ? f.alpha * value : (A)0;
    if (OLD) {
        run.load(to);
        value += f.beta * wd_widen(run.get(0));
    }
    wd_narrow(narrow, value);
    run.put(0, narrow);
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

// value + beta * what is there, which counts if OLD.
template <class T, bool OLD, class A>
__device__ __forceinline__ void put_sampled(const factors<A> &f, T *to, A value)
{
    if (OLD) value += f.beta * wd_widen(*to);
    wd_narrow(*to, value);
}

// U channels of a place.
template <class T, int U, bool NEAR, bool OLD, class A>
__device__ __forceinline__ void sample_some(const sampler_vector_args &a, const factors<A> &f,
                                            const taps<A> &t, const T *x, T *y)
{
    T pixel[U][4];
    const T *above = x + t.from[0], *below = x + t.from[2];
#pragma unroll
    for (int u = 0; u < U; ++u) {
        if (NEAR) {
            pixel[u][0] = above[0];
            pixel[u][1] = above[1];
            pixel[u][2] = below[0];
            pixel[u][3] = below[1];
            above += a.x.channel;
            below += a.x.channel;
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) pixel[u][i] = (x + u * a.x.channel)[t.from[i]];
        }
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const A value = t.weight[0] * wd_widen(pixel[u][0]) + t.weight[1] * wd_widen(pixel[u][1]) +
                        (t.weight[2] * wd_widen(pixel[u][2]) + t.weight[3] * wd_widen(pixel[u][3]));
        put_sampled<T, OLD>(f, y, value);
        y += a.y.channel;
    }
}

// Channels of a place that are under way together.
template <class T> constexpr int lean_channels = sizeof(T) == 8 ? 2 : 4;

// `left` channels of a place that sees something.
template <class T, bool NEAR, class A>
__device__ __forceinline__ void sample_channels(const sampler_vector_args &a, const factors<A> &f,
                                                const taps<A> &t, const T *x, T *y, int left)
{
    constexpr int U = lean_channels<T>;
    if (!a.blends) {
#pragma unroll 1
        for (; left >= U; left -= U) {
            sample_some<T, U, NEAR, false>(a, f, t, x, y);
            x += U * a.x.channel;
            y += U * a.y.channel;
        }
        if (U > 3 && left == 3) {
            sample_some<T, 3, NEAR, false>(a, f, t, x, y);
            return;
        }
    }
#pragma unroll 1
    for (; left > 0; --left) {
        if (a.blends) sample_some<T, 1, NEAR, true>(a, f, t, x, y);
        else sample_some<T, 1, NEAR, false>(a, f, t, x, y);
        x += a.x.channel;
        y += a.y.channel;
    }
}

// The same of any place, from channel 0 of these on.
template <class T, class A>
__device__ __forceinline__ void sample_any(const sampler_vector_args &a, const factors<A> &f,
                                           const sight<A> &k, const T *x, T *y, int left)
{
    if (k.seen && a.scales) {
        taps<A> t;
        t.set(a, k, f.alpha);
        sample_channels<T, false>(a, f, t, x, y, left);
        return;
    }
    const A nothing = a.scales ? f.alpha * k.nothing() : (A)0;
#pragma unroll 1
    for (; left > 0; --left) {
        if (a.blends) put_sampled<T, true>(f, y, nothing);
        else put_sampled<T, false>(f, y, nothing);
        y += a.y.channel;
    }
}

// Channels `first` .. `last` of a place.
template <class T>
__device__ __forceinline__ void sample_place(const sampler_vector_args &a,
                                             const factors<typename accumulator<T>::type> &f,
                                             const spot &at, int first, int last)
{
    sight<typename accumulator<T>::type> k;
    k.template look<T>(a, at.number(a));
    sample_any<T>(a, f, k,
                  static_cast<const T *>(a.x.data) + at.n * a.x.image + first * a.x.channel,
                  element_of<T>(a.y, at) + first * a.y.channel, last - first);
}

// A position of an image, if it is a place: what the grid says of it.
template <class T, class A>
__device__ __forceinline__ bool find_place(const sampler_vector_args &a, uint32_t position,
                                           const T *grid, spot &at, A &gx, A &gy)
{
    if (position >= a.count) return false;
    position_of(a, position, at);
    if (at.q >= a.columns) return false;
    sight<A>::template read<T>(a, grid + 2 * (at.p * a.columns + at.q), gx, gy);
    return true;
}

// Here by_position counts the blocks of an image, `count` its positions, `room` those of a thread, of
// which the next is asked for ahead. Where all places of a warp see four pixels that are neighbours,
// two addresses do.
template <class T> __device__ __forceinline__ void sample_lean(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    uint32_t n = blockIdx.x;
    const factors<A> f = {factor<A>(a.alpha, a.alpha32), factor<A>(a.beta, a.beta32)};
    uint32_t position = take_rest(n, a.by_position) * blockDim.x * (uint32_t)a.room + threadIdx.x;
    const int first = (int)take_rest(n, a.by_chunk) * a.chunk;
    const int left = min(a.chunk, a.channels - first);
    const T *const x =
        static_cast<const T *>(a.x.data) + wd_opaque(n * a.x.image + first * a.x.channel);
    T *const y = static_cast<T *>(a.y.data) + wd_opaque(n * a.y.image + first * a.y.channel);
    const T *const grid =
        static_cast<const T *>(a.grid) + 2 * wd_opaque((int64_t)n * (uint32_t)(a.rows * a.columns));
    const bool may = a.scales && a.x.column == 1;
    spot next;
    A gx = 0, gy = 0;
    wd_wait_for_previous();
    bool there = find_place<T>(a, position, grid, next, gx, gy);
#pragma unroll 1
    for (int i = 0; i < a.room; ++i) {
        const spot at = next;
        const bool is = there;
        sight<A> k;
        k.set(a, gx, gy);
        position += blockDim.x;
        there = i + 1 < a.room && find_place<T>(a, position, grid, next, gx, gy);
        const bool near = may && k.seen && k.row >= 0 && k.row + 1 < a.height && k.column >= 0 &&
                          k.column + 1 < a.width;
        const bool all_near = wd_ballot(near || !is) == ~0U;
        if (!is) continue;
        T *const to = y + ((int64_t)at.p * a.y.row + (int64_t)at.q * a.y.column);
        if (all_near) {
            taps<A> t;
            t.set_near(a, k, f.alpha);
            sample_channels<T, true>(a, f, t, x, to, left);
        } else {
            sample_any<T>(a, f, k, x, to, left);
        }
    }
}

} // namespace

#endif
