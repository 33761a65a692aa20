// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima of whole pixels by windows of two or three rows and columns, by two, from a warp's
// own lines of dy and of places. A thread has a few elements of a line of dx, a warp apart; line by
// line of windows, it adds to the three rows that one may hand something to, the first two of which are
// then done with.
#ifndef WD_OPS_RESAMPLE_RING_PICK_CUH
#define WD_OPS_RESAMPLE_RING_PICK_CUH

#include "gpu/device/shared.cuh"
#include "ops/resample/resample_ring_lines.cuh"
#include "ops/resample/resample_vector.cuh"

namespace {

__device__ __forceinline__ int place_at(const unsigned char *line, uint32_t i, int size)
{
    if (size == 1) return line[i];
    return *reinterpret_cast<const int32_t *>(line + (size_t)i * (uint32_t)size);
}

template <class T>
__device__ __forceinline__ void resample_ring_pick(const resample_ring_pick_args &a)
{
    typedef acc<T> A;
    constexpr int L = WALK_PLACES, NONE = 1 << 20;
    const resample_places_axis &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    uint32_t n = blockIdx.x;
    const uint32_t unit = wd_take_rest(n, a.p.by_column) * (RING_WARP * L);
    const uint32_t units = min((uint32_t)(RING_WARP * L), a.units - unit);
    const uint32_t walk = threadIdx.x / RING_WARP, lane = threadIdx.x % RING_WARP;
    const int begin = (int)((wd_take_rest(n, a.p.by_row) * a.walks + walk) * a.rows);
    const int end = min(begin + (int)a.rows, h.image);
    if (begin >= end) return;
    const uint32_t inner = a.p.inner;
    const int left = (int)wd_fastdiv_quotient(unit, a.by_inner);
    const int right = (int)wd_fastdiv_quotient(unit + units - 1, a.by_inner);
    const int c0 = min(max((left + w.pad) / 2 - 1, 0), w.windows - 1);
    const int c1 = min((right + w.pad) / 2 + 1, w.windows);
    // the windows' lines before the first and behind the last row's, of which there may be none
    const int o0 = (begin + h.pad) / 2 - 1, o1 = (end - 1 + h.pad) / 2;
    const size_t line_windows = (size_t)(uint32_t)w.windows * inner;
    line_ring<T> dy;
    dy.memory = wd_dynamic_shared<unsigned char>() + walk * a.size;
    dy.begin = (uintptr_t)a.p.from;
    dy.end = dy.begin + (size_t)a.bytes;
    dy.used = max(o0, 0);
    dy.last = min(o1, h.windows - 1);
    const size_t first =
        (n * (size_t)(uint32_t)h.windows + (uint32_t)dy.used) * line_windows + (uint32_t)c0 * inner;
    dy.next = dy.begin + first * sizeof(T);
    dy.line_bytes = (uint32_t)(line_windows * sizeof(T));
    dy.skip = 0;
    dy.length = (uint32_t)max(c1 - c0, 0) * inner * (uint32_t)sizeof(T);
    dy.pitch = a.pitch;
    dy.mask = a.ring - 1;
    dy.lane = lane;
    line_ring<unsigned char> places;
    places.memory = dy.memory + a.ring * a.pitch;
    places.begin = (uintptr_t)a.p.places;
    places.end = places.begin + (size_t)a.place_bytes;
    places.used = dy.used;
    places.last = dy.last;
    places.next = places.begin + first * (uint32_t)a.p.place_size;
    places.line_bytes = (uint32_t)line_windows * (uint32_t)a.p.place_size;
    places.skip = 0;
    places.length = (uint32_t)max(c1 - c0, 0) * inner * (uint32_t)a.p.place_size;
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
#pragma unroll 1
    for (uint32_t i = 0; i < dy.mask; ++i) ask(dy.used + (int)i);
    // the window that begins with or before an element's column, and the one before that: where they
    // lie, and the element's column of them
    uint32_t at[L][2];
    int column[L][2];
#pragma unroll
    for (int l = 0; l < L; ++l) {
        uint32_t pixel = unit + min(lane + l * RING_WARP, units - 1);
        const uint32_t channel = wd_take_rest(pixel, a.by_inner);
        const int q = (int)pixel + w.pad;
#pragma unroll
        for (int b = 0; b < 2; ++b) {
            const int window = q / 2 - b, c = q % 2 + 2 * b;
            const bool there = c < w.window && window >= c0 && window < c1;
            column[l][b] = there ? c : NONE;
            at[l][b] = (there ? (uint32_t)(window - c0) * inner : 0) + channel;
        }
    }
    const ring_out result(a.p);
    A open[3][L];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
#pragma unroll
        for (int l = 0; l < L; ++l) open[k][l] = 0;
    }
    const size_t out_line = (size_t)(uint32_t)w.image * inner;
    const size_t image = n * (size_t)(uint32_t)h.image * out_line + unit + lane;
#pragma unroll 1
    for (int o = o0; o <= o1; ++o) {
        if (o >= 0 && o <= dy.last && dy.length > 0) {
#pragma unroll 1
            for (; dy.used <= o; ++dy.used) {
                if (dy.mask == RING_LONG - 1) wd_copies_wait<RING_LONG - 2>();
                else wd_copies_wait<RING_SHORT - 2>();
                __syncwarp(); // and all have done with the line before
                ask(dy.used + (int)dy.mask);
            }
            const T *shares = reinterpret_cast<const T *>(
                dy.slot(o) + (phase + (uint32_t)o * dy.line_bytes) % 16);
            const unsigned char *found =
                places.slot(o) + (place_phase + (uint32_t)o * places.line_bytes) % 16;
#pragma unroll
            for (int l = 0; l < L; ++l) {
                // earlier windows first
#pragma unroll
                for (int b = 1; b >= 0; --b) {
                    const A share = wd_widen(shares[at[l][b]]);
                    const int place = place_at(found, at[l][b], a.p.place_size) - column[l][b];
#pragma unroll
                    for (int k = 0; k < 3; ++k) {
                        if (place == k * w.window) open[k][l] += share;
                    }
                }
            }
        }
        const int row = 2 * o - h.pad;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            if (row + k < begin || row + k >= end) continue;
            const size_t to = image + (size_t)(uint32_t)(row + k) * out_line;
            result.put<T, L>(to, open[k], units > lane ? units - lane : 0);
        }
#pragma unroll
        for (int l = 0; l < L; ++l) {
            open[0][l] = open[2][l];
            open[1][l] = open[2][l] = 0;
        }
    }
    wd_copies_wait_all();
}

} // namespace

#endif
