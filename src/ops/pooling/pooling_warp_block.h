/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of windows of 3x3 at a stride of 2 over pixels of 16 bits that are no whole runs, straight from memory: a
 * warp's lanes have two channels each. Pure functions. */
#ifndef WD_OPS_POOLING_WARP_BLOCK_H
#define WD_OPS_POOLING_WARP_BLOCK_H

#include "ops/pooling/pooling_shape.h"
#include "ops/pooling/pooling_warp_args.h"

/* The arguments for kernels of `pairs`, and how many blocks, of processors that have `resident` threads; or 0 where many
 * lanes would be idle, words shared, or what is read beside a row not there. Nothing may be blended in; x, where there is one, may be places, bytes. */
int64_t wd_pool_warps_of(const struct wd_device *device, const struct wd_pool_shape *shape,
                         const struct wd_pool_memory *memory, int64_t pairs, int64_t resident,
                         struct pool_warp_args *args);

static inline uint32_t wd_pool_warp_bytes(int64_t pairs)
{
    return (uint32_t)(POOL_WARP_THREADS / 32 * 2 * pool_warp_row(pairs));
}

#endif
