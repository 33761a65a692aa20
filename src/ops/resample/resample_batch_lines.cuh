// SPDX-License-Identifier: Apache-2.0
//
// Planes enlarged by two with samples on the corners of pixels, of lines at any alignment: a warp walks down the
// rows of x, whose lines lie in shared memory (resample_ring_lines.cuh). A plane's lines of y lie one behind the other,
// so what it makes of some rows goes through shared memory once more, as one piece of memory, of which whole 16
// bytes are stored: of a walk alone the first and the last ones are not whole.
#ifndef WD_OPS_RESAMPLE_BATCH_LINES_CUH
#define WD_OPS_RESAMPLE_BATCH_LINES_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/words.cuh"
#include "ops/resample/resample_batch_args.h"
#include "ops/resample/resample_ring_lines.cuh"

namespace {

enum {
    BATCH_STORE = 16,  // bytes, at once
    BATCH_COLUMNS = 4, // of x, of a lane, a warp apart
};

// What a warp has made and not stored yet, from the 16-byte boundary of y before it on. Pairs of elements lie
// at whole words, so behind where they belong by an element if they begin between two words of y.
template <class T> struct batch_stage {
    unsigned char *memory;
    unsigned char *to; // of y, for the beginning of `memory`
    uint32_t late;     // bytes, 0 or those of an element
    uint32_t used;     // bytes from `memory` on, as y has them
    uint32_t first;    // of them, in the first 16, those that are not ours
    uint32_t lane;

    __device__ __forceinline__ batch_stage(unsigned char *of_warp, T *y, uint32_t of_lane)
        : memory(of_warp), late((uint32_t)(uintptr_t)y % (2 * sizeof(T))),
          used((uint32_t)(uintptr_t)y % BATCH_STORE), first(used), lane(of_lane)
    {
        to = reinterpret_cast<unsigned char *>(y) - used;
    }

    // Pairs of the line that so many bytes of others are before.
    __device__ __forceinline__ uint32_t *line(uint32_t bytes) const
    {
        return reinterpret_cast<uint32_t *>(memory + (used + late + bytes));
    }

    // Some elements of the 16 bytes from `at` on, from byte `begin` to the one before `end`.
    __device__ __forceinline__ void store_part(uint32_t at, uint32_t begin, uint32_t end) const
    {
        const uint32_t byte = lane * (uint32_t)sizeof(T);
        if (byte < begin || byte >= end) return;
        *reinterpret_cast<T *>(to + at + byte) =
            *reinterpret_cast<const T *>(memory + at + late + byte);
    }

    // So many bytes more are there: whole 16 bytes go, what is left comes to the beginning.
    __device__ __forceinline__ void turn(uint32_t bytes)
    {
        __syncwarp();
        used += bytes;
        const uint32_t whole = used / BATCH_STORE * BATCH_STORE;
        uint32_t at = lane * BATCH_STORE;
        if (first > 0 && whole > 0) { // only of a walk's beginning
            store_part(0, first, BATCH_STORE);
            first = 0;
            at += BATCH_STORE;
        }
        auto shifted = [&](uint32_t low, uint32_t high) {
            return (uint32_t)(((uint64_t)high << 32 | low) >> (late * 8));
        };
#pragma unroll 1
        for (; at < whole; at += RING_WARP * BATCH_STORE) {
            const uint4 has = *reinterpret_cast<const uint4 *>(memory + at);
            const uint32_t next = *reinterpret_cast<const uint32_t *>(memory + at + BATCH_STORE);
            *reinterpret_cast<uint4 *>(to + at) =
                make_uint4(shifted(has.x, has.y), shifted(has.y, has.z), shifted(has.z, has.w),
                           shifted(has.w, next));
        }
        __syncwarp();
        uint32_t left = 0;
        if (lane <= BATCH_STORE / 4)
            left = *reinterpret_cast<uint32_t *>(memory + whole + lane * 4);
        __syncwarp();
        if (lane <= BATCH_STORE / 4) *reinterpret_cast<uint32_t *>(memory + lane * 4) = left;
        to += whole;
        used -= whole;
    }

    __device__ __forceinline__ void end(void) const
    {
        __syncwarp();
        store_part(0, first, used);
    }
};

template <class T>
__device__ __forceinline__ void resample_batch_lines(const resample_batch_args &a)
{
    wd_wait_for_previous();
    const uint32_t walk = threadIdx.x / RING_WARP, lane = threadIdx.x % RING_WARP;
    uint32_t n = blockIdx.x * (blockDim.x / RING_WARP) + walk;
    if (n >= a.count) return;
    const int begin = (int)wd_take_rest(n, a.by_band) * a.rows, end = min(begin + a.rows, a.high);
    const size_t plane = (size_t)n * (uint32_t)a.high * (uint32_t)a.wide;
    const uint32_t wide = (uint32_t)a.wide;
    const uint32_t line = wide * (uint32_t)sizeof(T);
    const int last = min(end, a.high - 1);
    line_ring<T> ring; // of the rows of a turn at once
    ring.memory = wd_dynamic_shared<unsigned char>() + walk * a.size;
    ring.begin = (uintptr_t)a.from;
    ring.end = ring.begin + (size_t)a.bytes;
    ring.line_bytes = BATCH_TURN * line;
    ring.used = 0;
    ring.last = (last - begin) / BATCH_TURN;
    ring.next = ring.begin + plane * sizeof(T) + (size_t)(uint32_t)begin * line;
    ring.skip = 0;
    ring.length = ring.line_bytes;
    ring.pitch = a.pitch;
    ring.mask = RING_SHORT - 1;
    ring.lane = lane;
    const uint32_t phase = (uint32_t)ring.next;
    ring.look_around();
    auto ask = [&](int turn) { // the last one may have fewer rows
        ring.length = (uint32_t)min(BATCH_TURN, last + 1 - begin - turn * BATCH_TURN) * line;
        ring.ask(turn);
    };
#pragma unroll 1
    for (int i = 0; i < RING_SHORT - 1; ++i) ask(i);
    auto first_of = [&](int turn) {
        return ring.slot(turn) + (phase + (uint32_t)turn * ring.line_bytes) % 16;
    };
    batch_stage<T> stage(ring.memory + RING_SHORT * a.pitch + BATCH_OVER,
                         static_cast<T *>(a.out) + plane * 4 + (size_t)(uint32_t)begin * (wide * 4),
                         lane);
    const float alpha = a.alpha, half = 0.5f * a.alpha;
    // two elements of a line of y for each of a lane's columns from `first` on
    auto spread = [&](const unsigned char *row, uint32_t first, float(&made)[2 * BATCH_COLUMNS]) {
        const T *x = reinterpret_cast<const T *>(row) + first;
#pragma unroll
        for (int c = 0; c < BATCH_COLUMNS; ++c) {
            const float own = wd_widen(x[c * RING_WARP]);
            const float next = wd_widen(x[c * RING_WARP + 1]);
            made[2 * c] = alpha * own;
            // beyond the edge is the edge
            made[2 * c + 1] = half * own + half * (first + c * RING_WARP + 1 < wide ? next : own);
        }
    };
    auto put = [&](uint32_t *to, uint32_t first, const float(&made)[2 * BATCH_COLUMNS]) {
#pragma unroll
        for (int c = 0; c < BATCH_COLUMNS; ++c) {
            if (first + c * RING_WARP < wide) {
                to[first + c * RING_WARP] = wd_narrow_pair(made[2 * c], made[2 * c + 1], T());
            }
        }
    };
    int row = begin;
#pragma unroll 1
    for (int turn = 0; row < end; ++turn, row += BATCH_TURN) {
        wd_copies_wait<RING_SHORT - 3>(); // this turn's, and the row behind
        __syncwarp();                     // and all have done with the rows before
        ask(turn + RING_SHORT - 1);
        const unsigned char *rows[BATCH_TURN + 1];
        rows[0] = first_of(turn);
#pragma unroll
        for (int r = 1; r <= BATCH_TURN; ++r) {
            rows[r] = r < BATCH_TURN ? rows[r - 1] + line : first_of(turn + 1);
            if (row + r > last) rows[r] = rows[r - 1]; // beyond the edge is the edge
        }
#pragma unroll 1
        for (uint32_t first = lane; first < wide + lane; first += BATCH_COLUMNS * RING_WARP) {
            float above[2 * BATCH_COLUMNS], below[2 * BATCH_COLUMNS];
            spread(rows[0], first, above);
#pragma unroll
            for (int r = 0; r < BATCH_TURN; ++r) {
                if (row + r >= end) break;
                spread(rows[r + 1], first, below);
                put(stage.line((uint32_t)(2 * r) * 2 * line), first, above);
#pragma unroll
                for (int i = 0; i < 2 * BATCH_COLUMNS; ++i) {
                    above[i] = 0.5f * above[i] + 0.5f * below[i];
                }
                put(stage.line((uint32_t)(2 * r + 1) * 2 * line), first, above);
#pragma unroll
                for (int i = 0; i < 2 * BATCH_COLUMNS; ++i) above[i] = below[i];
            }
        }
        stage.turn((uint32_t)min(BATCH_TURN, end - row) * 4 * line);
    }
    stage.end();
    wd_copies_wait_all();
}

} // namespace

#endif
