// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm over rows of whole units that several blocks share which are no cluster, but all there at
// once. A block stays and walks down the rows with the parameters of its columns in registers
// and the next rows on their way to shared memory. Sums are of differences from one number of the row that
// all know, of three elements the middle one, so that they need only be added; a block's go to the others
// by one warp, and a row is put `lag` turns after it was looked at, so that nobody waits for their way.
#ifndef WD_OPS_NORM_ROWS_PARTED_CUH
#define WD_OPS_NORM_ROWS_PARTED_CUH

#include "ops/norm/norm_middle.cuh"
#include "ops/norm/norm_rows_walk.cuh"

namespace {

struct parted_sums {
    float2 of_block[COPIES][WARPS];
    float2 of_row[COPIES];
};

// What of a row is known before it is looked at: its statistics, or three of its elements, the middle one of
// which is the number that sums are around. A load in each turn would be waited for there, so the first warp copies
// them with the row before, and all find them behind a barrier.
struct parted_hints {
    uint4 of[NORM_ROWS_AHEAD_MAX + 1]
            [WARPS]; // the first of each: side by side 162 us for 158 (512 x 262144, H200)
};
template <class T>
__device__ __forceinline__ void parted_ask(const norm_rows_args &a, parted_hints &hints,
                                           uint32_t place, int64_t row)
{
    if (threadIdx.x >= WARP) return;
    row += a.step;
    if (row >= a.rows) return;
    const uint32_t lane = threadIdx.x;
    uint32_t *to = reinterpret_cast<uint32_t *>(&hints.of[place][0]) + lane;
    if (a.given_inv_std) {
        const float *from = lane == 0 ? a.given_mean : a.given_inv_std;
        if (lane < 2 && from) wd_copy_async<4, true>(to, from + row);
    } else if (a.centered && lane < 3) {
        // the words of the first, of one half way and of the last
        const uint32_t bytes = a.length * (uint32_t)sizeof(T);
        const uint32_t at = lane == 0 ? 0 : lane == 1 ? bytes / 2 : bytes - 4;
        wd_copy_async<4, true>(to, static_cast<const char *>(a.x) + (row * bytes + at));
    }
}
template <class T>
__device__ __forceinline__ float2 parted_known(const norm_rows_args &a, const uint4 &words)
{
    wd_run<T, 4 / sizeof(T)> first, middle, last;
    if (a.given_inv_std) return make_float2(__uint_as_float(words.x), __uint_as_float(words.y));
    first.word[0] = words.x, middle.word[0] = words.y, last.word[0] = words.z;
    const float around = wd_middle_of(wd_widen(first.get(0)), wd_widen(middle.get(0)),
                                      wd_widen(last.get(4 / sizeof(T) - 1)));
    // of a NaN or an infinity nothing could be taken
    return make_float2(fabsf(around) <= 3.0e38f ? around : 0.0f, 0.0f);
}

// Of the block's first row, by loads.
template <class T>
__device__ __forceinline__ float2 parted_first(const norm_rows_args &a, int64_t row)
{
    uint4 words = make_uint4(0, 0, 0, 0);
    if (row >= a.rows) return make_float2(0.0f, 0.0f);
    if (a.given_inv_std) {
        words.x = __float_as_uint(given(a.given_mean, a, row));
        words.y = __float_as_uint(given(a.given_inv_std, a, row));
    } else if (a.centered) {
        const uint32_t of_row = a.length * (uint32_t)sizeof(T) / 4;
        const uint32_t *from = static_cast<const uint32_t *>(a.x) + row * of_row;
        words = make_uint4(from[0], from[of_row / 2], from[of_row - 1], 0);
    }
    return parted_known<T>(a, words);
}

// By the first warp: what the block's warps found of the row of a turn, to all blocks of the row.
__device__ __forceinline__ void parted_say(const norm_rows_args &a, const seat &s, parted_sums &of,
                                           uint32_t turn)
{
    const uint32_t lane = threadIdx.x;
    float2 sums = make_float2(0.0f, 0.0f);
    if (lane < a.lanes / WARP) sums = of.of_block[turn % COPIES][lane];
    sums.x = sum_of_warp(sums.x);
    sums.y = sum_of_warp(sums.y);
    if (lane < 2) wd_post(post_of(a, turn, s.rank) + lane, lane == 0 ? sums.x : sums.y, turn + 1);
}

// By the first warp: what all blocks left of the row of a turn; a lane's first was asked for before.
__device__ __forceinline__ void parted_gather(const norm_rows_args &a, parted_sums &of,
                                              uint32_t turn, uint64_t (&asked)[2])
{
    float2 sums = make_float2(0.0f, 0.0f);
    for (uint32_t rank = threadIdx.x; rank < a.cluster; rank += WARP) {
        float word[2];
        if (rank < WARP) wd_posts_take(post_of(a, turn, rank), turn + 1, asked, word);
        else wd_posts_await(post_of(a, turn, rank), turn + 1, word);
        sums.x += word[0], sums.y += word[1];
    }
    __syncwarp();
    sums.x = sum_of_warp(sums.x);
    sums.y = sum_of_warp(sums.y);
    if (threadIdx.x == 0) of.of_row[turn % COPIES] = sums;
}

__device__ __forceinline__ numbers parted_numbers(const norm_rows_args &a, float2 sums,
                                                  float around)
{
    if (!a.centered) sums.x = 0.0f; // and no product of an infinite one
    part all = {around, sums.x * a.inverse, 0.0f, 0.0f};
    all.squares = fmaf(-sums.x, all.rest, sums.y);
    if (all.squares < 0.0f) all.squares = 0.0f; // a NaN stays one
    return numbers_of(a, all);
}

template <class T, int C> __device__ __forceinline__ void rows_parted(const norm_rows_args &a)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
    __shared__ parted_sums of;
    __shared__ parted_hints hints;
    WD_DYNAMIC_SHARED(uint4, places);
    seat s = seat_of<T, C, false>(a);
    s.stride = WARP * E;
    s.first = s.before + s.lane / WARP * (WARP * C) + s.lane % WARP * E;
    const bool computes = !a.given_inv_std;
    const bool first_warp = threadIdx.x < WARP;
    const uint32_t stride = U * blockDim.x;
    uint4 *ring = places + threadIdx.x / WARP * (U * WARP) + threadIdx.x % WARP;
    float scale[C], bias[C];
    wd_wait_for_previous();
    int64_t row = blockIdx.x / a.cluster;
    const int64_t far = a.step * a.length * (int64_t)sizeof(T);
    const char *from = static_cast<const char *>(a.x) + (row * a.length + s.first) * sizeof(T);
    char *to =
        static_cast<char *>(a.y) + (row * a.length + s.first) * (int64_t)sizeof(T) - a.lag * far;
    int64_t asked = row;
    uint32_t last = 0; // place of the row to be asked for; then of those looked at and put
    if (threadIdx.x <= NORM_ROWS_AHEAD_MAX) hints.of[threadIdx.x][0] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    for (uint32_t r = 0; r < a.ahead; ++r, asked += a.step, from += far) {
#pragma unroll
        for (int v = 0; v < U && asked < a.rows; ++v)
            wd_copy_async<16, false>(ring + last * stride + v * WARP,
                                     from + v * WARP * NORM_ROWS_UNIT);
        parted_ask<T>(a, hints, last, asked);
        wd_copies_end();
        if (++last == a.ring) last = 0;
    }
    uint32_t next = 0, present = 0;
    if (computes) begin_posts(a, s.rank);
    float2 known = parted_first<T>(a, row);
    float2 known1 = known, known2 = known;
    read_param<T, C, false>(s, a.scale, scale);
    read_param<T, C, false>(s, a.bias, bias);
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn, row += a.step, to += far) {
        const int64_t of_put = row - a.lag * a.step;
        const bool looks = row < a.rows, puts = turn >= a.lag;
        if (puts && of_put >= a.rows) break;
        const int64_t of_gather = of_put + a.step;
        const bool gathers = first_warp && computes && turn + 1 >= a.lag && of_gather < a.rows;
        uint64_t early[2] = {0, 0}; // what others have left by now: mostly all
        if (gathers && a.lag > 1 && threadIdx.x < a.cluster)
            wd_posts_ask(post_of(a, turn + 1 - a.lag, threadIdx.x), early);
        if (looks) {
            if (turn > 0) {
#pragma unroll
                for (int v = 0; v < U && asked < a.rows; ++v) {
                    wd_copy_async<16, false>(ring + last * stride + v * WARP,
                                             from + v * WARP * NORM_ROWS_UNIT);
                }
                parted_ask<T>(a, hints, last, asked);
                wd_copies_end();
                asked += a.step, from += far;
                if (++last == a.ring) last = 0;
            }
            wait_for_row(a);
        }
        if (looks && computes) {
            const float around = known.x;
            float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
            for (int v = 0; v < U; ++v) {
                const unit<T> x = strip_take<T>(ring + next * stride + v * WARP);
#pragma unroll
                for (int i = 0; i < E; ++i) {
                    const float d = wide_of<T>(x, i) - around;
                    sums.x += d;
                    sums.y = fmaf(d, d, sums.y);
                }
            }
            sums.x = sum_of_warp(sums.x);
            sums.y = sum_of_warp(sums.y);
            if (threadIdx.x % WARP == 0) of.of_block[turn % COPIES][threadIdx.x / WARP] = sums;
        }
        __syncthreads();
        const uint4 words = hints.of[next][0]; // of the next row
        if (looks && ++next == a.ring) next = 0;
        if (computes && first_warp && looks) parted_say(a, s, of, turn);
        if (gathers) parted_gather(a, of, turn + 1 - a.lag, early);
        if (puts) {
            const float2 mine = a.lag == 1 ? known1 : known2;
            numbers n = {mine.x, mine.y, 0.0f};
            if (computes) n = parted_numbers(a, of.of_row[(turn - a.lag) % COPIES], mine.x);
            if (s.lane == 0 && s.rank == 0) {
                if (a.mean) a.mean[of_put] = n.mean;
                if (a.inv_std) a.inv_std[of_put] = n.inv_std;
            }
#pragma unroll
            for (int v = 0; v < U; ++v) {
                float y[E];
                const unit<T> x = strip_take<T>(ring + present * stride + v * WARP);
#pragma unroll
                for (int i = 0; i < E; ++i) {
                    const float xhat = fmaf(wide_of<T>(x, i) - n.mean, n.inv_std, n.shift);
                    y[i] = fmaf(scale[v * E + i], xhat, bias[v * E + i]);
                }
                put<T>(a, reinterpret_cast<T *>(to + v * WARP * NORM_ROWS_UNIT), y);
            }
            if (++present == a.ring) present = 0;
        }
        known2 = known1;
        known1 = known;
        known = parted_known<T>(a, words);
    }
}

} // namespace

#endif
