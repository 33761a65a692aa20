/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling problems in the form of pooling_block.h, as pooling's own engines get them. Pure functions. */
#ifndef WD_OPS_POOLING_SHAPE_H
#define WD_OPS_POOLING_SHAPE_H

#include "base/sizes.h"
#include "ops/pooling/pooling_block.h"

/* Of a node: where its tensors and scalars are. */
enum { WD_POOL_X, WD_POOL_Y }; /* forward */
enum { WD_POOL_BACK_Y, WD_POOL_BACK_DY, WD_POOL_BACK_X, WD_POOL_BACK_DX };
enum { WD_POOL_ALPHA, WD_POOL_BETA };

/* Of a pooling problem. */
bool wd_pool_shape_of(const struct wd_problem *problem, struct wd_pool_shape *shape,
                      struct wd_reason *reason);

/* Whether the windows along an axis are one that covers all of the image. */
bool wd_pool_is_whole(const struct wd_pool_shape *s, int axis);

static inline int64_t wd_pool_image(const struct wd_pool_shape *s)
{
    return s->image[0] * s->image[1] * s->image[2] * s->inner;
}

static inline int64_t wd_pool_windows(const struct wd_pool_shape *s)
{
    return s->windows[0] * s->windows[1] * s->windows[2] * s->inner;
}

/* The kernels' mode, POOL_AVERAGE and so on. */
static inline int wd_pool_mode(const struct wd_pool_shape *s)
{
    return !s->max ? 0 : s->propagate ? 2 : 1;
}

/* Whether something is blended in, or all is 0: most kernels leave that to boxes. */
static inline bool wd_pool_blends(const struct wd_pool_memory *m)
{
    return m->alpha == 0.0 || m->beta != 0.0;
}

struct wd_pool_memory wd_pool_memory_of(const struct wd_call *call,
                                        const struct wd_pool_shape *shape,
                                        const struct wd_device *device);

/* The functions of an engine that goes that way. */
bool wd_pool_way_match(const struct wd_pool_way *way, const struct wd_problem *problem,
                       struct wd_reason *reason);
cudnnStatus_t wd_pool_way_emit(const struct wd_pool_way *way, const struct wd_call *call,
                               struct wd_queue *queue);
/* And of one whose way prepares something: `prepare` is the engine's, made of the first of these. */
void wd_pool_way_prepare(const struct wd_pool_way *way, const struct wd_problem *problem,
                         struct wd_pool_job *job);
cudnnStatus_t wd_pool_way_emit_prepared(wd_prepare_fn prepare, const struct wd_call *call,
                                        struct wd_queue *queue);

/* Windows over an element along an axis, at most. */
static inline int64_t wd_pool_over(const struct wd_pool_shape *s, int axis)
{
    return wd_least(wd_ceil_div(s->window[axis], s->stride[axis]), s->windows[axis]);
}

/* Whether a box of it fits the device's shared memory, at any alignment. */
bool wd_pool_tile_fits(const struct wd_device *device, const struct wd_pool_shape *shape);

#endif
