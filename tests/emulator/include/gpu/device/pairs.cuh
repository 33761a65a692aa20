// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/pairs.cuh.
#ifndef EMULATOR_PAIRS_CUH
#define EMULATOR_PAIRS_CUH

#include "gpu/device/vector.cuh"

template <class T> inline constexpr uint32_t emulator_lowest_pair = 0xfc00fc00u;
template <> inline constexpr uint32_t emulator_lowest_pair<bfloat16> = 0xff80ff80u;

template <class T> struct wd_pair {
    static constexpr uint32_t LOWEST = emulator_lowest_pair<T>;
    static float at(uint32_t word, int i)
    {
        const uint16_t bits = (uint16_t)(word >> (16 * i));
        T value;
        memcpy(&value, &bits, 2);
        return wd_widen(value);
    }
    static uint32_t greater(uint32_t a, uint32_t b)
    {
        return (at(a, 0) > at(b, 0) ? 0xffffu : 0u) | (at(a, 1) > at(b, 1) ? 0xffff0000u : 0u);
    }
    static uint32_t equal(uint32_t a, uint32_t b)
    {
        return (at(a, 0) == at(b, 0) ? 0xffffu : 0u) | (at(a, 1) == at(b, 1) ? 0xffff0000u : 0u);
    }
    static uint32_t largest(uint32_t a, uint32_t b)
    {
        uint32_t word = 0;
        for (int i = 0; i < 2; ++i) {
            const float x = at(a, i), y = at(b, i);
            const uint32_t from = x != x || !(y != y || y > x) ? a : b;
            word |= from & (i ? 0xffff0000u : 0xffffu);
        }
        return word;
    }
};

template <class A> static A wd_largest(A a, A b)
{
    return a != a || b <= a ? a : b;
}

#endif
