// SPDX-License-Identifier: Apache-2.0
//
// What the sampler does by tiles in shared memory has in common, and the sampler itself: a block has a
// tile of places, brings the part of the image that they see into shared memory, channels side by side
// in runs of 16 bytes, and every place takes its four pixels from there. Where a tile's places lie far
// apart, threads look into the image itself.
#ifndef WD_OPS_SPATIAL_SAMPLER_TILES_CUH
#define WD_OPS_SPATIAL_SAMPLER_TILES_CUH

#include "gpu/device/shared.cuh"
#include "ops/spatial/sampler_vector.cuh"

namespace {

// Channels of a run.
template <class T> constexpr int pack_of = 16 / (int)sizeof(T);

template <class T> using pack = wd_run<T, pack_of<T>>;

// Channels `first` .. of one element, 0 where there are none; `at` is that of channel `first`.
template <class T>
__device__ __forceinline__ void load_pack(const sampler_image &from, const T *at, bool in,
                                          int channels, pack<T> &run)
{
    T zero;
    wd_narrow(zero, (typename accumulator<T>::type)0);
    if (from.runs) {
        run_if(in, at, run);
        return;
    }
#pragma unroll
    for (int v = 0; v < pack_of<T>; ++v) {
        T value = zero;
        if (in && v < channels) value = at[v * from.channel];
        run.put(v, value);
    }
}

template <class T, class A>
__device__ __forceinline__ void put_pack(const sampler_vector_args &a, const sampler_image &to,
                                         T *at, int channels, const A *value)
{
    if (to.runs) {
        put<T, pack_of<T>>(a, at, value);
        return;
    }
#pragma unroll
    for (int v = 0; v < pack_of<T>; ++v) {
        if (v < channels) put<T, 1>(a, at + v * to.channel, value + v);
    }
}

template <class T> __device__ __forceinline__ void store_shared(uint4 *to, const pack<T> &run)
{
    *to = make_uint4(run.word[0], run.word[1], run.word[2], run.word[3]);
}

template <class T> __device__ __forceinline__ pack<T> load_shared(const uint4 *from)
{
    pack<T> run;
    const uint4 v = *from;
    run.word[0] = v.x, run.word[1] = v.y, run.word[2] = v.z, run.word[3] = v.w;
    return run;
}

// A rectangle of the image; `row` and `column` of its first element may lie outside.
struct rectangle {
    int row, column, height, width;
};

// The part of an image that a block brings to shared memory, run of channels by run: which elements a
// thread brings, and their runs on the way.
template <class T, int M> struct stager {
    static constexpr int P = pack_of<T>;
    int from[M]; // in a plane; -1: 0 instead, -2: none
    pack<T> run[M];

    __device__ __forceinline__ void find(const sampler_image &image, int height, int width,
                                         const rectangle &r)
    {
        const int skip_rows = SPATIAL_THREADS / r.width, skip_columns = SPATIAL_THREADS % r.width;
        int row = (int)threadIdx.x / r.width, column = (int)threadIdx.x % r.width;
#pragma unroll
        for (int m = 0; m < M; ++m) {
            const int h = r.row + row, w = r.column + column;
            const bool in = (uint32_t)h < (uint32_t)height && (uint32_t)w < (uint32_t)width;
            from[m] = row >= r.height ? -2 : in ? h * image.row + w * image.column : -1;
            row += skip_rows;
            column += skip_columns;
            if (column >= r.width) {
                column -= r.width;
                row += 1;
            }
        }
    }
    // From a channel on; so many are left.
    __device__ __forceinline__ void load(const sampler_image &image, const T *x, int channels)
    {
#pragma unroll
        for (int m = 0; m < M; ++m) {
            load_pack(image, x + from[m], from[m] >= 0, channels, run[m]);
        }
    }
    __device__ __forceinline__ void store(uint4 *to) const
    {
#pragma unroll
        for (int m = 0; m < M; ++m) {
            if (from[m] > -2) store_shared<T>(to + m * SPATIAL_THREADS + threadIdx.x, run[m]);
        }
    }
};

// A run of each element of a rectangle, from a channel on; 0 outside of the image. One by one, so that
// many blocks fit a processor.
template <class T>
__device__ __forceinline__ void stage_image(const sampler_vector_args &a, uint32_t n, int channel,
                                            const rectangle &r, uint4 *to)
{
    const T *x = static_cast<const T *>(a.x.data) + n * a.x.image + channel * a.x.channel;
    const int area = r.height * r.width;
    const int skip_rows = SPATIAL_THREADS / r.width, skip_columns = SPATIAL_THREADS % r.width;
    int row = (int)threadIdx.x / r.width, column = (int)threadIdx.x % r.width;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < area; i += SPATIAL_THREADS) {
        const int h = r.row + row, w = r.column + column;
        const bool in = (uint32_t)h < (uint32_t)a.height && (uint32_t)w < (uint32_t)a.width;
        pack<T> p;
        load_pack(a.x, x + (int64_t)h * a.x.row + (int64_t)w * a.x.column, in, a.channels - channel,
                  p);
        store_shared<T>(to + i, p);
        row += skip_rows;
        column += skip_columns;
        if (column >= r.width) {
            column -= r.width;
            row += 1;
        }
    }
}

// ---- The sampler ----

// Place k of a thread's in a tile; whether it is one of the grid.
__device__ __forceinline__ bool place_in(const sampler_vector_args &a, const spot &tile, int k,
                                         spot &at)
{
    const int x = (int)threadIdx.x & ((1 << a.lanes_log2) - 1);
    const int y = (int)threadIdx.x >> a.lanes_log2;
    at.n = tile.n;
    at.p = tile.p + y + (k >> a.across_log2) * (SPATIAL_THREADS >> a.lanes_log2);
    at.q = tile.q + x + ((k & ((1 << a.across_log2) - 1)) << a.lanes_log2);
    return at.p < a.rows && at.q < a.columns;
}

// The corners, least and largest, of the cells that places look into.
struct reach {
    int four[4] = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
    template <class A> __device__ __forceinline__ void add(const sight<A> &k)
    {
        if (!k.seen) return;
        four[0] = max(four[0], -k.row);
        four[1] = max(four[1], k.row);
        four[2] = max(four[2], -k.column);
        four[3] = max(four[3], k.column);
    }
    __device__ __forceinline__ void of_warp()
    {
#pragma unroll
        for (int i = 0; i < 4; ++i) four[i] = __reduce_max_sync(0xffffffffu, four[i]);
    }
};

// What the places of a block see of the image.
__device__ __forceinline__ rectangle all_seen(reach &own)
{
    __shared__ int shared[4 * SPATIAL_THREADS / 32];
    own.of_warp();
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int i = 0; i < 4; ++i) shared[4 * (threadIdx.x / 32) + i] = own.four[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int w = 0; w < SPATIAL_THREADS / 32; ++w) {
            own.four[i] = max(own.four[i], shared[4 * w + i]);
        }
    }
    if (own.four[0] == INT32_MIN) return {0, 0, 0, 1};
    return {-own.four[0], -own.four[2], own.four[0] + own.four[1] + 2,
            own.four[2] + own.four[3] + 2};
}

// Where a place looks, kept for all channels: the place of its cell's corner in the rectangle, -1 where
// it sees nothing, and how far down and right of it.
template <class A> struct kept_places {
    A down[SPATIAL_PLACES * SPATIAL_THREADS], right[SPATIAL_PLACES * SPATIAL_THREADS];
    int corner[SPATIAL_PLACES * SPATIAL_THREADS];
};

// A run of a place, whose four pixels are in shared memory.
template <class T, class A>
__device__ __forceinline__ void sample_shared(const uint4 *x, int width, int corner, A down,
                                              A right, A *value)
{
    const uint4 *from = x + max(corner, 0);
    const pack<T> x00 = load_shared<T>(from), x01 = load_shared<T>(from + 1),
                  x10 = load_shared<T>(from + width), x11 = load_shared<T>(from + width + 1);
    const A w00 = (1 - down) * (1 - right), w01 = (1 - down) * right, w10 = down * (1 - right),
            w11 = down * right;
#pragma unroll
    for (int v = 0; v < pack_of<T>; ++v) {
        value[v] = w00 * wd_widen(x00.get(v)) + w01 * wd_widen(x01.get(v)) +
                   (w10 * wd_widen(x10.get(v)) + w11 * wd_widen(x11.get(v)));
        if (corner < 0) value[v] = (down + right) * 0; // NaN of a place that is
    }
}

template <class T> __device__ __forceinline__ void sample_tiles(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    __shared__ kept_places<A> kept;
    uint4 *image = wd_dynamic_shared<uint4>();
    uint32_t n = blockIdx.x;
    spot tile, at;
    reach own;
    wd_wait_for_previous();
    tile.q = (int)take_rest(n, a.by_column) << (a.lanes_log2 + a.across_log2);
    tile.p = (int)take_rest(n, a.by_row) *
             (SPATIAL_THREADS * SPATIAL_PLACES >> (a.lanes_log2 + a.across_log2));
    const int first = (int)take_rest(n, a.by_chunk) * a.chunk;
    const int last = min(first + a.chunk, a.channels);
    tile.n = n;
    sight<A> looks[SPATIAL_PLACES];
#pragma unroll
    for (int k = 0; k < SPATIAL_PLACES; ++k) {
        looks[k].seen = false;
        looks[k].row = looks[k].column = 0;
        looks[k].down = looks[k].right = 0;
        if (place_in(a, tile, k, at)) looks[k].template look<T>(a, at.number(a));
        own.add(looks[k]);
    }
    const rectangle r = all_seen(own);
    if (r.height > a.room || r.width > a.room || r.height * r.width > a.room) {
#pragma unroll 1
        for (int k = 0; k < SPATIAL_PLACES; ++k) {
            sight<A> look;
            if (!place_in(a, tile, k, at)) continue;
            look.template look<T>(a, at.number(a));
            sample_place<T>(a, at, look, first, last, a.x.column);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < SPATIAL_PLACES; ++k) {
        const int i = k * SPATIAL_THREADS + (int)threadIdx.x;
        const int corner = (looks[k].row - r.row) * r.width + looks[k].column - r.column;
        kept.corner[i] = looks[k].seen ? corner : -1;
        kept.down[i] = looks[k].down;
        kept.right[i] = looks[k].right;
    }
    for (int c = first; c < last; c += pack_of<T>) {
        if (c > first) __syncthreads();
        stage_image<T>(a, tile.n, c, r, image);
        __syncthreads();
#pragma unroll 2
        for (int k = 0; k < SPATIAL_PLACES; ++k) {
            const int i = k * SPATIAL_THREADS + (int)threadIdx.x;
            A value[pack_of<T>];
            if (!place_in(a, tile, k, at)) continue;
            sample_shared<T>(image, r.width, kept.corner[i], kept.down[i], kept.right[i], value);
            put_pack<T>(a, a.y, element_of<T>(a.y, at) + c * a.y.channel, a.channels - c, value);
        }
    }
}

} // namespace

#endif
