// SPDX-License-Identifier: Apache-2.0
//
// Softmax over columns of 16 bits that begin anywhere, forward: by words of two positions. Where channels
// are an odd number of elements long, every other one begins in the middle of a word. A thread's
// channels are an even number apart, so all of its words hold the same two positions of the tile: in
// every other row of threads those one position before. What they come to is put together by positions in
// shared memory. The first and the last word of a tile's channel may hold an element of a neighbour's, or of the tensor's
// first and last word one that lies beside it, whose results go nowhere. See softmax_columns.c.
#ifndef WD_OPS_SOFTMAX_COLUMNS_PAIRS_CUH
#define WD_OPS_SOFTMAX_COLUMNS_PAIRS_CUH

#include <type_traits>

#include "gpu/device/opaque.cuh"
#include "gpu/device/packed.cuh"
#include "ops/softmax/softmax_columns_join.cuh"

namespace {

constexpr uint32_t PAIR_ROWS = SOFTMAX_COLUMN_THREADS / 32;
constexpr uint32_t PAIR_PLACES =
    2 * 32 + 1; // of a warp's words, whichever positions these begin at

struct pair_place {
    uint32_t lane, row;
    uint32_t parity; // positions that the first word is before the tile
    int32_t held;    // channels of the thread
    bool low, high;  // whether the word's elements are the tile's
    int64_t at;      // of the thread's first word, in elements
    int64_t step;    // bytes between its words

    __device__ __forceinline__ pair_place(const softmax_vector_args &a, uint32_t thread)
    {
        lane = thread % 32, row = thread / 32;
        const uint32_t down = blockDim.x / 32;
        const uint32_t rank = blockIdx.x & (a.cluster - 1);
        const uint32_t tile = blockIdx.x >> a.cluster_bits;
        const uint32_t outer = wd_fastdiv_quotient(tile, a.by_inner); // by the tiles of a plane
        const int64_t first = (int64_t)(tile - outer * a.segments) * a.lanes;
        const int32_t width = (int32_t)min((int64_t)a.lanes, a.inner - first);
        const int64_t channel = rank * a.runs + row;
        const int64_t end = min(a.length, (rank + 1) * a.runs);
        at = (outer * a.length + channel) * a.inner + first;
        parity = (uint32_t)(a.shift + at) & 1;
        at += 2 * (int32_t)lane - (int32_t)parity;
        const int32_t position = 2 * (int32_t)lane - (int32_t)parity;
        low = position >= 0 && position < width;
        high = position + 1 < width;
        held = (low || high) && channel < end
                   ? (int32_t)(((uint32_t)(end - channel) + down - 1) / down)
                   : 0;
        step = 2 * down * a.inner;
    }
};

// All threads of the block and its cluster.
__device__ __forceinline__ void join_pairs(const softmax_vector_args &a, const pair_place &p,
                                           totals<float> (&mine)[2])
{
    const uint32_t slices = blockDim.x / 32, place = 2 * p.lane + 1 - p.parity;
    totals<float> *part = wd_dynamic_shared<totals<float>>();
    totals<float> *block = part + slices * PAIR_PLACES;
    totals<float> *own = part + p.row * PAIR_PLACES;
    own[place] = mine[0];
    own[place + 1] = mine[1];
    if (p.lane == 0) own[p.parity ? PAIR_PLACES - 1 : 0] = {lowest<float>(), 0.0f};
    __syncthreads();
    // four lanes a position, so that every thread comes once at most
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t - threadIdx.x % 32 < 4 * PAIR_PLACES; t += blockDim.x) {
        const uint32_t at = min(t / 4, PAIR_PLACES - 1);
        totals<float> some[PAIR_ROWS / 4], sum = {lowest<float>(), 0.0f};
#pragma unroll
        for (uint32_t i = 0; i < PAIR_ROWS / 4; ++i) {
            const uint32_t s = t % 4 + 4 * i;
            some[i] = {lowest<float>(), 0.0f};
            if (s < slices) some[i] = part[s * PAIR_PLACES + at];
            sum.max = larger(sum.max, some[i].max);
        }
        sum.max = max_of_lanes(sum.max, 4);
        const float base = base_of(sum.max);
#pragma unroll
        for (uint32_t i = 0; i < PAIR_ROWS / 4; ++i) {
            sum.sum += some[i].sum * wd_half_exp(some[i].max - base);
        }
        sum.sum = sum_of_lanes(sum.sum, 4);
        if (t % 4 == 0 && t < 4 * PAIR_PLACES) block[at] = sum;
    }
    const totals<float> *all = join_blocks(PAIR_PLACES, a.cluster, block);
    mine[0] = all[place];
    mine[1] = all[place + 1];
}

template <class T, bool LOG, int R>
__device__ __forceinline__ void store_pairs(const softmax_vector_args &a, const pair_place &p,
                                            const uint32_t (&word)[R],
                                            const totals<float> (&all)[2])
{
    // the exponential that is stored is taken too large, for what is near the least number of bf16
    constexpr int RAISED = std::is_same<T, half16>::value ? 0 : HEADROOM;
    constexpr float lower = 1.0f / (1 << RAISED);
    const uint32_t swapped =
        p.low ? 0x5410 : 0x5432; // for the half that is the tile's, where one is
    const int32_t both = p.low && p.high ? p.held : 0, one = p.low && p.high ? 0 : p.held;
    float less[2];
    uint16_t *to = static_cast<uint16_t *>(a.y) + p.at + (p.low ? 0 : 1);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const float log = log_of(all[j].sum);
        less[j] = LOG ? log : RAISED - log * WD_LOG2_E;
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
        float v[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const float x = wd_packed_get<T>(word[r], j) - all[j].max;
            v[j] = LOG ? x - less[j] : wd_half_exp2(fmaf(x, WD_LOG2_E, less[j])) * lower;
        }
        const uint32_t out = wd_packed_narrow<T>(v[0], v[1]);
        if (r < both) *reinterpret_cast<uint32_t *>(to) = out;
        if (r < one) *to = (uint16_t)__byte_perm(out, 0, swapped);
        to = reinterpret_cast<uint16_t *>(reinterpret_cast<char *>(to) + wd_opaque(p.step));
    }
}

template <class T> __device__ void columns_pairs(const softmax_vector_args &a)
{
    constexpr int R = SOFTMAX_PAIR_CHANNELS;
    const pair_place p(a, threadIdx.x);
    const uint32_t pad = wd_packed_narrow<T>(lowest<float>(), lowest<float>());
    const char *from = static_cast<const char *>(a.x) + 2 * p.at;
    uint32_t word[R], most[2] = {pad, pad};
    totals<float> all[2];
    wd_wait_for_previous();
#pragma unroll
    for (int r = 0; r < R; ++r) {
        word[r] = pad;
        if (r < p.held) word[r] = *reinterpret_cast<const uint32_t *>(from);
        from += wd_opaque(p.step);
    }
#pragma unroll
    for (int r = 0; r < R; ++r) most[r % 2] = wd_packed_larger<T, false>(most[r % 2], word[r]);
    most[0] = wd_packed_larger<T, false>(most[0], most[1]);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        float sum[2] = {0.0f, 0.0f};
        const float max = wd_packed_get<T>(most[0], j), base = base_of(max);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            sum[r % 2] += wd_half_exp(wd_packed_get<T>(word[r], j) - base);
        }
        all[j] = {max, sum[0] + sum[1]};
    }
    join_pairs(a, p, all);
#pragma unroll
    for (int r = 0; r < R; ++r) wd_forget<0>(word[r]);
    // found out again, for registers
    const pair_place again(a, wd_opaque((uint32_t)threadIdx.x));
    if (a.log) store_pairs<T, true, R>(a, again, word, all);
    else store_pairs<T, false, R>(a, again, word, all);
    if (a.cluster > 1) wd_cluster_wait();
}

} // namespace

#endif
