// SPDX-License-Identifier: Apache-2.0
//
// The gradients of the grid where channels are neighbours.
#ifndef WD_OPS_SPATIAL_SAMPLER_SLOPES_CUH
#define WD_OPS_SPATIAL_SAMPLER_SLOPES_CUH

#include "ops/spatial/sampler_back_tile.cuh"

namespace {

// Some lanes a place, a run of channels each; here lanes_log2 is how many.
template <class T> __device__ __forceinline__ void slope_pixels(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    constexpr int V = 16 / (int)sizeof(T);
    const uint32_t item = blockIdx.x * SPATIAL_THREADS + threadIdx.x;
    const int lanes = 1 << a.lanes_log2, lane = (int)(item & (uint32_t)(lanes - 1));
    const bool is = item >> a.lanes_log2 < a.count;
    uint32_t n = is ? item >> a.lanes_log2 : 0;
    A sum[4] = {0, 0, 0, 0};
    spot at;
    sight<A> k;
    wd_wait_for_previous();
    if (a.tiled) { // by_column and by_row count tiles
        const int in_tile = (int)(n % (SPATIAL_TILE * SPATIAL_TILE));
        n /= SPATIAL_TILE * SPATIAL_TILE;
        at.q = (int)take_rest(n, a.by_column) * SPATIAL_TILE + in_tile % SPATIAL_TILE;
        at.p = (int)take_rest(n, a.by_row) * SPATIAL_TILE + in_tile / SPATIAL_TILE;
    } else {
        at.q = (int)take_rest(n, a.by_column);
        at.p = (int)take_rest(n, a.by_row);
    }
    at.n = a.first_image + n;
    k.template look<T>(a, at.number(a));
    if (is && k.seen) {
        const T *x = corner_of<T>(a, at.n, k), *dy = element_of<T>(a.y, at);
        bool in[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) in[i] = k.has(a, i / 2, i % 2);
#pragma unroll 1
        for (int c = lane * V; c < a.channels; c += lanes * V) {
            wd_run<T, V> g, f[4];
            g.load(dy + c);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                run_if(in[i], x + i / 2 * a.x.row + i % 2 * a.x.column + c, f[i]);
            }
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const A share = wd_widen(g.get(v));
#pragma unroll
                for (int i = 0; i < 4; ++i) sum[i] += share * wd_widen(f[i].get(v));
            }
        }
    }
#pragma unroll 1
    for (int step = lanes / 2; step > 0; step /= 2) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], step);
    }
    if (is && k.seen && lane == 0) { // those that see nothing: see sampler_boxes
        put_slopes<T>(a, at.number(a),
                      (1 - k.down) * (sum[1] - sum[0]) + k.down * (sum[3] - sum[2]),
                      (1 - k.right) * (sum[2] - sum[0]) + k.right * (sum[3] - sum[1]));
    }
}

} // namespace

#endif
