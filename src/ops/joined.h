/* SPDX-License-Identifier: Apache-2.0
 *
 * Several tensors walked as one: dimensions in the order of one tensor's memory, without those of
 * extent 1, and neighbours that all tensors walk in one stride made one. Plain functions. */
#ifndef WD_OPS_JOINED_H
#define WD_OPS_JOINED_H

#include <stdbool.h>

#include "base/view.h"

enum { WD_JOINED_MAX = 12 };

struct wd_joined {
    int rank; /* at least 1 */
    int tensors;
    int64_t count;
    int64_t dim[WD_MAX_RANK];                   /* by falling stride of the lead */
    int64_t stride[WD_JOINED_MAX][WD_MAX_RANK]; /* by tensor; 0 where it repeats */
};

/* `views[lead]` has the shape that is walked; the others repeat along dimensions in which they have
 * extent 1, or everywhere where they have no data. Lanes of vectorised tensors are not walked. */
void wd_join(struct wd_joined *joined, const struct wd_view *const *views, int count, int lead);

/* Whether the tensor lies as the index counts. */
bool wd_joined_is_flat(const struct wd_joined *joined, int tensor);

#endif
