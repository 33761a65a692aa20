// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization in one kernel and one reading, where all elements of a parameter fit the
// registers of a block: by runs, or by elements where planes are no multiple of a run. What a
// parameter's numbers need of memory is asked for with the first elements.
#include "ops/norm/bn_device.cuh"

namespace {

enum way { RUNS, ELEMENTS };

constexpr int WARPS = 16;

template <way W> struct cut {
    static constexpr int HELD = W == ELEMENTS ? 16 : 32;      // elements of a thread
    static constexpr int LENGTH = W == ELEMENTS ? 1 : BN_RUN; // of a unit
    static constexpr int UNITS = HELD / LENGTH;
};

// The walk that writes is by so many units at once, and what is held moves down for the next ones: a fourth of the code.
template <way W> constexpr int AT_ONCE = cut<W>::UNITS / 4;

template <way W> __device__ __forceinline__ void move_down(float *v)
{
    constexpr int STEP = AT_ONCE<W> * cut<W>::LENGTH;
#pragma unroll
    for (int i = 0; i + STEP < cut<W>::HELD; ++i) v[i] = v[i + STEP];
}

// Where unit `u` of the block's parameter begins, in elements.
template <way W> __device__ __forceinline__ int64_t unit_at(const bn_vector_args &a, uint32_t u)
{
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
    const int lane = threadIdx.x % 32;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) {
        float v = mine[i];
        for (int lanes = 16; lanes > 0; lanes /= 2) v += __shfl_down_sync(0xffffffffu, v, lanes);
        if (lane == 0) of_warp[threadIdx.x / 32][i] = v;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) {
        all[i] = 0.0;
        for (uint32_t w = 0; w < blockDim.x / 32; ++w) all[i] += of_warp[w][i];
    }
}

// Mean and squared deviations of the block's parameter, from what its threads hold.
template <class T, way W>
__device__ __forceinline__ void statistics(const bn_vector_args &a, const float *v, float pivot,
                                           double *mean, double *squares)
{
    const double n = (double)a.terms;
    float part[2] = {0.0f, 0.0f};
    double sum, both[2];
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        if (threadIdx.x + k * blockDim.x >= a.units) continue;
#pragma unroll
        for (int i = 0; i < cut<W>::LENGTH; ++i) part[0] += v[k * cut<W>::LENGTH + i] - pivot;
    }
    block_sums<1>(part, &sum);
    const float rounded = (float)(pivot + sum / n);
    part[0] = 0.0f;
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        if (threadIdx.x + k * blockDim.x >= a.units) continue;
#pragma unroll
        for (int i = 0; i < cut<W>::LENGTH; ++i) {
            const float d = v[k * cut<W>::LENGTH + i] - rounded;
            part[0] += d;
            part[1] += d * d;
        }
    }
    block_sums<2>(part, both);
    const double rest = both[0] / n; // what rounding left of the mean
    *mean = rounded + rest;
    *squares = both[1] - both[0] * rest;
    if (*squares < 0.0) *squares = 0.0;
}

template <class T, way W> __device__ __forceinline__ float first_element(const bn_vector_args &a)
{
    return wd_widen(static_cast<const T *>(a.x)[unit_at<W>(a, 0)]);
}

template <class T, way W> __device__ __forceinline__ void chip_forward(const bn_vector_args &a)
{
    const uint32_t c = blockIdx.x;
    const bool first = threadIdx.x == 0;
    const double factor_new = a.factor, factor_old = 1.0 - a.factor;
    float v[cut<W>::HELD], old_mean = 0.0f, old_var = 0.0f;
    double mean, squares;
    wd_wait_for_previous();
    const float pivot = first_element<T, W>(a), scale = param(a.scale, c), bias = param(a.bias, c);
    if (first) {
        old_mean = old_param(a.running_mean, c, factor_old);
        old_var = old_param(a.running_var, c, factor_old);
    }
    hold<T, W>(a, a.x, v);
    statistics<T, W>(a, v, pivot, &mean, &squares);
    const double inv_std = 1.0 / sqrt(squares / (double)a.terms + a.epsilon);
    const float rounded = (float)mean, factor = scale * (float)inv_std;
    const float base = bias - factor * (float)(mean - rounded);
    if (first) {
        const double unbiased = squares / (double)(a.terms > 1 ? a.terms - 1 : a.terms);
        set_param(a.mean, c, 0.0f, mean, 1.0, 0.0);
        set_param(a.var, c, 0.0f, inv_std, 1.0, 0.0);
        set_param(a.running_mean, c, old_mean, mean, factor_new, factor_old);
        set_param(a.running_var, c, old_var, unbiased, factor_new, factor_old);
    }
#pragma unroll 1
    for (uint32_t next = threadIdx.x; next < a.units; next += AT_ONCE<W> * blockDim.x) {
#pragma unroll
        for (int k = 0; k < AT_ONCE<W>; ++k) {
            const uint32_t u = next + k * blockDim.x;
            if (u >= a.units) break;
            float *own = v + k * cut<W>::LENGTH;
#pragma unroll
            for (int i = 0; i < cut<W>::LENGTH; ++i) own[i] = factor * (own[i] - rounded) + base;
            finish_forward<T, cut<W>::LENGTH>(a, own, unit_at<W>(a, u));
        }
        move_down<W>(v);
    }
}

template <class T, way W> __device__ __forceinline__ void chip_backward(const bn_vector_args &a)
{
    const uint32_t c = blockIdx.x;
    const bool saved = a.mean.data != NULL, first = threadIdx.x == 0;
    const double terms = (double)a.terms;
    float v[cut<W>::HELD], g[cut<W>::HELD], part[2] = {0.0f, 0.0f};
    float old_dscale = 0.0f, old_dbias = 0.0f;
    double squares, sum[2];
    wd_wait_for_previous();
    const float pivot = first_element<T, W>(a), scale = param(a.scale, c);
    double mean = saved ? param(a.mean, c) : 0.0f;
    double inv_std = saved ? param(a.var, c) : 0.0f;
    if (first) {
        old_dscale = old_param(a.dscale, c, a.beta_param);
        old_dbias = old_param(a.dbias, c, a.beta_param);
    }
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
    if (!saved) {
        statistics<T, W>(a, v, pivot, &mean, &squares);
        inv_std = 1.0 / sqrt(squares / terms + a.epsilon);
    }
    const float rounded = (float)mean, rest = (float)(mean - rounded);
#pragma unroll
    for (int k = 0; k < cut<W>::UNITS; ++k) {
        const bool there = threadIdx.x + k * blockDim.x < a.units;
#pragma unroll
        for (int i = 0; i < cut<W>::LENGTH; ++i) {
            const int at = k * cut<W>::LENGTH + i;
            v[at] = there ? (v[at] - rounded) - rest : 0.0f;
            part[0] += g[at];
            part[1] += g[at] * v[at];
        }
    }
    block_sums<2>(part, sum);
    const double scaled = scale * inv_std, dscale = sum[1] * inv_std;
    const float factor = (float)scaled, base = (float)(-scaled * sum[0] / terms);
    const float slope = (float)(-scaled * dscale * inv_std / terms);
    if (first) {
        set_param(a.dscale, c, old_dscale, dscale, a.alpha_param, a.beta_param);
        set_param(a.dbias, c, old_dbias, sum[0], a.alpha_param, a.beta_param);
    }
#pragma unroll 1
    for (uint32_t next = threadIdx.x; next < a.units; next += AT_ONCE<W> * blockDim.x) {
#pragma unroll
        for (int k = 0; k < AT_ONCE<W>; ++k) {
            const uint32_t u = next + k * blockDim.x;
            if (u >= a.units) break;
            const int at = k * cut<W>::LENGTH;
#pragma unroll
            for (int i = 0; i < cut<W>::LENGTH; ++i) {
                v[at + i] = factor * g[at + i] + base + slope * v[at + i];
            }
            finish_backward<T, cut<W>::LENGTH>(a, v + at, g + at, unit_at<W>(a, u));
        }
        move_down<W>(v);
        move_down<W>(g);
    }
}

} // namespace

// left alone the compiler spills where it thinks that more blocks fit
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/bn_chip_kernels.def"
#include "ops/kernels_device.inc"
