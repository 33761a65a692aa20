// SPDX-License-Identifier: Apache-2.0
//
// The shared memory that a launch asks for, beside what the kernel declares.
#ifndef WD_GPU_DEVICE_SHARED_CUH
#define WD_GPU_DEVICE_SHARED_CUH

extern __shared__ uint4 wd_shared_runs[];

// Aligned to 16 bytes.
template <class T> static __device__ __forceinline__ T *wd_dynamic_shared(void)
{
    return reinterpret_cast<T *>(wd_shared_runs);
}

#endif
