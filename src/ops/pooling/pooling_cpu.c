/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling on the CPU, forward and backward, maxima and averages: packed tensors of either order, of
 * all types and numbers of dimensions that the rule has. How is said in pooling_cpu.h; results do not
 * depend on the number of threads, and those of maxima are the definition's bit for bit. */
#include "ops/pooling/pooling_cpu.h"

#include <math.h>
#include <string.h>

#include "cpu/module/rows.h"
#include "cpu/module/sizes.h"
#include "cpu/module/tasks.h"
#include "ops/pooling/pooling_args.h"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX };
enum { ALPHA, BETA };

enum { SHORT_LINE = 48 }; /* elements */

struct args {
    const struct wd_pool_plan *plan;
    const void *x;
    const void *dy;
    struct wd_pool_sink sink;
    struct wd_tasks *tasks;
    char *scratch;
};

/* Places are as wide as values. */
typedef int32_t wd_pool_place_of_f32;
typedef int64_t wd_pool_place_of_f64;
typedef uint32_t wd_pool_unsigned_place_of_f32;
typedef uint64_t wd_pool_unsigned_place_of_f64;

static double wd_pool_lowest(int32_t dtype, bool wide)
{
    switch (dtype) {
    case CUDNN_DATA_INT8: return -128.0;
    case CUDNN_DATA_UINT8: return 0.0;
    case CUDNN_DATA_INT32: return -2147483648.0;
    case CUDNN_DATA_HALF: return -65504.0;
    case CUDNN_DATA_BFLOAT16: return -0x1.fep127;
    default: return wide ? -DBL_MAX : -(double)FLT_MAX;
    }
}

static int64_t product_of(const int64_t *extent, int32_t first, int32_t end)
{
    int64_t n = 1;
    for (int32_t d = first; d < end; ++d) n *= extent[d];
    return n;
}

#define WD_LOOPS "ops/pooling/pooling_cpu.inc"
#include "cpu/module/loops.inc"

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const bool forward = problem->node->op == WD_OP_POOL_FORWARD;
    const int slots = wd_op_info(problem->node->op)->slot_count;
    struct wd_pool_plan plan;
    char text[100];
    for (int s = 0; s < slots; ++s) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, s);
        if (!tensor || (!forward && s == BACKWARD_Y)) continue;
        WD_NEED(tensor->vect_count == 1 && wd_tensor_is_packed(tensor), reason,
                NOT_SUPPORTED_LAYOUT, "%s is not packed",
                wd_tensor_text(tensor, text, sizeof text));
        WD_NEED(wd_row_takes(tensor->dtype), reason, NOT_SUPPORTED_DATA_TYPE,
                "%s is not of whole bytes", wd_tensor_text(tensor, text, sizeof text));
        WD_NEED(
            forward || s != BACKWARD_X ||
                wd_tensor_same_layout(tensor, wd_slot(problem->graph, problem->node, BACKWARD_DX)),
            reason, NOT_SUPPORTED_LAYOUT, "%s lies unlike its gradient",
            wd_tensor_text(tensor, text, sizeof text));
    }
    WD_NEED(wd_pool_plan(problem, &plan), reason, NOT_SUPPORTED_LAYOUT,
            "neither NCHW nor NHWC on both sides, or a window beyond all bounds");
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_pool_plan plan;
    if (!wd_pool_plan(problem, &plan)) return 0;
    return plan.workers * plan.part[WD_POOL_PARTS] * (plan.wide ? 8 : 4);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const bool forward = call->problem.node->op == WD_OP_POOL_FORWARD;
    const int result = forward ? FORWARD_Y : BACKWARD_DX;
    const struct wd_tensor *to = wd_call_tensor(call, result);
    struct wd_pool_plan plan;
    struct wd_tasks tasks;
    struct args a = {
        .plan = &plan,
        .x = forward || wd_call_tensor(call, BACKWARD_X)
                 ? wd_call_data(call, forward ? FORWARD_X : BACKWARD_X)
                 : NULL,
        .dy = forward ? NULL : wd_call_data(call, BACKWARD_DY),
        .sink = {.data = wd_call_data(call, result),
                 .dtype = to->dtype,
                 .alpha = call->scalars[ALPHA],
                 .beta = call->scalars[BETA]},
        .tasks = &tasks,
        .scratch = call->workspace,
    };
    wd_pool_plan(&call->problem, &plan);
    a.sink.stream = a.sink.beta == 0.0 && wd_tensor_extent(to) >= WD_STREAM_BYTES;
    atomic_init(&tasks.next, 0);
    tasks.count = plan.tasks;
    return queue->ops->range(queue, plan.wide ? WD_PICK(run_workers_f64) : WD_PICK(run_workers_f32),
                             &a, plan.workers, 1);
}

const struct wd_engine wd_engine_pool_forward_cpu = {
    .name = "pool_forward_cpu",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_pool_backward_cpu = {
    .name = "pool_backward_cpu",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
