// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/cluster.cuh.
#ifndef EMULATOR_CLUSTER_CUH
#define EMULATOR_CLUSTER_CUH

static inline void wd_cluster_arrive(void)
{
    emulator_cluster_arrive();
}

static inline void wd_cluster_arrive_first(void)
{
    emulator_cluster_arrive();
}

static inline void wd_cluster_arrive_done(void)
{
    emulator_cluster_arrive();
}

static inline void wd_cluster_wait(void)
{
    emulator_cluster_wait();
}

template <class T> static inline T wd_of_cluster(const T *mine, uint32_t rank)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "what one load brings");
    return *static_cast<const T *>(emulator_of_cluster(mine, rank));
}

#endif
