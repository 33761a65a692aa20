// SPDX-License-Identifier: Apache-2.0
//
// How the warps of a row join what each found of it: by shared memory within a block, and between the
// blocks of a cluster by stores that count themselves in at a barrier of the receiver. A cluster's own
// barrier orders all that was written before it, the rows on their way to memory as well.
#ifndef WD_OPS_NORM_ROWS_EXCHANGE_CUH
#define WD_OPS_NORM_ROWS_EXCHANGE_CUH

#include "gpu/device/barrier.cuh"
#include "gpu/device/cluster.cuh"
#include "ops/norm/norm_rows_args.h"

namespace {

constexpr int COLUMNS = NORM_ROWS_COLUMNS;
constexpr uint32_t WARP = 32;
constexpr uint32_t WHOLE_WARP = 0xffffffffu;
constexpr uint32_t WARPS = NORM_ROWS_THREADS / WARP;

// Where a thread is in its row.
struct seat {
    uint32_t rank; // of the block in its cluster
    uint32_t group;
    uint32_t lane;  // in the group
    uint32_t width; // lanes that shuffle with one another
    uint32_t first; // column
    uint32_t count; // of its columns; of a run all or none
};

// Over groups of `width` lanes, a power of two; all of them get the same.
__device__ __forceinline__ float sum_of_lanes(float v, uint32_t width)
{
#pragma unroll
    for (uint32_t o = WARP / 2; o > 0; o /= 2) {
        if (o < width) v += __shfl_xor_sync(WHOLE_WARP, v, o);
    }
    return v;
}

// What a warp, a block or a cluster found of a row. Forward: the mean as a column's value and the
// distance from it, so that a common offset costs no digits, the squares around the mean, and how
// many columns. Backward: two sums. It travels by one access.
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

// Of the parts that the lanes of a warp have.
template <bool STATISTICS> __device__ __forceinline__ part join(const part &mine, float inverse)
{
    part all = {0.0f, 0.0f, 0.0f, 0.0f};
    if constexpr (STATISTICS) {
        all.pivot = __shfl_sync(WHOLE_WARP, mine.pivot, 0);
        const float distance = mine.count > 0.0f ? (mine.pivot - all.pivot) + mine.rest : 0.0f;
        all.rest = sum_of_lanes(mine.count * distance, WARP) * inverse;
        const float d = distance - all.rest;
        all.squares = sum_of_lanes(mine.squares + mine.count * (d * d), WARP);
    } else {
        all.pivot = sum_of_lanes(mine.pivot, WARP);
        all.rest = sum_of_lanes(mine.rest, WARP);
    }
    return all;
}

// A block may be a turn ahead of another, so that what comes from blocks has two places.
struct slots {
    part of_warp[NORM_ROWS_AT_ONCE][WARPS];
    part of_block[2][NORM_ROWS_AT_ONCE][NORM_ROWS_CLUSTER_MAX];
    part of_row[NORM_ROWS_GROUPS][NORM_ROWS_AT_ONCE]; // forward: numbers
    uint64_t here[2];                                 // the parts of all blocks
};

__device__ __forceinline__ void group_barrier(const norm_rows_args &a, const seat &s)
{
    wd_barrier(s.group + 1, a.lanes);
}

// Nobody may write into the shared memory of a block that has not begun.
__device__ __forceinline__ void begin_exchange(const norm_rows_args &a, slots &of)
{
    if (a.cluster == 1) return;
    if (threadIdx.x == 0) {
        wd_counter_begin(&of.here[0]);
        wd_counter_begin(&of.here[1]);
    }
    wd_cluster_arrive();
    wd_cluster_wait();
}

template <bool STATISTICS>
__device__ __forceinline__ void put_row(const norm_rows_args &a, const seat &s, slots &of,
                                        uint32_t r, const part &all)
{
    if (threadIdx.x % WARP > 0) return;
    if constexpr (STATISTICS) {
        const numbers n = numbers_of(a, all);
        of.of_row[s.group][r] = {n.mean, n.inv_std, n.shift, 0.0f};
    } else {
        of.of_row[s.group][r] = all;
    }
}

// Of ROWS rows, from of_warp of all warps to of_row: a row is joined by one warp. No warp writes
// of_warp again before all have read it, since a barrier follows; nor of_row, since one comes first.
template <bool STATISTICS, int ROWS>
__device__ __forceinline__ void exchange(const norm_rows_args &a, const seat &s, slots &of,
                                         uint32_t turn)
{
    const uint32_t warps = a.lanes / WARP;
    const uint32_t warp = s.lane / WARP;
    const uint32_t lane = threadIdx.x % WARP;
    const uint32_t copy = turn & 1;
    if (a.cluster > 1 && threadIdx.x == 0) {
        wd_counter_expect(&of.here[copy], a.cluster * ROWS * (uint32_t)sizeof(part));
    }
    group_barrier(a, s);
    for (uint32_t r = warp; r < ROWS; r += warps) {
        part p = {0.0f, 0.0f, 0.0f, 0.0f};
        if (lane < warps) p = of.of_warp[r][s.group * warps + lane];
        if (a.cluster == 1) {
            put_row<STATISTICS>(a, s, of, r, join<STATISTICS>(p, a.inverse));
            continue;
        }
        const uint32_t mine = a.lanes * COLUMNS;
        const float columns = (float)min(a.length - min(a.length, s.rank * mine), mine);
        p = join<STATISTICS>(p, columns > 0.0f ? 1.0f / columns : 0.0f); // the last may have none
        p.count = columns;
        if (lane < a.cluster) {
            wd_counter_send(&of.of_block[copy][r][s.rank], &of.here[copy], lane,
                            make_float4(p.pivot, p.rest, p.squares, p.count));
        }
    }
    for (uint32_t r = warp; a.cluster > 1 && r < ROWS; r += warps) {
        part p = {0.0f, 0.0f, 0.0f, 0.0f};
        wd_counter_wait(&of.here[copy], turn / 2 & 1);
        if (lane < a.cluster) p = of.of_block[copy][r][lane];
        put_row<STATISTICS>(a, s, of, r, join<STATISTICS>(p, a.inverse));
    }
    group_barrier(a, s);
}

} // namespace

#endif
