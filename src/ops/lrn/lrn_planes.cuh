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

#include <type_traits>

#include "ops/lrn/lrn_vector.cuh"

namespace {
namespace planes {

// What a thread has of a channel: V neighbours (a run), or, where planes are not made of aligned runs, V
// pixels that are as far apart as a warp has threads, or as the plane has: neighbouring threads have
// neighbouring pixels.
template <class T, int V, bool SPREADS> struct few {
    wd_run<T, V> run;
    T one[V];
    __device__ __forceinline__ T get(int v) const
    {
        return SPREADS ? one[v] : run.get(v);
    }
    __device__ __forceinline__ void clear_all()
    {
        clear(run);
        const T none = run.get(0);
#pragma unroll
        for (int v = 0; v < V; ++v) one[v] = none;
    }
    __device__ __forceinline__ void load(const T *from, uint32_t apart)
    {
        if constexpr (SPREADS) {
#pragma unroll
            for (int v = 0; v < V; ++v) one[v] = from[(size_t)v * apart];
        } else {
            run.load(from);
        }
    }
};

// Where a thread works.
template <class T, int V, bool SPREADS> struct place {
    int first; // its channels
    int last;
    uint32_t
        apart; // its pixels, where they are spread; 0: the second is none, and the first is done twice
    bool none;  // there is no pixel
    const T *x; // channel 0
    const T *dy;
    T *out;
    __device__ __forceinline__ place(const lrn_vector_args &a, uint32_t item)
    {
        int64_t pixel = wd_take_rest(item, a.by_run);
        if (SPREADS && V > 1) {
            uint32_t group = (uint32_t)pixel;
            pixel = wd_take_rest(group, a.by_spread);
            pixel += (int64_t)group * V * a.by_spread.divisor;
        } else if (!SPREADS) {
            pixel *= V;
        }
        apart = pixel + a.by_spread.divisor < a.plane ? a.by_spread.divisor : 0;
        none = pixel >= a.plane;
        first = (int)wd_take_rest(item, a.by_chunk) * a.chunk;
        last = min(first + a.chunk, a.channels);
        x = static_cast<const T *>(a.x.data) + item * a.x.image + pixel;
        dy = static_cast<const T *>(a.dy.data) + item * a.dy.image + pixel;
        out = static_cast<T *>(a.out.data) + item * a.out.image + pixel;
    }
};

// By so many bytes further.
template <class P> __device__ __forceinline__ P *moved(P *at, int64_t bytes)
{
    typedef typename std::conditional<std::is_const<P>::value, const char, char>::type byte;
    return reinterpret_cast<P *>(reinterpret_cast<byte *>(at) + bytes);
}

// Channels c, c + 1 ... of a plane; 0 where there are none.
template <class T, int V, bool SPREADS, int U>
__device__ __forceinline__ void load_batch(few<T, V, SPREADS> *in, const T *plane,
                                           const place<T, V, SPREADS> &p, int64_t step, int c,
                                           int low, int high)
{
    const int64_t bytes = step * (int)sizeof(T);
    const uint32_t own = (uint32_t)(c - low), size = (uint32_t)(high - low);
    const T *at = moved(plane, c * bytes);
#pragma unroll
    for (int u = 0; u < U; ++u) {
        in[u].clear_all();
        if (own + u < size) in[u].load(at, p.apart);
        at = moved(at, bytes);
    }
}

template <class T, int V, bool SPREADS, class A>
__device__ __forceinline__ void put_few(const lrn_vector_args &a, const place<T, V, SPREADS> &p,
                                        T *to, const A *value)
{
    if (!SPREADS) {
        put<T, V>(a, to, value);
        return;
    }
    if (__builtin_expect(a.plain, 1)) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            wd_narrow(to[(size_t)v * p.apart], numbers<A>(a).alpha * value[v]);
        }
        return;
    }
    T old[V]; // all of them before the first is stored
#pragma unroll
    for (int v = 0; v < V; ++v) {
        wd_narrow(old[v], (A)0);
        if (a.blends) old[v] = to[(size_t)v * p.apart];
    }
#pragma unroll 1 // this is rare, and takes registers
    for (int v = 0; v < V; ++v) {
        A one = value[0];
        T was = old[0];
#pragma unroll
        for (int u = 1; u < V; ++u) {
            if (u == v) one = value[u], was = old[u];
        }
        wd_narrow(to[(size_t)v * p.apart], blended<A>(a, one, wd_widen(was)));
    }
}

// U channels are under way: where one has come, the next one that has no place yet is asked for.
template <class T, int V, bool SPREADS, int N, int U>
__device__ __forceinline__ void forward_window(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int BACK = (N - 1) / 2, AHEAD = N - 1 - BACK;
    static_assert(U % N == 0, "a channel's place in the ring is known");
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const place<T, V, SPREADS> at(a, item);
    if (SPREADS && V > 1 && at.none) return;
    const int64_t step = a.out.plane * (int)sizeof(T), in_step = a.x.plane * (int)sizeof(T);
    const int end = min(at.last + AHEAD, a.channels), coming = at.first + AHEAD;
    few<T, V, SPREADS> before[N - 1], in[U];
    A ring[N][V];
    load_batch<T, V, SPREADS, N - 1>(before, at.x, at, a.x.plane, at.first - BACK, 0, end);
    load_batch<T, V, SPREADS, U>(in, at.x, at, a.x.plane, coming, 0, end);
    const T *from = moved(at.x, (coming + U) * in_step);
    T *to = moved(at.out, at.first * step);
#pragma unroll
    for (int i = 0; i < N - 1; ++i) {
#pragma unroll
        for (int v = 0; v < V; ++v) ring[i][v] = wd_widen(before[i].get(v));
    }
    // channels that have no result yet, and those that were not asked for
    for (int own = at.last - at.first, more = end - coming - U;; own -= U, more -= U) {
#pragma unroll
        for (int u = 0; u < U; ++u, to = moved(to, step), from = moved(from, in_step)) {
            A s[V], power[V], inverse[V];
            if (u >= own) return;
#pragma unroll
            for (int v = 0; v < V; ++v) ring[(u + N - 1) % N][v] = wd_widen(in[u].get(v));
            in[u].clear_all();
            if (u < more) in[u].load(from, at.apart);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                A sum = 0;
#pragma unroll
                for (int i = 0; i < N; ++i) sum += ring[i][v] * ring[i][v];
                s[v] = numbers<A>(a).k + numbers<A>(a).factor * sum;
            }
            powers<V>(a, s, power, inverse);
#pragma unroll
            for (int v = 0; v < V; ++v) power[v] *= ring[(u + BACK) % N][v];
            put_few<T, V, SPREADS>(a, at, to, power);
        }
    }
}

// The same, U channels at once: few pixels a thread go faster with more loads and fewer branches.
template <class T, int V, bool SPREADS, int N, int U>
__device__ __forceinline__ void forward_batches(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int AHEAD = N - 1 - (N - 1) / 2;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const place<T, V, SPREADS> at(a, item);
    if (SPREADS && V > 1 && at.none) return;
    const int64_t step = a.out.plane * (int)sizeof(T);
    const int begin = max(at.first - (N - 1) / 2, 0);
    const int end = min(at.last + AHEAD, a.channels);
    A ring[N][V];
#pragma unroll
    for (int i = 0; i < N * V; ++i) ring[i / V][i % V] = 0;
    T *to = moved(at.out, (begin - AHEAD) * step);
    for (int c = begin; c < at.last + AHEAD; c += U) {
        few<T, V, SPREADS> in[U];
        load_batch<T, V, SPREADS, U>(in, at.x, at, a.x.plane, c, 0, end);
#pragma unroll
        for (int u = 0; u < U; ++u, to = moved(to, step)) {
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
                s[v] = numbers<A>(a).k + numbers<A>(a).factor * sum;
            }
            powers<V>(a, s, power, inverse);
#pragma unroll
            for (int v = 0; v < V; ++v) power[v] *= ring[(u + N - AHEAD) % N][v];
            put_few<T, V, SPREADS>(a, at, to, power);
        }
    }
}

// A walk begins with the first channel that there is, where that of the first window is before it.
template <class T, int V, bool SPREADS, int N, int U>
__device__ __forceinline__ void backward_window(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int BACK = (N - 1) / 2;
    constexpr int AHEAD = N - 1 - BACK;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const place<T, V, SPREADS> at(a, item);
    if (SPREADS && V > 1 && at.none) return;
    const int64_t step = a.out.plane * (int)sizeof(T);
    const int begin = max(at.first - (N - 1), 0);
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
    T *to = moved(at.out, (begin - (N - 1)) * step);
    for (int c = begin; c < at.last + N - 1; c += U) {
        few<T, V, SPREADS> in[U], dy[U];
        load_batch<T, V, SPREADS, U>(in, at.x, at, a.x.plane, c, 0, end);
        load_batch<T, V, SPREADS, U>(dy, at.dy, at, a.dy.plane, c - AHEAD, low, high);
#pragma unroll
        for (int u = 0; u < U; ++u, to = moved(to, step)) {
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
                    s[v] = numbers<A>(a).k + numbers<A>(a).factor * sum;
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
                    value[v] = direct[(u + N - BACK) % N][v] +
                               x[(u + 1) % N][v] * numbers<A>(a).share * sum;
                }
                put_few<T, V, SPREADS>(a, at, to, value);
            }
        }
    }
}

// ---- Any window, in shared memory ----

template <class A, int V> using column = thread_column<A, V, LRN_THREADS>;
template <class A, int V> using window_sum = walked_sum<A, V, LRN_THREADS>;

__device__ __forceinline__ int before(int k, int distance, int n)
{
    return k >= distance ? k - distance : k - distance + n;
}

template <class T, int V, bool SPREADS>
__device__ __forceinline__ void forward_any(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int U = 4;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    constexpr bool ANY_FIRST = sizeof(T) != 4 || SPREADS; // runs of fp32 spill that way there
#else
    constexpr bool ANY_FIRST = true;
#endif
    const int n = a.window;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const place<T, V, SPREADS> at(a, item);
    if (SPREADS && V > 1 && at.none) return;
    const int64_t step = a.out.plane * (int)sizeof(T);
    const int end = min(at.last + a.ahead, a.channels);
    window_sum<A, V> squares(0, n);
    int k = 0;
    for (int c = max(at.first - a.back, 0); c < at.last + a.ahead; c += U) {
        few<T, V, SPREADS> in[U], again[U]; // what was loaded `ahead` channels ago is near still
        load_batch<T, V, SPREADS, U>(in, at.x, at, a.x.plane, c, 0, end);
        load_batch<T, V, SPREADS, U>(again, at.x, at, a.x.plane, c - a.ahead, at.first, at.last);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int own = c + u - a.ahead;
            pack<A, V> square;
            A s[V], power[V], inverse[V];
#pragma unroll
            for (int v = 0; v < V; ++v) {
                square.v[v] = wd_widen(in[u].get(v));
                square.v[v] *= square.v[v];
            }
            squares.add(square, k, n, s);
            if (own >= at.first && own < at.last) {
#pragma unroll
                for (int v = 0; v < V; ++v) s[v] = numbers<A>(a).k + numbers<A>(a).factor * s[v];
                powers<V, ANY_FIRST>(a, s, power, inverse);
#pragma unroll
                for (int v = 0; v < V; ++v) power[v] *= wd_widen(again[u].get(v));
                put_few<T, V, SPREADS>(a, at, moved(at.out, own * step), power);
            }
            k = k + 1 < n ? k + 1 : 0;
        }
    }
}

template <class T, int V, bool SPREADS>
__device__ __forceinline__ void backward_any(const lrn_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    constexpr int U = 4;
    const int n = a.window;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    if (item >= a.count) return;
    const place<T, V, SPREADS> at(a, item);
    if (SPREADS && V > 1 && at.none) return;
    const int64_t step = a.out.plane * (int)sizeof(T);
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
    for (int c = max(at.first - (n - 1), 0); c < at.last + n - 1; c += U) {
        few<T, V, SPREADS> in[U], dy[U];
        load_batch<T, V, SPREADS, U>(in, at.x, at, a.x.plane, c, 0, end);
        load_batch<T, V, SPREADS, U>(dy, at.dy, at, a.dy.plane, c - a.ahead, low, high);
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
                for (int v = 0; v < V; ++v) s[v] = numbers<A>(a).k + numbers<A>(a).factor * s[v];
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
                for (int v = 0; v < V; ++v) sum[v] = d.v[v] + x.v[v] * numbers<A>(a).share * sum[v];
                put_few<T, V, SPREADS>(a, at, moved(at.out, own * step), sum);
            }
            k = k + 1 < n ? k + 1 : 0;
        }
    }
}

} // namespace planes
} // namespace

#endif
