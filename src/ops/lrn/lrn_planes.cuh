// SPDX-License-Identifier: Apache-2.0
//
// Local response normalization where pixels are neighbours (NCHW). A thread has a run of pixels and
// walks along the channels; images of few pixels are cut into chunks of channels, each with the
// channels around it. What a window holds is added up anew for each channel, never taken away again,
// so that a NaN or an infinity is gone when its window is. Windows of five are kept in registers;
// others in shared memory, a column a thread: the sum is that of the elements since the last multiple
// of n, and that of the last elements before it, which is made once every n channels (van Herk 1992).
#ifndef WD_OPS_LRN_PLANES_CUH
#define WD_OPS_LRN_PLANES_CUH

#include "ops/lrn/lrn_vector.cuh"

namespace {
namespace planes {

// Where a thread works.
template <class T, int V> struct place {
    int first; // its channels
    int last;
    const T *x; // channel 0
    const T *dy;
    T *out;
    __device__ __forceinline__ place(const lrn_vector_args &a, uint32_t item)
    {
        const int64_t run = (int64_t)wd_take_rest(item, a.by_run) * V;
        first = (int)wd_take_rest(item, a.by_chunk) * a.chunk;
        last = min(first + a.chunk, a.channels);
        x = static_cast<const T *>(a.x.data) + item * a.x.image + run;
        dy = static_cast<const T *>(a.dy.data) + item * a.dy.image + run;
        out = static_cast<T *>(a.out.data) + item * a.out.image + run;
    }
};

// Channels c, c + 1 ... of a plane; 0 where there are none.
template <class T, int V, int U>
__device__ __forceinline__ void load_batch(wd_run<T, V> *in, const T *plane, int64_t step, int c,
                                           int low, int high)
{
    const T *at = plane + c * step;
#pragma unroll
    for (int u = 0; u < U; ++u) {
        clear(in[u]);
        if (c + u >= low && c + u < high) in[u].load(at);
        at += step;
    }
}

template <class T, int V, int N, int U>
__device__ __forceinline__ void forward_window(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int AHEAD = N - 1 - (N - 1) / 2;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const place<T, V> at(a, item);
    const int begin = at.first - (N - 1) / 2;
    const int end = min(at.last + AHEAD, a.channels);
    A ring[N][V];
#pragma unroll
    for (int i = 0; i < N * V; ++i) ring[i / V][i % V] = 0;
    for (int c = begin; c < at.last + AHEAD; c += U) {
        wd_run<T, V> in[U];
        load_batch<T, V, U>(in, at.x, a.x.plane, c, 0, end);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int own = c + u - AHEAD; // the channel whose window is whole now
            A s[V], power[V], inverse[V];
#pragma unroll
            for (int v = 0; v < V; ++v) ring[u % N][v] = wd_widen(in[u].get(v));
            if (own < at.first || own >= at.last) continue;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                A sum = 0;
#pragma unroll
                for (int i = 0; i < N; ++i) sum += ring[i][v] * ring[i][v];
                s[v] = (A)a.k + (A)a.factor * sum;
            }
            powers<V>(a, s, power, inverse);
#pragma unroll
            for (int v = 0; v < V; ++v) power[v] *= ring[(u + N - AHEAD) % N][v];
            put<T, V>(a, at.out + own * a.out.plane, power);
        }
    }
}

// LATE: it begins with the first channel that there is, not with that of the first window.
template <class T, int V, int N, int U, bool LATE = false>
__device__ __forceinline__ void backward_window(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int BACK = (N - 1) / 2;
    constexpr int AHEAD = N - 1 - BACK;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const place<T, V> at(a, item);
    const int begin = LATE ? max(at.first - (N - 1), 0) : at.first - (N - 1);
    const int end = min(at.last + N - 1, a.channels);
    const int low = max(at.first - AHEAD, 0); // of the shares that are needed
    const int high = min(at.last + BACK, a.channels);
    A x[N][V], h[N][V], direct[N][V];
#pragma unroll
    for (int i = 0; i < N * V; ++i) {
        x[i / V][i % V] = 0;
        h[i / V][i % V] = 0;
        direct[i / V][i % V] = 0;
    }
    for (int c = begin; c < at.last + N - 1; c += U) {
        wd_run<T, V> in[U], dy[U];
        load_batch<T, V, U>(in, at.x, a.x.plane, c, 0, end);
        load_batch<T, V, U>(dy, at.dy, a.dy.plane, c - AHEAD, low, high);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int sharer = c + u - AHEAD; // whose window is whole
            const int own = sharer - BACK;    // whose shares are
#pragma unroll
            for (int v = 0; v < V; ++v) {
                x[u % N][v] = wd_widen(in[u].get(v));
                h[u % N][v] = 0;
                direct[u % N][v] = 0;
            }
            if (sharer >= low && sharer < high) {
                A s[V], power[V], inverse[V];
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    A sum = 0;
#pragma unroll
                    for (int i = 0; i < N; ++i) sum += x[i][v] * x[i][v];
                    s[v] = (A)a.k + (A)a.factor * sum;
                }
                powers<V>(a, s, power, inverse);
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    direct[u % N][v] = wd_widen(dy[u].get(v)) * power[v];
                    h[u % N][v] = direct[u % N][v] * x[(u + N - AHEAD) % N][v] * inverse[v];
                }
            }
            if (own >= at.first && own < at.last) {
                A value[V];
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    A sum = 0;
#pragma unroll
                    for (int i = 0; i < N; ++i) sum += h[i][v];
                    value[v] = direct[(u + N - BACK) % N][v] + x[(u + 1) % N][v] * (A)a.share * sum;
                }
                put<T, V>(a, at.out + own * a.out.plane, value);
            }
        }
    }
}

// ---- Any window, in shared memory ----

template <class A, int V> struct alignas(sizeof(A) * V) pack {
    A v[V];
};

// A thread's column of `rows` packs, those of a block's threads side by side.
template <class A, int V> struct column {
    pack<A, V> *base;
    __device__ __forceinline__ column(int first_row)
        : base(reinterpret_cast<pack<A, V> *>(lrn_shared()) + first_row * LRN_THREADS + threadIdx.x)
    {
    }
    __device__ __forceinline__ pack<A, V> &operator[](int row) const
    {
        return base[row * LRN_THREADS];
    }
};

// The sum of the last n packs; row n of its n + 1 rows stays 0. Between multiples of n a row holds
// what came there, or, until then, the sum of all that came from there to the last multiple of n.
template <class A, int V> struct window_sum {
    column<A, V> row;
    pack<A, V> since;
    __device__ __forceinline__ window_sum(int first_row, int n) : row(first_row)
    {
        for (int i = 0; i <= n; ++i) {
#pragma unroll
            for (int v = 0; v < V; ++v) row[i].v[v] = 0;
        }
#pragma unroll
        for (int v = 0; v < V; ++v) since.v[v] = 0;
    }
    // k counts from 0 to n - 1, and again.
    __device__ __forceinline__ void add(const pack<A, V> &value, int k, int n, A *sum)
    {
        const pack<A, V> before = row[k + 1];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            since.v[v] += value.v[v];
            sum[v] = since.v[v] + before.v[v];
        }
        row[k] = value;
        if (k + 1 < n) return;
        pack<A, V> total = value;
        for (int i = n - 2; i >= 0; --i) {
            pack<A, V> one = row[i];
#pragma unroll
            for (int v = 0; v < V; ++v) total.v[v] += one.v[v];
            row[i] = total;
        }
#pragma unroll
        for (int v = 0; v < V; ++v) since.v[v] = 0;
    }
};

__device__ __forceinline__ int before(int k, int distance, int n)
{
    return k >= distance ? k - distance : k - distance + n;
}

template <class T, int V> __device__ __forceinline__ void forward_any(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int U = 4;
    const int n = a.window;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const place<T, V> at(a, item);
    const int end = min(at.last + a.ahead, a.channels);
    window_sum<A, V> squares(0, n);
    const column<A, V> ring(n + 1);
    int k = 0;
    for (int c = at.first - a.back; c < at.last + a.ahead; c += U) {
        wd_run<T, V> in[U];
        load_batch<T, V, U>(in, at.x, a.x.plane, c, 0, end);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int own = c + u - a.ahead;
            pack<A, V> x, square;
            A s[V], power[V], inverse[V];
#pragma unroll
            for (int v = 0; v < V; ++v) {
                x.v[v] = wd_widen(in[u].get(v));
                square.v[v] = x.v[v] * x.v[v];
            }
            ring[k] = x;
            squares.add(square, k, n, s);
            if (own >= at.first && own < at.last) {
                x = ring[before(k, a.ahead, n)];
#pragma unroll
                for (int v = 0; v < V; ++v) s[v] = (A)a.k + (A)a.factor * s[v];
                powers<V>(a, s, power, inverse);
#pragma unroll
                for (int v = 0; v < V; ++v) power[v] *= x.v[v];
                put<T, V>(a, at.out + own * a.out.plane, power);
            }
            k = k + 1 < n ? k + 1 : 0;
        }
    }
}

template <class T, int V> __device__ __forceinline__ void backward_any(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int U = 4;
    const int n = a.window;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const place<T, V> at(a, item);
    const int end = min(at.last + n - 1, a.channels);
    const int low = max(at.first - a.ahead, 0);
    const int high = min(at.last + a.back, a.channels);
    window_sum<A, V> squares(0, n);
    window_sum<A, V> shares(n + 1, n);
    const column<A, V> ring(2 * n + 2);
    const column<A, V> direct(3 * n + 2);
    int k = 0;
    for (int i = 0; i < n; ++i) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            ring[i].v[v] = 0;
            direct[i].v[v] = 0;
        }
    }
    for (int c = at.first - (n - 1); c < at.last + n - 1; c += U) {
        wd_run<T, V> in[U], dy[U];
        load_batch<T, V, U>(in, at.x, a.x.plane, c, 0, end);
        load_batch<T, V, U>(dy, at.dy, a.dy.plane, c - a.ahead, low, high);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int sharer = c + u - a.ahead;
            const int own = sharer - a.back;
            pack<A, V> x, square, h, d;
            A s[V], sum[V];
#pragma unroll
            for (int v = 0; v < V; ++v) {
                x.v[v] = wd_widen(in[u].get(v));
                square.v[v] = x.v[v] * x.v[v];
                h.v[v] = 0;
                d.v[v] = 0;
            }
            ring[k] = x;
            squares.add(square, k, n, s);
            if (sharer >= low && sharer < high) {
                A power[V], inverse[V];
                x = ring[before(k, a.ahead, n)];
#pragma unroll
                for (int v = 0; v < V; ++v) s[v] = (A)a.k + (A)a.factor * s[v];
                powers<V>(a, s, power, inverse);
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    d.v[v] = wd_widen(dy[u].get(v)) * power[v];
                    h.v[v] = d.v[v] * x.v[v] * inverse[v];
                }
            }
            direct[k] = d;
            shares.add(h, k, n, sum);
            if (own >= at.first && own < at.last) {
                x = ring[before(k, n - 1, n)];
                d = direct[before(k, a.back, n)];
#pragma unroll
                for (int v = 0; v < V; ++v) sum[v] = d.v[v] + x.v[v] * (A)a.share * sum[v];
                put<T, V>(a, at.out + own * a.out.plane, sum);
            }
            k = k + 1 < n ? k + 1 : 0;
        }
    }
}

} // namespace planes
} // namespace

#endif
