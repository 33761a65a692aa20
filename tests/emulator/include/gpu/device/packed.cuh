// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/packed.cuh.
#ifndef EMULATOR_PACKED_CUH
#define EMULATOR_PACKED_CUH

#include "gpu/device/math.cuh"
#include "gpu/device/vector.cuh"

template <class T, bool NANS> static inline uint32_t wd_packed_larger(uint32_t a, uint32_t b)
{
    constexpr int N = 4 / (int)sizeof(T);
    T x[N], y[N];
    uint32_t r;
    memcpy(x, &a, 4);
    memcpy(y, &b, 4);
    for (int i = 0; i < N; ++i) {
        const float u = wd_widen(x[i]), v = wd_widen(y[i]);
        if (NANS) wd_narrow(x[i], wd_larger_or_nan(u, v));
        else if (!(u >= v) && v == v) x[i] = y[i];
    }
    memcpy(&r, x, 4);
    return r;
}

template <class T, class F> static inline uint32_t emulator_packed_mask(uint32_t a, uint32_t b, F f)
{
    constexpr int N = 4 / (int)sizeof(T);
    T x[N], y[N];
    uint32_t mask = 0;
    memcpy(x, &a, 4);
    memcpy(y, &b, 4);
    for (int i = 0; i < N; ++i) {
        if (f(wd_widen(x[i]), wd_widen(y[i]))) mask |= N == 1 ? 0xffffffffu : 0xffffu << (16 * i);
    }
    return mask;
}

template <class T> static inline uint32_t wd_packed_differ(uint32_t a, uint32_t b)
{
    return emulator_packed_mask<T>(a, b, [](float x, float y) { return !(x == y); });
}

template <class T> static inline uint32_t wd_packed_within(uint32_t a, uint32_t b)
{
    return emulator_packed_mask<T>(a, b, [](float x, float y) { return x <= y; });
}

template <class T> static inline uint32_t wd_packed_same_code(uint32_t a, uint32_t b)
{
    if (sizeof(T) == 4) return a == b ? 0xffffffffu : 0u;
    return emulator_packed_mask<half16>(a, b, [](float x, float y) { return x == y; });
}

template <class T> static inline float wd_packed_get(uint32_t word, int i)
{
    constexpr int N = 4 / (int)sizeof(T);
    T x[N];
    memcpy(x, &word, 4);
    return wd_widen(x[i % N]);
}

template <class T> static inline uint32_t wd_packed_add(uint32_t a, uint32_t b)
{
    constexpr int N = 4 / (int)sizeof(T);
    T x[N], y[N];
    uint32_t r;
    memcpy(x, &a, 4);
    memcpy(y, &b, 4);
    for (int i = 0; i < N; ++i) wd_narrow(x[i], wd_widen(x[i]) + wd_widen(y[i]));
    memcpy(&r, x, 4);
    return r;
}

template <class T> static inline uint32_t wd_packed_narrow(float low, float high)
{
    T pair[4 / sizeof(T)];
    uint32_t word;
    wd_narrow(pair[0], low);
    wd_narrow(pair[sizeof(T) == 2], high);
    memcpy(&word, pair, 4);
    return word;
}

#endif
