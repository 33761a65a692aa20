// SPDX-License-Identifier: Apache-2.0
//
// The greatest of numbers that threads of a block have, in shared memory.
#ifndef WD_GPU_DEVICE_EXTREMES_CUH
#define WD_GPU_DEVICE_EXTREMES_CUH

static __device__ __forceinline__ void wd_raise(int *shared, int value)
{
    atomicMax(shared, value);
}

#endif
