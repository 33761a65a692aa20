// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/async.cuh.
#ifndef EMULATOR_ASYNC_CUH
#define EMULATOR_ASYNC_CUH

template <int BYTES, bool AGAIN> static inline void wd_copy_async(void *shared, const void *from)
{
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "what the instruction copies");
    emulator_copy(shared, from, BYTES);
}

static inline void wd_copies_end(void)
{
    emulator_copies_end();
}

template <int N> static inline void wd_copies_wait(void)
{
    emulator_copies_wait(N);
}

static inline void wd_copies_wait_all(void)
{
    emulator_copies_wait_all();
}

#endif
