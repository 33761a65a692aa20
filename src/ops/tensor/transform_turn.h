/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of layout by tiles, for other engines whose parts are such (an input of a concatenation) or
 * which do the same in another way. No state. */
#ifndef WD_OPS_TRANSFORM_TURN_H
#define WD_OPS_TRANSFORM_TURN_H

#include "ops/engine.h"
#include "ops/tensor/tensor_walk.h"

enum { WD_TURN_X = 0, WD_TURN_Y = 3 }; /* slots of an identity, a pointwise node */

/* Whether the node is an identity that `identity_turn` takes, and its walk. */
bool wd_turn_matches(const struct wd_problem *problem, struct wd_walk *walk,
                     struct wd_reason *reason);

/* Whether elements are moved as they are. */
bool wd_turn_moves_only(const struct wd_problem *problem, struct wd_reason *reason);

/* Whether tiles take x, a packed tensor, to a part of y along this walk, in elements of `bytes`; and
 * whether that is worth a launch of its own. */
bool wd_turn_takes(const struct wd_walk *walk, int64_t bytes);

cudnnStatus_t wd_emit_turn(struct wd_queue *queue, const struct wd_walk *walk, int64_t bytes,
                           const void *from, void *to, bool streaming);

#endif
