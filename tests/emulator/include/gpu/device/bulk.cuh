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

#endif
