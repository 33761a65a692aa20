// SPDX-License-Identifier: Apache-2.0
//
// The gradients of resample_ring_pick.cuh where a pixel has several channels, straight from memory: a thread
// has a few windows, a warp apart, and of dx the two columns at which each begins, and loads what it wants of
// dy and of places a line ahead. Windows of all images are counted on.
#ifndef WD_OPS_RESAMPLE_RING_PICK_WORDS_CUH
#define WD_OPS_RESAMPLE_RING_PICK_WORDS_CUH

#include "gpu/device/warp.cuh"
#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_ring_lines.cuh"
#include "ops/resample/resample_vector.cuh"

namespace {

// W: rows and columns of a window, two or three.
template <class T, int W>
__device__ __forceinline__ void resample_ring_pick_words(const resample_ring_pick_args &a)
{
    constexpr int L = WALK_PLACES, OVERLAP = W - 2, SIDES = 1 + OVERLAP;
    constexpr uint32_t NOWHERE = 255;
    const resample_places_axis &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    uint32_t n = blockIdx.x;
    const uint32_t inner = a.p.inner, lane = threadIdx.x % RING_WARP;
    const uint32_t first = wd_take_rest(n, a.p.by_column) * (blockDim.x * L) +
                           threadIdx.x / RING_WARP * (RING_WARP * L) + lane;
    const int begin = (int)(n * a.rows);
    const int end = min(begin + (int)a.rows, (h.image + h.pad + 1) / 2);
    const uint32_t line_windows = (uint32_t)w.windows * inner;
    const uint32_t out_line = (uint32_t)w.image * inner;
    // of a thread's windows, and of those before them, where dy and places are
    uint32_t at[L][SIDES], to[L], there = 0, missing = 0;
#pragma unroll
    for (int l = 0; l < L; ++l) {
        uint32_t image = min(first + l * RING_WARP, a.units - 1);
        uint32_t window = wd_take_rest(image, a.by_line);
        const uint32_t channel = wd_take_rest(window, a.by_inner);
#pragma unroll
        for (int s = 0; s < SIDES; ++s) {
            const int o = (int)window - s, near = min(max(o, 0), w.windows - 1);
            at[l][s] =
                image * ((uint32_t)h.windows * line_windows) + (uint32_t)near * inner + channel;
            if (o != near) missing |= 1u << (l * SIDES + s);
        }
        const int column = 2 * (int)window - w.pad;
        to[l] = image * ((uint32_t)h.image * out_line) + (uint32_t)column * inner + channel;
#pragma unroll
        for (int b = 0; b < 2; ++b) {
            if (first + l * RING_WARP < a.units && (uint32_t)(column + b) < (uint32_t)w.image) {
                there |= 1u << (2 * l + b);
            }
        }
    }
    const ring_out result(a.p);
    const bool plain = wd_ballot(there + 1 != 1u << (2 * L)) == 0 && result.plain;
    const int last = min(end, h.windows) - 1, before = max(begin - OVERLAP, 0);
    const uint32_t size = (uint32_t)a.p.place_size;
    const T *dy = static_cast<const T *>(a.p.from) + (size_t)(uint32_t)before * line_windows;
    const unsigned char *places = static_cast<const unsigned char *>(a.p.places) +
                                  (size_t)(uint32_t)before * line_windows * size;
    T share[L][SIDES];
    unsigned char place[L][SIDES];
    auto load = [&]() {
#pragma unroll
        for (int l = 0; l < L; ++l) {
#pragma unroll
            for (int s = 0; s < SIDES; ++s) {
                share[l][s] = dy[at[l][s]];
                place[l][s] = places[(size_t)at[l][s] * size]; // the lowest byte tells all of them
            }
        }
    };
    if (before <= last) load();
    float open[3][2 * L];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
#pragma unroll
        for (int i = 0; i < 2 * L; ++i) open[k][i] = 0;
    }
    T *line =
        static_cast<T *>(a.p.out) + (intptr_t)(2 * (begin - OVERLAP) - h.pad) * (intptr_t)out_line;
    auto put = [&](T *row, const float *sum) {
        T narrow[2 * L];
        T *right = row + inner;
        if (plain) {
#pragma unroll
            for (int l = 0; l < L; ++l) {
                wd_narrow(narrow[2 * l], sum[2 * l]);
                wd_narrow(narrow[2 * l + 1], sum[2 * l + 1]);
                row[to[l]] = narrow[2 * l];
                right[to[l]] = narrow[2 * l + 1];
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < 2 * L; ++i) {
            T *mine = row + (to[i / 2] + (i % 2 ? inner : 0)); // may begin before the line
            if (!(there >> i & 1)) continue;
            float value = sum[i];
            if (!result.plain) {
                value = result.scales ? result.alpha * value : 0.0f;
                if (result.blends) value += result.beta * wd_widen(*mine);
            }
            wd_narrow(narrow[i], value);
            *mine = narrow[i];
        }
    };
#pragma unroll 1
    for (int o = begin - OVERLAP; o < end; ++o, line += 2 * (size_t)out_line) {
        if (o >= 0 && o <= last) {
#pragma unroll
            for (int l = 0; l < L; ++l) {
                // earlier windows first
#pragma unroll
                for (int s = SIDES - 1; s >= 0; --s) {
                    const float mine = wd_widen(share[l][s]);
                    const uint32_t found = missing >> (l * SIDES + s) & 1 ? NOWHERE : place[l][s];
#pragma unroll
                    for (int k = 0; k < W; ++k) {
                        const uint32_t column = k * W + (s > 0 ? 2 : 0);
                        if (found == column) open[k][2 * l] += mine;
                        if (s == 0 && found == column + 1) open[k][2 * l + 1] += mine;
                    }
                }
            }
            if (o < last) {
                dy += line_windows;
                places += (size_t)line_windows * size;
                load();
            }
        }
        if (o >= begin) {
            const int row = 2 * o - h.pad;
            if ((uint32_t)row < (uint32_t)h.image) put(line, open[0]);
            if ((uint32_t)(row + 1) < (uint32_t)h.image) put(line + out_line, open[1]);
        }
#pragma unroll
        for (int i = 0; i < 2 * L; ++i) {
            open[0][i] = open[2][i];
            open[1][i] = open[2][i] = 0;
        }
    }
}

} // namespace

#endif
