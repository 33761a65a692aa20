// SPDX-License-Identifier: Apache-2.0
//
// Maxima with their places, of windows of whole pixels whose padding is no candidate, from a warp's own
// lines: planes, channels and pointers of any alignment. A thread has a few elements of a line, a warp
// apart, and walks down the rows. Of each line a window's columns are compared once; of rows of windows
// that share a line, the second gets what the first found there.
#ifndef WD_OPS_RESAMPLE_RING_MAX_CUH
#define WD_OPS_RESAMPLE_RING_MAX_CUH

#include "gpu/device/shared.cuh"
#include "ops/resample/resample_places.cuh"
#include "ops/resample/resample_ring_lines.cuh"

namespace {

template <class T> __device__ __forceinline__ T ring_lowest(void)
{
    T value;
    wd_narrow(value, (acc<T>)__uint_as_float(0xff800000u));
    return value;
}

// K: a window's columns; 0: any.
template <class T, int K>
__device__ __forceinline__ void resample_ring_max(const resample_ring_max_args &a)
{
    typedef acc<T> A;
    constexpr int L = K > 0 ? RING_PLACES : WALK_PLACES, FOUR = 4;
    const resample_places_axis &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    uint32_t n = blockIdx.x;
    const uint32_t unit = wd_take_rest(n, a.p.by_column) * a.segment;
    const uint32_t units = min(a.segment, a.units - unit);
    const uint32_t walk = threadIdx.x / RING_WARP, lane = threadIdx.x % RING_WARP;
    const int begin = (int)((wd_take_rest(n, a.p.by_row) * a.walks + walk) * a.rows);
    const int end = min(begin + (int)a.rows, h.windows);
    if (begin >= end) return;
    const uint32_t step = a.p.inner * (uint32_t)sizeof(T);
    const int left = (int)wd_fastdiv_quotient(unit, a.by_inner);
    const int right = (int)wd_fastdiv_quotient(unit + units - 1, a.by_inner);
    const int c0 = left * w.stride - w.pad, c1 = right * w.stride - w.pad + w.window;
    const size_t plane = (size_t)(uint32_t)h.image * (uint32_t)w.image;
    line_ring<T> ring;
    ring.memory = wd_dynamic_shared<unsigned char>() + walk * a.size;
    ring.begin = (uintptr_t)a.p.from;
    ring.end = ring.begin + (size_t)a.bytes;
    ring.line_bytes = (uint32_t)w.image * step;
    ring.used = max(begin * h.stride - h.pad, 0);
    ring.last = min((end - 1) * h.stride - h.pad + h.window, h.image) - 1;
    ring.next = ring.begin + n * plane * step + (size_t)(uint32_t)ring.used * ring.line_bytes +
                (intptr_t)c0 * (intptr_t)step;
    ring.skip = (uint32_t)max(-c0, 0) * step;
    ring.length = (uint32_t)max(max(min(c1, w.image), 0) - c0, 0) * step;
    ring.pitch = a.pitch;
    ring.mask = a.ring - 1;
    ring.lane = lane;
    const uint32_t phase = (uint32_t)ring.next - (uint32_t)ring.used * ring.line_bytes;
    ring.start();
    uint32_t offset[L];
#pragma unroll
    for (int l = 0; l < L; ++l) {
        uint32_t column = unit + min(lane + l * RING_WARP, units - 1);
        const uint32_t channel = wd_take_rest(column, a.by_inner);
        offset[l] =
            (column - (uint32_t)left) * (uint32_t)w.stride * step + channel * (uint32_t)sizeof(T);
    }
    // padding is lower than all others
    const uint32_t all = (uint32_t)(c1 - c0) * a.p.inner;
    const uint32_t before = min(ring.skip / (uint32_t)sizeof(T), all);
    const uint32_t behind = all - max(ring.length / (uint32_t)sizeof(T), before);
    const int wide = K > 0 ? K : w.window;
    A of_line[L] = {}; // the largest of a window's part of line `looked`, and its column
    int at[L] = {}, looked = -1;
    auto look = [&](int line) {
        ring.turn(line);
        unsigned char *start = ring.slot(line) + (phase + (uint32_t)line * ring.line_bytes) % 16;
        if (before + behind > 0) {
            T *to = reinterpret_cast<T *>(start);
#pragma unroll 1
            for (uint32_t i = lane; i < before; i += RING_WARP) to[i] = ring_lowest<T>();
            to += all - behind;
#pragma unroll 1
            for (uint32_t i = lane; i < behind; i += RING_WARP) to[i] = ring_lowest<T>();
            __syncwarp();
        }
#pragma unroll
        for (int g = 0; g < L; g += FOUR) {
            if (g * RING_WARP >= units) break; // short lines have no more
#pragma unroll
            for (int l = g; l < g + FOUR; ++l) {
                const unsigned char *from = start + offset[l];
                of_line[l] = wd_widen(*reinterpret_cast<const T *>(from));
                at[l] = 0;
#pragma unroll
                for (int c = 1; c < wide; ++c) {
                    const A v = wd_widen(*reinterpret_cast<const T *>(from + (uint32_t)c * step));
                    at[l] = v > of_line[l] ? c : at[l];
                    of_line[l] = wd_largest(of_line[l], v);
                }
            }
        }
        looked = line;
    };
    const ring_out result(a.p);
    const bool plain = result.plain && a.p.place_size == 1;
    const size_t out_line = (size_t)(uint32_t)w.windows * a.p.inner;
    size_t out = (n * (size_t)(uint32_t)h.windows + (uint32_t)begin) * out_line + unit + lane;
    for (int row = begin; row < end; ++row, out += out_line) {
        const int low = row * h.stride - h.pad;
        const int r0 = max(-low, 0), r1 = min(h.window, h.image - low);
        A best[L];
        int place[L];
#pragma unroll
        for (int l = 0; l < L; ++l) {
            best[l] = (A)__uint_as_float(0xff800000u);
            place[l] = -1;
        }
        for (int r = r0; r < r1; ++r) {
            if (low + r != looked) look(low + r);
#pragma unroll
            for (int g = 0; g < L; g += FOUR) {
                if (g * RING_WARP >= units) break;
#pragma unroll
                for (int l = g; l < g + FOUR; ++l) {
                    place[l] = of_line[l] > best[l] ? r * wide + at[l] : place[l];
                    best[l] = wd_largest(best[l], of_line[l]);
                }
            }
        }
        // without a number above minus infinity, or with NaN: from memory
        bool again = false;
#pragma unroll
        for (int g = 0; g < L; g += FOUR) {
            if (g * RING_WARP >= units) break;
#pragma unroll
            for (int l = g; l < g + FOUR; ++l) {
                again = again || place[l] < 0 || best[l] != best[l];
            }
        }
        if (plain && !again) {
            T *y = static_cast<T *>(a.p.out) + out;
            uint8_t *places = static_cast<uint8_t *>(a.p.places) + out;
#pragma unroll
            for (int g = 0; g < L; g += FOUR) {
                if (g * RING_WARP >= units) break;
#pragma unroll
                for (int l = g; l < g + FOUR; ++l) {
                    T narrow;
                    wd_narrow(narrow, best[l]);
                    if (lane + l * RING_WARP < units) {
                        y[l * RING_WARP] = narrow;
                        places[l * RING_WARP] = (uint8_t)place[l];
                    }
                }
            }
            continue;
        }
        if (!again) {
#pragma unroll
            for (int l = 0; l < L; ++l) {
                if (lane + l * RING_WARP >= units) break;
                wd_put_run<T, 1>(result, out + l * RING_WARP, &best[l]);
                store_places<1>(a.p.places, a.p.place_size, out + l * RING_WARP, &place[l]);
            }
            continue;
        }
#pragma unroll 1
        for (uint32_t l = 0; lane + l * RING_WARP < units; ++l) {
            uint32_t column = unit + lane + l * RING_WARP;
            const uint32_t channel = wd_take_rest(column, a.by_inner);
            const int corner[3] = {0, low, (int)column * w.stride - w.pad};
            exact_place<T>(a.p, static_cast<const T *>(a.p.from) + n * plane * a.p.inner + channel,
                           out + l * RING_WARP, corner);
        }
    }
    wd_copies_wait_all();
}

} // namespace

#endif
