// SPDX-License-Identifier: Apache-2.0
//
// A warp's own lines in shared memory: each is asked for some lines before it is looked at, and lies
// there from the 16-byte boundary before it, at whatever alignment. Warps wait for no other warp.
#ifndef WD_OPS_RESAMPLE_RING_LINES_CUH
#define WD_OPS_RESAMPLE_RING_LINES_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/item.cuh"
#include "ops/resample/resample_ring_args.h"

namespace {

// What lies `line` lines of so many bytes behind `first`.
template <class T> __device__ __forceinline__ T *line_at(T *first, int line, uint32_t pitch)
{
    typedef unsigned char byte;
    return (T *)((byte *)first + (size_t)(uint32_t)line * pitch);
}

// Where results go, as wd_put_run has it: scalars converted once, not at every store; most calls are plain.
struct ring_out {
    void *out;
    float alpha;
    float beta;
    bool scales;
    bool blends;
    bool streaming;
    bool plain; /* alpha is 1, beta 0 */
    __device__ __forceinline__ explicit ring_out(const resample_places_args &a)
        : out(a.out), alpha((float)a.alpha), beta((float)a.beta), scales(a.scales != 0),
          blends(a.blends != 0), streaming(a.streaming != 0), plain(alpha == 1.0f && !blends)
    {
    }
    // A thread's elements of a line, a warp apart, of which there are those before `count`.
    template <class T, int L>
    __device__ __forceinline__ void put(size_t at, const float *value, uint32_t count) const
    {
        if (plain) {
            T *to = static_cast<T *>(out) + at;
#pragma unroll
            for (int l = 0; l < L; ++l) {
                T narrow;
                wd_narrow(narrow, value[l]);
                if (l * RING_WARP < count) to[l * RING_WARP] = narrow;
            }
            return;
        }
#pragma unroll
        for (int l = 0; l < L; ++l) {
            if (l * RING_WARP < count) wd_put_run<T, 1>(*this, at + l * RING_WARP, value + l);
        }
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
    uint32_t pitch; /* of a piece of a line */
    uint32_t mask;  /* lines - 1 */
    uint32_t lane;
    uint32_t pieces = 1; /* of a line, one behind the other, each from another plane */
    uint32_t piece_bytes = 0;
    mutable int used; /* lines before it were looked at */
    int last;
    bool inside; /* whole 16 bytes around what is asked for of any line lie in the tensor */

    // Before anything is asked for. Only walks at the tensor's ends ask line by line.
    __device__ __forceinline__ void look_around(void)
    {
        const size_t lines = (size_t)(uint32_t)max(last - used, 0);
        inside =
            next + skip >= begin + 15 &&
            next + lines * line_bytes + (pieces - 1) * (size_t)piece_bytes + length + 30 <= end;
    }

    __device__ __forceinline__ void start(void)
    {
        look_around();
#pragma unroll 1
        for (uint32_t i = 0; i < mask; ++i) ask(used + (int)i);
    }

    __device__ __forceinline__ void copy_piece(unsigned char *to, uintptr_t source, uint32_t first,
                                               uint32_t till) const
    {
        if (inside || (source + first / 16 * 16 >= begin && source + till + 15 <= end)) {
#pragma unroll 1
            for (uint32_t at = first / 16 * 16 + 16 * lane; at < till; at += 16 * RING_WARP) {
                wd_copy_async<16, false>(to + at, reinterpret_cast<const void *>(source + at));
            }
        } else { // what lies around the tensor is not read
#pragma unroll 1
            for (uint32_t at = first + (uint32_t)sizeof(T) * lane; at < till;
                 at += (uint32_t)sizeof(T) * RING_WARP) {
                *reinterpret_cast<T *>(to + at) = *reinterpret_cast<const T *>(source + at);
            }
        }
    }

    // What is asked for of a line, nothing behind the last.
    __device__ __forceinline__ void copy(int line) const
    {
        if (line <= last) {
            unsigned char *to = slot(line);
            const uint32_t shift = (uint32_t)next % 16, first = shift + skip, till = shift + length;
            uintptr_t source = next - shift;
#pragma unroll 1
            for (uint32_t i = 0;;) {
                copy_piece(to, source, first, till);
                if (++i >= pieces) break;
                to += pitch;
                source += piece_bytes;
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

    __device__ __forceinline__ uint32_t slot_at(int line) const
    {
        return ((uint32_t)line & mask) * pitch * pieces;
    }
    __device__ __forceinline__ unsigned char *slot(int line) const
    {
        return memory + slot_at(line);
    }
};

} // namespace

#endif
