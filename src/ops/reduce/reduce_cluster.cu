// SPDX-License-Identifier: Apache-2.0
//
// Few long rows, each of one cluster of blocks, in one launch. All that a thread reads is under way
// before the first of it comes; warps send what they have into the shared memory of the cluster's
// first block, which alone waits for them. See reduce_cluster.c.
#include "gpu/device/barrier.cuh"
#include "ops/reduce/reduce_device.cuh"
#include "ops/reduce/reduce_terms.cuh"

namespace {

constexpr uint32_t CLUSTER = REDUCE_CLUSTER_MOST;
constexpr int RUNS = REDUCE_CLUSTER_RUNS;

template <int OP, class T> __device__ void reduce_cluster(const reduce_vector_args &a)
{
    using A = acc<T>;
    using S = state<OP, A>;
    constexpr uint32_t V = run_of<T>;
    static_assert(sizeof(S) == 8, "what a message has room for");
    __shared__ uint64_t arrived;
    __shared__ float4 inbox[CLUSTER * 32];
    const uint32_t row = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER;
    const uint32_t warps = blockDim.x / 32, messages = CLUSTER * warps;
    const uint32_t line = (uint32_t)a.line;
    const T *x = static_cast<const T *>(a.x) + (int64_t)row * line;
    // whole runs from a boundary of 16 bytes on, and what is before and behind them
    const uint32_t head = min(line, (0u - ((uint32_t)a.shift + row * line)) % V);
    const uint32_t runs = (line - head) / V, behind = head + runs * V;
    const uint32_t each = (runs + CLUSTER - 1) / CLUSTER;
    const uint32_t end = min((rank + 1) * each, runs);
    const bool is_head = rank == 0 && threadIdx.x < head;
    const bool is_tail = rank == CLUSTER - 1 && threadIdx.x < line - behind;
    T first, last;
    terms<OP, A, V> sum;
    sum.begin(a);
    if (rank == 0 && threadIdx.x == 0) {
        wd_counter_begin(&arrived);
        wd_counter_expect(&arrived, messages * (uint32_t)sizeof *inbox);
    }
    wd_cluster_arrive(); // waited for before the first message
    wd_wait_for_previous();
    if (is_head) first = x[threadIdx.x];
    if (is_tail) last = x[behind + threadIdx.x];
    if (is_head) add_one<OP, T>(a, first, threadIdx.x, sum);
#pragma unroll 1
    for (uint32_t unit = rank * each + threadIdx.x; unit < end; unit += RUNS * blockDim.x) {
        wd_run<T, V> run[RUNS];
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            if (unit + i * blockDim.x < end) run[i].load(x + head + (unit + i * blockDim.x) * V);
        }
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            const int32_t at = (int32_t)(head + (unit + i * blockDim.x) * V);
            A w[V];
            if (unit + i * blockDim.x >= end) break;
            take<OP>(a, run[i], w);
            sum.add(a, w, at, at);
        }
        sum.flush();
    }
    if (is_tail) add_one<OP, T>(a, last, behind + threadIdx.x, sum);
    S mine = sum.get(a);
#pragma unroll
    for (uint32_t o = 16; o > 0; o /= 2) mine.join(of_lane_across(mine, o));
    wd_cluster_wait();
    if (threadIdx.x % 32 == 0) {
        float4 message = {0, 0, 0, 0};
        memcpy(&message, &mine, sizeof mine);
        wd_counter_send(&inbox[rank * warps + threadIdx.x / 32], &arrived, 0, message);
    }
    if (rank != 0 || threadIdx.x >= 32) return;
    wd_counter_wait(&arrived, 0);
    mine = S::none();
#pragma unroll 1
    for (uint32_t m = threadIdx.x; m < messages; m += 32) {
        S other;
        memcpy(&other, &inbox[m], sizeof other);
        mine.join(other);
    }
#pragma unroll
    for (uint32_t o = 16; o > 0; o /= 2) mine.join(of_lane_across(mine, o));
    if (threadIdx.x == 0) put<OP, A>(a, row, mine);
}

} // namespace

#define WD_KERNELS_ROWS "ops/reduce/reduce_cluster_kernels.def"
#include "ops/kernels_device.inc"
