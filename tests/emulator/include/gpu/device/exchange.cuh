// SPDX-License-Identifier: Apache-2.0
//
// Exchanges as in src/gpu/device/exchange.cuh.
#ifndef WD_GPU_DEVICE_EXCHANGE_CUH
#define WD_GPU_DEVICE_EXCHANGE_CUH

#include <stdint.h>

static inline uint32_t wd_exchange(uint32_t *at, uint32_t value)
{
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

#endif
