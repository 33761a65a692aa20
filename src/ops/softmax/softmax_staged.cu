// SPDX-License-Identifier: Apache-2.0
//
// Softmax over many rows that are no whole runs of 16 bytes. A block copies a tile of them to shared
// memory as they lie, threads take their rows from there by words of 4 bytes, and put the results in
// the same place; the tile goes back by runs. A word of two elements may belong to two rows: each row
// then touches its half alone. Nothing is masked but the group of words in which rows end. See
// softmax_staged.c.
#include "gpu/device/async.cuh"
#include "gpu/device/packed.cuh"
#include "ops/softmax/softmax_device.cuh"
#include "ops/softmax/softmax_staged_args.h"

namespace {

template <class T> struct staged {
    static constexpr int N = STAGED_WORD / (int)sizeof(T); // elements of a word
    static constexpr int WORDS = STAGED_ELEMENTS / N;      // of a thread
    static constexpr int GROUP = STAGED_GROUP / N;         // of them
    static constexpr int V = run_of<T>;
};

template <class T> __device__ __forceinline__ uint32_t word_of(float low, float high)
{
    if constexpr (sizeof(T) == 4) return __float_as_uint(low);
    else return wd_packed_narrow<T>(low, high);
}

// ---- A tile: elements shift .. end-1, of which those at multiples of V lie on boundaries ----

template <class T>
__device__ __forceinline__ void fill(const softmax_staged_args &a, T *tile, const T *from,
                                     uint32_t end)
{
    constexpr uint32_t V = staged<T>::V;
    if (a.apart) {
        for (uint32_t k = threadIdx.x; k < end; k += STAGED_THREADS) tile[k] = from[k];
        return;
    }
    const uint32_t last = end / V;
#pragma unroll 4
    for (uint32_t run = threadIdx.x + (a.shift > 0); run < last; run += STAGED_THREADS) {
        wd_copy_async<16, false>(tile + run * V, from + run * V);
    }
    // the ends: a block's first and last elements, fewer than a run each
    const uint32_t k = a.shift + threadIdx.x, e = max(last * V, a.shift) + threadIdx.x;
    if (a.shift > 0 && k < min(V, end)) tile[k] = from[k];
    if ((last > 0 || a.shift == 0) && e < end) tile[e] = from[e];
}

template <class T>
__device__ __forceinline__ void empty(const softmax_staged_args &a, T *to, const T *tile,
                                      uint32_t end)
{
    constexpr uint32_t V = staged<T>::V;
    if (a.apart) {
        for (uint32_t k = threadIdx.x; k < end; k += STAGED_THREADS) to[k] = tile[k];
        return;
    }
    const uint32_t last = end / V;
#pragma unroll 4
    for (uint32_t i = threadIdx.x + (a.shift > 0); i < last; i += STAGED_THREADS) {
        run<T> out;
        out.load(tile + i * V);
        if (a.streaming) out.store_streaming(to + i * V);
        else out.store(to + i * V);
    }
    const uint32_t k = a.shift + threadIdx.x, e = max(last * V, a.shift) + threadIdx.x;
    if (a.shift > 0 && k < min(V, end)) to[k] = tile[k];
    if ((last > 0 || a.shift == 0) && e < end) to[e] = tile[e];
}

// ---- A row ----

// Words lane, lane + lanes, ... of a row that begins with element `begin` of the tile. A thread has
// them by groups: first the group in which rows end, then the whole ones before it. Whoever goes
// through them stops behind the row's last group, which is the same for all threads.
template <class T> struct staged_row {
    static constexpr int N = staged<T>::N;
    static constexpr int WORDS = staged<T>::WORDS;
    static constexpr int GROUP = staged<T>::GROUP;
    const softmax_staged_args &a;
    uint32_t lane;
    uint32_t begin;
    uint32_t skip; // elements of the first word that are another row's
    uint32_t full; // words that are whole, the first one counted as if it were
    bool first;    // the thread has the first word, and but half of it
    bool half;     // the last word is but half the row's

    __device__ __forceinline__ staged_row(const softmax_staged_args &args, uint32_t at)
        : a(args), begin(at)
    {
        lane = threadIdx.x & ((1u << a.lane_bits) - 1);
        skip = begin % N;
        full = (skip + a.length) / N;
        first = N > 1 && skip != 0 && lane == 0;
        half = N > 1 && (skip + a.length) % N != 0;
    }

    __device__ __forceinline__ bool is_behind(int word) const
    {
        return word % GROUP == 0 && word > 0 && (uint32_t)word > a.whole * GROUP;
    }

    // Index of the thread's first word that is not in a whole group.
    __device__ __forceinline__ uint32_t tail() const
    {
        return lane + (a.whole * GROUP << a.lane_bits);
    }

    // The halves of words that two rows have are taken by themselves: the other row may be storing.
    __device__ __forceinline__ void load(uint32_t *x, const T *tile, uint32_t pad) const
    {
        const uint32_t *words = reinterpret_cast<const uint32_t *>(tile) + begin / N;
        const uint16_t *single = reinterpret_cast<const uint16_t *>(tile);
        const uint32_t *word = words + lane;
        uint32_t index = tail();
#pragma unroll
        for (int i = 0; i < GROUP; ++i, index += 1u << a.lane_bits) {
            x[i] = pad;
            if (first && index == 0) x[i] = (uint32_t)single[begin] << 16 | (pad & 0xffffu);
            else if (index < full) x[i] = words[index];
            else if (half && index == full) {
                x[i] = (pad & 0xffff0000u) | single[begin - skip + index * N];
            }
        }
#pragma unroll
        for (int i = GROUP; i < WORDS; ++i, word += 1u << a.lane_bits) {
            if (is_behind(i)) break;
            if (i == GROUP && first) x[i] = (uint32_t)single[begin] << 16 | (pad & 0xffffu);
            else x[i] = *word;
        }
    }

    __device__ __forceinline__ void store(T *tile, const uint32_t *x) const
    {
        uint32_t *words = reinterpret_cast<uint32_t *>(tile) + begin / N;
        uint16_t *single = reinterpret_cast<uint16_t *>(tile);
        uint32_t *word = words + lane;
        uint32_t index = tail();
#pragma unroll
        for (int i = 0; i < GROUP; ++i, index += 1u << a.lane_bits) {
            if (first && index == 0) single[begin] = (uint16_t)(x[i] >> 16);
            else if (index < full) words[index] = x[i];
            else if (half && index == full) single[begin - skip + index * N] = (uint16_t)x[i];
        }
#pragma unroll
        for (int i = GROUP; i < WORDS; ++i, word += 1u << a.lane_bits) {
            if (is_behind(i)) break;
            if (i == GROUP && first) single[begin] = (uint16_t)(x[i] >> 16);
            else *word = x[i];
        }
    }

    // One by one what is scaled or blended: that is rare.
    template <class F>
    __device__ __forceinline__ void blend_each(T *tile, const T *old, bool real, F value) const
    {
        const float alpha = (float)a.alpha, beta = (float)a.beta;
#pragma unroll 1
        for (uint32_t k = begin + lane; k < begin + a.length; k += 1u << a.lane_bits) {
            float v = scaled(value(k), alpha);
            if (beta != 0 && real) v += beta * wd_widen(old[k]);
            wd_narrow(tile[k], v);
        }
    }
};

template <class T>
__device__ __forceinline__ void forward_row(const softmax_staged_args &a, const staged_row<T> &row,
                                            T *tile, const T *old, bool real)
{
    constexpr int N = staged<T>::N, WORDS = staged<T>::WORDS;
    constexpr float lower = sizeof(T) == 2 ? 1.0f / (1 << HEADROOM) : 1.0f;
    const uint32_t lanes = 1u << a.lane_bits;
    const uint32_t least = word_of<T>(lowest<float>(), lowest<float>());
    uint32_t x[WORDS];
    float e[WORDS * N];
    float sum[2] = {0, 0};
    row.load(x, tile, least);
    uint32_t most = x[0];
#pragma unroll
    for (int i = 1; i < WORDS; ++i) {
        if (row.is_behind(i)) break;
        most = wd_packed_larger<T, false>(most, x[i]);
    }
    float max = wd_packed_get<T>(most, 0);
    if (N > 1) max = larger(max, wd_packed_get<T>(most, 1));
    max = max_of_lanes(max, lanes);
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        if (row.is_behind(i)) break;
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const float less = wd_packed_get<T>(x[i], j) - max;
            const float raised = raised_exp<T>(less);
            sum[(i * N + j) % 2] += raised;
            e[i * N + j] = a.log ? less : raised;
        }
    }
    sum[0] = sum_of_lanes(sum[0] + sum[1], lanes);
    float factor = 1, offset = 0;
    if (a.log) offset = -log_of(sum[0] * lower);
    else if constexpr (sizeof(T) == 2) factor = wd_half_reciprocal(sum[0]);
    else factor = 1.0f / sum[0];
    if (!a.plain) {
        row.blend_each(tile, old, real, [&](uint32_t k) {
            const float less = wd_widen(tile[k]) - max;
            return a.log ? less + offset : raised_exp<T>(less) * factor;
        });
        return;
    }
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        if (row.is_behind(i)) break;
        x[i] = word_of<T>(e[i * N] * factor + offset, e[i * N + N - 1] * factor + offset);
    }
    row.store(tile, x);
}

template <class T, bool LOG> __device__ __forceinline__ float gradient(float y, float dy, float sum)
{
    return LOG ? dy - element_exp<T>(y) * sum : y * (dy - sum);
}

template <class T, bool LOG>
__device__ __forceinline__ void backward_row_as(const softmax_staged_args &a,
                                                const staged_row<T> &row, T *tile, const T *tile_dy,
                                                const T *old, bool real, uint32_t *y, uint32_t *dy)
{
    constexpr int N = staged<T>::N, WORDS = staged<T>::WORDS;
    float sums[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        if (row.is_behind(i)) break;
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const float g = wd_packed_get<T>(dy[i], j);
            sums[(i * N + j) % 2] += LOG ? g : wd_packed_get<T>(y[i], j) * g;
        }
    }
    const float sum = sum_of_lanes(sums[0] + sums[1], 1u << a.lane_bits);
    if (!a.plain) {
        row.blend_each(tile, old, real, [&](uint32_t k) {
            return gradient<T, LOG>(wd_widen(tile[k]), wd_widen(tile_dy[k]), sum);
        });
        return;
    }
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        wd_forget<LOG>(y[i]); // else all of them stay widened
        wd_forget<LOG>(dy[i]);
    }
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        if (row.is_behind(i)) break;
        float v[N];
#pragma unroll
        for (int j = 0; j < N; ++j) {
            v[j] = gradient<T, LOG>(wd_packed_get<T>(y[i], j), wd_packed_get<T>(dy[i], j), sum);
        }
        y[i] = word_of<T>(v[0], v[N - 1]);
    }
    row.store(tile, y);
}

template <class T>
__device__ __forceinline__ void backward_row(const softmax_staged_args &a, const staged_row<T> &row,
                                             T *tile, const T *tile_dy, const T *old, bool real)
{
    constexpr int WORDS = staged<T>::WORDS;
    uint32_t y[WORDS], dy[WORDS];
    row.load(y, tile, 0);
    row.load(dy, tile_dy, 0);
    if (a.log) backward_row_as<T, true>(a, row, tile, tile_dy, old, real, y, dy);
    else backward_row_as<T, false>(a, row, tile, tile_dy, old, real, y, dy);
}

template <class T, bool BACKWARD> __device__ void rows_staged(const softmax_staged_args &a)
{
    uint4 *shared = wd_dynamic_shared<uint4>();
    const int64_t first = (int64_t)blockIdx.x * a.tile;
    const uint32_t rows = (uint32_t)min((int64_t)a.tile, a.rows - first);
    const uint32_t end = a.shift + rows * a.length;
    const int64_t at = first * a.length - a.shift; // of the boundary before, which may not be ours
    T *tile = reinterpret_cast<T *>(shared);
    T *tile_dy = reinterpret_cast<T *>(shared + a.runs);
    T *to = static_cast<T *>(a.y) + at;
    wd_wait_for_previous();
    fill(a, tile, static_cast<const T *>(a.x) + at, end);
    if (BACKWARD) fill(a, tile_dy, static_cast<const T *>(a.dy) + at, end);
    wd_copies_wait_all();
    __syncthreads();
    // a warp has 32 / lanes rows at once, of a set of spread times as many; what is behind the last
    // row of the tensor is computed too, from and to memory that nobody looks at
    const uint32_t set_bits = a.spread_bits + 5 - a.lane_bits;
    const uint32_t mine = (threadIdx.x % 32 >> a.lane_bits) << a.spread_bits;
    for (uint32_t turn = threadIdx.x / 32;; turn += STAGED_THREADS / 32) {
        const uint32_t set = turn >> a.spread_bits << set_bits;
        if (set >= rows) break;
        const uint32_t number = set + (turn & ((1u << a.spread_bits) - 1)) + mine;
        const staged_row<T> row(a, a.shift + number * a.length);
        if constexpr (BACKWARD) backward_row<T>(a, row, tile, tile_dy, to, number < rows);
        else forward_row<T>(a, row, tile, to, number < rows);
    }
    __syncthreads();
    empty(a, to, tile, end);
}

// ---- Rows of fewer than 8 elements: a thread has whole ones ----

template <class T, int L, bool BACKWARD>
__device__ __forceinline__ void short_row(const softmax_staged_args &a, float (&x)[L],
                                          const float (&dy)[L])
{
    constexpr float lower = sizeof(T) == 2 ? 1.0f / (1 << HEADROOM) : 1.0f;
    float sum = 0;
    if constexpr (BACKWARD) {
#pragma unroll
        for (int j = 0; j < L; ++j) sum += a.log ? dy[j] : x[j] * dy[j];
#pragma unroll
        for (int j = 0; j < L; ++j) {
            x[j] =
                a.log ? gradient<T, true>(x[j], dy[j], sum) : gradient<T, false>(x[j], dy[j], sum);
        }
    } else {
        float max = x[0], factor = 1, offset = 0;
#pragma unroll
        for (int j = 1; j < L; ++j) max = larger(max, x[j]);
#pragma unroll
        for (int j = 0; j < L; ++j) {
            const float less = x[j] - max;
            const float raised = raised_exp<T>(less);
            sum += raised;
            x[j] = a.log ? less : raised;
        }
        if (a.log) offset = -log_of(sum * lower);
        else if constexpr (sizeof(T) == 2) factor = wd_half_reciprocal(sum);
        else factor = 1.0f / sum;
#pragma unroll
        for (int j = 0; j < L; ++j) x[j] = x[j] * factor + offset;
    }
}

// Row `from`, `from_dy`, to `to`, whose former elements are at `old`.
template <class T, int L, bool BACKWARD>
__device__ __forceinline__ void short_one(const softmax_staged_args &a, T *to, const T *from,
                                          const T *from_dy, const T *old)
{
    float x[L], dy[L];
#pragma unroll
    for (int j = 0; j < L; ++j) {
        x[j] = wd_widen(from[j]);
        dy[j] = BACKWARD ? wd_widen(from_dy[j]) : 0.0f;
    }
    short_row<T, L, BACKWARD>(a, x, dy);
    if (!a.plain) {
        const float alpha = (float)a.alpha, beta = (float)a.beta;
#pragma unroll
        for (int j = 0; j < L; ++j) {
            x[j] = scaled(x[j], alpha) + (beta != 0 ? beta * wd_widen(old[j]) : 0.0f);
        }
    }
#pragma unroll
    for (int j = 0; j < L; ++j) wd_narrow(to[j], x[j]);
}

// Rows that lie in whole runs, several each: from memory to registers and back.
template <class T, int L, bool BACKWARD>
__device__ __forceinline__ void short_runs(const softmax_staged_args &a, int64_t first,
                                           uint32_t rows)
{
    constexpr int V = staged<T>::V;
    const T *from = static_cast<const T *>(a.x) + first * L;
    const T *from_dy = BACKWARD ? static_cast<const T *>(a.dy) + first * L : from;
    T *to = static_cast<T *>(a.y) + first * L;
    const uint32_t runs = rows * L / V;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < runs; i += STAGED_THREADS) {
        run<T> one, two, out;
        one.load(from + i * V);
        if (BACKWARD) two.load(from_dy + i * V);
#pragma unroll
        for (int g = 0; g < V; g += L) {
            float x[L], dy[L];
#pragma unroll
            for (int j = 0; j < L; ++j) {
                x[j] = wd_widen(one.get(g + j));
                dy[j] = BACKWARD ? wd_widen(two.get(g + j)) : 0.0f;
            }
            short_row<T, L, BACKWARD>(a, x, dy);
#pragma unroll
            for (int j = 0; j < L; ++j) out.put(g + j, narrow<T>(x[j]));
        }
        if (a.streaming) out.store_streaming(to + i * V);
        else out.store(to + i * V);
    }
    const uint32_t row = runs * V / L + threadIdx.x;
    if (row < rows) {
        short_one<T, L, BACKWARD>(a, to + row * L, from + row * L, from_dy + row * L, to + row * L);
    }
}

template <class T, int L, bool BACKWARD>
__device__ __forceinline__ void short_rows(const softmax_staged_args &a, uint32_t rows, T *tile,
                                           const T *tile_dy, const T *old)
{
#pragma unroll 1
    for (uint32_t row = threadIdx.x; row < rows; row += STAGED_THREADS) {
        const uint32_t k = a.shift + row * L;
        short_one<T, L, BACKWARD>(a, tile + k, tile + k, tile_dy + k, old + k);
    }
}

template <class T, bool BACKWARD> __device__ void rows_short(const softmax_staged_args &a)
{
    uint4 *shared = wd_dynamic_shared<uint4>();
    const int64_t first = (int64_t)blockIdx.x * a.tile;
    const uint32_t rows = (uint32_t)min((int64_t)a.tile, a.rows - first);
    const uint32_t end = a.shift + rows * a.length;
    const int64_t at = first * a.length - a.shift; // of the boundary before, which may not be ours
    T *x = reinterpret_cast<T *>(shared);
    T *dy = reinterpret_cast<T *>(shared + a.runs);
    T *to = static_cast<T *>(a.y) + at;
    wd_wait_for_previous();
    if (a.shift == 0 && !a.apart && a.plain) {
        if (a.length == 2) {
            short_runs<T, 2, BACKWARD>(a, first, rows);
            return;
        }
        if constexpr (sizeof(T) == 2) {
            if (a.length == 4) {
                short_runs<T, 4, BACKWARD>(a, first, rows);
                return;
            }
        }
    }
    fill(a, x, static_cast<const T *>(a.x) + at, end);
    if (BACKWARD) fill(a, dy, static_cast<const T *>(a.dy) + at, end);
    wd_copies_wait_all();
    __syncthreads();
    switch (a.length) {
    case 1: short_rows<T, 1, BACKWARD>(a, rows, x, dy, to); break;
    case 2: short_rows<T, 2, BACKWARD>(a, rows, x, dy, to); break;
    case 3: short_rows<T, 3, BACKWARD>(a, rows, x, dy, to); break;
    case 4: short_rows<T, 4, BACKWARD>(a, rows, x, dy, to); break;
    case 5: short_rows<T, 5, BACKWARD>(a, rows, x, dy, to); break;
    case 6: short_rows<T, 6, BACKWARD>(a, rows, x, dy, to); break;
    default: short_rows<T, 7, BACKWARD>(a, rows, x, dy, to); break;
    }
    __syncthreads();
    empty(a, to, x, end);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/softmax/softmax_staged_kernels.def"
#include "ops/kernels_device.inc"
