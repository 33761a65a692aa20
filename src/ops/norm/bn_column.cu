// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization of columns with few rows, as per activation has them: a thread has a column, sums it down its
// rows, and goes down them once more to write, when they are still in the cache. Nobody waits for anybody. Forward sums
// are in double, of differences from the first row and of their squares.
#include "ops/norm/bn_column_args.h"
#include "ops/norm/bn_device.cuh"

namespace {

// Rows whose loads are under way at once.
constexpr uint32_t COLUMN_BATCH = 8;

// A column of a tensor, and how far apart its rows are.
template <class T> struct column_of {
    T *data;
    int64_t pitch;

    __device__ __forceinline__ column_of(const bn_column_args &a, const void *tensor, uint32_t c)
        : data(static_cast<T *>(const_cast<void *>(tensor)) + c), pitch(a.bn.params)
    {
    }
    __device__ __forceinline__ T *row(uint32_t r) const
    {
        return data + r * pitch;
    }
    // Rows from `first` on, of those behind the last that one again, so that no check parts the loads.
    __device__ __forceinline__ void read(uint32_t first, uint32_t rows, float *value) const
    {
        T one[COLUMN_BATCH];
#pragma unroll
        for (uint32_t b = 0; b < COLUMN_BATCH; ++b) one[b] = *row(min(first + b, rows - 1));
#pragma unroll
        for (uint32_t b = 0; b < COLUMN_BATCH; ++b) value[b] = wd_widen(one[b]);
    }
    __device__ __forceinline__ void write(uint32_t first, uint32_t rows, const float *value) const
    {
#pragma unroll
        for (uint32_t b = 0; b < COLUMN_BATCH; ++b) {
            if (first + b < rows) wd_narrow(*row(first + b), value[b]);
        }
    }
    // One that alpha and beta count for.
    __device__ __forceinline__ void blend(const bn_vector_args &a, uint32_t r, float value) const
    {
        T *const at = row(r);
        float result = a.alpha != 0.0f ? a.alpha * value : 0.0f;
        if (a.beta != 0.0f) result += a.beta * wd_widen(*at);
        wd_narrow(*at, result);
    }
};

template <class T> __device__ __forceinline__ void column_forward(const bn_column_args &args)
{
    const bn_vector_args &a = args.bn;
    const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, rows = a.units;
    const column_of<T> x(args, a.x, c), y(args, a.y, c);
    const double kept = 1.0 - a.factor;
    float v[COLUMN_BATCH];
    double sum = 0.0, squares = 0.0;
    wd_wait_for_previous();
    if (c >= a.params) return;
    const float scale = param(a.scale, c), bias = param(a.bias, c);
    const float old_mean = old_param(a.running_mean, c, kept);
    const float old_var = old_param(a.running_var, c, kept);
    const float first = wd_widen(*x.data);
    // where nothing can be taken from it: the mean of what has an infinity is one
    const float pivot = fabsf(first) <= 3.0e38f ? first : 0.0f;
#pragma unroll 1
    for (uint32_t row = 0; row < rows; row += COLUMN_BATCH) {
        x.read(row, rows, v);
#pragma unroll
        for (uint32_t b = 0; b < COLUMN_BATCH; ++b) {
            const double d = v[b] - pivot;
            if (row + b < rows) {
                sum += d;
                squares = fma(d, d, squares);
            }
        }
    }
    const double rest = sum * args.inverse, mean = pivot + rest;
    double around = squares - sum * rest;
    if (around < 0.0) around = 0.0;
    const double inv_std = rsqrt(around * args.inverse + a.epsilon);
    const float rounded = (float)mean, factor = scale * (float)inv_std;
    const float base = bias - factor * (float)(mean - rounded);
    set_param(a.mean, c, 0.0f, mean, 1.0, 0.0);
    set_param(a.var, c, 0.0f, inv_std, 1.0, 0.0);
    set_param(a.running_mean, c, old_mean, mean, a.factor, kept);
    set_param(a.running_var, c, old_var, around * args.unbiased, a.factor, kept);
    if (args.plain) {
#pragma unroll 1
        for (uint32_t row = 0; row < rows; row += COLUMN_BATCH) {
            if (rows > COLUMN_BATCH) x.read(row, rows, v); // else it is there
#pragma unroll
            for (uint32_t b = 0; b < COLUMN_BATCH; ++b) v[b] = fmaf(factor, v[b] - rounded, base);
            y.write(row, rows, v);
        }
        return;
    }
#pragma unroll 1
    for (uint32_t row = 0; row < rows; ++row) {
        y.blend(a, row, fmaf(factor, wd_widen(*x.row(row)) - rounded, base));
    }
}

template <class T> __device__ __forceinline__ void column_backward(const bn_column_args &args)
{
    const bn_vector_args &a = args.bn;
    const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, rows = a.units;
    const column_of<T> x(args, a.x, c), dy(args, a.dy, c), dx(args, a.y, c);
    float v[COLUMN_BATCH], g[COLUMN_BATCH], sum = 0.0f, product = 0.0f;
    wd_wait_for_previous();
    if (c >= a.params) return;
    const float mean = param(a.mean, c), inv_std = param(a.var, c), scale = param(a.scale, c);
    const float old_dscale = old_param(a.dscale, c, a.beta_param);
    const float old_dbias = old_param(a.dbias, c, a.beta_param);
#pragma unroll 1
    for (uint32_t row = 0; row < rows; row += COLUMN_BATCH) {
        x.read(row, rows, v);
        dy.read(row, rows, g);
#pragma unroll
        for (uint32_t b = 0; b < COLUMN_BATCH; ++b) {
            if (row + b < rows) {
                sum += g[b];
                product = fmaf(g[b], v[b] - mean, product);
            }
        }
    }
    const double scaled = (double)scale * inv_std, dscale = (double)product * inv_std;
    const float factor = (float)scaled, base = (float)(-scaled * sum * args.inverse);
    const float slope = (float)(-scaled * dscale * inv_std * args.inverse);
    set_param(a.dscale, c, old_dscale, dscale, a.alpha_param, a.beta_param);
    set_param(a.dbias, c, old_dbias, sum, a.alpha_param, a.beta_param);
    if (args.plain) {
#pragma unroll 1
        for (uint32_t row = 0; row < rows; row += COLUMN_BATCH) {
            if (rows > COLUMN_BATCH) {
                x.read(row, rows, v);
                dy.read(row, rows, g);
            }
#pragma unroll
            for (uint32_t b = 0; b < COLUMN_BATCH; ++b) {
                v[b] = fmaf(slope, v[b] - mean, fmaf(factor, g[b], base));
            }
            dx.write(row, rows, v);
        }
        return;
    }
#pragma unroll 1
    for (uint32_t row = 0; row < rows; ++row) {
        const float one = fmaf(factor, wd_widen(*dy.row(row)), base);
        dx.blend(a, row, fmaf(slope, wd_widen(*x.row(row)) - mean, one));
    }
}

template <class T> __device__ __forceinline__ void column_inference(const bn_column_args &args)
{
    const bn_vector_args &a = args.bn;
    const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, rows = a.units;
    const column_of<T> x(args, a.x, c), y(args, a.y, c);
    wd_wait_for_previous();
    if (c >= a.params) return;
    const float mean = param(a.mean, c), bias = param(a.bias, c);
    const float factor = param(a.scale, c) * (1.0f / sqrtf(param(a.var, c) + (float)a.epsilon));
#pragma unroll 1
    for (uint32_t row = 0; row < rows; row += COLUMN_BATCH) {
        float v[COLUMN_BATCH];
        x.read(row, rows, v);
#pragma unroll
        for (uint32_t b = 0; b < COLUMN_BATCH; ++b) {
            v[b] = fmaf(factor, v[b] - mean, bias);
            if (!args.plain && row + b < rows) y.blend(a, row + b, v[b]);
        }
        if (args.plain) y.write(row, rows, v);
    }
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/bn_column_kernels.def"
#include "ops/kernels_device.inc"
