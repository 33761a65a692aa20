// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization in one kernel and one reading, where all elements of a parameter fit the
// registers of a block: a block has one parameter (by runs, or by elements where planes are no
// multiple of a run), or by columns the eight parameters of a run.
#include "ops/norm/bn_device.cuh"

namespace {

enum way { RUNS, ELEMENTS, COLUMNS };

constexpr int WARPS = 16;

template <way W> struct cut {
    static constexpr int HELD = W == ELEMENTS ? 16 : 32; // elements of a thread
    static constexpr int PARAMS = W == COLUMNS ? BN_RUN : 1;
    static constexpr int LENGTH = W == ELEMENTS ? 1 : BN_RUN; // of a unit
    static constexpr int UNITS = HELD / LENGTH;
};

// Where unit `u` of the block's parameters begins, in elements.
template <way W> __device__ __forceinline__ int64_t unit_at(const bn_vector_args &a, uint32_t u)
{
    if (W == COLUMNS) return (int64_t)u * a.width + blockIdx.x * BN_RUN;
    const uint32_t outer = wd_fastdiv_quotient(u, a.by_plane);
    const uint32_t inner = u - outer * a.by_plane.divisor;
    return (((int64_t)outer * a.params + blockIdx.x) * a.by_plane.divisor + inner) * cut<W>::LENGTH;
}

template <class T, way W>
__device__ __forceinline__ void hold(const bn_vector_args &a, const void *from, float *v)
{
    const T *first = static_cast<const T *>(from);
    run<T> r[W == ELEMENTS ? 1 : cut<W>::UNITS];
    T one[W == ELEMENTS ? cut<W>::HELD : 1];
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        const uint32_t u = threadIdx.x + k * blockDim.x;
        if (u >= a.units) continue;
        if constexpr (W == ELEMENTS) one[k] = first[unit_at<W>(a, u)];
        else fetch(r[k], from, unit_at<W>(a, u), a.total, a.aligned);
    }
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        const bool there = threadIdx.x + k * blockDim.x < a.units;
#pragma unroll
        for (int i = 0; i < cut<W>::LENGTH; ++i) {
            if constexpr (W == ELEMENTS) v[k] = there ? wd_widen(one[k]) : 0.0f;
            else v[k * BN_RUN + i] = there ? wd_widen(r[k].get(i)) : 0.0f;
        }
    }
}

// Sums of N numbers over the block, given to all its threads, added in an order that the number of
// threads fixes.
template <int N> __device__ __forceinline__ void block_sums(const float *mine, double *all)
{
    __shared__ float of_warp[WARPS][N];
    __shared__ double of_block[N];
    const int lane = threadIdx.x % 32;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) {
        float v = mine[i];
        for (int lanes = 16; lanes > 0; lanes /= 2) v += __shfl_down_sync(0xffffffffu, v, lanes);
        if (lane == 0) of_warp[threadIdx.x / 32][i] = v;
    }
    __syncthreads();
    if (threadIdx.x < N) {
        double sum = 0.0;
        for (uint32_t w = 0; w < blockDim.x / 32; ++w) sum += of_warp[w][threadIdx.x];
        of_block[threadIdx.x] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) all[i] = of_block[i];
}

// Mean and variance of the block's parameters, from what its threads hold.
template <class T, way W>
__device__ __forceinline__ void statistics(const bn_vector_args &a, const float *v, double *mean,
                                           double *squares)
{
    constexpr int P = cut<W>::PARAMS;
    const double n = (double)a.terms;
    const T *first = static_cast<const T *>(a.x) + unit_at<W>(a, 0);
    float pivot[P], part[2 * P];
    double sum[P], both[2 * P];
#pragma unroll
    for (int p = 0; p < P; ++p) pivot[p] = wd_widen(first[p]), part[p] = 0.0f;
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        if (threadIdx.x + k * blockDim.x >= a.units) continue;
#pragma unroll
        for (int i = 0; i < cut<W>::LENGTH; ++i) {
            part[i % P] += v[k * cut<W>::LENGTH + i] - pivot[i % P];
        }
    }
    block_sums<P>(part, sum);
#pragma unroll
    for (int p = 0; p < P; ++p) mean[p] = pivot[p] + sum[p] / n, part[p] = part[P + p] = 0.0f;
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        if (threadIdx.x + k * blockDim.x >= a.units) continue;
#pragma unroll
        for (int i = 0; i < cut<W>::LENGTH; ++i) {
            const float rounded = (float)mean[i % P];
            const float d = (v[k * cut<W>::LENGTH + i] - rounded) - (float)(mean[i % P] - rounded);
            part[i % P] += d;
            part[P + i % P] += d * d;
        }
    }
    block_sums<2 * P>(part, both);
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const double rest = both[p] / n; // what rounding left of the mean
        mean[p] += rest;
        squares[p] = both[P + p] - both[p] * rest;
        if (squares[p] < 0.0) squares[p] = 0.0;
    }
}

template <way W> __device__ __forceinline__ uint32_t param_index(int p)
{
    return W == COLUMNS ? blockIdx.x * BN_RUN + p : blockIdx.x;
}

template <class T, way W> __device__ __forceinline__ void chip_forward(const bn_vector_args &a)
{
    constexpr int P = cut<W>::PARAMS;
    float v[cut<W>::HELD];
    double mean[P], squares[P];
    bn_numbers n[P];
    wd_wait_for_previous();
    hold<T, W>(a, a.x, v);
    statistics<T, W>(a, v, mean, squares);
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const uint32_t c = param_index<W>(p);
        const double inv_std = 1.0 / sqrt(squares[p] / (double)a.terms + a.epsilon);
        n[p].mean = (float)mean[p];
        n[p].rest = (float)(mean[p] - n[p].mean);
        n[p].factor = param(a.scale, c) * (float)inv_std;
        n[p].base = param(a.bias, c);
        if (threadIdx.x == p) {
            const double unbiased = squares[p] / (double)(a.terms > 1 ? a.terms - 1 : a.terms);
            blend_param(a.mean, c, mean[p], 1.0, 0.0);
            blend_param(a.var, c, inv_std, 1.0, 0.0);
            blend_param(a.running_mean, c, mean[p], a.factor, 1.0 - a.factor);
            blend_param(a.running_var, c, unbiased, a.factor, 1.0 - a.factor);
        }
    }
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        const uint32_t u = threadIdx.x + k * blockDim.x;
        if (u >= a.units) break;
        float *own = v + k * cut<W>::LENGTH;
#pragma unroll
        for (int i = 0; i < cut<W>::LENGTH; ++i) {
            own[i] = n[i % P].factor * ((own[i] - n[i % P].mean) - n[i % P].rest) + n[i % P].base;
        }
        finish_forward<T, cut<W>::LENGTH>(a, own, unit_at<W>(a, u));
    }
}

template <class T, way W> __device__ __forceinline__ void chip_backward(const bn_vector_args &a)
{
    constexpr int P = cut<W>::PARAMS;
    float v[cut<W>::HELD], g[cut<W>::HELD], part[2 * P];
    double mean[P], squares[P], sum[2 * P];
    wd_wait_for_previous();
    hold<T, W>(a, a.x, v);
    hold<T, W>(a, a.dy, g);
    if (a.reserve) {
#pragma unroll
        for (int k = 0; k < cut<W>::UNITS; ++k) {
            const uint32_t u = threadIdx.x + k * blockDim.x;
            if (u >= a.units) break;
            const uint32_t bits = a.reserve[unit_at<W>(a, u) / BN_RUN];
#pragma unroll
            for (int i = 0; i < cut<W>::LENGTH; ++i) {
                g[k * cut<W>::LENGTH + i] = masked(g[k * cut<W>::LENGTH + i], bits, i);
            }
        }
    }
    if (a.mean.data) {
#pragma unroll
        for (int p = 0; p < P; ++p) mean[p] = param(a.mean, param_index<W>(p));
    } else {
        statistics<T, W>(a, v, mean, squares);
    }
#pragma unroll
    for (int p = 0; p < P; ++p) part[p] = part[P + p] = 0.0f;
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        const bool there = threadIdx.x + k * blockDim.x < a.units;
#pragma unroll
        for (int i = 0; i < cut<W>::LENGTH; ++i) {
            const int at = k * cut<W>::LENGTH + i;
            const float rounded = (float)mean[i % P];
            v[at] = there ? (v[at] - rounded) - (float)(mean[i % P] - rounded) : 0.0f;
            part[i % P] += g[at];
            part[P + i % P] += g[at] * v[at];
        }
    }
    block_sums<2 * P>(part, sum);
    float factor[P], base[P], slope[P];
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const uint32_t c = param_index<W>(p);
        const double inv_std = a.mean.data ? (double)param(a.var, c)
                                           : 1.0 / sqrt(squares[p] / (double)a.terms + a.epsilon);
        const double scaled = (double)param(a.scale, c) * inv_std;
        const double dscale = sum[P + p] * inv_std;
        factor[p] = (float)scaled;
        base[p] = (float)(-scaled * sum[p] / (double)a.terms);
        slope[p] = (float)(-scaled * dscale * inv_std / (double)a.terms);
        if (threadIdx.x == p) {
            blend_param(a.dscale, c, dscale, a.alpha_param, a.beta_param);
            blend_param(a.dbias, c, sum[p], a.alpha_param, a.beta_param);
        }
    }
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        const uint32_t u = threadIdx.x + k * blockDim.x;
        if (u >= a.units) break;
        const int first = k * cut<W>::LENGTH;
#pragma unroll
        for (int i = 0; i < cut<W>::LENGTH; ++i) {
            v[first + i] = factor[i % P] * g[first + i] + base[i % P] + slope[i % P] * v[first + i];
        }
        finish_backward<T, cut<W>::LENGTH>(a, v + first, g + first, unit_at<W>(a, u));
    }
}

} // namespace

#define WD_KERNELS_ROWS "ops/norm/bn_chip_kernels.def"
#include "ops/kernels_device.inc"
