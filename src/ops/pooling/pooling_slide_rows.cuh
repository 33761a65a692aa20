// SPDX-License-Identifier: Apache-2.0
//
// Averages of windows of five rows and columns around every element of a plane, straight from memory: a thread has
// four columns and walks down the rows. It asks for five rows at once; of each it makes the four windows' sums, and of
// five of those, the latest, one row of results.
#ifndef WD_OPS_POOLING_SLIDE_ROWS_CUH
#define WD_OPS_POOLING_SLIDE_ROWS_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/item.cuh"
#include "ops/pooling/pooling_slide_args.h"

namespace {

// A thread's columns of a row of `from`, and two on either side: at an edge what stands for these.
struct slide_row {
    float4 own;
    float2 before;
    float2 behind;
};

struct slide_columns {
    const float *from; // row 0
    bool first;        // of the line, and the last
    bool last;
    bool edge;
    uint32_t pitch; // elements
    int rows;

    __device__ __forceinline__ void load(int row, slide_row &r) const
    {
        const float *p = from + (size_t)(uint32_t)min(max(row, 0), rows - 1) * pitch;
        r.own = *reinterpret_cast<const float4 *>(p);
        r.before = *reinterpret_cast<const float2 *>(p - (first ? 0 : 2));
        r.behind = *reinterpret_cast<const float2 *>(p + (last ? 2 : 4));
    }

    // Sums of five neighbours: what all of them share, and what some do on either side.
    __device__ __forceinline__ float4 add(int row, const slide_row &r) const
    {
        const float left = edge ? r.own.x : 0.0f, right = edge ? r.own.w : 0.0f;
        const float v0 = first ? left : r.before.x, v1 = first ? left : r.before.y;
        const float v6 = last ? right : r.behind.x, v7 = last ? right : r.behind.y;
        const float shared = r.own.y + r.own.z;
        const float near = shared + r.own.x, far = shared + r.own.w;
        float4 sum;
        sum.x = near + (v0 + v1);
        sum.y = (near + v1) + r.own.w;
        sum.z = (far + v6) + r.own.x;
        sum.w = far + (v6 + v7);
        if (!edge && (uint32_t)row >= (uint32_t)rows) sum = make_float4(0, 0, 0, 0);
        return sum;
    }
};

__device__ __forceinline__ float4 slide_sum(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ __forceinline__ void pool_slide_rows(const pool_slide_args &a)
{
    constexpr int ROWS = POOL_SLIDE_ROWS, PAD = ROWS / 2;
    wd_wait_for_previous();
    uint32_t band = blockIdx.x;
    uint32_t plane = wd_take_rest(band, a.by_groups) * POOL_SLIDE_ROW_THREADS + threadIdx.x;
    if (plane >= a.total) return;
    const uint32_t column = wd_take_rest(plane, a.by_columns);
    const int begin = (int)band * a.rows, end = min(begin + a.rows, a.high.outs);
    const size_t at = (size_t)plane * (uint32_t)a.high.ins * (uint32_t)a.wide.ins + 4 * column;
    const slide_columns columns = {static_cast<const float *>(a.from) + at,
                                   column == 0,
                                   column + 1 == a.by_columns.divisor,
                                   a.edge != 0,
                                   (uint32_t)a.wide.ins,
                                   a.high.ins};
    const float scale = a.alpha * a.inverse;
    float4 latest[ROWS];
    float *to = static_cast<float *>(a.out) + at + (size_t)(uint32_t)begin * columns.pitch;
#pragma unroll 1
    for (int row = begin - PAD;; row += ROWS) {
        slide_row raw[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) columns.load(row + i, raw[i]);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            latest[i] = columns.add(row + i, raw[i]);
            if (row + i < begin + PAD) continue;
            if (row + i >= end + PAD) return;
            float4 sum =
                slide_sum(slide_sum(latest[0], latest[1]), slide_sum(latest[2], latest[3]));
            sum = slide_sum(sum, latest[4]);
            *reinterpret_cast<float4 *>(to) =
                make_float4(scale * sum.x, scale * sum.y, scale * sum.z, scale * sum.w);
            to += columns.pitch;
        }
    }
}

} // namespace

#endif
