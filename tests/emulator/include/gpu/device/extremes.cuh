// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/extremes.cuh.
#ifndef EMULATOR_EXTREMES_CUH
#define EMULATOR_EXTREMES_CUH

static inline void wd_raise(int *shared, int value)
{
    int old = __atomic_load_n(shared, __ATOMIC_RELAXED);
    while (old < value && !__atomic_compare_exchange_n(shared, &old, value, false, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED)) {
    }
}

#endif
