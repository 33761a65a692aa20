// SPDX-License-Identifier: Apache-2.0
//
// Gradients of group and instance norm, channels first, of shares that several processors hold together: rows of layer norm whose
// parameters are a channel's. Blocks of a share are all there at once, on any processors, walk from share to share, and leave
// one another what they found in memory, by posts: as a warp of each hears of a share while all look at the next one, nobody waits for
// their way. A warp's strip of a share is of one channel: what it finds is that channel's, of which the share's sums are made, and
// later dscale and dbias.
#ifndef WD_OPS_NORM_SHARES_WALK_CUH
#define WD_OPS_NORM_SHARES_WALK_CUH

#include "gpu/device/shared.cuh"
#include "ops/norm/norm_rows_bulk.cuh"
#include "ops/norm/norm_shares_args.h"

namespace {

constexpr int WALK_UNITS = NORM_SHARES_WALK_UNITS;
constexpr uint32_t WALK_STRIP = WALK_UNITS * WARP; // units of a warp
constexpr uint32_t WALK_COPIES = NORM_SHARES_WALK_COPIES;
constexpr int WALK_EACH = NORM_SHARES_WALK_BLOCKS / (int)WARP; // posts of a lane
constexpr uint32_t WALK_WARPS = NORM_SHARES_WALK_WARPS;

struct __align__(128) walk_sums
{
    float2 of_block[WALK_COPIES][WALK_WARPS];
    float2 of_share[WALK_COPIES];  // its numbers
    uint64_t arrived[WALK_COPIES]; // the warps, with what they found
    uint64_t heard[WALK_COPIES];   // the numbers are there, and what they are of has been read
    uint64_t landed[NORM_ROWS_AHEAD_MAX + 1][WALK_WARPS];
};
static_assert(sizeof(walk_sums) % 128 == 0, "the ring behind it begins at a line");

// Columns of the block, in units, and of a warp.
struct walk_seat {
    uint32_t begin; // of the warp's strip in the share
    uint32_t block;
    uint32_t strip;
};

__device__ __forceinline__ walk_seat walk_seat_of(const norm_rows_args &a, uint32_t all,
                                                  uint32_t rank)
{
    const uint32_t warp = threadIdx.x / WARP;
    const uint32_t first = min(rank * a.share, all);
    walk_seat s;
    s.block = min(a.share, all - first);
    s.begin = first + warp * WALK_STRIP;
    s.strip = warp * WALK_STRIP < s.block ? min(WALK_STRIP, s.block - warp * WALK_STRIP) : 0;
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

// What was heard of a share: read by the lane alone that lets it be overwritten, by arriving with the warp's next find.
__device__ __forceinline__ float2 walk_heard(walk_sums &of, uint32_t copy, uint32_t phase)
{
    float2 its = make_float2(0.0f, 0.0f);
    wd_counter_wait(&of.heard[copy], phase);
    if (threadIdx.x % WARP == 0) its = of.of_share[copy];
    return make_float2(__shfl_sync(WHOLE_WARP, its.x, 0), __shfl_sync(WHOLE_WARP, its.y, 0));
}

// What is given of a share and the strip's channel.
struct walk_given {
    float mean;
    float inv_std;
    float scale;
};

__device__ __forceinline__ walk_given walk_given_of(const norm_shares_args &w, uint32_t row,
                                                    uint32_t within)
{
    const norm_rows_args &a = w.of;
    walk_given g = {0.0f, 0.0f, 0.0f};
    if (row >= (uint32_t)a.rows) return g;
    const uint32_t group = row - wd_fastdiv_quotient(row, w.by_groups) * w.by_groups.divisor;
    g.mean = a.given_mean ? a.given_mean[row] : 0.0f;
    g.inv_std = a.given_inv_std[row];
    g.scale = static_cast<const float *>(a.scale.data)[group * w.each + within];
    return g;
}

// By one lane: the warp's strips of x and of dy, `at` bytes behind the tensors' beginnings.
__device__ __forceinline__ void walk_ask_both(const norm_rows_args &a, uint4 *to, int64_t at,
                                              uint64_t *landed)
{
    wd_counter_expect(landed, 2 * WALK_STRIP * NORM_ROWS_UNIT);
    wd_bulk_copy(to, static_cast<const char *>(a.x) + at, WALK_STRIP * NORM_ROWS_UNIT, landed);
    wd_bulk_copy(to + WALK_STRIP, static_cast<const char *>(a.dy) + at, WALK_STRIP * NORM_ROWS_UNIT,
                 landed);
}

// Sums of dy and of dy (x - mean).
template <class T> __device__ __forceinline__ float2 walk_look_back(const uint4 *at, float mean)
{
    float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int v = 0; v < WALK_UNITS; ++v) {
        const unit<T> x = strip_take<T>(at + v * WARP);
        const unit<T> dy = strip_take<T>(at + WALK_STRIP + v * WARP);
#pragma unroll
        for (int i = 0; i < EACH<T>; ++i) {
            const float d = wide_of<T>(dy, i);
            sums.x += d;
            sums.y = fmaf(d, wide_of<T>(x, i) - mean, sums.y);
        }
    }
    return make_float2(sum_of_warp(sums.x), sum_of_warp(sums.y));
}

// The sums of the strip for dscale and dbias: [samples][strips of a channel][channels].
__device__ __forceinline__ void walk_leave(const norm_shares_args &w, uint32_t row, uint32_t within,
                                           uint32_t slice, float2 sums)
{
    const uint32_t sample = wd_fastdiv_quotient(row, w.by_groups);
    const uint32_t group = row - sample * w.by_groups.divisor;
    const uint32_t channels = w.by_groups.divisor * w.each;
    w.found[(sample * w.slices + slice) * (int64_t)channels + group * w.each + within] = {sums.x,
                                                                                          sums.y};
}

// By one warp: what the block's warps found of a share, to all blocks.
__device__ __forceinline__ void walk_say_back(const norm_rows_args &a, const walk_seat &s,
                                              walk_sums &of, uint32_t turn, uint32_t rank)
{
    const uint32_t lane = threadIdx.x % WARP, copy = turn % WALK_COPIES;
    float2 mine = make_float2(0.0f, 0.0f);
    wd_counter_wait(&of.arrived[copy], turn / WALK_COPIES & 1);
    if (lane * WALK_STRIP < s.block) mine = of.of_block[copy][lane];
    if (lane < blockDim.x / WARP) wd_arrive(&of.heard[copy], walk_arrivals());
    mine.x = sum_of_warp(mine.x);
    mine.y = sum_of_warp(mine.y);
    if (lane < 2) wd_post(walk_post(a, turn, rank) + lane, lane == 0 ? mine.x : mine.y, turn + 1);
}

// By the same warp a turn later: the share's.
__device__ __forceinline__ void walk_hear_back(const norm_rows_args &a, uint32_t all, walk_sums &of,
                                               uint32_t turn)
{
    const uint32_t copy = turn % WALK_COPIES;
    float word[WALK_EACH][2];
    float2 sums = make_float2(0.0f, 0.0f);
    walk_gather<2>(a, all, turn, word);
#pragma unroll
    for (int k = 0; k < WALK_EACH; ++k) sums.x += word[k][0], sums.y += word[k][1];
    sums.x = sum_of_warp(sums.x);
    sums.y = sum_of_warp(sums.y);
    if (threadIdx.x % WARP != 0) return;
    of.of_share[copy] = make_float2(sums.x * a.inverse, sums.y * a.inverse);
    wd_arrive(&of.heard[copy], walk_arrivals());
}

// dx = inv_std (scale dy - (sum of scale dy + xhat sum of scale dy xhat) / length)
template <class T>
__device__ __forceinline__ void walk_put_back(const norm_rows_args &a, const uint4 *at, char *to,
                                              const walk_given &g, float2 sums)
{
    constexpr int E = EACH<T>;
    const float factor = g.inv_std * g.scale, level = g.inv_std * sums.x;
    const float slope = g.inv_std * (sums.y * (g.inv_std * g.inv_std));
#pragma unroll
    for (int v = 0; v < WALK_UNITS; ++v) {
        const unit<T> x = strip_take<T>(at + v * WARP);
        const unit<T> dy = strip_take<T>(at + WALK_STRIP + v * WARP);
        float dx[E];
#pragma unroll
        for (int i = 0; i < E; ++i)
            dx[i] =
                fmaf(-slope, wide_of<T>(x, i) - g.mean, fmaf(wide_of<T>(dy, i), factor, -level));
        put<T>(a, reinterpret_cast<T *>(to + v * WARP * NORM_ROWS_UNIT), dx);
    }
}

template <class T> __device__ __forceinline__ void walk_back(const norm_shares_args &w)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    constexpr uint32_t E = EACH<T>;
    __shared__ walk_sums of;
    WD_DYNAMIC_SHARED(uint4, places);
    const norm_rows_args &a = w.of;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t warps = blockDim.x / WARP;
    const uint32_t rank = blockIdx.x % a.cluster, all = a.length / E;
    const uint32_t rows = (uint32_t)a.rows, step = (uint32_t)a.step; // less than 2^31 and 2^8
    const uint32_t stride = warps * 2 * WALK_STRIP;
    const walk_seat s = walk_seat_of(a, all, rank);
    const bool there = s.strip > 0; // then whole
    uint4 *strips = places + warp * 2 * WALK_STRIP;
    uint64_t *landed = &of.landed[0][warp];
    const uint32_t first = min(s.begin, all - 1) * E;
    const uint32_t within = wd_fastdiv_quotient(first, w.by_plane);
    const uint32_t slice = (first - within * w.by_plane.divisor) / (WALK_STRIP * E);
    walk_begin(a, of, rank);
    uint32_t row = blockIdx.x / a.cluster;
    const int64_t far = (int64_t)step * a.length * (int64_t)sizeof(T);
    int64_t from = ((int64_t)row * a.length + s.begin * E) * (int64_t)sizeof(T);
    char *to = static_cast<char *>(a.y) + from + lane * NORM_ROWS_UNIT - a.lag * far;
    uint32_t asked = row, last = 0, next = 0, present = 0, phase = 0, says = 0;
    for (uint32_t r = 0; r < a.ahead; ++r, asked += step, from += far) {
        if (lane == 0 && asked < rows && there)
            walk_ask_both(a, strips + last * stride, from, landed + last * WALK_WARPS);
        if (++last == a.ring) last = 0;
    }
    walk_given known = walk_given_of(w, row, within), known1 = known, known2 = known;
    wd_meet(a.counters + blockIdx.x / a.cluster * WD_COUNTER_WORDS, a.cluster, rank == 0);
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn, row += step, to += far) {
        const bool looks = row < rows, puts = turn >= a.lag;
        if (puts && row - a.lag * step >= rows) break;
        const walk_given later = walk_given_of(w, row + step, within);
        if (looks && turn > 0) {
            if (lane == 0 && asked < rows && there)
                walk_ask_both(a, strips + last * stride, from, landed + last * WALK_WARPS);
            asked += step, from += far;
            if (++last == a.ring) last = 0;
        }
        if (looks) {
            if (there) {
                wd_counter_wait(landed + next * WALK_WARPS, phase);
                const float2 sums = walk_look_back<T>(strips + next * stride + lane, known.mean);
                if (lane == 0) {
                    of.of_block[turn % WALK_COPIES][warp] =
                        make_float2(known.scale * sums.x, known.scale * sums.y);
                    if (w.found)
                        walk_leave(w, row, within, slice,
                                   make_float2(sums.x, sums.y * known.inv_std));
                }
            }
            if (lane == 0) wd_arrive(&of.arrived[turn % WALK_COPIES], warps);
            if (++next == a.ring) next = 0, phase ^= 1;
        }
        // in turn, so that none is later than the others
        if (turn > 0 && row - step < rows && warp == (says == 0 ? warps : says) - 1)
            walk_hear_back(a, all, of, turn - 1);
        if (looks && warp == says) walk_say_back(a, s, of, turn, rank);
        if (++says == warps) says = 0;
        if (puts) {
            const uint32_t copy = (turn - a.lag) % WALK_COPIES;
            const float2 sums = walk_heard(of, copy, (turn - a.lag) / WALK_COPIES & 1);
            const walk_given its = {a.lag == 1 ? known1.mean : known2.mean,
                                    a.lag == 1 ? known1.inv_std : known2.inv_std,
                                    a.lag == 1 ? known1.scale : known2.scale};
            if (there) walk_put_back<T>(a, strips + present * stride + lane, to, its, sums);
            if (++present == a.ring) present = 0;
            __syncwarp(); // its place is asked for next
        }
        known2 = known1;
        known1 = known;
        known = later;
    }
#endif
}

} // namespace

#endif
