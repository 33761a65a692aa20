// SPDX-License-Identifier: Apache-2.0
//
// What the norm_kept kernels share: runs between memory, shared memory and registers, and how threads,
// warps and the blocks of a cluster add up what each found. Sums are pairs in double precision, of
// differences from one number that all of them know, so that they only have to be added.
#ifndef WD_OPS_NORM_KEPT_DEVICE_CUH
#define WD_OPS_NORM_KEPT_DEVICE_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/barrier.cuh"
#include "gpu/device/cluster.cuh"
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/norm/norm_kept_args.h"

namespace {

constexpr uint32_t WARP = 32;
constexpr uint32_t WHOLE_WARP = 0xffffffffu;
constexpr uint32_t THREADS = NORM_KEPT_THREADS;
constexpr uint32_t WARPS = THREADS / WARP;
constexpr uint32_t CLUSTER = NORM_KEPT_CLUSTER;
constexpr int BATCHES = NORM_KEPT_BATCHES;

template <class T> constexpr int RUN = 16 / (int)sizeof(T);
template <class T> using run = wd_run<T, RUN<T>>;

// ---- Runs ----

// Into the thread's own words of shared memory; there at once, or when it has waited.
template <class T>
__device__ __forceinline__ void fetch(uint4 *to, const T *from, bool runs, uint32_t left)
{
    if (runs) {
        wd_copy_async<16, false>(to, from);
        return;
    }
    run<T> r;
#pragma unroll
    for (uint32_t i = 0; i < RUN<T>; ++i) {
        T one;
        wd_narrow(one, 0.0f);
        if (i < left) one = from[i];
        r.put(i, one);
    }
    r.store(reinterpret_cast<T *>(to));
}

// Waits for the batch of this number, and all before it, where BATCHES are under way.
__device__ __forceinline__ void wait_for_batch(int batch)
{
    switch (batch) {
    case 0: wd_copies_wait<3>(); break;
    case 1: wd_copies_wait<2>(); break;
    case 2: wd_copies_wait<1>(); break;
    default: wd_copies_wait<0>(); break;
    }
}

template <class T>
__device__ __forceinline__ void put(T *to, const float *value, bool runs, uint32_t left,
                                    bool streaming)
{
    run<T> r;
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        T one;
        wd_narrow(one, value[i]);
        r.put(i, one);
    }
    if (runs) {
        if (streaming) r.store_streaming(to);
        else r.store(to);
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < RUN<T>; ++i) {
        if (i < left) to[i] = r.get(i);
    }
}

// ---- Parameters ----

// 0 where there is none.
__device__ __forceinline__ float param_at(const norm_rows_param &p, uint32_t channel)
{
    if (!p.data) return 0.0f;
    switch (p.type) {
    case NORM_ROWS_F32: return static_cast<const float *>(p.data)[channel];
    case NORM_ROWS_F16: return wd_widen(static_cast<const half16 *>(p.data)[channel]);
    default: return wd_widen(static_cast<const bfloat16 *>(p.data)[channel]);
    }
}

__device__ __forceinline__ void set_param(const norm_rows_param &p, uint32_t channel, float value)
{
    if (!p.data) return;
    switch (p.type) {
    case NORM_ROWS_F32: static_cast<float *>(p.data)[channel] = value; break;
    case NORM_ROWS_F16: wd_narrow(static_cast<half16 *>(p.data)[channel], value); break;
    default: wd_narrow(static_cast<bfloat16 *>(p.data)[channel], value); break;
    }
}

// ---- Sums ----

struct __align__(16) pair
{
    double first;
    double second;
};

__device__ __forceinline__ void add(pair &into, const pair &from)
{
    into.first += from.first, into.second += from.second;
}

// Over groups of `width` lanes, a power of two; all of them get the same.
__device__ __forceinline__ pair sum_of_lanes(pair p, uint32_t width)
{
#pragma unroll
    for (uint32_t lanes = 1; lanes < WARP; lanes *= 2) {
        if (lanes >= width) break;
        p.first += __shfl_xor_sync(WHOLE_WARP, p.first, (int)lanes);
        p.second += __shfl_xor_sync(WHOLE_WARP, p.second, (int)lanes);
    }
    return p;
}

// Elements of one share as a thread sees them: differences from its first one, in single precision.
struct shifted {
    float pivot;
    float sum;
    float squares;

    __device__ __forceinline__ void begin(float x)
    {
        pivot = x, sum = squares = 0.0f;
    }

    __device__ __forceinline__ void add(float x)
    {
        const float d = x - pivot;
        sum += d;
        squares = fmaf(d, d, squares);
    }

    // Of `count` elements: the same as differences from `origin`. What single precision cut off a sum
    // cancels in the variance but for its product with pivot - mean.
    __device__ __forceinline__ pair from(float origin, uint32_t count) const
    {
        const double distance = (double)pivot - origin;
        const double offset = count * distance;
        return {sum + offset, squares + distance * (2.0 * sum + offset)};
    }
};

// xhat = (x - mean) * inv_std + rest, where rest makes up for what rounding cut off the mean.
struct numbers {
    float mean;
    float inv_std;
    float rest;
};

__device__ __forceinline__ numbers numbers_of(const norm_kept_args &a, const pair &all,
                                              float origin)
{
    numbers n;
    const double distance = all.first * a.inverse;
    const double mean = origin + distance;
    const double variance = fmax(all.second * a.inverse - distance * distance, 0.0);
    n.mean = (float)mean;
    n.inv_std = 1.0f / sqrtf((float)(variance + a.epsilon));
    n.rest = (float)(n.mean - mean) * n.inv_std;
    return n;
}

// ---- Blocks of a cluster ----

// `count` values of each block, which all blocks get. A block may be a turn ahead of another, so that
// there are two places.
struct exchange {
    pair *of_block; // [2][count][cluster]
    uint64_t *here; // [2]
    uint32_t count;
    uint32_t turn;
};

// Nobody may write into the shared memory of a block that has not begun.
__device__ __forceinline__ void begin_exchange(const norm_kept_args &a, const exchange &e)
{
    if (a.cluster == 1) return;
    if (threadIdx.x == 0) {
        wd_counter_begin(&e.here[0]);
        wd_counter_begin(&e.here[1]);
    }
    wd_cluster_arrive();
    wd_cluster_wait();
}

// By one thread, before values of the turn are waited for.
__device__ __forceinline__ void expect(const norm_kept_args &a, const exchange &e)
{
    if (a.cluster == 1) return;
    wd_counter_expect(&e.here[e.turn & 1], e.count * a.cluster * (uint32_t)sizeof(pair));
}

__device__ __forceinline__ pair *place_in(const norm_kept_args &a, const exchange &e, uint32_t i)
{
    return e.of_block + ((e.turn & 1) * e.count + i) * a.cluster;
}

// Value `i` of this block, to block `to`.
__device__ __forceinline__ void send(const norm_kept_args &a, const exchange &e, uint32_t rank,
                                     uint32_t i, uint32_t to, const pair &value)
{
    float4 bits;
    memcpy(&bits, &value, sizeof bits);
    wd_counter_send(place_in(a, e, i) + rank, &e.here[e.turn & 1], to, bits);
}

__device__ __forceinline__ void wait_for_all(const norm_kept_args &a, const exchange &e)
{
    if (a.cluster > 1) wd_counter_wait(&e.here[e.turn & 1], e.turn / 2 & 1);
}

// Value `i` over all blocks, in their order.
__device__ __forceinline__ pair received(const norm_kept_args &a, const exchange &e, uint32_t i)
{
    const pair *of = place_in(a, e, i);
    pair all = of[0];
    for (uint32_t rank = 1; rank < a.cluster; ++rank) add(all, of[rank]);
    return all;
}

} // namespace

#endif
