// SPDX-License-Identifier: Apache-2.0
//
// The sampler of planes whose pixels are neighbours, with little arithmetic: a block has its image and
// its channels to itself, and a thread some places, one after the other. Of the four pixels around a
// place those that lie outside of the image are replaced by their neighbour in the cell, and the two
// share its weight: so nothing is asked about an element, and all loads of some channels are under way
// at once.
#ifndef WD_OPS_SPATIAL_SAMPLER_PLANES_CUH
#define WD_OPS_SPATIAL_SAMPLER_PLANES_CUH

#include "ops/spatial/sampler_vector.cuh"

namespace {

// The four pixels around a place: where they are in a plane, and what each counts.
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
    __device__ __forceinline__ taps(const sampler_vector_args &a, const sight<A> &k)
    {
        int top, bottom, left, right;
        A up, down, before, behind;
        pair(k.row, a.height, k.down, top, bottom, up, down);
        pair(k.column, a.width, k.right, left, right, before, behind);
        from[0] = top * a.x.row + left * a.x.column;
        from[1] = top * a.x.row + right * a.x.column;
        from[2] = bottom * a.x.row + left * a.x.column;
        from[3] = bottom * a.x.row + right * a.x.column;
        weight[0] = up * before;
        weight[1] = up * behind;
        weight[2] = down * before;
        weight[3] = down * behind;
    }
};

// alpha and beta in the accumulator's type.
template <class A> struct factors {
    A alpha, beta;
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

// U channels of a place.
template <class T, int U, bool OLD, class A>
__device__ __forceinline__ void sample_some(const sampler_vector_args &a, const factors<A> &f,
                                            const taps<A> &t, const sight<A> &k, const T *x, T *y)
{
    T pixel[U][4];
#pragma unroll
    for (int u = 0; u < U; ++u) {
#pragma unroll
        for (int i = 0; i < 4; ++i) pixel[u][i] = (x + u * a.x.channel)[t.from[i]];
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const A value = t.weight[0] * wd_widen(pixel[u][0]) + t.weight[1] * wd_widen(pixel[u][1]) +
                        (t.weight[2] * wd_widen(pixel[u][2]) + t.weight[3] * wd_widen(pixel[u][3]));
        put_value<T, OLD>(a, f, y + u * a.y.channel, k.seen ? value : k.nothing());
    }
}

// Channels of a place that are under way together.
template <class T> constexpr int lean_channels = sizeof(T) == 8 ? 2 : 4;

// Channels `first` .. `last` of a place.
template <class T>
__device__ __forceinline__ void sample_place(const sampler_vector_args &a,
                                             const factors<typename accumulator<T>::type> &f,
                                             const spot &at, int first, int last)
{
    typedef typename accumulator<T>::type A;
    constexpr int U = lean_channels<T>;
    sight<A> k;
    k.template look<T>(a, at.number(a));
    const taps<A> t(a, k);
    const T *x = static_cast<const T *>(a.x.data) + at.n * a.x.image + first * a.x.channel;
    T *y = element_of<T>(a.y, at) + first * a.y.channel;
    int left = last - first;
    if (!a.blends) {
#pragma unroll 1
        for (; left >= U; left -= U) {
            sample_some<T, U, false>(a, f, t, k, x, y);
            x += U * a.x.channel;
            y += U * a.y.channel;
        }
        if (U > 3 && left == 3) {
            sample_some<T, 3, false>(a, f, t, k, x, y);
            return;
        }
    }
#pragma unroll 1
    for (; left > 0; --left) {
        if (a.blends) sample_some<T, 1, true>(a, f, t, k, x, y);
        else sample_some<T, 1, false>(a, f, t, k, x, y);
        x += a.x.channel;
        y += a.y.channel;
    }
}

// Here by_position counts the blocks of an image, `count` its positions, `room` those of a thread.
template <class T> __device__ __forceinline__ void sample_lean(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    uint32_t b = blockIdx.x;
    const factors<A> f = {(A)a.alpha, (A)a.beta};
    spot at;
    uint32_t position =
        take_rest(b, a.by_position) * SPATIAL_THREADS * (uint32_t)a.room + threadIdx.x;
    const int first = (int)take_rest(b, a.by_chunk) * a.chunk;
    const int last = min(first + a.chunk, a.channels);
    at.n = b;
    wd_wait_for_previous();
#pragma unroll 1
    for (int i = 0; i < a.room && position < a.count; ++i, position += SPATIAL_THREADS) {
        position_of(a, position, at);
        if (at.q < a.columns) sample_place<T>(a, f, at, first, last);
    }
}

} // namespace

#endif
