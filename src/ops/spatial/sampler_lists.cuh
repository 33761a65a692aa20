// SPDX-License-Identifier: Apache-2.0
//
// The gradient of the image, without atomics on it: places of the grid are listed by the cell that they
// look into, and every element collects from the four cells around it. Cells are counted and given parts
// of one list as they come; only numbers of places are counted so, and where a part lies has no influence.
// Within a part every place then finds its rank among the others, so that sums are in one order: by cell,
// then by place, as in the definition.
#ifndef WD_OPS_SPATIAL_SAMPLER_LISTS_CUH
#define WD_OPS_SPATIAL_SAMPLER_LISTS_CUH

#include "ops/spatial/sampler_vector.cuh"

namespace {

// A place of the images that are listed together, and its cell among theirs.
struct listed {
    uint32_t place; // of its image
    uint32_t cell;
    template <class T>
    __device__ __forceinline__ bool look(const sampler_vector_args &a, uint32_t item)
    {
        uint32_t image = item;
        sight<typename accumulator<T>::type> k;
        if (item >= a.count) return false;
        place = take_rest(image, a.by_position);
        k.template look<T>(a, (int64_t)(a.first_image + image) * a.by_position.divisor + place);
        cell = image * a.cells + (uint32_t)((k.row + 1) * (a.width + 1) + k.column + 1);
        return k.seen;
    }
};

__device__ __forceinline__ uint32_t own_item()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

template <class T>
__device__ __forceinline__ void count_place(const sampler_vector_args &a, uint32_t item)
{
    listed at = {0, 0};
    if (at.look<T>(a, item)) atomicAdd(a.counts + at.cell, 1u);
}

template <class T>
__device__ __forceinline__ void fill_place(const sampler_vector_args &a, uint32_t item)
{
    listed at = {0, 0};
    if (at.look<T>(a, item)) a.list[atomicAdd(a.ends + at.cell, 1u)] = at.place;
}

template <class T>
__device__ __forceinline__ void order_place(const sampler_vector_args &a, uint32_t item)
{
    listed at = {0, 0};
    if (!at.look<T>(a, item)) return;
    const uint32_t end = __ldcg(a.ends + at.cell);
    const uint32_t begin = end - __ldcg(a.counts + at.cell);
    uint32_t rank = begin;
#pragma unroll 4
    for (uint32_t i = begin; i < end; ++i) rank += __ldcg(a.list + i) < at.place;
    a.sorted[rank] = at.place;
}

template <class T> __device__ __forceinline__ void list_count(const sampler_vector_args &a)
{
    wd_wait_for_previous();
    count_place<T>(a, own_item());
}

// The sum of what the threads up to this one have.
__device__ __forceinline__ uint32_t sum_upto(uint32_t *shared, uint32_t own)
{
    const uint32_t t = threadIdx.x;
    uint32_t upto = own;
    shared[t] = own;
    for (uint32_t step = 1; step < SPATIAL_THREADS; step *= 2) {
        __syncthreads();
        const uint32_t before = t >= step ? shared[t - step] : 0;
        __syncthreads();
        upto += before;
        shared[t] = upto;
    }
    return upto;
}

// A block has SPATIAL_THREADS cells, and takes what they need from the list at once.
__device__ __forceinline__ void list_share(const sampler_vector_args &a)
{
    __shared__ uint32_t shared[SPATIAL_THREADS];
    __shared__ uint32_t first;
    const uint32_t t = threadIdx.x;
    const uint32_t cell = blockIdx.x * SPATIAL_THREADS + t;
    wd_wait_for_previous();
    const uint32_t own = cell < a.all_cells ? a.counts[cell] : 0;
    const uint32_t upto = sum_upto(shared, own);
    if (t == SPATIAL_THREADS - 1) first = atomicAdd(a.cursor, upto);
    __syncthreads();
    if (cell < a.all_cells) a.ends[cell] = first + upto - own; // still its beginning
}

template <class T> __device__ __forceinline__ void list_fill(const sampler_vector_args &a)
{
    wd_wait_for_previous();
    fill_place<T>(a, own_item());
}

template <class T> __device__ __forceinline__ void list_order(const sampler_vector_args &a)
{
    wd_wait_for_previous();
    order_place<T>(a, own_item());
}

// All of that by one block an image, where images are small: no more launches than needed.
template <class T> __device__ __forceinline__ void list_image(const sampler_vector_args &a)
{
    __shared__ uint32_t shared[SPATIAL_THREADS];
    const uint32_t t = threadIdx.x;
    const uint32_t places = a.by_position.divisor;
    const uint32_t place = blockIdx.x * places, cell = blockIdx.x * a.cells;
    const uint32_t each = (a.cells + SPATIAL_THREADS - 1) / SPATIAL_THREADS;
    const uint32_t from = min(t * each, a.cells), to = min(from + each, a.cells);
    uint32_t own = 0;
    wd_wait_for_previous();
    for (uint32_t i = t; i < a.cells; i += SPATIAL_THREADS) a.counts[cell + i] = 0;
    __syncthreads();
    for (uint32_t i = t; i < places; i += SPATIAL_THREADS) count_place<T>(a, place + i);
    __syncthreads();
#pragma unroll 8
    for (uint32_t i = from; i < to; ++i) own += __ldcg(a.counts + cell + i);
    uint32_t at = place + sum_upto(shared, own) - own;
#pragma unroll 8
    for (uint32_t i = from; i < to; ++i) {
        a.ends[cell + i] = at;
        at += __ldcg(a.counts + cell + i);
    }
    __syncthreads();
    for (uint32_t i = t; i < places; i += SPATIAL_THREADS) fill_place<T>(a, place + i);
    __syncthreads();
    for (uint32_t i = t; i < places; i += SPATIAL_THREADS) order_place<T>(a, place + i);
}

// How much of a place goes to the element at row h, column w.
template <class A> __device__ __forceinline__ A share_of(const sight<A> &k, int h, int w)
{
    return (k.row == h ? 1 - k.down : k.down) * (k.column == w ? 1 - k.right : k.right);
}

// Calls each(weight, row, column) for the places that see the element.
template <class T, class F>
__device__ __forceinline__ void each_seeing(const sampler_vector_args &a, uint32_t image, int h,
                                            int w, F each)
{
    typedef typename accumulator<T>::type A;
    const uint32_t first = image * a.cells + (uint32_t)(h * (a.width + 1) + w);
#pragma unroll 1
    for (int corner = 0; corner < 4; ++corner) {
        const uint32_t cell = first + corner / 2 * (uint32_t)(a.width + 1) + corner % 2;
        const uint32_t end = a.ends[cell];
#pragma unroll 1
        for (uint32_t i = end - a.counts[cell]; i < end; ++i) {
            const uint32_t place = a.sorted[i];
            uint32_t p = place;
            const int q = (int)take_rest(p, a.by_column);
            sight<A> k;
            k.template look<T>(a, (int64_t)(a.first_image + image) * a.by_position.divisor + place);
            each(share_of(k, h, w), (int)p, q);
        }
    }
}

// U channels of an element of dx.
template <class T, int U>
__device__ __forceinline__ void gather_planes(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    uint32_t image = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (image >= a.count) return;
    const int w = (int)take_rest(image, a.by_width);
    const int h = (int)take_rest(image, a.by_height);
    const int first = (int)take_rest(image, a.by_chunk) * U;
    const int64_t n = a.first_image + image;
    const T *dy = static_cast<const T *>(a.y.data) + n * a.y.image + first * a.y.channel;
    T *dx = static_cast<T *>(a.dx.data) + n * a.dx.image + first * a.dx.channel +
            (int64_t)h * a.dx.row + (int64_t)w * a.dx.column;
    A sums[U];
#pragma unroll
    for (int u = 0; u < U; ++u) sums[u] = 0;
    each_seeing<T>(a, image, h, w, [&](A share, int p, int q) {
        const T *from = dy + (int64_t)p * a.y.row + (int64_t)q * a.y.column;
#pragma unroll
        for (int u = 0; u < U; ++u) {
            sums[u] += share * element_if(first + u < a.channels, from + u * a.y.channel);
        }
    });
#pragma unroll
    for (int u = 0; u < U; ++u) {
        if (first + u < a.channels) put<T, 1>(a, dx + u * a.dx.channel, sums + u);
    }
}

// A run of channels of an element of dx.
template <class T, int V>
__device__ __forceinline__ void gather_pixels(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    uint32_t image = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (image >= a.count) return;
    const int c = (int)take_rest(image, a.by_run) * V;
    const int w = (int)take_rest(image, a.by_width);
    const int h = (int)take_rest(image, a.by_height);
    const int64_t n = a.first_image + image;
    const T *dy = static_cast<const T *>(a.y.data) + n * a.y.image + c;
    T *dx = static_cast<T *>(a.dx.data) + n * a.dx.image + (int64_t)h * a.dx.row +
            (int64_t)w * a.dx.column + c;
    A sums[V];
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] = 0;
    each_seeing<T>(a, image, h, w, [&](A share, int p, int q) {
        wd_run<T, V> run;
        run.load(dy + (int64_t)p * a.y.row + (int64_t)q * a.y.column);
#pragma unroll
        for (int v = 0; v < V; ++v) sums[v] += share * wd_widen(run.get(v));
    });
    put<T, V>(a, dx, sums);
}

} // namespace

#endif
