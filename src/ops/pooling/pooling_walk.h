/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engines that walk down columns of pixels share. Pure functions. */
#ifndef WD_OPS_POOLING_WALK_H
#define WD_OPS_POOLING_WALK_H

#include "base/sizes.h"
#include "ops/pooling/pooling_shape.h"
#include "ops/pooling/pooling_walk_args.h"

/* Whether pixels are whole runs, and every result has something to be made of; what is made is y, or dx
 * of averages. */
bool wd_pool_walk_takes(const struct wd_pool_shape *shape, struct wd_reason *reason);

/* Rows of a strip, so that threads, of which processors have `resident`, are done soonest: strips' beginnings cost, and
 * so does a last wave of few. Of `least` rows and more, or one and more where most threads are idle all the same. */
int64_t wd_pool_walk_strip(const struct wd_device *device, int64_t across, int64_t rows,
                           int64_t least, int64_t resident);

/* All arguments, for threads of `columns` results side by side. */
struct pool_walk_args wd_pool_walk_args_of(const struct wd_device *device,
                                           const struct wd_pool_shape *shape, int64_t columns,
                                           const struct wd_pool_memory *memory);

cudnnStatus_t wd_pool_walk_launch(struct wd_queue *queue, struct wd_kernel_row *row,
                                  const struct pool_walk_args *args);

static inline bool wd_pool_walk_is_flat(const struct wd_pool_shape *s)
{
    return s->image[0] == 1 && s->windows[0] == 1;
}

#endif
