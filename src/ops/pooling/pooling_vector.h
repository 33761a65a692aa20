/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engines straight from memory share: which windows a thread each is best for, arguments,
 * launches. */
#ifndef WD_OPS_POOLING_VECTOR_H
#define WD_OPS_POOLING_VECTOR_H

#include "ops/kernels.h"
#include "ops/pooling/pooling_shape.h"
#include "ops/pooling/pooling_vector_args.h"

/* Elements of a window up to which a thread reads them all by itself: measured on an H200, 3x3/1 and
 * 3x3/2 take 0.55 to 0.95 of a box's time, whatever the alignment; 4x4/1 takes 1.4 to 1.8, 5x5/2 1.2,
 * 13x13/1 6 to 8. */
enum { WD_POOL_NEAR = 9 };

/* Times that larger windows may read an element. */
enum { WD_POOL_APART = 3 };

/* Results, elements of dx, times windows over each, and elements of a window. H200, us, by boxes and by elements: max
 * forward 5x5/2 fp32 1x25x300x128, 2e5 results, 10.1 and 5.6, but 5x5/1 1x224x123x8, whose windows read an element 25 times,
 * 3.3 and 4.2; average backward 4x4/2 fp16 71x7x14x87, 6e5 elements of 4 windows, 8.1 and 6.8, 3x3/1 fp32 176x8x1x137, 2e5
 * of 3, 6.1 and 3.1, but 4x4/2 bf16 72x7x28x64, 9e5 of 4, 8.5 and 11.3, 4x4/1 fp32 14x17x24x74, 4e5 of 16, 9.8 and 11.7. */
enum {
    WD_POOL_SMALL = 1 << 18,
    WD_POOL_SMALL_BACK = 5 << 17,
    WD_POOL_OVER_SMALL = 3 << 20,
    WD_POOL_APART_SMALL = 8, /* times that windows may read an element */
    WD_POOL_SHORT = 64,
};

static inline bool wd_pool_is_near(const struct wd_pool_shape *s)
{
    return s->window[1] * s->window[2] <= WD_POOL_NEAR;
}

static inline bool wd_pool_is_flat(const struct wd_pool_shape *s)
{
    return s->image[0] == 1 && s->windows[0] == 1 && s->window[0] == 1;
}

/* Images of two dimensions whose windows are read one element at a time better than from a box. */
static inline bool wd_pool_is_single(const struct wd_pool_shape *s)
{
    return wd_pool_is_near(s) ||
           s->window[1] * s->window[2] <= WD_POOL_APART * s->stride[1] * s->stride[2];
}

/* Few results, whose windows are read one element at a time sooner than boxes are staged. */
static inline bool wd_pool_is_small(const struct wd_pool_shape *s)
{
    const int64_t results = s->outer * (s->backward ? wd_pool_image(s) : wd_pool_windows(s));
    if (s->window[1] * s->window[2] > WD_POOL_SHORT) return false;
    if (!s->backward) {
        return results <= WD_POOL_SMALL &&
               s->window[1] * s->window[2] <= WD_POOL_APART_SMALL * s->stride[1] * s->stride[2];
    }
    return results <= WD_POOL_SMALL_BACK &&
           results * wd_pool_over(s, 1) * wd_pool_over(s, 2) <= WD_POOL_OVER_SMALL;
}

struct pool_vector_args wd_pool_vector_args_of(const struct wd_pool_shape *shape,
                                               const struct wd_pool_memory *memory);

/* The kernel of a row, a thread an item. */
cudnnStatus_t wd_pool_vector_launch(struct wd_queue *queue, struct wd_kernel_row *row,
                                    int64_t items, struct pool_vector_args *args);

#endif
