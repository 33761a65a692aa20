/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins dimensions of several tensors. No state. */
#include "ops/joined.h"

#include <string.h>

static int64_t stride_of(const struct wd_view *view, int d)
{
    return view->data && d < view->rank && view->dim[d] > 1 ? view->stride[d] : 0;
}

void wd_join(struct wd_joined *joined, const struct wd_view *const *views, int count, int lead)
{
    const struct wd_view *y = views[lead];
    int order[WD_MAX_RANK];
    int kept = 0;
    for (int d = 0; d < y->rank; ++d) {
        int at = kept;
        if (y->dim[d] == 1) continue;
        for (; at > 0 && y->stride[order[at - 1]] < y->stride[d]; --at) order[at] = order[at - 1];
        order[at] = d;
        kept += 1;
    }
    memset(joined, 0, sizeof *joined);
    joined->tensors = count;
    joined->count = 1;
    for (int i = 0; i < kept; ++i) {
        int d = order[i];
        int last = joined->rank - 1;
        bool joins = last >= 0;
        for (int t = 0; t < count && joins; ++t) {
            joins = joined->stride[t][last] == stride_of(views[t], d) * y->dim[d];
        }
        if (!joins) {
            last = joined->rank++;
            joined->dim[last] = 1;
        }
        joined->dim[last] *= y->dim[d];
        joined->count *= y->dim[d];
        for (int t = 0; t < count; ++t) joined->stride[t][last] = stride_of(views[t], d);
    }
    if (joined->rank == 0) {
        joined->rank = 1;
        joined->dim[0] = 1;
    }
}

bool wd_joined_is_flat(const struct wd_joined *joined, int tensor)
{
    int64_t expected = 1;
    for (int d = joined->rank - 1; d >= 0; --d) {
        if (joined->stride[tensor][d] != expected && joined->count > 1) return false;
        expected *= joined->dim[d];
    }
    return true;
}
