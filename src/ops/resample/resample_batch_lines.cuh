// SPDX-License-Identifier: Apache-2.0
//
// Planes enlarged by two with samples on the corners of pixels, of lines at any alignment: a warp has a part of a
// line of y and walks down the rows of x, whose lines lie in shared memory (resample_ring_lines.cuh). Where 16 bytes of y
// begin differs from row to row, and so does what a lane has of it: nearly all that is stored are whole 16 bytes.
#ifndef WD_OPS_RESAMPLE_BATCH_LINES_CUH
#define WD_OPS_RESAMPLE_BATCH_LINES_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/words.cuh"
#include "ops/resample/resample_batch_args.h"
#include "ops/resample/resample_ring_lines.cuh"

namespace {

// A lane's columns of x for eight elements of y: sample 2p is pixel p, sample 2p + 1 lies between p and p + 1.
enum { BATCH_RUN = 8, BATCH_COLUMNS = BATCH_RUN / 2 + 1 };

template <class T> struct batch_line {
    int first;  // element of the line at which the lane's run begins
    int length; // of the line
    bool odd;   // it begins between two pixels
    T *to;

    __device__ __forceinline__ batch_line(T *line, int of_length, uint32_t run)
        : length(of_length), to(line)
    {
        const uint32_t before = (uint32_t)((uintptr_t)line / sizeof(T) % BATCH_RUN);
        first = (int)(run * BATCH_RUN) - (int)before;
        odd = before % 2 != 0;
    }

    __device__ __forceinline__ void put(const float (&x)[BATCH_COLUMNS]) const
    {
        float made[BATCH_RUN];
        wd_run<T, BATCH_RUN> run;
#pragma unroll
        for (int i = 0; i < BATCH_RUN / 2; ++i) {
            const float middle = 0.5f * x[i] + 0.5f * x[i + 1];
            made[2 * i] = odd ? middle : x[i];
            made[2 * i + 1] = odd ? x[i + 1] : middle;
        }
        wd_narrow_run(run, made);
        if (first >= 0 && first + BATCH_RUN <= length) {
            run.store(to + first);
            return;
        }
#pragma unroll
        for (int i = 0; i < BATCH_RUN; ++i) {
            if ((uint32_t)(first + i) < (uint32_t)length) to[first + i] = run.get(i);
        }
    }
};

template <class T>
__device__ __forceinline__ void resample_batch_lines(const resample_batch_args &a)
{
    wd_wait_for_previous();
    const uint32_t walk = threadIdx.x / RING_WARP, lane = threadIdx.x % RING_WARP;
    uint32_t n = blockIdx.x * BATCH_WALKS + walk;
    if (n >= a.count) return;
    const uint32_t segment = wd_take_rest(n, a.by_line);
    const int begin = (int)wd_take_rest(n, a.by_band) * a.rows, end = min(begin + a.rows, a.high);
    // columns of x, from the first that the segment may want
    const int left = max((int)segment * BATCH_HALF - BATCH_RUN / 2, 0);
    const int right = min((int)segment * BATCH_HALF + BATCH_HALF + 1, a.wide);
    const size_t plane = (size_t)n * (uint32_t)a.high * (uint32_t)a.wide;
    line_ring<T> ring;
    // a lane's first columns may lie before the first line, where nothing counts
    ring.memory = wd_dynamic_shared<unsigned char>() + walk * BATCH_RING + 16;
    ring.begin = (uintptr_t)a.from;
    ring.end = ring.begin + (size_t)a.bytes;
    ring.line_bytes = (uint32_t)a.wide * (uint32_t)sizeof(T);
    ring.used = begin;
    ring.last = min(end, a.high - 1);
    ring.next = ring.begin + (plane + (uint32_t)left) * sizeof(T) +
                (size_t)(uint32_t)begin * ring.line_bytes;
    ring.skip = 0;
    ring.length = (uint32_t)(right - left) * (uint32_t)sizeof(T);
    ring.pitch = BATCH_PITCH;
    ring.mask = RING_LONG - 1;
    ring.lane = lane;
    const uint32_t phase = (uint32_t)ring.next - (uint32_t)begin * ring.line_bytes;
    ring.start();
    auto line_of = [&](int line) {
        return reinterpret_cast<T *>(ring.slot(line) +
                                     (phase + (uint32_t)line * ring.line_bytes) % 16);
    };
    auto turn = [&](int line) {
        ring.turn(line);
        // beyond the edge is the edge
        T *x = line_of(line) + (a.wide - left);
        if (right == a.wide && lane == 0) x[0] = x[-1];
        __syncwarp();
    };
    auto load = [&](int line, const batch_line<T> &of, float(&x)[BATCH_COLUMNS]) {
        const T *from = line_of(line) + ((of.first >> 1) - left);
#pragma unroll
        for (int i = 0; i < BATCH_COLUMNS; ++i) x[i] = wd_widen(from[i]);
    };
    const float alpha = a.alpha, half_alpha = 0.5f * alpha;
    const int length = 2 * a.wide;
    const uint32_t run = segment * RING_WARP + lane;
    T *y = static_cast<T *>(a.out) + plane * 4 + (size_t)(uint32_t)begin * (uint32_t)length * 2;
    turn(begin);
#pragma unroll 1
    for (int row = begin; row < end; ++row, y += 2 * length) {
        float x[BATCH_COLUMNS], below[BATCH_COLUMNS];
        const batch_line<T> on(y, length, run), between(y + length, length, run);
        load(row, on, x);
#pragma unroll
        for (int i = 0; i < BATCH_COLUMNS; ++i) x[i] *= alpha;
        on.put(x);
        load(row, between, x);
        if (row < ring.last) turn(row + 1);
        load(min(row + 1, ring.last), between, below);
#pragma unroll
        for (int i = 0; i < BATCH_COLUMNS; ++i) x[i] = half_alpha * x[i] + half_alpha * below[i];
        between.put(x);
    }
    wd_copies_wait_all();
}

} // namespace

#endif
