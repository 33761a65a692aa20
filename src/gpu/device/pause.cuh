// SPDX-License-Identifier: Apache-2.0
//
// A thread that waits for so many clocks of its processor.
#ifndef WD_GPU_DEVICE_PAUSE_CUH
#define WD_GPU_DEVICE_PAUSE_CUH

static __device__ __forceinline__ void wd_pause(int64_t clocks)
{
    const int64_t begin = clock64();
    while (clock64() - begin < clocks) {
    }
}

#endif
