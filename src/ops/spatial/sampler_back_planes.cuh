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

// The steps of a place whose cell is `row` and `column` of a tile's, from device memory as the definition has them.
template <class T, class Tile>
__device__ __forceinline__ void steps_again(const Tile &tile, const planes<T> &from_x,
                                            const planes<T> &from_y, uint32_t i, float *s)
{
    const sampler_vector_args &a = tile.a;
    const int row = tile.cell[i] / tile.across, column = tile.cell[i] - row * tile.across;
    const int h = tile.top - 1 + row, w = tile.left - 1 + column;
    const bool above = h >= 0, below = h + 1 < a.height, left = w >= 0, right = w + 1 < a.width;
    const uint32_t down = (uint32_t)a.x.row, across = (uint32_t)a.x.column;
    uint32_t at = (uint32_t)(h * a.x.row + w * a.x.column), y = (uint32_t)tile.offset_of(i);
#pragma unroll
    for (int k = 0; k < 4; ++k) s[k] = 0;
#pragma unroll 1
    for (int c = 0; c < a.channels; ++c) {
        const float g = wd_widen(*from_y.element(y, 0));
        const float f00 = above && left ? wd_widen(*from_x.element(at, 0)) : 0.0f;
        const float f01 = above && right ? wd_widen(*from_x.element(at + across, 0)) : 0.0f;
        const float f10 = below && left ? wd_widen(*from_x.element(at + down, 0)) : 0.0f;
        const float f11 = below && right ? wd_widen(*from_x.element(at + down + across, 0)) : 0.0f;
        s[0] += g * (f01 - f00);
        s[1] += g * (f11 - f10);
        s[2] += g * (f10 - f00);
        s[3] += g * (f11 - f01);
        at += from_x.channel;
        y += from_y.channel;
    }
}

// A tile all of whose places are in shared memory, few for each element. A thread has an element of the image: what
// it gets of the places around it, and, of the same reading of dy, its products with them. Those with the four
// elements of a place's cell are brought together at the end, and their differences are the place's steps. Of elements
// that are the next tile's to the right and below, only the products are found, by the last threads besides.
template <class T> struct lean_tile {
    static constexpr int U = SPATIAL_STAGE, EACH = SPATIAL_FEW / 2, ROOM = 2 * SPATIAL_THREADS,
                         LINE = 1 << SPATIAL_LINE_LOG2, LINES = SPATIAL_THREADS / LINE;
    enum { PLACES = 0, ELEMENT = 2, EDGE = 3, MOST = 4 };
    const sampler_vector_args &a;
    const back_tile<T, SPATIAL_LINE_LOG2> &tile;
    const planes<T> from_x, from_y, to;
    uint32_t x_at, edge_at, y_at[2], put_at;
    T x_value[U], edge_value[U], y_value[2][U];
    bool plain;
    // Which places the thread brings, which elements it has, and how many places any element of the warp has above or
    // below: one register.
    uint32_t flags;
    // What four channels of a place are in shared memory: of two bytes as they are, for that memory is what is waited for.
    typedef typename std::conditional<sizeof(T) == 2, uint2, float4>::type four;
    four *dy; // two buffers of ROOM each
    // Of the cells above an element and of those below: its first place, and what it gets of that and of the
    // EACH - 1 after it; nothing of those that look elsewhere. Their products with it; whichever they are.
    const four *from[2], *edge_from;
    float share[2][EACH], product[2][EACH], edge_product[EACH];

    __device__ __forceinline__ lean_tile(const back_tile<T, SPATIAL_LINE_LOG2> &t)
        : a(t.a), tile(t), from_x(t.a.x, t.n), from_y(t.a.y, t.n), to(t.a.dx, t.n)
    {
        dy = reinterpret_cast<four *>(t.dy);
        plain = a.scales && !a.blends;
    }

    // The places of two neighbouring cells, or of the last one of a row.
    struct pair {
        uint32_t first, middle, end;
    };
    __device__ __forceinline__ pair pair_at(int row, int column) const
    {
        const uint32_t *const begin = tile.begin + row * (LINE + 1) + column;
        return {begin[0], begin[1], column < LINE ? begin[2] : begin[1]};
    }
    // t: the thread; opaque after the first time, else addresses are kept from then.
    __device__ __forceinline__ pair own_pair(uint32_t t, int r) const
    {
        return pair_at((int)t / LINE + r, (int)t % LINE);
    }
    // An element of the next tiles that a thread sees to, and the cells that it does so for: those above it, or
    // else those below. Of the tile below all elements; then, of that on the right, all but the last for the cells above
    // them and below, the last one for that above it.
    struct edge {
        int row, column;
        bool above;
    };
    static __device__ __forceinline__ bool edge_of(uint32_t thread, edge &e)
    {
        const int t = SPATIAL_THREADS - 1 - LINE - (int)thread;
        e.row = t < 0 ? LINES : t <= LINES ? t : t - LINES - 1;
        e.column = t < 0 ? t + LINE : LINE;
        e.above = t <= LINES;
        return t <= 2 * LINES;
    }
    __device__ __forceinline__ pair edge_pair(const edge &e) const
    {
        return pair_at(e.row + (e.above ? 0 : 1), e.column);
    }
    __device__ __forceinline__ bool in_image(int row, int column) const
    {
        return tile.top + row < a.height && tile.left + column < a.width;
    }
    __device__ __forceinline__ uint32_t offset_in(const sampler_image &image, int row,
                                                  int column) const
    {
        return (uint32_t)((tile.top + row) * image.row + (tile.left + column) * image.column);
    }

    __device__ __forceinline__ void find(uint32_t count)
    {
        const int row = (int)threadIdx.x / LINE, column = (int)threadIdx.x % LINE;
        edge e;
        flags = (uint32_t)in_image(row, column) << ELEMENT |
                (uint32_t)(edge_of(threadIdx.x, e) && in_image(e.row, e.column)) << EDGE;
        x_at = offset_in(a.x, row, column);
        put_at = offset_in(a.dx, row, column);
        edge_at = offset_in(a.x, e.row, e.column);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            const uint32_t i = threadIdx.x + m * SPATIAL_THREADS;
            flags |= (uint32_t)(i < count) << (PLACES + m);
            y_at[m] = i < count ? (uint32_t)tile.offset_of(i) : 0;
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                if (i >= count && i < count + EACH) dy[i + b * ROOM] = four{};
            }
        }
        load(a.channels);
        const float alpha = plain ? a.alpha32 : 1.0f;
        uint32_t most = 0;
        edge_from = dy;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const pair p = own_pair(threadIdx.x, r);
            from[r] = dy + p.first;
            most = max(most, p.end - p.first);
#pragma unroll
            for (int m = 0; m < EACH; ++m) {
                share[r][m] = product[r][m] = 0;
                if (p.first + m < p.end) {
                    share[r][m] = alpha * tile.share_of(p.first + m, r, p.middle);
                }
            }
        }
#pragma unroll
        for (int m = 0; m < EACH; ++m) edge_product[m] = 0;
        if (flags >> EDGE & 1) {
            const pair p = edge_pair(e);
            edge_from = dy + p.first;
            most = max(most, p.end - p.first);
        }
        most = __reduce_max_sync(0xffffffffu, most);
        flags = wd_opaque(flags | most << MOST);
    }

    // The next stage's channels, of which so many are left.
    template <bool ALL> __device__ __forceinline__ void load_channels(int channels)
    {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (!ALL) {
                wd_narrow(x_value[u], 0.0f);
                wd_narrow(edge_value[u], 0.0f);
                wd_narrow(y_value[0][u], 0.0f);
                wd_narrow(y_value[1][u], 0.0f);
                if (u >= channels) continue;
            }
            if (flags >> ELEMENT & 1) x_value[u] = *from_x.element(x_at, u);
            if (flags >> EDGE & 1) edge_value[u] = *from_x.element(edge_at, u);
#pragma unroll
            for (int m = 0; m < 2; ++m) {
                if (flags >> (PLACES + m) & 1) y_value[m][u] = *from_y.element(y_at[m], u);
            }
        }
        x_at += from_x.step();
        edge_at += from_x.step();
        y_at[0] += from_y.step();
        y_at[1] += from_y.step();
    }
    __device__ __forceinline__ void load(int channels)
    {
        if (channels >= U) load_channels<true>(channels);
        else if (channels > 0) load_channels<false>(channels);
    }

    static __device__ __forceinline__ void add(float *sums, float share, const float4 &one)
    {
        sums[0] += share * one.x;
        sums[1] += share * one.y;
        sums[2] += share * one.z;
        sums[3] += share * one.w;
    }
    static __device__ __forceinline__ void multiply(float &product, const float4 &x,
                                                    const float4 &one)
    {
        product += x.x * one.x;
        product += x.y * one.y;
        product += x.z * one.z;
        product += x.w * one.w;
    }
    static __device__ __forceinline__ float4 widened(const T *value)
    {
        return make_float4(wd_widen(value[0]), wd_widen(value[1]), wd_widen(value[2]),
                           wd_widen(value[3]));
    }
    static __device__ __forceinline__ float4 widened(const float4 &values)
    {
        return values;
    }
    static __device__ __forceinline__ float4 widened(const uint2 &values)
    {
        wd_run<T, U> run;
        run.word[0] = values.x;
        run.word[1] = values.y;
        return make_float4(wd_widen(run.get(0)), wd_widen(run.get(1)), wd_widen(run.get(2)),
                           wd_widen(run.get(3)));
    }
    static __device__ __forceinline__ void keep(float4 &to, const T *value)
    {
        to = widened(value);
    }
    static __device__ __forceinline__ void keep(uint2 &to, const T *value)
    {
        wd_run<T, U> run;
#pragma unroll
        for (int u = 0; u < U; ++u) run.put(u, value[u]);
        to = make_uint2(run.word[0], run.word[1]);
    }
    // Again by those places alone that look at the element: nothing of what is not finite is NaN.
    template <int B> __device__ __forceinline__ void add_again(float *sums) const
    {
        const float alpha = plain ? a.alpha32 : 1.0f;
#pragma unroll
        for (int u = 0; u < U; ++u) sums[u] = 0;
#pragma unroll 1
        for (int r = 0; r < 2; ++r) {
            const pair p = own_pair(wd_opaque(threadIdx.x), r);
#pragma unroll 1
            for (uint32_t i = p.first; i < p.end; ++i) {
                add(sums, alpha * tile.share_of(i, r, p.middle), widened(dy[i + B * ROOM]));
            }
        }
    }
    template <int B> __device__ __forceinline__ void collect(const float4 &x, int channels)
    {
        float sums[U] = {0, 0, 0, 0};
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const four *const in = from[r] + B * ROOM;
#pragma unroll
            for (int m = 0; m < EACH; ++m) {
                if (m >= 2 && flags >> MOST <= (uint32_t)m) break;
                const float4 one = widened(in[m]);
                add(sums, share[r][m], one);
                multiply(product[r][m], x, one);
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
    template <int B> __device__ __forceinline__ void multiply_edge(const float4 &x)
    {
        const four *const in = edge_from + B * ROOM;
#pragma unroll
        for (int m = 0; m < EACH; ++m) {
            if (m >= 2 && flags >> MOST <= (uint32_t)m) break;
            multiply(edge_product[m], x, widened(in[m]));
        }
    }

    template <int B> __device__ __forceinline__ void stage(int channels)
    {
        const float4 x = widened(x_value), edge = widened(edge_value);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            if (flags >> (PLACES + m) & 1) {
                keep(dy[threadIdx.x + m * SPATIAL_THREADS + B * ROOM], y_value[m]);
            }
        }
        __syncthreads();
        load(channels - U);
        if (wd_opaque(flags) >> ELEMENT & 1) collect<B>(x, channels);
        put_at += to.step();
        if (wd_opaque(flags) >> EDGE & 1) multiply_edge<B>(edge);
    }

    // Products to their places, by where in a place's cell the element is.
    __device__ __forceinline__ void show(const pair &p, bool above, const float *from) const
    {
        float *const to_place = reinterpret_cast<float *>(tile.dy) + (above ? 2 : 0);
#pragma unroll
        for (int m = 0; m < EACH; ++m) {
            const uint32_t i = p.first + m;
            if (i < p.end) to_place[4 * i + (i < p.middle ? 1 : 0)] = from[m];
        }
    }
    __device__ __forceinline__ void put_places(uint32_t count) const
    {
        const uint32_t t = wd_opaque(threadIdx.x);
        __syncthreads();
#pragma unroll 1
        for (uint32_t i = t; i < count; i += SPATIAL_THREADS) {
            tile.dy[i] = make_uint4(0, 0, 0, 0); // with elements outside of the image
        }
        __syncthreads();
        if (flags >> ELEMENT & 1) {
            show(own_pair(t, 0), true, product[0]);
            show(own_pair(t, 1), false, product[1]);
        }
        if (flags >> EDGE & 1) {
            edge e;
            edge_of(t, e);
            show(edge_pair(e), e.above, edge_product);
        }
        __syncthreads();
        // else what is needed of it is kept from before the stages
        const back_tile<T, SPATIAL_LINE_LOG2> same(a, tile.shared, wd_opaque(blockIdx.x));
#pragma unroll 1
        for (uint32_t i = t; i < count; i += SPATIAL_THREADS) {
            int corner;
            if (!same.owns(i, corner)) continue;
            const float4 f = reinterpret_cast<const float4 *>(tile.dy)[i];
            float steps[4] = {f.y - f.x, f.w - f.z, f.z - f.x, f.w - f.y};
            if (!(fabsf(f.x) + fabsf(f.y) + fabsf(f.z) + fabsf(f.w) <= 3e38f)) {
                steps_again(same, from_x, from_y, i, steps);
            }
            same.put_steps(i, steps);
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
        put_places(count);
    }
};

template <class T> __device__ __forceinline__ void back_planes(const sampler_vector_args &a)
{
    __shared__ uint32_t scratch[SPATIAL_THREADS / 32 + 1];
    __shared__ int many;
    back_tile<T, SPATIAL_LINE_LOG2> tile(a, scratch);
    uint32_t next = 0;
    wd_wait_for_previous();
    if (a.marks && __ldcg(a.marks + tile.in_batch) == 0) return;
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
