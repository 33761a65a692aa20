// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima, a box of dx at a time: the elements of all windows over the box are staged, each
// window's first largest is found, and its gradient added there, in shared memory. Windows that overlap
// are of different classes, which take turns: sums are in an order that depends on the shape alone.
// Staging and what goes out are most of the code: the same for all windows and both modes.
#ifndef WD_OPS_POOLING_SCATTER_CUH
#define WD_OPS_POOLING_SCATTER_CUH

#include "ops/pooling/pooling_band.cuh"

namespace {

// The largest so far and where it is; elements come in row-major order, the first one by start().
template <int MODE, class A> struct first_largest {
    A value;
    uint32_t code;
    __device__ __forceinline__ void start(A v, uint32_t at)
    {
        value = v;
        code = at;
    }
    __device__ __forceinline__ void take(A v, uint32_t at)
    {
        if (MODE == POOL_MAX) { // a NaN is no candidate, and gives way to any number
            const A most = larger(value, v);
            code = most == value ? code : at;
            value = most;
        } else { // a NaN stays
            const bool takes = !(v <= value) && value == value;
            code = takes ? at : code;
            value = takes ? v : value;
        }
    }
    __device__ __forceinline__ bool found() const
    {
        return MODE == POOL_MAX_NAN || value == value;
    }
};

// What is staged of a box of dx, and where: x, dy and the sums.
template <class T> struct scatter_box {
    reach made[3];
    reach over[3];
    reach under[3];
    uint32_t images;
    uint32_t x_at;
    uint32_t dy_at;
    acc<T> *sums;
};

// SIZE: windows of SIZE x SIZE in one plane, or 0 for any.
template <class T, int MODE, int SIZE>
__device__ __forceinline__ void scatter_turns(const pool_band_args &a, const scatter_box<T> &b)
{
    using A = acc<T>;
    const pool_band_axis *x = a.axis;
    const reach *made = b.made, *over = b.over, *under = b.under;
    const uint32_t inner = a.inner, x_at = b.x_at, dy_at = b.dy_at;
    const uint32_t step = inner * (uint32_t)sizeof(T);
    const uint32_t columns = x[2].by_class.divisor * inner;
    const uint32_t rows = x[1].by_class.divisor, planes = x[0].by_class.divisor;
    const uint32_t items = b.images * planes * rows * columns;
#pragma unroll 1
    for (int turn_d = 0; turn_d < x[0].classes; ++turn_d) {
#pragma unroll 1
        for (int turn_h = 0; turn_h < x[1].classes; ++turn_h) {
#pragma unroll 1
            for (int turn_w = 0; turn_w < x[2].classes; ++turn_w) {
#pragma unroll 1
                for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
                    uint32_t m = item;
                    const uint32_t c = inner == 1 ? 0 : wd_take_rest(m, a.by_inner);
                    const int q = (int)wd_take_rest(m, x[2].by_class) * x[2].classes + turn_w;
                    const int p = (int)wd_take_rest(m, x[1].by_class) * x[1].classes + turn_h;
                    const int z =
                        SIZE > 0 ? 0 : (int)wd_take_rest(m, x[0].by_class) * x[0].classes + turn_d;
                    if (q >= over[2].count || p >= over[1].count || z >= over[0].count) continue;
                    const uint32_t share_at = dy_at + m * a.shares.pitch[0] +
                                              (uint32_t)z * a.shares.pitch[1] +
                                              (uint32_t)p * a.shares.pitch[2] + (uint32_t)q * step +
                                              c * (uint32_t)sizeof(T);
                    const T share = *reinterpret_cast<const T *>(band_at(share_at));
                    // where the window begins within what is staged
                    const int w0 = (over[2].low + q) * x[2].stride - x[2].pad - under[2].low;
                    const int h0 = (over[1].low + p) * x[1].stride - x[1].pad - under[1].low;
                    const int d0 =
                        SIZE > 0 ? 0 : (over[0].low + z) * x[0].stride - x[0].pad - under[0].low;
                    const uint32_t line = x_at + m * a.from.pitch[0] + c * (uint32_t)sizeof(T);
                    first_largest<MODE, A> best;
                    int d = 0, h, w;
                    auto element = [&](uint32_t at) {
                        return wd_widen(*reinterpret_cast<const T *>(band_at(at)));
                    };
                    if constexpr (SIZE > 0) {
                        // elements outside are the nearest ones inside, seen twice
                        uint32_t row_at[SIZE], column_at[SIZE];
#pragma unroll
                        for (int r = 0; r < SIZE; ++r) {
                            row_at[r] = line + (uint32_t)min(max(h0 + r, 0), under[1].count - 1) *
                                                   a.from.pitch[2];
                            column_at[r] = (uint32_t)min(max(w0 + r, 0), under[2].count - 1) * step;
                        }
                        best.start(element(row_at[0] + column_at[0]), 0);
#pragma unroll
                        for (int r = 1; r < SIZE * SIZE; ++r) {
                            best.take(element(row_at[r / SIZE] + column_at[r % SIZE]), r);
                        }
                        h = (int)(best.code / SIZE);
                        w = (int)best.code - h * SIZE;
                        h = min(max(h0 + h, 0), under[1].count - 1);
                        w = min(max(w0 + w, 0), under[2].count - 1);
                    } else {
                        const int end_d = min(d0 + x[0].size, under[0].count);
                        const int end_h = min(h0 + x[1].size, under[1].count);
                        const int end_w = min(w0 + x[2].size, under[2].count);
                        const int low_h = max(h0, 0), low_w = max(w0, 0);
                        if (max(d0, 0) >= end_d || low_h >= end_h || low_w >= end_w) continue;
                        // codes are coordinates within what is staged
                        best.start(element(line + (uint32_t)max(d0, 0) * a.from.pitch[1] +
                                           (uint32_t)low_h * a.from.pitch[2] +
                                           (uint32_t)low_w * step),
                                   0);
                        int best_d = max(d0, 0), best_h = low_h;
                        best.code = (uint32_t)low_w;
#pragma unroll 1
                        for (d = max(d0, 0); d < end_d; ++d) {
#pragma unroll 1
                            for (h = low_h; h < end_h; ++h) {
                                first_largest<MODE, A> before = best;
                                uint32_t at = line + (uint32_t)d * a.from.pitch[1] +
                                              (uint32_t)h * a.from.pitch[2] +
                                              (uint32_t)low_w * step;
                                best.code = 0xffffffffu;
#pragma unroll 1
                                for (w = low_w; w < end_w; ++w, at += step)
                                    best.take(element(at), (uint32_t)w);
                                if (best.code == 0xffffffffu) best.code = before.code;
                                else best_d = d, best_h = h;
                            }
                        }
                        w = (int)best.code;
                        d = best_d;
                        h = best_h;
                    }
                    w += under[2].low - made[2].low;
                    h += under[1].low - made[1].low;
                    d += under[0].low - made[0].low;
                    if ((uint32_t)w >= (uint32_t)made[2].count ||
                        (uint32_t)h >= (uint32_t)made[1].count ||
                        (SIZE == 0 && (uint32_t)d >= (uint32_t)made[0].count) || !best.found()) {
                        continue;
                    }
                    A *sum = b.sums + m * a.to.pitch[0] + (uint32_t)h * a.to.pitch[2] +
                             (uint32_t)w * inner + c;
                    if (SIZE == 0) sum += (uint32_t)d * a.to.pitch[1];
                    *sum += wd_widen(share);
                }
                __syncthreads();
            }
        }
    }
}

template <class T> __device__ __forceinline__ void scatter(const pool_band_args &a)
{
    const pool_band_axis *x = a.axis;
    const uint32_t inner = a.inner;
    scatter_box<T> b;
    reach *made = b.made, *over = b.over, *under = b.under;
    uint32_t n = blockIdx.x;
#pragma unroll
    for (int i = 2; i >= 0; --i) {
        made[i].low = (int)wd_take_rest(n, x[i].by_tiles) * x[i].outs;
        made[i].count = min(x[i].outs, x[i].image - made[i].low);
        over[i] = windows_over(x[i], made[i].low, made[i].low + made[i].count - 1);
    }
    const uint32_t outer = n * a.tile_outer;
    b.images = min(a.tile_outer, a.outer - outer);
    const int image[3] = {x[0].image, x[1].image, x[2].image};
    const int windows[3] = {x[0].windows, x[1].windows, x[2].windows};
    all_of(a.shares, windows, over);
#pragma unroll
    for (int i = 0; i < 3; ++i) under[i] = image_under(x[i], over[i], x[i].stride, x[i].size);
    all_of(a.from, image, under);
    const placed px = place_of(outer, b.images, under, image[0], image[1], image[2], inner);
    const placed py = place_of(outer, b.images, over, windows[0], windows[1], windows[2], inner);
    const placed pd = place_of(outer, b.images, made, image[0], image[1], image[2], inner);
    stage_band<T>(a.from, a.x, px, inner);
    stage_band<T>(a.shares, a.dy, py, inner);
    uint4 *zero = reinterpret_cast<uint4 *>(band_at(a.to.at));
    for (uint32_t i = threadIdx.x; i < a.sums_bytes / 16; i += blockDim.x) {
        zero[i] = make_uint4(0, 0, 0, 0);
    }
    wd_copies_wait_all();
    __syncthreads();

    b.x_at = first_at<T>(a.from, a.x, px);
    b.dy_at = first_at<T>(a.shares, a.dy, py);
    const uint32_t skew =
        (uint32_t)((uintptr_t)a.out % 16 / sizeof(T) + pd.first) % (16 / (uint32_t)sizeof(T));
    b.sums = reinterpret_cast<acc<T> *>(band_at(a.to.at)) + skew;
    const bool square =
        x[0].image == 1 && x[0].windows == 1 && x[0].size == 1 && x[1].size == 3 && x[2].size == 3;
    if (a.mode == POOL_MAX) {
        if (square) scatter_turns<T, POOL_MAX, 3>(a, b);
        else scatter_turns<T, POOL_MAX, 0>(a, b);
    } else {
        if (square) scatter_turns<T, POOL_MAX_NAN, 3>(a, b);
        else scatter_turns<T, POOL_MAX_NAN, 0>(a, b);
    }
    put_band<T>(a, pd);
}

} // namespace

#endif
