// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm over rows of any length, and their gradients, also where the statistics have
// to be found first. Nothing stays on the chip between passes: x is read once for the statistics, once
// (with dy) for the sums of a row, and once for the result. Sums of a thread are in single precision,
// of at most some tens of numbers, and joined in double, in an order that depends on shape and device
// alone.
#include "gpu/device/depend.cuh"
#include "gpu/device/statistics.cuh"
#include "gpu/device/vector.cuh"
#include "ops/norm/norm_long_args.h"

namespace {

constexpr int COLUMNS = NORM_LONG_COLUMNS;
constexpr uint32_t WARP = NORM_LONG_WARP;
constexpr uint32_t WARPS = NORM_LONG_THREADS / WARP;

// ---- Columns of a thread ----

template <bool RUNS>
__device__ __forceinline__ uint32_t next_column(uint32_t first, uint32_t step, int i)
{
    return RUNS ? first + i : first + i * step;
}

// Those not below `end` are zeros; of a run all or none are there.
template <class T, bool RUNS>
__device__ __forceinline__ void load(const T *from, uint32_t first, uint32_t step, uint32_t end,
                                     float *to)
{
    if constexpr (RUNS) {
        wd_run<T, COLUMNS> run;
#pragma unroll
        for (int w = 0; w < wd_run<T, COLUMNS>::WORDS; ++w) run.word[w] = 0;
        if (first < end) run.load(from + first);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) to[i] = wd_widen(run.get(i));
    } else {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const uint32_t column = next_column<RUNS>(first, step, i);
            to[i] = column < end ? wd_widen(from[column]) : 0.0f;
        }
    }
}

template <class T, bool RUNS>
__device__ __forceinline__ void store(const norm_long_args &a, T *to, uint32_t first, uint32_t step,
                                      uint32_t end, const float *value)
{
    if constexpr (RUNS) {
        wd_run<T, COLUMNS> run;
        if (first >= end) return;
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            T element;
            wd_narrow(element, value[i]);
            run.put(i, element);
        }
        if (a.of.streaming) run.store_streaming(to + first);
        else run.store(to + first);
    } else {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const uint32_t column = next_column<RUNS>(first, step, i);
            if (column < end) wd_narrow(to[column], value[i]);
        }
    }
}

// Parameters, which are zeros where there are none.
template <bool RUNS>
__device__ __forceinline__ void load_param(const norm_rows_param &p, uint32_t first, uint32_t step,
                                           uint32_t end, float *to)
{
    if (!p.data) end = 0;
    if (p.type == NORM_ROWS_F32) {
        load<float, RUNS>(static_cast<const float *>(p.data), first, step, end, to);
    } else if (p.type == NORM_ROWS_F16) {
        load<half16, RUNS>(static_cast<const half16 *>(p.data), first, step, end, to);
    } else {
        load<bfloat16, RUNS>(static_cast<const bfloat16 *>(p.data), first, step, end, to);
    }
}

__device__ __forceinline__ void write_param(const norm_rows_param &p, uint32_t column, float value)
{
    if (p.type == NORM_ROWS_F32) static_cast<float *>(p.data)[column] = value;
    else if (p.type == NORM_ROWS_F16) wd_narrow(static_cast<half16 *>(p.data)[column], value);
    else wd_narrow(static_cast<bfloat16 *>(p.data)[column], value);
}

// ---- Segments of rows ----

// What a group of lanes has of which row; a row that is not there has no columns.
struct place {
    int64_t row;
    uint32_t segment;
    uint32_t lane;
    uint32_t first; // column of the thread
    uint32_t step;  // to its next eight
    uint32_t end;
};

template <bool RUNS> __device__ __forceinline__ place place_of(const norm_long_args &a)
{
    const uint32_t groups = NORM_LONG_THREADS / a.of.lanes;
    const uint32_t group = threadIdx.x / a.of.lanes;
    const int64_t all = (int64_t)blockIdx.x * groups + group;
    place p;
    p.row = all / a.segments;
    p.segment = (uint32_t)(all - p.row * a.segments);
    p.lane = threadIdx.x - group * a.of.lanes;
    p.step = a.of.lanes * COLUMNS;
    p.first = p.segment * a.segment + p.lane * (RUNS ? COLUMNS : 1);
    p.end = p.row < a.of.rows ? min(a.of.length, (p.segment + 1) * a.segment) : 0;
    return p;
}

__device__ __forceinline__ norm_long_numbers numbers_of(const norm_long_args &a, int64_t row)
{
    norm_long_numbers n = {0.0f, 0.0f, 0.0f, 0.0f};
    if (row >= a.of.rows) return n;
    if (a.numbers) return a.numbers[row];
    if (a.of.given_mean) n.mean = a.of.given_mean[row];
    n.inv_std = a.of.given_inv_std[row];
    return n;
}

// The statistics of a whole row are found.
__device__ __forceinline__ void finish_row(const norm_long_args &a, int64_t row, const wd_part &all)
{
    norm_long_numbers n;
    n.inv_std = 1.0f / sqrtf((float)(all.squares / (double)a.of.length) + a.of.epsilon);
    n.mean = (float)all.mean;
    n.shift = (float)((double)n.mean - all.mean) * n.inv_std;
    n.unused = 0.0f;
    if (a.numbers) a.numbers[row] = n;
    if (a.of.mean) a.of.mean[row] = n.mean;
    if (a.of.inv_std) a.of.inv_std[row] = n.inv_std;
}

__device__ __forceinline__ void finish_sums(const norm_long_args &a, int64_t row, double all,
                                            double slope)
{
    a.sums[2 * row] = a.of.centered ? (float)(all * a.of.inverse) : 0.0f;
    a.sums[2 * row + 1] = (float)(slope * a.of.inverse);
}

template <class T, bool RUNS> __device__ __forceinline__ void statistics(const norm_long_args &a)
{
    __shared__ wd_part of_warp[WARPS];
    const place p = place_of<RUNS>(a);
    const T *x = static_cast<const T *>(a.of.x) + p.row * a.of.length;
    wd_shifted<float> seen;
    uint32_t count = 0;
    seen.begin(0.0f);
    wd_wait_for_previous();
    if (a.of.centered && p.first < p.end) seen.begin(wd_widen(x[p.first]));
    for (uint32_t at = p.first; at < p.end; at += p.step) {
        float v[COLUMNS];
        load<T, RUNS>(x, at, a.of.lanes, p.end, v);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            if (next_column<RUNS>(at, a.of.lanes, i) >= p.end) continue;
            seen.add(v[i]);
            count += 1;
        }
    }
    wd_part part = seen.part(count);
    if (!a.of.centered) part = {(double)count, 0.0, (double)seen.squares};
    wd_join_parts_of_warp(part);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = part;
    __syncthreads();
    if (p.lane > 0 || p.row >= a.of.rows) return;
    for (uint32_t w = 1; w < a.of.lanes / WARP; ++w) {
        wd_join_parts(part, of_warp[threadIdx.x / WARP + w]);
    }
    if (a.segments == 1) {
        finish_row(a, p.row, part);
        return;
    }
    double *to = a.parts + (p.row * a.segments + p.segment) * 3;
    to[0] = part.count, to[1] = part.mean, to[2] = part.squares;
}

// A warp has a row, a lane neighbouring segments.
__device__ __forceinline__ void join_statistics(const norm_long_args &a)
{
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    const uint32_t each = (a.segments + WARP - 1) / WARP;
    const uint32_t first = threadIdx.x % WARP * each;
    const double *from = a.parts + row * a.segments * 3;
    wd_part all = {0.0, 0.0, 0.0};
    wd_wait_for_previous();
    for (uint32_t s = first; row < a.of.rows && s < min(first + each, a.segments); ++s) {
        const wd_part part = {from[3 * s], from[3 * s + 1], from[3 * s + 2]};
        wd_join_parts(all, part);
    }
    wd_join_parts_of_warp(all);
    if (threadIdx.x % WARP == 0 && row < a.of.rows) finish_row(a, row, all);
}

// ---- Forward ----

template <class T, bool RUNS> __device__ __forceinline__ void apply(const norm_long_args &a)
{
    const place p = place_of<RUNS>(a);
    const T *x = static_cast<const T *>(a.of.x) + p.row * a.of.length;
    T *y = static_cast<T *>(a.of.y) + p.row * a.of.length;
    wd_wait_for_previous();
    const norm_long_numbers n = numbers_of(a, p.row);
    for (uint32_t at = p.first; at < p.end; at += p.step) {
        float v[COLUMNS], scale[COLUMNS], bias[COLUMNS];
        load<T, RUNS>(x, at, a.of.lanes, p.end, v);
        load_param<RUNS>(a.of.scale, at, a.of.lanes, p.end, scale);
        load_param<RUNS>(a.of.bias, at, a.of.lanes, p.end, bias);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            v[i] = fmaf(scale[i], fmaf(v[i] - n.mean, n.inv_std, n.shift), bias[i]);
        }
        store<T, RUNS>(a, y, at, a.of.lanes, p.end, v);
    }
}

// ---- Backward ----

template <class T, bool RUNS> __device__ __forceinline__ void sums(const norm_long_args &a)
{
    __shared__ double of_warp[2][WARPS];
    const place p = place_of<RUNS>(a);
    const T *x = static_cast<const T *>(a.of.x) + p.row * a.of.length;
    const T *dy = static_cast<const T *>(a.of.dy) + p.row * a.of.length;
    float all = 0.0f, slope = 0.0f;
    wd_wait_for_previous();
    const norm_long_numbers n = numbers_of(a, p.row);
    for (uint32_t at = p.first; at < p.end; at += p.step) {
        float v[COLUMNS], d[COLUMNS], scale[COLUMNS];
        load<T, RUNS>(x, at, a.of.lanes, p.end, v);
        load<T, RUNS>(dy, at, a.of.lanes, p.end, d); // zeros beyond the end
        load_param<RUNS>(a.of.scale, at, a.of.lanes, p.end, scale);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const float g = d[i] * scale[i];
            all += g;
            slope = fmaf(g, fmaf(v[i] - n.mean, n.inv_std, n.shift), slope);
        }
    }
    double sum = wd_sum_of_warp(all);
    double product = wd_sum_of_warp(slope);
    if (threadIdx.x % WARP == 0) {
        of_warp[0][threadIdx.x / WARP] = sum;
        of_warp[1][threadIdx.x / WARP] = product;
    }
    __syncthreads();
    if (p.lane > 0 || p.row >= a.of.rows) return;
    for (uint32_t w = 1; w < a.of.lanes / WARP; ++w) {
        sum += of_warp[0][threadIdx.x / WARP + w];
        product += of_warp[1][threadIdx.x / WARP + w];
    }
    if (a.segments == 1) {
        finish_sums(a, p.row, sum, product);
        return;
    }
    double *to = a.parts + (p.row * a.segments + p.segment) * 2;
    to[0] = sum, to[1] = product;
}

__device__ __forceinline__ void join_sums(const norm_long_args &a)
{
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    const uint32_t each = (a.segments + WARP - 1) / WARP;
    const uint32_t first = threadIdx.x % WARP * each;
    const double *from = a.parts + row * a.segments * 2;
    double sum = 0.0, product = 0.0;
    wd_wait_for_previous();
    for (uint32_t s = first; row < a.of.rows && s < min(first + each, a.segments); ++s) {
        sum += from[2 * s];
        product += from[2 * s + 1];
    }
    sum = wd_sum_of_warp(sum);
    product = wd_sum_of_warp(product);
    if (threadIdx.x % WARP == 0 && row < a.of.rows) finish_sums(a, row, sum, product);
}

// dx, and what the rows of a slab give to dscale and dbias.
template <class T, bool RUNS> __device__ __forceinline__ void gradient(const norm_long_args &a)
{
    __shared__ float room[2][COLUMNS][NORM_LONG_THREADS];
    const uint32_t slab = blockIdx.x / a.tiles;
    const uint32_t start = (blockIdx.x - slab * a.tiles) * a.across * COLUMNS;
    const uint32_t below = threadIdx.x / a.across;
    const uint32_t lane = threadIdx.x - below * a.across;
    const uint32_t down = NORM_LONG_THREADS / a.across;
    const uint32_t first = start + lane * (RUNS ? COLUMNS : 1);
    const uint32_t end = min(a.of.length, start + a.across * COLUMNS);
    const int64_t last = min(a.of.rows, (slab + 1) * a.slab);
    float scale[COLUMNS], dscale[COLUMNS], dbias[COLUMNS];
    wd_wait_for_previous();
    load_param<RUNS>(a.of.scale, first, a.across, end, scale);
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) dscale[i] = dbias[i] = 0.0f;
    for (int64_t row = slab * a.slab + below; row < last; row += down) {
        const norm_long_numbers n = numbers_of(a, row);
        const float all = a.sums[2 * row], slope = a.sums[2 * row + 1];
        float v[COLUMNS], d[COLUMNS];
        load<T, RUNS>(static_cast<const T *>(a.of.x) + row * a.of.length, first, a.across, end, v);
        load<T, RUNS>(static_cast<const T *>(a.of.dy) + row * a.of.length, first, a.across, end, d);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const float xhat = fmaf(v[i] - n.mean, n.inv_std, n.shift);
            dscale[i] = fmaf(d[i], xhat, dscale[i]);
            dbias[i] += d[i];
            v[i] = n.inv_std * (d[i] * scale[i] - fmaf(xhat, slope, all));
        }
        store<T, RUNS>(a, static_cast<T *>(a.of.y) + row * a.of.length, first, a.across, end, v);
    }
    if (!a.of.dscale.data && !a.of.dbias.data) return;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
        room[0][i][threadIdx.x] = dscale[i];
        room[1][i][threadIdx.x] = dbias[i];
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < 2 * COLUMNS * a.across; k += blockDim.x) {
        const uint32_t of = k / a.across; // neighbours are neighbours in shared memory
        const uint32_t which = of / COLUMNS;
        const uint32_t i = of - which * COLUMNS;
        const uint32_t l = k - of * a.across;
        const uint32_t column =
            next_column<RUNS>(start + l * (RUNS ? COLUMNS : 1), a.across, (int)i);
        const norm_rows_param &to = which == 0 ? a.of.dscale : a.of.dbias;
        float sum = 0.0f;
        if (column >= end || !to.data) continue;
        for (uint32_t r = 0; r < down; ++r) sum += room[which][i][r * a.across + l];
        if (a.of.partial) a.of.partial[((int64_t)slab * 2 + which) * a.of.length + column] = sum;
        else write_param(to, column, sum);
    }
}

} // namespace

#define WD_KERNELS_ROWS "ops/norm/norm_long_kernels.def"
#include "ops/kernels_device.inc"
