// SPDX-License-Identifier: Apache-2.0
//
// Planes turned whose rows begin anywhere, by tiles that are sheared: see identity_sheared_args.h.
#include <stdint.h>

#include "gpu/device/async.cuh"
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "ops/tensor/identity_sheared_args.h"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET

namespace {

constexpr uint32_t WARP = 32;
constexpr uint32_t LANES = 8; // of a warp that are neighbours in a row of y: 128 bytes

struct tile {
    int64_t x; // its first column of x, at b = 0
    int64_t y; // its first row of y, at b = 0
    uint32_t na;
    int32_t b; // where its rows of y begin, before they are moved back
};

__device__ __forceinline__ tile tile_of(const sheared_args &a)
{
    tile t;
    uint32_t rest = wd_fastdiv_quotient(blockIdx.x, a.by_tile_a);
    const uint32_t a0 = (blockIdx.x - rest * a.by_tile_a.divisor) * a.ta;
    const uint32_t further = wd_fastdiv_quotient(rest, a.by_tile_b);
    t.b = (int32_t)((rest - further * a.by_tile_b.divisor) * SHEARED_B);
    t.na = min(a.ta, a.a - a0);
    t.x = a0;
    t.y = a0 * a.y_row;
    rest = further;
    for (int d = a.rank - 1; d >= 0; --d) {
        const uint32_t next = wd_fastdiv_quotient(rest, a.dim[d]);
        const uint32_t at = rest - next * a.dim[d].divisor;
        t.x += at * a.x_stride[d];
        t.y += at * a.y_stride[d];
        rest = next;
    }
    return t;
}

// Rows of x, from `first` on: a warp a row, a lane a word. Words may hold neighbours of the row. A
// thread's rows are an even number apart, so all of them begin alike in their words.
template <class T>
__device__ __forceinline__ void load_rows(const sheared_args &a, const tile &t, int first,
                                          uint32_t lead, T *shared)
{
    constexpr int WORD = 4 / (int)sizeof(T), STEP = (int)WARP * WORD;
    constexpr int STEPS = (SHEARED_A / (int)sizeof(T) + WORD - 1 + STEP - 1) / STEP;
    const int end = min(SHEARED_B + (int)a.back, (int)a.b - first);
    const int warps = (int)(blockDim.x / WARP);
    int row = (int)(threadIdx.x / WARP);
    while (first + row < 0) row += warps;
    int64_t from = t.x + (first + row) * a.x_row;
    const int before = (int)((uint32_t)a.x_shift + (uint32_t)from) & (WORD - 1);
    const int k = (int)(threadIdx.x % WARP) * WORD;
    const int length = (int)t.na + before;
    const bool inside =
        WORD == 1 || (from >= before && from + (end - row) * a.x_row + length < a.total);
    const T *x = static_cast<const T *>(a.x) + from - before + k;
    T *to = shared + row * (int)a.pitch + (int)lead - before + k;
    for (; row < end; row += warps, x += warps * a.x_row, to += warps * (int)a.pitch) {
        if (inside) {
#pragma unroll
            for (int i = 0; i < STEPS * STEP; i += STEP) {
                if (k + i < length) wd_copy_async<4, true>(to + i, x + i);
            }
            continue;
        }
        const int64_t at = x - static_cast<const T *>(a.x);
        for (int i = 0; k + i < length; i += STEP) {
            if (at + i >= 0 && at + i + WORD <= a.total) {
                wd_copy_async<4, true>(to + i, x + i);
                continue;
            }
            for (int j = 0; j < WORD; ++j) {
                if (at + i + j >= 0 && at + i + j < a.total) to[i + j] = x[i + j];
            }
        }
    }
}

// V elements that stand `pitch` apart as 16 bytes.
template <class T> __device__ __forceinline__ uint4 gather(const T *from, uint32_t pitch)
{
    constexpr uint32_t V = 16 / sizeof(T), HALF = sizeof(T) == 2;
    uint32_t word[4];
#pragma unroll
    for (uint32_t w = 0; w < 4; ++w) {
        word[w] = from[V / 4 * w * pitch];
        if (HALF) word[w] |= (uint32_t)from[(V / 4 * w + 1) * pitch] << 16;
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
}

// Rows of y: eight lanes have neighbouring runs of 16 bytes, a warp four rows.
template <class T>
__device__ __forceinline__ void store_rows(const sheared_args &a, const tile &t, uint32_t lead,
                                           const T *shared)
{
    constexpr int V = 16 / (int)sizeof(T), U = SHEARED_BACK / (int)sizeof(T);
    T *y = static_cast<T *>(a.y) + t.y;
    const uint32_t start = (uint32_t)(a.y_shift + t.y);
    const uint32_t lane = threadIdx.x % LANES;
    for (uint32_t i = threadIdx.x / LANES; i < t.na; i += blockDim.x / LANES) {
        const int back = (int)((start + i * (uint32_t)a.y_row) & (U - 1));
        const int b = t.b - back + (int)lane * V;
        const T *from = shared + ((int)a.back - back + (int)lane * V) * (int)a.pitch + lead + i;
        T *to = y + i * a.y_row + b;
#pragma unroll
        for (int h = 0; h < SHEARED_B; h += (int)LANES * V) {
            const int at = b + h;
            if (at >= 0 && at + V <= (int)a.b) {
                *reinterpret_cast<uint4 *>(to + h) = gather(from + h * (int)a.pitch, a.pitch);
                continue;
            }
#pragma unroll
            for (int j = 0; j < V; ++j) {
                if (at + j >= 0 && at + j < (int)a.b) to[h + j] = from[(h + j) * (int)a.pitch];
            }
        }
    }
}

template <class T> __device__ void turn_sheared(const sheared_args &a)
{
    constexpr uint32_t WORD = 4 / sizeof(T);
    WD_DYNAMIC_SHARED(uint32_t, words);
    T *shared = reinterpret_cast<T *>(words);
    const tile t = tile_of(a);
    const int first = t.b - (int)a.back;
    const uint32_t lead =
        ((uint32_t)a.x_shift + (uint32_t)t.x + (uint32_t)first * (uint32_t)a.x_row) & (WORD - 1);
    wd_wait_for_previous();
    load_rows<T>(a, t, first, lead, shared);
    wd_copies_wait_all();
    __syncthreads();
    store_rows<T>(a, t, lead, shared);
}

} // namespace

#define WD_KERNELS_ROWS "ops/tensor/identity_sheared_kernels.def"
#include "ops/kernels_device.inc"
