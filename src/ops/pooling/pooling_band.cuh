// SPDX-License-Identifier: Apache-2.0
//
// Boxes of packed tensors in shared memory at any alignment, by lines of bytes as pooling_band_args.h
// has them, and sums of a box of dx, which go out by 16 bytes in the same way.
#ifndef WD_OPS_POOLING_BAND_CUH
#define WD_OPS_POOLING_BAND_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/packed.cuh"
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
__device__ __forceinline__ reach image_under(const pool_band_axis &x, const reach &windows,
                                             int stride, int size)
{
    const int start = windows.low * stride - x.pad;
    reach r;
    r.low = max(start, 0);
    const int end = min(start + (windows.count - 1) * stride + size, x.image);
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
    uint32_t first; // element of the tensor, which has less than 2^31
    uint32_t images;
    reach on[3];
    int extent[3]; // of the tensor
};

__device__ __forceinline__ placed place_of(uint32_t outer, uint32_t images, const reach *on, int d,
                                           int h, int w, uint32_t inner)
{
    placed p;
    const uint32_t row =
        (outer * (uint32_t)d + (uint32_t)on[0].low) * (uint32_t)h + (uint32_t)on[1].low;
    p.first = (row * (uint32_t)w + (uint32_t)on[2].low) * inner;
    p.images = images;
    p.extent[0] = d, p.extent[1] = h, p.extent[2] = w;
#pragma unroll
    for (int i = 0; i < 3; ++i) p.on[i] = on[i];
    return p;
}

// Calls take(at, offset, length, lane, lanes) for each line, `length` elements long: where it begins
// among the pitches, and in the tensor, from the box's first element; lanes of the block share it.
template <class F>
__device__ __forceinline__ void each_line(const pool_band_part &part, const placed &p,
                                          uint32_t inner, F take)
{
    const uint32_t rows = part.whole >= 1 ? 1 : (uint32_t)p.on[1].count;
    const uint32_t planes = part.whole >= 2 ? 1 : (uint32_t)p.on[0].count;
    const uint32_t images = part.whole >= 3 ? 1 : p.images;
    uint32_t length = (uint32_t)p.on[2].count * inner;
    if (part.whole >= 1) length *= (uint32_t)p.on[1].count;
    if (part.whole >= 2) length *= (uint32_t)p.on[0].count;
    if (part.whole >= 3) length *= p.images;
    if (length == 0) return;
    // all threads share a line that is the only one; else lines are dealt out over all planes
    const bool one = images * planes * rows == 1;
    const uint32_t lanes = one ? blockDim.x : 1u << part.lanes;
    const uint32_t at_once = one ? 1 : blockDim.x >> part.lanes;
    const uint32_t lane = one ? threadIdx.x : threadIdx.x & (lanes - 1);
    const uint32_t row = (uint32_t)p.extent[2] * inner;
    uint32_t h = one ? 0 : threadIdx.x >> part.lanes;
    for (uint32_t n = 0; n < images; ++n) {
        for (uint32_t d = 0; d < planes; ++d) {
            uint32_t at = n * part.pitch[0] + d * part.pitch[1] + h * part.pitch[2];
            uint32_t offset = ((n * (uint32_t)p.extent[0] + d) * (uint32_t)p.extent[1] + h) * row;
#pragma unroll 1
            for (; h < rows; h += at_once) {
                take(at, offset, length, lane, lanes);
                at += at_once * part.pitch[2];
                offset += at_once * row;
            }
            h -= rows;
        }
    }
}

// Where the first element of a part lies in shared memory.
template <class T>
__device__ __forceinline__ uint32_t first_at(const pool_band_part &part, const void *tensor,
                                             const placed &p)
{
    return part.at + ((uint32_t)(uintptr_t)tensor + p.first * (uint32_t)sizeof(T)) % 16;
}

// A lane's chunks of a line, from the first on: every LANES, or `lanes` if that is 0.
template <uint32_t LANES>
__device__ __forceinline__ void copy_line(unsigned char *into, const unsigned char *source,
                                          uint32_t chunk, uint32_t end, uint32_t lanes)
{
    const uint32_t stride = LANES > 0 ? LANES : lanes;
    into += 16 * chunk;
    source += 16 * chunk;
#pragma unroll(LANES > 0 ? 4 : 1)
    for (; chunk < end; chunk += stride) {
        wd_copy_async<16, false>(into, source);
        into += 16 * stride;
        source += 16 * stride;
    }
}

// EDGES: lines may share 16 bytes with what lies around the tensor, which is not read.
template <class T, bool EDGES>
__device__ __forceinline__ void stage_lines(const pool_band_part &part, const void *tensor,
                                            const placed &p, uint32_t inner)
{
    const unsigned char *begin = static_cast<const unsigned char *>(tensor);
    const uint32_t to = first_at<T>(part, tensor, p);
    each_line(part, p, inner,
              [&](uint32_t at, uint32_t offset, uint32_t length, uint32_t lane, uint32_t lanes) {
                  const uint32_t element = p.first + offset;
                  const unsigned char *first = begin + (size_t)element * sizeof(T);
                  const uint32_t skew = (uint32_t)(uintptr_t)first % 16;
                  const uint32_t chunks = (skew + length * (uint32_t)sizeof(T) + 15) / 16;
                  const unsigned char *source = first - skew;
                  unsigned char *into = band_at((to + at) & ~15u);
                  if (!EDGES) {
                      if (lanes == 8) copy_line<8>(into, source, lane, chunks, 8);
                      else copy_line<0>(into, source, lane, chunks, lanes);
                      return;
                  }
                  const bool low = element < skew / (uint32_t)sizeof(T);
                  const uint32_t after = (16 * chunks - skew) / (uint32_t)sizeof(T) - length;
                  const uint32_t high = chunks - (after > part.total - element - length);
                  copy_line<0>(into, source, low && lane == 0 ? lanes : lane, high, lanes);
                  if (!low && high == chunks) return;
#pragma unroll 1
                  for (uint32_t i = lane; i < length; i += lanes) {
                      const uint32_t byte = skew + i * (uint32_t)sizeof(T), chunk = byte / 16;
                      if (!(low && chunk == 0) && chunk < high) continue;
                      *reinterpret_cast<T *>(into + byte) =
                          *reinterpret_cast<const T *>(source + byte);
                  }
              });
}

template <class T>
__device__ __forceinline__ void stage_band(const pool_band_part &part, const void *tensor,
                                           const placed &p, uint32_t inner)
{
    constexpr uint32_t V = 16 / (uint32_t)sizeof(T);
    // the box's last row, if it has any
    const uint32_t row = ((p.images - 1) * (uint32_t)p.extent[0] + (uint32_t)p.on[0].count - 1) *
                             (uint32_t)p.extent[1] +
                         (uint32_t)p.on[1].count - 1;
    const uint32_t end = p.first + (row * (uint32_t)p.extent[2] + (uint32_t)p.on[2].count) * inner;
    if (p.first < V || part.total - end < V) stage_lines<T, true>(part, tensor, p, inner);
    else stage_lines<T, false>(part, tensor, p, inner);
}

// A run of sums as it goes out: alpha * sum + beta * what is there.
template <class T, int V>
__device__ __forceinline__ void put_sums(const pool_band_args &a, size_t to, acc<T> *value)
{
    if (sizeof(T) == 2 && a.scales && !a.blends) {
        wd_run<T, V> run;
#pragma unroll
        for (int i = 0; i < V; i += 2) {
            const float alpha = (float)a.alpha;
            run.word[i / 2] =
                wd_packed_narrow<T>((float)value[i] * alpha, (float)value[i + 1] * alpha);
        }
        if (a.streaming) run.store_streaming(static_cast<T *>(a.out) + to);
        else run.store(static_cast<T *>(a.out) + to);
    } else {
        wd_put_run<T, V>(a, to, value);
    }
}

// Sums go out; `part` counts in sums.
template <class T>
__device__ __forceinline__ void put_band(const pool_band_args &a, const placed &p)
{
    using A = acc<T>;
    constexpr uint32_t V = 16 / (uint32_t)sizeof(T);
    const pool_band_part &part = a.to;
    const size_t skew = (uintptr_t)a.out % 16 / sizeof(T);
    const uint32_t phase = (uint32_t)((skew + p.first) % V);
    const A *sums = reinterpret_cast<const A *>(band_at(part.at));
    each_line(part, p, a.inner,
              [&](uint32_t at, uint32_t offset, uint32_t length, uint32_t lane, uint32_t lanes) {
                  // elements before the first whole run of memory, and runs
                  const uint32_t head = min((V - (phase + at) % V) % V, length);
                  const uint32_t runs = (length - head) / V;
                  const A *of = sums + phase + at;
                  const size_t to = p.first + offset;
#pragma unroll 2
                  for (uint32_t run = lane; run < runs; run += lanes) {
                      wd_run<A, V> from;
                      A value[V];
                      from.load(of + head + run * V);
#pragma unroll
                      for (int i = 0; i < (int)V; ++i) value[i] = from.get(i);
                      put_sums<T, V>(a, to + head + run * V, value);
                  }
                  const uint32_t tail = head + runs * V;
                  for (uint32_t i = lane; i < head + length - tail; i += lanes) {
                      const uint32_t element = i < head ? i : tail + i - head;
                      wd_put_run<T, 1>(a, to + element, of + element);
                  }
              });
}

} // namespace

#endif
