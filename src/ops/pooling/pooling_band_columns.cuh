// SPDX-License-Identifier: Apache-2.0
//
// Windows of 3x3 over boxes of lines in shared memory, at any alignment: a thread has a column of results and
// walks down the rows. Each row's three elements are put together once and kept for the windows that follow;
// where it reads and writes moves by one pitch a row, and what lies at the sides is asked once a column, what
// lies above and below once a stretch of rows. Nothing is blended in.
#ifndef WD_OPS_POOLING_BAND_COLUMNS_CUH
#define WD_OPS_POOLING_BAND_COLUMNS_CUH

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

// What elements come to: numbers in single precision, of maxima of 16 bits such numbers as they lie.
template <class T, int MODE, bool WORDS = MODE != POOL_AVERAGE && sizeof(T) == 2>
struct column_value {
    using V = float;
    static __device__ __forceinline__ V get(const unsigned char *at)
    {
        return sheet_get<T>(at);
    }
    static __device__ __forceinline__ V none()
    {
        return nothing<MODE, float>();
    }
    static __device__ __forceinline__ V join(V a, V b)
    {
        take<MODE>(a, b);
        return a;
    }
    static __device__ __forceinline__ void put(unsigned char *to, V value, float factor, V lowest)
    {
        if (MODE == POOL_MAX && value != value) value = lowest;
        sheet_put<T>(to, value * factor);
    }
};
template <class T, int MODE> struct column_value<T, MODE, true> {
    using V = uint32_t;
    static __device__ __forceinline__ V get(const unsigned char *at)
    {
        return *reinterpret_cast<const uint16_t *>(at);
    }
    static __device__ __forceinline__ V none()
    {
        if (MODE == POOL_MAX) return 0x7fffu;
        return std::is_same<T, half16>::value ? 0xfc00u : 0xff80u; // minus infinity
    }
    static __device__ __forceinline__ V join(V a, V b)
    {
        return wd_packed_larger<T, MODE == POOL_MAX_NAN>(a, b);
    }
    static __device__ __forceinline__ void put(unsigned char *to, V value, float factor,
                                               float lowest)
    {
        if (MODE == POOL_MAX) {
            const uint32_t none = wd_packed_differ<T>(value, value);
            value = (none & wd_packed_narrow<T>(lowest, 0.0f)) | (~none & value);
        }
        if (factor != 1.0f) {
            value = wd_packed_narrow<T>(wd_packed_get<T>(value, 0) * factor, 0.0f);
        }
        *reinterpret_cast<uint16_t *>(to) = (uint16_t)value;
    }
};

// 3 / n of the at most three elements that a window covers along an axis.
__device__ __forceinline__ float three_over(int n)
{
    return n >= 3 ? 1.0f : n == 2 ? 1.5f : 3.0f;
}

// STRIDE of both axes. SPREAD: gradients of averages at a stride of 1, which are windows over dy; each of its
// elements has a weight.
template <class T, int MODE, int STRIDE, bool SPREAD>
__device__ __forceinline__ void band_columns(const pool_band_args &a, const band_box &b)
{
    using of = column_value<T, MODE>;
    using V = typename of::V;
    constexpr bool SUM = MODE == POOL_AVERAGE;
    constexpr int KEPT = 3 - STRIDE; // rows of a window that the one before has as well
    const pool_band_axis &high = a.axis[1], &wide = a.axis[2];
    const int32_t step = (int32_t)(a.inner * (uint32_t)sizeof(T));
    const uint32_t row_bytes = (uint32_t)wide.windows * (uint32_t)step, pitch = a.from.pitch[2];
    const uint32_t items = b.images * high.by_class.divisor * wide.by_class.divisor * a.inner;
    const float alpha = (float)a.alpha, lowest = (float)a.lowest;
    const bool weighs = SUM && a.exclude; // by how many elements are in the image
    // windows before this one, from row 0 on, have all their rows, with the weight that most have
    const int rows =
        SPREAD && weighs ? min(high.image, high.cover_image - 2 + high.cover_pad) : high.image;
    const int inside =
        rows - 3 + high.pad < 0 ? 0 : (int)((uint32_t)(rows - 3 + high.pad) / STRIDE) + 1;
    for (uint32_t item = threadIdx.x; item < items; item += blockDim.x) {
        uint32_t m = item;
        const uint32_t c = a.inner == 1 ? 0 : wd_take_rest(m, a.by_inner);
        const int q = b.made[2].low + (int)wd_take_rest(m, wide.by_class);
        int p = b.made[1].low + (int)wd_take_rest(m, high.by_class) * a.sheet_rows;
        const int end = min(p + a.sheet_rows, b.made[1].low + b.made[1].count);
        if (q >= b.made[2].low + b.made[2].count || p >= end) continue;
        const int w0 = q * STRIDE - wide.pad;
        int h = p * STRIDE - high.pad; // the next row
        // before the box where the first rows are padding, which are not read
        const int32_t line = (int32_t)(b.base + m * a.from.pitch[0] + c * (uint32_t)sizeof(T)) +
                             (h - b.under[1].low) * (int32_t)pitch - b.under[2].low * step;
        // one column is in the image; those that are not are it once more, which only maxima look at
        const int centre = min(max(w0 + 1, 0), wide.image - 1);
        const bool left = w0 >= 0 && w0 < centre, right = w0 + 2 < wide.image && w0 + 2 > centre;
        const int column[3] = {left ? w0 : centre, centre, right ? w0 + 2 : centre};
        const unsigned char *at[3];
        float weight[3];
#pragma unroll
        for (int s = 0; s < 3; ++s) {
            at[s] = wd_dynamic_shared<unsigned char>() + (line + column[s] * step);
            weight[s] = alpha * (float)a.inverse;
            if (SPREAD && weighs) {
                weight[s] = alpha * (1.0f / 3.0f) *
                            inverse_of_three<float>(band_covers(wide, column[s], 1));
            }
        }
        float factor = SPREAD ? 1.0f : alpha;
        if (SUM && !SPREAD) {
            factor *= weighs ? inverse_of_three<float>(band_covers(wide, q, STRIDE)) * (1.0f / 3.0f)
                             : (float)a.inverse;
        }
        unsigned char *to = static_cast<unsigned char *>(a.out) +
                            (size_t)((((b.outer + m) * (uint32_t)high.windows + (uint32_t)p) *
                                          (uint32_t)wide.windows +
                                      (uint32_t)q) *
                                         a.inner +
                                     c) *
                                sizeof(T);
        const auto read = [&]() {
            V v[3], row;
#pragma unroll
            for (int s = 0; s < 3; ++s) {
                v[s] = of::get(at[s]);
                at[s] += pitch;
            }
            if constexpr (!SUM) {
                row = of::join(of::join(v[0], v[1]), v[2]);
            } else if constexpr (SPREAD) {
                row = v[1] * weight[1];
                if (left) row = fmaf(v[0], weight[0], row);
                if (right) row = fmaf(v[2], weight[2], row);
            } else {
                row = v[1];
                if (left) row += v[0];
                if (right) row += v[2];
            }
            return row;
        };
        // a row that may be none of the image's
        const auto read_any = [&]() {
            V row = of::none();
            if ((uint32_t)h < (uint32_t)high.image) {
                row = read();
                if constexpr (SPREAD) {
                    if (weighs) row *= three_over(band_covers(high, h, 1));
                }
            } else {
#pragma unroll
                for (int s = 0; s < 3; ++s) at[s] += pitch;
            }
            h += 1;
            return row;
        };
        V kept[KEPT];
#pragma unroll
        for (int r = 0; r < KEPT; ++r) kept[r] = read_any();
        while (p < end) {
            if (h >= KEPT && p < inside) {
                int n = min(end, inside) - p;
                p += n;
                h += n * STRIDE;
#pragma unroll(4 / STRIDE)
                for (; n > 0; --n) {
                    V value = kept[0];
                    if constexpr (STRIDE == 1) {
                        const V row = read();
                        value = of::join(of::join(value, kept[KEPT - 1]), row);
                        kept[0] = kept[KEPT - 1];
                        kept[KEPT - 1] = row;
                    } else {
                        const V middle = read();
                        kept[0] = read();
                        value = of::join(of::join(value, middle), kept[0]);
                    }
                    of::put(to, value, factor, lowest);
                    to += row_bytes;
                }
            } else {
                V row[3];
#pragma unroll
                for (int r = 0; r < 3; ++r) row[r] = r < KEPT ? kept[r < KEPT ? r : 0] : read_any();
#pragma unroll
                for (int r = 0; r < KEPT; ++r) kept[r] = row[r + STRIDE];
                const V value = of::join(of::join(row[0], row[1]), row[2]);
                float share = factor;
                if (SUM && !SPREAD && weighs) share *= three_over(band_covers(high, p, STRIDE));
                of::put(to, value, share, lowest);
                to += row_bytes;
                p += 1;
            }
        }
    }
}

} // namespace

#endif
