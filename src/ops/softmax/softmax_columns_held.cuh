// SPDX-License-Identifier: Apache-2.0
//
// Softmax over columns of few channels: a thread has all of its positions. See softmax_columns.c.
#ifndef WD_OPS_SOFTMAX_COLUMNS_HELD_CUH
#define WD_OPS_SOFTMAX_COLUMNS_HELD_CUH

#include "ops/softmax/softmax_device.cuh"

namespace {

// The channels of a thread's positions. They are looked at by groups, of which those behind the last
// channel are left out.
struct held_place {
    static constexpr int GROUP = 4;
    static constexpr bool CHAIN = false;
    int64_t at;
    int64_t inner;
    int32_t length;

    __device__ __forceinline__ int64_t first(int) const
    {
        return at;
    }
    __device__ __forceinline__ int64_t step(int) const
    {
        return inner;
    }
    __device__ __forceinline__ bool has(int r) const
    {
        return r < length;
    }
    __device__ __forceinline__ bool behind(int r) const
    {
        return r >= length;
    }
};

// Threads are neighbours along the positions, V of them each; no two threads share anything. SINGLE: fp32
// is among the formats.
template <int R, int V, bool SINGLE, bool BACKWARD>
__device__ void columns_held(const softmax_vector_args &a)
{
    constexpr int V4 = SINGLE ? V : 0;
    const int64_t position = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
    float x[R * V];
    float sum[V] = {};
    int64_t outer;
    wd_wait_for_previous();
    if (position >= a.rows) return;
    if (a.wide) outer = position / a.inner;
    else outer = wd_fastdiv_quotient((uint32_t)position, a.by_inner);
    const held_place place = {outer * a.length * a.inner + (position - outer * a.inner), a.inner,
                              (int32_t)a.length};
    wd_load_format<R * V, V4, V>(x, a.x, a.format, BACKWARD ? 0.0f : lowest<float>(), place);
    if constexpr (BACKWARD) {
        float dy[R * V];
        wd_load_format<R * V, V4, V>(dy, a.dy, a.format, 0.0f, place);
        products<R, V>(a, x, dy, sum, place);
        gradients<R, V>(a, x, dy, sum, place);
    } else {
        float max[V];
#pragma unroll
        for (int j = 0; j < V; ++j) max[j] = lowest<float>();
        largest<R, V>(x, max, place);
        exponentials<R, V>(a, x, max, sum, place);
        finish<R, V>(a, x, sum, place);
    }
    put<R * V, V4, V>(a, x, place);
}

} // namespace

#endif
