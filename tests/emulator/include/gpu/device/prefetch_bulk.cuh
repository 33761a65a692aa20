// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/prefetch_bulk.cuh.
#ifndef EMULATOR_PREFETCH_BULK_CUH
#define EMULATOR_PREFETCH_BULK_CUH

#include <stdint.h>
#include <stdlib.h>

static inline void wd_prefetch_bytes(const void *at, uint32_t bytes)
{
    // what is asked for is there
    if (bytes % 16 != 0 || (uintptr_t)at % 16 != 0) abort();
    for (uint32_t i = 0; i < bytes; i += 16) (void)*((const volatile char *)at + i);
}

#endif
