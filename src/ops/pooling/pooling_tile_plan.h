/* SPDX-License-Identifier: Apache-2.0
 *
 * How an image is cut into boxes that fit shared memory. Pure functions of problem and device. */
#ifndef WD_OPS_POOLING_TILE_PLAN_H
#define WD_OPS_POOLING_TILE_PLAN_H

#include "ops/pooling/pooling_shape.h"
#include "ops/pooling/pooling_tile_args.h"

/* What is made: y; dx of averages; dx of maxima. */
enum wd_pool_work { WD_POOL_FORWARD, WD_POOL_SPREAD, WD_POOL_COLLECT };

struct wd_pool_plan {
    struct pool_tile_args args; /* all but the memory and the scalars */
    int64_t blocks;
    int64_t bytes; /* of shared memory */
    int way;
    bool runs; /* of several elements */
};

/* By runs of `run` elements, which the channels are a multiple of. False where not even the smallest
 * box fits. */
bool wd_pool_plan_of(const struct wd_device *device, const struct wd_pool_shape *shape,
                     enum wd_pool_work work, int64_t run, struct wd_pool_plan *plan);

/* The plans of a shape: by runs of 16 bytes, and by single elements. */
struct wd_pool_plans {
    bool fits[2];
    struct wd_pool_plan plan[2];
};
void wd_pool_plans_of(const struct wd_device *device, const struct wd_pool_shape *shape,
                      enum wd_pool_work work, struct wd_pool_plans *plans);

/* The plan of a call: by runs of 16 bytes where all that is read and written may be, and a box of runs
 * fits, else by single elements. False where not even these fit. `way` is whose prepared plans serve. */
bool wd_pool_plan_call(const struct wd_device *device, const struct wd_pool_shape *shape,
                       enum wd_pool_work work, const struct wd_pool_memory *memory,
                       const struct wd_pool_way *way, struct wd_pool_plan *plan);

/* The pointers and scalars of a call, which the above fills in too. */
void wd_pool_plan_fill(struct wd_pool_plan *plan, const struct wd_pool_shape *shape,
                       const struct wd_pool_memory *memory);

#endif
