// SPDX-License-Identifier: Apache-2.0
//
// Barriers of a part of a block, and barriers in shared memory that count bytes which other blocks of
// the cluster send (Hopper; nothing below compute capability 9.0, where there are no other blocks).
#ifndef WD_GPU_DEVICE_BARRIER_CUH
#define WD_GPU_DEVICE_BARRIER_CUH

#include <stdint.h>

// Of `threads` threads, whole warps, that name the same barrier: 1 to 15, 0 is the whole block's.
static __device__ __forceinline__ void wd_barrier(uint32_t name, uint32_t threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// Of a warp whose lanes come together: barrier 1, which each warp fills by itself, whoever else is there. As __syncwarp, which is
// no instruction where the lanes are together, so that compute-sanitizer's racecheck does not know of the order. Not beside
// wd_barrier(1, ...). (By a barrier of its own for each warp a block takes all sixteen, and four blocks fit a processor.)
static __device__ __forceinline__ void wd_barrier_of_warp(void)
{
    asm volatile("bar.sync 1, 32;" ::: "memory");
}

// By one thread, before the cluster's barrier; from then on others may send.
static __device__ __forceinline__ void wd_counter_begin(uint64_t *counter)
{
#if __CUDA_ARCH__ >= 900
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(counter);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// By one thread, when all phases have ended: there may be something else in its place.
static __device__ __forceinline__ void wd_counter_end(uint64_t *counter)
{
#if __CUDA_ARCH__ >= 900
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(counter);
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(at) : "memory");
#endif
}

// By one thread, once a phase: so many bytes end it.
static __device__ __forceinline__ void wd_counter_expect(uint64_t *counter, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(counter);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
#endif
}

// Puts 16 bytes where block `rank` of the cluster has what this one has at `mine`, and counts them
// in there.
static __device__ __forceinline__ void wd_counter_send(void *mine, uint64_t *counter, uint32_t rank,
                                                       float4 value)
{
#if __CUDA_ARCH__ >= 900
    uint32_t to, there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(to)
                 : "r"((uint32_t)__cvta_generic_to_shared(mine)), "r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"((uint32_t)__cvta_generic_to_shared(counter)), "r"(rank));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], "
                 "{%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(there)
                 : "memory");
#endif
}

// A counter of arrivals: `all` of them end a phase. By one thread, before anybody arrives; and each
// by one thread, whose writes (and those of its warp, after __syncwarp) others see when they have
// waited for the phase.
static __device__ __forceinline__ void wd_arrivals_begin(uint64_t *counter, uint32_t all)
{
#if __CUDA_ARCH__ >= 900
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(counter);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(all) : "memory");
#endif
}

static __device__ __forceinline__ void wd_arrive(uint64_t *counter, uint32_t all)
{
    (void)all;
#if __CUDA_ARCH__ >= 900
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(counter);
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
#endif
}

// For the end of the phase of this parity (0 first, then in turn).
static __device__ __forceinline__ void wd_counter_wait(uint64_t *counter, uint32_t parity)
{
#if __CUDA_ARCH__ >= 900
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(counter);
    uint32_t done = 0;
    while (!done) {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
    }
#endif
}

#endif
