/* SPDX-License-Identifier: Apache-2.0
 *
 * How the GPU engines of pointwise walk operands of any strides together: in runs of elements that
 * follow one another as the index counts. Operands that lie as the walk does are read whole loads at
 * a time, repeated ones once a run. Walks of 2^31 elements and more are split. No state. */
#ifndef WD_OPS_POINTWISE_WALK_H
#define WD_OPS_POINTWISE_WALK_H

#include "base/status.h"
#include "ops/joined.h"
#include "ops/pointwise/pointwise_vector_args.h"

/* Bytes of an element; types of whole bytes, and booleans as if they were. */
int64_t wd_pointwise_element_bytes(const struct pointwise_operand *operand);

/* Says of each of `count` operands how it follows runs of `run` elements, with its strides. Those
 * from `written` on are written, and the walk is that of the first of them. Returns how many elements
 * it begins behind a whole load, where it lies as the index counts and all that do so begin as far
 * behind: their data then begins so many elements before the first. Else 0. */
uint32_t wd_pointwise_follow(const struct wd_joined *walk, struct pointwise_operand *operands,
                             int count, int written, int run);

/* Calls `launch` for pieces of the outermost dimensions, each a walk of one launch. */
typedef cudnnStatus_t (*wd_pointwise_launch_fn)(void *context, const struct wd_joined *walk,
                                                const struct pointwise_operand *operands);
cudnnStatus_t wd_pointwise_split(const struct wd_joined *walk,
                                 const struct pointwise_operand *operands, int count,
                                 wd_pointwise_launch_fn launch, void *context);

#endif
