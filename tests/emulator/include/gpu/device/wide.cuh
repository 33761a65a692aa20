// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/wide.cuh.
#ifndef EMULATOR_WIDE_CUH
#define EMULATOR_WIDE_CUH

static inline void wd_store_global(uint4 *to, uint4 run)
{
    *to = run;
}

template <class A> static inline void wd_store_wide(A *shared, A a, A b)
{
    shared[0] = a;
    shared[1] = b;
}

template <class A> static inline void wd_store_wide(A *shared, A a, A b, A c, A d)
{
    wd_store_wide(shared, a, b);
    wd_store_wide(shared + 2, c, d);
}

#endif
