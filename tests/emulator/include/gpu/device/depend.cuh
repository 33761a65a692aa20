// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/depend.cuh: kernels run one after the other.
#ifndef EMULATOR_DEPEND_CUH
#define EMULATOR_DEPEND_CUH

static inline void wd_wait_for_previous(void)
{
}

#endif
