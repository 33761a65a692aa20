// SPDX-License-Identifier: Apache-2.0
//
// Maxima with their places, and their gradients, of windows of whole pixels whose padding is no
// candidate: a thread has a run of channels of a window, or of the pixels between one window's beginning
// and the next one's. 16-bit numbers are compared by pairs. A window with NaN in it is looked at again.
#ifndef WD_OPS_RESAMPLE_PLACES_CUH
#define WD_OPS_RESAMPLE_PLACES_CUH

#include "gpu/device/packed.cuh"
#include "gpu/device/pairs.cuh"
#include "gpu/device/words.cuh"
#include "ops/resample/resample_vector.cuh"

namespace {

// Places by pairs, as 16-bit numbers.
template <int V>
__device__ __forceinline__ void store_pairs(void *to, int size, size_t at, const uint32_t *pair)
{
    if (size == 1) {
        uint32_t word[V / 4];
#pragma unroll
        for (int i = 0; i < V / 4; ++i) {
            word[i] = __byte_perm(pair[2 * i], pair[2 * i + 1], 0x6420);
        }
        unsigned char *p = static_cast<unsigned char *>(to) + at;
        if constexpr (V == 8) *reinterpret_cast<uint2 *>(p) = make_uint2(word[0], word[1]);
        else *reinterpret_cast<uint32_t *>(p) = word[0];
        return;
    }
    int32_t place[V];
#pragma unroll
    for (int i = 0; i < V; ++i) place[i] = (int32_t)(pair[i / 2] >> (16 * (i & 1)) & 0xffff);
    store_places<V>(to, size, at, place);
}

// Places of a run by pairs, as 16-bit numbers.
template <int V> struct place_pairs {
    uint32_t word[V / 2];

    __device__ __forceinline__ void load(const void *from, int size, size_t at)
    {
        if (size == 1) {
            const unsigned char *p = static_cast<const unsigned char *>(from) + at;
            if constexpr (V == 2) {
                word[0] = __byte_perm(*reinterpret_cast<const uint16_t *>(p), 0, 0x4140);
                return;
            }
            uint32_t found[V / 4 > 0 ? V / 4 : 1];
            if constexpr (V == 8) {
                const uint2 v = *reinterpret_cast<const uint2 *>(p);
                found[0] = v.x, found[V / 4 - 1] = v.y;
            } else {
                found[0] = *reinterpret_cast<const uint32_t *>(p);
            }
#pragma unroll
            for (int i = 0; i < V / 4; ++i) {
                word[2 * i] = __byte_perm(found[i], 0, 0x4140);
                word[2 * i + 1] = __byte_perm(found[i], 0, 0x4342);
            }
            return;
        }
        // a place beyond 16 bits is no pixel
        int32_t place[V];
        load_places<V>(from, size, at, place);
#pragma unroll
        for (int i = 0; i < V / 2; ++i) {
            word[i] = min((uint32_t)place[2 * i], 0xffffu) |
                      min((uint32_t)place[2 * i + 1], 0xffffu) << 16;
        }
    }
    __device__ __forceinline__ int get(int i) const
    {
        return (int)(word[i / 2] >> (16 * (i & 1)) & 0xffff);
    }
    __device__ __forceinline__ uint32_t pair(int i) const
    {
        return word[i];
    }
};

// Places of a run, a byte each; one of 255 is no pixel's. As bytes they come as they lie and nothing waits for
// them but who compares them: numbers that are made smaller first would hold up all that is asked for behind.
template <int V> struct place_bytes {
    static constexpr int WORDS = V < 4 ? 1 : V / 4;
    uint32_t word[WORDS];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) word[i] = 0;
    }
    __device__ __forceinline__ void load(const void *from, int size, size_t at)
    {
        if (size == 1) {
            const unsigned char *p = static_cast<const unsigned char *>(from) + at;
            if constexpr (V == 8) {
                const uint2 v = *reinterpret_cast<const uint2 *>(p);
                word[0] = v.x, word[WORDS - 1] = v.y;
            } else if constexpr (V == 4) {
                word[0] = *reinterpret_cast<const uint32_t *>(p);
            } else if constexpr (V == 2) {
                word[0] = *reinterpret_cast<const uint16_t *>(p);
            } else {
                word[0] = *p;
            }
            return;
        }
        int32_t place[V];
        load_places<V>(from, size, at, place);
        clear();
#pragma unroll
        for (int i = 0; i < V; ++i) word[i / 4] |= min((uint32_t)place[i], 255u) << (8 * (i & 3));
    }
    __device__ __forceinline__ int get(int i) const
    {
        return (int)(word[i / 4] >> (8 * (i & 3)) & 0xff);
    }
    // Places 2i and 2i + 1 as 16-bit numbers.
    __device__ __forceinline__ uint32_t pair(int i) const
    {
        return __byte_perm(word[i / 2], 0, i & 1 ? 0x4342 : 0x4140);
    }
};

// A run as it is, or scaled.
template <class T, int V>
__device__ __forceinline__ void put_plain(const resample_places_args &a, size_t at,
                                          const wd_run<T, V> &run)
{
    T *to = static_cast<T *>(a.out) + at;
    if (a.plain && a.streaming) {
        run.store_streaming(to);
    } else if (a.plain) {
        run.store(to);
    } else {
        acc<T> value[V];
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] = wd_widen(run.get(i));
        wd_put_run<T, V>(a, at, value);
    }
}

// The largest of a run so far, and the pairs of their places; NaN stays.
template <class T, int V> struct winners {
    wd_run<T, V> value;
    uint32_t place[V / 2];

    __device__ __forceinline__ winners(int first)
    {
#pragma unroll
        for (int i = 0; i < wd_run<T, V>::WORDS; ++i) {
            if constexpr (sizeof(T) == 2) value.word[i] = wd_pair<T>::LOWEST;
            else value.word[i] = 0xff800000u;
        }
#pragma unroll
        for (int i = 0; i < V / 2; ++i) place[i] = (uint32_t)first * 0x10001u;
    }
    __device__ __forceinline__ void offer(const wd_run<T, V> &run, int at)
    {
        const uint32_t both = (uint32_t)at * 0x10001u;
        if constexpr (sizeof(T) == 2) {
#pragma unroll
            for (int i = 0; i < V / 2; ++i) {
                const uint32_t wins = wd_pair<T>::greater(run.word[i], value.word[i]);
                value.word[i] = wd_pair<T>::largest(value.word[i], run.word[i]);
                place[i] = (both & wins) | (place[i] & ~wins);
            }
        } else {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const float v = run.get(i), most = value.get(i);
                const uint32_t half = i & 1 ? 0xffff0000u : 0xffffu;
                if (v > most) place[i / 2] = (both & half) | (place[i / 2] & ~half);
                if (!(v <= most) && most == most) value.put(i, v);
            }
        }
    }
    __device__ __forceinline__ bool has_nan() const
    {
        bool nan = false;
        if constexpr (sizeof(T) == 2) {
            uint32_t same = 0xffffffffu;
#pragma unroll
            for (int i = 0; i < V / 2; ++i) {
                same &= wd_pair<T>::equal(value.word[i], value.word[i]);
            }
            nan = same != 0xffffffffu;
        } else {
#pragma unroll
            for (int i = 0; i < V; ++i) nan = nan || value.get(i) != value.get(i);
        }
        return nan;
    }
    __device__ __forceinline__ void put(const resample_places_args &a, size_t at) const
    {
        put_plain<T, V>(a, at, value);
        store_pairs<V>(a.places, a.place_size, at, place);
    }
};

// One element, as the definition has it.
template <class T>
__device__ __forceinline__ void exact_place(const resample_places_args &a, const T *x, size_t at,
                                            const int *low)
{
    typedef acc<T> A;
    largest<A> t;
    t.value = 0;
    t.place = -1;
    int place = 0;
    for (int z = 0; z < a.axis[0].window; ++z) {
        for (int r = 0; r < a.axis[1].window; ++r) {
            for (int c = 0; c < a.axis[2].window; ++c, ++place) {
                const int d = low[0] + z, h = low[1] + r, w = low[2] + c;
                if ((uint32_t)d >= (uint32_t)a.axis[0].image ||
                    (uint32_t)h >= (uint32_t)a.axis[1].image ||
                    (uint32_t)w >= (uint32_t)a.axis[2].image) {
                    continue;
                }
                const size_t pixel =
                    ((size_t)d * (uint32_t)a.axis[1].image + h) * (uint32_t)a.axis[2].image + w;
                t.offer(a.propagate, wd_widen(x[pixel * a.inner]), place);
            }
        }
    }
    const A value = t.place < 0 ? (A)__uint_as_float(0xff800000u) : t.value;
    const int32_t found = max(t.place, 0);
    wd_put_run<T, 1>(a, at, &value);
    store_places<1>(a.places, a.place_size, at, &found);
}

// K: the window's edges, rows and columns; 0: any.
template <class T, int V, int K>
__device__ __forceinline__ void resample_places(const resample_places_args &a)
{
    wd_wait_for_previous();
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const uint32_t channel = wd_take_rest(n, a.by_run) * V;
    int low[3];
    low[2] = (int)wd_take_rest(n, a.by_column) * a.axis[2].stride - a.axis[2].pad;
    low[1] = (int)wd_take_rest(n, a.by_row) * a.axis[1].stride - a.axis[1].pad;
    low[0] = (int)wd_take_rest(n, a.by_depth) * a.axis[0].stride - a.axis[0].pad;
    const int high = K > 0 ? K : a.axis[1].window, wide = K > 0 ? K : a.axis[2].window;
    const uint32_t rows = (uint32_t)a.axis[1].image, columns = (uint32_t)a.axis[2].image;
    const size_t plane = (size_t)rows * columns * a.inner;
    const T *x = static_cast<const T *>(a.from) + channel + n * (uint32_t)a.axis[0].image * plane;
    const int z0 = max(-low[0], 0), z1 = min(a.axis[0].window, a.axis[0].image - low[0]);
    const int r0 = max(-low[1], 0), c0 = max(-low[2], 0);
    const bool some =
        z0 < z1 && r0 < high && c0 < wide && low[1] + r0 < (int)rows && low[2] + c0 < (int)columns;
    winners<T, V> best(some ? (z0 * high + r0) * wide + c0 : 0);
    for (int z = z0; z < z1; ++z) {
        const T *slice = x + (uint32_t)(low[0] + z) * plane;
        if constexpr (K > 0) {
            wd_run<T, V> run[K][K];
#pragma unroll
            for (int r = 0; r < K; ++r) {
#pragma unroll
                for (int c = 0; c < K; ++c) {
#pragma unroll
                    for (int i = 0; i < wd_run<T, V>::WORDS; ++i) {
                        if constexpr (sizeof(T) == 2) run[r][c].word[i] = wd_pair<T>::LOWEST;
                        else run[r][c].word[i] = 0xff800000u;
                    }
                    if ((uint32_t)(low[1] + r) < rows && (uint32_t)(low[2] + c) < columns) {
                        run[r][c].load(slice +
                                       (uint32_t)((low[1] + r) * (int)columns + low[2] + c) *
                                           (size_t)a.inner);
                    }
                }
            }
#pragma unroll
            for (int r = 0; r < K; ++r) {
#pragma unroll
                for (int c = 0; c < K; ++c) best.offer(run[r][c], (z * K + r) * K + c);
            }
        } else {
            const int r1 = min(high, (int)rows - low[1]), c1 = min(wide, (int)columns - low[2]);
            for (int r = r0; r < r1; ++r) {
                const T *line = slice + ((size_t)(uint32_t)(low[1] + r) * columns) * a.inner;
                const int place = (z * high + r) * wide;
#pragma unroll 4
                for (int c = c0; c < c1; ++c) {
                    wd_run<T, V> run;
                    run.load(line + (size_t)(uint32_t)(low[2] + c) * a.inner);
                    best.offer(run, place + c);
                }
            }
        }
    }
    const size_t at = (size_t)item * V;
    if (best.has_nan()) {
#pragma unroll 1
        for (int i = 0; i < V; ++i) exact_place<T>(a, x + i, at + i, low);
        return;
    }
    best.put(a, at);
}

// ---- Gradients ----

// Of a window's share what goes to place `at`, elsewhere 0.
template <class T, int V, class PLACES>
__device__ __forceinline__ void pick(const wd_run<T, V> &share, const PLACES &place, int at,
                                     wd_run<T, V> &mine)
{
    if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int i = 0; i < V / 2; ++i) {
            // as numbers of the type's they are all different
            mine.word[i] =
                share.word[i] & wd_pair<T>::equal(place.pair(i), (uint32_t)at * 0x10001u);
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; ++i) mine.word[i] = place.get(i) == at ? share.word[i] : 0;
    }
}

// Sums of what windows hand to a run of a pixel, earlier ones first, and its place in dx. Two numbers of 16 bits are
// added as they lie, which rounds them once, as single precision would; one needs no rounding.
template <class T, int V, int N>
__device__ __forceinline__ void put_given(const resample_places_args &a, size_t at,
                                          const wd_run<T, V> (&of)[N])
{
    if (sizeof(T) == 2 && N <= 2 && a.plain) {
        wd_run<T, V> run = of[0];
        if constexpr (sizeof(T) == 2 && N == 2) {
#pragma unroll
            for (int i = 0; i < V / 2; ++i) {
                run.word[i] = wd_packed_add<T>(of[0].word[i], of[1].word[i]);
            }
        }
        put_plain<T, V>(a, at, run);
        return;
    }
    acc<T> sum[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
        sum[i] = wd_widen(of[0].get(i));
#pragma unroll
        for (int n = 1; n < N; ++n) sum[i] += wd_widen(of[n].get(i));
    }
    if (!a.plain) {
        wd_put_run<T, V>(a, at, sum);
        return;
    }
    wd_run<T, V> run;
    wd_narrow_run(run, sum);
    put_plain<T, V>(a, at, run);
}

// Windows by two, of K = 2 or 3 rows and columns: a thread the pixels between the beginnings of window
// (p, q) and its neighbours', two by two, to which it and, where K is 3, those before it hand something.
template <class T, int V, int K>
__device__ __forceinline__ void resample_collect_twos(const resample_places_args &a)
{
    constexpr int W = K - 1; /* windows over a row or column */
    wd_wait_for_previous();
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const uint32_t channel = wd_take_rest(n, a.by_run) * V;
    const int q = (int)wd_take_rest(n, a.by_column);
    const int p = (int)wd_take_rest(n, a.by_row);
    const resample_places_axis &h = a.axis[1], &w = a.axis[2];
    const size_t windows = (size_t)n * (uint32_t)h.windows * (uint32_t)w.windows;
    const size_t pixels = (size_t)n * (uint32_t)h.image * (uint32_t)w.image;
    wd_run<T, V> share[W][W];
    place_bytes<V> place[W][W];
#pragma unroll
    for (int r = 0; r < W; ++r) {
#pragma unroll
        for (int c = 0; c < W; ++c) {
            const int line = p + r - (W - 1), column = q + c - (W - 1);
#pragma unroll
            for (int i = 0; i < wd_run<T, V>::WORDS; ++i) share[r][c].word[i] = 0;
            place[r][c].clear();
            if ((uint32_t)line < (uint32_t)h.windows && (uint32_t)column < (uint32_t)w.windows) {
                const size_t at =
                    (windows + (uint32_t)(line * w.windows + column)) * a.inner + channel;
                share[r][c].load(static_cast<const T *>(a.from) + at);
                place[r][c].load(a.places, a.place_size, at);
            }
        }
    }
    auto given = [&](int r, int c, int y, int x) {
        wd_run<T, V> mine;
        pick<T, V>(share[r][c], place[r][c], y * K + x, mine);
        return mine;
    };
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int row = 2 * p - h.pad + i, column = 2 * q - w.pad + j;
            if ((uint32_t)row >= (uint32_t)h.image || (uint32_t)column >= (uint32_t)w.image) {
                continue;
            }
            const size_t pixel = pixels + (uint32_t)(row * w.image + column);
            const size_t at = pixel * a.inner + channel;
            constexpr int L = W - 1; // the window that begins at these pixels
            if (K == 2 || (i == 1 && j == 1)) {
                put_given<T, V, 1>(a, at, {given(L, L, i, j)});
            } else if (i == 1) {
                put_given<T, V, 2>(a, at, {given(L, 0, 1, 2), given(L, L, 1, 0)});
            } else if (j == 1) {
                put_given<T, V, 2>(a, at, {given(0, L, 2, 1), given(L, L, 0, 1)});
            } else {
                put_given<T, V, 4>(
                    a, at,
                    {given(0, 0, 2, 2), given(0, L, 2, 0), given(L, 0, 0, 2), given(L, L, 0, 0)});
            }
        }
    }
}

} // namespace

#endif
