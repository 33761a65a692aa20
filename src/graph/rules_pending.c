/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of operations that are in the table but not built yet. A family that gets its rule deletes
 * it here. */
#include "graph/graph.h"

static cudnnStatus_t not_yet(const struct wd_node *node)
{
    return wd_fail(CUDNN_STATUS_NOT_SUPPORTED, "%s is not implemented yet",
                   wd_op_info(node->op)->name);
}
