/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over two tensors, see tensor_walk.h. No state. */
#include "ops/tensor/tensor_walk.h"

void wd_walk_add(struct wd_walk *w, int64_t dim, int64_t x, int64_t y)
{
    int at = w->rank;
    if (dim == 1) return;
    for (; at > 0 && w->y[at - 1] < y; --at) {
        w->dim[at] = w->dim[at - 1];
        w->x[at] = w->x[at - 1];
        w->y[at] = w->y[at - 1];
    }
    w->dim[at] = dim;
    w->x[at] = x;
    w->y[at] = y;
    w->rank += 1;
}

void wd_walk_join(struct wd_walk *w)
{
    int last = -1;
    w->count = 1;
    for (int d = 0; d < w->rank; ++d) {
        w->count *= w->dim[d];
        if (last >= 0 && w->x[last] == w->x[d] * w->dim[d] && w->y[last] == w->y[d] * w->dim[d]) {
            w->dim[last] *= w->dim[d];
        } else {
            w->dim[++last] = w->dim[d];
        }
        w->x[last] = w->x[d];
        w->y[last] = w->y[d];
    }
    w->rank = last + 1;
    if (w->rank > 0) return;
    w->rank = 1;
    w->dim[0] = w->x[0] = w->y[0] = 1;
}

struct wd_walk wd_walk_of(const struct wd_tensor *x, const struct wd_tensor *y)
{
    struct wd_walk w = {.rank = 0};
    for (int d = 0; d < y->rank; ++d) wd_walk_add(&w, y->dim[d], x->stride[d], y->stride[d]);
    wd_walk_join(&w);
    return w;
}

int wd_walk_neighbours(const struct wd_walk *w)
{
    for (int d = 0; d < w->rank; ++d) {
        if (w->x[d] == 1) return d;
    }
    return -1;
}
