/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling forward on the GPU, a box at a time in shared memory, in all floating types at any alignment:
 * windows of 3x3 at the same stride of 1 or 2 along rows and columns, of planes and of pixels of any number
 * of channels; and small planes that are one window each. */
#include "base/sizes.h"
#include "ops/pooling/pooling_band.h"

#define WD_KERNELS_MODULE pooling_band_forward
#define WD_KERNELS_ROWS "ops/pooling/pooling_band_forward_kernels.def"
#include "ops/kernels_host.inc"

enum {
    LANES_EVEN =
        8, /* of planes whose lanes would meet in a bank of shared memory if they were fewer */
    /* Windows from which on boxes pay: 512 of 3x3 take 1.8 us by them, 1.2 by a thread each. */
    WINDOWS_LEAST = 1 << 13,
};

/* Lanes of a plane. */
static uint32_t lanes_of(const struct wd_pool_shape *s, const struct wd_pool_band *band)
{
    const int64_t elements = s->image[0] * s->image[1] * s->image[2];
    uint32_t lanes = 1;
    while (lanes < 32 && 2 * lanes * band->args.tile_outer <= band->threads) lanes *= 2;
    return elements % 2 == 0 && lanes < LANES_EVEN ? LANES_EVEN : lanes;
}

static enum wd_pool_band_work work_of(const struct wd_pool_shape *s)
{
    return s->size == 8 || wd_pool_is_planes(s) ? WD_POOL_BAND_FORWARD : WD_POOL_COLUMNS_FORWARD;
}

/* Results of a thread, by the stride, in fp64. */
static int64_t rows_of(const struct wd_pool_shape *s)
{
    return s->stride[1] == 1 ? 4 : 2;
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    struct wd_pool_band band;
    if (wd_pool_is_planes(s)) return wd_pool_band_of(device, s, WD_POOL_BAND_FORWARD, 1, &band);
    WD_NEED(s->image[0] == 1 && s->windows[0] == 1 && s->window[1] == 3 && s->window[2] == 3 &&
                s->stride[1] == s->stride[2] && s->stride[1] <= 2,
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 that overlap in a plane");
    WD_NEED(s->size == 8 || s->outer * wd_pool_windows(s) >= WINDOWS_LEAST, reason,
            NOT_SUPPORTED_SHAPE, "%lld windows, from %d on boxes pay",
            (long long)(s->outer * wd_pool_windows(s)), WINDOWS_LEAST);
    for (int d = 1; d < 3; ++d) {
        WD_NEED(s->pad[d] < 3 && (s->windows[d] - 1) * s->stride[d] - s->pad[d] < s->image[d],
                reason, NOT_SUPPORTED_SHAPE, "a window outside of the image along axis %d", d);
    }
    WD_NEED(wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE,
            "nothing has it where it blends");
    WD_NEED(wd_pool_band_of(device, s, work_of(s), rows_of(s), &band), reason, NOT_SUPPORTED_SHAPE,
            "%lld channels do not fit shared memory", (long long)s->inner);
    return true;
}

static void prepare_shape(const struct wd_device *device, const struct wd_pool_shape *s,
                          void *prepared)
{
    _Static_assert(sizeof(struct wd_pool_band) <= WD_POOL_PREPARED, "there is room for it");
    wd_pool_band_of(device, s, work_of(s), rows_of(s), prepared);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    int kernel = KERNEL_pool_band_f32_1 + s->type * 2 + (s->stride[1] == 2);
    struct wd_pool_band band;
    if (!wd_pool_is_planes(s) && wd_pool_blends(m)) {
        return wd_pool_forward_tile.emit(queue, s, m);
    }
    wd_pool_band_call(queue->device, s, work_of(s), rows_of(s), m, &wd_pool_forward_band, &band);
    if (wd_pool_is_planes(s)) {
        kernel = KERNEL_pool_planes_f32 + s->type;
        band.args.lanes = lanes_of(s, &band);
    }
    return wd_emit_kernel(queue, &kernel_rows[kernel], band.blocks, band.threads,
                          (uint32_t)band.bytes, &band.args);
}

const struct wd_pool_way wd_pool_forward_band = {takes, NULL, emit_shape, prepare_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_forward_band, problem, reason);
}

static void prepare(const struct wd_problem *problem, void *job)
{
    wd_pool_way_prepare(&wd_pool_forward_band, problem, job);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit_prepared(prepare, call, queue);
}

const struct wd_engine wd_engine_pool_forward_band = {
    .name = "pool_forward_band",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_pool_job),
    .emit = emit,
};
