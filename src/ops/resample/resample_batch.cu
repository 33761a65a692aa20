// SPDX-License-Identifier: Apache-2.0
//
// Enlarging by two with samples on the corners of pixels, edges repeated, and its gradients, of lines at any
// alignment: a thread has little of a line, so it asks for many lines at once, straight from memory, and then
// makes all that depends on them. What is asked for beyond an edge is the edge's own, at any weight, so nothing
// is asked about but the walk's end.
#include "gpu/device/words.cuh"
#include "ops/resample/resample_batch_args.h"
#include "ops/resample/resample_batch_lines.cuh"
#include "ops/resample/resample_vector.cuh"

namespace {

// Where a thread is: unit `unit` of rows begin .. end-1 of x.
struct batch_place {
    bool there;
    uint32_t unit;
    uint32_t outer;
    int begin;
    int end;
    __device__ __forceinline__ explicit batch_place(const resample_batch_args &a)
    {
        uint32_t n = blockIdx.x * BATCH_THREADS + threadIdx.x;
        there = n < a.count;
        unit = wd_take_rest(n, a.by_line);
        begin = (int)wd_take_rest(n, a.by_band) * a.rows;
        end = min(begin + a.rows, a.high);
        outer = n;
    }
};

// A thread has a word of every line of y, two elements; where lines begin between two words, the first and the
// last word have one. An element is of two pixels, which of a sample on a pixel are the same one.
template <class T> struct batch_word {
    static constexpr int LOADS = 2 * BATCH_WORD;
    const T *from[LOADS]; // of the first line
    T *to;
    bool whole;
    uint32_t lone; // the element that is there, where not both are
    uint32_t pitch;
    float half; // of alpha

    __device__ __forceinline__ batch_word(const resample_batch_args &a, const batch_place &at)
        : half(0.5f * a.alpha)
    {
        const uint32_t line = (uint32_t)a.wide * a.inner;
        const size_t plane = (size_t)(uint32_t)a.high * line * at.outer;
        const T *x = static_cast<const T *>(a.from) + plane;
        const int begin = (int)(at.unit * BATCH_WORD) - (int)a.before;
        const int length = (int)line * 2;
        pitch = line * (uint32_t)sizeof(T);
        to = static_cast<T *>(a.out) + plane * 4 + begin;
        lone = begin < 0 ? 1 : 0;
        whole = begin >= 0 && begin + 1 < length;
#pragma unroll
        for (int e = 0; e < BATCH_WORD; ++e) {
            uint32_t sample = (uint32_t)min(max(begin + e, 0), length - 1);
            const uint32_t channel = wd_take_rest(sample, a.by_run);
            const uint32_t column = sample / 2;
            const uint32_t next = min(column + sample % 2, (uint32_t)a.wide - 1);
            from[2 * e] = x + (column * a.inner + channel);
            from[2 * e + 1] = x + (next * a.inner + channel);
        }
    }

    __device__ __forceinline__ void load(int row, T *raw) const
    {
#pragma unroll
        for (int i = 0; i < LOADS; ++i) raw[i] = *line_at(from[i], row, pitch);
    }

    __device__ __forceinline__ void spread(const T *raw, float *sum) const
    {
#pragma unroll
        for (int e = 0; e < BATCH_WORD; ++e) {
            sum[e] = half * wd_widen(raw[2 * e]) + half * wd_widen(raw[2 * e + 1]);
        }
    }

    __device__ __forceinline__ void put(int row, const float (&sum)[BATCH_WORD]) const
    {
        T *at = line_at(to, row, 2 * pitch);
        wd_run<T, BATCH_WORD> run;
        wd_narrow_run(run, sum);
        if (whole) run.store(at);
        else at[lone] = lone ? run.get(1) : run.get(0);
    }
};

template <class T> __device__ __forceinline__ void resample_batch(const resample_batch_args &a)
{
    wd_wait_for_previous();
    const batch_place at(a);
    if (!at.there) return;
    const batch_word<T> word(a, at);
    T last[word.LOADS];
    word.load(at.begin, last);
#pragma unroll 1
    for (int begin = at.begin; begin < at.end; begin += BATCH_LINES) {
        T raw[BATCH_LINES][word.LOADS];
        float above[BATCH_WORD];
#pragma unroll
        for (int l = 0; l < BATCH_LINES; ++l) word.load(min(begin + l + 1, a.high - 1), raw[l]);
        word.spread(last, above);
#pragma unroll
        for (int l = 0; l < BATCH_LINES; ++l) {
            float middle[BATCH_WORD], below[BATCH_WORD];
            if (begin + l >= at.end) return;
            word.spread(raw[l], below);
            word.put(2 * (begin + l), above);
#pragma unroll
            for (int e = 0; e < BATCH_WORD; ++e) {
                middle[e] = 0.5f * above[e] + 0.5f * below[e];
                above[e] = below[e];
            }
            word.put(2 * (begin + l) + 1, middle);
        }
#pragma unroll
        for (int i = 0; i < word.LOADS; ++i) last[i] = raw[BATCH_LINES - 1][i];
    }
}

// A thread has an element of every line of dx: of a line of dy the sample on its pixel and those on either side.
// Left of the first pixel there is none: half of its own, then, comes from either. Right of the last one the
// sample is all its own.
template <class T> struct batch_taps {
    static constexpr int TAPS = 3;
    const T *from[TAPS];
    float weight[TAPS];
    uint32_t pitch;

    __device__ __forceinline__ batch_taps(const resample_batch_args &a, const batch_place &at)
    {
        uint32_t column = at.unit;
        const uint32_t channel = wd_take_rest(column, a.by_run);
        const uint32_t line = (uint32_t)a.wide * a.inner;
        const T *own = static_cast<const T *>(a.from) +
                       (size_t)(uint32_t)a.high * line * at.outer * 4 +
                       ((size_t)(2 * column) * a.inner + channel);
        pitch = 2 * line * (uint32_t)sizeof(T);
        from[0] = column > 0 ? own - a.inner : own;
        from[1] = own;
        from[2] = own + a.inner;
        weight[0] = 0.5f * a.alpha;
        weight[1] = column > 0 ? a.alpha : 0.5f * a.alpha;
        weight[2] = column + 1 < (uint32_t)a.wide ? 0.5f * a.alpha : a.alpha;
    }

    __device__ __forceinline__ void load(int row, T *raw) const
    {
#pragma unroll
        for (int t = 0; t < TAPS; ++t) raw[t] = *line_at(from[t], row, pitch);
    }

    __device__ __forceinline__ float gather(const T *raw) const
    {
        float sum = weight[0] * wd_widen(raw[0]);
#pragma unroll
        for (int t = 1; t < TAPS; ++t) sum += weight[t] * wd_widen(raw[t]);
        return sum;
    }
};

// Down the lines as along them.
template <class T> __device__ __forceinline__ void resample_batch_back(const resample_batch_args &a)
{
    constexpr int LINES = 2 * BATCH_ROWS;
    wd_wait_for_previous();
    const batch_place at(a);
    if (!at.there) return;
    const batch_taps<T> taps(a, at);
    const uint32_t line = (uint32_t)a.wide * a.inner;
    T *to = static_cast<T *>(a.out) + ((size_t)(uint32_t)a.high * line * at.outer + at.unit);
    T last[taps.TAPS];
    taps.load(max(2 * at.begin - 1, 0), last);
#pragma unroll 1
    for (int begin = at.begin; begin < at.end; begin += BATCH_ROWS) {
        T raw[LINES][taps.TAPS];
        float above;
#pragma unroll
        for (int l = 0; l < LINES; ++l) taps.load(min(2 * begin + l, 2 * a.high - 1), raw[l]);
        above = taps.gather(last);
#pragma unroll
        for (int r = 0; r < BATCH_ROWS; ++r) {
            const int row = begin + r;
            if (row >= at.end) return;
            const float own = taps.gather(raw[2 * r]), below = taps.gather(raw[2 * r + 1]);
            const float sum = 0.5f * above + (row > 0 ? 1.0f : 0.5f) * own +
                              (row + 1 < a.high ? 0.5f : 1.0f) * below;
            wd_narrow(*line_at(to, row, line * (uint32_t)sizeof(T)), sum);
            above = below;
        }
#pragma unroll
        for (int t = 0; t < taps.TAPS; ++t) last[t] = raw[LINES - 1][t];
    }
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/resample/resample_batch_kernels.def"
#include "ops/kernels_device.inc"
