// SPDX-License-Identifier: Apache-2.0
//
// Windows of SIZE x SIZE over boxes of images of two dimensions, at any alignment: a thread has a column
// of a few results and puts each row of elements together once. Gradients of averages whose windows begin
// at every element are such windows over dy. A box is staged by the same code whatever is made of it.
#ifndef WD_OPS_POOLING_BAND_BODY_CUH
#define WD_OPS_POOLING_BAND_BODY_CUH

#include "ops/pooling/pooling_band.cuh"

namespace {

// How many elements of the image window `at` covers along an axis.
__device__ __forceinline__ int band_covers(const pool_band_axis &x, int at, int stride)
{
    const int start = at * stride - x.cover_pad;
    return max(min(start + x.size, x.cover_image) - max(start, 0), 0);
}

// 1 / n of the at most three elements that a window covers along an axis.
template <class A> __device__ __forceinline__ A inverse_of_three(int n)
{
    return n >= 3 ? (A)(1.0 / 3.0) : n == 2 ? (A)0.5 : (A)1;
}

// A box in shared memory: the results over it, and the elements that they are made of.
struct band_box {
    reach made[3];
    reach under[3];
    uint32_t outer; // the first image
    uint32_t images;
    uint32_t base; // where the first element lies
};

// What a block makes of a plane, and the windows of 3 elements at a stride of 2 over it; n becomes the image.
__device__ __forceinline__ void pairs_over(const pool_band_args &a, uint32_t &n, reach *made,
                                           reach *over)
{
    made[0] = over[0] = {0, 1};
#pragma unroll
    for (int i = 2; i >= 1; --i) {
        const pool_band_axis &x = a.axis[i];
        made[i].low = (int)wd_take_rest(n, x.by_tiles) * x.outs;
        made[i].count = min(x.outs, x.image - made[i].low);
        const int first = made[i].low + x.pad, last = first + made[i].count - 1;
        over[i].low = (max(first, 1) - 1) / 2;
        over[i].count = max(min(last / 2 + 1, x.windows) - over[i].low, 0);
    }
}

// Stages what the windows of a block reach over, of `from`, which is a plane.
template <class T, int STRIDE>
__device__ __forceinline__ void band_stage(const pool_band_args &a, const void *from, band_box &b)
{
    const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
    uint32_t n = blockIdx.x;
    b.made[0] = b.under[0] = {0, 1};
#pragma unroll
    for (int i = 2; i >= 1; --i) {
        const pool_band_axis &x = a.axis[i];
        b.made[i].low = (int)wd_take_rest(n, x.by_tiles) * x.outs;
        b.made[i].count = min(x.outs, x.windows - b.made[i].low);
        b.under[i] = image_under(x, b.made[i], STRIDE, 3);
    }
    b.outer = n * a.tile_outer;
    b.images = min(a.tile_outer, a.outer - b.outer);
    const int image[3] = {1, high.image, wide.image};
    all_of(a.from, image, b.under);
    const placed px = place_of(b.outer, b.images, b.under, 1, high.image, wide.image, a.inner);
    stage_band<T>(a.from, from, px, a.inner);
    wd_copies_wait_all();
    __syncthreads();
    b.base = first_at<T>(a.from, from, px);
}

// STRIDE of both axes, ROWS results of a thread. SPREAD: gradients of averages; what
// is forward never blends.
template <class T, int MODE, int SIZE, int STRIDE, int ROWS, bool SPREAD>
__device__ __forceinline__ void band_windows(const pool_band_args &a, const band_box &b)
{
    using A = acc<T>;
    constexpr bool SUM = MODE == POOL_AVERAGE;
    constexpr int LINES = (ROWS - 1) * STRIDE + SIZE;
    const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
    const reach *made = b.made, *under = b.under;
    const uint32_t inner = a.inner;
    const uint32_t step = inner * (uint32_t)sizeof(T);
    const uint32_t pitch = (uint32_t)wide.windows * inner; // of a row of results
    const uint32_t items = b.images * high.by_class.divisor * wide.by_class.divisor * inner;
    const pool_out<A> result(a);
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t m = item;
        const uint32_t c = inner == 1 ? 0 : wd_take_rest(m, a.by_inner);
        const int q = made[2].low + (int)wd_take_rest(m, wide.by_class);
        const int p = made[1].low + (int)wd_take_rest(m, high.by_class) * ROWS;
        if (q >= made[2].low + made[2].count) continue;
        const int w0 = q * STRIDE - wide.pad, h0 = p * STRIDE - high.pad;
        const uint32_t line = b.base + m * a.from.pitch[0] + c * (uint32_t)sizeof(T);
        uint32_t column[SIZE];
        bool in[SIZE];
        A weight[SIZE];
#pragma unroll
        for (int s = 0; s < SIZE; ++s) {
            const int w = w0 + s;
            in[s] = (uint32_t)w < (uint32_t)wide.image;
            // of those outside, sums take nothing, maxima the nearest inside again
            column[s] = (uint32_t)(min(max(w, 0), wide.image - 1) - under[2].low) * step;
            weight[s] = (A)1;
            if (SPREAD && a.exclude && in[s])
                weight[s] = inverse_of_three<A>(band_covers(wide, w, 1));
        }
        A of_row[LINES];
#pragma unroll
        for (int r = 0; r < LINES; ++r) {
            const int h = h0 + r;
            const bool there = (uint32_t)h < (uint32_t)high.image;
            const int nearest = min(max(h, 0), high.image - 1) - under[1].low;
            // rows of results that there are not
            const uint32_t at = line + (uint32_t)min(nearest, under[1].count - 1) * a.from.pitch[2];
            A sum = (A)0;
#pragma unroll
            for (int s = 0; s < SIZE; ++s) {
                A v = wd_widen(*reinterpret_cast<const T *>(band_at(at + column[s])));
                if (SUM) v = in[s] ? v : (A)0;
                if (SPREAD) v *= weight[s];
                if (s == 0) sum = v;
                else take<MODE>(sum, v);
            }
            if (SUM) sum = there ? sum : (A)0;
            if (SPREAD && a.exclude && there) sum *= inverse_of_three<A>(band_covers(high, h, 1));
            of_row[r] = sum;
        }
        const A of_column = inverse_of_three<A>(band_covers(wide, q, STRIDE));
        // elements are less than 2^31
        const uint32_t row = (b.outer + m) * (uint32_t)high.windows + (uint32_t)p;
        uint32_t to = row * pitch + (uint32_t)q * inner + c;
#pragma unroll
        for (int k = 0; k < ROWS; ++k) {
            if (p + k >= made[1].low + made[1].count) break;
            A value = of_row[k * STRIDE];
#pragma unroll
            for (int r = 1; r < SIZE; ++r) take<MODE>(value, of_row[k * STRIDE + r]);
            if (!SUM) {
                if (MODE == POOL_MAX && value != value) value = (A)a.lowest;
            } else if (!a.exclude) {
                value *= (A)a.inverse;
            } else if (!SPREAD) {
                value *= inverse_of_three<A>(band_covers(high, p + k, STRIDE)) * of_column;
            }
            if (SPREAD) result.template put<T>(to, value);
            else result.template put_plain<T>(to, value);
            to += pitch;
        }
    }
}

// Gradients of averages over 3x3 elements at a stride of 2. Columns and rows are counted within the padded
// image: of a pair 2j, 2j + 1 the first is in the windows j - 1 and j, the second in window j. A thread has
// such a pair of columns and ROWS such pairs of rows.
template <class T, int ROWS>
__device__ __forceinline__ void band_spread_pairs(const pool_band_args &a)
{
    using A = acc<T>;
    const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
    const uint32_t inner = a.inner;
    uint32_t n = blockIdx.x;
    reach made[3], over[3];
    pairs_over(a, n, made, over);
    const uint32_t outer = n * a.tile_outer;
    const uint32_t images = min(a.tile_outer, a.outer - outer);
    const int windows[3] = {1, high.windows, wide.windows};
    all_of(a.from, windows, over);
    const placed py = place_of(outer, images, over, 1, high.windows, wide.windows, inner);
    stage_band<T>(a.from, a.dy, py, inner);
    wd_copies_wait_all();
    __syncthreads();

    const uint32_t base = first_at<T>(a.from, a.dy, py);
    const uint32_t step = inner * (uint32_t)sizeof(T);
    const uint32_t items = images * high.by_class.divisor * wide.by_class.divisor * inner;
    const pool_out<A> result(a);
    const int first_j = (made[2].low + wide.pad) / 2, first_i = (made[1].low + high.pad) / 2;
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t m = item;
        const uint32_t c = inner == 1 ? 0 : wd_take_rest(m, a.by_inner);
        const int j = first_j + (int)wd_take_rest(m, wide.by_class);
        const int i = first_i + (int)wd_take_rest(m, high.by_class) * ROWS;
        const int w = 2 * j - wide.pad, h = 2 * i - high.pad;
        const uint32_t line = base + m * a.from.pitch[0] + c * (uint32_t)sizeof(T);
        uint32_t column[2];
        bool in[2];
        A weight[2];
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const int q = j - 1 + s - over[2].low;
            in[s] = (uint32_t)q < (uint32_t)over[2].count;
            column[s] = (uint32_t)q * step;
            weight[s] = (A)a.inverse;
            if (a.exclude && in[s])
                weight[s] = inverse_of_three<A>(band_covers(wide, j - 1 + s, 2));
        }
        A both[ROWS + 1], right[ROWS + 1]; // of the first column, of the second
#pragma unroll
        for (int r = 0; r <= ROWS; ++r) {
            const int p = i - 1 + r - over[1].low;
            const bool there = (uint32_t)p < (uint32_t)over[1].count;
            const uint32_t at = line + (uint32_t)p * a.from.pitch[2];
            A v[2];
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                v[s] = (A)0;
                if (there && in[s]) {
                    v[s] = wd_widen(*reinterpret_cast<const T *>(band_at(at + column[s])));
                }
                v[s] *= weight[s];
            }
            both[r] = v[0] + v[1];
            right[r] = v[1];
            if (a.exclude && there) {
                const A share = inverse_of_three<A>(band_covers(high, i - 1 + r, 2));
                both[r] *= share;
                right[r] *= share;
            }
        }
        const size_t row = (size_t)(outer + m) * high.image;
#pragma unroll
        for (int k = 0; k < 2 * ROWS; ++k) {
            if ((uint32_t)(h + k - made[1].low) >= (uint32_t)made[1].count) continue;
            const size_t pixel = (row + (uint32_t)(h + k)) * wide.image;
            // of a first row the windows above come before those that begin there
            const A sum[2] = {k % 2 ? both[k / 2 + 1] : both[k / 2] + both[k / 2 + 1],
                              k % 2 ? right[k / 2 + 1] : right[k / 2] + right[k / 2 + 1]};
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                if ((uint32_t)(w + s - made[2].low) >= (uint32_t)made[2].count) continue;
                result.template put<T>((pixel + (uint32_t)(w + s)) * inner + c, sum[s]);
            }
        }
    }
}

} // namespace

#endif
