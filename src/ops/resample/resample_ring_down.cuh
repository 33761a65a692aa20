// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums of planes whose lines are whole runs of 16 bytes, first down the columns, then along the line: a
// lane has a run of columns of each line, so that what counts for a row is the same for all of a warp, and adds up
// in single precision what a row of `out` has of its columns; the warp's lanes then take their windows out of that
// row in shared memory. Narrow planes lie side by side.
#ifndef WD_OPS_RESAMPLE_RING_DOWN_CUH
#define WD_OPS_RESAMPLE_RING_DOWN_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/words.cuh"
#include "ops/resample/resample_ring_args.h"
#include "ops/resample/resample_taps.cuh"

namespace {

// A row of `out`: the lines first .. end-1, and how much each counts.
struct __align__(16) down_row
{
    int first;
    int end;
    int unused[2];
    float weight[RING_DOWN_LINES];
};

// E elements of a line of `out` are stored at once.
template <class T, int E>
__device__ __forceinline__ void resample_ring_down(const resample_ring_args &args)
{
    constexpr int RUN = 16 / (int)sizeof(T), K = RING_DOWN_PLACES / E, N = E * K;
    constexpr int TAPS = RING_WORD_TAPS, AHEAD = RING_LONG - RING_DOWN_LINES;
    const resample_walk_args &a = args.walk;
    wd_wait_for_previous();
    const walker w(a);
    const uint32_t lane = w.thread;
    const int count = w.end - w.begin;
    if (count <= 0) return;
    down_row *rows = wd_dynamic_shared<down_row>() + w.walk * (uint32_t)a.rows;
    unsigned char *ring = wd_dynamic_shared<unsigned char>() + a.stage_at + w.walk * args.size;
    float *sums = reinterpret_cast<float *>(ring + RING_LONG * RING_WARP * 16);
    const float scale = scale_of<float>(a, w);
    for (int i = (int)lane; i < count; i += RING_WARP) {
        const taps_of<float> e(a, 1, (uint32_t)(w.begin + i));
        down_row r;
        r.first = e.first;
        r.end = e.end(a, 1);
#pragma unroll
        for (int t = 0; t < RING_DOWN_LINES; ++t) {
            r.weight[t] = t < e.count ? scale * e.weight(a, 1, t) : 0.0f;
        }
        rows[i] = r;
    }
    __syncwarp();
    // a lane's columns
    const int left = max(taps_of<float>(a, 2, w.unit).first, 0) / RUN * RUN;
    const uint32_t plane = lane / args.chunks, column = (lane - plane * args.chunks) * RUN;
    const uint32_t line = (uint32_t)a.axis[2].from, first_plane = w.outer * args.planes;
    const bool active =
        plane < args.planes && first_plane + plane < args.outer && (uint32_t)left + column < line;
    const T *from = static_cast<const T *>(a.from) +
                    (size_t)(first_plane + plane) * ((uint32_t)a.axis[1].from * line) +
                    (uint32_t)left + column;
    ring += lane * 16;
    // and its places
    const float *at[N][TAPS];
    uint32_t to[K], there = 0;
    float weight[N][TAPS];
    const uint32_t out_plane = (uint32_t)(a.axis[1].out * a.axis[2].out);
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const uint32_t first = ((uint32_t)k * RING_WARP + lane) * E;
        uint32_t n = min(first, w.units * args.planes - E);
        uint32_t of_plane = 0;
        if (args.planes > 1) {
            const uint32_t unit = wd_take_rest(n, args.by_columns);
            of_plane = n;
            n = unit;
        }
        to[k] = of_plane * out_plane + w.unit + n;
        if (first < w.units * args.planes && first_plane + of_plane < args.outer) there |= 1u << k;
#pragma unroll
        for (int e = 0; e < E; ++e) {
            const int i = k * E + e;
            const taps_of<float> across(a, 2, w.unit + n + e);
            const int taps = min(across.count, TAPS);
#pragma unroll
            for (int t = 0; t < TAPS; ++t) {
                // the last one is shared out: a weight of 0 would make NaN of what is infinite
                const int tap = max(min(t, taps - 1), 0), times = TAPS - max(taps, 1) + 1;
                weight[i][t] = taps > 0 ? across.weight(a, 2, tap) : 0.0f;
                if (t >= taps - 1)
                    weight[i][t] *= times == 1 ? 1.0f : times == 2 ? 1.0f / 2 : 1.0f / 3;
                at[i][t] = sums + (taps > 0 ? of_plane * args.chunks * RUN +
                                                  (uint32_t)(across.first + tap - left)
                                            : RING_WARP * RUN); // a window without any: 0
            }
        }
    }
    T *out = static_cast<T *>(a.out) + (size_t)first_plane * out_plane +
             (size_t)(uint32_t)w.begin * (uint32_t)a.axis[2].out;
    if (lane == 0) sums[RING_WARP * RUN] = 0;
    const int last = rows[count - 1].end;
    int used = rows[0].first; // lines before it were asked for AHEAD lines ago
    from += (size_t)(uint32_t)used * line;
    auto ask = [&](int l) {
        if (active && l < last) {
            wd_copy_async<16, false>(ring + ((uint32_t)l % RING_LONG) * (RING_WARP * 16), from);
        }
        from += line;
        wd_copies_end();
    };
#pragma unroll 1
    for (int i = 0; i < AHEAD; ++i) ask(used + i);
#pragma unroll 1
    for (int i = 0; i < count; ++i, out += (uint32_t)a.axis[2].out) {
        const down_row r = rows[i];
#pragma unroll 1
        for (; used < r.end; ++used) ask(used + AHEAD);
        wd_copies_wait<AHEAD>();
        wd_run<T, RUN> run[2]; // of two lines at once
        float sum[RUN];
        auto fetch = [&](int t) {
            if (r.first + t >= r.end) return;
            run[t % 2].load(reinterpret_cast<const T *>(
                ring + ((uint32_t)(r.first + t) % RING_LONG) * (RING_WARP * 16)));
        };
        fetch(0);
        fetch(1);
#pragma unroll
        for (int c = 0; c < RUN; ++c) sum[c] = 0;
#pragma unroll
        for (int t = 0; t < RING_DOWN_LINES; ++t) {
            if (r.first + t >= r.end) break;
#pragma unroll
            for (int c = 0; c < RUN; ++c) {
                sum[c] += r.weight[t] * wd_widen(run[t % 2].get(c));
            }
            if (t + 2 < RING_DOWN_LINES) fetch(t + 2);
        }
        __syncwarp(); // all have done with the row before
#pragma unroll
        for (int c = 0; c < RUN; c += 4) {
            *reinterpret_cast<float4 *>(sums + lane * RUN + c) =
                make_float4(sum[c], sum[c + 1], sum[c + 2], sum[c + 3]);
        }
        __syncwarp();
        // all at once, of places that are not there as well
        float made[N];
#pragma unroll
        for (int j = 0; j < N; ++j) {
            made[j] = weight[j][0] * *at[j][0];
#pragma unroll
            for (int t = 1; t < TAPS; ++t) made[j] += weight[j][t] * *at[j][t];
        }
#pragma unroll
        for (int k = 0; k < K; ++k) {
            wd_run<T, E> narrow;
            if constexpr (E > 1) {
                const float pair[E] = {made[k * E], made[k * E + 1]};
                wd_narrow_run(narrow, pair);
            } else {
                T one;
                wd_narrow(one, made[k]);
                narrow.put(0, one);
            }
            if (there >> k & 1) narrow.store(out + to[k]);
        }
    }
    wd_copies_wait_all();
}

} // namespace

#endif
