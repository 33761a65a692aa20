// SPDX-License-Identifier: Apache-2.0
//
// Programmatic dependent launch: a kernel may begin while the one before it in its stream ends.
// Every kernel that is launched so waits here before it touches memory, and lets the next one
// begin. Without effect below compute capability 9.0, and where the launch did not ask for it.
#ifndef WD_GPU_DEVICE_DEPEND_CUH
#define WD_GPU_DEVICE_DEPEND_CUH

static __device__ __forceinline__ void wd_wait_for_previous(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#endif
