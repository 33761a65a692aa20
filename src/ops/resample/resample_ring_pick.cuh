// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima of planes by windows of two or three rows and columns, by two, from a warp's
// own lines of dy and of places. A thread has a few windows of a line, a warp apart, and of dx the two columns
// at which each begins: to these it and the window before hand something. Line by line of windows, it
// adds to the three rows that one may hand something to, the first two of which are then done with.
#ifndef WD_OPS_RESAMPLE_RING_PICK_CUH
#define WD_OPS_RESAMPLE_RING_PICK_CUH

#include "gpu/device/shared.cuh"
#include "ops/resample/resample_ring_lines.cuh"
#include "ops/resample/resample_vector.cuh"

namespace {

// Of columns 2 i and 2 i + 1, that thread i has, columns i and i + 32.
__device__ __forceinline__ void pick_exchange(float *pair, uint32_t lane)
{
    float mine[2];
#pragma unroll
    for (int b = 0; b < 2; ++b) {
        const int from = (int)(lane / 2) + b * RING_WARP / 2;
        const float even = __shfl_sync(0xffffffffu, pair[0], from);
        const float odd = __shfl_sync(0xffffffffu, pair[1], from);
        mine[b] = lane % 2 ? odd : even;
    }
    pair[0] = mine[0];
    pair[1] = mine[1];
}

template <class T>
__device__ __forceinline__ void resample_ring_pick(const resample_ring_pick_args &a)
{
    constexpr int L = WALK_PLACES, TWO = 2, NONE = 1 << 20;
    constexpr unsigned char NOWHERE = 255;
    const resample_places_axis &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    uint32_t n = blockIdx.x;
    const uint32_t unit = wd_take_rest(n, a.p.by_column) * (RING_WARP * L);
    const uint32_t units = min((uint32_t)(RING_WARP * L), a.units - unit);
    const uint32_t walk = threadIdx.x / RING_WARP, lane = threadIdx.x % RING_WARP;
    const int begin = (int)((wd_take_rest(n, a.p.by_row) * a.walks + walk) * a.rows);
    const int end = min(begin + (int)a.rows, (h.image + h.pad + 1) / 2);
    if (begin >= end) return;
    const bool overlap = w.window == 3;
    // the windows that count, of which there may be none at either end
    const int c0 = (int)unit - (overlap ? 1 : 0), c1 = (int)(unit + units);
    const uint32_t skip = (uint32_t)max(-c0, 0);
    const uint32_t length = (uint32_t)max(min(c1, w.windows) - c0, 0);
    const uint32_t all = (uint32_t)(c1 - c0);
    const size_t line_windows = (uint32_t)w.windows;
    line_ring<T> dy;
    dy.memory = wd_dynamic_shared<unsigned char>() + walk * a.size;
    dy.begin = (uintptr_t)a.p.from;
    dy.end = dy.begin + (size_t)a.bytes;
    dy.used = max(begin - (overlap ? 1 : 0), 0);
    dy.last = min(end, h.windows) - 1;
    const intptr_t first =
        (intptr_t)((n * (size_t)(uint32_t)h.windows + (uint32_t)dy.used) * line_windows) + c0;
    dy.next = dy.begin + (uintptr_t)(first * (intptr_t)sizeof(T));
    dy.line_bytes = (uint32_t)(line_windows * sizeof(T));
    dy.skip = skip * (uint32_t)sizeof(T);
    dy.length = length * (uint32_t)sizeof(T);
    dy.pitch = a.pitch;
    dy.mask = a.ring - 1;
    dy.lane = lane;
    const uint32_t place_size = (uint32_t)a.p.place_size;
    line_ring<unsigned char> places;
    places.memory = dy.memory + a.ring * a.pitch;
    places.begin = (uintptr_t)a.p.places;
    places.end = places.begin + (size_t)a.place_bytes;
    places.used = dy.used;
    places.last = dy.last;
    places.next = places.begin + (uintptr_t)(first * (intptr_t)place_size);
    places.line_bytes = (uint32_t)line_windows * place_size;
    places.skip = skip * place_size;
    places.length = length * place_size;
    places.pitch = a.place_pitch;
    places.mask = dy.mask;
    places.lane = lane;
    const uint32_t phase = (uint32_t)dy.next - (uint32_t)dy.used * dy.line_bytes;
    const uint32_t place_phase = (uint32_t)places.next - (uint32_t)dy.used * places.line_bytes;
    auto ask = [&](int line) {
        dy.copy(line);
        places.copy(line);
        wd_copies_end();
    };
    dy.look_around();
    places.look_around();
#pragma unroll 1
    for (uint32_t i = 0; i < dy.mask; ++i) ask(dy.used + (int)i);
    // The window before a thread's, counted from the first one, and where its columns lie: they are handed
    // around, so that a warp stores what lies side by side.
    uint32_t at[L], is_there = 0;
#pragma unroll
    for (int l = 0; l < L; ++l) {
        const uint32_t pair = unit + min(lane + l * RING_WARP, units - 1);
        at[l] = (uint32_t)((int)pair - c0) - (overlap ? 1 : 0);
#pragma unroll
        for (int b = 0; b < 2; ++b) {
            const uint32_t mine = 2 * (unit + l * RING_WARP) + lane + b * RING_WARP;
            if (mine < 2 * (unit + units) && mine - (uint32_t)w.pad < (uint32_t)w.image) {
                is_there |= 1u << (2 * l + b);
            }
        }
    }
    const uint32_t own = overlap ? 1 : 0;  // from the window before to a thread's
    const int behind = overlap ? 2 : NONE; // its column of a thread's first
    const ring_out result(a.p);
    float open[3][2 * L];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
#pragma unroll
        for (int i = 0; i < 2 * L; ++i) open[k][i] = 0;
    }
    auto add = [&](int line) {
#pragma unroll 1
        for (; dy.used <= line; ++dy.used) {
            if (dy.mask == RING_LONG - 1) wd_copies_wait<RING_LONG - 2>();
            else wd_copies_wait<RING_SHORT - 2>();
            __syncwarp(); // and all have done with the line before
            ask(dy.used + (int)dy.mask);
        }
        const T *shares = reinterpret_cast<const T *>(
            dy.slot(line) + (phase + (uint32_t)line * dy.line_bytes) % 16);
        unsigned char *found =
            places.slot(line) + (place_phase + (uint32_t)line * places.line_bytes) % 16;
        if (skip > 0 || length < all) { // no pixel is the place of a window that there is not
#pragma unroll 1
            for (uint32_t i = lane; i < all; i += RING_WARP) {
                if (i < skip || i >= length) found[i * place_size] = NOWHERE;
            }
            __syncwarp();
        }
#pragma unroll
        for (int l = 0; l < L; ++l) {
            if (l / TWO * TWO * RING_WARP >= units) break; // short lines have no more
            // earlier windows first
            const float before = wd_widen(shares[at[l]]);
            const int before_place = found[at[l] * place_size];
            const float share = wd_widen(shares[at[l] + own]);
            const int place = found[(at[l] + own) * place_size];
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                if (before_place == k * w.window + behind) open[k][2 * l] += before;
                if (place == k * w.window) open[k][2 * l] += share;
                if (place == k * w.window + 1) open[k][2 * l + 1] += share;
            }
        }
    };
    const size_t out_line = (uint32_t)w.image;
    // where the line's first two columns would be, of which there may be one
    T *image = static_cast<T *>(a.p.out) + n * (size_t)(uint32_t)h.image * out_line + 2 * unit +
               lane - (size_t)(uint32_t)w.pad;
    auto put = [&](int row, float *sum) {
        T *line = image + (size_t)(uint32_t)row * out_line;
#pragma unroll
        for (int l = 0; l < L; ++l) {
            if (l / TWO * TWO * RING_WARP >= units) break;
            float *pair = sum + 2 * l;
            pick_exchange(pair, lane);
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                T *mine = line + (2 * l + b) * RING_WARP;
                if (!(is_there >> (2 * l + b) & 1)) continue;
                pair[b] = result.scales ? result.alpha * pair[b] : 0.0f;
                if (result.blends) pair[b] += result.beta * wd_widen(*mine);
                wd_narrow(*mine, pair[b]);
            }
        }
    };
#pragma unroll 1
    for (int o = begin - (overlap ? 1 : 0); o < end; ++o) {
        if (o >= 0 && o <= dy.last) add(o);
        const int row = 2 * o - h.pad;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            if (o >= begin && (uint32_t)(row + k) < (uint32_t)h.image) put(row + k, open[k]);
        }
#pragma unroll
        for (int i = 0; i < 2 * L; ++i) {
            open[0][i] = open[2][i];
            open[1][i] = open[2][i] = 0;
        }
    }
    wd_copies_wait_all();
}

} // namespace

#endif
