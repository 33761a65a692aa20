// SPDX-License-Identifier: Apache-2.0
//
// Gradients of averages over 3x3 elements, by rows that flow through shared memory.
#ifndef WD_OPS_POOLING_FLOW_BODY_CUH
#define WD_OPS_POOLING_FLOW_BODY_CUH

#include "ops/pooling/pooling_flow.cuh"

namespace {

// How many elements of the image window `at` covers along an axis.
__device__ __forceinline__ int flow_covers(const pool_flow_axis &x, int at, int stride)
{
    const int start = at * stride - x.pad;
    return max(min(start + 3, x.image) - max(start, 0), 0);
}

// 1 / n of the at most three elements that a window covers along an axis.
__device__ __forceinline__ float flow_inverse(int n)
{
    return n >= 3 ? 1.0f / 3.0f : n == 2 ? 0.5f : 1.0f;
}

// Gradients of averages whose windows begin at every element, which are windows over dy; a unit is a row of
// dy.
template <class T> struct flow_spread {
    static constexpr int MORE = 2;
    static constexpr int UNROLL = 2;

    flow_columns<T, 3> columns;
    float weight[3];
    float of_column;           // the rest of 1 / n
    float older, newer;        // what the rows before come to
    uint32_t to;               // element of what is made
    const unsigned char *line; // the next row
    int row;                   // of dy: the tile's first

    __device__ __forceinline__ void begin(const pool_flow_args &a, const flow_tile &t, uint32_t g,
                                          int q, int c)
    {
        columns.begin(a, a.from, a.x, t, g, q, c);
        row = t.unit + a.from.off[0];
        const uint32_t in_row = (uint32_t)a.wide.outs * a.inner;
        to = ((t.outer + g) * (uint32_t)a.high.outs + (uint32_t)t.unit) * in_row +
             (uint32_t)q * a.inner + (uint32_t)c;
        of_column = a.exclude ? 1.0f : a.inverse;
        const int first = q + a.from.off[1];
#pragma unroll
        for (int s = 0; s < 3; ++s) {
            weight[s] = a.exclude ? flow_inverse(flow_covers(a.wide, first + s, 1)) : 1.0f;
        }
        older = newer = 0.0f;
    }
    __device__ __forceinline__ void step(const pool_flow_args &a, uint32_t slot)
    {
        line = columns.step(a, a.from, slot);
    }
    // The next row, which is row h.
    __device__ __forceinline__ float read(const pool_flow_args &a, int h)
    {
        const uint32_t step = a.inner * (uint32_t)sizeof(T);
        float all = 0.0f;
#pragma unroll
        for (int s = 0; s < 3; ++s) {
            float one = 0.0f;
            if (columns.in[s]) one = wd_widen(*reinterpret_cast<const T *>(line + s * step));
            all = s == 0 ? one * weight[0] : fmaf(one, weight[s], all);
        }
        if (a.exclude) all *= flow_inverse(flow_covers(a.high, h, 1));
        line += a.from.pitch;
        // of a row that there is not, whatever lies there
        return (uint32_t)h < (uint32_t)a.from.rows ? all : 0.0f;
    }
    __device__ __forceinline__ void unit(const pool_flow_args &a, int k, bool there)
    {
        const float now = read(a, row + k);
        if (k >= MORE && there) {
            flow_put<T>(a, to, (older + newer + now) * of_column, true);
            to += (uint32_t)a.wide.outs * a.inner;
        }
        older = newer;
        newer = now;
    }
};

// Gradients of averages at a stride of 2; a unit is a row of dy, that is a pair of rows of dx. Columns and
// rows are counted within the padded image: of a pair 2j, 2j + 1 the first is in the windows j - 1 and j,
// the second in window j.
template <class T> struct flow_pairs {
    static constexpr int MORE = 1;
    static constexpr int UNROLL = 1;

    flow_columns<T, 2> columns;
    float weight[2];
    float both, right;         // of the row before: what the first column has of it, and the second
    uint32_t to;               // element of what is made
    const unsigned char *line; // the next row
    int row;                   // of dy: the tile's first
    int h;                     // of dx
    bool left_in, right_in;

    __device__ __forceinline__ void begin(const pool_flow_args &a, const flow_tile &t, uint32_t g,
                                          int q, int c)
    {
        columns.begin(a, a.from, a.x, t, g, q, c);
        row = t.unit + a.from.off[0];
        h = 2 * t.unit - (a.high.pad & 1);
        const int w = 2 * q - (a.wide.pad & 1);
        left_in = w >= 0;
        right_in = w + 1 < a.wide.image;
        // of what is outside none is written
        const uint32_t line_of = (t.outer + g) * (uint32_t)a.high.image + (uint32_t)h;
        to = (line_of * (uint32_t)a.wide.image + (uint32_t)w) * a.inner + (uint32_t)c;
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const int window = q + a.from.off[1] + s;
            weight[s] = a.exclude ? flow_inverse(flow_covers(a.wide, window, 2)) : a.inverse;
        }
        both = right = 0.0f;
    }
    __device__ __forceinline__ void step(const pool_flow_args &a, uint32_t slot)
    {
        line = columns.step(a, a.from, slot);
    }
    __device__ __forceinline__ void put(const pool_flow_args &a, float first, float second)
    {
        const bool there = (uint32_t)h < (uint32_t)a.high.image;
        flow_put<T>(a, to, first, there && left_in);
        flow_put<T>(a, to + a.inner, second, there && right_in);
        to += (uint32_t)a.wide.image * a.inner;
        h += 1;
    }
    __device__ __forceinline__ void unit(const pool_flow_args &a, int k, bool)
    {
        const uint32_t step = a.inner * (uint32_t)sizeof(T);
        const bool there = (uint32_t)(row + k) < (uint32_t)a.from.rows;
        float v[2];
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            v[s] = 0.0f;
            if (columns.in[s]) v[s] = wd_widen(*reinterpret_cast<const T *>(line + s * step));
            v[s] = there ? v[s] * weight[s] : 0.0f;
        }
        line += a.from.pitch;
        float now_both = v[0] + v[1], now_right = v[1];
        if (a.exclude) {
            const float share = flow_inverse(flow_covers(a.high, row + k, 2));
            now_both *= share;
            now_right *= share;
        }
        if (k >= MORE) {
            // the windows above come before those that begin there
            put(a, both + now_both, right + now_right);
            put(a, now_both, now_right);
        }
        both = now_both;
        right = now_right;
    }
};

} // namespace

#endif
