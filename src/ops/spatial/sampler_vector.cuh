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

// The element of the image at the corner of a cell, in channel 0; it may lie outside.
template <class T, class A>
__device__ __forceinline__ const T *corner_of(const sampler_vector_args &a, uint32_t n,
                                              const sight<A> &k)
{
    return static_cast<const T *>(a.x.data) + n * a.x.image + (int64_t)k.row * a.x.row +
           (int64_t)k.column * a.x.column;
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

// Channels first; tiles of 4 x 4 places see much of the same.
template <class T, int V>
__device__ __forceinline__ void sample_pixels(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    spot at;
    sight<A> k;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const int c = (int)take_rest(item, a.by_run) * V;
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
    k.template look<T>(a, at.number(a));
    const A w00 = (1 - k.down) * (1 - k.right), w01 = (1 - k.down) * k.right,
            w10 = k.down * (1 - k.right), w11 = k.down * k.right;
    const A nothing = k.nothing();
    const T *x = corner_of<T>(a, at.n, k) + c;
    wd_run<T, V> x00, x01, x10, x11;
    A value[V];
    run_if(k.has(a, 0, 0), x, x00);
    run_if(k.has(a, 0, 1), x + a.x.column, x01);
    run_if(k.has(a, 1, 0), x + a.x.row, x10);
    run_if(k.has(a, 1, 1), x + a.x.row + a.x.column, x11);
#pragma unroll
    for (int v = 0; v < V; ++v) {
        value[v] = k.seen ? w00 * wd_widen(x00.get(v)) + w01 * wd_widen(x01.get(v)) +
                                (w10 * wd_widen(x10.get(v)) + w11 * wd_widen(x11.get(v)))
                          : nothing;
    }
    put<T, V>(a, element_of<T>(a.y, at) + c, value);
}

} // namespace

#endif
