// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/bulk.cuh.
#ifndef EMULATOR_BULK_CUH
#define EMULATOR_BULK_CUH

#include "gpu/device/barrier.cuh"

static inline void wd_bulk_copy(void *shared, const void *from, uint32_t bytes, uint64_t *counter)
{
    emulator_bulk(shared, from, bytes, counter);
}

static inline void wd_bulk_copy_once(void *shared, const void *from, uint32_t bytes,
                                     uint64_t *counter)
{
    emulator_bulk(shared, from, bytes, counter);
}

static inline void wd_bulk_prefetch(const void *from, uint32_t bytes)
{
    if (((uintptr_t)from | bytes) % 16 != 0) __builtin_trap();
    /* read, so that what is outside of a tensor's memory is found as a copy of it would be */
    (void)*(const volatile char *)from;
    (void)((const volatile char *)from)[bytes - 1];
}

#endif
