// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums of runs of channels, by walks down the rows whose lines are asked for some lines ahead: a
// thread has its own 16 bytes of each tap of each line in shared memory, so that as many lines are under
// way as no registers would hold, and nobody waits for anybody. What neighbours share comes from the
// caches.
#ifndef WD_OPS_RESAMPLE_RING_RUNS_CUH
#define WD_OPS_RESAMPLE_RING_RUNS_CUH

#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_walk.cuh"

namespace {

template <class T, int V, int TAPS> struct ring_run : direct_line<T, V, TAPS> {
    typedef direct_line<T, V, TAPS> direct;
    typedef typename direct::A A;
    static constexpr bool AHEAD = false; /* as walks know it */
    unsigned char *slots;
    uint32_t tap_size;
    uint32_t line_size;
    uint32_t mask; /* lines - 1 */
    int last;
    mutable int used; /* lines before it were added up */

    __device__ __forceinline__ ring_run(const resample_ring_args &args, const walker &w,
                                        uint32_t column, uint32_t channel)
        : direct(args.walk, w, column, channel)
    {
        const resample_walk_args &walk = args.walk;
        slots = wd_dynamic_shared<unsigned char>() + walk.stage_at + 16 * threadIdx.x;
        tap_size = 16 * blockDim.x;
        line_size = tap_size * args.size;
        mask = walk.stage_lines - 1;
        used = taps_of<A>(walk, 1, (uint32_t)w.begin).first;
        last = taps_of<A>(walk, 1, (uint32_t)w.end - 1).end(walk, 1) - 1;
#pragma unroll 1
        for (uint32_t i = 0; i < mask; ++i) ask(used + (int)i);
    }

    __device__ __forceinline__ unsigned char *slot(int line) const
    {
        return slots + ((uint32_t)line & mask) * line_size;
    }

    // A group of copies, behind the last line of none.
    __device__ __forceinline__ void ask(int line) const
    {
        if (line <= last) {
            const T *p = this->from + (uint32_t)line * this->pitch;
            unsigned char *to = slot(line);
#pragma unroll
            for (int t = 0; t < TAPS; ++t) {
                if (t < this->count)
                    wd_copy_async<16, true>(to + t * tap_size, p + (uint32_t)t * this->a.inner);
            }
        }
        wd_copies_end();
    }

    __device__ __forceinline__ void sums(int line, A *sum) const
    {
#pragma unroll 1
        for (; used <= line; ++used) {
            if (mask == RING_LONG - 1) wd_copies_wait<RING_LONG - 2>();
            else wd_copies_wait<RING_SHORT - 2>();
            ask(used + (int)mask); // where the line before was, which is added up
        }
        typename direct::raw r;
        const unsigned char *from = slot(line);
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            if (t < this->count) r.run[t].load(reinterpret_cast<const T *>(from + t * tap_size));
        }
        this->reduce(r, sum);
    }
    __device__ __forceinline__ bool is_deep() const
    {
        return false;
    }
};

template <class T, int V, int TAPS, int ACTIVE>
__device__ __forceinline__ void resample_ring_runs(const resample_ring_args &a)
{
    wd_wait_for_previous();
    const walker w(a.walk);
    note<acc<T>, ACTIVE>(a.walk, w);
    __syncthreads();
    if (w.thread >= w.units || w.begin >= w.end) return;
    uint32_t column = w.unit + w.thread;
    const uint32_t channel = wd_take_rest(column, a.walk.by_run) * V;
    const ring_run<T, V, TAPS> across(a, w, column, channel);
    walk_rows<ring_run<T, V, TAPS>, ACTIVE>(a.walk, w, across);
    wd_copies_wait_all();
}

} // namespace

#endif
