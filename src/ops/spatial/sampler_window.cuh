// SPDX-License-Identifier: Apache-2.0
//
// The sampler by windows. A block has a tile of places, finds the part of the image that they look at, and
// brings it to shared memory, some channels ahead: by asynchronous copies of 16 bytes, in which every
// byte comes once. What a place's four pixels count and where they are there stays in registers for
// all channels. Around a window are zeros, so that nothing is asked about a pixel; a place that sees
// nothing looks at them. Where a window does not fit, or rows are not aligned, a place looks into device
// memory.
#ifndef WD_OPS_SPATIAL_SAMPLER_WINDOW_CUH
#define WD_OPS_SPATIAL_SAMPLER_WINDOW_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/shared.cuh"
#include "ops/spatial/sampler_planes.cuh"
#include "ops/spatial/sampler_regions.cuh"

namespace {

// Part of a plane: its rows and columns that lie within the image. In shared memory there are zeros before
// every row, and a row of zeros above and below.
template <class T, int THREADS> struct window {
    static constexpr int PAD = 16 / (int)sizeof(T);
    int row, column, rows, pitch;
    int units;                                      // copies of a row, of 16 bytes
    int first_row, first_unit, step_row, step_unit; // the thread's copies

    // Rows top .. bottom, columns left .. right of an image.
    __device__ __forceinline__ void set(int top, int bottom, int left, int right)
    {
        row = top;
        rows = max(bottom - top + 1, 0);
        column = left & ~(PAD - 1);
        units = rows > 0 ? (right - column + PAD) / PAD : 1;
        pitch = PAD + units * PAD;
        first_row = (int)(threadIdx.x / (uint32_t)units);
        first_unit = (int)threadIdx.x - first_row * units;
        step_row = (int)((uint32_t)THREADS / (uint32_t)units);
        step_unit = THREADS - step_row * units;
    }
    __device__ __forceinline__ int offset(int r, int c) const
    {
        return (r - row + 1) * pitch + c - column + PAD;
    }
    // 31 bits count it, whatever places see: spatial_vector.h says why.
    __device__ __forceinline__ int size() const
    {
        return (rows + 2) * pitch + PAD;
    }
    // U channels of the image from `plane` on, of which `left` are there, into windows ROOM elements
    // apart.
    template <int U, int ROOM>
    __device__ __forceinline__ void bring(const sampler_image &image, const T *plane, int left,
                                          T *to) const
    {
        if (left >= U) copy<U, ROOM>(image, plane, U, to);
        else copy<1, ROOM>(image, plane, left, to);
    }
    // `left` of them, U at a time.
    template <int U, int ROOM>
    __device__ __forceinline__ void copy(const sampler_image &image, const T *plane, int left,
                                         T *to) const
    {
#pragma unroll 1
        for (; left > 0; left -= U) {
            int r = first_row, c = first_unit;
#pragma unroll 1
            while (r < rows) {
                const T *from = plane + ((row + r) * image.row + column + c * PAD);
                T *put = to + (r + 1) * pitch + PAD + c * PAD;
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    wd_copy_async<16, false>(put + u * ROOM, from);
                    from += image.channel;
                }
                r += step_row;
                c += step_unit;
                if (c >= units) {
                    c -= units;
                    r += 1;
                }
            }
            plane += U * image.channel;
            to += U * ROOM;
        }
    }
};

// The reach of all threads of a block, from each thread's; `scratch` has room for four numbers a warp.
template <int THREADS> __device__ __forceinline__ void reach_of_block(reach &own, int *scratch)
{
    constexpr int WARPS = THREADS / 32;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    own.of_warp();
    __syncthreads();
    if (lane < 4) {
        const int upper = lane & 1 ? own.four[1] : own.four[0];
        const int lower = lane & 1 ? own.four[3] : own.four[2];
        scratch[lane * WARPS + warp] = lane & 2 ? lower : upper;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i) own.four[i] = lane < WARPS ? scratch[i * WARPS + lane] : INT32_MIN;
    own.of_warp();
}

// Channels of a stage.
template <class T> constexpr int window_channels = WINDOW_BYTES / (int)sizeof(T);

// The places of a block's tile, K of them each thread's.
template <class T, int K, int U, int ROOM> struct viewers {
    typedef typename accumulator<T>::type A;
    int at[K]; // in the window
    int to[K]; // in a plane of y; -1: there is no such place
    A down[K], right[K];
    window<T, WINDOW_THREADS> w;

    // Place k of the thread in a tile; whether there is one.
    static __device__ __forceinline__ bool place(const sampler_window_args &a, uint32_t tile, int k,
                                                 spot &at)
    {
        const uint32_t i = threadIdx.x + k * WINDOW_THREADS;
        const uint32_t line = wd_fastdiv_quotient(i, a.places.by_width);
        at.q = (int)take_rest(tile, a.places.by_column) * a.places.width +
               (int)(i - line * a.places.by_width.divisor);
        at.p = (int)(tile * (uint32_t)a.places.height + line);
        return line < (uint32_t)a.places.height && at.p < a.all.rows && at.q < a.all.columns;
    }
    // Whether the window fits, and the grid can be read by pairs.
    __device__ __forceinline__ bool find(const sampler_window_args &a, uint32_t tile, uint32_t n,
                                         int *scratch)
    {
        constexpr int TOGETHER = K < 4 ? K : 4; // are asked for before the first is looked at
        int row[K];
        reach own;
        spot where;
        where.n = n;
        if (!a.all.pairs) return false;
#pragma unroll
        for (int first = 0; first < K; first += TOGETHER) {
            wd_run<T, 2> said[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                const int k = first + i;
                to[k] = -1;
                if (!place(a, tile, k, where)) continue;
                to[k] = where.p * a.all.y.row + where.q * a.all.y.column;
                said[i].load(static_cast<const T *>(a.all.grid) + 2 * where.number(a.all));
            }
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                const int k = first + i;
                sight<A> s;
                row[k] = INT32_MIN;
                down[k] = right[k] = 0;
                at[k] = 0;
                if (to[k] < 0) continue;
                s.set(a.all, wd_widen(said[i].get(0)), wd_widen(said[i].get(1)));
                own.add(s);
                down[k] = s.down;
                right[k] = s.right;
                if (s.seen) row[k] = s.row;
                at[k] = s.column;
            }
        }
        reach_of_block<WINDOW_THREADS>(own, scratch);
        const bool any = own.four[1] != INT32_MIN;
        w.set(any ? max(-own.four[0], 0) : 0, any ? min(own.four[1] + 1, a.all.height - 1) : -1,
              any ? max(-own.four[2], 0) : 0, any ? min(own.four[3] + 1, a.all.width - 1) : 0);
#pragma unroll
        for (int k = 0; k < K; ++k) {
            at[k] = row[k] == INT32_MIN ? 0 : w.offset(row[k], at[k]);
        }
        return a.places.wide != 0 && w.size() <= ROOM;
    }
    // Lets all places look at zeros.
    __device__ __forceinline__ void forget()
    {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            at[k] = 0;
            down[k] = right[k] = 0;
        }
    }
    // Zeros for all stages, and the first two on their way.
    __device__ __forceinline__ void begin(const sampler_window_args &a, const T *x, int channels,
                                          T *stages) const
    {
        constexpr int stage = U * ROOM;
        uint4 *const zero = reinterpret_cast<uint4 *>(stages);
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < WINDOW_STAGES * stage / w.PAD; i += WINDOW_THREADS) {
            zero[i] = make_uint4(0, 0, 0, 0);
        }
        __syncthreads();
#pragma unroll 1
        for (int s = 0; s < 2; ++s) {
            w.template bring<U, ROOM>(a.all.x, x, channels, stages);
            wd_copies_end();
            x += U * a.all.x.channel;
            channels -= U;
            stages += stage;
        }
    }
    // Waits for a stage, after which `channels` are left, and brings the one two further on.
    __device__ __forceinline__ void next(const sampler_window_args &a, const T *x, int channels,
                                         T *stages, int into) const
    {
        wd_copies_wait<1>();
        __syncthreads();
        w.template bring<U, ROOM>(a.all.x, x + 2 * U * a.all.x.channel, channels - 2 * U,
                                  stages + into * U * ROOM);
        wd_copies_end();
    }
};

template <class T, int K>
__device__ __forceinline__ void sample_windows(const sampler_window_args &a)
{
    typedef typename accumulator<T>::type A;
    constexpr int U = window_channels<T>, room = SAMPLE_ROOM;
    __shared__ int scratch[4 * WINDOW_THREADS / 32];
    T *const stages = wd_dynamic_shared<T>();
    const factors<A> f = {(A)a.all.alpha, (A)a.all.beta};
    viewers<T, K, U, room> v;
    uint32_t n = blockIdx.x;
    uint32_t chunk = take_rest(n, a.by_block);
    const uint32_t tile = take_rest(chunk, a.places.by_tile);
    const int first = (int)chunk * a.all.chunk;
    const int last = min(first + a.all.chunk, a.all.channels);
    wd_wait_for_previous();
    if (!v.find(a, tile, n, scratch)) {
        spot at;
        at.n = n;
#pragma unroll 1
        for (int k = 0; k < K; ++k) {
            if (v.place(a, tile, k, at)) sample_place<T>(a.all, f, at, first, last);
        }
        return;
    }
    const T *x = static_cast<const T *>(a.all.x.data) + n * a.all.x.image + first * a.all.x.channel;
    T *y = static_cast<T *>(a.all.y.data) + n * a.all.y.image + first * a.all.y.channel;
    if (!a.all.scales) v.forget();
    v.begin(a, x, last - first, stages);
    int stage = 0;
#pragma unroll 1
    for (int c = first; c < last; c += U) {
        const T *in = stages + stage * U * room;
        v.next(a, x, last - c, stages, stage == 0 ? 2 : stage - 1);
        stage = stage == 2 ? 0 : stage + 1;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            if (v.to[k] < 0) continue;
            const T *from = in + v.at[k], *below = from + v.w.pitch;
            const A low = f.alpha * v.down[k], up = f.alpha * (1 - v.down[k]);
            const A left = 1 - v.right[k];
            const A w00 = up * left, w01 = up * v.right[k], w10 = low * left,
                    w11 = low * v.right[k];
            A value[U];
            T *const to = y + v.to[k];
#pragma unroll
            for (int u = 0; u < U; ++u) { // of channels that are not there: what was there before
                value[u] = w00 * wd_widen(from[u * room]) + w01 * wd_widen(from[u * room + 1]) +
                           (w10 * wd_widen(below[u * room]) + w11 * wd_widen(below[u * room + 1]));
            }
            if (a.all.blends) {
#pragma unroll 1
                for (int u = 0; u < min(U, last - c); ++u) {
                    T *const at = to + u * a.all.y.channel;
                    const A old = f.beta * wd_widen(*at);
                    wd_narrow(*at, value[0] + old);
#pragma unroll
                    for (int i = 1; i < U; ++i) value[i - 1] = value[i];
                }
            } else {
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    if (u == 0 || c + u < last) wd_narrow(to[u * a.all.y.channel], value[u]);
                }
            }
        }
        x += U * a.all.x.channel;
        y += U * a.all.y.channel;
    }
    wd_copies_wait_all();
}

// The gradients of the grid: what the four pixels of a place are, times dy, is summed over the channels.
template <class T, int K>
__device__ __forceinline__ void slope_windows(const sampler_window_args &a)
{
    typedef typename accumulator<T>::type A;
    constexpr int room = SLOPE_ROOM;
    constexpr int U = 2; // more of two bytes take too many registers
    __shared__ int scratch[4 * WINDOW_THREADS / 32];
    T *const stages = wd_dynamic_shared<T>();
    viewers<T, K, U, room> v;
    A sum[K][4];
    spot at;
    uint32_t n = blockIdx.x;
    const uint32_t tile = take_rest(n, a.places.by_tile);
    n += a.all.first_image;
    at.n = n;
    wd_wait_for_previous();
    if (!v.find(a, tile, n, scratch)) {
#pragma unroll 1
        for (int k = 0; k < K; ++k) {
            sight<A> s;
            if (!v.place(a, tile, k, at)) continue;
            s.template look<T>(a.all, at.number(a.all));
            if (s.seen) put_place<T, 1>(a.all, at, s);
        }
        return;
    }
    const T *x = static_cast<const T *>(a.all.x.data) + n * a.all.x.image;
    const T *dy = static_cast<const T *>(a.all.y.data) + n * a.all.y.image;
    v.begin(a, x, a.all.channels, stages);
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[k][i] = 0;
    }
    int stage = 0;
#pragma unroll 1
    for (int left = a.all.channels; left > 0; left -= U) {
        const T *in = stages + stage * U * room;
        T share[K][U];
#pragma unroll
        for (int k = 0; k < K; ++k) {
#pragma unroll
            for (int u = 0; u < U; ++u) {
                wd_narrow(share[k][u], (A)0);
                if (v.to[k] >= 0 && u < left) share[k][u] = dy[u * a.all.y.channel + v.to[k]];
            }
        }
        v.next(a, x, left, stages, stage == 0 ? 2 : stage - 1);
        stage = stage == 2 ? 0 : stage + 1;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const T *from = in + v.at[k], *below = from + v.w.pitch;
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (u >= left) break;
                const A g = wd_widen(share[k][u]);
                sum[k][0] += g * wd_widen(from[u * room]);
                sum[k][1] += g * wd_widen(from[u * room + 1]);
                sum[k][2] += g * wd_widen(below[u * room]);
                sum[k][3] += g * wd_widen(below[u * room + 1]);
            }
        }
        x += U * a.all.x.channel;
        dy += U * a.all.y.channel;
    }
    wd_copies_wait_all();
#pragma unroll
    for (int k = 0; k < K; ++k) { // those that see nothing: see sampler_boxes
        sight<A> s;
        if (v.at[k] == 0 || !v.place(a, tile, k, at)) continue;
        s.template look<T>(a.all, at.number(a.all)); // again: fewer registers
        put_slopes<T>(a.all, at.number(a.all),
                      (1 - s.down) * (sum[k][1] - sum[k][0]) + s.down * (sum[k][3] - sum[k][2]),
                      (1 - s.right) * (sum[k][2] - sum[k][0]) + s.right * (sum[k][3] - sum[k][1]));
    }
}

} // namespace

#endif
