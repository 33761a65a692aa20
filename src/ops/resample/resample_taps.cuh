// SPDX-License-Identifier: Apache-2.0
//
// Of walks down the rows: what a table says of an entry, where a block and a thread are, and what counts
// for which row, which is noted in shared memory once a walk.
#ifndef WD_OPS_RESAMPLE_TAPS_CUH
#define WD_OPS_RESAMPLE_TAPS_CUH

#include "gpu/device/shared.cuh"
#include "ops/resample/resample_vector.cuh"
#include "ops/resample/resample_walk_args.h"

namespace {

// What a table says of window or pixel i of an axis.
template <class A> struct taps_of {
    int first;
    int count;
    int slot;         /* of a table in the arguments */
    const A *weights; /* in memory */

    __device__ __forceinline__ taps_of(const resample_walk_args &a, int axis, uint32_t i)
    {
        if (a.compact) {
            const resample_near &x = a.near[axis];
            int turns = 0;
            slot = (int)i;
            if ((int)i >= x.tail) {
                slot = (int)i - x.tail + x.head + (int)x.by_period.divisor;
            } else if ((int)i >= x.head) {
                turns = (int)wd_fastdiv_quotient(i - (uint32_t)x.head, x.by_period);
                slot = (int)i - turns * (int)x.by_period.divisor;
            }
            first = x.first[slot] + turns * x.shift;
            count = x.count[slot];
            weights = nullptr;
        } else {
            const resample_axis &x = a.axis[axis];
            const resample_entry e = entry_of(x.entries, i);
            first = e.first;
            count = e.count;
            slot = 0;
            weights = static_cast<const A *>(x.weights) + (size_t)i * x.taps;
        }
    }
    __device__ __forceinline__ A weight(const resample_walk_args &a, int axis, int t) const
    {
        return a.compact ? (A)a.near[axis].weight[slot][t] : __ldg(weights + t);
    }
    // Behind the last element that counts.
    __device__ __forceinline__ int end(const resample_walk_args &a, int axis) const
    {
        return min(first + count, a.axis[axis].from);
    }
};

// Where a block and a thread are.
struct walker {
    uint32_t thread; /* of the walk */
    uint32_t walk;   /* of the block */
    uint32_t unit;   /* of the line, where the segment begins */
    uint32_t units;  /* of the segment */
    int begin;       /* rows of the walk */
    int end;
    int first_row; /* and of the block */
    int last_row;
    uint32_t depth;
    uint32_t outer;

    __device__ __forceinline__ explicit walker(const resample_walk_args &a)
    {
        uint32_t n = blockIdx.x;
        unit = wd_take_rest(n, a.by_segments) * a.segment;
        units = min(a.segment, a.units - unit);
        const int band = (int)wd_take_rest(n, a.by_bands) * a.walks;
        depth = wd_take_rest(n, a.by_depth);
        outer = n;
        walk = threadIdx.x / a.threads;
        thread = threadIdx.x - walk * a.threads;
        const int out = a.axis[1].out;
        first_row = band * a.rows;
        last_row = min(first_row + a.walks * a.rows, out) - 1;
        begin = min(first_row + (int)walk * a.rows, out);
        end = min(begin + a.rows, out);
    }
};

// ---- What rows need ----

// A row of `out`: of at most two lines first, first + 1, which of them count, and how much; of more,
// the lines first .. end-1.
template <class A> struct __align__(16) walk_row
{
    int first;
    int uses; /* or end */
    A weight[2];
};

template <class A>
__device__ __forceinline__ walk_row<A> *rows_of(const resample_walk_args &a, uint32_t walk)
{
    return wd_dynamic_shared<walk_row<A>>() + walk * (uint32_t)a.rows;
}

template <class A>
__device__ __forceinline__ A *weights_of(const resample_walk_args &a, uint32_t walk)
{
    return reinterpret_cast<A *>(wd_dynamic_shared<unsigned char>() + a.weights_at +
                                 walk * a.weights_size);
}

// What all weights of rows are multiplied by: alpha, and the weight of a depth by itself.
template <class A>
__device__ __forceinline__ A scale_of(const resample_walk_args &a, const walker &w)
{
    const taps_of<A> d(a, 0, w.depth);
    return d.count == 1 ? (A)a.alpha * d.weight(a, 0, 0) : (A)a.alpha;
}

template <class A>
__device__ __forceinline__ void note_rows(const resample_walk_args &a, const walker &w)
{
    const A scale = scale_of<A>(a, w);
    walk_row<A> *rows = rows_of<A>(a, w.walk);
    for (int row = w.begin + (int)w.thread; row < w.end; row += (int)a.threads) {
        const taps_of<A> e(a, 1, (uint32_t)row);
        walk_row<A> r;
        r.weight[0] = e.count > 0 ? scale * e.weight(a, 1, 0) : (A)0;
        r.weight[1] = e.count > 1 ? scale * e.weight(a, 1, 1) : (A)0;
        r.first = e.first;
        r.uses = (r.weight[0] != 0 ? 1 : 0) | (r.weight[1] != 0 ? 2 : 0);
        rows[row - w.begin] = r;
    }
}

// Where windows are longer: a line's weights for the row in turn, which is the first one that it is not
// behind, and those after it.
template <class A, int ACTIVE>
__device__ __forceinline__ void note_lines(const resample_walk_args &a, const walker &w)
{
    const A scale = scale_of<A>(a, w);
    walk_row<A> *rows = rows_of<A>(a, w.walk);
    A *of_lines = weights_of<A>(a, w.walk);
    const int line0 = taps_of<A>(a, 1, (uint32_t)min(w.begin, a.axis[1].out - 1)).first;
    for (int row = w.begin + (int)w.thread; row < w.end; row += (int)a.threads) {
        const taps_of<A> e(a, 1, (uint32_t)row);
        int line = e.first;
        if (row > w.begin) line = max(line, taps_of<A>(a, 1, (uint32_t)row - 1).end(a, 1));
        walk_row<A> r;
        r.first = line;
        r.uses = e.end(a, 1);
        r.weight[0] = r.weight[1] = 0;
        rows[row - w.begin] = r;
#pragma unroll 1
        for (int i = 0; i < ACTIVE; ++i) {
            const bool there = row + i < w.end;
            const taps_of<A> other(a, 1, (uint32_t)(there ? row + i : row));
            for (int l = line; l < r.uses; ++l) {
                const int tap = l - other.first;
                const bool counts = there && tap >= 0 && tap < other.count;
                of_lines[(l - line0) * ACTIVE + i] =
                    counts ? scale * other.weight(a, 1, tap) : (A)0;
            }
        }
    }
}

} // namespace

#endif
