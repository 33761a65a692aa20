// SPDX-License-Identifier: Apache-2.0
//
// Small planes turned: see identity_little_args.h. What there is to wait for is one trip to memory; the
// tiles are so small that all of them wait at once, and lanes are neighbours on both sides.
#include <stdint.h>

#include "gpu/device/depend.cuh"
#include "ops/tensor/identity_little_args.h"

namespace {

template <class T> __device__ void turn_little(const little_args &a)
{
    constexpr uint32_t WARPS = LITTLE_THREADS / 32, EACH = LITTLE_B / WARPS;
    constexpr uint32_t IN_WARP = 32 / LITTLE_B; // rows of y
    __shared__ T tile[LITTLE_B][LITTLE_A + (sizeof(T) == 2 ? 2 : 1)];
    const T *x = static_cast<const T *>(a.x);
    T *y = static_cast<T *>(a.y);
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t row = lane / LITTLE_B + IN_WARP * warp, column = lane % LITTLE_B;
    uint32_t rest = wd_fastdiv_quotient(blockIdx.x, a.by_tile_a);
    const uint32_t a0 = (blockIdx.x - rest * a.by_tile_a.divisor) * LITTLE_A;
    const uint32_t further = wd_fastdiv_quotient(rest, a.by_tile_b);
    const uint32_t b0 = (rest - further * a.by_tile_b.divisor) * LITTLE_B;
    T value[EACH];
    rest = further;
    x += a0 + b0 * a.x_row + lane + warp * a.x_row;
    y += b0 + a0 * a.y_row + column + row * a.y_row;
    for (int d = a.rank - 1; d >= 0; --d) {
        const uint32_t next = wd_fastdiv_quotient(rest, a.dim[d]);
        const uint32_t at = rest - next * a.dim[d].divisor;
        x += at * a.x_stride[d];
        y += at * a.y_stride[d];
        rest = next;
    }
    wd_wait_for_previous();
#pragma unroll
    for (uint32_t i = 0; i < EACH; ++i) {
        const bool there = a0 + lane < a.a && b0 + warp + i * WARPS < a.b;
        value[i] = there ? x[i * WARPS * a.x_row] : (T)0;
    }
#pragma unroll
    for (uint32_t i = 0; i < EACH; ++i) tile[warp + i * WARPS][lane] = value[i];
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < LITTLE_A; i += IN_WARP * WARPS) {
        if (a0 + row + i < a.a && b0 + column < a.b) y[i * a.y_row] = tile[column][row + i];
    }
}

} // namespace

#define WD_KERNELS_ROWS "ops/tensor/identity_little_kernels.def"
#include "ops/kernels_device.inc"
