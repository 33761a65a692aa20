/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling forward on the GPU, a box of the image at a time in shared memory: packed images of up to
 * three dimensions in any floating type, at any alignment. Takes what pool_forward_vector has no
 * kernel for. */
#include "ops/pooling/pooling_tile_plan.h"

#define WD_KERNELS_MODULE pooling_tile
#define WD_KERNELS_ROWS "ops/pooling/pooling_tile_kernels.def"
#include "ops/kernels_host.inc"

static bool fits(const struct wd_device *device, const struct wd_pool_shape *s)
{
    enum wd_pool_work work = !s->backward ? WD_POOL_FORWARD
                             : s->max     ? WD_POOL_COLLECT
                                          : WD_POOL_SPREAD;
    struct wd_pool_plan plan;
    return wd_pool_plan_of(device, s, work, 1, &plan);
}

bool wd_pool_tile_fits(const struct wd_device *device, const struct wd_pool_shape *s)
{
    return fits(device, s);
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    WD_NEED(fits(device, s), reason, NOT_SUPPORTED_SHAPE,
            "a window of %lld x %lld x %lld elements does not fit shared memory",
            (long long)s->window[0], (long long)s->window[1], (long long)s->window[2]);
    return true;
}

static void prepare_shape(const struct wd_device *device, const struct wd_pool_shape *s,
                          void *prepared)
{
    _Static_assert(sizeof(struct wd_pool_plans) <= WD_POOL_PREPARED, "there is room for them");
    wd_pool_plans_of(device, s, WD_POOL_FORWARD, prepared);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *memory)
{
    /* by type: runs of 16 bytes by way, single elements */
    static const int of_runs[3][POOL_WAYS] = {
        {KERNEL_pool_tile_f32_16_any, KERNEL_pool_tile_f32_16_run},
        {KERNEL_pool_tile_f16_16_any, KERNEL_pool_tile_f16_16_run},
        {KERNEL_pool_tile_bf16_16_any, KERNEL_pool_tile_bf16_16_run},
    };
    static const int single[4] = {KERNEL_pool_tile_f32_1_any, KERNEL_pool_tile_f16_1_any,
                                  KERNEL_pool_tile_bf16_1_any, KERNEL_pool_tile_f64_1_any};
    struct wd_pool_plan plan;
    int kernel;
    if (!wd_pool_plan_call(queue->device, s, WD_POOL_FORWARD, memory, &wd_pool_forward_tile,
                           &plan)) {
        return CUDNN_STATUS_INTERNAL_ERROR;
    }
    kernel = plan.runs ? of_runs[s->type][plan.way] : single[s->type];
    return wd_emit_kernel(queue, &kernel_rows[kernel], plan.blocks, POOL_THREADS,
                          (uint32_t)plan.bytes, &plan.args);
}

const struct wd_pool_way wd_pool_forward_tile = {takes, NULL, emit_shape, prepare_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_forward_tile, problem, reason);
}

static void prepare(const struct wd_problem *problem, void *job)
{
    wd_pool_way_prepare(&wd_pool_forward_tile, problem, job);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit_prepared(prepare, call, queue);
}

const struct wd_engine wd_engine_pool_forward_tile = {
    .name = "pool_forward_tile",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_pool_job),
    .emit = emit,
};
