// SPDX-License-Identifier: Apache-2.0
//
// Both gradients where channels are neighbours, from one reading of dy and the image: by the lists of sampler_gather.cuh
// eight threads have an element, a run of its channels each at a time. They collect what it gets of the places around it, and
// multiply it with each of them; the products with the four elements of a place's cell come together in shared
// memory, where their differences are the place's steps. Of elements right and below of the tile, which are
// other tiles', only the products are found.
#ifndef WD_OPS_SPATIAL_SAMPLER_GATHER_PIXELS_CUH
#define WD_OPS_SPATIAL_SAMPLER_GATHER_PIXELS_CUH

#include "gpu/device/opaque.cuh"
#include "gpu/device/prefetch.cuh"
#include "ops/spatial/sampler_gather.cuh"

namespace {

template <class T> struct pixel_gatherer : gatherer<T, true> {
    typedef gatherer<T, true> base;
    using base::U, base::a, base::all, base::n, base::top, base::left, base::across, base::cells,
        base::begin, base::where, base::candidates;
    static constexpr int LANES = 8, GROUPS = GATHER_THREADS / LANES,
                         KEPT = LANES,     // places of an element, one found by each lane
        TOGETHER = sizeof(T) == 4 ? 4 : 3; // of which are asked for at once
    float4 *product;                       // of a place with its cell, over what listed it

    __device__ __forceinline__ pixel_gatherer(const sampler_window_args &args, int *shared)
        : base(args, shared), product(reinterpret_cast<float4 *>(base::found))
    {
    }

    // An element that has the upper left one of its cells, and its places; of the tile's last column of cells only
    // those on the left, of the last row those above are there.
    struct element {
        typename base::walk places;
        bool in, own; // the image's, the tile's
        int row, column;
    };
    __device__ __forceinline__ element element_of(int cell) const
    {
        element e;
        typename base::walk &l = e.places;
        const bool is = cell < cells;
        if (!is) cell = 0;
        e.row = (int)((uint32_t)cell * a.by_across >> 16);
        e.column = cell - e.row * across;
        const int wide = e.column < a.elements.width ? 2 : 1;
        const bool upper = e.row < a.elements.height;
        e.in = is && top + e.row < all.height && left + e.column < all.width;
        e.own = e.in && wide == 2 && upper;
        l.first = begin[cell];
        l.middle_above = begin[cell + 1];
        l.above = begin[cell + wide] - l.first;
        l.below = l.middle_below = l.first;
        l.count = l.above;
        if (upper) {
            l.below = begin[cell + across];
            l.middle_below = begin[cell + across + 1];
            l.count += begin[cell + across + wide] - l.below;
        }
        if (!e.in) l.count = 0;
        return e;
    }

    // Place m of an element.
    struct listed_place {
        uint32_t i;
        bool lower, right; // its cell is below of the element, on its right
    };
    static __device__ __forceinline__ listed_place listed_of(const typename base::walk &l,
                                                             uint32_t m)
    {
        listed_place one;
        one.lower = m >= l.above;
        one.i = one.lower ? l.below + m - l.above : l.first + m;
        one.right = one.i >= (one.lower ? l.middle_below : l.middle_above);
        return one;
    }
    // Where the product of a place with an element comes to, in floats of `product`.
    static __device__ __forceinline__ uint32_t slot_of(const listed_place &one)
    {
        return 4 * one.i + (one.lower ? 0 : 2) + (one.right ? 0 : 1);
    }
    // The sum of what an element's lanes have of place m, KEPT and later, to where the place finds it.
    __device__ __forceinline__ void show(const typename base::walk &l, uint32_t m, float sum) const
    {
#pragma unroll
        for (int step = 1; step < LANES; step *= 2) {
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        }
        if (m >= l.count || threadIdx.x % LANES != m % LANES) return;
        reinterpret_cast<float *>(product)[slot_of(listed_of(l, m))] = sum;
    }
    // Of LANES numbers of each of an element's lanes: the sum of those of the lane's own number.
    static __device__ __forceinline__ float sum_of_own(float *sum)
    {
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) {
            const bool upper = (threadIdx.x & (uint32_t)step) != 0;
#pragma unroll
            for (int i = 0; i < step; ++i) {
                const float given = upper ? sum[i] : sum[i + step];
                const float kept = upper ? sum[i + step] : sum[i];
                sum[i] = kept + __shfl_xor_sync(0xffffffffu, given, step);
            }
        }
        return sum[0];
    }

    template <int V>
    static __device__ __forceinline__ void multiply(float &sum, const wd_run<T, V> &x,
                                                    const wd_run<T, V> &y)
    {
#pragma unroll
        for (int v = 0; v < V; ++v) sum += wd_widen(x.get(v)) * wd_widen(y.get(v));
    }

    // The thread's element again: its places are not kept in registers over all channels.
    __device__ __forceinline__ element same_element(int first) const
    {
        return element_of(first + (int)wd_opaque(threadIdx.x) / LANES);
    }
    // Of the places that are not kept.
    __device__ __forceinline__ void add_rest(int first, int c, const T *dy, float *sums) const
    {
        const element e = same_element(first);
#pragma unroll 1
        for (uint32_t m = KEPT; m < e.places.count; ++m) {
            float share;
            wd_run<T, U> g;
            g.load(dy + c + this->place_of(e.places, m, share));
#pragma unroll
            for (int u = 0; u < U; ++u) sums[u] += share * wd_widen(g.get(u));
        }
    }
    // The products with places that are kept, each by its lane.
    __device__ __forceinline__ void show_kept(int first, float sum) const
    {
        const element e = same_element(first);
        const uint32_t lane = threadIdx.x % LANES;
        if (lane >= e.places.count) return;
        reinterpret_cast<float *>(product)[slot_of(listed_of(e.places, lane))] = sum;
    }
    __device__ __forceinline__ void show_rest(int first, uint32_t most, const T *own,
                                              const T *dy) const
    {
        const element e = same_element(first);
#pragma unroll 1
        for (uint32_t m = KEPT; m < most; ++m) {
            const bool is = m < e.places.count;
            float rest = 0, share;
            const T *const from = is ? dy + this->place_of(e.places, m, share) : dy;
#pragma unroll 1
            for (int c = (int)threadIdx.x % LANES * U; is && c < all.channels; c += LANES * U) {
                wd_run<T, U> f, g;
                f.load(own + c);
                g.load(from + c);
                multiply<U>(rest, f, g);
            }
            show(e.places, m, rest);
        }
    }

    // The first lines of elements from `first` on, and of the places that these see first, come to the second-level cache
    // while others are worked at.
    __device__ __forceinline__ void ask_ahead(int first, const T *x, const T *dy) const
    {
        constexpr uint32_t LINES = 2, ELEMENTS = GROUPS * LINES;
        const uint32_t t = wd_opaque(threadIdx.x); // nothing of this is kept
        const int c = (int)(t % LINES) * (WD_LINE / (int)sizeof(T));
        if (c >= all.channels || first >= cells) return;
        if (t < ELEMENTS) {
            const int cell = first + (int)(t / LINES);
            const int row = (int)((uint32_t)cell * a.by_across >> 16);
            const int h = top + row, w = left + cell - row * across;
            if (cell >= cells || h >= all.height || w >= all.width) return;
            wd_prefetch_line(x + (h * all.x.row + w * all.x.column + c));
        } else {
            const int from = min(first + across + 1, cells), to = min(from + GROUPS, cells);
            const uint32_t i = begin[from] + (t - ELEMENTS) / LINES;
            if (i < begin[to]) wd_prefetch_line(dy + (where[i] + c));
        }
    }

    __device__ __forceinline__ void gather(const T *x, const T *dy, T *dx) const
    {
        const int lane = (int)threadIdx.x % LANES;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < begin[cells]; i += GATHER_THREADS) {
            product[i] = make_float4(0, 0, 0, 0); // with elements outside of the image
        }
        __syncthreads();
#pragma unroll 1
        for (int first = 0; first < cells; first += GROUPS) {
            ask_ahead(first + GROUPS, x, dy);
            const element e = element_of(first + (int)threadIdx.x / LANES);
            const bool in = e.in, own = e.own;
            const uint32_t count = e.places.count;
            const int own_at = (top + e.row) * all.x.row + (left + e.column) * all.x.column,
                      to = (top + e.row) * all.dx.row + (left + e.column) * all.dx.column;
            const uint32_t most = __reduce_max_sync(0xffffffffu, count);
            // Each lane finds one place for all, and is asked for it again by every run.
            int found = 0;
            float share[KEPT], sum[LANES], found_share = 0;
            if ((uint32_t)lane < count) {
                const listed_place place = listed_of(e.places, (uint32_t)lane);
                const float2 f = base::fraction[place.i];
                found_share = (place.lower ? 1 - f.x : f.x) * (place.right ? 1 - f.y : f.y);
                found = where[place.i];
            }
#pragma unroll
            for (int m = 0; m < LANES; ++m) sum[m] = 0;
#pragma unroll
            for (int m = 0; m < KEPT; ++m) {
                share[m] = __shfl_sync(0xffffffffu, found_share, m, LANES);
            }
#pragma unroll 1
            for (int at_first = 0; at_first < all.channels; at_first += LANES * U) {
                const int c = at_first + lane * U;
                const bool is = c < all.channels;
                wd_run<T, U> f;
                float sums[U];
                run_if(in && is, x + (own_at + c), f);
#pragma unroll
                for (int u = 0; u < U; ++u) sums[u] = 0;
#pragma unroll
                for (int m = 0; m < KEPT; m += TOGETHER) {
                    if (m > 0 && most <= (uint32_t)m) break;
                    wd_run<T, U> g[TOGETHER];
#pragma unroll
                    for (int k = 0; k < TOGETHER && m + k < KEPT; ++k) {
                        const int at = __shfl_sync(0xffffffffu, found, m + k, LANES);
                        run_if(is && (uint32_t)(m + k) < count, dy + (at + c), g[k]);
                    }
#pragma unroll
                    for (int k = 0; k < TOGETHER && m + k < KEPT; ++k) {
#pragma unroll
                        for (int u = 0; u < U; ++u) sums[u] += share[m + k] * wd_widen(g[k].get(u));
                        multiply<U>(sum[m + k], f, g[k]);
                    }
                }
                if (own && is) {
                    if (count > KEPT) add_rest(first, c, dy, sums);
                    ::put<T, U>(all, dx + (to + c), sums);
                }
            }
            show_kept(first, sum_of_own(sum));
            if (most > KEPT) show_rest(first, most, x + own_at, dy);
        }
        __syncthreads();
        put_places<true>(x, dy);
    }

    // The gradients of the tile's own places, by their products, or else channel by channel.
    template <bool PRODUCTS>
    __device__ __forceinline__ void put_places(const T *x, const T *dy) const
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < begin[cells]; i += GATHER_THREADS) {
            const int64_t place = (int64_t)n * all.rows * all.columns + this->number()[i];
            float steps[4] = {0, 0, 0, 0};
            sight<float> k;
            k.template look<T>(all, place);
            // it is of one tile's only
            if (!((k.row >= top || top == 0) && (k.column >= left || left == 0))) continue;
            bool done = false;
            if constexpr (PRODUCTS) {
                const float4 f = product[i];
                done = fabsf(f.x) + fabsf(f.y) + fabsf(f.z) + fabsf(f.w) <= 3e38f;
                steps[0] = f.y - f.x;
                steps[1] = f.w - f.z;
                steps[2] = f.z - f.x;
                steps[3] = f.w - f.y;
            }
            if (!done) find_steps(x, dy + where[i], k, steps);
            put_slopes<T>(all, place, (1 - k.down) * steps[0] + k.down * steps[1],
                          (1 - k.right) * steps[2] + k.right * steps[3]);
        }
    }
    __device__ __forceinline__ void find_steps(const T *x, const T *dy, const sight<float> &k,
                                               float *steps) const
    {
        const T *at = x + (int64_t)k.row * all.x.row + (int64_t)k.column * all.x.column;
#pragma unroll
        for (int s = 0; s < 4; ++s) steps[s] = 0;
#pragma unroll 1
        for (int c = 0; c < all.channels; ++c) {
            const float g = wd_widen(dy[c]);
            float f[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                f[i] = element_if<T>(k.has(all, i / 2, i % 2),
                                     at + c + i / 2 * all.x.row + i % 2 * all.x.column);
            }
            steps[0] += g * (f[1] - f[0]);
            steps[1] += g * (f[3] - f[2]);
            steps[2] += g * (f[2] - f[0]);
            steps[3] += g * (f[3] - f[1]);
        }
    }
};

template <class T> __device__ __forceinline__ void gather_pixels(const sampler_window_args &a)
{
    __shared__ int scratch[4 * GATHER_THREADS / 32 + 1];
    pixel_gatherer<T> g(a, scratch);
    uint32_t next = 0;
    wd_wait_for_previous();
    g.find_boxes();
    const T *const x = static_cast<const T *>(a.all.x.data) + g.n * a.all.x.image;
    const T *const dy = static_cast<const T *>(a.all.y.data) + g.n * a.all.y.image;
    T *const dx = static_cast<T *>(a.all.dx.data) + g.n * a.all.dx.image;
#pragma unroll 1
    do {
        const bool first = next == 0;
        g.collect(next);
        if (first && next >= g.candidates) {
            g.gather(x, dy, dx);
            return;
        }
        g.template put_places<false>(x, dy);
    } while (next < g.candidates);
    g.all_portions(dy, dx, next);
}

} // namespace

#endif
