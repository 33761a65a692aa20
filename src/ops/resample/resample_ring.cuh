// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums of lines of any alignment, by walks of a warp each that need no other warp: the lines
// under a walk go through its own ring. So a walk is as long as there are warps enough, and what it
// finds out at its beginning is paid once; lines at the ends of short walks are not read twice.
#ifndef WD_OPS_RESAMPLE_RING_CUH
#define WD_OPS_RESAMPLE_RING_CUH

#include "ops/resample/resample_ring_lines.cuh"
#include "ops/resample/resample_walk.cuh"

namespace {

// A thread has WALK_PLACES places of a line, a warp apart.
template <class T, int TAPS> struct ring_line : staged_line<T, WALK_PLACES, TAPS> {
    typedef staged_line<T, WALK_PLACES, TAPS> staged;
    typedef typename staged::A A;
    line_ring<T> ring;

    __device__ __forceinline__ ring_line(const resample_ring_args &args, const walker &w,
                                         const stage_of &s)
        : staged(args.walk, w, s)
    {
        const resample_walk_args &walk = args.walk;
        ring.memory = wd_dynamic_shared<unsigned char>() + walk.stage_at + w.walk * args.size;
        ring.begin = (uintptr_t)walk.from;
        ring.end = ring.begin + (size_t)walk.total * sizeof(T);
        ring.next = ring.begin + (s.row + (uint32_t)s.first_line) * this->line_bytes +
                    (uint32_t)s.first_column * this->step;
        ring.line_bytes = this->line_bytes;
        ring.skip = 0;
        ring.length = s.length;
        ring.pitch = walk.pitch;
        ring.mask = walk.stage_lines - 1;
        ring.lane = w.thread;
        ring.used = s.first_line;
        ring.last = s.last_line;
        ring.start();
    }

    __device__ __forceinline__ void sums(int line, A *sum) const
    {
        ring.turn(line);
        const uint32_t shift = this->phase + (uint32_t)line * this->line_bytes;
        this->add(ring.slot(line) + shift % 16, sum);
    }
    __device__ __forceinline__ bool is_deep() const
    {
        return false;
    }

    // Nearly all calls blend with nothing, and a line's places are a warp apart.
    __device__ __forceinline__ void put(T *line, A *sum) const
    {
        if (this->a.blends) {
            staged::put(line, sum);
            return;
        }
        this->clear_empty(sum);
        T *to = line + this->at;
#pragma unroll
        for (int l = 0; l < WALK_PLACES; ++l) {
            T narrow;
            wd_narrow(narrow, sum[l]);
            if (l * RING_WARP < this->places) to[l * RING_WARP] = narrow;
        }
    }
};

template <class T, int TAPS, int ACTIVE>
__device__ __forceinline__ void resample_ring(const resample_ring_args &a)
{
    wd_wait_for_previous();
    walker w(a.walk);
    if (w.begin >= w.end) return;
    w.first_row = w.begin; // lines are those of the walk, not of the block
    w.last_row = w.end - 1;
    stage_of s;
    s.set<acc<T>>(a.walk, w, (uint32_t)sizeof(T));
    const ring_line<T, TAPS> across(a, w, s);
    note<acc<T>, ACTIVE>(a.walk, w);
    __syncwarp();
    walk_rows<ring_line<T, TAPS>, ACTIVE>(a.walk, w, across);
    wd_copies_wait_all();
}

} // namespace

#endif
