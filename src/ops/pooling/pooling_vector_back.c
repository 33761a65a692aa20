/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of pooling on the GPU where windows do not overlap, straight from memory: pixels, of few
 * elements a window where there are no whole runs of channels, planes whose rows are pairs of columns, and averages of whole planes; fp32, fp16 and bf16. */
#include <string.h>

#include "base/sizes.h"
#include "ops/pooling/pooling_tile_plan.h"

#define WD_KERNELS_MODULE pooling_vector_back
#define WD_KERNELS_ROWS "ops/pooling/pooling_vector_back_kernels.def"
#include "ops/kernels_host.inc"

enum {
    THREADS_FEW = 64,
    FEW =
        9, /* elements of a window of single channels: from there on lines of 32 bytes are wasted */
};

static int64_t run_elements(const struct wd_pool_shape *s)
{
    return 16 / s->size;
}

static bool is_apart(const struct wd_pool_shape *s)
{
    for (int d = 0; d < 3; ++d) {
        if (s->window[d] > s->stride[d] && s->windows[d] > 1) return false;
    }
    return true;
}

static bool is_runs(const struct wd_pool_shape *s)
{
    return s->pixels && s->inner % run_elements(s) == 0;
}

static bool is_pixel(const struct wd_pool_shape *s)
{
    return is_runs(s) || (s->pixels && s->window[0] * s->window[1] * s->window[2] <= FEW);
}

static bool is_pairs(const struct wd_pool_shape *s)
{
    return !s->pixels && s->window[2] == 2 && s->window[1] <= 2 && s->stride[2] == 2 &&
           s->pad[2] == 0 && 2 * s->windows[2] == s->image[2] && s->image[2] % run_elements(s) == 0;
}

static bool is_plane(const struct wd_pool_shape *s)
{
    return !s->pixels && !s->max && wd_pool_is_whole(s, 0) && wd_pool_is_whole(s, 1) &&
           wd_pool_is_whole(s, 2);
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    WD_NEED(s->size != 8, reason, NOT_SUPPORTED_DATA_TYPE, "fp64: pool_backward_tile has it");
    WD_NEED(is_apart(s), reason, NOT_SUPPORTED_SHAPE, "windows overlap");
    WD_NEED(is_pixel(s) || is_pairs(s) || is_plane(s), reason, NOT_SUPPORTED_SHAPE,
            "neither pixels of whole runs or small windows, nor planes of pairs of columns, nor "
            "whole planes");
    WD_NEED(!s->max || s->window[0] * s->window[1] * s->window[2] <= POOL_NO_CODE, reason,
            NOT_SUPPORTED_SHAPE, "a window of %lld elements, their codes end at %d",
            (long long)(s->window[0] * s->window[1] * s->window[2]), POOL_NO_CODE);
    WD_NEED(wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE, "not at any alignment");
    return true;
}

static cudnnStatus_t launch(struct wd_queue *queue, int kernel, int64_t items,
                            const struct pool_tile_args *a)
{
    uint32_t threads = POOL_THREADS;
    if (items < (int64_t)POOL_THREADS * queue->device->multiprocessors) threads = THREADS_FEW;
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(items, threads), threads, 0, a);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    struct wd_pool_plan plan;
    struct pool_tile_args *a = &plan.args;
    const bool pixels = is_pixel(s);
    const int64_t run = pixels && !is_runs(s) ? 1 : run_elements(s);
    const uintptr_t image = (uintptr_t)m->x | (uintptr_t)m->out;
    if (wd_pool_blends(m)) return wd_pool_backward_tile.emit(queue, s, m);
    if (run > 1 &&
        (image % 16 != 0 || (!is_plane(s) && (uintptr_t)m->dy % (pixels ? 16 : 8) != 0))) {
        return wd_pool_backward_tile.emit(queue, s, m);
    }
    memset(&plan, 0, sizeof plan);
    wd_pool_plan_fill(&plan, s, m);
    a->mode = wd_pool_mode(s);
    a->exclude = s->exclude;
    a->inverse = s->inverse;
    if (is_plane(s)) {
        a->by_plane = wd_fastdiv_of((uint32_t)wd_pool_image(s));
        a->total = (uint32_t)(s->outer * wd_pool_image(s));
        return launch(queue, KERNEL_grad_plane_f32 + s->type,
                      wd_ceil_div(a->total, run * POOL_PLANE_RUNS), a);
    }
    for (int d = 0; d < 3; ++d) {
        struct pool_axis *x = &a->axis[d];
        x->image = (int32_t)s->image[d];
        x->windows = (int32_t)s->windows[d];
        x->size = (int32_t)s->window[d];
        x->stride = (int32_t)s->stride[d];
        x->pad = (int32_t)s->pad[d];
        x->by_tiles = wd_fastdiv_of((uint32_t)s->windows[d]);
    }
    if (pixels) {
        bool few = s->window[1] <= 2 && s->window[2] <= 2;
        a->inner = (uint32_t)(s->inner / run);
        a->by_tile_inner = wd_fastdiv_of(a->inner);
        a->total = (uint32_t)(s->outer * wd_pool_windows(s) / run);
        if (run == 1) return launch(queue, KERNEL_grad_pixel_f32_1 + s->type, a->total, a);
        if (!s->max) return launch(queue, KERNEL_grad_mean_f32 + s->type, a->total, a);
        return launch(queue, KERNEL_grad_pixel_f32_2 + s->type * 2 + !few, a->total, a);
    }
    a->by_tile_inner = wd_fastdiv_of((uint32_t)(s->image[2] / run));
    a->total = (uint32_t)(s->outer * wd_pool_windows(s) / (run / 2));
    return launch(queue, KERNEL_grad_pairs_f32 + s->type, a->total, a);
}

const struct wd_pool_way wd_pool_backward_vector = {takes, NULL, emit_shape, NULL};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_backward_vector, problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&wd_pool_backward_vector, call, queue);
}

const struct wd_engine wd_engine_pool_backward_vector = {
    .name = "pool_backward_vector",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
