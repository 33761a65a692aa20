// SPDX-License-Identifier: Apache-2.0
//
// Backward of batch normalization where a parameter has no more runs than a block has threads: a thread asks
// for all it needs of memory before it looks at any of it, and what follows from the number of elements is
// worked out meanwhile.
#include "ops/norm/bn_device.cuh"

namespace {

constexpr int WARP = 32, WARPS = 16;

// Over the block, for all its threads, in an order that the number of threads fixes.
__device__ __forceinline__ double2 sums_of_block(float first, float second)
{
    __shared__ float2 of_warp[WARPS];
    double2 all = make_double2(0.0, 0.0);
#pragma unroll
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        first += __shfl_xor_sync(0xffffffffu, first, lanes);
        second += __shfl_xor_sync(0xffffffffu, second, lanes);
    }
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = make_float2(first, second);
    __syncthreads();
    for (uint32_t w = 0; w < blockDim.x / WARP; ++w) {
        const float2 one = of_warp[w];
        all.x += one.x, all.y += one.y;
    }
    return all;
}

template <class T> __device__ __forceinline__ void small_backward(const bn_vector_args &a)
{
    const uint32_t c = blockIdx.x, u = threadIdx.x;
    const bool there = u < a.units, writes = threadIdx.x == 0;
    const uint32_t outer = wd_fastdiv_quotient(u, a.by_plane);
    const uint32_t inner = u - outer * a.by_plane.divisor;
    const int64_t at = (((int64_t)outer * a.params + c) * a.by_plane.divisor + inner) * BN_RUN;
    run<T> x, dy;
    uint32_t bits = 0xffu;
    float old_dscale = 0.0f, old_dbias = 0.0f;
    float v[BN_RUN], g[BN_RUN], sum = 0.0f, product = 0.0f;
    wd_wait_for_previous();
    if (there) {
        x.load(static_cast<const T *>(a.x) + at);
        dy.load(static_cast<const T *>(a.dy) + at);
        if (a.reserve) bits = a.reserve[at / BN_RUN];
    }
    const float mean = param(a.mean, c), inv_std = param(a.var, c), scale = param(a.scale, c);
    if (writes) {
        old_dscale = old_param(a.dscale, c, a.beta_param);
        old_dbias = old_param(a.dbias, c, a.beta_param);
    }
    const double inv_terms = 1.0 / (double)a.terms;
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) {
        v[i] = there ? wd_widen(x.get(i)) - mean : 0.0f;
        g[i] = there ? masked(wd_widen(dy.get(i)), bits, i) : 0.0f;
        sum += g[i];
        product += g[i] * v[i];
    }
    const double2 all = sums_of_block(sum, product);
    const double scaled = (double)scale * inv_std, dscale = all.y * inv_std;
    const float factor = (float)scaled, base = (float)(-scaled * all.x * inv_terms);
    const float slope = (float)(-scaled * dscale * inv_std * inv_terms);
    if (writes) {
        set_param(a.dscale, c, old_dscale, dscale, a.alpha_param, a.beta_param);
        set_param(a.dbias, c, old_dbias, all.x, a.alpha_param, a.beta_param);
    }
    if (!there) return;
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) v[i] = factor * g[i] + base + slope * v[i];
    finish_backward<T>(a, v, g, at);
}

} // namespace

#define WD_KERNELS_ROWS "ops/norm/bn_small_kernels.def"
#include "ops/kernels_device.inc"
