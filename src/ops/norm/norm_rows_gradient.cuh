// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of gradients by rows share: what a column adds to its sums and to those of its row, and
// how dscale and dbias leave a block.
#ifndef WD_OPS_NORM_ROWS_GRADIENT_CUH
#define WD_OPS_NORM_ROWS_GRADIENT_CUH

#include "ops/norm/norm_rows_walk.cuh"

namespace {

// What is given of a row.
struct known {
    float mean;
    float inv_std;
};

__device__ __forceinline__ known known_of(const norm_rows_args &a, int64_t row)
{
    return {given(a.given_mean, a, row), given(a.given_inv_std, a, row)};
}

// What a kernel is for: rows of several in a warp, or of whole warps; those by posts apart, for what they
// need costs the others 2%; or RMS norm without dbias, whose threads need a third less of registers, so that
// there are more of them.
enum kind { SEVERAL, ROWS, POSTS, SQUARES };

// Adds a column of a row to its sums and to those of the row: of g = dy scale, and of g (x - mean).
template <kind KIND>
__device__ __forceinline__ void add_column(part &p, const known &k, float x, float dy, float scale,
                                           float &dscale, float &dbias)
{
    const float slope = KIND == SQUARES ? dy * x : dy * (x - k.mean);
    dscale = fmaf(slope, k.inv_std, dscale);
    p.rest = fmaf(slope, scale, p.rest);
    if (KIND == SQUARES) return;
    dbias += dy;
    p.pivot = fmaf(dy, scale, p.pivot);
}

// ---- dscale and dbias ----

__device__ __forceinline__ const norm_rows_param &param_of(const norm_rows_args &a, uint32_t which)
{
    return which == 0 ? a.dscale : a.dbias;
}

// A sum of the block, or of its share of a cluster.
__device__ __forceinline__ void put_sum(const norm_rows_args &a, uint32_t which, uint32_t column,
                                        float value)
{
    const int64_t partial = (int64_t)(blockIdx.x / a.cluster) * 2 + which;
    if (a.partial) a.partial[partial * a.length + column] = value;
    else write_param(param_of(a, which), column, value);
}

// Over the rows side by side in a block, in their order: `room` has a place for each column of each,
// and gets the sums of columns at its beginning. Then they leave, a warp's columns side by side.
template <class T, int C, bool EDGES>
__device__ __forceinline__ void deliver_one(const norm_rows_args &a, const seat &s, uint32_t which,
                                            const float *mine, float *room)
{
    const uint32_t most = min(a.groups, (uint32_t)NORM_ROWS_SLICES_MAX);
    const uint32_t slices = max(1u, min(most, blockDim.x / max(1u, s.part)));
    __syncthreads(); // all have read what lay here
#pragma unroll
    for (int i = 0; i < C; ++i) {
        const uint32_t column = column_of<T, EDGES>(s, i) - s.before;
        if (has<EDGES>(s, i)) room[s.group * s.part + column] = mine[i];
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < slices * s.part && a.groups > 1; k += blockDim.x) {
        const uint32_t slice = slices > 1 ? k / s.part : 0;
        const uint32_t column = k - slice * s.part;
        float sum = 0.0f;
        for (uint32_t g = slice; g < a.groups; g += slices) sum += room[g * s.part + column];
        room[k] = sum;
    }
    if (slices > 1) __syncthreads(); // else its columns are the thread's own
    for (uint32_t column = threadIdx.x; column < s.part; column += blockDim.x) {
        float sum = room[column];
        for (uint32_t g = 1; g < slices; ++g) sum += room[g * s.part + column];
        put_sum(a, which, s.before + column, sum);
    }
}

template <class T, int C, bool EDGES, kind KIND>
__device__ __forceinline__ void deliver(const norm_rows_args &a, const seat &s, const float *dscale,
                                        const float *dbias, float *room)
{
    if (a.dscale.data) deliver_one<T, C, EDGES>(a, s, 0, dscale, room);
    if (KIND != SQUARES && a.dbias.data) deliver_one<T, C, EDGES>(a, s, 1, dbias, room);
}

} // namespace

#endif
