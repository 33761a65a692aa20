// SPDX-License-Identifier: Apache-2.0
//
// Softmax over rows that a warp holds, or a block of eight; neighbours of a row are neighbours in memory. Rows
// that are whole runs of 16 bytes are loaded into registers by runs (few), others element by element
// (direct): where there is little to do, and where the tensors lie differently on the boundaries of 16
// bytes. See softmax_rows.c.
#include "ops/softmax/softmax_device.cuh"

namespace {

// ---- Rows by runs ----

// Joined over the lanes of a row within a warp, or over the block where that has a row.
template <class A, bool MAX> __device__ __forceinline__ A joined(A mine, uint32_t lanes)
{
    __shared__ A part[8];
    mine = MAX ? max_of_lanes(mine, min(lanes, 32u)) : sum_of_lanes(mine, min(lanes, 32u));
    if (lanes <= 32) return mine;
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
    __syncthreads();
    // every warp has them; of the block's up to 8 warps
    mine = MAX ? lowest<A>() : (A)0;
    if (threadIdx.x % 8 < lanes / 32) mine = part[threadIdx.x % 8];
    return MAX ? max_of_lanes(mine, 8) : sum_of_lanes(mine, 8);
}

// Several rows a warp, or one, or one a block. E elements a thread.
template <class A, int E, bool BACKWARD> __device__ void rows_few(const softmax_vector_args &a)
{
    const bool by_block = a.lanes > 32;
    const uint32_t lane = by_block ? threadIdx.x : threadIdx.x & (a.lanes - 1);
    const int64_t row =
        by_block ? (int64_t)blockIdx.x
                 : (int64_t)blockIdx.x * (blockDim.x >> a.lane_bits) + (threadIdx.x >> a.lane_bits);
    const run_place place = {row * a.length, lane, a.lanes, row < a.rows ? (uint32_t)a.runs : 0};
    A x[E];
    A sum[1] = {0};
    wd_wait_for_previous();
    wd_load_format<E, 4, 8>(x, a.x, a.format, BACKWARD ? (A)0 : lowest<A>(), place);
    if constexpr (BACKWARD) {
        A dy[E];
        wd_load_format<E, 4, 8>(dy, a.dy, a.format, (A)0, place);
        products<E, 1>(a, x, dy, sum, place);
        sum[0] = joined<A, false>(sum[0], a.lanes);
        gradients<E, 1>(a, x, dy, sum, place);
    } else {
        A max[1] = {lowest<A>()};
        largest<E, 1>(x, max, place);
        max[0] = joined<A, true>(max[0], a.lanes);
        exponentials<E, 1>(a, x, max, sum, place);
        sum[0] = joined<A, false>(sum[0], a.lanes);
        finish<E, 1>(a, x, sum, place);
    }
    put<E, 4, 8>(a, x, place);
}

// ---- Rows by elements ----

// Elements lane, lane + lanes, ... of a row. They are looked at by groups, of which those behind the
// row's end are left out for all threads together.
template <int G> struct element_place {
    static constexpr int GROUP = G;
    static constexpr bool CHAIN = false;
    int64_t at; // of the row
    uint32_t lane;
    uint32_t lanes;
    uint32_t n;      // elements of the row, 0 where there is none
    uint32_t length; // of rows

    __device__ __forceinline__ int64_t first(int) const
    {
        return at + lane;
    }
    __device__ __forceinline__ int64_t step(int) const
    {
        return lanes;
    }
    __device__ __forceinline__ bool has(int r) const
    {
        return lane + r * lanes < n;
    }
    __device__ __forceinline__ bool behind(int r) const
    {
        return r > 0 && r * lanes >= length;
    }
};

template <class A, int E, bool BACKWARD> __device__ void rows_direct(const softmax_vector_args &a)
{
    const uint32_t lanes = E > 8 ? 32 : a.lanes;
    const int64_t row =
        (int64_t)blockIdx.x * (blockDim.x >> a.lane_bits) + (threadIdx.x >> a.lane_bits);
    const element_place<E / 4 < 4 ? 4 : E / 4> place = {
        row * a.length, threadIdx.x & (lanes - 1), lanes, row < a.rows ? (uint32_t)a.length : 0,
        (uint32_t)a.length};
    A x[E];
    A sum[1] = {0};
    wd_wait_for_previous();
    wd_load_format<E, 1, 1>(x, a.x, a.format, BACKWARD ? (A)0 : lowest<A>(), place);
    if constexpr (BACKWARD) {
        A dy[E];
        wd_load_format<E, 1, 1>(dy, a.dy, a.format, (A)0, place);
        products<E, 1>(a, x, dy, sum, place);
        sum[0] = sum_of_lanes(sum[0], lanes);
        gradients<E, 1>(a, x, dy, sum, place);
    } else {
        A max[1] = {lowest<A>()};
        largest<E, 1>(x, max, place);
        max[0] = max_of_lanes(max[0], lanes);
        exponentials<E, 1>(a, x, max, sum, place);
        sum[0] = sum_of_lanes(sum[0], lanes);
        finish<E, 1>(a, x, sum, place);
    }
    put<E, 1, 1>(a, x, place);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/softmax/softmax_rows_kernels.def"
#include "ops/kernels_device.inc"
