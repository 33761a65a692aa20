// SPDX-License-Identifier: Apache-2.0
//
// Boxes of packed tensors in shared memory at any alignment, by lines of bytes as pooling_band_args.h
// has them, and sums of a box of dx, which go out by 16 bytes in the same way.
#ifndef WD_OPS_POOLING_BAND_CUH
#define WD_OPS_POOLING_BAND_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/shared.cuh"
#include "ops/pooling/pooling_band_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

__device__ __forceinline__ unsigned char *band_at(uint32_t bytes)
{
    return wd_dynamic_shared<unsigned char>() + bytes;
}

// What a box has of an axis: elements low .. low+count-1.
struct reach {
    int low;
    int count;
};

// Of the windows over elements first .. last of the image.
__device__ __forceinline__ reach windows_over(const pool_band_axis &x, int first, int last)
{
    const int before = first + x.pad - x.size; // a window from here or earlier ends too soon
    const int from = last + x.pad;
    reach r;
    r.low = before < 0 ? 0 : (int)wd_fastdiv_quotient((uint32_t)before, x.by_stride) + 1;
    const int end = from < 0 ? 0 : (int)wd_fastdiv_quotient((uint32_t)from, x.by_stride) + 1;
    r.count = max(min(end, x.windows) - r.low, 0);
    return r;
}

// The elements of the image that windows reach over.
__device__ __forceinline__ reach image_under(const pool_band_axis &x, const reach &windows)
{
    const int start = windows.low * x.stride - x.pad;
    reach r;
    r.low = max(start, 0);
    const int end = min(start + (windows.count - 1) * x.stride + x.size, x.image);
    r.count = windows.count > 0 ? max(end - r.low, 0) : 0;
    return r;
}

__device__ __forceinline__ void all_of(const pool_band_part &part, const int *extent, reach *on)
{
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        if (2 - i < (int)part.whole) on[i].low = 0, on[i].count = extent[i];
    }
}

// A part of a tensor: where its first element lies in memory, and what it has.
struct placed {
    size_t first; // element of the tensor
    uint32_t images;
    reach on[3];
    int extent[3]; // of the tensor
};

__device__ __forceinline__ placed place_of(uint32_t outer, uint32_t images, const reach *on, int d,
                                           int h, int w, uint32_t inner)
{
    placed p;
    p.first = ((((size_t)outer * d + on[0].low) * h + on[1].low) * w + on[2].low) * inner;
    p.images = images;
    p.extent[0] = d, p.extent[1] = h, p.extent[2] = w;
#pragma unroll
    for (int i = 0; i < 3; ++i) p.on[i] = on[i];
    return p;
}

// Calls take(line, offset, length) for 16 bytes of each line, `length` elements long: where the line
// begins among the pitches and in the tensor, from the box's first element. By all threads.
template <class F>
__device__ __forceinline__ void each_chunk(const pool_band_part &part, const placed &p,
                                           uint32_t inner, F take)
{
    const uint32_t chunks = part.by_chunks.divisor;
    const uint32_t rows = part.whole >= 1 ? 1 : part.by_lines.divisor;
    const uint32_t planes = part.whole >= 2 ? 1 : part.by_planes.divisor;
    const uint32_t images = part.whole >= 3 ? 1 : p.images;
    uint32_t length = (uint32_t)p.on[2].count * inner;
    if (part.whole >= 1) length *= (uint32_t)p.on[1].count;
    if (part.whole >= 2) length *= (uint32_t)p.on[0].count;
    if (part.whole >= 3) length *= p.images;
    const uint32_t items = images * planes * rows * chunks;
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t line = item;
        const uint32_t chunk = wd_take_rest(line, part.by_chunks);
        uint32_t h = 0, d = 0;
        if (part.whole < 1) h = wd_take_rest(line, part.by_lines);
        if (part.whole < 2) d = wd_take_rest(line, part.by_planes);
        if (h >= (uint32_t)p.on[1].count || d >= (uint32_t)p.on[0].count) continue;
        const uint32_t at = line * part.pitch[0] + d * part.pitch[1] + h * part.pitch[2];
        const size_t row = ((size_t)line * p.extent[0] + d) * p.extent[1] + h;
        take(at, row * p.extent[2] * inner, length, chunk);
    }
}

// Where the first element of a part lies in shared memory.
template <class T>
__device__ __forceinline__ uint32_t first_at(const pool_band_part &part, const void *tensor,
                                             const placed &p)
{
    return part.at + (uint32_t)(((uintptr_t)tensor + p.first * sizeof(T)) % 16);
}

template <class T>
__device__ __forceinline__ void stage_band(const pool_band_part &part, const void *tensor,
                                           const placed &p, uint32_t inner)
{
    const uintptr_t begin = (uintptr_t)tensor, end = begin + (size_t)part.total * sizeof(T);
    const uint32_t to = first_at<T>(part, tensor, p);
    each_chunk(part, p, inner, [&](uint32_t at, size_t offset, uint32_t length, uint32_t chunk) {
        const uintptr_t first = begin + (p.first + offset) * sizeof(T);
        const uintptr_t source = first - first % 16 + 16 * (uintptr_t)chunk;
        if (source >= first + (size_t)length * sizeof(T)) return;
        unsigned char *into = band_at((to + at) / 16 * 16 + 16 * chunk);
        if (source >= begin && source + 16 <= end) {
            wd_copy_async<16, false>(into, reinterpret_cast<const void *>(source));
            return;
        }
        // what lies around the tensor is not read
        for (uint32_t i = 0; i < 16; i += (uint32_t)sizeof(T)) {
            if (source + i < begin || source + i >= end) continue;
            *reinterpret_cast<T *>(into + i) = *reinterpret_cast<const T *>(source + i);
        }
    });
}

// Sums go out, each times `factor`; `part` counts in sums.
template <class T>
__device__ __forceinline__ void put_band(const pool_band_args &a, const placed &p)
{
    using A = acc<T>;
    constexpr uint32_t V = 16 / (uint32_t)sizeof(T);
    const pool_band_part &part = a.to;
    const size_t skew = (uintptr_t)a.out % 16 / sizeof(T);
    const uint32_t phase = (uint32_t)((skew + p.first) % V);
    const A *sums = reinterpret_cast<const A *>(band_at(part.at));
    each_chunk(part, p, a.inner, [&](uint32_t at, size_t offset, uint32_t length, uint32_t chunk) {
        // of the line, the elements from `from` on; the line begins within a run
        const uint32_t within = (phase + at) % V;
        const int from = (int)(chunk * V) - (int)within;
        if (from >= (int)length) return;
        const A *of = sums + (int)(phase + at) + from;
        const size_t to = p.first + offset;
        if (from >= 0 && from + (int)V <= (int)length) {
            wd_run<A, V> run;
            A value[V];
            run.load(of);
#pragma unroll
            for (int i = 0; i < (int)V; ++i) value[i] = run.get(i);
            wd_put_run<T, V>(a, to + from, value);
            return;
        }
        for (int i = 0; i < (int)V; ++i) {
            if (from + i < 0 || from + i >= (int)length) continue;
            wd_put_run<T, 1>(a, to + from + i, of + i);
        }
    });
}

} // namespace

#endif
