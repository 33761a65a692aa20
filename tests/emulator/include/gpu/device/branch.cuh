// SPDX-License-Identifier: Apache-2.0
//
// The host's version of gpu/device/branch.cuh: nothing has to be said.
#ifndef WD_GPU_DEVICE_BRANCH_CUH
#define WD_GPU_DEVICE_BRANCH_CUH

static inline void wd_seldom(void)
{
}

#endif
