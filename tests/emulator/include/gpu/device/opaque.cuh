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

#endif
