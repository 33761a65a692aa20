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

// dx of a column, where `level` is the mean of g = dy scale and `slope` that of g xhat, times inv_std.
template <kind KIND>
__device__ __forceinline__ float dx_of(const known &k, float x, float dy, float scale, float slope,
                                       float level)
{
    if (KIND == SQUARES) return k.inv_std * fmaf(-slope, x, dy * scale);
    const float g = fmaf(dy, scale, -level);
    return k.inv_std * fmaf(-slope, x - k.mean, g);
}

// ---- dscale and dbias ----

__device__ __forceinline__ const norm_rows_param &param_of(const norm_rows_args &a, uint32_t which)
{
    return which == 0 ? a.dscale : a.dbias;
}

// Sums of V neighbours of the block, or of its share of a cluster.
template <int V>
__device__ __forceinline__ void put_sum(const norm_rows_args &a, uint32_t which, uint32_t column,
                                        const wd_run<float, V> &sum)
{
    const int64_t partial = (int64_t)(blockIdx.x / a.cluster) * 2 + which;
    if (a.partial) {
        sum.store(a.partial + (partial * a.length + column));
        return;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) write_param(param_of(a, which), column + i, sum.get(i));
}

template <int V> __device__ __forceinline__ void add_run(wd_run<float, V> &sum, const float *from)
{
    wd_run<float, V> one;
    one.load(from);
#pragma unroll
    for (int i = 0; i < V; ++i) sum.put(i, sum.get(i) + one.get(i));
}

// Below sm_90 registers that lie side by side from here on, not in the walk, where they are too many.
__device__ __forceinline__ float own_sum(float v)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    return v + 0.0f;
#else
    return v;
#endif
}

// Over the rows side by side in a block, in their order: `room` has a place for each column of each,
// and gets the sums of columns at its beginning. Then they leave, a warp's columns side by side. Of
// whole units by fours, else lanes that lie a unit apart would write to the same banks.
template <class T, int C, bool EDGES>
__device__ __forceinline__ void deliver_one(const norm_rows_args &a, const seat &s, uint32_t which,
                                            const float *mine, float *room)
{
    constexpr int V = EDGES ? 1 : 4;
    const uint32_t all = s.part / V;
    const uint32_t most = min(a.groups, (uint32_t)NORM_ROWS_SLICES_MAX);
    const uint32_t slices = max(1u, min(most, blockDim.x / max(1u, all)));
    __syncthreads(); // all have read what lay here
    float *own = room + s.group * s.part;
    if constexpr (EDGES) {
#pragma unroll
        for (int i = 0; i < C; ++i) {
            if (has<EDGES>(s, i)) own[column_of<T, EDGES>(s, i) - s.before] = mine[i];
        }
    } else if (s.count > 0) {
        float4 *to = reinterpret_cast<float4 *>(own + (s.first - s.before));
#pragma unroll
        for (int i = 0; i < C; i += V) {
            to[i % EACH<T> / V] = make_float4(own_sum(mine[i]), own_sum(mine[i + 1]),
                                              own_sum(mine[i + 2]), own_sum(mine[i + 3]));
            if ((i + V) % EACH<T> == 0) to += s.stride / V;
        }
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < slices * all && a.groups > 1; k += blockDim.x) {
        const uint32_t slice = slices > 1 ? k / all : 0;
        const uint32_t column = (k - slice * all) * V;
        wd_run<float, V> sum;
        sum.load(room + (slice * s.part + column));
        for (uint32_t g = slice + slices; g < a.groups; g += slices) {
            add_run<V>(sum, room + (g * s.part + column));
        }
        sum.store(room + k * V);
    }
    if (slices > 1) __syncthreads(); // else its columns are the thread's own
    for (uint32_t k = threadIdx.x; k < all; k += blockDim.x) {
        wd_run<float, V> sum;
        sum.load(room + k * V);
        for (uint32_t g = 1; g < slices; ++g) add_run<V>(sum, room + (g * s.part + k * V));
        put_sum<V>(a, which, s.before + k * V, sum);
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
