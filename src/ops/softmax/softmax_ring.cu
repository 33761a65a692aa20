// SPDX-License-Identifier: Apache-2.0
//
// Softmax over long rows that are read once, however long they are together: each block of a team has
// a part of every row of the team, and several rows on their way (softmax_ring_args.h). Of a row's
// part the runs of 16 bytes in which the row begins and ends are copied whole; what is not the row's
// is made neutral in shared memory. A thread uses only those runs that it has copied itself.
#include "gpu/device/async.cuh"
#include "gpu/device/grid.cuh"
#include "ops/softmax/softmax_device.cuh"
#include "ops/softmax/softmax_ring_args.h"

namespace {

constexpr uint32_t MESSENGERS = 32; // threads

// What a row comes to, as the results want it.
template <class A> struct ring_answer {
    totals<A> all;
    A number;
};

template <class A> struct ring_shared {
    totals<A> of_warp[2][32];
    ring_answer<A> answer[2];
};

// A block's part of the row of a turn.
template <class T> struct ring_part {
    static constexpr int V = run_of<T>;
    int64_t at;      // of its first run in the tensor
    uint32_t runs;   // whole or not
    uint32_t before; // elements of the first run that are not the row's
    uint32_t inside; // elements of the part from `at` to behind the row's last

    __device__ __forceinline__ ring_part(const softmax_ring_args &r, uint32_t rank, int64_t row)
    {
        const softmax_vector_args &a = r.rows;
        const int64_t start = row * a.length;
        const int64_t shift = (a.shift + start) & (V - 1);
        const int64_t first = rank * a.runs; // run of the row
        const int64_t left = max(shift + a.length - first * V, (int64_t)0);
        at = start - shift + first * V;
        inside = (uint32_t)min(left, a.runs * V);
        runs = (inside + V - 1) / V;
        before = rank == 0 ? (uint32_t)shift : 0;
    }

    __device__ __forceinline__ bool is_whole(uint32_t run) const
    {
        return (run > 0 || before == 0) && (run + 1) * V <= inside;
    }
};

// ---- The threads that compute ----

template <class T> struct ring_worker {
    using A = acc<T>;
    static constexpr int V = run_of<T>;
    const softmax_ring_args &r;
    const softmax_vector_args &a;
    T *slots;
    uint32_t workers;
    uint32_t rank;

    __device__ __forceinline__ T *slot(uint32_t index) const
    {
        return slots + index * (uint32_t)a.runs * V;
    }

    __device__ __forceinline__ void request(uint32_t index, int64_t row) const
    {
        const ring_part<T> p(r, rank, row);
        T *x = slot(index);
        const T *from = static_cast<const T *>(a.x) + p.at;
        if (r.apart) {
            for (uint32_t i = threadIdx.x; i < p.runs; i += workers) {
#pragma unroll 1
                for (uint32_t k = i * V; k < min((i + 1) * V, p.inside); ++k) {
                    x[k] = from[k];
                }
            }
            return;
        }
#pragma unroll 4
        for (uint32_t i = threadIdx.x; i < p.runs; i += workers) {
            wd_copy_async<16, false>(x + i * V, from + i * V);
        }
    }

    // Makes what is not the row's count for nothing.
    __device__ __forceinline__ void mend(const ring_part<T> &p, T *x, uint32_t run) const
    {
#pragma unroll 1
        for (uint32_t k = run * V; k < (run + 1) * V; ++k) {
            if (k >= p.before && k < p.inside) continue;
            wd_narrow(x[k], lowest<A>());
        }
    }

    // What the thread has of a row.
    __device__ __forceinline__ totals<A> look(uint32_t index, int64_t row) const
    {
        const ring_part<T> p(r, rank, row);
        T *x = slot(index);
        A max = lowest<A>();
        A sum[2] = {0, 0};
        if (threadIdx.x == 0 && p.runs > 0 && !p.is_whole(0)) mend(p, x, 0);
        if (p.runs > 1 && !p.is_whole(p.runs - 1)) {
            // the thread whose run it is
            if ((p.runs - 1) % workers == threadIdx.x) mend(p, x, p.runs - 1);
        }
#pragma unroll 4
        for (uint32_t i = threadIdx.x; i < p.runs; i += workers) {
            run<T> one;
            one.load(x + i * V);
#pragma unroll
            for (int j = 0; j < V; ++j) max = larger(max, wd_widen(one.get(j)));
        }
        const A base = base_of(max);
#pragma unroll 2
        for (uint32_t i = threadIdx.x; i < p.runs; i += workers) {
            run<T> one;
            one.load(x + i * V);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                sum[j % 2] += term<T, false>(wd_widen(one.get(j)), (A)0, base, a.log);
            }
        }
        return {max, sum[0] + sum[1]};
    }

    template <bool LOG>
    __device__ __forceinline__ void answer_as(const ring_part<T> &p, const T *x,
                                              const ring_answer<A> &answer) const
    {
        T *to = static_cast<T *>(a.y) + p.at;
        const bool at_once = a.plain && !r.apart;
#pragma unroll 2
        for (uint32_t i = threadIdx.x; i < p.runs; i += workers) {
            run<T> one, out;
            if (!at_once || !p.is_whole(i)) {
#pragma unroll 1
                for (uint32_t k = i * V; k < min((i + 1) * V, p.inside); ++k) {
                    if (k < p.before) continue;
                    blend<T>(
                        a, to + k,
                        result<T, false>(wd_widen(x[k]), (A)0, answer.all, answer.number, LOG));
                }
                continue;
            }
            one.load(x + i * V);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                out.put(j, narrow<T>(result<T, false>(wd_widen(one.get(j)), (A)0, answer.all,
                                                      answer.number, LOG)));
            }
            if (a.streaming) out.store_streaming(to + i * V);
            else out.store(to + i * V);
        }
    }

    __device__ __forceinline__ void answer(uint32_t index, int64_t row,
                                           const ring_answer<A> &all) const
    {
        const ring_part<T> p(r, rank, row);
        const T *x = slot(index);
        if (a.log) answer_as<true>(p, x, all);
        else answer_as<false>(p, x, all);
    }
};

// All but the latest `count` groups of copies have come, 1 to 5: as many as there may be slots beyond the delay.
__device__ __forceinline__ void wait_but(uint32_t count)
{
    switch (count) {
    case 1: wd_copies_wait<1>(); return;
    case 2: wd_copies_wait<2>(); return;
    case 3: wd_copies_wait<3>(); return;
    case 4: wd_copies_wait<4>(); return;
    default: wd_copies_wait<5>(); return;
    }
}

template <class T>
__device__ __forceinline__ void work(const softmax_ring_args &r, ring_shared<acc<T>> &shared,
                                     uint32_t team, uint32_t rank, uint32_t turns)
{
    using A = acc<T>;
    constexpr uint32_t delay = SOFTMAX_RING_DELAY;
    const ring_worker<T> w = {r, r.rows, reinterpret_cast<T *>(wd_dynamic_shared<uint4>()),
                              blockDim.x - MESSENGERS, rank};
    const uint32_t ahead = r.slots - delay;
    uint32_t next = 0, now = 0, last = 0; // slots of the rows to be requested, looked at, answered
    for (uint32_t t = 0; t < ahead; ++t) {
        if (t < turns) w.request(next, team + (int64_t)t * r.teams);
        next += 1;
        wd_copies_end();
    }
    for (uint32_t t = 0; t < turns + delay; ++t) {
        wait_but(ahead - 1);
        if (t < turns) {
            totals<A> mine = w.look(now, team + (int64_t)t * r.teams);
            mine = join_lanes(mine, 32);
            if (threadIdx.x % 32 == 0) shared.of_warp[t & 1][threadIdx.x / 32] = mine;
            now = now + 1 == r.slots ? 0 : now + 1;
        }
        __syncthreads();
        if (t >= delay) {
            w.answer(last, team + (int64_t)(t - delay) * r.teams, shared.answer[t & 1]);
            last = last + 1 == r.slots ? 0 : last + 1;
        }
        if (next == r.slots) next = 0;
        if (t + ahead < turns) w.request(next, team + (int64_t)(t + ahead) * r.teams);
        next += 1;
        wd_copies_end();
    }
    wd_copies_wait_all();
}

// ---- The warp that carries ----

template <class T>
__device__ __forceinline__ void carry(const softmax_ring_args &r, ring_shared<acc<T>> &shared,
                                      uint32_t team, uint32_t rank, uint32_t turns)
{
    using A = acc<T>;
    constexpr uint32_t delay = SOFTMAX_RING_DELAY;
    const softmax_vector_args &a = r.rows;
    const uint32_t lane = threadIdx.x % 32, warps = blockDim.x / 32 - 1, blocks = a.cluster;
    totals<A> *told =
        static_cast<totals<A> *>(a.partial) + (int64_t)team * SOFTMAX_RING_KEPT * blocks;
    uint32_t *counters = r.counters + team * (SOFTMAX_RING_DELAY * WD_COUNTER_WORDS);
    uint32_t older = 0, newer = 0; // what to wait with for the last two turns
    totals<A> all = {lowest<A>(), 0};
    for (uint32_t t = 0; t < turns + delay; ++t) {
        if (t >= delay) {
            const uint32_t turn = t - delay;
            const totals<A> *from = told + turn % SOFTMAX_RING_KEPT * blocks;
            if (lane == 0) {
                wd_await(counters + turn % SOFTMAX_RING_DELAY * WD_COUNTER_WORDS, older);
            }
            __syncwarp();
            all = {lowest<A>(), 0};
            for (uint32_t b = lane; b < blocks; b += 32) {
                const totals<A> one = {__ldcg(&from[b].max), __ldcg(&from[b].sum)};
                const A max = larger(all.max, one.max), base = base_of(max);
                all = {max, all.sum * exp_of(all.max - base) + one.sum * exp_of(one.max - base)};
            }
            all = join_lanes(all, 32);
            if (lane == 0) {
                shared.answer[t & 1] = {all, prepared<T>(all.sum, a.log)};
            }
        }
        __syncthreads();
        older = newer;
        if (t >= turns) continue;
        all = {lowest<A>(), 0};
        if (lane < warps) all = shared.of_warp[t & 1][lane];
        all = join_lanes(all, 32);
        if (lane == 0) {
            told[t % SOFTMAX_RING_KEPT * blocks + rank] = all;
            newer =
                wd_come(counters + t % SOFTMAX_RING_DELAY * WD_COUNTER_WORDS, blocks, rank == 0);
        }
    }
}

template <class T> __device__ void rows_ring(const softmax_ring_args &r)
{
    __shared__ ring_shared<acc<T>> shared;
    const uint32_t team = blockIdx.x / r.rows.cluster;
    const uint32_t rank = blockIdx.x - team * r.rows.cluster;
    const uint32_t turns =
        team < r.rows.rows ? (uint32_t)((r.rows.rows - team - 1) / r.teams) + 1 : 0;
    wd_wait_for_previous();
    if (threadIdx.x < blockDim.x - MESSENGERS) {
        work<T>(r, shared, team, rank, turns);
    } else {
        carry<T>(r, shared, team, rank, turns);
    }
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/softmax/softmax_ring_kernels.def"
#include "ops/kernels_device.inc"
