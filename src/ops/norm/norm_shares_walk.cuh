// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm, channels first, of shares that several processors hold together: rows of layer norm whose
// parameters are a channel's (norm_rows_bulk.cuh, whose looking and joining it is). Blocks of a share are all there at
// once, on any processors, walk from share to share, and leave one another what they found in memory, by posts: as a warp
// of each hears of a share while all look at the next one, nobody waits for their way.
#ifndef WD_OPS_NORM_SHARES_WALK_CUH
#define WD_OPS_NORM_SHARES_WALK_CUH

#include "gpu/device/shared.cuh"
#include "ops/norm/norm_rows_bulk.cuh"
#include "ops/norm/norm_shares_args.h"

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

constexpr int WALK_UNITS = NORM_SHARES_WALK_UNITS;
constexpr uint32_t WALK_STRIP = WALK_UNITS * WARP; // units of a warp
constexpr uint32_t WALK_COPIES = NORM_SHARES_WALK_COPIES;
constexpr int WALK_EACH = NORM_SHARES_WALK_BLOCKS / (int)WARP; // posts of a lane
constexpr uint32_t WALK_WARPS = NORM_SHARES_WALK_WARPS;

struct walk_sums {
    float4 of_block[WALK_COPIES][WALK_WARPS];
    float4 of_share[WALK_COPIES];  // its numbers
    uint64_t arrived[WALK_COPIES]; // the warps, with what they found
    uint64_t heard[WALK_COPIES];   // the numbers are there, and what they are of has been read
    uint64_t landed[NORM_ROWS_AHEAD_MAX + 1][WALK_WARPS];
};
static_assert(sizeof(walk_sums) % 128 == 0, "the ring behind it begins at a line");

// Columns of the block, in units; of a warp, and of a lane.
struct walk_seat {
    uint32_t begin; // of the warp's strip in the share
    uint32_t block;
    uint32_t strip;
    int units;
};

__device__ __forceinline__ walk_seat walk_seat_of(const norm_rows_args &a, uint32_t all,
                                                  uint32_t rank)
{
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t first = min(rank * a.share, all);
    walk_seat s;
    s.block = min(a.share, all - first);
    s.begin = first + warp * WALK_STRIP;
    s.strip = warp * WALK_STRIP < s.block ? min(WALK_STRIP, s.block - warp * WALK_STRIP) : 0;
    s.units = lane < s.strip ? (int)((s.strip - lane - 1) / WARP + 1) : 0;
    return s;
}

__device__ __forceinline__ uint64_t *walk_post(const norm_rows_args &a, uint32_t turn,
                                               uint32_t rank)
{
    const uint32_t block = blockIdx.x / a.cluster * a.cluster + rank;
    return a.posts + (block * WALK_COPIES + turn % WALK_COPIES) * NORM_ROWS_POST;
}

// Of the lane that leaves a share's numbers, and of those that have read what the block's warps found of it, which may
// then be overwritten.
__device__ __forceinline__ uint32_t walk_arrivals()
{
    return 1 + blockDim.x / WARP;
}

__device__ __forceinline__ void walk_begin(const norm_rows_args &a, walk_sums &of, uint32_t rank)
{
    if (threadIdx.x % WARP == 0) {
        for (uint32_t i = 0; i < a.ring; ++i) wd_counter_begin(&of.landed[i][threadIdx.x / WARP]);
    }
    if (threadIdx.x < WALK_COPIES) {
        wd_arrivals_begin(&of.arrived[threadIdx.x], blockDim.x / WARP);
        wd_arrivals_begin(&of.heard[threadIdx.x], walk_arrivals());
    }
    __syncthreads();
    wd_wait_for_previous();
    // what an earlier kernel left there must not be taken for a post of this one
    if (threadIdx.x < WALK_COPIES * NORM_ROWS_POST) walk_post(a, 0, rank)[threadIdx.x] = 0;
}

// By one warp: what the block's warps found of the share of a turn, to all blocks.
template <class T>
__device__ __forceinline__ void walk_say(const norm_rows_args &a, const walk_seat &s, walk_sums &of,
                                         uint32_t turn, uint32_t rank)
{
    constexpr uint32_t E = EACH<T>;
    const uint32_t lane = threadIdx.x % WARP, copy = turn % WALK_COPIES;
    const uint32_t before = lane * WALK_STRIP;
    const uint32_t units = before < s.block ? min(WALK_STRIP, s.block - before) : 0;
    float4 mine = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    wd_counter_wait(&of.arrived[copy], turn / WALK_COPIES & 1);
    if (units > 0) mine = of.of_block[copy][lane];
    if (lane < blockDim.x / WARP) wd_arrive(&of.heard[copy], walk_arrivals());
    const float4 all = bulk_join<CENTRED>(mine, {(float)(units * E), 1.0f / (float)(s.block * E)});
    const float number = lane == 0 ? all.x : lane == 1 ? all.y : all.z;
    if (lane < 3) wd_post(walk_post(a, turn, rank) + lane, number, turn + 1);
}

// What all blocks posted of a turn, N words each; a lane has those of several, which it asks for at once.
template <int N>
__device__ __forceinline__ void walk_gather(const norm_rows_args &a, const uint32_t all,
                                            uint32_t turn, float (&to)[WALK_EACH][N])
{
    const uint32_t lane = threadIdx.x % WARP;
    uint64_t asked[WALK_EACH][N];
#pragma unroll
    for (int k = 0; k < WALK_EACH; ++k) {
        const uint32_t rank = k * WARP + lane;
        if (rank < a.cluster) wd_posts_ask(walk_post(a, turn, rank), asked[k]);
    }
#pragma unroll
    for (int k = 0; k < WALK_EACH; ++k) {
        const uint32_t rank = k * WARP + lane;
#pragma unroll
        for (int i = 0; i < N; ++i) to[k][i] = 0.0f;
        if (rank < a.cluster && rank * a.share < all)
            wd_posts_take(walk_post(a, turn, rank), turn + 1, asked[k], to[k]);
    }
    __syncwarp();
}

// By the warp that has said it, a turn later: the numbers of a share, of what all blocks found, as bulk_join does.
template <class T>
__device__ __forceinline__ void walk_hear(const norm_rows_args &a, uint32_t all, walk_sums &of,
                                          uint32_t turn, uint32_t row)
{
    constexpr uint32_t E = EACH<T>;
    const uint32_t lane = threadIdx.x % WARP, copy = turn % WALK_COPIES;
    float word[WALK_EACH][3];
    float sum = 0.0f, squares = 0.0f;
    walk_gather<3>(a, all, turn, word);
    const float pivot = __shfl_sync(WHOLE_WARP, word[0][0], 0);
    float around = __shfl_sync(WHOLE_WARP, word[0][1], 0);
    if (!(fabsf(around) <= 3.0e38f)) around = 0.0f;
#pragma unroll
    for (int k = 0; k < WALK_EACH; ++k) {
        const uint32_t before = (k * WARP + lane) * a.share;
        if (k * WARP + lane >= a.cluster || before >= all) continue;
        const float d = (word[k][0] - pivot) + (word[k][1] - around);
        const float counted = (float)(min(a.share, all - before) * E) * d;
        sum += counted;
        squares += fmaf(counted, d, word[k][2]);
    }
    sum = sum_of_warp(sum);
    squares = fmaf(-sum, sum * a.inverse, sum_of_warp(squares));
    // a NaN stays one
    const numbers n =
        numbers_of(a, {pivot, fmaf(sum, a.inverse, around), squares < 0.0f ? 0.0f : squares, 0.0f});
    if (lane != 0) return;
    of.of_share[copy] = make_float4(n.mean, n.inv_std, n.shift, 0.0f);
    wd_arrive(&of.heard[copy], walk_arrivals());
    if (blockIdx.x % a.cluster == 0) put_statistics(a, row, n);
}

// What was heard of a share: read by the lane alone that lets it be overwritten, by arriving with the warp's next find.
__device__ __forceinline__ float4 walk_heard(walk_sums &of, uint32_t copy, uint32_t phase)
{
    float4 its = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    wd_counter_wait(&of.heard[copy], phase);
    if (threadIdx.x % WARP == 0) its = of.of_share[copy];
    return make_float4(__shfl_sync(WHOLE_WARP, its.x, 0), __shfl_sync(WHOLE_WARP, its.y, 0),
                       __shfl_sync(WHOLE_WARP, its.z, 0), 0.0f);
}

template <class T, bool RAGGED>
__device__ __forceinline__ void walk_put(const norm_rows_args &a, const uint4 *at, char *to,
                                         int units, const numbers &n, const float *scale,
                                         const float *bias)
{
    constexpr int E = EACH<T>;
#pragma unroll
    for (int v = 0; v < WALK_UNITS; ++v) {
        if (RAGGED && v >= units) break;
        const line its = line_of(n, scale[v], bias[v]);
        const unit<T> x = strip_take<T>(at + v * WARP);
        float y[E];
#pragma unroll
        for (int i = 0; i < E; ++i) y[i] = fmaf(wide_of<T>(x, i) - n.mean, its.slope, its.base);
        put<T>(a, reinterpret_cast<T *>(to + v * WARP * NORM_ROWS_UNIT), y);
    }
}

template <class T> __device__ __forceinline__ void walk(const norm_shares_args &w)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    constexpr uint32_t E = EACH<T>;
    constexpr int C = WALK_UNITS * (int)E;
    __shared__ walk_sums of;
    WD_DYNAMIC_SHARED(uint4, places);
    const norm_rows_args &a = w.of;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t warps = blockDim.x / WARP;
    const uint32_t rank = blockIdx.x % a.cluster, all = a.length / E;
    const uint32_t rows = (uint32_t)a.rows, step = (uint32_t)a.step; // less than 2^31 and 2^8
    const uint32_t stride = warps * WALK_STRIP;
    const walk_seat s = walk_seat_of(a, all, rank);
    const bool whole = s.strip == WALK_STRIP;
    const float inverse = s.strip > 0 ? 1.0f / (float)(s.strip * E) : 0.0f;
    uint4 *strips = places + warp * WALK_STRIP;
    uint64_t *landed = &of.landed[0][warp];
    uint32_t within[WALK_UNITS];
#pragma unroll
    for (int v = 0; v < WALK_UNITS; ++v) {
        const uint32_t unit = min(s.begin + v * WARP + lane, all - 1);
        within[v] = wd_fastdiv_quotient(unit * E, w.by_plane);
    }
    walk_begin(a, of, rank);
    uint32_t row = blockIdx.x / a.cluster;
    const int64_t far = (int64_t)step * a.length * (int64_t)sizeof(T);
    const int64_t begin = ((int64_t)row * a.length + s.begin * E) * (int64_t)sizeof(T);
    const char *from = static_cast<const char *>(a.x) + begin;
    char *to = static_cast<char *>(a.y) + begin + lane * NORM_ROWS_UNIT - a.lag * far;
    uint32_t asked = row, last = 0, next = 0, present = 0, phase = 0, says = 0;
    for (uint32_t r = 0; r < a.ahead; ++r, asked += step, from += far) {
        if (lane == 0 && asked < rows && s.strip > 0)
            bulk_ask(strips + last * stride, from, s.strip, landed + last * WALK_WARPS);
        if (++last == a.ring) last = 0;
    }
    wd_meet(a.counters + blockIdx.x / a.cluster * WD_COUNTER_WORDS, a.cluster, rank == 0);
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn, row += step, to += far) {
        const bool looks = row < rows, puts = turn >= a.lag;
        const uint32_t of_put = row - a.lag * step;
        if (puts && of_put >= rows) break;
        if (looks && turn > 0) {
            if (lane == 0 && asked < rows && s.strip > 0)
                bulk_ask(strips + last * stride, from, s.strip, landed + last * WALK_WARPS);
            asked += step, from += far;
            if (++last == a.ring) last = 0;
        }
        float scale[WALK_UNITS], bias[WALK_UNITS];
        if (puts) {
            const uint32_t group =
                of_put - wd_fastdiv_quotient(of_put, w.by_groups) * w.by_groups.divisor;
#pragma unroll
            for (int v = 0; v < WALK_UNITS; ++v) {
                scale[v] = static_cast<const float *>(a.scale.data)[group * w.each + within[v]];
                bias[v] = static_cast<const float *>(a.bias.data)[group * w.each + within[v]];
            }
        }
        if (looks) {
            const uint4 *at = strips + next * stride + lane;
            if (s.strip > 0) {
                wd_counter_wait(landed + next * WALK_WARPS, phase);
                const float4 mine = whole ? bulk_look<T, C, CENTRED, false>(at, WALK_UNITS)
                                          : bulk_look<T, C, CENTRED, true>(at, s.units);
                const float4 found = bulk_join<CENTRED>(mine, {(float)(s.units * (int)E), inverse});
                if (lane == 0) of.of_block[turn % WALK_COPIES][warp] = found;
            }
            if (lane == 0) wd_arrive(&of.arrived[turn % WALK_COPIES], warps);
            if (++next == a.ring) next = 0, phase ^= 1;
        }
        // in turn, so that none is later than the others
        if (turn > 0 && row - step < rows && warp == (says == 0 ? warps : says) - 1)
            walk_hear<T>(a, all, of, turn - 1, row - step);
        if (looks && warp == says) walk_say<T>(a, s, of, turn, rank);
        if (++says == warps) says = 0;
        if (puts) {
            const uint32_t copy = (turn - a.lag) % WALK_COPIES;
            const float4 its = walk_heard(of, copy, (turn - a.lag) / WALK_COPIES & 1);
            const numbers n = {its.x, its.y, its.z};
            const uint4 *at = strips + present * stride + lane;
            if (whole) walk_put<T, false>(a, at, to, WALK_UNITS, n, scale, bias);
            else walk_put<T, true>(a, at, to, s.units, n, scale, bias);
            if (++present == a.ring) present = 0;
            __syncwarp(); // its place is asked for next
        }
    }
#endif
}

} // namespace

#endif
