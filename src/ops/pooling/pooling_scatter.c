/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of maxima of windows that overlap on the GPU, a box of dx at a time in shared memory:
 * planes, and pixels of any number of channels, of up to three dimensions, in all floating types, at any
 * alignment. Windows that overlap take turns. Nothing passes through memory but x, dy and dx. */
#include "base/sizes.h"
#include "ops/pooling/pooling_band.h"

#define WD_KERNELS_MODULE pooling_scatter
#define WD_KERNELS_ROWS "ops/pooling/pooling_scatter_kernels.def"
#include "ops/kernels_host.inc"

/* Turns that windows may take, each with a barrier. */
enum { TURNS = 32 };

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    struct wd_pool_band band;
    int64_t turns = 1;
    WD_NEED(s->max, reason, NOT_SUPPORTED, "averages");
    WD_NEED(!s->pixels || s->inner % (16 / s->size) != 0, reason, NOT_SUPPORTED_LAYOUT,
            "pixels of whole runs of channels");
    for (int d = 0; d < 3; ++d) {
        WD_NEED(s->pad[d] < s->window[d] &&
                    (s->windows[d] - 1) * s->stride[d] - s->pad[d] < s->image[d],
                reason, NOT_SUPPORTED_SHAPE, "a window outside of the image along axis %d", d);
        turns *= wd_least(wd_ceil_div(s->window[d], s->stride[d]), s->windows[d]);
    }
    WD_NEED(turns <= TURNS, reason, NOT_SUPPORTED_SHAPE,
            "windows that overlap would take %lld turns, at most %d", (long long)turns, TURNS);
    WD_NEED(wd_pool_band_of(device, s, WD_POOL_BAND_SCATTER, &band), reason, NOT_SUPPORTED_SHAPE,
            "a window of %lld x %lld x %lld pixels does not fit shared memory",
            (long long)s->window[0], (long long)s->window[1], (long long)s->window[2]);
    return true;
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    const bool square = s->image[0] == 1 && s->windows[0] == 1 && s->window[0] == 1 &&
                        s->window[1] == 3 && s->window[2] == 3;
    struct wd_pool_band band;
    wd_pool_band_of(queue->device, s, WD_POOL_BAND_SCATTER, &band);
    wd_pool_band_fill(&band, m);
    return wd_emit_kernel(
        queue, &kernel_rows[KERNEL_scatter_plane_f32_3 + s->type * 4 + s->pixels * 2 + !square],
        band.blocks, band.threads, (uint32_t)band.bytes, &band.args);
}

const struct wd_pool_way wd_pool_backward_scatter = {takes, NULL, emit_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_backward_scatter, problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&wd_pool_backward_scatter, call, queue);
}

const struct wd_engine wd_engine_pool_backward_scatter = {
    .name = "pool_backward_scatter",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
