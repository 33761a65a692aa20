// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/located.cuh.
#ifndef EMULATOR_LOCATED_CUH
#define EMULATOR_LOCATED_CUH

typedef const char *wd_located;

static inline wd_located wd_locate(const void *shared)
{
    return static_cast<const char *>(shared);
}

static inline uint32_t wd_located_after(wd_located at, wd_located from)
{
    return (uint32_t)(at - from);
}

template <class V> static inline V *wd_located_at(wd_located at, uint32_t bytes)
{
    return reinterpret_cast<V *>(const_cast<char *>(at + bytes));
}

#endif
