/* SPDX-License-Identifier: Apache-2.0
 *
 * The cut and the launch of norm_wide, see norm_wide.h. */
#include "ops/norm/norm_wide.h"

#include <string.h>

#include "base/sizes.h"

#define WD_KERNELS_MODULE norm_wide
#define WD_KERNELS_ROWS "ops/norm/norm_wide_kernels.def"
#include "ops/kernels_host.inc"

enum {
    LEAST_UNITS = 96,    /* of a row in a block: less is not worth a meeting */
    SHARED_FIXED = 8192, /* of a block, at most, beside the ring */
    PART_BYTES = 16,
    COLUMNS = 32, /* of a thread backward, at most: registers */
};

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

bool wd_norm_wide_cut(struct wd_norm_wide *c, const struct wd_problem *problem,
                      const struct wd_norm_rows *s)
{
    const struct wd_device *device = problem->device;
    int64_t each = NORM_ROWS_UNIT / wd_norm_bytes(wd_norm_tensor(problem, 0));
    int64_t units = wd_ceil_div(s->length, each);
    int64_t tensors = is_backward(problem) ? 2 : 1;
    int64_t most = device->shared_per_block - SHARED_FIXED;
    int64_t row;
    memset(c, 0, sizeof *c);
    if (!device->grids_meet || s->length > INT32_MAX / 2) return false;
    c->share = wd_ceil_div(units, wd_least(device->multiprocessors, NORM_WIDE_BLOCKS));
    if (c->share < LEAST_UNITS) return false;
    c->blocks = wd_ceil_div(units, c->share);
    c->threads = is_backward(problem) ? NORM_WIDE_THREADS_BACKWARD : NORM_WIDE_THREADS;
    if (is_backward(problem) && c->share * each > c->threads * COLUMNS) return false;
    /* one more where rows begin anywhere: where pointers lie is not known yet */
    c->row_units = c->share + 1;
    row = c->row_units * NORM_ROWS_UNIT * tensors;
    /* all at once, so that there is one meeting: many of them (512 rows of 262,144) cost more than
     * reading twice */
    c->batch = s->rows;
    if (s->rows > NORM_WIDE_BATCH || c->batch * row > most) return false;
    c->shared = c->batch * row;
    c->parts = c->batch * c->blocks * PART_BYTES;
    return true;
}

cudnnStatus_t wd_norm_wide_emit(const struct wd_call *call, struct wd_queue *queue,
                                const struct wd_norm_wide *c, const struct norm_rows_args *of)
{
    int64_t bytes = wd_norm_bytes(wd_call_tensor(call, 0));
    bool backward = is_backward(&call->problem);
    bool runs = of->length * bytes % NORM_ROWS_UNIT == 0 && wd_norm_aligned(of->x) &&
                wd_norm_aligned(of->dy) && wd_norm_aligned(of->y);
    struct norm_wide_args a;
    void *counters = NULL;
    int which;
    memset(&a, 0, sizeof a);
    a.of = *of;
    a.of.share = (uint32_t)c->share;
    a.of.apart = ((uintptr_t)of->x - (uintptr_t)of->y) % NORM_ROWS_UNIT != 0;
    a.parts = call->workspace;
    a.batch = (uint32_t)c->batch;
    a.row_units = (uint32_t)c->row_units;
    WD_TRY(queue->ops->counters(queue, &counters));
    a.counter = counters;
    which = (backward ? KERNEL_norm_wide_backward_f32 : KERNEL_norm_wide_forward_f32) +
            (runs ? 0 : NORM_ROWS_TYPES) + wd_norm_type(wd_call_tensor(call, 0)->dtype);
    return wd_emit_meeting_kernel(queue, &kernel_rows[which], c->blocks, (uint32_t)c->threads,
                                  (uint32_t)c->shared, &a);
}

/* Of the engines of long rows two are here, so that each table of kernels has an engine's name. */
const struct wd_engine wd_engine_norm_training_long = {
    .name = "norm_training_long",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_norm_long_match,
    .workspace = wd_norm_long_workspace,
    .emit = wd_norm_long_forward,
};

const struct wd_engine wd_engine_norm_backward_long = {
    .name = "norm_backward_long",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_norm_long_match,
    .workspace = wd_norm_long_workspace,
    .emit = wd_norm_long_backward,
};
