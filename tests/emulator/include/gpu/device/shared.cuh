// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/shared.cuh.
#ifndef EMULATOR_SHARED_CUH
#define EMULATOR_SHARED_CUH

template <class T> static inline T *wd_dynamic_shared(void)
{
    return static_cast<T *>(emulator_now->dynamic_shared);
}

#define WD_DYNAMIC_SHARED(type, name)                                                              \
    type *const name = static_cast<type *>(emulator_now->dynamic_shared)

static inline uint32_t wd_add_alone(uint32_t *shared, uint32_t value)
{
    return atomicAdd(shared, value);
}

#endif
