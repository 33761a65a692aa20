// SPDX-License-Identifier: Apache-2.0
//
// The sampler by windows, of planes of two bytes: four channels of a pixel are brought together in
// shared memory, so that one read has a pixel of all of them. A thread has its copies to itself: it
// waits for what it asked for, spreads it into the window, asks for the next channels in the same
// place, and meets the others once a stage.
#ifndef WD_OPS_SPATIAL_SAMPLER_INTERLEAVED_CUH
#define WD_OPS_SPATIAL_SAMPLER_INTERLEAVED_CUH

#include "ops/spatial/sampler_window.cuh"

namespace {

// Copies on their way lie as they are counted, channel by channel, with no zeros between them: 16 bytes
// each. After them come two windows, in which a pixel has 8 bytes.
template <class T> struct interleaver {
    static constexpr int U = 4, UNIT = 8; // pixels of a copy
    static constexpr int COPIES = SAMPLE_ROOM / UNIT;
    static_assert(U * COPIES * 16 + 2 * SAMPLE_ROOM * 8 <=
                      WINDOW_STAGES * WINDOW_BYTES * SAMPLE_ROOM,
                  "all of it has room where three stages have");
    typedef window<T, WINDOW_THREADS> window_of_block;

    // `left` channels from `plane` on, U at most.
    static __device__ __forceinline__ void ask(const window_of_block &w, const sampler_image &image,
                                               const T *plane, int left, uint4 *copies)
    {
        int r = w.first_row, c = w.first_unit;
        uint4 *to = copies + threadIdx.x;
#pragma unroll 1
        while (r < w.rows) {
            const T *from = plane + ((w.row + r) * image.row + w.column + c * UNIT);
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (u < left) wd_copy_async<16, false>(to + u * COPIES, from);
                from += image.channel;
            }
            to += WINDOW_THREADS;
            step(w, r, c);
        }
        wd_copies_end();
    }
    // What the thread asked for, into a window. Lanes take pairs of pixels in an order of their own:
    // then neither these reads nor the writes of a warp meet in a bank.
    static __device__ __forceinline__ void spread(const window_of_block &w, const uint4 *copies,
                                                  uint2 *window)
    {
        const int turn = (int)(threadIdx.x / 2 + threadIdx.x / 8) % U;
        int r = w.first_row, c = w.first_unit;
        const uint32_t *from = reinterpret_cast<const uint32_t *>(copies + threadIdx.x);
#pragma unroll 1
        while (r < w.rows) {
            uint4 *const to =
                reinterpret_cast<uint4 *>(window + (r + 1) * w.pitch + UNIT + c * UNIT);
#pragma unroll
            for (int i = 0; i < U; ++i) {
                const int at = (i + turn) % U;
                uint32_t pair[U];
#pragma unroll
                for (int u = 0; u < U; ++u) pair[u] = from[u * COPIES * 4 + at];
                to[at] = make_uint4(
                    __byte_perm(pair[0], pair[1], 0x5410), __byte_perm(pair[2], pair[3], 0x5410),
                    __byte_perm(pair[0], pair[1], 0x7632), __byte_perm(pair[2], pair[3], 0x7632));
            }
            from += WINDOW_THREADS * 4;
            step(w, r, c);
        }
    }
    static __device__ __forceinline__ void step(const window_of_block &w, int &r, int &c)
    {
        r += w.step_row;
        c += w.step_unit;
        if (c >= w.units) {
            c -= w.units;
            r += 1;
        }
    }
};

// A pixel's channels.
template <class T> __device__ __forceinline__ wd_run<T, 4> pixel_at(const uint2 *at)
{
    const uint2 both = *at;
    wd_run<T, 4> run;
    run.word[0] = both.x;
    run.word[1] = both.y;
    return run;
}

template <class T, int K>
__device__ __forceinline__ void sample_interleaved(const sampler_window_args &a)
{
    typedef interleaver<T> mix;
    constexpr int U = mix::U;
    __shared__ int scratch[4 * WINDOW_THREADS / 32];
    uint4 *const copies = wd_dynamic_shared<uint4>();
    uint2 *const windows = reinterpret_cast<uint2 *>(copies + U * mix::COPIES);
    const factors<float> f = {(float)a.all.alpha, (float)a.all.beta};
    viewers<T, K, U, SAMPLE_ROOM> v;
    uint32_t n = blockIdx.x;
    uint32_t chunk = take_rest(n, a.by_block);
    const uint32_t tile = take_rest(chunk, a.places.by_tile);
    const int first = (int)chunk * a.all.chunk;
    int left = min(a.all.chunk, a.all.channels - first);
    wd_wait_for_previous();
    if (!v.find(a, tile, n, scratch)) {
        spot at;
        at.n = n;
#pragma unroll 1
        for (int k = 0; k < K; ++k) {
            if (v.place(a, tile, k, at)) sample_place<T>(a.all, f, at, first, first + left);
        }
        return;
    }
    const T *x = static_cast<const T *>(a.all.x.data) + n * a.all.x.image + first * a.all.x.channel;
    T *y = static_cast<T *>(a.all.y.data) + n * a.all.y.image + first * a.all.y.channel;
    mix::ask(v.w, a.all.x, x, left, copies);
    if (!a.all.scales) v.forget();
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < SAMPLE_ROOM; i += WINDOW_THREADS) { // both windows
        reinterpret_cast<uint4 *>(windows)[i] = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    uint2 *in = windows;
#pragma unroll 1
    for (; left > 0; left -= U) {
        wd_copies_wait<0>();
        mix::spread(v.w, copies, in);
        x += U * a.all.x.channel;
        if (left > U) mix::ask(v.w, a.all.x, x, left - U, copies);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < K; ++k) {
            if (v.to[k] < 0) continue;
            const uint2 *from = in + v.at[k], *below = from + v.w.pitch;
            const wd_run<T, U> x00 = pixel_at<T>(from), x01 = pixel_at<T>(from + 1),
                               x10 = pixel_at<T>(below), x11 = pixel_at<T>(below + 1);
            const float low = f.alpha * v.down[k], up = f.alpha * (1 - v.down[k]);
            const float before = 1 - v.right[k];
            const float w00 = up * before, w01 = up * v.right[k], w10 = low * before,
                        w11 = low * v.right[k];
            float value[U];
            T *to = y + v.to[k];
#pragma unroll
            for (int u = 0; u < U; ++u) {
                value[u] = w00 * wd_widen(x00.get(u)) + w01 * wd_widen(x01.get(u)) +
                           (w10 * wd_widen(x10.get(u)) + w11 * wd_widen(x11.get(u)));
            }
            if (left >= U && !a.all.blends) {
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    wd_narrow(*to, value[u]);
                    to += a.all.y.channel;
                }
            } else {
#pragma unroll 1
                for (int u = 0; u < min(U, left); ++u) {
                    const float old = a.all.blends ? f.beta * wd_widen(*to) : 0.0f;
                    wd_narrow(*to, value[0] + old);
                    to += a.all.y.channel;
#pragma unroll
                    for (int i = 1; i < U; ++i) value[i - 1] = value[i];
                }
            }
        }
        y += U * a.all.y.channel;
        in = in == windows ? windows + SAMPLE_ROOM : windows;
    }
}

} // namespace

#endif
