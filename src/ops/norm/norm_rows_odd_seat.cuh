// SPDX-License-Identifier: Apache-2.0
//
// Where a thread is in a row off the boundaries (norm_rows_args.h): its aligned units, and its single.
#ifndef WD_OPS_NORM_ROWS_ODD_SEAT_CUH
#define WD_OPS_NORM_ROWS_ODD_SEAT_CUH

#include "ops/norm/norm_rows_walk.cuh"

namespace {

constexpr uint32_t ODD_LANES = 8;  // that have singles, at one end
constexpr uint32_t ODD_PLACES = 2; // units of singles of a group
constexpr uint32_t ODD_NONE = 0xffffffffu;

struct odd_seat : seat { // `count` is of units
    uint32_t single;     // its column, or none
    uint32_t back;       // elements from the unit's begin to the first lane's single

    __device__ __forceinline__ bool has_single() const
    {
        return single != ODD_NONE;
    }
    __device__ __forceinline__ float columns(uint32_t each) const
    {
        return (float)(count * each + (has_single() ? 1 : 0));
    }
};

// A warp has a strip of U units a lane, its lanes side by side; U is 0: a lane has every lanes-th unit.
template <class T, uint32_t U>
__device__ __forceinline__ odd_seat odd_seat_of(const norm_rows_args &a, int64_t row)
{
    constexpr uint32_t E = EACH<T>;
    const uint32_t step = U > 0 ? WARP : a.lanes;
    odd_seat s;
    s.rank = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    s.group = threadIdx.x / a.lanes;
    s.lane = threadIdx.x - s.group * a.lanes;
    s.width = WARP;
    s.stride = step * E;
    const uint32_t at = (uint32_t)(reinterpret_cast<uintptr_t>(a.x) / sizeof(T));
    const uint32_t shift = (at + (uint32_t)row * a.length) % E;
    const uint32_t head = (E - shift) % E;
    const uint32_t whole = (a.length - head) / E;
    const uint32_t tail = a.length - head - whole * E;
    const uint32_t begin = min(s.rank * a.share, whole);
    const uint32_t end = min(begin + a.share, whole);
    const uint32_t mine = begin + (U > 0 ? s.lane / WARP * (U * WARP) + s.lane % WARP : s.lane);
    s.first = head + mine * E;
    s.count = mine < end ? (end - mine - 1) / step + 1 : 0;
    if (U > 0) s.count = min(s.count, U);
    s.before = a.cluster > 1 ? head + begin * E : 0;
    s.part = a.cluster > 1 ? (end - begin) * E : a.length;
    const uint32_t l = s.lane % ODD_LANES;
    s.single = ODD_NONE;
    s.back = 0;
    if (s.rank == 0 && s.lane < ODD_LANES && l < head) {
        s.single = l;
        s.back = shift;
    } else if (s.rank == 0 && s.lane / ODD_LANES == 1 && l < tail) {
        s.single = head + whole * E + l;
    }
    return s;
}

// The thread's parameters, zeros where it has no column.
template <class T, int C>
__device__ __forceinline__ void odd_param(const odd_seat &s, const norm_rows_param &p, float *to)
{
    constexpr int E = EACH<T>;
    const bool single = p.data && s.has_single();
    const uint32_t units = p.data ? s.count : 0;
    if (p.type == NORM_ROWS_F32) {
        const float *from = static_cast<const float *>(p.data);
#pragma unroll
        for (int i = 0; i < C; ++i) {
            to[i] = 0.0f;
            if ((uint32_t)(i / E) < units) to[i] = from[s.first + i / E * s.stride + i % E];
        }
        to[C] = single ? from[s.single] : 0.0f;
    } else {
        const uint16_t *from = static_cast<const uint16_t *>(p.data);
        uint32_t bits[C + 1];
#pragma unroll
        for (int i = 0; i < C; ++i) {
            bits[i] = 0;
            if ((uint32_t)(i / E) < units) bits[i] = from[s.first + i / E * s.stride + i % E];
        }
        bits[C] = single ? from[s.single] : 0;
#pragma unroll
        for (int i = 0; i <= C; ++i) {
            unit<half16> one;
            one.word[0] = bits[i];
            to[i] = p.type == NORM_ROWS_F16 ? wd_widen(one.get(0)) : __uint_as_float(bits[i] << 16);
        }
    }
}

} // namespace

#endif
