// SPDX-License-Identifier: Apache-2.0
//
// A word to the compiler about branches.
#ifndef WD_GPU_DEVICE_BRANCH_CUH
#define WD_GPU_DEVICE_BRANCH_CUH

// What stands behind it is seldom reached, and stays behind a branch: it is not done always and thrown
// away by a selection.
static __device__ __forceinline__ void wd_seldom(void)
{
    asm volatile("");
}

#endif
