/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of pooling on the GPU, a box of dx at a time in shared memory: packed images of up to
 * three dimensions in any floating type, at any alignment; windows of maxima have at most 255
 * elements. Nothing passes through memory but x, dy and dx. */
#include "ops/pooling/pooling_tile_plan.h"

#define WD_KERNELS_MODULE pooling_tile_back
#define WD_KERNELS_ROWS "ops/pooling/pooling_tile_back_kernels.def"
#include "ops/kernels_host.inc"

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    WD_NEED(!s->max || s->window[0] * s->window[1] * s->window[2] <= POOL_NO_CODE, reason,
            NOT_SUPPORTED_SHAPE, "a window of %lld elements, their codes end at %d",
            (long long)(s->window[0] * s->window[1] * s->window[2]), POOL_NO_CODE);
    WD_NEED(wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE,
            "windows of %lld x %lld x %lld elements do not fit shared memory",
            (long long)s->window[0], (long long)s->window[1], (long long)s->window[2]);
    return true;
}

/* By type: runs of 16 bytes, by way; and single elements. */
static const int spread_runs[3][POOL_WAYS] = {
    {KERNEL_spread_tile_f32_16_any, KERNEL_spread_tile_f32_16_run},
    {KERNEL_spread_tile_f16_16_any, KERNEL_spread_tile_f16_16_run},
    {KERNEL_spread_tile_bf16_16_any, KERNEL_spread_tile_bf16_16_run},
};
static const int spread_single[4] = {KERNEL_spread_tile_f32_1_any, KERNEL_spread_tile_f16_1_any,
                                     KERNEL_spread_tile_bf16_1_any, KERNEL_spread_tile_f64_1_any};
static const int collect_row[4][2] = {
    {KERNEL_collect_tile_f32_16_any, KERNEL_collect_tile_f32_1_any},
    {KERNEL_collect_tile_f16_16_any, KERNEL_collect_tile_f16_1_any},
    {KERNEL_collect_tile_bf16_16_any, KERNEL_collect_tile_bf16_1_any},
    {0, KERNEL_collect_tile_f64_1_any},
};

static void prepare_shape(const struct wd_device *device, const struct wd_pool_shape *s,
                          void *prepared)
{
    _Static_assert(sizeof(struct wd_pool_plans) <= WD_POOL_PREPARED, "there is room for them");
    wd_pool_plans_of(device, s, s->max ? WD_POOL_COLLECT : WD_POOL_SPREAD, prepared);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *memory)
{
    struct wd_pool_plan plan;
    int kernel;
    if (!wd_pool_plan_call(queue->device, s, s->max ? WD_POOL_COLLECT : WD_POOL_SPREAD, memory,
                           &wd_pool_backward_tile, &plan)) {
        return CUDNN_STATUS_INTERNAL_ERROR;
    }
    kernel = s->max      ? collect_row[s->type][!plan.runs]
             : plan.runs ? spread_runs[s->type][plan.way]
                         : spread_single[s->type];
    return wd_emit_kernel(queue, &kernel_rows[kernel], plan.blocks, POOL_THREADS,
                          (uint32_t)plan.bytes, &plan.args);
}

const struct wd_pool_way wd_pool_backward_tile = {takes, NULL, emit_shape, prepare_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_backward_tile, problem, reason);
}

static void prepare(const struct wd_problem *problem, void *job)
{
    wd_pool_way_prepare(&wd_pool_backward_tile, problem, job);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit_prepared(prepare, call, queue);
}

const struct wd_engine wd_engine_pool_backward_tile = {
    .name = "pool_backward_tile",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_pool_job),
    .emit = emit,
};
