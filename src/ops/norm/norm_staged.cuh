// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of norm_staged share (norm_staged_args.h): a block's place in its team, the ring, and how the sums
// of threads become those of sets of channels: of the block by way of shared memory, of the team by the board, whose
// words have turns.
#ifndef WD_OPS_NORM_STAGED_CUH
#define WD_OPS_NORM_STAGED_CUH

#include "gpu/device/barrier.cuh"
#include "gpu/device/board.cuh"
#include "gpu/device/depend.cuh"
#include "gpu/device/opaque.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/warp.cuh"
#include "gpu/device/words.cuh"
#include "ops/norm/norm_param.cuh"
#include "ops/norm/norm_staged_args.h"

namespace {

constexpr uint32_t GROUP = NORM_STAGED_GROUP;
constexpr uint32_t GROUP_WARPS = GROUP / WARP;
constexpr uint32_t ADDING = 1, MEETING = 2; // names of barriers
constexpr int E = 8;                        // elements of a unit
template <class T> using unit = wd_run<T, E>;

// Not measured yet: what is read for the last time, and outputs, may be the first to leave the second-level cache.
constexpr bool READS_ONCE = false;
constexpr bool STREAMS = false;
// Likewise: the next turn is asked ahead for when the block has shown its sums, not before.
constexpr bool AHEAD_LATE = true;

// Of bf16 by an instruction each.
template <class T> __device__ __forceinline__ void widen_unit(float (&to)[E], const unit<T> &u)
{
#pragma unroll
    for (int i = 0; i < E; ++i) to[i] = wd_widen(u.get(i));
}
template <>
__device__ __forceinline__ void widen_unit<bfloat16>(float (&to)[E], const unit<bfloat16> &u)
{
#pragma unroll
    for (int i = 0; i < E / 2; ++i) {
        to[2 * i] = __uint_as_float(u.word[i] << 16);
        to[2 * i + 1] = __uint_as_float(u.word[i] & 0xffff0000u);
    }
}

// What a thread of either group has, and its block.
struct seat {
    uint32_t index;  // in the group: its unit of a round
    uint32_t run;    // unit of a row, also of a thread that has none
    uint32_t lane;   // row of a round
    uint32_t team;   // also its first sample
    uint32_t block;  // of the team
    uint32_t rounds; // of the block, ...
    uint32_t last;   // ... and rows of the last one
    bool active;
};

__device__ __forceinline__ seat seat_of(const norm_staged_args &a)
{
    seat s;
    s.index = threadIdx.x < GROUP ? threadIdx.x : threadIdx.x - GROUP;
    s.lane = wd_fastdiv_quotient(s.index, a.by_runs);
    s.run = s.index - s.lane * a.runs;
    s.active = s.lane < a.lanes;
    s.team = wd_fastdiv_quotient(blockIdx.x, a.by_blocks);
    s.block = blockIdx.x - s.team * a.blocks;
    // all rounds but the last one are full
    const uint32_t rows = a.blocks * a.lanes, first = s.block * a.lanes;
    s.rounds = a.rounds - ((a.rounds - 1) * rows + first >= a.rows);
    s.last = min(a.lanes, a.rows - min((s.rounds - 1) * rows + first, a.rows));
    return s;
}

// Bytes from a tensor's beginning to the block's first round of a sample.
__device__ __forceinline__ int64_t first_round(const norm_staged_args &a, const seat &s,
                                               uint32_t sample)
{
    return sample * a.sample + (int64_t)(s.block * a.lanes * a.runs) * NORM_STAGED_UNIT;
}

__device__ __forceinline__ unsigned char *memory(void)
{
    return wd_dynamic_shared<unsigned char>();
}

// Which place of the ring comes next; what it has at one time and another has parities in turn.
struct ring_at {
    uint32_t place, parity;

    __device__ __forceinline__ void advance(const norm_staged_args &a)
    {
        place += 1;
        if (place == a.places) place = 0, parity ^= 1;
    }
};

// Likewise where samples are larger than the ring: a turn goes up over its parts, each a place's rounds, and down again
// over those that the ring has not kept. A part has the same place both times, and those of every other turn lie the
// other way round, since the places of the first parts are free last. Of a turn each place has an odd number of loads,
// and as many times it is left.
struct deep_at {
    uint32_t place, lap; // lap: of the ring, and the turn

    __device__ __forceinline__ void begin(const norm_staged_args &a, uint32_t turn, uint32_t part)
    {
        const uint32_t laps = part / a.places;
        place = part - laps * a.places;
        lap = (turn + laps) & 1;
    }
    __device__ __forceinline__ void up(const norm_staged_args &a)
    {
        place += 1;
        if (place == a.places) place = 0, lap ^= 1;
    }
    __device__ __forceinline__ void down(const norm_staged_args &a)
    {
        if (place == 0) place = a.places, lap ^= 1;
        place -= 1;
    }
    __device__ __forceinline__ uint32_t where(const norm_staged_args &a, uint32_t turn) const
    {
        return turn % 2 ? a.places - 1 - place : place;
    }
};

// Rounds of a place, of ARRAYS tensors.
template <int ARRAYS> constexpr uint32_t EACH = NORM_STAGED_EACH(ARRAYS);
constexpr uint32_t ROUND = NORM_STAGED_ROUND;

template <int ARRAYS> struct ring {
    unsigned char *first;
    // counters: of places, of what has been told of a turn, and of warps that have heard it
    uint64_t *landed, *free, *told, *heard;

    __device__ __forceinline__ unsigned char *at(uint32_t place) const
    {
        return first + place * NORM_STAGED_PLACE;
    }

    // A thread's unit of round e of a place.
    template <class T>
    __device__ __forceinline__ void load(unit<T> &u, const seat &s, uint32_t place, uint32_t e,
                                         int array) const
    {
        u.load(reinterpret_cast<const T *>(at(place) + s.index * NORM_STAGED_UNIT +
                                           (array * EACH<ARRAYS> + e) * ROUND));
    }
};

template <int ARRAYS> __device__ __forceinline__ ring<ARRAYS> ring_of(const norm_staged_args &a)
{
    uint64_t *counters = reinterpret_cast<uint64_t *>(memory() + a.counters);
    uint64_t *told = counters + 2 * a.places;
    return {wd_opaque_shared(memory()), counters, counters + a.places, told, told + 1};
}

// The channel of a sample that is a plane.
__device__ __forceinline__ uint32_t channel_of(const norm_staged_args &a, uint32_t sample)
{
    return sample - wd_fastdiv_quotient(sample, a.by_channels) * a.by_channels.divisor;
}

// By all threads: counters.
template <int ARRAYS>
__device__ __forceinline__ void begin(const norm_staged_args &a, const ring<ARRAYS> &r)
{
    if (threadIdx.x < a.places) {
        wd_counter_begin(r.landed + threadIdx.x);
        wd_arrivals_begin(r.free + threadIdx.x, GROUP_WARPS);
    }
    if (threadIdx.x == 0) wd_arrivals_begin(r.told, 1), wd_arrivals_begin(r.heard, GROUP_WARPS);
    wd_wait_for_previous();
    __syncthreads();
}

// What a thread of the writing group has asked of the board, for both groups when they have met: the requests of many
// threads for one sector would come one after the other.
__device__ __forceinline__ uint4 *head_of(const norm_staged_args &a)
{
    return reinterpret_cast<uint4 *>(memory() + a.head);
}

__device__ __forceinline__ wd_board board_of(const norm_staged_args &a)
{
    return wd_board_of(a.board, *head_of(a));
}

// By both groups, once: of the board, what an earlier kernel left. The warp that asks for rounds has no time for that.
__device__ __forceinline__ void clear_board(const norm_staged_args &a)
{
    const wd_board b = board_of(a);
    const uint32_t threads = gridDim.x * 2 * GROUP;
#pragma unroll 1
    for (uint32_t i = blockIdx.x * 2 * GROUP + threadIdx.x; i < b.left; i += threads)
        b.other[i] = 0;
}

// By the writing group: parameters of columns to shared memory, and the head of the board; both groups meet then.
template <int ARRAYS> __device__ __forceinline__ void get_params(const norm_staged_args &a)
{
    float *params = reinterpret_cast<float *>(memory() + a.params);
    const uint32_t channels = a.runs * E;
    // the last thread, since the first ones have most channels
    if (threadIdx.x == 2 * GROUP - 1) *head_of(a) = wd_board_ask(a.board);
    for (uint32_t c = threadIdx.x - GROUP; !a.planes && c < channels; c += GROUP) {
        params[c] = a.scale[c];
        if (ARRAYS == 1) params[channels + c] = a.bias[c];
    }
    wd_barrier(MEETING, 2 * GROUP);
    clear_board(a);
}

// Words of the board: of a set one a block, and of turns in turn.
__device__ __forceinline__ uint64_t *words_of(const norm_staged_args &a, const seat &s,
                                              uint32_t turn, uint32_t set)
{
    return board_of(a).bank +
           ((turn % 2 * gridDim.x + s.team * a.blocks) * a.sets + set * a.blocks);
}

__device__ __forceinline__ double2 plus(double2 a, float first, float second)
{
    return make_double2(a.x + first, a.y + second);
}

// Of pairs.
template <class P> __device__ __forceinline__ P sum_of_lanes(P v, uint32_t bits)
{
#pragma unroll 1
    for (uint32_t m = 1; m < 1u << bits; m *= 2) {
        v.x += __shfl_xor_sync(0xffffffffu, v.x, m);
        v.y += __shfl_xor_sync(0xffffffffu, v.y, m);
    }
    return v;
}

// f(set, whether it is one, lane of it), of the adding group's threads: all lanes of a warp are there together.
template <class F> __device__ __forceinline__ void each_of(uint32_t count, uint32_t bits, F f)
{
#pragma unroll 1
    for (uint32_t first = 0; first < count; first += GROUP >> bits) {
        const uint32_t one = first + (threadIdx.x >> bits);
        f(one, one < count, threadIdx.x & ((1u << bits) - 1));
    }
}

__device__ __forceinline__ float4 *entries_of(const norm_staged_args &a)
{
    return reinterpret_cast<float4 *>(memory() + a.entries);
}

__device__ __forceinline__ uint32_t pitch_of(const norm_staged_args &a)
{
    return NORM_STAGED_PITCH(a.lanes);
}

__device__ __forceinline__ void leave_entry(const norm_staged_args &a, const seat &s, float4 entry)
{
    if (s.active) entries_of(a)[s.run * pitch_of(a) + s.lane] = entry;
    wd_barrier(ADDING, GROUP);
}

// A thread's sums, a pair a column, as those of the block: see(channel, sums), by one thread each. A lane has fifteen
// rows at most, so that single precision does. The group's barriers are between. The sums are gone then.
template <class F>
__device__ __forceinline__ void sums_of_columns(const norm_staged_args &a, const seat &s,
                                                float (&value)[2 * E], F see)
{
    const float2 *of = reinterpret_cast<const float2 *>(entries_of(a));
    const uint32_t pitch = pitch_of(a);
#pragma unroll 1
    for (int pair = 0; pair < E / 2; ++pair) {
        if (pair > 0) wd_barrier(ADDING, GROUP);
        leave_entry(a, s, make_float4(value[0], value[1], value[2], value[3]));
        // a loop without an index, so that registers hold them
#pragma unroll
        for (int i = 4; i < 2 * E; ++i) value[i - 4] = value[i];
        each_of(2 * a.runs, a.pair_bits, [&](uint32_t column, bool is, uint32_t lane) {
            float2 all = make_float2(0.0f, 0.0f);
            if (is) {
#pragma unroll 2
                for (uint32_t row = lane; row < a.lanes; row += 1u << a.pair_bits) {
                    const float2 one = of[2 * (column / 2 * pitch + row) + column % 2];
                    all = make_float2(all.x + one.x, all.y + one.y);
                }
            }
            all = sum_of_lanes(all, a.pair_bits);
            if (is && lane == 0)
                see(column / 2 * E + 2 * pair + column % 2, make_double2(all.x, all.y));
        });
    }
}

// Likewise of sets, of which a unit has channels of two at most: see(set, sums). Of each pair a column counts as what
// weigh(column of the unit) says.
template <class W, class F>
__device__ __forceinline__ void sums_of_sets(const norm_staged_args &a, const seat &s,
                                             const float (&value)[2 * E], W weigh, F see)
{
    const float2 *of = reinterpret_cast<const float2 *>(entries_of(a));
    const uint32_t pitch = pitch_of(a);
    const uint32_t set = wd_fastdiv_quotient(s.run * E, a.by_members);
    const uint32_t next = (set + 1) * a.members - s.run * E; // columns from there on are the next's
    float4 both = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < E; ++i) {
        const float first = weigh(i) * value[2 * i], second = weigh(i) * value[2 * i + 1];
        both.x += i < next ? first : 0.0f;
        both.y += i < next ? second : 0.0f;
        both.z += i < next ? 0.0f : first;
        both.w += i < next ? 0.0f : second;
    }
    leave_entry(a, s, both);
    each_of(a.sets, a.set_bits, [&](uint32_t one, bool is, uint32_t lane) {
        double2 all = make_double2(0.0, 0.0);
        if (is) {
            const uint32_t first = one * a.members, end = (first + a.members - 1) / E + 1;
#pragma unroll 1
            for (uint32_t row = lane; row < a.lanes; row += 1u << a.set_bits) {
#pragma unroll 2
                for (uint32_t u = first / E; u < end; ++u) {
                    const float2 pair = of[2 * (u * pitch + row) + (u * E < first ? 1 : 0)];
                    all = plus(all, pair.x, pair.y);
                }
            }
        }
        all = sum_of_lanes(all, a.set_bits);
        if (is && lane == 0) see(one, all);
    });
}

// The team's sums of a set, from the words of its blocks, which lanes share: all of them have it.
__device__ __forceinline__ double2 sums_of_team(const norm_staged_args &a, const uint64_t *words,
                                                bool is, uint32_t lane, uint32_t bit)
{
    constexpr int BATCH = 9; // of 66 blocks by eight lanes
    const uint32_t lanes = 1u << a.set_bits;
    double2 all = make_double2(0.0, 0.0);
    if (is) {
#pragma unroll 1
        for (uint32_t k = lane; k < a.blocks; k += BATCH * lanes) {
            float2 some[BATCH];
            wd_board_see_in_turn(words + k, lanes, (a.blocks - k + lanes - 1) / lanes, bit, some);
#pragma unroll
            for (int i = 0; i < BATCH; ++i) all = plus(all, some[i].x, some[i].y);
        }
    }
    return sum_of_lanes(all, a.set_bits);
}

// A warp has read a place.
template <int ARRAYS>
__device__ __forceinline__ void leave_place(const ring<ARRAYS> &r, uint32_t place)
{
    __syncwarp();
    if (threadIdx.x % WARP == 0) wd_arrive(r.free + place, GROUP_WARPS);
}

// By one adding thread, which the others are waiting for or have told: what follows for a turn's sets is there. A warp
// that has not heard of the turn before would wait for the same parity, so that is waited for.
template <int ARRAYS> __device__ __forceinline__ void tell(const ring<ARRAYS> &r, uint32_t turn)
{
    if (turn > 0) wd_counter_wait(r.heard, (turn - 1) % 2);
    wd_arrive(r.told, 1);
}

// By a writing warp, when it has read what was told.
template <int ARRAYS> __device__ __forceinline__ void hear(const ring<ARRAYS> &r)
{
    __syncwarp();
    if (threadIdx.x % WARP == 0) wd_arrive(r.heard, GROUP_WARPS);
}

// f(column of the unit, its set).
template <class F>
__device__ __forceinline__ void each_column(const norm_staged_args &a, const seat &s, F f)
{
    uint32_t set = wd_fastdiv_quotient(s.run * E, a.by_members);
    uint32_t end = (set + 1) * a.members - s.run * E;
#pragma unroll
    for (int i = 0; i < E; ++i) {
        if (i == end) set += 1, end += a.members;
        f(i, set);
    }
}

// Rows of round e of a sample's last place.
template <int ARRAYS>
__device__ __forceinline__ uint32_t rows_of_last(const norm_staged_args &a, const seat &s,
                                                 uint32_t e)
{
    const uint32_t k = (s.rounds - 1) / EACH<ARRAYS> * EACH<ARRAYS> + e;
    return k + 1 < s.rounds ? a.lanes : k < s.rounds ? s.last : 0;
}

// Shows a block's sums of a set.
__device__ __forceinline__ void show(const norm_staged_args &a, const seat &s, uint32_t turn,
                                     uint32_t set, double2 all)
{
    wd_board_show_in_turn(words_of(a, s, turn, set) + s.block, (float)all.x, (float)all.y,
                          wd_board_bit(turn));
}

} // namespace

#endif
