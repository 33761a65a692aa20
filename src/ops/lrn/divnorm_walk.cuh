// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization of planes that are made of whole runs: a thread goes down some rows of a run of columns,
// together with those beside it in its warp (divnorm_ring.cuh). Sums are taken along each row, then down the rows, in
// registers. What a window's deviations are put together from is as in divnorm_tile.cuh.
#ifndef WD_OPS_LRN_DIVNORM_WALK_CUH
#define WD_OPS_LRN_DIVNORM_WALK_CUH

#include "gpu/device/prefetch.cuh"
#include "ops/lrn/divnorm_tile.cuh"

namespace {

enum { PHASES = DIVNORM_WALK_PHASES };
enum { AHEAD_ASKED = 4 }; // rows before one is loaded it is asked for, up to the second-level cache

// Sums of the last N rows of W columns. Rows come in groups of PHASES: a window is the end of one group, for N = 9
// the whole of the next, and the beginning of the last.
template <int N, int W> struct column_sums {
    static_assert(N == PHASES + 1 || N == 2 * PHASES + 1, "whole groups and one row");
    static constexpr bool TWO = N > PHASES + 1;
    float behind[PHASES][W]; // what windows have of groups before this; then rows of this one
    float ends[TWO ? PHASES : 1][TWO ? W : 1]; // of the last group
    float begun[W];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int v = 0; v < W; ++v) {
#pragma unroll
            for (int j = 0; j < PHASES; ++j) {
                behind[j][v] = 0;
                if constexpr (TWO) ends[j][v] = 0;
            }
        }
    }

    // Row J of its group; out may be in.
    template <int J> __device__ __forceinline__ void push(const float *in, float *out)
    {
#pragma unroll
        for (int v = 0; v < W; ++v) {
            const float one = in[v];
            begun[v] = J ? begun[v] + one : one;
            out[v] = behind[J][v] + begun[v];
            behind[J][v] = one;
        }
        if constexpr (J == PHASES - 1) {
#pragma unroll
            for (int j = PHASES - 2; j >= 0; --j) {
#pragma unroll
                for (int v = 0; v < W; ++v) behind[j][v] += behind[j + 1][v];
            }
            if constexpr (TWO) {
#pragma unroll
                for (int j = 0; j < PHASES; ++j) turn(behind[j], ends[j]);
            }
        }
    }

    // The ends of the group before the last, and the last, are behind the next; the last's are kept.
    __device__ __forceinline__ void turn(float *end, float *kept)
    {
#pragma unroll
        for (int v = 0; v < W; ++v) {
            const float old = kept[v];
            kept[v] = end[v];
            end[v] = old + begun[v];
        }
    }
};

// A run of a row of x and what windows reach beside it.
template <class T, int COLS, int HALO> struct wide_run {
    wd_run<T, COLS> own;
    wd_run<T, HALO> left, right;

    __device__ __forceinline__ float get(int i) const
    {
        if (i < HALO) return wd_widen(left.get(i));
        if (i < HALO + COLS) return wd_widen(own.get(i - HALO));
        return wd_widen(right.get(i - HALO - COLS));
    }
};

// What a thread goes down: rows of COLS columns. One place in x and one in the results are carried along; others are
// as far from them for all threads.
template <class T, int N, int COLS> struct walk {
    static constexpr int HALO = (N - 1) / 2; // odd windows
    typedef wd_run<T, COLS> run;
    typedef wide_run<T, COLS, HALO> wide;
    const divnorm_walk_args &a;
    int column;
    int begin, end;   // rows of the results
    int row;          // of x, that is loaded next
    const char *x_at; // where it is, from this thread's first column on
    char *to_at;      // the row of results
    float reference;
    bool has_left, has_own, has_right;

    __device__ __forceinline__ walk(const divnorm_walk_args &args) : a(args)
    {
    }

    // A segment of a plane, from the row and column on; middle: the column of which the mean is what windows are
    // measured from. `lead` rows of x come before that of the first result, `late` before a result is made.
    __device__ __forceinline__ void find(uint32_t plane, int first_row, int first_column,
                                         int middle, int lead, int late)
    {
        const int64_t channel = wd_take_rest(plane, a.by_channel);
        const int64_t in = plane * a.in.image + channel * a.in.channel;
        const int64_t to = plane * a.to.image + channel * a.to.channel;
        begin = first_row;
        end = min(begin + a.rows, a.height);
        column = first_column;
        row = begin - lead;
        x_at = reinterpret_cast<const char *>(static_cast<const T *>(a.x) + in + column) +
               row * a.in_row;
        to_at = reinterpret_cast<char *>(static_cast<T *>(a.out) + to + column) +
                (row - late) * a.to_row;
        has_own = is_column(column);
        ask_first();
        has_left = is_column(column - 1);
        has_right = is_column(column + COLS);
        reference = 0;
        if (a.means) {
            reference = wd_widen(static_cast<const T *>(
                a.means)[in + (int64_t)(begin + (end - begin) / 2) * a.in.row + middle]);
        }
        if (!(reference - reference == 0)) reference = 0;
    }
    // The first rows are asked for at once.
    __device__ __forceinline__ void ask_first() const
    {
#pragma unroll 1
        for (int i = 0; i < AHEAD_ASKED && has_own; ++i) {
            if (is_row(row + i)) wd_prefetch_line(input(i * a.in_row));
            if (begin + i >= end) continue;
            const int64_t to_result = (begin + i - row) * a.in_row - a.own;
            if (a.means) wd_prefetch_line(input(a.own_means + to_result));
        }
    }
    __device__ __forceinline__ bool is_row(int h) const
    {
        return (uint32_t)h < (uint32_t)a.height;
    }
    __device__ __forceinline__ bool is_column(int w) const
    {
        return (uint32_t)w < (uint32_t)a.width;
    }
    __device__ __forceinline__ int inside(int h) const
    {
        return min(h + HALO + 1, a.height) - max(h - HALO, 0);
    }
    // What is so many bytes from the row of x that is loaded next.
    __device__ __forceinline__ const T *input(int64_t bytes) const
    {
        return reinterpret_cast<const T *>(x_at + bytes);
    }
    // The pixel at h, w.
    __device__ __forceinline__ float pixel(int64_t bytes, int h, int w) const
    {
        return wd_widen(input(bytes + (h - row) * a.in_row)[w - column]);
    }

    // Sums along a row of x - reference and of its square.
    template <bool BOTH>
    __device__ __forceinline__ void row_sums(const wide &r, float *s, float *q) const
    {
        float d[COLS + 2 * HALO];
#pragma unroll
        for (int i = 0; i < COLS + 2 * HALO; ++i) d[i] = r.get(i) - reference;
        window_squares<COLS, N>(d, q);
        if (BOTH) window_sums<COLS, N>(d, s);
    }

    // As tile::deviations, but of q the strengths are made; without MEANS there is nothing to put together.
    template <bool MEANS>
    __device__ __forceinline__ void strengths(int h, const float *m, float *s, float *q) const
    {
        const float k = a.single.k, factor = a.single.factor;
        if (MEANS) {
            const float down = (float)inside(h);
            const float part = factor / DIVNORM_TRUST;
            const float less_left = has_left ? 0.0f : down, less_right = has_right ? 0.0f : down;
            float all[COLS], strength[COLS];
            bool fine = true;
#pragma unroll
            for (int v = 0; v < COLS; ++v) {
                const float by = m[v] - reference;
                float count = N * down;
                if (v < HALO) count -= (float)(HALO - v) * less_left;
                if (v >= COLS - HALO) count -= (float)(v + 1 + HALO - COLS) * less_right;
                all[v] = q[v];
                q[v] = q[v] - by * (2 * s[v] - count * by);
                strength[v] = k + factor * q[v];
                fine = fine & (part * all[v] <= strength[v]);
            }
            if (__builtin_expect(!fine, 0)) {
                add_terms(h, m, s, q);
#pragma unroll
                for (int v = 0; v < COLS; ++v) strength[v] = k + factor * q[v];
            }
#pragma unroll
            for (int v = 0; v < COLS; ++v) q[v] = strength[v];
        } else {
#pragma unroll
            for (int v = 0; v < COLS; ++v) q[v] = k + factor * q[v];
        }
    }
    __device__ __forceinline__ void add_terms(int h, const float *m, float *s, float *q) const
    {
#pragma unroll 1
        for (int v = 0; v < COLS; ++v) {
            const float mean = pick<COLS>(m, v);
            float sum = 0, square_sum = 0;
            if (!is_column(column + v)) continue;
            add_window(h, column + v, mean, sum, square_sum);
#pragma unroll
            for (int u = 0; u < COLS; ++u) {
                if (u == v) s[u] = sum, q[u] = square_sum;
            }
        }
    }
    __device__ __forceinline__ void add_window(int h, int w, float mean, float &sum,
                                               float &square_sum) const
    {
#pragma unroll 1
        for (int y = max(h - HALO, 0); y < min(h + HALO + 1, a.height); ++y) {
#pragma unroll 1
            for (int i = max(w - HALO, 0); i < min(w + HALO + 1, a.width); ++i) {
                const float d = pixel(0, y, i) - mean;
                sum += d;
                square_sum += d * d;
            }
        }
    }

    __device__ __forceinline__ void put(char *at, const float *value) const
    {
        run r;
#pragma unroll
        for (int v = 0; v < COLS; ++v) r.put(v, narrowed<T>(a.single.alpha * value[v]));
        r.store(reinterpret_cast<T *>(at));
    }
};

} // namespace

#endif
