// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm, channels first, and instance norm's gradients, of shares that registers hold, by threads that
// end with them: as rows of layer norm, whose parameters are a channel's. Many small blocks at different phases keep
// memory busy. Larger shares: norm_shares_walk.cuh.
#include "gpu/device/depend.cuh"
#include "ops/norm/norm_plain.cuh"
#include "ops/norm/norm_shares_walk.cuh"

namespace {

// xhat = (x - mean) inv_std + shift, then scale and bias: of x - mean.
struct line {
    float slope;
    float base;
};

__device__ __forceinline__ line line_of(const numbers &n, float scale, float bias)
{
    return {n.inv_std * scale, fmaf(n.shift, scale, bias)};
}

__device__ __forceinline__ void put_statistics(const norm_rows_args &a, uint32_t row,
                                               const numbers &n)
{
    // of an infinity there is no mean either
    if (a.mean) a.mean[row] = n.inv_std == n.inv_std ? n.mean : n.inv_std;
    if (a.inv_std) a.inv_std[row] = n.inv_std;
}

// ---- Whole units ----

// What is asked for of a unit before anything is looked at: the parameters of the channel in which it
// begins and of the one in which it ends, and how many elements are of the first.
struct unit_params {
    float scale[2];
    float bias[2];
    uint32_t count;
};

template <class T>
__device__ __forceinline__ unit_params params_of(const norm_shares_args &w, uint32_t first,
                                                 uint32_t column)
{
    const uint32_t within = wd_fastdiv_quotient(column, w.by_plane);
    const float *scale = static_cast<const float *>(w.of.scale.data) + (first + within);
    const float *bias = static_cast<const float *>(w.of.bias.data) + (first + within);
    unit_params p;
    p.count = (within + 1) * w.by_plane.divisor - column;
    const int other = p.count < EACH<T> ? 1 : 0;
    p.scale[0] = scale[0], p.scale[1] = scale[other];
    p.bias[0] = bias[0], p.bias[1] = bias[other];
    return p;
}

template <class T> __device__ __forceinline__ void whole(const norm_shares_args &w)
{
    constexpr int E = EACH<T>, U = NORM_SHARES_COLUMNS / E;
    const norm_rows_args &a = w.of;
    const uint32_t group = wd_fastdiv_quotient(threadIdx.x, w.by_lanes);
    const uint32_t lane = threadIdx.x - group * a.lanes;
    const uint32_t row = blockIdx.x * a.groups + group; // less than 2^31
    const bool there = row < a.rows;
    const uint32_t units = there ? a.length / E : 0;
    const int64_t begin = (int64_t)row * a.length;
    const T *x = static_cast<const T *>(a.x) + begin;
    T *y = static_cast<T *>(a.y) + begin;
    const uint32_t first =
        (row - wd_fastdiv_quotient(row, w.by_groups) * w.by_groups.divisor) * w.each;
    unit<T> u[U];
    unit_params params[U];
    wd_wait_for_previous();
#pragma unroll
    for (int v = 0; v < U; ++v) {
        const uint32_t at = v * a.lanes + lane;
        if (at < units) u[v].load(x + at * E);
    }
#pragma unroll
    for (int v = 0; v < U; ++v) {
        const uint32_t at = v * a.lanes + lane;
        if (at < units) params[v] = params_of<T>(w, first, at * E);
    }
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
    float sum = 0.0f;
    if (lane < units) {
        p.pivot = wide_of<T>(u[0], 0);
        p.count = (float)(((units - lane - 1) / a.lanes + 1) * E);
    }
#pragma unroll
    for (int v = 0; v < U; ++v) {
        if (v * a.lanes + lane >= units) continue;
#pragma unroll
        for (int i = 0; i < E; ++i) {
            const float d = wide_of<T>(u[v], i) - p.pivot;
            sum += d;
            p.squares = fmaf(d, d, p.squares);
        }
    }
    if (p.count > 0.0f) {
        p.rest = sum * (1.0f / p.count);
        p.squares = fmaf(-sum, p.rest, p.squares);
        if (p.squares < 0.0f) p.squares = 0.0f; // a NaN stays one
    }
    const numbers n = plain_numbers<false>(a, p, group);
    if (lane == 0 && there) put_statistics(a, row, n);
#pragma unroll
    for (int v = 0; v < U; ++v) {
        const uint32_t at = v * a.lanes + lane;
        if (at >= units) continue;
        const line begins = line_of(n, params[v].scale[0], params[v].bias[0]);
        const line ends = line_of(n, params[v].scale[1], params[v].bias[1]);
        unit<T> out;
#pragma unroll
        for (int i = 0; i < E; i += 2) {
            float to[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float d = wide_of<T>(u[v], i + j) - n.mean;
                to[j] = fmaf(d, begins.slope, begins.base);
                if ((uint32_t)(i + j) >= params[v].count) to[j] = fmaf(d, ends.slope, ends.base);
            }
            narrow_pair(out, i, to[0], to[1]);
        }
        if (a.streaming) out.store_streaming(y + at * E);
        else out.store(y + at * E);
    }
}

// ---- Gradients: a share is a plane of whole units ----

// Sums of the threads of a share, which all of them get.
__device__ __forceinline__ part sums_of(const norm_rows_args &a, part p, uint32_t group)
{
    __shared__ part of_warp[NORM_SHARES_WARPS_MOST];
    const uint32_t warps = a.lanes / WARP;
    p = join_warp<false>(p, 0.0f);
    if (warps == 1) return p;
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = p;
    __syncthreads(); // all shares of the block have as many warps
    return join_all<false>(&of_warp[group * warps], warps, 0.0f);
}

// dx = scale inv_std (dy - (sum of dy + xhat sum of dy xhat) / length)
template <class T> __device__ __forceinline__ void backward(const norm_shares_args &w)
{
    constexpr int E = EACH<T>, U = NORM_SHARES_COLUMNS / E;
    const norm_rows_args &a = w.of;
    const uint32_t group = wd_fastdiv_quotient(threadIdx.x, w.by_lanes);
    const uint32_t lane = threadIdx.x - group * a.lanes;
    const uint32_t row = blockIdx.x * a.groups + group; // less than 2^31
    const uint32_t units = row < a.rows ? a.length / E : 0;
    const int64_t begin = (int64_t)row * a.length + lane * E;
    const uint32_t step = a.lanes * E;
    const T *x = static_cast<const T *>(a.x) + begin;
    const T *dy = static_cast<const T *>(a.dy) + begin;
    T *dx = static_cast<T *>(a.y) + begin;
    unit<T> of_x[U], of_dy[U];
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
    float mean = 0.0f, inv_std = 0.0f, scale = 0.0f;
    wd_wait_for_previous();
#pragma unroll
    for (int v = 0; v < U; ++v) {
        if (v * a.lanes + lane >= units) continue;
        of_x[v].load(x + v * step);
        of_dy[v].load(dy + v * step);
    }
    if (row < a.rows) {
        const uint32_t channel = row - wd_fastdiv_quotient(row, w.by_groups) * w.by_groups.divisor;
        mean = given(a.given_mean, a, row);
        inv_std = a.given_inv_std[row];
        scale = static_cast<const float *>(a.scale.data)[channel];
    }
#pragma unroll
    for (int v = 0; v < U; ++v) {
        if (v * a.lanes + lane >= units) continue;
#pragma unroll
        for (int i = 0; i < E; ++i) {
            const float d = wide_of<T>(of_dy[v], i);
            p.pivot += d;
            p.rest = fmaf(d, wide_of<T>(of_x[v], i) - mean, p.rest);
        }
    }
    p = sums_of(a, p, group);
    if (w.found && lane == 0 && row < a.rows) w.found[row] = {p.pivot, p.rest * inv_std};
    const float factor = scale * inv_std;
    const float level = p.pivot * a.inverse;
    const float slope = (p.rest * a.inverse) * (inv_std * inv_std);
#pragma unroll
    for (int v = 0; v < U; ++v) {
        if (v * a.lanes + lane >= units) continue;
        unit<T> out;
#pragma unroll
        for (int i = 0; i < E; i += 2) {
            float to[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float g = wide_of<T>(of_dy[v], i + j) - level;
                to[j] = factor * fmaf(-slope, wide_of<T>(of_x[v], i + j) - mean, g);
            }
            narrow_pair(out, i, to[0], to[1]);
        }
        if (a.streaming) out.store_streaming(dx + v * step);
        else out.store(dx + v * step);
    }
}

// ---- Beside each other ----

// A warp's stretch comes and leaves by units, through shared memory, where a lane finds its singles.
template <class T> __device__ __forceinline__ void beside(const norm_shares_args &w)
{
    constexpr uint32_t E = EACH<T>, U = NORM_SHARES_UNITS, C = U * E;
    constexpr uint32_t LANES = NORM_SHARES_PLANE / C, SHARES = WARP / LANES;
    __shared__ uint4 stretches[NORM_SHARES_WARPS][U * WARP];
    const norm_rows_args &a = w.of;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t share = lane / LANES, place = lane % LANES;
    const uint32_t first = (blockIdx.x * NORM_SHARES_WARPS + warp) * SHARES; // less than 2^31
    const uint32_t row = first + share;
    const uint32_t units = SHARES * a.length / E;
    const uint32_t count = (a.length - place - 1) / LANES + 1; // planes are more than the lanes
    const int64_t begin = (int64_t)first * a.length + lane * E;
    const T *x = static_cast<const T *>(a.x) + begin;
    T *y = static_cast<T *>(a.y) + begin;
    uint4 *stretch = stretches[warp] + lane;
    T *mine = reinterpret_cast<T *>(stretches[warp]) + (share * a.length + place);
    unit<T> u[U];
    float v[C];
    wd_wait_for_previous();
    if (first >= a.rows) return; // all of the warp's are there, or none
#pragma unroll
    for (uint32_t k = 0; k < U; ++k) {
        if (k * WARP + lane < units) u[k].load(x + k * WARP * E);
    }
    const uint32_t channel = row - wd_fastdiv_quotient(row, w.by_groups) * w.by_groups.divisor;
    const float scale = static_cast<const float *>(a.scale.data)[channel];
    const float bias = static_cast<const float *>(a.bias.data)[channel];
#pragma unroll
    for (uint32_t k = 0; k < U; ++k) {
        if (k * WARP + lane < units) u[k].store(reinterpret_cast<T *>(stretch + k * WARP));
    }
    __syncwarp();
    // of differences from the share's first element, then around their mean
    const float pivot = wd_widen(*(mine - place));
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (uint32_t i = 0; i < C; ++i) {
        v[i] = 0.0f;
        if (i < count) v[i] = wd_widen(mine[i * LANES]) - pivot;
        sum += v[i];
    }
    const float rest = sum_of_lanes(sum, LANES) * a.inverse;
#pragma unroll
    for (uint32_t i = 0; i < C; ++i) {
        v[i] -= rest;
        if (i < count) squares = fmaf(v[i], v[i], squares);
    }
    const numbers n = numbers_of(a, {pivot, rest, sum_of_lanes(squares, LANES), 0.0f});
    const float slope = n.inv_std * scale;
    if (place == 0) put_statistics(a, row, n);
#pragma unroll
    for (uint32_t i = 0; i < C; ++i) {
        if (i < count) wd_narrow(mine[i * LANES], fmaf(v[i], slope, bias));
    }
    __syncwarp();
#pragma unroll
    for (uint32_t k = 0; k < U; ++k) {
        if (k * WARP + lane >= units) continue;
        u[k].load(reinterpret_cast<const T *>(stretch + k * WARP));
        if (a.streaming) u[k].store_streaming(y + k * WARP * E);
        else u[k].store(y + k * WARP * E);
    }
}

} // namespace

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_shares_kernels.def"
#include "ops/kernels_device.inc"
