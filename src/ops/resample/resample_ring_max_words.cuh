// SPDX-License-Identifier: Apache-2.0
//
// The maxima of resample_ring_max.cuh by windows of three rows, by two, and three columns, where a pixel has several
// channels, straight from memory: a thread has a window of one channel and walks down the rows. It asks for what
// it wants of several lines at once, and then makes all windows that these complete; of the line that two share
// the second has what the first found.
#ifndef WD_OPS_RESAMPLE_RING_MAX_WORDS_CUH
#define WD_OPS_RESAMPLE_RING_MAX_WORDS_CUH

#include "ops/resample/resample_places.cuh"
#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_ring_lines.cuh"

namespace {

// Three columns of a line. For one in the padding stands the nearest pixel, as what it is.
template <class T> struct max_columns {
    static constexpr int COLUMNS = 3;
    typedef acc<T> A;
    const T *from[COLUMNS]; // of the first line
    int code[COLUMNS];
    bool outside; // none of them is a pixel
    uint32_t pitch;
    int high;
    struct raw {
        T value[COLUMNS];
    };
    struct best {
        A value;
        int at;
    };

    // x: of the image, and the channel
    __device__ __forceinline__ max_columns(const resample_ring_max_args &a, const T *x, int column)
        : high(a.p.axis[1].image)
    {
        const int wide = a.p.axis[2].image;
        const uint32_t line = (uint32_t)wide * a.p.inner;
        pitch = line * (uint32_t)sizeof(T);
        outside = column + COLUMNS <= 0 || column >= wide;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const int near = min(max(column + c, 0), wide - 1);
            code[c] = near - column;
            from[c] = x + (uint32_t)near * a.p.inner;
        }
    }

    __device__ __forceinline__ void load(int line, raw &r) const
    {
        const int there = min(max(line, 0), high - 1);
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) r.value[c] = *line_at(from[c], there, pitch);
    }

    // The first of the largest; lines of the padding are lower than all others.
    __device__ __forceinline__ best look(int line, const raw &r) const
    {
        best b = {wd_widen(r.value[0]), code[0]};
#pragma unroll
        for (int c = 1; c < COLUMNS; ++c) {
            const A v = wd_widen(r.value[c]);
            b.at = v > b.value ? code[c] : b.at;
            b.value = wd_largest(b.value, v);
        }
        if ((uint32_t)line >= (uint32_t)high) b.value = (A)__uint_as_float(0xff800000u);
        return b;
    }
};

// Windows begin .. end-1 of a column. PLAIN: as most calls have it, places are bytes, alpha is 1 and nothing is
// blended.
template <class T, bool PLAIN>
__device__ __forceinline__ void max_walk(const resample_ring_max_args &a,
                                         const max_columns<T> &from, const T *x, int column,
                                         int begin, int end, size_t out)
{
    typedef max_columns<T> columns;
    typedef acc<T> A;
    constexpr int STRIDE = 2;
    const ring_out result(a.p);
    const A lowest = (A)__uint_as_float(0xff800000u);
    const uint32_t out_line = (uint32_t)a.p.axis[2].windows * a.p.inner;
    T *y = static_cast<T *>(a.p.out) + out;
    uint8_t *places = static_cast<uint8_t *>(a.p.places) + out;
    int low = begin * STRIDE - a.p.axis[1].pad;
    typename columns::raw shared;
    from.load(low, shared);
    typename columns::best above = from.look(low, shared);
#pragma unroll 1
    for (int row = begin; row < end; row += RING_MAX_ROWS) {
        typename columns::raw raw[RING_MAX_ROWS][STRIDE];
        uint32_t again = 0;
#pragma unroll
        for (int r = 0; r < RING_MAX_ROWS; ++r) {
#pragma unroll
            for (int l = 0; l < STRIDE; ++l) from.load(low + r * STRIDE + l + 1, raw[r][l]);
        }
#pragma unroll
        for (int r = 0; r < RING_MAX_ROWS; ++r) {
            const bool there = row + r < end;
            A value = above.value;
            int place = above.at;
#pragma unroll
            for (int l = 0; l < STRIDE; ++l) {
                above = from.look(low + r * STRIDE + l + 1, raw[r][l]);
                place = above.value > value ? (l + 1) * columns::COLUMNS + above.at : place;
                value = wd_largest(value, above.value);
            }
            // without a number above minus infinity, or with NaN: from memory
            if (there && (from.outside || !(value > lowest))) again |= 1u << r;
            if (PLAIN) {
                T narrow;
                wd_narrow(narrow, value);
                if (there) y[(uint32_t)r * (size_t)out_line] = narrow;
                if (there) places[(uint32_t)r * (size_t)out_line] = (uint8_t)place;
            } else if (there && !(again >> r & 1)) { // blended once, there or here
                wd_put_run<T, 1>(result, out + (uint32_t)r * (size_t)out_line, &value);
                store_places<1>(a.p.places, a.p.place_size, out + (uint32_t)r * (size_t)out_line,
                                &place);
            }
        }
        if (again != 0) {
#pragma unroll 1
            for (int r = 0; r < RING_MAX_ROWS; ++r) {
                const int corner[3] = {0, low + r * STRIDE, column};
                if (again >> r & 1) {
                    exact_place<T>(a.p, x, out + (uint32_t)r * (size_t)out_line, corner);
                }
            }
        }
        low += RING_MAX_ROWS * STRIDE;
        out += RING_MAX_ROWS * (size_t)out_line;
        y += RING_MAX_ROWS * (size_t)out_line;
        places += RING_MAX_ROWS * (size_t)out_line;
    }
}

template <class T>
__device__ __forceinline__ void resample_ring_max_words(const resample_ring_max_args &a)
{
    const resample_places_axis &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    uint32_t n = blockIdx.x;
    uint32_t image = wd_take_rest(n, a.p.by_column) * blockDim.x + threadIdx.x;
    if (image >= a.units) return;
    const uint32_t in_line = wd_take_rest(image, a.by_line);
    uint32_t window = in_line;
    const uint32_t channel = wd_take_rest(window, a.by_inner);
    const int begin = (int)(n * a.rows), end = min(begin + (int)a.rows, h.windows);
    const int column = (int)window * w.stride - w.pad;
    const T *x = static_cast<const T *>(a.p.from) +
                 (size_t)image * ((uint32_t)h.image * ((uint32_t)w.image * a.p.inner)) + channel;
    const max_columns<T> from(a, x, column);
    const size_t out = ((size_t)image * (uint32_t)h.windows + (uint32_t)begin) *
                           ((uint32_t)w.windows * a.p.inner) +
                       in_line;
    const bool plain = ring_out(a.p).plain && a.p.place_size == 1;
    if (plain) max_walk<T, true>(a, from, x, column, begin, end, out);
    else max_walk<T, false>(a, from, x, column, begin, end, out);
}

} // namespace

#endif
