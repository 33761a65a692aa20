// SPDX-License-Identifier: Apache-2.0
//
// In place of the device's header.
#ifndef WD_GPU_DEVICE_OPAQUE_CUH
#define WD_GPU_DEVICE_OPAQUE_CUH

#include <stdint.h>

static inline int64_t wd_opaque(int64_t value)
{
    return value;
}

static inline uint32_t wd_opaque(uint32_t value)
{
    return value;
}

template <class T> static inline T *wd_opaque_global(T *at)
{
    return at;
}

template <class T> static inline T *wd_opaque_shared(T *at)
{
    return at;
}

#endif
