// SPDX-License-Identifier: Apache-2.0
//
// The sampler of planes whose pixels are neighbours, with little arithmetic: a block has its image and
// its channels to itself, and a thread two places. Of the four pixels around a place those that lie
// outside of the image are replaced by their neighbour in the cell, and the two share its weight: so
// nothing is asked about an element, and all loads of some channels are under way at once.
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
    __device__ __forceinline__ void find(const sampler_vector_args &a, const sight<A> &k)
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

// Places of a thread, and channels of each that are under way together.
constexpr int LEAN_PLACES = 2;
template <class T> constexpr int lean_channels = sizeof(T) == 8 ? 1 : 2;

// A thread's places: what they see, and where they stand.
template <class T> struct lean_places {
    typedef typename accumulator<T>::type A;
    taps<A> tap[LEAN_PLACES];
    A nothing[LEAN_PLACES]; // of those that see nothing; 1 of others
    T *y[LEAN_PLACES];      // null: there is no such place

    // U channels.
    template <int U, bool OLD>
    __device__ __forceinline__ void sample(const sampler_vector_args &a, const factors<A> &f,
                                           const T *x)
    {
        T pixel[U][LEAN_PLACES][4];
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int p = 0; p < LEAN_PLACES; ++p) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    pixel[u][p][i] = (x + u * a.x.channel)[tap[p].from[i]];
                }
            }
        }
#pragma unroll
        for (int p = 0; p < LEAN_PLACES; ++p) {
            if (!y[p]) continue;
            const taps<A> &t = tap[p];
#pragma unroll
            for (int u = 0; u < U; ++u) {
                const T *of = pixel[u][p];
                const A value = t.weight[0] * wd_widen(of[0]) + t.weight[1] * wd_widen(of[1]) +
                                (t.weight[2] * wd_widen(of[2]) + t.weight[3] * wd_widen(of[3]));
                put_value<T, OLD>(a, f, y[p], nothing[p] == 1 ? value : nothing[p]);
                y[p] += a.y.channel;
            }
        }
    }
};

// A block has places side by side, and each of its channels of all of them at once: what a line of the
// image has is then used by neighbours while it is in the first-level cache. Here by_position counts the
// blocks of an image, `count` its positions.
template <class T> __device__ __forceinline__ void sample_lean(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    constexpr int U = lean_channels<T>;
    uint32_t b = blockIdx.x;
    const factors<A> f = {(A)a.alpha, (A)a.beta};
    uint32_t position = take_rest(b, a.by_position) * SPATIAL_THREADS * LEAN_PLACES + threadIdx.x;
    const int first = (int)take_rest(b, a.by_chunk) * a.chunk;
    int left = min(a.chunk, a.channels - first);
    lean_places<T> places;
    wd_wait_for_previous();
#pragma unroll
    for (int p = 0; p < LEAN_PLACES; ++p) {
        sight<A> k;
        spot at;
        at.n = b;
        k.row = k.column = 0;
        k.down = k.right = 0;
        k.seen = true;
        places.y[p] = nullptr;
        if (position < a.count) {
            position_of(a, position, at);
            if (at.q < a.columns) {
                k.template look<T>(a, at.number(a));
                places.y[p] = element_of<T>(a.y, at) + first * a.y.channel;
            }
        }
        places.tap[p].find(a, k);
        places.nothing[p] = k.seen ? (A)1 : k.nothing();
        position += SPATIAL_THREADS;
    }
    const T *x = static_cast<const T *>(a.x.data) + b * a.x.image + first * a.x.channel;
    if (a.blends) {
#pragma unroll 1
        for (; left > 0; --left) {
            places.template sample<1, true>(a, f, x);
            x += a.x.channel;
        }
        return;
    }
#pragma unroll 1
    for (; left >= U; left -= U) {
        places.template sample<U, false>(a, f, x);
        x += U * a.x.channel;
    }
    if (left > 0) places.template sample<1, false>(a, f, x);
}

} // namespace

#endif
