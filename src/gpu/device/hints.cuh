// SPDX-License-Identifier: Apache-2.0
//
// Loads of 16 bytes, aligned, past the first-level cache, that say what is to become of them in the second-level one.
// (Not of asynchronous copies: of those with a hint and an address by a uniform register nvcc 13.0 makes an instruction
// that the device calls illegal.)
#ifndef WD_GPU_DEVICE_HINTS_CUH
#define WD_GPU_DEVICE_HINTS_CUH

// Nobody reads it again: the first to leave.
static __device__ __forceinline__ uint4 wd_load_once(const uint4 *from)
{
    uint4 v;
    asm volatile("{\n"
                 ".reg .b64 policy;\n"
                 "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
                 "ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy;\n"
                 "}\n"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return v;
}

// It is read again soon: the last to leave, until it is read by wd_load_once.
static __device__ __forceinline__ uint4 wd_load_again(const uint4 *from)
{
    uint4 v;
    asm volatile("{\n"
                 ".reg .b64 policy;\n"
                 "createpolicy.fractional.L2::evict_last.b64 policy, 1.0;\n"
                 "ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy;\n"
                 "}\n"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return v;
}

#endif
