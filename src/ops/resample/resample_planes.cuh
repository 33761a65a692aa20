// SPDX-License-Identifier: Apache-2.0
//
// Maxima of planes by two rows and two columns, and their gradients, where windows tile the image and
// rows are whole runs: a thread has a run of windows, or half of one, whose even and odd columns are sorted apart in
// registers.
#ifndef WD_OPS_RESAMPLE_PLANES_CUH
#define WD_OPS_RESAMPLE_PLANES_CUH

#include "ops/resample/resample_places.cuh"

namespace {

// Two runs side by side to their even and their odd elements, and back.
template <class T, int V>
__device__ __forceinline__ void sort_apart(const wd_run<T, V> *two, wd_run<T, V> &even,
                                           wd_run<T, V> &odd)
{
    constexpr int WORDS = wd_run<T, V>::WORDS;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        const uint32_t a = two[2 * i / WORDS].word[2 * i % WORDS];
        const uint32_t b = two[2 * i / WORDS].word[2 * i % WORDS + 1];
        even.word[i] = sizeof(T) == 2 ? __byte_perm(a, b, 0x5410) : a;
        odd.word[i] = sizeof(T) == 2 ? __byte_perm(a, b, 0x7632) : b;
    }
}

template <class T, int K>
__device__ __forceinline__ wd_run<T, 2 * K> sort_together(const wd_run<T, K> &even,
                                                          const wd_run<T, K> &odd)
{
    wd_run<T, 2 * K> both;
#pragma unroll
    for (int i = 0; i < wd_run<T, K>::WORDS; ++i) {
        const uint32_t a = even.word[i], b = odd.word[i];
        both.word[2 * i] = sizeof(T) == 2 ? __byte_perm(a, b, 0x5410) : a;
        both.word[2 * i + 1] = sizeof(T) == 2 ? __byte_perm(a, b, 0x7632) : b;
    }
    return both;
}

template <class T, int V>
__device__ __forceinline__ void resample_planes(const resample_places_args &a)
{
    wd_wait_for_previous();
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const int depth = a.axis[0].window;
    const uint32_t columns = (uint32_t)a.axis[2].image, rows = (uint32_t)a.axis[1].image;
    const int column = (int)(wd_take_rest(n, a.by_column) * V);
    const int row = (int)wd_take_rest(n, a.by_row);
    const int slice = (int)wd_take_rest(n, a.by_depth);
    const size_t plane = (size_t)rows * columns;
    const T *x = static_cast<const T *>(a.from) + n * (uint32_t)a.axis[0].image * plane;
    const T *from = x + (uint32_t)(slice * depth) * plane + (size_t)(uint32_t)(2 * row) * columns +
                    (uint32_t)(2 * column);
    winners<T, V> best(0);
    for (int z = 0; z < depth; ++z, from += plane) {
        wd_run<T, V> two[2][2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            two[r][0].load(from + r * columns);
            two[r][1].load(from + r * columns + V);
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            wd_run<T, V> even, odd;
            sort_apart<T, V>(two[r], even, odd);
            best.offer(even, 4 * z + 2 * r);
            best.offer(odd, 4 * z + 2 * r + 1);
        }
    }
    const size_t at = (size_t)item * V;
    if (best.has_nan()) {
#pragma unroll 1
        for (int i = 0; i < V; ++i) {
            const int low[3] = {slice * depth, 2 * row, 2 * (column + i)};
            exact_place<T>(a, x, at + i, low);
        }
        return;
    }
    best.put(a, at);
}

// A thread has half a run of windows, so that a warp's stores leave no gaps: two threads an item.
template <class T, int V>
__device__ __forceinline__ void resample_planes_back(const resample_places_args &a)
{
    constexpr int K = V / 2;
    wd_wait_for_previous();
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, item = thread / 2;
    if (item >= a.count) return;
    uint32_t n = item;
    const int depth = a.axis[0].window;
    const uint32_t columns = (uint32_t)a.axis[2].image, rows = (uint32_t)a.axis[1].image;
    const uint32_t column = wd_take_rest(n, a.by_column) * V + thread % 2 * K;
    const uint32_t row = wd_take_rest(n, a.by_row);
    const uint32_t slice = wd_take_rest(n, a.by_depth);
    wd_run<T, K> share;
    place_pairs<K> place;
    share.load(static_cast<const T *>(a.from) + (size_t)thread * K);
    place.load(a.places, a.place_size, (size_t)thread * K);
    size_t to =
        (((size_t)n * (uint32_t)a.axis[0].image + slice * depth) * rows + 2 * row) * columns +
        2 * column;
    for (int z = 0; z < depth; ++z, to += (size_t)rows * columns) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            wd_run<T, K> mine[2];
#pragma unroll
            for (int c = 0; c < 2; ++c) pick<T, K>(share, place, 4 * z + 2 * r + c, mine[c]);
            put_plain<T, V>(a, to + r * columns, sort_together<T, K>(mine[0], mine[1]));
        }
    }
}

} // namespace

#endif
