// SPDX-License-Identifier: Apache-2.0
//
// A warp's own lines in shared memory: each is asked for some lines before it is looked at, and lies
// there from the 16-byte boundary before it, at whatever alignment. Warps wait for no other warp.
#ifndef WD_OPS_RESAMPLE_RING_LINES_CUH
#define WD_OPS_RESAMPLE_RING_LINES_CUH

#include "gpu/device/async.cuh"
#include "ops/resample/resample_ring_args.h"

namespace {

// Where results go, as wd_put_run has it: scalars converted once, not at every store.
struct ring_out {
    void *out;
    float alpha;
    float beta;
    bool scales;
    bool blends;
    bool streaming;
    __device__ __forceinline__ explicit ring_out(const resample_places_args &a)
        : out(a.out), alpha((float)a.alpha), beta((float)a.beta), scales(a.scales != 0),
          blends(a.blends != 0), streaming(a.streaming != 0)
    {
    }
};

// Lines used .. last of a tensor of T, bytes begin .. end-1; of each the bytes skip .. length-1, counted
// from `next` for line used + lines - 1, the first one that start() leaves to be asked for.
template <class T> struct line_ring {
    unsigned char *memory;
    uintptr_t begin;
    uintptr_t end;
    mutable uintptr_t next;
    uint32_t line_bytes; /* from line to line */
    uint32_t skip;
    uint32_t length;
    uint32_t pitch;
    uint32_t mask; /* lines - 1 */
    uint32_t lane;
    mutable int used; /* lines before it were looked at */
    int last;

    __device__ __forceinline__ void start(void) const
    {
#pragma unroll 1
        for (uint32_t i = 0; i < mask; ++i) ask(used + (int)i);
    }

    // What is asked for of a line, nothing behind the last.
    __device__ __forceinline__ void copy(int line) const
    {
        if (line <= last) {
            unsigned char *to = slot(line);
            const uintptr_t from = next + skip, till = next + length;
            uintptr_t source = next - next % 16 + 16 * lane;
#pragma unroll 1
            for (uint32_t at = 16 * lane; source < till; at += 16 * RING_WARP) {
                if (source >= begin && source + 16 <= end) {
                    if (source + 16 > from) {
                        wd_copy_async<16, false>(to + at, reinterpret_cast<const void *>(source));
                    }
                } else { // what lies around the tensor is not read
#pragma unroll 1
                    for (uint32_t i = 0; i < 16; i += (uint32_t)sizeof(T)) {
                        if (source + i < from || source + i >= till) continue;
                        *reinterpret_cast<T *>(to + at + i) =
                            *reinterpret_cast<const T *>(source + i);
                    }
                }
                source += 16 * RING_WARP;
            }
        }
        next += line_bytes;
    }

    // A group of copies, of no line as well, so that groups can be counted.
    __device__ __forceinline__ void ask(int line) const
    {
        copy(line);
        wd_copies_end();
    }

    // Until `line` is there; lines are wanted in their order, and those before it are lost.
    __device__ __forceinline__ void turn(int line) const
    {
#pragma unroll 1
        for (; used <= line; ++used) {
            if (mask == RING_LONG - 1) wd_copies_wait<RING_LONG - 2>();
            else wd_copies_wait<RING_SHORT - 2>();
            __syncwarp(); // and all have done with the line before
            ask(used + (int)mask);
        }
    }

    __device__ __forceinline__ unsigned char *slot(int line) const
    {
        return memory + ((uint32_t)line & mask) * pitch;
    }
};

} // namespace

#endif
