/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer norm and RMS norm of few short rows, where the launch and the waiting for memory are all there is: a
 * block a row, a thread a unit. Tensors off the boundaries go the way of norm_rows. */
#include "base/sizes.h"
#include "ops/norm/norm_gpu.h"
#include "ops/norm/norm_rows.h"
#include "ops/norm/norm_wide.h"

#define WD_KERNELS_MODULE norm_few
#define WD_KERNELS_ROWS "ops/norm/norm_few_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    ROWS_MOST = 4,      /* of a processor: more are faster where threads have more of a row */
    LENGTH_LEAST = 257, /* shorter ones lie beside one another in a warp */
};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_norm_rows s = {.rows = 0};
    int64_t each;
    if (!wd_norm_rows_match(problem, &s, reason)) return false;
    each = NORM_ROWS_UNIT / wd_norm_bytes(wd_norm_tensor(problem, 0));
    WD_NEED(s.rows <= (int64_t)ROWS_MOST * problem->device->multiprocessors, reason,
            NOT_SUPPORTED_SHAPE, "%lld rows are not few", (long long)s.rows);
    WD_NEED(s.length >= LENGTH_LEAST && s.length % each == 0 &&
                s.length / each <= NORM_ROWS_THREADS,
            reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements are none of up to %d units, or too short", (long long)s.length,
            NORM_ROWS_THREADS);
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, 0);
    int64_t bytes = wd_norm_bytes(x);
    int epsilon = call->problem.node->op == WD_OP_NORM_TRAINING ? (int)NORM_TRAIN_EPSILON
                                                                : (int)NORM_INFER_EPSILON;
    struct wd_norm_rows s;
    struct norm_rows_args a;
    (void)wd_norm_rows_see(&s, &call->problem);
    a = wd_norm_rows_args_of(call, &s, queue->device);
    if (!wd_norm_rows_whole(&a, bytes)) return wd_norm_rows_forward(call, queue);
    a.epsilon = (float)wd_call_view(call, epsilon).value;
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_norm_few_f32 + wd_norm_type(x->dtype)], s.rows,
                          (uint32_t)(wd_ceil_div(s.length * bytes, WARP * NORM_ROWS_UNIT) * WARP),
                          0, &a);
}

const struct wd_engine wd_engine_norm_inference_few = {
    .name = "norm_inference_few",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = wd_norm_long_workspace, /* for tensors that lie unlike one another */
    .emit = emit,
};

const struct wd_engine wd_engine_norm_training_few = {
    .name = "norm_training_few",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = wd_norm_long_workspace, /* for tensors that lie unlike one another */
    .emit = emit,
};
