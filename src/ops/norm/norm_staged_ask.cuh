// SPDX-License-Identifier: Apache-2.0
//
// What norm_staged asks memory for: a lane the rounds of all turns, the adding group what of the next turn the ring has
// no place for yet.
#ifndef WD_OPS_NORM_STAGED_ASK_CUH
#define WD_OPS_NORM_STAGED_ASK_CUH

#include "gpu/device/bulk.cuh"
#include "ops/norm/norm_staged.cuh"

namespace {

// Bytes of a block's round k of one tensor, 0 behind its last one.
__device__ __forceinline__ uint32_t round_bytes(const norm_staged_args &a, const seat &s,
                                                uint32_t k)
{
    const uint32_t rows = k + 1 < s.rounds ? a.lanes : k < s.rounds ? s.last : 0;
    return rows * a.runs * NORM_STAGED_UNIT;
}

__device__ __forceinline__ void ask_for(void *to, const char *from, uint32_t bytes,
                                        uint64_t *counter, bool once)
{
    if (READS_ONCE && once) wd_bulk_copy_once(to, from, bytes, counter);
    else wd_bulk_copy(to, from, bytes, counter);
}

// By one lane: asks for all rounds of all turns, of ARRAYS tensors each, as places become free.
template <int ARRAYS>
__device__ __forceinline__ void ask_for_rounds(const norm_staged_args &a, const seat &s,
                                               const ring<ARRAYS> &r,
                                               const void *const (&from)[ARRAYS])
{
    ring_at at = {0, 1};
    bool again = false; // places have had rounds before
#pragma unroll 1
    for (uint32_t sample = s.team; sample < a.samples; sample += a.at_once) {
        int64_t offset = first_round(a, s, sample);
#pragma unroll 1
        for (uint32_t k = 0; k < s.rounds; k += EACH<ARRAYS>) {
            uint32_t bytes[EACH<ARRAYS>], all = 0;
#pragma unroll
            for (uint32_t e = 0; e < EACH<ARRAYS>; ++e) all += bytes[e] = round_bytes(a, s, k + e);
            if (again) wd_counter_wait(r.free + at.place, at.parity);
            wd_counter_expect(r.landed + at.place, ARRAYS * all);
#pragma unroll
            for (uint32_t e = 0; e < EACH<ARRAYS>; ++e) {
                if (bytes[e] == 0) break;
#pragma unroll
                for (int i = 0; i < ARRAYS; ++i)
                    ask_for(r.at(at.place) + (i * EACH<ARRAYS> + e) * ROUND,
                            static_cast<const char *>(from[i]) + offset, bytes[e],
                            r.landed + at.place, true);
                offset += a.step;
            }
            at.advance(a);
            again = again || at.place == 0;
        }
    }
}

// Likewise of samples that are larger than the ring, of one tensor.
__device__ __forceinline__ void ask_for_parts(const norm_staged_args &a, const seat &s,
                                              const ring<1> &r)
{
    constexpr uint32_t N = EACH<1>;
    const uint32_t parts = (s.rounds + N - 1) / N;
    const char *x = static_cast<const char *>(a.x);
    uint32_t turn = 0;
    const auto ask = [&](uint32_t place, const char *from, uint32_t part, bool once) {
        uint32_t bytes[N], all = 0;
#pragma unroll
        for (uint32_t e = 0; e < N; ++e) all += bytes[e] = round_bytes(a, s, part * N + e);
        wd_counter_expect(r.landed + place, all);
#pragma unroll
        for (uint32_t e = 0; e < N; ++e) {
            if (bytes[e] > 0)
                ask_for(r.at(place) + e * ROUND, from + e * a.step, bytes[e], r.landed + place,
                        once);
        }
    };
#pragma unroll 1
    for (uint32_t sample = s.team; sample < a.samples; sample += a.at_once, ++turn) {
        const char *from = x + first_round(a, s, sample);
        deep_at at;
        at.begin(a, turn, 0);
#pragma unroll 1
        for (uint32_t part = 0; part < parts; ++part, at.up(a)) {
            const uint32_t place = at.where(a, turn);
            if (turn > 0 || part >= a.places) wd_counter_wait(r.free + place, at.lap ^ 1);
            // what the ring keeps is not read again, nor what the cache will not have kept
            ask(place, from, part, part + a.places >= parts || part + a.places + a.ahead < parts);
            from += N * a.step;
        }
        at.begin(a, turn, parts - a.places - 1);
        from -= (a.places + 1) * (N * a.step);
#pragma unroll 1
        for (uint32_t part = parts - a.places; part-- > 0; at.down(a)) {
            const uint32_t place = at.where(a, turn);
            wd_counter_wait(r.free + place, at.lap ^ 1);
            ask(place, from, part, true);
            from -= N * a.step;
        }
    }
}

// By the adding group, when it has added up a turn: what the next one has no places for yet is asked for up to the
// second-level cache, since memory has nothing to do while blocks join. A lane of each warp, for lanes would ask one
// after the other.
template <int ARRAYS>
__device__ __forceinline__ void ask_ahead(const norm_staged_args &a, const seat &s,
                                          const void *const (&from)[ARRAYS], uint32_t sample)
{
    const uint32_t first =
        EACH<ARRAYS> * a.places - (s.rounds + EACH<ARRAYS> - 1) / EACH<ARRAYS> * EACH<ARRAYS>;
    const uint32_t end = min(s.rounds, first + a.ahead);
    if (threadIdx.x % WARP > 0 || sample >= a.samples) return;
#pragma unroll 1
    for (uint32_t k = first + threadIdx.x / WARP; k < end; k += GROUP_WARPS) {
        const int64_t offset = first_round(a, s, sample) + k * a.step;
#pragma unroll
        for (int i = 0; i < ARRAYS; ++i)
            wd_bulk_prefetch(static_cast<const char *>(from[i]) + offset, round_bytes(a, s, k));
    }
}

} // namespace

#endif
