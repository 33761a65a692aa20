// SPDX-License-Identifier: Apache-2.0
//
// Sheets: gradients of windows of 3x3 over a box of lines in shared memory, which are put together in shared
// memory too and go out by lines of 16 bytes, at any alignment. A thread has a column of results and
// walks down the rows; where it reads and writes moves by one pitch a row, and what lies at the sides is
// asked once a column. Nothing is blended in.
#ifndef WD_OPS_POOLING_SHEET_CUH
#define WD_OPS_POOLING_SHEET_CUH

#include "ops/pooling/pooling_band_columns.cuh"

namespace {

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

// A lane's runs of a line: every LANES, or `lanes` if that is 0.
template <class T, uint32_t LANES, bool STREAMING>
__device__ __forceinline__ void sheet_put_runs(T *to, const T *line, uint32_t run, uint32_t end,
                                               uint32_t lanes)
{
    constexpr uint32_t V = 16 / (uint32_t)sizeof(T);
    const uint32_t stride = LANES > 0 ? LANES : lanes;
#pragma unroll(LANES > 0 ? 4 : 1)
    for (; run < end; run += stride) {
        wd_run<T, V> all;
        all.load(line);
        if (STREAMING) all.store_streaming(to);
        else all.store(to);
        to += stride * V;
        line += stride * V;
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
              [&](uint32_t at, uint32_t offset, uint32_t length, uint32_t lane, uint32_t lanes) {
                  // elements before the first whole run of memory, and runs
                  const uint32_t from = base + at;
                  const uint32_t head = min((16 - from % 16) % 16 / (uint32_t)sizeof(T), length);
                  const uint32_t runs = (length - head) / V, rest = length - runs * V;
                  const T *line = reinterpret_cast<const T *>(band_at(from));
                  const uint32_t to = p.first + offset, first = head + lane * V;
                  T *out = static_cast<T *>(a.out) + (to + first);
                  if (lanes == 8 && a.streaming)
                      sheet_put_runs<T, 8, true>(out, line + first, lane, runs, 8);
                  else if (a.streaming)
                      sheet_put_runs<T, 0, true>(out, line + first, lane, runs, lanes);
                  else sheet_put_runs<T, 0, false>(out, line + first, lane, runs, lanes);
#pragma unroll 1
                  for (uint32_t i = lane; i < rest; i += lanes) {
                      const uint32_t element = i < head ? i : i + runs * V;
                      static_cast<T *>(a.out)[to + element] = line[element];
                  }
              });
}

// What a thread has of a box, whose first pairs of columns and rows are first_j and first_i: of an image's channel a pair of
// columns, and of these a.sheet_rows pairs of rows.
struct sheet_pair {
    uint32_t m; // the image
    uint32_t c;
    int j; // the pair of columns
    int i; // the first pair of rows
    int w; // these within the box
    int h;
    int h_end;
    bool left; // of the columns, that there are
    bool right;

    __device__ __forceinline__ sheet_pair(const pool_band_args &a, const reach *made, int first_j,
                                          int first_i, uint32_t item)
        : m(item)
    {
        const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
        c = a.inner == 1 ? 0 : wd_take_rest(m, a.by_inner);
        j = first_j + (int)wd_take_rest(m, wide.by_class);
        i = first_i + (int)wd_take_rest(m, high.by_class) * a.sheet_rows;
        w = 2 * j - wide.pad - made[2].low;
        h = 2 * i - high.pad - made[1].low;
        h_end = min(h + 2 * a.sheet_rows, made[1].count);
        left = (uint32_t)w < (uint32_t)made[2].count;
        right = (uint32_t)(w + 1) < (uint32_t)made[2].count;
    }
};

// Gradients of averages at a stride of 2. Columns and rows are counted within the padded image: of a pair
// 2j, 2j + 1 the first is in the windows j - 1 and j, the second in window j. A thread has a pair of
// columns.
template <class T> __device__ __forceinline__ void sheet_pairs(const pool_band_args &a)
{
    const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
    const uint32_t step = a.inner * (uint32_t)sizeof(T);
    uint32_t n = blockIdx.x;
    reach made[3], over[3];
    pairs_over(a, n, made, over);
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
    // rows of windows over the box that have the weight that most have
    int first_whole = 0, whole = over[1].count;
    if (a.exclude) {
        first_whole = (high.cover_pad + 1) / 2 - over[1].low;
        whole = min(whole, (high.cover_image - 1 + high.cover_pad) / 2 - over[1].low);
        first_whole = max(first_whole, 0);
    }
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        const sheet_pair own(a, made, first_j, first_i, item);
        int h = own.h;
        bool in[2];
        float weight[2];
        uint32_t column[2];
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const int q = own.j - 1 + s - over[2].low;
            in[s] = (uint32_t)q < (uint32_t)over[2].count;
            column[s] = in[s] ? (uint32_t)q * step : 0;
            weight[s] = alpha * (float)a.inverse;
            if (a.exclude) {
                weight[s] = alpha * (1.0f / 3.0f) *
                            inverse_of_three<float>(band_covers(wide, own.j - 1 + s, 2));
            }
        }
        int p = own.i - 1 - over[1].low;
        // rows of windows, or of the box, that there are not are neither read nor written
        const int32_t line =
            (int32_t)(base + own.m * a.from.pitch[0] + own.c * (uint32_t)sizeof(T)) +
            p * (int32_t)a.from.pitch[2];
        const unsigned char *one = wd_dynamic_shared<unsigned char>() + line + (int32_t)column[0];
        const unsigned char *two = wd_dynamic_shared<unsigned char>() + line + (int32_t)column[1];
        unsigned char *to =
            wd_dynamic_shared<unsigned char>() +
            ((int32_t)(to_base + own.m * a.to.pitch[0] + own.c * (uint32_t)sizeof(T)) +
             h * (int32_t)a.to.pitch[2] + own.w * (int32_t)step);
        unsigned char *next = to + step;
        const auto read = [&](float &both, float &second) {
            const float first = sheet_get<T>(one);
            second = sheet_get<T>(two);
            second = in[1] ? second * weight[1] : 0.0f;
            both = second;
            if (in[0]) both = fmaf(first, weight[0], second);
            one += a.from.pitch[2];
            two += a.from.pitch[2];
        };
        // a row of windows that may be none
        const auto read_any = [&](float &both, float &second) {
            both = second = 0.0f;
            if ((uint32_t)p < (uint32_t)over[1].count) {
                read(both, second);
                if (a.exclude) {
                    const float share = three_over(band_covers(high, p + over[1].low, 2));
                    both *= share;
                    second *= share;
                }
            } else {
                one += a.from.pitch[2];
                two += a.from.pitch[2];
            }
            p += 1;
        };
        // a pair of rows, of which the windows of the first are those above, too
        const auto put_pair = [&](float both, float second, float now_both, float now_second) {
            sheet_put_pair<T>(to, next, both + now_both, second + now_second, own.left, own.right);
            sheet_put_pair<T>(to + a.to.pitch[2], next + a.to.pitch[2], now_both, now_second,
                              own.left, own.right);
            to += 2 * a.to.pitch[2];
            next += 2 * a.to.pitch[2];
        };
        float both, second, now_both, now_second;
        read_any(both, second);
        if (h < 0 && own.h_end > 0) { // the box begins within a pair of rows
            read_any(both, second);
            to += a.to.pitch[2];
            next += a.to.pitch[2];
            sheet_put_pair<T>(to, next, both, second, own.left, own.right);
            to += a.to.pitch[2];
            next += a.to.pitch[2];
            h = 1;
        }
        while (h + 1 < own.h_end) {
            if (p >= first_whole && p < whole) {
                int n = min((own.h_end - h) / 2, whole - p);
                h += 2 * n;
                p += n;
#pragma unroll 2
                for (; n > 0; --n) {
                    read(now_both, now_second);
                    put_pair(both, second, now_both, now_second);
                    both = now_both;
                    second = now_second;
                }
            } else {
                read_any(now_both, now_second);
                put_pair(both, second, now_both, now_second);
                both = now_both;
                second = now_second;
                h += 2;
            }
        }
        if (h < own.h_end) {
            read_any(now_both, now_second);
            sheet_put_pair<T>(to, next, both + now_both, second + now_second, own.left, own.right);
        }
    }
    sheet_out<T>(a, out);
}

} // namespace

#endif
