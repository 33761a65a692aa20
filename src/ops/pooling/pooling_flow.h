/* SPDX-License-Identifier: Apache-2.0
 *
 * How an image is cut into tiles through whose shared memory rows flow (pooling_flow_args.h). Pure
 * functions. */
#ifndef WD_OPS_POOLING_FLOW_H
#define WD_OPS_POOLING_FLOW_H

#include "ops/kernels.h"
#include "ops/pooling/pooling_flow_args.h"
#include "ops/pooling/pooling_shape.h"

/* What is made of 3x3 windows: dx of averages at a stride of 1 and of 2, dx of maxima at one of 2. */
enum wd_pool_flow_work {
    WD_POOL_FLOW_SPREAD,
    WD_POOL_FLOW_PAIRS,
    WD_POOL_FLOW_MAXIMA,
};

/* Whether it takes that, and why not. */
bool wd_pool_flow_takes(const struct wd_device *device, const struct wd_pool_shape *shape,
                        enum wd_pool_flow_work work, struct wd_reason *reason);

cudnnStatus_t wd_pool_flow_emit(struct wd_queue *queue, struct wd_kernel_row *row,
                                const struct wd_pool_shape *shape, enum wd_pool_flow_work work,
                                const struct wd_pool_memory *memory);

#endif
