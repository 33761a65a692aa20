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

// A thread has L places of a line, a warp apart: what a line costs by itself is shared by so many.
template <class T, int L, int TAPS> struct ring_line : staged_line<T, L, TAPS> {
    typedef staged_line<T, L, TAPS> staged;
    static constexpr bool PLANES = TAPS == RING_PLANES_TAPS && L == RING_PLACES;
    typedef typename staged::A A;
    line_ring<T> ring;
    uint32_t plane_of; /* of each place, of planes side by side: four bits each */
    const resample_ring_args &more;

    __device__ __forceinline__ ring_line(const resample_ring_args &args, const walker &w,
                                         const stage_of &s)
        : staged(args.walk, w, s,
                 [&args](uint32_t &column) {
                     if (!PLANES || args.planes == 1) return 0u;
                     const uint32_t rest = wd_take_rest(column, args.by_columns);
                     const uint32_t plane = column;
                     column = rest;
                     return plane;
                 }),
          plane_of(0), more(args)
    {
        static_assert(L <= 8, "planes of places, in a word");
        if (PLANES && args.planes > 1) {
#pragma unroll
            for (int l = 0; l < L; ++l) {
                const uint32_t column = min(w.thread + l * RING_WARP, w.units - 1);
                plane_of |= wd_fastdiv_quotient(column, args.by_columns) << (4 * l);
            }
        }
        const resample_walk_args &walk = args.walk;
        this->stage += w.walk * args.size;
        ring.memory = const_cast<unsigned char *>(this->stage);
        ring.begin = (uintptr_t)walk.from;
        ring.end = ring.begin + (size_t)walk.total * sizeof(T);
        ring.next = ring.begin + (s.row + (uint32_t)s.first_line) * this->line_bytes +
                    (uint32_t)s.first_column * this->step;
        ring.line_bytes = this->line_bytes;
        ring.skip = 0;
        ring.length = s.length;
        ring.pitch = walk.pitch;
        if (PLANES) {
            ring.pieces = min(args.planes, args.outer - w.outer); // of the last walk fewer
            ring.piece_bytes = args.plane_bytes;
        }
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
        this->add(ring.slot_at(line) + shift % 16, sum);
    }
    __device__ __forceinline__ bool is_deep() const
    {
        return false;
    }

    __device__ __forceinline__ uint32_t out_at(int l) const
    {
        const uint32_t in_line = this->at + l * RING_WARP;
        return PLANES ? in_line + (plane_of >> (4 * l) & 15) * more.between : in_line;
    }

    // Nearly all calls blend with nothing, and a line's places are a warp apart.
    __device__ __forceinline__ void put(T *line, A *sum) const
    {
        this->clear_empty(sum);
        if (this->a.blends) {
            const A beta = (A)this->a.beta;
#pragma unroll
            for (int l = 0; l < L; ++l) {
                if (l * RING_WARP < this->places) sum[l] += beta * wd_widen(line[out_at(l)]);
            }
        }
        if (ring.pieces == 1 && this->units == L * RING_WARP) {
            T *to = line + this->at;
#pragma unroll
            for (int l = 0; l < L; ++l) wd_narrow(to[l * RING_WARP], sum[l]);
            return;
        }
#pragma unroll
        for (int l = 0; l < L; ++l) {
            if (this->is_idle(l)) break;
            T narrow;
            wd_narrow(narrow, sum[l]);
            if (l * RING_WARP < this->places) line[out_at(l)] = narrow;
        }
    }
};

template <class T, int L, int TAPS, int ACTIVE>
__device__ __forceinline__ void resample_ring(const resample_ring_args &a)
{
    wd_wait_for_previous();
    walker w(a.walk);
    if (w.begin >= w.end) return;
    w.first_row = w.begin; // lines are those of the walk, not of the block
    w.last_row = w.end - 1;
    const bool planes = ring_line<T, L, TAPS>::PLANES && a.planes > 1;
    if (planes) w.outer *= a.planes;
    if (planes) w.units = a.by_columns.divisor;
    stage_of s;
    s.set<acc<T>>(a.walk, w, (uint32_t)sizeof(T));
    if (planes) w.units *= min(a.planes, a.outer - w.outer);
    const ring_line<T, L, TAPS> across(a, w, s);
    note<acc<T>, ACTIVE>(a.walk, w);
    __syncwarp();
    walk_rows<ring_line<T, L, TAPS>, ACTIVE>(a.walk, w, across);
    wd_copies_wait_all();
}

} // namespace

#endif
