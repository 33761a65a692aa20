// SPDX-License-Identifier: Apache-2.0
//
// norm_groups by planes: a share's channels lie behind one another. A team of threads goes through one
// channel after the other, so that parameters are loaded once a channel, and sums of a channel are a
// team's.
#ifndef WD_OPS_NORM_GROUPS_PLANES_CUH
#define WD_OPS_NORM_GROUPS_PLANES_CUH

#include "ops/norm/norm_groups_device.cuh"

namespace {

// Eights of a thread that are under way at once: of one tensor, of two.
template <class T> constexpr int PLANE_BATCH = 8 / (int)sizeof(T);
template <class T> constexpr int PLANE_PAIR_BATCH = 4 / (int)sizeof(T);

struct plane_seat {
    uint32_t share;
    uint32_t sample;
    uint32_t group;
    uint32_t segment;
    uint32_t team;
    uint32_t mate; // in the team
    uint32_t rounds;
    uint32_t channel; // the segment's first, and how many
    uint32_t channels;
    uint32_t begin; // of each plane
    uint32_t end;
};

__device__ __forceinline__ plane_seat plane_seat_of(const norm_groups_args &a, uint32_t block)
{
    plane_seat s;
    const uint32_t side = threadIdx.x / a.width;
    const uint32_t lane = threadIdx.x - side * a.width;
    s.share = block / a.segments * (blockDim.x / a.width) + side;
    s.segment = block % a.segments;
    s.sample = s.share / a.groups;
    s.group = s.share - s.sample * a.groups;
    s.team = lane / a.team;
    s.mate = lane - s.team * a.team;
    const uint32_t all = a.by_channels ? a.each : a.plane;
    const uint32_t first = min(s.segment * a.part, all);
    const uint32_t last = min(first + a.part, all);
    s.channel = s.group * a.each + (a.by_channels ? first : 0);
    s.channels = a.by_channels ? last - first : a.each;
    s.begin = a.by_channels ? 0 : first;
    s.end = a.by_channels ? a.plane : last;
    s.rounds = (s.channels + a.width / a.team - 1) / (a.width / a.team);
    if (s.share >= a.shares) s.channels = 0; // it goes along with its warp
    return s;
}

// Which channel of the segment a round brings; beyond the last there is nothing to do.
__device__ __forceinline__ uint32_t channel_of(const norm_groups_args &a, const plane_seat &s,
                                               uint32_t round)
{
    return round * (a.width / a.team) + s.team;
}

// Where an eight lies, and how much of it there is.
struct plane_place {
    int64_t at;
    spread as;
    uint32_t left;
};

__device__ __forceinline__ plane_place plane_place_of(const norm_groups_args &a,
                                                      const plane_seat &s, uint32_t channel,
                                                      uint32_t turn)
{
    plane_place p;
    const uint32_t at = s.begin + turn * a.team * RUN + s.mate * (a.runs ? RUN : 1);
    p.as = {a.runs != 0, a.runs ? 1 : a.team};
    p.left = channel < s.channels ? p.as.left(at, s.end) : 0;
    p.at = ((int64_t)s.sample * a.channels + s.channel + channel) * a.plane + at;
    return p;
}

// ---- Forward ----

// Leaves what the block found of its share.
__device__ __forceinline__ void leave_part(const norm_groups_args &a, const plane_seat &s,
                                           wd_part mine)
{
    __shared__ wd_part of_warp[WARPS];
    const uint32_t lane = threadIdx.x % WARP;
    join_lanes(mine, WARP);
    if (lane == 0) of_warp[threadIdx.x / WARP] = mine;
    __syncthreads();
    if (threadIdx.x >= WARP) return;
    mine = {0.0, 0.0, 0.0};
    if (lane < blockDim.x / WARP) mine = of_warp[lane];
    join_lanes(mine, WARP);
    if (lane > 0) return;
    a.parts[((int64_t)s.sample * a.slices + s.segment) * a.units + s.group] = {
        mine.count, mine.mean, mine.squares};
}

template <class T>
__device__ __forceinline__ wd_part plane_statistics(const norm_groups_args &a, const plane_seat &s)
{
    constexpr int BATCH = PLANE_BATCH<T>;
    wd_shifted<float> mine;
    uint32_t count = 0;
    mine.begin(0.0f);
    for (uint32_t round = 0; round < s.rounds; ++round) {
        const uint32_t c = channel_of(a, s, round);
        for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
            run<T> x[BATCH];
            uint32_t left[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const plane_place p = plane_place_of(a, s, c, turn + b);
                left[b] = p.left;
                fetch(x[b], static_cast<const T *>(a.x) + p.at, p.as, p.left);
            }
            if (count == 0 && left[0] > 0) mine.begin(wd_widen(x[0].get(0)));
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
#pragma unroll
                for (uint32_t i = 0; i < RUN; ++i) {
                    if (i < left[b]) mine.add(wd_widen(x[b].get(i)));
                }
                count += left[b];
            }
        }
    }
    return mine.part(count);
}

template <class T>
__device__ __forceinline__ void plane_outputs(const norm_groups_args &a, const plane_seat &s,
                                              const numbers &n)
{
    constexpr int BATCH = PLANE_BATCH<T>;
    for (uint32_t round = 0; round < s.rounds; ++round) {
        const uint32_t c = channel_of(a, s, round);
        line l = {0.0f, 0.0f, 0.0f};
        if (c < s.channels) l = line_of(a, n, s.channel + c);
        for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
            run<T> x[BATCH];
            plane_place p[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                p[b] = plane_place_of(a, s, c, turn + b);
                fetch(x[b], static_cast<const T *>(a.x) + p[b].at, p[b].as, p[b].left);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                float v[RUN];
#pragma unroll
                for (int i = 0; i < RUN; ++i) {
                    v[i] = fmaf(l.factor, wd_widen(x[b].get(i)) - l.mean, l.base);
                }
                put(static_cast<T *>(a.y) + p[b].at, v, p[b].as, p[b].left, a.streaming);
            }
        }
    }
}

template <class T, step STEP>
__device__ __forceinline__ void planes_forward(const norm_groups_args &a)
{
    const plane_seat s = plane_seat_of(a, block_of<STEP>());
    wd_wait_for_previous();
    if constexpr (STEP == SUMS) {
        leave_part(a, s, plane_statistics<T>(a, s));
    } else {
        numbers n = {0.0f, 0.0f, 0.0f, 0.0f};
        if (s.share < a.shares) {
            n = a.given_inv_std ? given_numbers(a, s.share) : a.numbers[s.share];
        }
        plane_outputs<T>(a, s, n);
    }
}

// ---- Backward ----

// What a team found of a channel: a lane's, or by its warps into a table.
__device__ __forceinline__ void leave_channel(const norm_groups_args &a, const plane_seat &s,
                                              uint32_t channel, sums *table, sums found)
{
    const uint32_t slice = a.by_channels ? 0 : s.segment;
    const uint32_t width = min(a.team, WARP);
    found = add_lanes(found, width);
    if (s.mate % width > 0 || channel >= s.channels) return;
    if (a.team > WARP) {
        table[channel * (a.team / WARP) + s.mate / WARP] = found;
        return;
    }
    a.sums[((int64_t)s.sample * a.slices + slice) * a.channels + s.channel + channel] = found;
}

__device__ __forceinline__ void leave_table(const norm_groups_args &a, const plane_seat &s,
                                            const sums *table)
{
    const uint32_t slice = a.by_channels ? 0 : s.segment;
    const uint32_t warps = a.team / WARP;
    __syncthreads();
    for (uint32_t c = threadIdx.x; c < s.channels; c += blockDim.x) {
        sums all = table[c * warps];
        for (uint32_t w = 1; w < warps; ++w) join(all, table[c * warps + w]);
        a.sums[((int64_t)s.sample * a.slices + slice) * a.channels + s.channel + c] = all;
    }
}

// Sums of dy and dy * xhat of channels.
template <class T>
__device__ __forceinline__ void plane_gradients(const norm_groups_args &a, const plane_seat &s,
                                                const numbers &given, sums *table)
{
    constexpr int BATCH = PLANE_PAIR_BATCH<T>;
    for (uint32_t round = 0; round < s.rounds; ++round) {
        const uint32_t c = channel_of(a, s, round);
        sums found = {0.0f, 0.0f};
        for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
            run<T> x[BATCH], dy[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const plane_place p = plane_place_of(a, s, c, turn + b);
                fetch(x[b], static_cast<const T *>(a.x) + p.at, p.as, p.left);
                fetch(dy[b], static_cast<const T *>(a.dy) + p.at, p.as, p.left);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                // where there is no element, dy is 0
#pragma unroll
                for (int i = 0; i < RUN; ++i) {
                    const float d = wd_widen(dy[b].get(i));
                    found.dy += d;
                    found.dy_xhat = fmaf(d, wd_widen(x[b].get(i)) - given.first, found.dy_xhat);
                }
            }
        }
        found.dy_xhat *= given.second;
        leave_channel(a, s, c, table, found);
    }
    if (a.team > WARP) leave_table(a, s, table);
}

template <class T>
__device__ __forceinline__ void plane_slopes(const norm_groups_args &a, const plane_seat &s,
                                             const numbers &given, const sums &all)
{
    constexpr int BATCH = PLANE_PAIR_BATCH<T>;
    const float base = -given.second * all.dy;
    const float slope = -given.second * given.second * all.dy_xhat;
    for (uint32_t round = 0; round < s.rounds; ++round) {
        const uint32_t c = channel_of(a, s, round);
        float factor = 0.0f;
        if (c < s.channels) factor = given.second * param_at(a.scale, s.channel + c);
        for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
            run<T> x[BATCH], dy[BATCH];
            plane_place p[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                p[b] = plane_place_of(a, s, c, turn + b);
                fetch(x[b], static_cast<const T *>(a.x) + p[b].at, p[b].as, p[b].left);
                fetch(dy[b], static_cast<const T *>(a.dy) + p[b].at, p[b].as, p[b].left);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                float v[RUN];
#pragma unroll
                for (int i = 0; i < RUN; ++i) {
                    const float d = wd_widen(x[b].get(i)) - given.first;
                    v[i] = fmaf(factor, wd_widen(dy[b].get(i)), fmaf(slope, d, base));
                }
                put(static_cast<T *>(a.y) + p[b].at, v, p[b].as, p[b].left, a.streaming);
            }
        }
    }
}

template <class T, step STEP>
__device__ __forceinline__ void planes_backward(const norm_groups_args &a)
{
    const plane_seat s = plane_seat_of(a, block_of<STEP>());
    numbers given = {0.0f, 0.0f, 0.0f, 0.0f};
    wd_wait_for_previous();
    if (s.share < a.shares) given = given_numbers(a, s.share);
    if constexpr (STEP == SUMS) {
        plane_gradients<T>(a, s, given, wd_dynamic_shared<sums>());
    } else {
        sums all = {0.0f, 0.0f};
        if (s.share < a.shares) all = {a.numbers[s.share].first, a.numbers[s.share].second};
        plane_slopes<T>(a, s, given, all);
    }
}

} // namespace

#endif
