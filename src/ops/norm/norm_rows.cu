// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm over rows without gaps, and their gradients, at the speed of memory: a row
// is read once and stays in the registers of a group of lanes, a block or a cluster; several rows are
// worked on at once, and the next ones are on their way meanwhile.
// Sums are joined in an order that depends on the shape and the device alone.
#include "gpu/device/async.cuh"
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/norm/norm_rows_exchange.cuh"

namespace {

template <class T> using run = wd_run<T, COLUMNS>;

// Rows that a thread has at once, so that what a row waits for is shared by them. Where it has runs,
// the next ones are on their way to shared memory meanwhile, into words of its own.
template <class T> constexpr int RUN_WORDS = run<T>::BYTES / 16;
template <class T, bool RUNS>
constexpr int FORWARD_ROWS = RUNS ? NORM_ROWS_AHEAD / RUN_WORDS<T> : 4 / (int)sizeof(T);
template <class T, bool RUNS>
constexpr int BACKWARD_ROWS = RUNS ? NORM_ROWS_AHEAD / 2 / RUN_WORDS<T> : 1;

template <bool RUNS>
__device__ __forceinline__ uint32_t column_of(const norm_rows_args &a, uint32_t rank, uint32_t lane,
                                              uint32_t i)
{
    if (RUNS) return (rank * a.lanes + lane) * COLUMNS + i;
    return rank * a.lanes * COLUMNS + lane + i * a.lanes;
}

template <bool RUNS> __device__ __forceinline__ seat seat_of(const norm_rows_args &a)
{
    seat s;
    s.rank = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    s.group = threadIdx.x / a.lanes;
    s.lane = threadIdx.x - s.group * a.lanes;
    s.width = min(a.lanes, WARP);
    s.first = column_of<RUNS>(a, s.rank, s.lane, 0);
    s.count = 0;
    if (s.first < a.length) {
        s.count = RUNS ? COLUMNS : min((a.length - s.first - 1) / a.lanes + 1, (uint32_t)COLUMNS);
    }
    return s;
}

// Columns that the thread does not have are zeros.
template <class T, bool RUNS>
__device__ __forceinline__ void fetch(run<T> &to, const norm_rows_args &a, const seat &s,
                                      const void *from, int64_t row)
{
    const bool there = row < a.rows;
    const T *first = static_cast<const T *>(from) + row * a.length + s.first;
    if constexpr (RUNS) {
#pragma unroll
        for (int w = 0; w < run<T>::WORDS; ++w) to.word[w] = 0;
        if (there && s.count > 0) to.load(first);
    } else {
        const uint32_t count = there ? s.count : 0;
        T one[COLUMNS];
#pragma unroll
        for (uint32_t i = 0; i < COLUMNS; ++i, first += a.lanes) {
            wd_narrow(one[i], 0.0f);
            if (i < count) one[i] = *first;
        }
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) to.put(i, one[i]);
    }
}

// Row `row` on its way to place `at` of the thread; and from there, when it has come.
template <class T>
__device__ __forceinline__ void ask(uint4 *ahead, int at, const norm_rows_args &a, const seat &s,
                                    const void *from, int64_t row)
{
    if (row >= a.rows || s.count == 0) return;
    const T *first = static_cast<const T *>(from) + row * a.length + s.first;
#pragma unroll
    for (int w = 0; w < RUN_WORDS<T>; ++w) {
        wd_copy_async<16, false>(&ahead[(at * RUN_WORDS<T> + w) * blockDim.x + threadIdx.x],
                                 reinterpret_cast<const uint4 *>(first) + w);
    }
}

template <class T>
__device__ __forceinline__ void come(run<T> &to, const uint4 *ahead, int at,
                                     const norm_rows_args &a, const seat &s, int64_t row)
{
    const bool there = row < a.rows && s.count > 0;
#pragma unroll
    for (int w = 0; w < RUN_WORDS<T>; ++w) {
        uint4 v = make_uint4(0, 0, 0, 0);
        if (there) v = ahead[(at * RUN_WORDS<T> + w) * blockDim.x + threadIdx.x];
        to.word[4 * w] = v.x, to.word[4 * w + 1] = v.y;
        to.word[4 * w + 2] = v.z, to.word[4 * w + 3] = v.w;
    }
}

// Two neighbours by one conversion.
__device__ __forceinline__ void narrow_pair(run<float> &to, int i, float first, float second)
{
    to.put(i, first);
    to.put(i + 1, second);
}
__device__ __forceinline__ void narrow_pair(run<half16> &to, int i, float first, float second)
{
    const __half2 pair = __floats2half2_rn(first, second);
    memcpy(&to.word[i / 2], &pair, 4);
}
__device__ __forceinline__ void narrow_pair(run<bfloat16> &to, int i, float first, float second)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    memcpy(&to.word[i / 2], &pair, 4);
}

template <class T, bool RUNS>
__device__ __forceinline__ void put(const norm_rows_args &a, const seat &s, int64_t row,
                                    const float *value)
{
    T *first = static_cast<T *>(a.y) + row * a.length + s.first;
    if (row >= a.rows) return;
    if constexpr (RUNS) {
        run<T> out;
        if (s.count == 0) return;
#pragma unroll
        for (int i = 0; i < COLUMNS; i += 2) narrow_pair(out, i, value[i], value[i + 1]);
        if (a.streaming) out.store_streaming(first);
        else out.store(first);
    } else {
#pragma unroll
        for (uint32_t i = 0; i < COLUMNS; ++i, first += a.lanes) {
            if (i < s.count) wd_narrow(*first, value[i]);
        }
    }
}

// ---- Parameters ----

template <class P, bool RUNS>
__device__ __forceinline__ void read_param_as(const norm_rows_args &a, const seat &s,
                                              const void *data, float *to)
{
    const P *first = static_cast<const P *>(data) + s.first;
    if constexpr (RUNS) {
        run<P> r;
        if (s.count == 0) return;
        r.load(first);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) to[i] = wd_widen(r.get(i));
    } else {
#pragma unroll
        for (uint32_t i = 0; i < COLUMNS; ++i) {
            if (i < s.count) to[i] = wd_widen(first[i * a.lanes]);
        }
    }
}

template <bool RUNS>
__device__ __forceinline__ void read_param(const norm_rows_args &a, const seat &s,
                                           const norm_rows_param &p, float *to)
{
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) to[i] = 0.0f;
    if (!p.data) return;
    if (p.type == NORM_ROWS_F32) read_param_as<float, RUNS>(a, s, p.data, to);
    else if (p.type == NORM_ROWS_F16) read_param_as<half16, RUNS>(a, s, p.data, to);
    else read_param_as<bfloat16, RUNS>(a, s, p.data, to);
}

__device__ __forceinline__ void write_param(const norm_rows_param &p, uint32_t column, float value)
{
    if (!p.data) return;
    if (p.type == NORM_ROWS_F32) static_cast<float *>(p.data)[column] = value;
    else if (p.type == NORM_ROWS_F16) wd_narrow(static_cast<half16 *>(p.data)[column], value);
    else wd_narrow(static_cast<bfloat16 *>(p.data)[column], value);
}

// ---- Forward ----

// Of the row's columns in the warp, `columns` of them; inverse is of that.
template <class T, bool RUNS, bool WHOLE>
__device__ __forceinline__ part warp_statistics(const norm_rows_args &a, const seat &s,
                                                const run<T> &x, float columns, float inverse)
{
    part p = {0.0f, 0.0f, 0.0f, columns};
    const uint32_t width = WHOLE ? WARP : s.width;
    if (a.centered) {
        float sum = 0.0f;
        p.pivot = __shfl_sync(WHOLE_WARP, wd_widen(x.get(0)), 0, width);
#pragma unroll
        for (uint32_t i = 0; i < COLUMNS; ++i) {
            if (RUNS || i < s.count) sum += wd_widen(x.get(i)) - p.pivot;
        }
        if (s.count == 0) sum = 0.0f;
        p.rest = sum_of_lanes(sum, width) * inverse;
    }
#pragma unroll
    for (uint32_t i = 0; i < COLUMNS; ++i) {
        const float v = (wd_widen(x.get(i)) - p.pivot) - p.rest;
        if (RUNS || i < s.count) p.squares = fmaf(v, v, p.squares);
    }
    if (s.count == 0) p.squares = 0.0f;
    p.squares = sum_of_lanes(p.squares, width);
    return p;
}

template <class T, bool RUNS>
__device__ __forceinline__ void put_forward(const norm_rows_args &a, const seat &s, int64_t row,
                                            const run<T> &x, const numbers &n, const float *scale,
                                            const float *bias)
{
    float v[COLUMNS];
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
        v[i] = fmaf(scale[i], fmaf(wd_widen(x.get(i)) - n.mean, n.inv_std, n.shift), bias[i]);
    }
    put<T, RUNS>(a, s, row, v);
}

__device__ __forceinline__ void put_statistics(const norm_rows_args &a, const seat &s, int64_t row,
                                               const numbers &n)
{
    if (s.first > 0 || row >= a.rows) return;
    if (a.mean) a.mean[row] = n.mean;
    if (a.inv_std) a.inv_std[row] = n.inv_std;
}

__device__ __forceinline__ float given(const float *from, const norm_rows_args &a, int64_t row)
{
    return from && row < a.rows ? from[row] : 0.0f;
}

template <class T, bool RUNS> __device__ __forceinline__ void rows_forward(const norm_rows_args &a)
{
    constexpr int ROWS = FORWARD_ROWS<T, RUNS>;
    __shared__ slots of;
    const seat s = seat_of<RUNS>(a);
    const bool computes = !a.given_inv_std;
    const int64_t start = (int64_t)(blockIdx.x / a.cluster) * a.groups + s.group;
    float scale[COLUMNS], bias[COLUMNS];
    WD_DYNAMIC_SHARED(uint4, ahead);
    run<T> x[ROWS];
    if (computes) begin_exchange(a, of);
    wd_wait_for_previous();
#pragma unroll
    for (int r = 0; RUNS && r < ROWS; ++r) ask<T>(ahead, r, a, s, a.x, start + r * a.step);
    read_param<RUNS>(a, s, a.scale, scale);
    read_param<RUNS>(a, s, a.bias, bias);
    const float columns = sum_of_lanes((float)s.count, s.width); // of the warp
    const float inverse = columns > 0.0f ? 1.0f / columns : 0.0f;
    uint32_t turn = 0;
    for (int64_t row = start; row - s.group < a.rows; row += ROWS * a.step, ++turn) {
        if (RUNS) wd_copies_wait_all();
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int64_t at = row + r * a.step;
            if (RUNS) come<T>(x[r], ahead, r, a, s, at);
            else fetch<T, RUNS>(x[r], a, s, a.x, at);
        }
#pragma unroll
        for (int r = 0; RUNS && r < ROWS; ++r) {
            ask<T>(ahead, r, a, s, a.x, row + (ROWS + r) * a.step);
        }
        if (computes && a.lanes > WARP) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const part p = warp_statistics<T, RUNS, true>(a, s, x[r], columns, inverse);
                if (threadIdx.x % WARP == 0) of.of_warp[r][threadIdx.x / WARP] = p;
            }
            exchange<true, ROWS>(a, s, of, turn);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int64_t at = row + r * a.step;
            numbers n;
            if (!computes) {
                n = {given(a.given_mean, a, at), given(a.given_inv_std, a, at), 0.0f};
            } else if (a.lanes > WARP) {
                const part p = of.of_row[s.group][r];
                n = {p.pivot, p.rest, p.squares};
            } else {
                n = numbers_of(a, warp_statistics<T, RUNS, false>(a, s, x[r], columns, inverse));
            }
            put_statistics(a, s, at, n);
            put_forward<T, RUNS>(a, s, at, x[r], n, scale, bias);
        }
    }
}

// ---- Backward ----

// Adds what the threads have of dscale (or dbias) over the rows of the block, in the order of groups,
// and delivers it.
template <bool RUNS, uint32_t ROOM>
__device__ __forceinline__ void deliver(const norm_rows_args &a, const seat &s, const float *mine,
                                        uint32_t which, float (&of)[COLUMNS][ROOM])
{
    const norm_rows_param &to = which == 0 ? a.dscale : a.dbias;
    float *partial = a.partial;
    if (partial) partial += ((int64_t)(blockIdx.x / a.cluster) * 2 + which) * a.length;
    if (!to.data) return;
    if (a.groups == 1) {
#pragma unroll
        for (uint32_t i = 0; i < COLUMNS; ++i) {
            const uint32_t column = column_of<RUNS>(a, s.rank, s.lane, i);
            if (column >= a.length) continue;
            if (partial) partial[column] = mine[i];
            else write_param(to, column, mine[i]);
        }
        return;
    }
    // groups within a warp first
    const uint32_t slot = max(a.lanes, WARP);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
        float v = mine[i];
        for (uint32_t o = a.lanes; o < WARP; o *= 2) v += __shfl_xor_sync(WHOLE_WARP, v, o);
        of[i][threadIdx.x] = v;
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < COLUMNS * a.lanes; k += blockDim.x) {
        const uint32_t i = k / a.lanes;
        const uint32_t lane = k - i * a.lanes;
        const uint32_t column = column_of<RUNS>(a, 0, lane, i);
        float sum = 0.0f;
        for (uint32_t at = lane; at < blockDim.x; at += slot) sum += of[i][at];
        if (column >= a.length) continue;
        if (partial) partial[column] = sum;
        else write_param(to, column, sum);
    }
}

// Runs stay in shared memory, in one of two places, while the next ones come to the other. With
// singles the rows are in registers, and the scale in shared memory, in words of the thread's own.
template <class T, bool RUNS> __device__ __forceinline__ void rows_backward(const norm_rows_args &a)
{
    constexpr int ROWS = BACKWARD_ROWS<T, RUNS>;
    __shared__ slots of;
    __shared__ float room[COLUMNS][RUNS ? NORM_ROWS_BESIDE : NORM_ROWS_THREADS];
    WD_DYNAMIC_SHARED(uint4, ahead);
    const seat s = seat_of<RUNS>(a);
    const int64_t start = (int64_t)(blockIdx.x / a.cluster) * a.groups + s.group;
    float scale[COLUMNS], dscale[COLUMNS], dbias[COLUMNS];
    float mean[ROWS], inv_std[ROWS];
    run<T> x, dy;
    begin_exchange(a, of);
    wd_wait_for_previous();
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (RUNS) {
            ask<T>(ahead, 2 * r, a, s, a.x, start + r * a.step);
            ask<T>(ahead, 2 * r + 1, a, s, a.dy, start + r * a.step);
        }
        mean[r] = given(a.given_mean, a, start + r * a.step);
        inv_std[r] = given(a.given_inv_std, a, start + r * a.step);
    }
    if (RUNS) wd_copies_end();
    read_param<RUNS>(a, s, a.scale, scale);
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
        if (!RUNS) room[i][threadIdx.x] = scale[i];
        dscale[i] = dbias[i] = 0.0f;
    }
    uint32_t turn = 0;
    for (int64_t row = start; row - s.group < a.rows; row += ROWS * a.step, ++turn) {
        const uint4 *present = ahead + (turn & 1) * NORM_ROWS_AHEAD * blockDim.x;
        uint4 *next = ahead + (~turn & 1) * NORM_ROWS_AHEAD * blockDim.x;
        float all[ROWS], slope[ROWS], next_mean[ROWS], next_inv_std[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int64_t at = row + (ROWS + r) * a.step;
            if (RUNS) {
                ask<T>(next, 2 * r, a, s, a.x, at);
                ask<T>(next, 2 * r + 1, a, s, a.dy, at);
                next_mean[r] = given(a.given_mean, a, at);
                next_inv_std[r] = given(a.given_inv_std, a, at);
            }
        }
        if (RUNS) {
            wd_copies_end();
            wd_copies_wait<1>();
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            all[r] = slope[r] = 0.0f;
            if (RUNS) {
                come<T>(x, present, 2 * r, a, s, row + r * a.step);
                come<T>(dy, present, 2 * r + 1, a, s, row + r * a.step);
            } else {
                fetch<T, RUNS>(x, a, s, a.x, row);
                fetch<T, RUNS>(dy, a, s, a.dy, row);
            }
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) {
                // a column that the thread does not have: dy is 0
                const float d = wd_widen(dy.get(i));
                const float xhat = (wd_widen(x.get(i)) - mean[r]) * inv_std[r];
                const float g = d * (RUNS ? scale[i] : room[i][threadIdx.x]);
                dscale[i] = fmaf(d, xhat, dscale[i]);
                dbias[i] += d;
                all[r] += g;
                slope[r] = fmaf(g, xhat, slope[r]);
            }
            if (a.lanes > WARP) {
                const part p = {sum_of_lanes(all[r], WARP), sum_of_lanes(slope[r], WARP), 0.0f,
                                0.0f};
                if (threadIdx.x % WARP == 0) of.of_warp[r][threadIdx.x / WARP] = p;
            } else {
                all[r] = sum_of_lanes(all[r], s.width);
                slope[r] = sum_of_lanes(slope[r], s.width);
            }
        }
        if (a.lanes > WARP) exchange<false, ROWS>(a, s, of, turn);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float v[COLUMNS];
            if (a.lanes > WARP) {
                all[r] = of.of_row[s.group][r].pivot;
                slope[r] = of.of_row[s.group][r].rest;
            }
            all[r] = a.centered ? all[r] * a.inverse : 0.0f;
            slope[r] *= a.inverse;
            if (RUNS) {
                come<T>(x, present, 2 * r, a, s, row + r * a.step);
                come<T>(dy, present, 2 * r + 1, a, s, row + r * a.step);
            }
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) {
                const float xhat = (wd_widen(x.get(i)) - mean[r]) * inv_std[r];
                const float g = wd_widen(dy.get(i)) * (RUNS ? scale[i] : room[i][threadIdx.x]);
                v[i] = inv_std[r] * (g - fmaf(xhat, slope[r], all[r]));
            }
            put<T, RUNS>(a, s, row + r * a.step, v);
            if (RUNS) {
                mean[r] = next_mean[r], inv_std[r] = next_inv_std[r];
            } else {
                mean[r] = given(a.given_mean, a, row + a.step);
                inv_std[r] = given(a.given_inv_std, a, row + a.step);
            }
        }
    }
    deliver<RUNS>(a, s, dscale, 0, room);
    deliver<RUNS>(a, s, dbias, 1, room);
}

// dscale and dbias of the partial rows: a block has a tile of columns of one of them.
__device__ __forceinline__ void rows_finish(const norm_rows_args &a)
{
    __shared__ double of[NORM_ROWS_SLICES][NORM_ROWS_TILE];
    const uint32_t tiles = (a.length + NORM_ROWS_TILE - 1) / NORM_ROWS_TILE;
    const uint32_t which = blockIdx.x / tiles;
    const uint32_t across = threadIdx.x % NORM_ROWS_TILE;
    const uint32_t slice = threadIdx.x / NORM_ROWS_TILE;
    const uint32_t slices = blockDim.x / NORM_ROWS_TILE;
    const uint32_t column = (blockIdx.x - which * tiles) * NORM_ROWS_TILE + across;
    const norm_rows_param &to = which == 0 ? a.dscale : a.dbias;
    double sum = 0.0;
    wd_wait_for_previous();
    if (!to.data) return;
    if (column < a.length) {
        const float *from = a.partial + (int64_t)which * a.length + column;
#pragma unroll 8
        for (uint32_t p = slice; p < a.partials; p += slices)
            sum += from[(int64_t)p * 2 * a.length];
    }
    of[slice][across] = sum;
    __syncthreads();
    if (slice > 0 || column >= a.length) return;
    for (uint32_t i = 1; i < slices; ++i) sum += of[i][across];
    write_param(to, column, (float)sum);
}

} // namespace

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_rows_kernels.def"
#include "ops/kernels_device.inc"
