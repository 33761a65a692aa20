// SPDX-License-Identifier: Apache-2.0
//
// The sampler, without shared memory. A thread looks once for many channels: one after the
// other where pixels are neighbours, or a run of them where channels are.
#ifndef WD_OPS_SPATIAL_SAMPLER_VECTOR_CUH
#define WD_OPS_SPATIAL_SAMPLER_VECTOR_CUH

#include "ops/spatial/spatial_vector.cuh"

namespace {

// A place of the grid: row p, column q of image n.
struct spot {
    uint32_t n;
    int p, q;
    __device__ __forceinline__ int64_t number(const sampler_vector_args &a) const
    {
        return ((int64_t)n * a.rows + p) * a.columns + q;
    }
};

// By strips a warp has neighbours of a row, and the block rows below each other.
__device__ __forceinline__ void position_of(const sampler_vector_args &a, uint32_t position,
                                            spot &at)
{
    if (a.tiled) {
        uint32_t strip = position / SPATIAL_STRIP;
        at.p = (int)take_rest(strip, a.by_row);
        at.q = (int)(strip * SPATIAL_STRIP + position % SPATIAL_STRIP);
    } else {
        at.q = (int)take_rest(position, a.by_column);
        at.p = (int)position;
    }
}

template <class T> __device__ __forceinline__ T *element_of(const sampler_image &y, const spot &at)
{
    return static_cast<T *>(y.data) + at.n * y.image + (int64_t)at.p * y.row +
           (int64_t)at.q * y.column;
}

template <class T>
__device__ __forceinline__ typename accumulator<T>::type element_if(bool in, const T *at)
{
    return in ? wd_widen(*at) : (typename accumulator<T>::type)0;
}

template <class T, int V>
__device__ __forceinline__ void run_if(bool in, const T *at, wd_run<T, V> &run)
{
    if (in) {
        run.load(at);
        return;
    }
    T zero;
    wd_narrow(zero, (typename accumulator<T>::type)0);
#pragma unroll
    for (int v = 0; v < V; ++v) run.put(v, zero);
}

// The pixels around a place: where the upper left one is that counts, how far the next are, and what each counts. One that
// lies outside of the image is replaced by its neighbour in the cell, and the two share its weight.
template <class A> struct pixels_around {
    int row, column;
    int64_t down, right; // elements to the pixels below and to the right
    A weight[2][2];

    // Of two pixels, of which an extent has at least one: what each counts; `step` is 0 where both are one pixel.
    static __device__ __forceinline__ void pair(int first, int extent, A beyond, int &low,
                                                int64_t &step, A &low_weight, A &high_weight)
    {
        low = first;
        low_weight = 1 - beyond;
        high_weight = beyond;
        if ((uint32_t)first < (uint32_t)(extent - 1)) return;
        low_weight = high_weight = (first < 0 ? beyond : 1 - beyond) / 2;
        low = max(first, 0);
        step = 0;
    }
    __device__ __forceinline__ pixels_around(const sampler_vector_args &a, const sight<A> &k,
                                             A alpha)
        : down(a.x.row), right(a.x.column)
    {
        A up, below, before, behind;
        pair(k.row, a.height, k.down, row, down, up, below);
        pair(k.column, a.width, k.right, column, right, before, behind);
        up *= alpha;
        below *= alpha;
        weight[0][0] = up * before;
        weight[0][1] = up * behind;
        weight[1][0] = below * before;
        weight[1][1] = below * behind;
    }
};

// Runs of a place that sees something, `chunk` elements apart.
template <class T, int V, bool OLD, class A>
__device__ __forceinline__ void sample_runs(const sampler_vector_args &a,
                                            const pixels_around<A> &around, const T *x, T *y)
{
    int left = a.room;
#pragma unroll 1
    do {
        wd_run<T, V> x00, x01, x10, x11;
        A value[V];
        x00.load(x);
        x01.load(x + around.right);
        x10.load(x + around.down);
        x11.load(x + around.down + around.right);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            value[v] = around.weight[0][0] * wd_widen(x00.get(v)) +
                       around.weight[0][1] * wd_widen(x01.get(v)) +
                       around.weight[1][0] * wd_widen(x10.get(v)) +
                       around.weight[1][1] * wd_widen(x11.get(v));
        }
        put_run<T, V, OLD>(a, y, value);
        x += (uint32_t)a.chunk;
        y += (uint32_t)a.chunk;
    } while (--left > 0);
}

// The same of a place that sees nothing.
template <class T, int V, bool OLD, class A>
__device__ __forceinline__ void put_nothing(const sampler_vector_args &a, A nothing, T *y)
{
    A value[V];
#pragma unroll
    for (int v = 0; v < V; ++v) value[v] = nothing;
#pragma unroll 1
    for (int i = 0; i < a.room; ++i) {
        put_run<T, V, OLD>(a, y, value);
        y += (uint32_t)a.chunk;
    }
}

// Channels first; square tiles of places see much of the same. A thread looks once for `room` runs of a place.
template <class T, int V>
__device__ __forceinline__ void sample_pixels(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    spot at;
    sight<A> k;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const uint32_t c = take_rest(item, a.by_run) * V;
    if (a.tiled) { // by_column and by_row count tiles
        const int in_tile = (int)(item % (SPATIAL_TILE * SPATIAL_TILE));
        item /= SPATIAL_TILE * SPATIAL_TILE;
        at.q = (int)take_rest(item, a.by_column) * SPATIAL_TILE + in_tile % SPATIAL_TILE;
        at.p = (int)take_rest(item, a.by_row) * SPATIAL_TILE + in_tile / SPATIAL_TILE;
    } else {
        at.q = (int)take_rest(item, a.by_column);
        at.p = (int)take_rest(item, a.by_row);
    }
    at.n = item;
    const uint32_t place =
        (at.n * (uint32_t)a.rows + (uint32_t)at.p) * (uint32_t)a.columns + (uint32_t)at.q;
    A gx, gy;
    sight<A>::template read<T>(a, static_cast<const T *>(a.grid) + 2 * place, gx, gy);
    k.set(a, gx, gy);
    const A alpha = factor<A>(a.alpha, a.alpha32);
    T *y = element_of<T>(a.y, at) + c;
    if (!k.seen || !a.scales) {
        const A nothing = a.scales ? alpha * k.nothing() : (A)0;
        if (a.blends) put_nothing<T, V, true>(a, nothing, y);
        else put_nothing<T, V, false>(a, nothing, y);
        return;
    }
    const pixels_around<A> around(a, k, alpha);
    const T *x = static_cast<const T *>(a.x.data) + at.n * a.x.image +
                 (int64_t)around.row * a.x.row + (int64_t)around.column * a.x.column + c;
    if (a.blends) sample_runs<T, V, true>(a, around, x, y);
    else sample_runs<T, V, false>(a, around, x, y);
}

} // namespace

#endif
