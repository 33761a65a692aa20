// SPDX-License-Identifier: Apache-2.0
//
// How a part of an image comes into shared memory, its channels side by side in runs of 16 bytes, and
// what places of the grid reach.
#ifndef WD_OPS_SPATIAL_SAMPLER_TILES_CUH
#define WD_OPS_SPATIAL_SAMPLER_TILES_CUH

#include "gpu/device/shared.cuh"
#include "ops/spatial/sampler_vector.cuh"

namespace {

// Channels of a run.
template <class T> constexpr int pack_of = 16 / (int)sizeof(T);

template <class T> using pack = wd_run<T, pack_of<T>>;

// Channels `first` .. of one element as numbers of type S, 0 where there are none; `at` is that of channel `first`.
// RUNS: channels may be runs; S is then T.
template <bool RUNS = true, class T, class S>
__device__ __forceinline__ void load_pack(const sampler_image &from, const T *at, bool in,
                                          int channels, wd_run<S, pack_of<S>> &run)
{
    if constexpr (RUNS) {
        if (from.runs) {
            run_if(in, at, run);
            return;
        }
    }
#pragma unroll
    for (int v = 0; v < pack_of<S>; ++v) {
        S value;
        wd_narrow(value, (typename accumulator<S>::type)0);
        if (in && v < channels) {
            if constexpr (sizeof(S) == sizeof(T)) value = at[v * from.channel];
            else value = wd_widen(at[v * from.channel]);
        }
        run.put(v, value);
    }
}

// P channels of one element.
template <class T, bool RUNS = true, int P = pack_of<T>, class A>
__device__ __forceinline__ void put_pack(const sampler_vector_args &a, const sampler_image &to,
                                         T *at, int channels, const A *value)
{
    if constexpr (RUNS) {
        if (to.runs) {
            put<T, P>(a, at, value);
            return;
        }
    }
#pragma unroll
    for (int v = 0; v < P; ++v) {
        if (v >= channels) break;
        T *const one = at + v * to.channel;
        if constexpr (RUNS) {
            put<T, 1>(a, one, value + v);
        } else {
            const A old = a.blends ? wd_widen(*one) : (A)0;
            wd_narrow(*one, blended<A>(a.scales, a.alpha, value[v], a.blends, a.beta, old));
        }
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
template <class T, int M, bool RUNS = true, class S = T> struct stager {
    static constexpr int P = pack_of<S>;
    int from[M]; // in a plane; -1: 0 instead, -2: none
    pack<S> run[M];

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
            load_pack<RUNS>(image, x + from[m], from[m] >= 0, channels, run[m]);
        }
    }
    __device__ __forceinline__ void store(uint4 *to) const
    {
#pragma unroll
        for (int m = 0; m < M; ++m) {
            if (from[m] > -2) store_shared<S>(to + m * SPATIAL_THREADS + threadIdx.x, run[m]);
        }
    }
};

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

} // namespace

#endif
