// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients of images whose channels are no runs, four channels at a time. As back_tiles, by
// the same tiles and lists; but what an address has in common for all threads is apart from what is a
// thread's own, which 32 bits hold, and nothing is asked about a channel but in the last stage, or about
// factors but before the first. Two buffers take turns, so that there is one barrier a stage.
#ifndef WD_OPS_SPATIAL_SAMPLER_BACK_PLANES_CUH
#define WD_OPS_SPATIAL_SAMPLER_BACK_PLANES_CUH

#include "gpu/device/opaque.cuh"
#include "ops/spatial/sampler_back.cuh"

namespace {

// An image of a tensor, the same for all threads; an element's own place is 32 bits.
template <class T> struct planes {
    T *data;
    uint32_t channel;

    __device__ __forceinline__ planes(const sampler_image &image, uint32_t n)
        : data(wd_opaque_global(static_cast<T *>(image.data) + n * image.image)),
          channel((uint32_t)image.channel)
    {
    }
    // Of channel u of a stage, in which channel 0 of the thread's element is at `at`.
    __device__ __forceinline__ T *element(uint32_t at, int u) const
    {
        return data + (at + (uint32_t)u * channel);
    }
    __device__ __forceinline__ uint32_t step() const
    {
        return SPATIAL_STAGE * channel;
    }
};

// Two elements of a tensor that a thread brings to shared memory, as fp32.
template <class T> struct carrier {
    static constexpr int U = SPATIAL_STAGE;
    const planes<T> from;
    uint32_t at[2];
    T value[2][U];

    __device__ __forceinline__ carrier(const sampler_image &image, uint32_t n) : from(image, n)
    {
    }
    __device__ __forceinline__ void load(uint32_t is)
    {
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            if (is >> m & 1) {
#pragma unroll
                for (int u = 0; u < U; ++u) value[m][u] = *from.element(at[m], u);
            }
            at[m] += from.step();
        }
    }
    // The same of the last channels; 0 for those that are not there.
    __device__ __forceinline__ void load_some(uint32_t is, int channels)
    {
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int u = 0; u < U; ++u) {
                wd_narrow(value[m][u], 0.0f);
                if ((is >> m & 1) && u < channels) value[m][u] = *from.element(at[m], u);
            }
        }
    }
    __device__ __forceinline__ void store(uint32_t is, float4 *to) const
    {
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            if (!(is >> m & 1)) continue;
            to[m * SPATIAL_THREADS] = make_float4(wd_widen(value[m][0]), wd_widen(value[m][1]),
                                                  wd_widen(value[m][2]), wd_widen(value[m][3]));
        }
    }
};

// A tile all of whose places are in shared memory, few for each element.
template <class T> struct lean_tile {
    static constexpr int U = SPATIAL_STAGE, EACH = SPATIAL_FEW / 2, ROOM = 2 * SPATIAL_THREADS;
    enum { IMAGE = 0, PLACES = 2, OWNED = 4, ELEMENT = 6 };
    const sampler_vector_args &a;
    const back_tile<T, SPATIAL_LINE_LOG2> &tile;
    carrier<T> image, places;
    const planes<T> to;
    uint32_t put_at;
    bool plain;
    // Bits: which elements of the image and which places the thread brings, whether its own element is in the
    // image and which of its places are the tile's own. One register, else as many as there are bits.
    uint32_t flags;
    float4 *dy, *x; // two buffers of ROOM each
    // Of the cells above an element and of those below: its first place, and what it gets of that and of the
    // EACH - 1 after it; nothing of those that look elsewhere.
    const float4 *from[2];
    float share[2][EACH];
    uint32_t most; // places of any element of the warp, above or below
    const float4 *corner[2];
    float steps[4];
    float4 *later; // the steps of the thread's second place, in shared memory: few threads have one

    __device__ __forceinline__ lean_tile(const back_tile<T, SPATIAL_LINE_LOG2> &t)
        : a(t.a), tile(t), image(t.a.x, t.n), places(t.a.y, t.n), to(t.a.dx, t.n)
    {
        dy = reinterpret_cast<float4 *>(t.dy);
        x = reinterpret_cast<float4 *>(t.slope);
        later = reinterpret_cast<float4 *>(t.x) + threadIdx.x;
        plain = a.scales && !a.blends;
    }

    __device__ __forceinline__ void find(uint32_t count)
    {
        stager<T, 2> frame;
        flags = 0;
        frame.find(a.x, a.height, a.width, tile.frame);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            const uint32_t i = threadIdx.x + m * SPATIAL_THREADS;
            flags |= (uint32_t)(frame.from[m] >= 0) << (IMAGE + m) | (uint32_t)(i < count)
                                                                         << (PLACES + m);
            image.at[m] = (uint32_t)frame.from[m];
            places.at[m] = i < count ? (uint32_t)tile.offset_of(i) : 0;
        }
        load(a.channels);
        const float alpha = plain ? a.alpha32 : 1.0f;
        most = 0;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int c = tile.own_cell() + r * tile.across;
            const uint32_t first = tile.begin[c], middle = tile.begin[c + 1],
                           end = tile.begin[c + 2];
            from[r] = dy + first;
            most = max(most, end - first);
#pragma unroll
            for (int m = 0; m < EACH; ++m) {
                share[r][m] = 0;
                if (first + m < end) share[r][m] = alpha * tile.share_of(first + m, r, middle);
            }
        }
        most = __reduce_max_sync(0xffffffffu, most);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            const uint32_t i = threadIdx.x + m * SPATIAL_THREADS;
            int at = 0;
            flags |= (uint32_t)(i < count && tile.owns(i, at)) << (OWNED + m);
            corner[m] = x + at;
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                x[i + b * ROOM] = make_float4(0, 0, 0, 0);
                if (i >= count && i < count + EACH) dy[i + b * ROOM] = make_float4(0, 0, 0, 0);
            }
        }
#pragma unroll
        for (int s = 0; s < 4; ++s) steps[s] = 0;
        *later = make_float4(0, 0, 0, 0);
        const int w = tile.left + ((int)threadIdx.x & ((1 << SPATIAL_LINE_LOG2) - 1));
        const int h = tile.top + ((int)threadIdx.x >> SPATIAL_LINE_LOG2);
        flags |= (uint32_t)(h < a.height && w < a.width) << ELEMENT;
        flags = wd_opaque(flags);
        put_at = (uint32_t)(h * a.dx.row + w * a.dx.column);
    }

    // The next stage's channels, of which so many are left.
    __device__ __forceinline__ void load(int channels)
    {
        if (channels >= U) {
            image.load(flags >> IMAGE);
            places.load(flags >> PLACES);
        } else if (channels > 0) {
            image.load_some(flags >> IMAGE, channels);
            places.load_some(flags >> PLACES, channels);
        }
    }

    static __device__ __forceinline__ void add(float *sums, float share, const float4 &one)
    {
        sums[0] += share * one.x;
        sums[1] += share * one.y;
        sums[2] += share * one.z;
        sums[3] += share * one.w;
    }
    // Again by those places alone that look at the element: nothing of what is not finite is NaN.
    template <int B> __device__ __forceinline__ void add_again(float *sums) const
    {
        const float alpha = plain ? a.alpha32 : 1.0f;
#pragma unroll
        for (int u = 0; u < U; ++u) sums[u] = 0;
#pragma unroll 1
        for (int r = 0; r < 2; ++r) {
            const int c = tile.own_cell() + r * tile.across;
            const uint32_t middle = tile.begin[c + 1], end = tile.begin[c + 2];
#pragma unroll 1
            for (uint32_t i = tile.begin[c]; i < end; ++i) {
                add(sums, alpha * tile.share_of(i, r, middle), dy[i + B * ROOM]);
            }
        }
    }
    template <int B> __device__ __forceinline__ void collect(int channels)
    {
        float sums[U] = {0, 0, 0, 0};
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const float4 *const in = from[r] + B * ROOM;
            add(sums, share[r][0], in[0]);
            add(sums, share[r][1], in[1]);
            if (most > 2) {
                add(sums, share[r][2], in[2]);
                if (most > 3) add(sums, share[r][3], in[3]);
            }
        }
        if (!(fabsf((sums[0] + sums[1]) + (sums[2] + sums[3])) <= 3e38f)) add_again<B>(sums);
        if (plain && channels >= U) {
#pragma unroll
            for (int u = 0; u < U; ++u) wd_narrow(*to.element(put_at, u), sums[u]);
        } else {
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (u < channels) put_one(to.element(put_at, u), sums[u]);
            }
        }
    }
    __device__ __forceinline__ void put_one(T *at, float sum) const
    {
        if (!plain) {
            const float old = a.blends ? wd_widen(*at) : 0.0f;
            sum = blended<float>(a.scales, a.alpha32, sum, a.blends, a.beta32, old);
        }
        wd_narrow(*at, sum);
    }

    static __device__ __forceinline__ void step(float *s, float g, float f00, float f01, float f10,
                                                float f11)
    {
        s[0] += g * (f01 - f00);
        s[1] += g * (f11 - f10);
        s[2] += g * (f10 - f00);
        s[3] += g * (f11 - f01);
    }
    template <int B> __device__ __forceinline__ void add_steps(int m, float *s) const
    {
        const float4 g = dy[threadIdx.x + m * SPATIAL_THREADS + B * ROOM];
        const float4 *const f = corner[m] + B * ROOM, *const below = f + tile.across + 1;
        const float4 f00 = f[0], f01 = f[1], f10 = below[0], f11 = below[1];
        step(s, g.x, f00.x, f01.x, f10.x, f11.x);
        step(s, g.y, f00.y, f01.y, f10.y, f11.y);
        step(s, g.z, f00.z, f01.z, f10.z, f11.z);
        step(s, g.w, f00.w, f01.w, f10.w, f11.w);
    }

    template <int B> __device__ __forceinline__ void stage(int channels)
    {
        image.store(flags >> IMAGE, x + threadIdx.x + B * ROOM);
        places.store(flags >> PLACES, dy + threadIdx.x + B * ROOM);
        __syncthreads();
        load(channels - U);
        if (wd_opaque(flags) >> ELEMENT & 1) collect<B>(channels);
        put_at += to.step();
        if (wd_opaque(flags) >> OWNED & 1) add_steps<B>(0, steps);
        if (wd_opaque(flags) >> (OWNED + 1) & 1) {
            const float4 old = *later;
            float s[4] = {old.x, old.y, old.z, old.w};
            add_steps<B>(1, s);
            *later = make_float4(s[0], s[1], s[2], s[3]);
        }
    }

    __device__ __forceinline__ void run(uint32_t count)
    {
        find(count);
#pragma unroll 1
        for (int channels = a.channels; channels > 0; channels -= 2 * U) {
            stage<0>(channels);
            if (channels <= U) break;
            stage<1>(channels - U);
        }
        const uint32_t i = wd_opaque(threadIdx.x); // else addresses are kept from before the stages
        if (flags >> OWNED & 1) tile.put_steps(i, steps);
        if (flags >> (OWNED + 1) & 1) {
            tile.put_steps(i + SPATIAL_THREADS, reinterpret_cast<const float *>(later));
        }
    }
};

template <class T> __device__ __forceinline__ void back_planes(const sampler_vector_args &a)
{
    __shared__ uint32_t scratch[SPATIAL_THREADS / 32 + 1];
    __shared__ int many;
    back_tile<T, SPATIAL_LINE_LOG2> tile(a, scratch);
    uint32_t next = 0;
    wd_wait_for_previous();
    tile.find_boxes();
    if (threadIdx.x == 0) many = 0;
    const uint32_t count = tile.collect(next, tile.first && !a.boxes);
    const int c = tile.own_cell();
    const int below = c + tile.across;
    if (max(tile.begin[c + 2] - tile.begin[c], tile.begin[below + 2] - tile.begin[below]) >
        lean_tile<T>::EACH) {
        many = 1;
    }
    __syncthreads();
    if (!many && next >= tile.candidates && count + lean_tile<T>::EACH <= lean_tile<T>::ROOM) {
        lean_tile<T> lean(tile);
        lean.run(count);
    } else {
        back_many(tile, count, next);
    }
}

} // namespace

#endif
