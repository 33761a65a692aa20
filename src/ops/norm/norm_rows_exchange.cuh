// SPDX-License-Identifier: Apache-2.0
//
// How the warps of a row join what each found of it: by shared memory within a block, and between the
// blocks of a cluster by stores that count themselves in at a barrier of the receiver. A cluster's own
// barrier orders all that was written before it, the rows on their way to memory as well. What is said
// of a row is taken a turn later, so that nobody waits for the way there, or in the same turn (rows that are held).
#ifndef WD_OPS_NORM_ROWS_EXCHANGE_CUH
#define WD_OPS_NORM_ROWS_EXCHANGE_CUH

#include "gpu/device/barrier.cuh"
#include "gpu/device/cluster.cuh"
#include "gpu/device/grid.cuh"
#include "gpu/device/post.cuh"
#include "ops/norm/norm_rows_args.h"

namespace {

constexpr uint32_t WARP = 32;
constexpr uint32_t WHOLE_WARP = 0xffffffffu;

// Over groups of `width` lanes, a power of two; all of them get the same.
__device__ __forceinline__ float sum_of_lanes(float v, uint32_t width)
{
#pragma unroll
    for (uint32_t o = WARP / 2; o > 0; o /= 2) {
        if (o < width) v += __shfl_xor_sync(WHOLE_WARP, v, o);
    }
    return v;
}

__device__ __forceinline__ float sum_of_warp(float v)
{
#pragma unroll
    for (uint32_t o = WARP / 2; o > 0; o /= 2) v += __shfl_xor_sync(WHOLE_WARP, v, o);
    return v;
}

// What a thread, a warp or a whole row has. Forward: the mean as a column's value and the distance
// from it, so that a common offset costs no digits, the squares around the mean, and how many columns.
// Backward: two sums. It travels by one access.
struct __align__(16) part
{
    float pivot;
    float rest;
    float squares;
    float count;
};

// The numbers of a row: xhat = (x - mean) * inv_std + shift, where shift makes up for what the
// rounding of the mean cut off.
struct numbers {
    float mean;
    float inv_std;
    float shift;
};

__device__ __forceinline__ numbers numbers_of(const norm_rows_args &a, const part &all)
{
    numbers n;
    n.inv_std = 1.0f / sqrtf(all.squares * a.inverse + a.epsilon);
    n.mean = all.pivot + all.rest;
    n.shift = ((n.mean - all.pivot) - all.rest) * n.inv_std;
    return n;
}

// Of the parts that `width` lanes have; `inverse` is of all their columns.
template <bool STATISTICS>
__device__ __forceinline__ part join(const part &mine, uint32_t width, float inverse)
{
    part all = {0.0f, 0.0f, 0.0f, 0.0f};
    if constexpr (STATISTICS) {
        all.pivot = __shfl_sync(WHOLE_WARP, mine.pivot, 0, width);
        const float distance = mine.count > 0.0f ? (mine.pivot - all.pivot) + mine.rest : 0.0f;
        all.rest = sum_of_lanes(mine.count * distance, width) * inverse;
        const float d = distance - all.rest;
        all.squares = sum_of_lanes(fmaf(mine.count * d, d, mine.squares), width);
    } else {
        all.pivot = sum_of_lanes(mine.pivot, width);
        all.rest = sum_of_lanes(mine.rest, width);
    }
    return all;
}

// Of the parts that the lanes of a warp have.
template <bool STATISTICS>
__device__ __forceinline__ part join_warp(const part &mine, float inverse)
{
    part all = {0.0f, 0.0f, 0.0f, 0.0f};
    if constexpr (STATISTICS) {
        all.pivot = __shfl_sync(WHOLE_WARP, mine.pivot, 0);
        const float distance = mine.count > 0.0f ? (mine.pivot - all.pivot) + mine.rest : 0.0f;
        all.rest = sum_of_warp(mine.count * distance) * inverse;
        const float d = distance - all.rest;
        all.squares = sum_of_warp(fmaf(mine.count * d, d, mine.squares));
    } else {
        all.pivot = sum_of_warp(mine.pivot);
        all.rest = sum_of_warp(mine.rest);
    }
    return all;
}

// Of `count` parts in shared memory, the first of which has columns; every lane of the warp gets it.
template <bool STATISTICS>
__device__ __forceinline__ part join_all(const part *of, uint32_t count, float inverse)
{
    part all = {0.0f, 0.0f, 0.0f, 0.0f};
    uint32_t span = 1;
    while (span < count && span < WARP) span *= 2;
    const uint32_t first = threadIdx.x & (span - 1);
    if constexpr (STATISTICS) {
        float sum = 0.0f, squares = 0.0f;
        all.pivot = of[0].pivot;
        for (uint32_t j = first; j < count; j += span) {
            const part p = of[j];
            if (p.count > 0.0f) sum = fmaf(p.count, (p.pivot - all.pivot) + p.rest, sum);
        }
        all.rest = sum_of_lanes(sum, span) * inverse;
        for (uint32_t j = first; j < count; j += span) {
            const part p = of[j];
            const float d = ((p.pivot - all.pivot) + p.rest) - all.rest;
            if (p.count > 0.0f) squares += fmaf(p.count * d, d, p.squares);
        }
        all.squares = sum_of_lanes(squares, span);
    } else if (count <= 16) { // every lane by itself
#pragma unroll 4
        for (uint32_t j = 0; j < count; ++j) {
            all.pivot += of[j].pivot;
            all.rest += of[j].rest;
        }
    } else {
        for (uint32_t j = first; j < count; j += span) {
            all.pivot += of[j].pivot;
            all.rest += of[j].rest;
        }
        all.pivot = sum_of_lanes(all.pivot, span);
        all.rest = sum_of_lanes(all.rest, span);
    }
    return all;
}

// A warp writes the parts of a row while another still reads those of two rows before; of held rows, of the row before.
constexpr uint32_t COPIES = NORM_ROWS_COPIES;
constexpr uint32_t WARPS = NORM_ROWS_THREADS / WARP;
constexpr uint32_t PARTS = 128; // of a cluster's row
struct slots {
    union {
        part of_block[COPIES][WARPS];
        part of_cluster[COPIES][PARTS];
    };
    uint64_t here[COPIES]; // the parts of all blocks
    part of_row[2];        // by posts: what all of them said
};

// Nobody may write into the shared memory of a block that has not begun.
__device__ __forceinline__ void begin_exchange(const norm_rows_args &a, slots &of)
{
    if (a.cluster == 1 || a.posts) return;
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < COPIES; ++i) wd_counter_begin(&of.here[i]);
    }
    wd_cluster_arrive();
    wd_cluster_wait();
}

// By the thread of a warp that leaves its part of a turn, before that: nobody still reads what the copy had of an
// earlier turn. That is so long before, for all warps have heard since what the cluster made of it; but an order by
// bytes of other blocks is none that compute-sanitizer's racecheck knows, and one by arrivals is.
template <uint32_t COPIES>
__device__ __forceinline__ void wait_for_readers(uint64_t *read, uint32_t turn)
{
    if (turn >= COPIES) wd_counter_wait(&read[turn % COPIES], (turn / COPIES - 1) & 1);
}

// Says what a warp found of the row of a turn; all lanes have it.
__device__ __forceinline__ void say(const norm_rows_args &a, uint32_t rank, slots &of,
                                    uint32_t turn, const part &p)
{
    const uint32_t copy = turn % COPIES;
    const uint32_t warp = threadIdx.x / WARP;
    const uint32_t lane = threadIdx.x % WARP;
    if (a.cluster == 1 || a.posts) {
        if (lane == 0) of.of_block[copy][warp] = p;
        return;
    }
    const uint32_t warps = a.lanes / WARP;
    if (threadIdx.x == 0) {
        wd_counter_expect(&of.here[copy], a.cluster * warps * (uint32_t)sizeof(part));
    }
    if (lane < a.cluster) {
        wd_counter_send(&of.of_cluster[copy][rank * warps + warp], &of.here[copy], lane,
                        make_float4(p.pivot, p.rest, p.squares, p.count));
    }
}

// What all warps of the row said.
template <bool STATISTICS>
__device__ __forceinline__ part hear(const norm_rows_args &a, uint32_t group, slots &of,
                                     uint32_t turn)
{
    const uint32_t copy = turn % COPIES;
    const uint32_t warps = a.lanes / WARP;
    if (a.cluster == 1) {
        wd_barrier(group + 1, a.lanes);
        return join_all<STATISTICS>(&of.of_block[copy][group * warps], warps, a.inverse);
    }
    wd_counter_wait(&of.here[copy], turn / COPIES & 1);
    return join_all<STATISTICS>(of.of_cluster[copy], a.cluster * warps, a.inverse);
}

// The groups of a block meet equally often before all of its threads do, those too that had fewer rows than the first one: compute-sanitizer's racecheck
// counts a thread's barriers, whose ever they are. `row` would have been the group's next: its first one, too, where there is none, and not the
// number of rows. Only racecheck on a device tells whether it is called.
__device__ __forceinline__ void meet_as_often(const norm_rows_args &a, uint32_t group, uint32_t row)
{
    if (a.cluster > 1 || a.lanes == WARP) return;
#pragma unroll 1
    for (uint32_t first = row - group; first < (uint32_t)a.rows; first += (uint32_t)a.step)
        wd_barrier(group + 1, a.lanes);
}

// ---- By posts: the blocks of a row are no cluster, but all there at once ----

__device__ __forceinline__ uint64_t *post_of(const norm_rows_args &a, uint32_t turn, uint32_t rank)
{
    const uint32_t block = blockIdx.x / a.cluster * a.cluster + rank;
    return a.posts + (block * COPIES + turn % COPIES) * NORM_ROWS_POST;
}

// What was left there by an earlier kernel must not be taken for a post of this one.
__device__ __forceinline__ void begin_posts(const norm_rows_args &a, uint32_t rank)
{
    if (!a.posts) return;
    if (threadIdx.x < COPIES * NORM_ROWS_POST) post_of(a, 0, rank)[threadIdx.x] = 0;
    wd_meet(a.counters + blockIdx.x / a.cluster * WD_COUNTER_WORDS, a.cluster, rank == 0);
}

// By the first warp, at a turn's beginning: what other blocks said of the last row, on its way; by the time it
// is wanted mostly all have.
struct early_posts {
    uint64_t word[2];
};
__device__ __forceinline__ void ask_posts(const norm_rows_args &a, uint32_t turn, early_posts &to)
{
    to.word[0] = to.word[1] = 0;
    if (turn > 0 && threadIdx.x < min(WARP, a.cluster))
        wd_posts_ask(post_of(a, turn - 1, threadIdx.x), to.word);
}

// By a warp: what all blocks said of the row of a turn, two sums.
__device__ __forceinline__ part hear_posts(const norm_rows_args &a, uint32_t turn,
                                           early_posts &early)
{
    part all = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < NORM_ROWS_POSTING / (int)WARP; ++k) {
        const uint32_t rank = k * WARP + threadIdx.x;
        float word[2];
        if (rank >= a.cluster) continue;
        if (k == 0) wd_posts_take(post_of(a, turn, rank), turn + 1, early.word, word);
        else wd_posts_await(post_of(a, turn, rank), turn + 1, word);
        all.pivot += word[0], all.rest += word[1];
    }
    __syncwarp();
    all.pivot = sum_of_warp(all.pivot);
    all.rest = sum_of_warp(all.rest);
    return all;
}

// By all threads, a turn: posts what the block's warps said of this turn's row, if there is one, and
// returns what all blocks said of the last one's.
__device__ __forceinline__ part exchange(const norm_rows_args &a, uint32_t rank, slots &of,
                                         uint32_t turn, bool more, early_posts &early)
{
    const bool speaks = threadIdx.x < WARP;
    if (speaks && turn > 0) {
        const part all = hear_posts(a, turn - 1, early);
        if (threadIdx.x == 0) of.of_row[turn % 2] = all;
    }
    __syncthreads();
    if (speaks && more) {
        const part p = join_all<false>(of.of_block[turn % COPIES], a.lanes / WARP, 0.0f);
        if (threadIdx.x < 2)
            wd_post(post_of(a, turn, rank) + threadIdx.x, threadIdx.x == 0 ? p.pivot : p.rest,
                    turn + 1);
    }
    return of.of_row[turn % 2];
}

} // namespace

#endif
