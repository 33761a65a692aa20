// SPDX-License-Identifier: Apache-2.0
//
// Clusters of blocks: their barrier, and what lies in the shared memory of another block. A block that
// others read from stays until they have: all arrive once more after their last reading, and wait
// before they end. In a launch without clusters a block is a cluster by itself; below compute
// capability 9.0 there are no others, and the barrier is the block's.
#ifndef WD_GPU_DEVICE_CLUSTER_CUH
#define WD_GPU_DEVICE_CLUSTER_CUH

#include <stdint.h>

static __device__ __forceinline__ void wd_cluster_arrive(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}

// The same where what others read was written by the block's first warp, or before a barrier of the block: the
// other warps need not wait for memory too, of which a release is a barrier for all of it. Blocks of one
// dimension.
static __device__ __forceinline__ void wd_cluster_arrive_first(void)
{
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x < 32) asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    else asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}

// After a block's last reading of others' shared memory: what it has read has come by then, and it has
// written nothing that the others wait for.
static __device__ __forceinline__ void wd_cluster_arrive_done(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}

static __device__ __forceinline__ void wd_cluster_wait(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
    __syncthreads();
#endif
}

// What block `rank` of the cluster has where this one has its own `mine`, 4 or 8 bytes of shared
// memory.
template <class T> static __device__ __forceinline__ T wd_of_cluster(const T *mine, uint32_t rank)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "what one load brings");
#if __CUDA_ARCH__ >= 900
    const uint32_t own = (uint32_t)__cvta_generic_to_shared(mine);
    uint32_t there;
    T value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    if constexpr (sizeof(T) == 8) {
        uint64_t bits;
        asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(bits) : "r"(there) : "memory");
        memcpy(&value, &bits, sizeof value);
    } else {
        uint32_t bits;
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(bits) : "r"(there) : "memory");
        memcpy(&value, &bits, sizeof value);
    }
    return value;
#else
    (void)rank;
    return *mine;
#endif
}

#endif
