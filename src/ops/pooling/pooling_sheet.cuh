// SPDX-License-Identifier: Apache-2.0
//
// Sheets: gradients of windows of 3x3 over a box of lines in shared memory, which are put together in shared
// memory too and go out by lines of 16 bytes, at any alignment. A thread has a column of results and
// walks down the rows; where it reads and writes moves by one pitch a row, and what lies at the sides is
// asked once a column. Nothing is blended in.
#ifndef WD_OPS_POOLING_SHEET_CUH
#define WD_OPS_POOLING_SHEET_CUH

#include "ops/pooling/pooling_band_body.cuh"

namespace {

template <class T> __device__ __forceinline__ float sheet_get(const unsigned char *at)
{
    return wd_widen(*reinterpret_cast<const T *>(at));
}
template <class T> __device__ __forceinline__ void sheet_put(unsigned char *at, float value)
{
    T narrow;
    wd_narrow(narrow, value);
    *reinterpret_cast<T *>(at) = narrow;
}

// A pair of results, of those that there are.
template <class T>
__device__ __forceinline__ void sheet_put_pair(unsigned char *at, unsigned char *next, float first,
                                               float second, bool left, bool right)
{
    if constexpr (sizeof(T) == 2) {
        const uint32_t both = wd_packed_narrow<T>(first, second);
        if (left) *reinterpret_cast<uint16_t *>(at) = (uint16_t)both;
        if (right) *reinterpret_cast<uint16_t *>(next) = (uint16_t)(both >> 16);
    } else {
        if (left) sheet_put<T>(at, first);
        if (right) sheet_put<T>(next, second);
    }
}

// What a block made goes out.
template <class T>
__device__ __forceinline__ void sheet_out(const pool_band_args &a, const placed &p)
{
    constexpr uint32_t V = 16 / (uint32_t)sizeof(T);
    const uint32_t base = first_at<T>(a.to, a.out, p);
    __syncthreads();
    each_line(a.to, p, a.inner,
              [&](uint32_t at, size_t offset, uint32_t length, uint32_t lane, uint32_t lanes) {
                  // elements before the first whole run of memory, and runs
                  const uint32_t from = base + at;
                  const uint32_t head = min((16 - from % 16) % 16 / (uint32_t)sizeof(T), length);
                  const uint32_t runs = (length - head) / V;
                  T *to = static_cast<T *>(a.out) + p.first + offset;
#pragma unroll 2
                  for (uint32_t run = lane; run < runs; run += lanes) {
                      wd_run<T, V> all;
                      all.load(reinterpret_cast<const T *>(band_at(from)) + head + run * V);
                      if (a.streaming) all.store_streaming(to + head + run * V);
                      else all.store(to + head + run * V);
                  }
                  const uint32_t tail = head + runs * V;
                  for (uint32_t i = lane; i < head + length - tail; i += lanes) {
                      const uint32_t element = i < head ? i : tail + i - head;
                      to[element] = reinterpret_cast<const T *>(band_at(from))[element];
                  }
              });
}

// A column of windows over dy, whose rows' sums have their weights; elements outside are left out.
template <class T> struct sheet_column {
    const unsigned char *column[3]; // of the next row
    bool in[3];
    float weight[3];

    // Row h, the next one.
    __device__ __forceinline__ float read(const pool_band_args &a, int h)
    {
        float row = 0.0f;
        if ((uint32_t)h < (uint32_t)a.axis[1].image) {
            float v[3];
#pragma unroll
            for (int s = 0; s < 3; ++s) v[s] = sheet_get<T>(column[s]);
#pragma unroll
            for (int s = 0; s < 3; ++s) {
                if (s == 0) row = in[s] ? v[s] * weight[s] : 0.0f;
                else if (in[s]) row = fmaf(v[s], weight[s], row);
            }
            if (a.exclude) row *= inverse_of_three<float>(band_covers(a.axis[1], h, 1));
        }

#pragma unroll
        for (int s = 0; s < 3; ++s) column[s] += a.from.pitch[2];
        return row;
    }
};

// A block's gradients of averages at a stride of 1, which are windows over dy.
template <class T>
__device__ __forceinline__ void sheet_windows(const pool_band_args &a, const band_box &b,
                                              uint32_t to_base)
{
    const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
    const uint32_t step = a.inner * (uint32_t)sizeof(T);
    const uint32_t items = b.images * high.by_class.divisor * wide.by_class.divisor * a.inner;
    const float alpha = (float)a.alpha, inverse = (float)a.inverse;
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t m = item;
        const uint32_t c = a.inner == 1 ? 0 : wd_take_rest(m, a.by_inner);
        const int q = b.made[2].low + (int)wd_take_rest(m, wide.by_class);
        int p = b.made[1].low + (int)wd_take_rest(m, high.by_class) * a.sheet_rows;
        const int end = min(p + a.sheet_rows, b.made[1].low + b.made[1].count);
        if (q >= b.made[2].low + b.made[2].count || p >= end) continue;
        sheet_column<T> of;
        const int w0 = q - wide.pad;
        int h = p - high.pad;
        // before the box where the first rows are padding, which are not read
        const int32_t line = (int32_t)(b.base + m * a.from.pitch[0] + c * (uint32_t)sizeof(T)) +
                             (h - b.under[1].low) * (int32_t)a.from.pitch[2];
#pragma unroll
        for (int s = 0; s < 3; ++s) {
            const int w = w0 + s;
            of.in[s] = (uint32_t)w < (uint32_t)wide.image;
            of.column[s] = wd_dynamic_shared<unsigned char>() + line +
                           (min(max(w, 0), wide.image - 1) - b.under[2].low) * (int32_t)step;
            of.weight[s] = a.exclude ? inverse_of_three<float>(band_covers(wide, w, 1)) : 1.0f;
        }

        unsigned char *to =
            band_at(to_base + m * a.to.pitch[0] + (uint32_t)(p - b.made[1].low) * a.to.pitch[2] +
                    (uint32_t)(q - b.made[2].low) * step + c * (uint32_t)sizeof(T));
        const float factor = a.exclude ? alpha : alpha * inverse;
        float older = of.read(a, h), newer = of.read(a, h + 1);
        h += 2;
#pragma unroll 2
        for (; p < end; ++p) {
            const float now = of.read(a, h++);
            sheet_put<T>(to, (older + newer + now) * factor);
            older = newer;
            newer = now;
            to += a.to.pitch[2];
        }
    }
}

template <class T>
__device__ __forceinline__ void sheet_stage(const pool_band_args &a, const void *from, band_box &b,
                                            placed &out)
{
    band_stage<T>(a, from, b);
    out = place_of(b.outer, b.images, b.made, 1, a.axis[1].windows, a.axis[2].windows, a.inner);
}

// Gradients of averages at a stride of 2. Columns and rows are counted within the padded image: of a pair
// 2j, 2j + 1 the first is in the windows j - 1 and j, the second in window j. A thread has a pair of
// columns.
template <class T> __device__ __forceinline__ void sheet_pairs(const pool_band_args &a)
{
    const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
    const uint32_t step = a.inner * (uint32_t)sizeof(T);
    uint32_t n = blockIdx.x;
    reach made[3], over[3];
#pragma unroll
    for (int i = 2; i >= 0; --i) {
        const pool_band_axis &x = a.axis[i];
        made[i].low = (int)wd_take_rest(n, x.by_tiles) * x.outs;
        made[i].count = min(x.outs, x.image - made[i].low);
        over[i] = windows_over(x, made[i].low, made[i].low + made[i].count - 1);
    }
    const uint32_t outer = n * a.tile_outer;
    const uint32_t images = min(a.tile_outer, a.outer - outer);
    const int windows[3] = {1, high.windows, wide.windows};
    all_of(a.from, windows, over);
    const placed from = place_of(outer, images, over, 1, high.windows, wide.windows, a.inner);
    const placed out = place_of(outer, images, made, 1, high.image, wide.image, a.inner);
    stage_band<T>(a.from, a.dy, from, a.inner);
    wd_copies_wait_all();
    __syncthreads();

    const uint32_t base = first_at<T>(a.from, a.dy, from);
    const uint32_t to_base = first_at<T>(a.to, a.out, out);
    const uint32_t items = images * high.by_class.divisor * wide.by_class.divisor * a.inner;
    const int first_j = (made[2].low + wide.pad) / 2, first_i = (made[1].low + high.pad) / 2;
    const float alpha = (float)a.alpha;
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t m = item;
        const uint32_t c = a.inner == 1 ? 0 : wd_take_rest(m, a.by_inner);
        const int j = first_j + (int)wd_take_rest(m, wide.by_class);
        const int i = first_i + (int)wd_take_rest(m, high.by_class) * a.sheet_rows;
        const int w = 2 * j - wide.pad - made[2].low; // within the box
        int h = 2 * i - high.pad - made[1].low;
        const int h_end = min(h + 2 * a.sheet_rows, made[1].count);
        const bool left = (uint32_t)w < (uint32_t)made[2].count;
        const bool right = (uint32_t)(w + 1) < (uint32_t)made[2].count;
        bool in[2];
        float weight[2];
        uint32_t column[2];
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const int q = j - 1 + s - over[2].low;
            in[s] = (uint32_t)q < (uint32_t)over[2].count;
            column[s] = in[s] ? (uint32_t)q * step : 0;
            weight[s] = alpha * (float)a.inverse;
            if (a.exclude)
                weight[s] = alpha * inverse_of_three<float>(band_covers(wide, j - 1 + s, 2));
        }
        int p = i - 1 - over[1].low;
        // rows of windows, or of the box, that there are not are neither read nor written
        const int32_t line = (int32_t)(base + m * a.from.pitch[0] + c * (uint32_t)sizeof(T)) +
                             p * (int32_t)a.from.pitch[2];
        const unsigned char *one = wd_dynamic_shared<unsigned char>() + line + (int32_t)column[0];
        const unsigned char *two = wd_dynamic_shared<unsigned char>() + line + (int32_t)column[1];
        unsigned char *to = wd_dynamic_shared<unsigned char>() +
                            ((int32_t)(to_base + m * a.to.pitch[0] + c * (uint32_t)sizeof(T)) +
                             h * (int32_t)a.to.pitch[2] + w * (int32_t)step);
        unsigned char *next = to + step;
        const auto read = [&](float &both, float &second) {
            both = second = 0.0f;
            if ((uint32_t)p < (uint32_t)over[1].count) {
                const float first = sheet_get<T>(one);
                second = sheet_get<T>(two);
                second = in[1] ? second * weight[1] : 0.0f;
                both = second;
                if (in[0]) both = fmaf(first, weight[0], second);
                if (a.exclude) {
                    const float share =
                        inverse_of_three<float>(band_covers(high, p + over[1].low, 2));
                    both *= share;
                    second *= share;
                }
            }
            p += 1;
            one += a.from.pitch[2];
            two += a.from.pitch[2];
        };
        const auto put = [&](float first, float second) {
            sheet_put_pair<T>(to, next, first, second, left, right);
            to += a.to.pitch[2];
            next += a.to.pitch[2];
        };
        float both, second, now_both, now_second;
        read(both, second);
        if (h < 0 && h_end > 0) { // the box begins within a pair of rows
            read(both, second);
            to += a.to.pitch[2];
            next += a.to.pitch[2];
            put(both, second);
            h = 1;
        }
#pragma unroll 2
        for (; h + 1 < h_end; h += 2) {
            read(now_both, now_second);
            put(both + now_both, second + now_second);
            put(now_both, now_second);
            both = now_both;
            second = now_second;
        }
        if (h < h_end) {
            read(now_both, now_second);
            put(both + now_both, second + now_second);
        }
    }
    sheet_out<T>(a, out);
}

} // namespace

#endif
