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

#endif
