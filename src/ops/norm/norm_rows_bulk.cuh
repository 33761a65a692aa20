// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm over rows of whole units that a block has to itself, or shares with those of its cluster. A
// block stays and walks down the rows with the parameters of its columns in registers. A warp has a strip of each row,
// which comes to shared memory by one bulk copy some rows ahead. A thread sums differences from its first column, so
// that nothing has to be known of a row before it is looked at; a row is put `lag` turns after, so that nobody
// waits for what the warps, and the blocks, say to one another of it. Nothing else keeps warps together: a block has
// no barrier, a warp is ahead of another by what it may be without its sums.
#ifndef WD_OPS_NORM_ROWS_BULK_CUH
#define WD_OPS_NORM_ROWS_BULK_CUH

#include "gpu/device/bulk.cuh"
#include "gpu/device/opaque.cuh"
#include "ops/norm/norm_rows_walk.cuh"

namespace {

// What is to be found of a row: nothing, for its statistics are given; squares (RMS norm); or mean and squares.
enum bulk_kind { KNOWN, RAW, CENTRED };

constexpr uint32_t BULK_WARPS = 16;
constexpr uint32_t BULK_COPIES =
    8; // a warp that is ahead writes when another still reads of five turns before
struct __align__(128) bulk_sums
{
    float4 of_cluster[BULK_COPIES][NORM_ROWS_BULK_CLUSTER];
    float4 of_block[BULK_COPIES][BULK_WARPS];
    uint64_t here[BULK_COPIES];    // what all blocks said
    uint64_t arrived[BULK_COPIES]; // the warps of this one
    uint64_t read[BULK_COPIES];    // lanes that have read what a warp left
    uint64_t landed[NORM_ROWS_AHEAD_MAX + 1][BULK_WARPS];
};

// Parts of a row, one a lane: of `count` columns each (0: the lane has none), of which there are 1 / inverse.
struct bulk_parts {
    float count;
    float inverse;
};

// From parts, pivot, distance of the mean from it, squares around the mean, those of all of them: of the parts that
// WIDTH lanes have, who all get the same. Sums and squares are taken at once, around the first part's mean, which is
// that of the others but for some of their deviations.
template <int KIND, uint32_t WIDTH = WARP>
__device__ __forceinline__ float4 bulk_join(float4 mine, const bulk_parts &parts)
{
    if (KIND == RAW) return make_float4(0.0f, 0.0f, sum_of_lanes(mine.z, WIDTH), 0.0f);
    const float pivot = __shfl_sync(WHOLE_WARP, mine.x, 0, WIDTH);
    float around = __shfl_sync(WHOLE_WARP, mine.y, 0, WIDTH);
    if (!(fabsf(around) <= 3.0e38f)) around = 0.0f;
    const bool there = parts.count > 0.0f;
    const float d = there ? (mine.x - pivot) + (mine.y - around) : 0.0f;
    const float counted = parts.count * d;
    const float sum = sum_of_lanes(counted, WIDTH);
    const float squares = sum_of_lanes(there ? fmaf(counted, d, mine.z) : 0.0f, WIDTH);
    const float all = fmaf(-sum, sum * parts.inverse, squares);
    // a NaN stays one
    return make_float4(pivot, fmaf(sum, parts.inverse, around), all < 0.0f ? 0.0f : all, 0.0f);
}

// Part i of those that the warps of a block left: all have as many columns but for the last one.
template <class T, int C>
__device__ __forceinline__ bulk_parts bulk_warps(const norm_rows_args &a, uint32_t i)
{
    const uint32_t last = a.lanes / WARP - 1;
    const uint32_t left = a.share * EACH<T> - last * (WARP * C);
    const uint32_t columns = i < last ? WARP * C : i == last ? left : 0;
    return {(float)columns, a.inverse * (float)a.cluster};
}

// Of a thread's columns, `units` of E: all it may have, or RAGGED as many as there are.
template <class T, int C, int KIND, bool RAGGED>
__device__ __forceinline__ float4 bulk_look(const uint4 *at, int units)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
    float pivot = 0.0f, sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int v = 0; v < U; ++v) {
        if (RAGGED && v >= units) break;
        const unit<T> x = strip_take<T>(at + v * WARP);
        if (KIND == CENTRED && v == 0) {
            pivot = wide_of<T>(x, 0);
            if (!(fabsf(pivot) <= 3.0e38f)) pivot = 0.0f; // nothing could be taken from it
        }
#pragma unroll
        for (int i = 0; i < E; ++i) {
            const float d = KIND == RAW ? wide_of<T>(x, i) : wide_of<T>(x, i) - pivot;
            if (KIND == CENTRED) sum += d;
            squares = fmaf(d, d, squares);
        }
    }
    if (KIND == RAW) return make_float4(0.0f, 0.0f, squares, 0.0f);
    float inverse = 1.0f / C;
    if (RAGGED) {
        // looked up, for registers are short
#pragma unroll
        for (int v = 1; v < U; ++v) inverse = units == v ? 1.0f / (float)(v * E) : inverse;
    }
    const float rest = sum * inverse;
    const float around = fmaf(-sum, rest, squares);
    return make_float4(pivot, rest, around < 0.0f ? 0.0f : around, 0.0f); // a NaN stays one
}

__device__ __forceinline__ void bulk_begin(const norm_rows_args &a, bulk_sums &of)
{
    if (threadIdx.x % WARP == 0) {
#pragma unroll 1
        for (uint32_t i = 0; i < a.ring; ++i) wd_counter_begin(&of.landed[i][threadIdx.x / WARP]);
    }
    if (threadIdx.x < BULK_COPIES) {
        wd_arrivals_begin(&of.arrived[threadIdx.x], a.lanes / WARP);
        wd_arrivals_begin(&of.read[threadIdx.x], a.lanes / WARP);
        wd_counter_begin(&of.here[threadIdx.x]);
    }
    if (a.cluster == 1) {
        __syncthreads();
    } else {
        wd_cluster_arrive();
        wd_cluster_wait();
    }
}

// By one warp of a block of several: what the block's warps found of the row of a turn, to all blocks.
template <class T, int C, int KIND>
__device__ __forceinline__ void bulk_say(const norm_rows_args &a, uint32_t rank, bulk_sums &of,
                                         uint32_t turn)
{
    const uint32_t lane = threadIdx.x % WARP, warps = a.lanes / WARP, copy = turn % BULK_COPIES;
    float4 mine = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    wd_counter_wait(&of.arrived[copy], turn / BULK_COPIES & 1);
    if (lane < warps) {
        mine = of.of_block[copy][lane];
        wd_arrive(&of.read[copy], warps);
    }
    const float4 all = bulk_join<KIND, BULK_WARPS>(mine, bulk_warps<T, C>(a, lane));
    if (lane == 0) wd_counter_expect(&of.here[copy], a.cluster * (uint32_t)sizeof(float4));
    if (lane < a.cluster) wd_counter_send(&of.of_cluster[copy][rank], &of.here[copy], lane, all);
}

// As numbers_of, without a branch: a root's and a quotient's are waited for by each warp, in each turn.
__device__ __forceinline__ numbers bulk_numbers(const norm_rows_args &a, const float4 &all)
{
    numbers n;
    const float v = fmaf(all.z, a.inverse, a.epsilon);
    const float root = rsqrtf(v);
    const float off = fmaf(-v * root, root, 1.0f);
    // none of a root that is zero or infinite
    n.inv_std = fabsf(off) <= 1.0f ? fmaf(0.5f * root, off, root) : root;
    n.mean = all.x + all.y;
    n.shift = ((n.mean - all.x) - all.y) * n.inv_std;
    return n;
}

// By all warps, each for itself.
template <class T, int C, int KIND>
__device__ __forceinline__ numbers bulk_hear(const norm_rows_args &a, bulk_sums &of, uint32_t turn)
{
    const uint32_t lane = threadIdx.x % WARP, copy = turn % BULK_COPIES;
    float4 all = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (a.cluster == 1) {
        const uint32_t i = lane % BULK_WARPS;
        wd_counter_wait(&of.arrived[copy], turn / BULK_COPIES & 1);
        if (i < a.lanes / WARP) all = of.of_block[copy][i];
        return bulk_numbers(a, bulk_join<KIND, BULK_WARPS>(all, bulk_warps<T, C>(a, i)));
    }
    const uint32_t i = lane % NORM_ROWS_BULK_CLUSTER;
    const float columns = i < a.cluster ? (float)(a.share * EACH<T>) : 0.0f; // of a block
    wd_counter_wait(&of.here[copy], turn / BULK_COPIES & 1);
    if (i < a.cluster) all = of.of_cluster[copy][i];
    return bulk_numbers(a, bulk_join<KIND, NORM_ROWS_BULK_CLUSTER>(all, {columns, a.inverse}));
}

template <class T, int C, int KIND, bool RAGGED>
__device__ __forceinline__ void bulk_put(const norm_rows_args &a, const uint4 *at, char *to,
                                         int units, const numbers &n, const float *scale,
                                         const float *bias)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
#pragma unroll
    for (int v = 0; v < U; ++v) {
        if (RAGGED && v >= units) break;
        float y[E];
        const unit<T> x = strip_take<T>(at + v * WARP);
#pragma unroll
        for (int i = 0; i < E; ++i) {
            const float xhat = KIND == RAW ? wide_of<T>(x, i) * n.inv_std
                                           : fmaf(wide_of<T>(x, i) - n.mean, n.inv_std, n.shift);
            y[i] = fmaf(scale[v * E + i], xhat, bias[v * E + i]);
        }
        put<T>(a, reinterpret_cast<T *>(to + v * WARP * NORM_ROWS_UNIT), y);
    }
}

// By one lane: the warp's strip of a row into a place of the ring.
__device__ __forceinline__ void bulk_ask(uint4 *to, const char *from, uint32_t units,
                                         uint64_t *landed)
{
    wd_counter_expect(landed, units * NORM_ROWS_UNIT);
    wd_bulk_copy(to, from, units * NORM_ROWS_UNIT, landed);
}

// The thread's parameters; of units that it does not have, those of the block's first.
template <class T, int C>
__device__ __forceinline__ void bulk_params(const seat &s, int units, const norm_rows_param &p,
                                            float *to)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
#pragma unroll
    for (int v = 0; v < U; ++v) {
        seat one = s;
        one.first = v < units ? s.first + v * s.stride : s.before;
        read_param<T, E, false>(one, p, to + v * E);
    }
}

template <class T, int C, int KIND>
__device__ __forceinline__ void bulk_walk(const norm_rows_args &a, bulk_sums &of, uint4 *places)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
    constexpr uint32_t STRIP = U * WARP; // units
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t rank = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    const uint32_t rows = (uint32_t)a.rows, step = (uint32_t)a.step; // less than 2^31 and 2^20
    const uint32_t stride = U * blockDim.x;
    const uint32_t warps = a.lanes / WARP, left = a.share - (warps - 1) * STRIP;
    const bool less = warp == warps - 1; // which may have fewer units: it alone asks for each
    const uint32_t strip = less ? left : STRIP;
    const int units = less ? (lane < left ? (int)((left - lane - 1) / WARP + 1) : 0) : U;
    seat s = seat_of<T, C, false>(a);
    s.stride = WARP * E;
    s.first = s.before + warp * (WARP * C) + lane * E;
    uint4 *strips = places + warp * STRIP;
    uint64_t *landed = &of.landed[0][warp];
    float scale[C], bias[C];
    bulk_begin(a, of);
    wd_wait_for_previous();
    uint32_t row = blockIdx.x / a.cluster;
    const int64_t far = (int64_t)step * a.length * (int64_t)sizeof(T);
    const int64_t begin = (int64_t)row * a.length + (s.first - lane * E);
    const char *from = static_cast<const char *>(a.x) + begin * (int64_t)sizeof(T);
    char *to = static_cast<char *>(a.y) + (begin + lane * E) * (int64_t)sizeof(T) - a.lag * far;
    uint32_t asked = row, last = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < a.ahead; ++r, asked += step, from += far) {
        if (lane == 0 && asked < rows)
            bulk_ask(strips + last * stride, from, strip, landed + last * BULK_WARPS);
        if (++last == a.ring) last = 0;
    }
    uint32_t next = 0, present = 0, phase = 0, says = 0;
    float2 given1 = make_float2(0.0f, 0.0f), given2 = given1;
    bulk_params<T, C>(s, units, a.scale, scale);
    bulk_params<T, C>(s, units, a.bias, bias);
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn, row += step, to += far) {
        const bool looks = row < rows, puts = turn >= a.lag;
        if (puts && row - a.lag * step >= rows) break;
        float2 known = make_float2(0.0f, 0.0f);
        if (looks && turn > 0) {
            if (lane == 0 && asked < rows)
                bulk_ask(strips + last * stride, from, strip, landed + last * BULK_WARPS);
            asked += step, from += far;
            if (++last == a.ring) last = 0;
        }
        if (looks) {
            if (KIND == KNOWN)
                known = make_float2(given(a.given_mean, a, row), given(a.given_inv_std, a, row));
            wd_counter_wait(landed + next * BULK_WARPS, phase);
            if (KIND != KNOWN) {
                const uint4 *at = strips + next * stride + lane;
                const float4 mine = less ? bulk_look<T, C, KIND, true>(at, units)
                                         : bulk_look<T, C, KIND, false>(at, U);
                const float4 all = bulk_join<KIND>(
                    mine, {less ? (float)(units * E) : C, less ? a.by_left : 1.0f / (WARP * C)});
                if (lane == 0) {
                    if (a.cluster > 1) wait_for_readers<BULK_COPIES>(of.read, turn);
                    of.of_block[turn % BULK_COPIES][warp] = all;
                    wd_arrive(&of.arrived[turn % BULK_COPIES], a.lanes / WARP);
                }
            }
            if (++next == a.ring) next = 0, phase ^= 1;
        }
        if (puts) {
            const float2 its = a.lag == 1 ? given1 : given2;
            numbers n = {its.x, its.y, 0.0f};
            if (KIND != KNOWN) n = bulk_hear<T, C, KIND>(a, of, turn - a.lag);
            if (threadIdx.x == 0 && rank == 0) {
                if (a.mean) a.mean[row - a.lag * step] = n.mean;
                if (a.inv_std) a.inv_std[row - a.lag * step] = n.inv_std;
            }
            const uint4 *at = strips + present * stride + lane;
            if (less) bulk_put<T, C, KIND, true>(a, at, to, units, n, scale, bias);
            else bulk_put<T, C, KIND, false>(a, at, to, U, n, scale, bias);
            if (++present == a.ring) present = 0;
            __syncwarp(); // its place is asked for next
        }
        // in turn, so that none is later than the others, and when these have had time to look too
        if (KIND != KNOWN && a.cluster > 1 && looks) {
            if (warp == says) bulk_say<T, C, KIND>(a, rank, of, turn);
            if (++says == a.lanes / WARP) says = 0;
        }
        given2 = given1;
        given1 = known;
    }
}

template <class T, int C> __device__ __forceinline__ void rows_bulk(const norm_rows_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    __shared__ bulk_sums of;
    WD_DYNAMIC_SHARED(uint4, places);
    bulk_sums &here = *wd_opaque_shared(&of);
    uint4 *ring = wd_opaque_shared(places);
    // a kind of its own: asked in the walk, clusters of four that compute theirs take 6% more
    if (a.given_inv_std) bulk_walk<T, C, KNOWN>(a, here, ring);
    else if (a.centered) bulk_walk<T, C, CENTRED>(a, here, ring);
    else bulk_walk<T, C, RAW>(a, here, ring);
#endif
}

} // namespace

#endif
