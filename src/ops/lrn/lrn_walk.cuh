// SPDX-License-Identifier: Apache-2.0
//
// Local response normalization where pixels are neighbours (NCHW), any planes. A block has a span of
// pixels and walks along the channels. Rows of pixels come to shared memory by asynchronous copies of 16
// aligned bytes, stage after stage, two of them ahead: how much is on its way does not depend on registers, on
// the type, or on how planes are aligned (a row keeps the shift that it has in memory). A thread has one
// pixel at a time and works on the eight channels of a stage; windows that lie across stages find the
// earlier ones still there. What a window holds is added up anew, in pieces that neighbours share.
//
// Backward, what earlier stages leave for the next, shares and direct parts, is kept in shared memory, too.
// Arrays over channels begin with the newest: stage s has the channels begin + 8 s + 7 - k, k = 0 .. 7, of x;
// those whose windows are whole then are `ahead` channels older, and those whose shares are, n - 1.
#ifndef WD_OPS_LRN_WALK_CUH
#define WD_OPS_LRN_WALK_CUH

#include "gpu/device/async.cuh"
#include "ops/lrn/lrn_vector.cuh"
#include "ops/lrn/lrn_walk_args.h"
#include "ops/lrn/window_sums.cuh"

namespace {
namespace walk {

enum { S = LRN_STAGE, LANES = 32, WARPS = LRN_WALK_THREADS / LANES, CHUNK = 16 };

// Rows of a tensor on their way to a ring of stages.
template <class T> struct rows {
    const T *from;   // the block's first pixel in channel 0
    const char *low; // the tensor
    const char *high;
    int64_t step; // from channel to channel
    unsigned char *ring;
    uint32_t *begins; // of rows in the ring: they keep the shift that they have in memory
    int stages, pitch, width, first, last; // `first` to `last` - 1: the channels that are needed

    // Where pixel 0 of the rows r to r + 3 of a stage lies in the ring.
    __device__ __forceinline__ void four(int slot, int r, uint32_t *where) const
    {
        const uint4 v = *reinterpret_cast<const uint4 *>(begins + slot * S + r);
        where[0] = v.x, where[1] = v.y, where[2] = v.z, where[3] = v.w;
    }
    // Of one row.
    __device__ __forceinline__ uint32_t one(int slot, int r) const
    {
        return begins[slot * S + r];
    }
    __device__ __forceinline__ T at(uint32_t where, int p) const
    {
        return reinterpret_cast<const T *>(ring + where)[p];
    }
    // The stage whose row 0 is channel c, to a slot: a warp brings a row. What is not needed is 0.
    __device__ __forceinline__ void bring(int slot, int c) const
    {
        const int lane = (int)threadIdx.x % LANES * CHUNK;
#pragma unroll 1
        for (int r = (int)threadIdx.x / LANES; r < S; r += WARPS) {
            const uint32_t where = (uint32_t)((slot * S + r) * pitch);
            unsigned char *to = ring + where;
            const T *source = from + (c + r) * step;
            const int by = (int)(reinterpret_cast<uintptr_t>(source) % CHUNK);
            const char *begin = reinterpret_cast<const char *>(source) - by;
            const int bytes = by + width * (int)sizeof(T);
            if (lane == 0) begins[slot * S + r] = where + (uint32_t)by;
            if (c + r < first || c + r >= last) {
#pragma unroll 1
                for (int i = lane; i < pitch; i += LANES * CHUNK) {
                    *reinterpret_cast<uint4 *>(to + i) = make_uint4(0, 0, 0, 0);
                }
            } else if (begin >= low && begin + pitch <= high) {
#pragma unroll 1
                for (int i = lane; i < bytes; i += LANES * CHUNK) {
                    wd_copy_async<16, false>(to + i, begin + i);
                }
            } else { // at an end of the tensor: nothing beyond it is read
#pragma unroll 1
                for (int e = by + lane / CHUNK * (int)sizeof(T); e < bytes;
                     e += LANES * (int)sizeof(T)) {
                    *reinterpret_cast<T *>(to + e) = *reinterpret_cast<const T *>(begin + e);
                }
            }
        }
    }
    __device__ __forceinline__ void clear_slot(int slot) const
    {
        uint4 *to = reinterpret_cast<uint4 *>(ring + slot * S * pitch);
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < S * pitch / CHUNK; i += LRN_WALK_THREADS) {
            to[i] = make_uint4(0, 0, 0, 0);
        }
        if (threadIdx.x < S) {
            begins[slot * S + threadIdx.x] = (uint32_t)((slot * S + (int)threadIdx.x) * pitch);
        }
    }
};

// Where a block works.
struct place {
    int first, last; // its channels
    int width;       // its pixels
    int64_t pixel;   // the first one
    uint32_t image;
    __device__ __forceinline__ place(const lrn_walk_args &a)
    {
        image = blockIdx.x;
        pixel = (int64_t)wd_take_rest(image, a.v.by_run) * a.span;
        first = (int)wd_take_rest(image, a.v.by_chunk) * a.v.chunk;
        last = min(first + a.v.chunk, a.v.channels);
        width = (int)min((int64_t)a.span, a.plane - pixel);
    }
};

// The newest of a ring's stages.
struct turn {
    int newest, stages;
    __device__ __forceinline__ int before(int by) const
    {
        return newest >= by ? newest - by : newest - by + stages;
    }
    __device__ __forceinline__ int ahead(int by) const
    {
        return newest + by < stages ? newest + by : newest + by - stages;
    }
    __device__ __forceinline__ void advance()
    {
        newest = ahead(1);
    }
};

// Where a tensor's rows begin: newest first, of the newest stage and those before it.
template <class T, int N, int COUNT>
__device__ __forceinline__ void find_rows(const rows<T> &x, const turn &at, int n, uint32_t *where)
{
#pragma unroll
    for (int k = 0; k < COUNT; k += 4) {
        uint32_t four[4] = {0, 0, 0, 0};
        if (N || k < S + n - 1) x.four(at.before(k / S), S - 4 - k % S, four);
#pragma unroll
        for (int i = 0; i < 4 && k + i < COUNT; ++i) where[k + i] = four[3 - i];
    }
}

// A pixel's x, likewise.
template <class T, int N, int COUNT, class A>
__device__ __forceinline__ void load_column(const rows<T> &x, const uint32_t *where, int p, int n,
                                            A *value)
{
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        value[k] = 0;
        if (N || k < S + n - 1) value[k] = wd_widen(x.at(where[k], p));
    }
}

// The same for one channel, `by` before the newest one.
template <class T>
__device__ __forceinline__ typename wd_accumulator<T>::type load_one(const rows<T> &x,
                                                                     const turn &at, int p, int by)
{
    return wd_widen(x.at(x.one(at.before(by / S), S - 1 - by % S), p));
}

// Results of the channels newest, newest - 1 ..., as far as they are the block's.
template <class T, class A>
__device__ __forceinline__ void put_column(const lrn_walk_args &a, const place &at, T *out,
                                           int newest, A *value)
{
    const A alpha = (A)a.v.alpha, beta = (A)a.v.beta;
    const int64_t step = a.v.out.plane;
    const uint32_t own = (uint32_t)(newest - at.first), count = (uint32_t)(at.last - at.first);
    T *to = out + newest * step;
#pragma unroll
    for (int j = 0; j < S; ++j) value[j] = a.v.scales ? alpha * value[j] : (A)0;
    if (a.v.blends) {
        const T *from = to;
#pragma unroll
        for (int j = 0; j < S; ++j) {
            if (own - j < count) value[j] += beta * wd_widen(*from);
            from -= step;
        }
    }
#pragma unroll
    for (int j = 0; j < S; ++j) {
        if (own - j < count) wd_narrow(*to, value[j]);
        to -= step;
    }
}

// N: the window, 0 for any.
template <class T, int N> __device__ __forceinline__ void forward(const lrn_walk_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int MOST = N ? N : LRN_WINDOW_MAX;
    constexpr int BEHIND = MOST - 1 <= S ? 1 : 2;
    constexpr int COUNT = S + MOST - 1;
    const int n = N ? N : a.v.window;
    const int ahead = N ? N - 1 - (N - 1) / 2 : a.v.ahead;
    const int stages = BEHIND + 1 + LRN_PREFETCH;
    __shared__ __align__(16) uint32_t begins[(BEHIND + 1 + LRN_PREFETCH + LRN_DY_STAGES) * S];
    const place at(a);
    const int begin = max(at.first - a.v.back, 0);
    const int end = at.last + ahead;
    const T *data = static_cast<const T *>(a.v.x.data);
    T *out = static_cast<T *>(a.v.out.data) + at.image * a.v.out.image + at.pixel;
    const rows<T> x = {data + at.image * a.v.x.image + at.pixel,
                       reinterpret_cast<const char *>(data),
                       reinterpret_cast<const char *>(data) + a.x_end,
                       a.v.x.plane,
                       lrn_shared(),
                       begins,
                       stages,
                       a.pitch,
                       at.width,
                       begin,
                       min(end, a.v.channels)};
    turn now = {0, stages};
    wd_wait_for_previous();
#pragma unroll
    for (int k = 1; k <= BEHIND; ++k) x.clear_slot(now.before(k));
    now.newest = stages - LRN_PREFETCH; // stage 0 goes to slot 0
#pragma unroll 1
    for (int c = begin - LRN_PREFETCH * S; c < end; c += S, now.advance()) {
        wd_copies_wait<LRN_PREFETCH - 1>();
        __syncthreads();
        if (c + LRN_PREFETCH * S < end) x.bring(now.ahead(LRN_PREFETCH), c + LRN_PREFETCH * S);
        wd_copies_end();
        if (c < begin) continue;
        uint32_t where[COUNT];
        if (N) find_rows<T, N, COUNT>(x, now, n, where);
#pragma unroll 1
        for (int p = (int)threadIdx.x; p < at.width; p += LRN_WALK_THREADS) {
            A value[COUNT], square[COUNT], s[S], power[S], inverse[S];
            if (!N) { // too many to be kept from pixel to pixel
                turn again = now;
                uint32_t newest = (uint32_t)now.newest;
                wd_forget<0>(newest);
                again.newest = (int)newest;
                find_rows<T, N, COUNT>(x, again, n, where);
            }
            load_column<T, N, COUNT>(x, where, p, n, value);
#pragma unroll
            for (int k = 0; k < COUNT; ++k) square[k] = value[k] * value[k];
            window_sums<S, N, MOST>(square, n, s);
#pragma unroll
            for (int j = 0; j < S; ++j) s[j] = (A)a.v.k + (A)a.v.factor * s[j];
            powers<S>(a.v, s, power, inverse);
#pragma unroll
            for (int j = 0; j < S; ++j) {
                if (N) power[j] *= value[N ? j + N - 1 - (N - 1) / 2 : 0];
                else power[j] *= load_one<T>(x, now, p, j + ahead);
            }
            put_column<T>(a, at, out + p, c + S - 1 - ahead, power);
        }
    }
    wd_copies_wait_all();
}

template <class T, int N> __device__ __forceinline__ void backward(const lrn_walk_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int MOST = N ? N : LRN_WINDOW_MAX;
    constexpr int BEHIND = MOST - 1 <= S ? 1 : 2;
    constexpr int COUNT = S + MOST - 1;
    constexpr int BACK = (MOST - 1) / 2; // the most, of any window
    const int n = N ? N : a.v.window;
    const int back = N ? BACK : a.v.back;
    const int ahead = n - 1 - back;
    const int stages = BEHIND + 1 + LRN_PREFETCH;
    __shared__ __align__(16) uint32_t begins[(BEHIND + 1 + LRN_PREFETCH + LRN_DY_STAGES) * S];
    const place at(a);
    const int begin = max(at.first - (n - 1), 0);
    const int end = at.last + n - 1;
    const T *x_data = static_cast<const T *>(a.v.x.data);
    const T *dy_data = static_cast<const T *>(a.v.dy.data);
    T *out = static_cast<T *>(a.v.out.data) + at.image * a.v.out.image + at.pixel;
    const rows<T> x = {x_data + at.image * a.v.x.image + at.pixel,
                       reinterpret_cast<const char *>(x_data),
                       reinterpret_cast<const char *>(x_data) + a.x_end,
                       a.v.x.plane,
                       lrn_shared(),
                       begins,
                       stages,
                       a.pitch,
                       at.width,
                       begin,
                       min(end, a.v.channels)};
    const rows<T> dy = {dy_data + at.image * a.v.dy.image + at.pixel,
                        reinterpret_cast<const char *>(dy_data),
                        reinterpret_cast<const char *>(dy_data) + a.dy_end,
                        a.v.dy.plane,
                        lrn_shared() + stages * S * a.pitch,
                        begins + stages * S,
                        LRN_DY_STAGES,
                        a.pitch,
                        at.width,
                        max(at.first - ahead, 0),
                        min(at.last + back, a.v.channels)};
    A *kept = reinterpret_cast<A *>(lrn_shared() + (stages + LRN_DY_STAGES) * S * a.pitch);
    A *direct_kept = kept + (n - 1) * a.span;
    turn now = {0, stages}, dy_now = {0, LRN_DY_STAGES};
    wd_wait_for_previous();
#pragma unroll
    for (int k = 1; k <= BEHIND; ++k) x.clear_slot(now.before(k));
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < (n - 1 + back) * a.span; i += LRN_WALK_THREADS) kept[i] = 0;
    now.newest = stages - LRN_PREFETCH; // stage 0 goes to slot 0
    dy_now.newest = LRN_DY_STAGES - LRN_PREFETCH;
#pragma unroll 1
    for (int c = begin - LRN_PREFETCH * S; c < end; c += S, now.advance(), dy_now.advance()) {
        wd_copies_wait<LRN_PREFETCH - 1>();
        __syncthreads();
        if (c + LRN_PREFETCH * S < end) {
            x.bring(now.ahead(LRN_PREFETCH), c + LRN_PREFETCH * S);
            dy.bring(dy_now.ahead(LRN_PREFETCH), c - ahead + LRN_PREFETCH * S);
        }
        wd_copies_end();
        if (c < begin) continue;
        uint32_t where[COUNT], dy_where[S];
        if (N) find_rows<T, N, COUNT>(x, now, n, where);
        find_rows<T, 1, S>(dy, dy_now, 1, dy_where);
#pragma unroll 1
        for (int p = (int)threadIdx.x; p < at.width; p += LRN_WALK_THREADS) {
            A value[COUNT], share[COUNT], s[S], power[S], inverse[S], direct[S + BACK];
            A *share_at = kept + p, *direct_at = direct_kept + p;
            if (!N) { // too many to be kept from pixel to pixel
                turn again = now;
                uint32_t newest = (uint32_t)now.newest;
                wd_forget<0>(newest);
                again.newest = (int)newest;
                find_rows<T, N, COUNT>(x, again, n, where);
            }
            load_column<T, N, COUNT>(x, where, p, n, value);
#pragma unroll
            for (int k = 0; k < COUNT; ++k) share[k] = value[k] * value[k]; // squares, for now
            window_sums<S, N, MOST>(share, n, s);
#pragma unroll
            for (int j = 0; j < S; ++j) s[j] = (A)a.v.k + (A)a.v.factor * s[j];
            powers<S>(a.v, s, power, inverse);
#pragma unroll
            for (int k = S; k < COUNT; ++k) {
                share[k] = 0;
                if (N || k < S + n - 1) share[k] = share_at[(k - S) * a.span];
            }
#pragma unroll
            for (int j = 0; j < S; ++j) {
                const A g = wd_widen(dy.at(dy_where[j], p));
                const A of =
                    N ? value[N ? j + N - 1 - BACK : 0] : load_one<T>(x, now, p, j + ahead);
                direct[j] = g * power[j];
                share[j] = direct[j] * of * inverse[j];
            }
#pragma unroll
            for (int k = 0; k < MOST - 1; ++k) {
                if (N || k < n - 1) share_at[k * a.span] = share[k];
            }
            if (N) {
#pragma unroll
                for (int k = 0; k < BACK; ++k) direct[S + k] = direct_at[k * a.span];
#pragma unroll
                for (int k = 0; k < BACK; ++k) direct_at[k * a.span] = direct[k];
            } else {
#pragma unroll
                for (int k = BACK - 1; k >= 0; --k) {
                    if (k < back) direct_at[(S + k) * a.span] = direct_at[k * a.span];
                }
#pragma unroll
                for (int j = 0; j < S; ++j) direct_at[j * a.span] = direct[j];
            }
            window_sums<S, N, MOST>(share, n, s);
#pragma unroll
            for (int j = 0; j < S; ++j) {
                const A own = N ? value[N ? j + N - 1 : 0] : load_one<T>(x, now, p, j + n - 1);
                const A to = N ? direct[N ? j + BACK : 0] : direct_at[(j + back) * a.span];
                s[j] = to + own * (A)a.v.share * s[j];
            }
            put_column<T>(a, at, out + p, c + S - 1 - (n - 1), s);
        }
    }
    wd_copies_wait_all();
}

} // namespace walk
} // namespace

#endif
