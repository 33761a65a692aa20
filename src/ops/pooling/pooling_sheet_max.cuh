// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima over 3x3 elements at a stride of 2 by sheets. First a thread has a column of windows, walks
// down their rows and leaves where each one's maximum lies as a byte in shared memory; then one has a pair of
// columns of dx and collects from the four windows over each pair of rows, of which it keeps the upper two.
// Where x lay, dx is put together. No window is looked through twice but at a box's edges.
//
// Columns and rows are counted within the padded image: of a pair 2j, 2j + 1 the first is in the windows j - 1
// (on the right) and j (on the left), the second in the middle of window j.
#ifndef WD_OPS_POOLING_SHEET_MAX_CUH
#define WD_OPS_POOLING_SHEET_MAX_CUH

#include "ops/pooling/pooling_sheet.cuh"

namespace {

constexpr uint32_t SHEET_NO_PLACE = 15; // else the row of the window times 3, and the column

// The largest so far and where it is; elements come in row-major order.
template <int MODE> struct sheet_place {
    float value;
    uint32_t code;

    // An element; of POOL_MAX it takes the place of a NaN, and is none where it is one.
    __device__ __forceinline__ void take(float v, uint32_t at)
    {
        if (MODE == POOL_MAX) {
            const float most = larger(value, v);
            code = most != value ? at : code;
            value = most;
        } else {
            const bool takes = !(v <= value) && value == value;
            code = takes ? at : code;
            value = takes ? v : value;
        }
    }
    // What the row `r` of a window has.
    __device__ __forceinline__ void join(const sheet_place &row, uint32_t r)
    {
        if (MODE == POOL_MAX) {
            take(row.value, row.code + 3 * r);
        } else {
            const bool beats = !(row.value <= value) && value == value;
            const bool takes = row.code != SHEET_NO_PLACE && (code == SHEET_NO_PLACE || beats);
            code = takes ? row.code + 3 * r : code;
            value = takes ? row.value : value;
        }
    }
};

// What a row of three elements has, and a window of three rows.
template <class T, int MODE, bool WORDS = MODE == POOL_MAX && sizeof(T) == 2> struct sheet_row {
    sheet_place<MODE> best;

    // Of a row outside.
    __device__ __forceinline__ void clear()
    {
        best.value = __uint_as_float(0x7fc00000u);
        best.code = SHEET_NO_PLACE;
    }
    // No place is below `low`.
    __device__ __forceinline__ void find(const unsigned char *const *at, uint32_t low)
    {
        best.value = sheet_get<T>(at[0]);
        best.code = 0;
        best.take(sheet_get<T>(at[1]), 1);
        best.take(sheet_get<T>(at[2]), 2);
        best.code = max(best.code, low);
    }
    __device__ __forceinline__ uint32_t window(const sheet_row &middle, const sheet_row &last) const
    {
        sheet_place<MODE> all = best;
        all.join(middle.best, 1);
        all.join(last.best, 2);
        if (MODE == POOL_MAX && all.value != all.value) all.code = SHEET_NO_PLACE;
        return all.code;
    }
};

// The same of 16 bits as they lie: the first that is not other than the largest.
template <class T, int MODE> struct sheet_row<T, MODE, true> {
    uint32_t value;
    uint32_t code;

    static __device__ __forceinline__ uint32_t choose(uint32_t mask, uint32_t yes, uint32_t no)
    {
        return (mask & yes) | (~mask & no);
    }
    static __device__ __forceinline__ uint32_t largest(uint32_t a, uint32_t b, uint32_t c)
    {
        return wd_packed_larger<T, false>(wd_packed_larger<T, false>(a, b), c);
    }
    __device__ __forceinline__ void clear()
    {
        value = 0x7fffu; // a NaN
        code = SHEET_NO_PLACE;
    }
    __device__ __forceinline__ void find(const unsigned char *const *at, uint32_t low)
    {
        uint32_t v[3];
#pragma unroll
        for (int s = 0; s < 3; ++s) v[s] = *reinterpret_cast<const uint16_t *>(at[s]);
        value = largest(v[0], v[1], v[2]);
        const uint32_t second = wd_packed_differ<T>(v[0], value);
        const uint32_t third = wd_packed_differ<T>(v[1], value);
        code = max(second & ((third & 1) + 1), low);
    }
    __device__ __forceinline__ uint32_t window(const sheet_row &middle, const sheet_row &last) const
    {
        const uint32_t most = largest(value, middle.value, last.value);
        const uint32_t below =
            choose(wd_packed_differ<T>(middle.value, most), last.code + 6, middle.code + 3);
        return choose(wd_packed_differ<T>(value, most), below, code) |
               (wd_packed_differ<T>(most, most) & SHEET_NO_PLACE);
    }
};

// A box of dx: windows over it, and the elements that they reach over.
struct sheet_max_box {
    reach made[3];
    reach over[3];
    reach under[3];
    uint32_t images;
    uint32_t pitch; // of rows of places
};

template <class T, int MODE>
__device__ __forceinline__ void sheet_find(const pool_band_args &a, const sheet_max_box &b,
                                           uint32_t base)
{
    const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
    const int32_t step = (int32_t)(a.inner * (uint32_t)sizeof(T));
    const uint32_t items = b.images * high.by_window.divisor * wide.by_window.divisor * a.inner;
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t m = item;
        const uint32_t c = a.inner == 1 ? 0 : wd_take_rest(m, a.by_inner);
        const int q = (int)wd_take_rest(m, wide.by_window);
        int p = (int)wd_take_rest(m, high.by_window) * a.sheet_rows;
        const int end = min(p + a.sheet_rows, b.over[1].count);
        if (q >= b.over[2].count || p >= end) continue;
        const int w0 = (b.over[2].low + q) * 2 - wide.pad;
        int h = (b.over[1].low + p) * 2 - high.pad;
        // columns outside: the nearest inside again, which is in the window, too, and found first on the right
        const uint32_t low = (uint32_t)max(-w0, 0);
        const int32_t line = (int32_t)(base + m * a.from.pitch[0] + c * (uint32_t)sizeof(T)) +
                             (h - b.under[1].low) * (int32_t)a.from.pitch[2];
        const unsigned char *column[3];
#pragma unroll
        for (int s = 0; s < 3; ++s) {
            column[s] = wd_dynamic_shared<unsigned char>() + line +
                        (min(max(w0 + s, 0), wide.image - 1) - b.under[2].low) * step;
        }
        const uint32_t row = m * a.sheet_windows + (uint32_t)p;
        unsigned char *to = band_at(a.sheet_places + row * b.pitch + (uint32_t)q * a.inner + c);
        const auto find = [&](sheet_row<T, MODE> &row) {
            row.find(column, low);
#pragma unroll
            for (int s = 0; s < 3; ++s) column[s] += a.from.pitch[2];
        };
        // a row that may be none of the image's
        const auto find_any = [&](sheet_row<T, MODE> &row) {
            row.clear();
            if ((uint32_t)h < (uint32_t)high.image) {
                find(row);
            } else {
#pragma unroll
                for (int s = 0; s < 3; ++s) column[s] += a.from.pitch[2];
            }
            h += 1;
        };
        sheet_row<T, MODE> first, middle, last;
        find_any(first);
        while (p < end) {
            int n = h < 0 ? 0 : min(end - p, (high.image - h) / 2); // of whole rows
            if (n > 0) {
                p += n;
                h += 2 * n;
#pragma unroll 2
                for (; n > 0; --n) {
                    find(middle);
                    find(last);
                    *to = (unsigned char)first.window(middle, last);
                    to += b.pitch;
                    first = last;
                }
            } else {
                find_any(middle);
                find_any(last);
                *to = (unsigned char)first.window(middle, last);
                to += b.pitch;
                first = last;
                p += 1;
            }
        }
    }
}

template <class T>
__device__ __forceinline__ void sheet_collect(const pool_band_args &a, const sheet_max_box &b,
                                              uint32_t base, uint32_t to_base)
{
    const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
    const reach *made = b.made, *over = b.over;
    const int32_t step = (int32_t)(a.inner * (uint32_t)sizeof(T));
    const uint32_t items = b.images * high.by_class.divisor * wide.by_class.divisor * a.inner;
    const int first_j = (made[2].low + wide.pad) / 2, first_i = (made[1].low + high.pad) / 2;
    const float alpha = (float)a.alpha;
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        const sheet_pair own(a, made, first_j, first_i, item);
        int h = own.h;
        int p = own.i - 1 - over[1].low;
        // rows of windows that there are not are not read
        const int32_t line =
            (int32_t)(base + own.m * a.shares.pitch[0] + own.c * (uint32_t)sizeof(T)) +
            p * (int32_t)a.shares.pitch[2];
        const int32_t places = (int32_t)(a.sheet_places + own.c) +
                               ((int32_t)(own.m * a.sheet_windows) + p) * (int32_t)b.pitch;
        const unsigned char *share[2], *place[2];
        uint32_t none[2]; // of a window that there is not, no place
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            int q = own.j - 1 + s - over[2].low;
            const bool in = (uint32_t)q < (uint32_t)over[2].count;
            none[s] = in ? 0 : SHEET_NO_PLACE;
            q = in ? q : 0;
            share[s] = wd_dynamic_shared<unsigned char>() + (line + q * step);
            place[s] = wd_dynamic_shared<unsigned char>() + (places + q * (int32_t)a.inner);
        }
        unsigned char *to =
            wd_dynamic_shared<unsigned char>() +
            ((int32_t)(to_base + own.m * a.to.pitch[0] + own.c * (uint32_t)sizeof(T)) +
             h * (int32_t)a.to.pitch[2] + own.w * step);
        unsigned char *next = to + step;
        float dy[2], above[2];
        uint32_t code[2], code_above[2];
        const auto read = [&]() {
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                above[s] = dy[s];
                code_above[s] = code[s];
                dy[s] = alpha * sheet_get<T>(share[s]);
                code[s] = *place[s] | none[s];
                share[s] += a.shares.pitch[2];
                place[s] += b.pitch;
            }
        };
        // a row of windows that may be none
        const auto read_any = [&]() {
            if ((uint32_t)p < (uint32_t)over[1].count) {
                read();
            } else {
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    above[s] = dy[s];
                    code_above[s] = code[s];
                    code[s] = SHEET_NO_PLACE;
                    share[s] += a.shares.pitch[2];
                    place[s] += b.pitch;
                }
            }
            p += 1;
        };
        const auto put = [&](float first, float second) {
            sheet_put_pair<T>(to, next, first, second, own.left, own.right);
            to += a.to.pitch[2];
            next += a.to.pitch[2];
        };
        // what windows hand on whose maximum is there; those above and on the left come first
        const auto upper = [&]() {
            float first = code_above[0] == 8 ? above[0] : 0.0f;
            float second = code_above[1] == 7 ? above[1] : 0.0f;
            if (code_above[1] == 6) first += above[1];
            if (code[0] == 2) first += dy[0];
            if (code[1] == 0) first += dy[1];
            if (code[1] == 1) second += dy[1];
            put(first, second);
        };
        const auto lower = [&]() {
            float first = code[0] == 5 ? dy[0] : 0.0f;
            if (code[1] == 3) first += dy[1];
            put(first, code[1] == 4 ? dy[1] : 0.0f);
        };
        dy[0] = dy[1] = 0.0f;
        code[0] = code[1] = SHEET_NO_PLACE;
        read_any();
        if (h < 0 && own.h_end > 0) { // the box begins within a pair of rows
            read_any();
            to += a.to.pitch[2];
            next += a.to.pitch[2];
            lower();
            h = 1;
        }
        while (h + 1 < own.h_end) {
            int n = p < 0 ? 0 : min((own.h_end - h) / 2, over[1].count - p);
            if (n > 0) {
                p += n;
                h += 2 * n;
#pragma unroll 2
                for (; n > 0; --n) {
                    read();
                    upper();
                    lower();
                }
            } else {
                read_any();
                upper();
                lower();
                h += 2;
            }
        }
        if (h < own.h_end) {
            read_any();
            upper();
        }
    }
}

template <class T> __device__ __forceinline__ void sheet_maxima(const pool_band_args &a)
{
    const pool_band_axis *x = a.axis;
    sheet_max_box b;
    uint32_t n = blockIdx.x;
    pairs_over(a, n, b.made, b.over);
    const uint32_t outer = n * a.tile_outer;
    b.images = min(a.tile_outer, a.outer - outer);
    b.pitch = x[2].by_window.divisor * a.inner;
    const int image[3] = {1, x[1].image, x[2].image};
    const int windows[3] = {1, x[1].windows, x[2].windows};
    all_of(a.shares, windows, b.over);
    b.under[0] = {0, 1};
#pragma unroll
    for (int i = 1; i < 3; ++i) b.under[i] = image_under(x[i], b.over[i], 2, 3);
    all_of(a.from, image, b.under);
    const placed px = place_of(outer, b.images, b.under, 1, image[1], image[2], a.inner);
    const placed py = place_of(outer, b.images, b.over, 1, windows[1], windows[2], a.inner);
    const placed out = place_of(outer, b.images, b.made, 1, image[1], image[2], a.inner);
    wd_wait_for_previous();
    stage_band<T>(a.from, a.x, px, a.inner);
    stage_band<T>(a.shares, a.dy, py, a.inner);
    wd_copies_wait_all();
    __syncthreads();
    const uint32_t from = first_at<T>(a.from, a.x, px);
    if (a.mode == POOL_MAX) sheet_find<T, POOL_MAX>(a, b, from);
    else sheet_find<T, POOL_MAX_NAN>(a, b, from);
    __syncthreads();
    sheet_collect<T>(a, b, first_at<T>(a.shares, a.dy, py), first_at<T>(a.to, a.out, out));
    sheet_out<T>(a, out);
}

} // namespace

#endif
