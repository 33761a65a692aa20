/* SPDX-License-Identifier: Apache-2.0
 *
 * Group norm and instance norm on the GPU of what fits the shared memory of a block or cluster: one
 * kernel, one reading. norm_kept_args.h says how x is gone through, norm_kept_cut.h how it is cut. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_groups.h"
#include "ops/norm/norm_kept_args.h"
#include "ops/norm/norm_kept_cut.h"

#define WD_KERNELS_MODULE norm_kept
#define WD_KERNELS_ROWS "ops/norm/norm_kept_kernels.def"
#include "ops/kernels_host.inc"

static bool see(struct norm_groups_shape *s, struct norm_kept_cut *c,
                const struct wd_problem *problem)
{
    (void)wd_norm_groups_see(s, problem);
    if (s->plane == 1) s->columns = false; /* groups are neighbours either way */
    return norm_kept_cut(c, s, problem->device);
}

bool wd_norm_kept_takes(const struct wd_problem *problem)
{
    struct norm_groups_shape s;
    struct norm_kept_cut c;
    return !wd_norm_groups_given(problem) && see(&s, &c, problem);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct norm_groups_shape s;
    struct norm_kept_cut c;
    if (!wd_norm_groups_match(problem, reason)) return false;
    WD_NEED(see(&s, &c, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld elements of a sample and group do not fit the shared memory of a cluster",
            (long long)(s.each * s.plane));
    return true;
}

/* ---- Emitting ---- */

static void place(struct norm_kept_args *a, const struct norm_groups_shape *s,
                  const struct norm_kept_cut *c)
{
    a->panels = c->panels;
    a->total = s->samples * s->channels * s->plane;
    a->inverse = 1.0 / (double)(s->each * s->plane);
    a->by_plane = wd_fastdiv_of((uint32_t)s->plane);
    a->clusters = (uint32_t)c->clusters;
    a->cluster = (uint32_t)c->cluster;
    a->channels = (uint32_t)s->channels;
    a->plane = (uint32_t)s->plane;
    a->groups = (uint32_t)s->groups;
    a->each = (uint32_t)s->each;
    a->length = (uint32_t)c->length;
    a->beside = (uint32_t)c->beside;
    a->lanes = (uint32_t)c->lanes;
    a->part = (uint32_t)c->part;
    a->slots = (uint32_t)c->slots;
    a->tile = (uint32_t)c->tile;
    a->tiles = (uint32_t)c->tiles;
    a->across = (uint32_t)c->across;
    a->rows = (uint32_t)c->rows;
    a->space = (uint32_t)c->space;
    a->runs = wd_norm_aligned(a->x) && wd_norm_aligned(a->dy) && wd_norm_aligned(a->y) &&
              (s->columns       ? s->channels
               : c->panels == 1 ? 0
                                : c->length) *
                      s->size % 16 ==
                  0;
}

cudnnStatus_t wd_norm_kept_emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    struct norm_groups_shape s;
    struct norm_kept_cut c;
    struct norm_kept_args a;
    int type = wd_norm_type(wd_call_tensor(call, 0)->dtype);
    if (!see(&s, &c, &call->problem)) return CUDNN_STATUS_INTERNAL_ERROR;
    memset(&a, 0, sizeof a);
    a.x = wd_norm_data(call, p.x);
    a.y = wd_norm_data(call, p.y);
    a.scale = wd_norm_param(call, p.scale);
    a.bias = wd_norm_param(call, p.bias);
    if (call->problem.node->op == WD_OP_NORM_TRAINING) {
        a.mean = wd_norm_data(call, p.mean);
        a.inv_std = wd_norm_data(call, p.inv_std);
        a.epsilon = wd_call_view(call, NORM_TRAIN_EPSILON).value;
    } else {
        a.epsilon = wd_call_view(call, NORM_INFER_EPSILON).value;
    }
    a.streaming = wd_tensor_extent(wd_call_tensor(call, p.x)) > queue->device->l2_bytes;
    place(&a, &s, &c);
    return wd_emit_cluster_kernel(
        queue,
        &kernel_rows[KERNEL_norm_kept_planes_forward_even_f32 + c.way * NORM_ROWS_TYPES + type],
        c.clusters * c.cluster, (uint32_t)c.threads, (uint32_t)c.cluster, (uint32_t)c.shared, &a);
}

const struct wd_engine wd_engine_norm_training_kept = {
    .name = "norm_training_kept",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .emit = wd_norm_kept_emit,
};
