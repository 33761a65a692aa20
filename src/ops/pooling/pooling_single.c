/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling forward on the GPU, a thread a window, at any alignment: images of one or two dimensions in
 * fp32, fp16 and bf16. Takes small windows, and those that share little, that pool_forward_vector has
 * no runs for, and all windows of few results. */
#include "ops/pooling/pooling_vector.h"

#define WD_KERNELS_MODULE pooling_single
#define WD_KERNELS_ROWS "ops/pooling/pooling_single_kernels.def"
#include "ops/kernels_host.inc"

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    (void)device;
    WD_NEED(s->size != 8, reason, NOT_SUPPORTED_DATA_TYPE, "fp64: pool_forward_tile has it");
    WD_NEED(wd_pool_is_flat(s), reason, NOT_SUPPORTED_SHAPE, "windows of three dimensions");
    WD_NEED(wd_pool_is_single(s) || wd_pool_is_small(s), reason, NOT_SUPPORTED_SHAPE,
            "windows of %lld x %lld are better cut from a box in shared memory",
            (long long)s->window[1], (long long)s->window[2]);
    return true;
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *memory)
{
    struct pool_vector_args a = wd_pool_vector_args_of(s, memory);
    int size = 2; /* of 2 and 3 elements a side, or any */
    if (s->window[1] == s->window[2] && (s->window[1] == 2 || s->window[1] == 3)) {
        size = (int)s->window[1] - 2;
    }
    a.by_w = wd_fastdiv_of((uint32_t)s->inner);
    a.by_h = wd_fastdiv_of((uint32_t)s->windows[2]);
    a.by_outer = wd_fastdiv_of((uint32_t)s->windows[1]);
    return wd_pool_vector_launch(queue, &kernel_rows[KERNEL_single_f32_2 + 3 * s->type + size],
                                 s->outer * wd_pool_windows(s), &a);
}

const struct wd_pool_way wd_pool_forward_single = {takes, NULL, emit_shape, NULL};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_forward_single, problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&wd_pool_forward_single, call, queue);
}

const struct wd_engine wd_engine_pool_forward_single = {
    .name = "pool_forward_single",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
