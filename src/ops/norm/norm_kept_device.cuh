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
#include "gpu/device/grid.cuh"
#include "gpu/device/shared.cuh"
#include "ops/norm/norm_kept_args.h"
#include "ops/norm/norm_param.cuh"

namespace {

constexpr uint32_t THREADS = NORM_KEPT_THREADS;
constexpr uint32_t WARPS = 16; // of a block, at most: a power of two
constexpr uint32_t CLUSTER = NORM_KEPT_CLUSTER;
constexpr int BATCHES = NORM_KEPT_BATCHES;

template <class T> constexpr int RUN = 16 / (int)sizeof(T);
template <class T> using run = wd_run<T, RUN<T>>;

// ---- Runs ----

// Into the thread's own words of shared memory; there at once, or when it has waited. Not a whole run:
// its elements from `begin` to `end`, zeros for the others.
template <class T>
__device__ __forceinline__ void fetch(uint4 *to, const T *from, bool whole, int begin, int end)
{
    if (whole) {
        wd_copy_async<16, false>(to, from);
        return;
    }
    run<T> r;
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        T one;
        wd_narrow(one, 0.0f);
        if (i >= begin && i < end) one = from[i];
        r.put(i, one);
    }
    r.store(reinterpret_cast<T *>(to));
}

// All elements of a run; of two bytes by pairs, which is an instruction less for each.
__device__ __forceinline__ void widen(float (&to)[4], const run<float> &r)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = r.get(i);
}
__device__ __forceinline__ void widen(float (&to)[8], const run<half16> &r)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        __half2 two;
        memcpy(&two, &r.word[i], 4);
        to[2 * i] = __half2float(two.x), to[2 * i + 1] = __half2float(two.y);
    }
}
__device__ __forceinline__ void widen(float (&to)[8], const run<bfloat16> &r)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        to[2 * i] = __uint_as_float(r.word[i] << 16);
        to[2 * i + 1] = __uint_as_float(r.word[i] & 0xffff0000u);
    }
}

__device__ __forceinline__ void narrow(run<float> &to, const float (&v)[4])
{
#pragma unroll
    for (int i = 0; i < 4; ++i) to.put(i, v[i]);
}
__device__ __forceinline__ void narrow(run<half16> &to, const float (&v)[8])
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const __half2 two = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
        memcpy(&to.word[i], &two, 4);
    }
}
__device__ __forceinline__ void narrow(run<bfloat16> &to, const float (&v)[8])
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const __nv_bfloat162 two = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
        memcpy(&to.word[i], &two, 4);
    }
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
__device__ __forceinline__ void put(T *to, const float (&value)[RUN<T>], bool whole, int begin,
                                    int end, bool streaming)
{
    run<T> r;
    narrow(r, value);
    if (whole) {
        if (streaming) r.store_streaming(to);
        else r.store(to);
        return;
    }
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        if (i >= begin && i < end) to[i] = r.get(i);
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

__device__ __forceinline__ numbers numbers_of(double inverse, double epsilon, const pair &all,
                                              float origin)
{
    numbers n;
    const double distance = all.first * inverse;
    const double mean = origin + distance;
    double variance = all.second * inverse - distance * distance;
    if (variance < 0.0) variance = 0.0; // a NaN stays one
    // where x has an infinity neither is a number
    n.mean = (float)(variance == variance ? mean : variance);
    n.inv_std = 1.0f / sqrtf((float)(variance + epsilon));
    n.rest = (float)(n.mean - mean) * n.inv_std;
    return n;
}

// ---- Blocks of a panel ----

// `count` values of each block, which all blocks get. A block may be a turn ahead of another, so that
// there are two places: in shared memory of each block of a cluster; of more blocks, which meet, in
// scratch.
struct exchange {
    pair *of_block; // [2][count][blocks]
    uint64_t *here; // [2]
    uint32_t count;
    uint32_t turn;
    uint32_t rank; // of this block
};

__device__ __forceinline__ exchange exchange_of(const norm_kept_args &a, pair *of_block,
                                                uint64_t *here, uint32_t count)
{
    exchange e = {of_block, here, count, 0, blockIdx.x % a.blocks};
    if (a.counters) {
        e.of_block = reinterpret_cast<pair *>(a.values) +
                     (size_t)(blockIdx.x / a.blocks) * 2 * count * a.blocks;
    }
    return e;
}

// Nobody may write into the shared memory of a block that has not begun.
__device__ __forceinline__ void begin_exchange(const norm_kept_args &a, const exchange &e)
{
    if (a.blocks == 1 || a.counters) return;
    if (threadIdx.x == 0) {
        wd_counter_begin(&e.here[0]);
        wd_counter_begin(&e.here[1]);
    }
    wd_cluster_arrive();
    wd_cluster_wait();
}

__device__ __forceinline__ pair *place_in(const norm_kept_args &a, const exchange &e, uint32_t i)
{
    return e.of_block + ((e.turn & 1) * e.count + i) * a.blocks;
}

// By one thread, before the turn's values are waited for.
__device__ __forceinline__ void expect(const norm_kept_args &a, const exchange &e)
{
    if (a.blocks == 1 || a.counters) return;
    wd_counter_expect(&e.here[e.turn & 1], e.count * a.blocks * (uint32_t)sizeof(pair));
}

// Value `i` of this block, by one thread.
__device__ __forceinline__ void publish(const norm_kept_args &a, const exchange &e, uint32_t i,
                                        const pair &value)
{
    pair *to = place_in(a, e, i) + e.rank;
    if (a.blocks == 1 || a.counters) {
        *to = value;
        return;
    }
    float4 bits;
    memcpy(&bits, &value, sizeof bits);
    for (uint32_t block = 0; block < a.blocks; ++block) {
        wd_counter_send(to, &e.here[e.turn & 1], block, bits);
    }
}

// By all threads: from here on there are all values of the turn.
__device__ __forceinline__ void wait_for_all(const norm_kept_args &a, const exchange &e)
{
    if (a.counters) {
        wd_meet(a.counters + blockIdx.x / a.blocks * WD_COUNTER_WORDS, a.blocks, e.rank == 0);
    } else if (a.blocks > 1) {
        wd_counter_wait(&e.here[e.turn & 1], e.turn / 2 & 1);
    } else {
        __syncthreads();
    }
}

// Values of a lane that are under way at once.
constexpr uint32_t RECEIVED = 6;

// Value `i` over all blocks, by `width` lanes side by side, which all get it.
__device__ __forceinline__ pair received(const norm_kept_args &a, const exchange &e, uint32_t i,
                                         uint32_t width)
{
    const pair *of = place_in(a, e, i);
    pair all = {0.0, 0.0};
    for (uint32_t block = threadIdx.x % width; block < a.blocks; block += RECEIVED * width) {
        pair some[RECEIVED];
#pragma unroll
        for (uint32_t k = 0; k < RECEIVED; ++k) {
            some[k] = {0.0, 0.0};
            if (block + k * width < a.blocks) some[k] = of[block + k * width];
        }
#pragma unroll
        for (uint32_t k = 0; k < RECEIVED; ++k) add(all, some[k]);
    }
    return sum_of_lanes(all, width);
}

// Lanes that add up what blocks have of each of `count` values: as many as there are threads for.
__device__ __forceinline__ uint32_t lanes_of_blocks(const norm_kept_args &a, uint32_t count)
{
    uint32_t lanes = a.blocks > CLUSTER ? WARP : a.blocks > 1 ? CLUSTER : 1;
    while (lanes > 1 && count * lanes > blockDim.x) lanes /= 2;
    return lanes;
}

} // namespace

#endif
