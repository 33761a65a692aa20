/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of windows that overlap on the GPU, a box of dx at a time in shared memory, of planes and of
 * pixels of any number of channels, at any alignment. Maxima, of up to three dimensions, in all floating
 * types: each window adds to its largest element, those that overlap taking turns. Averages over 3x3 elements
 * of a plane at a stride of 1 or 2, in fp64. Nothing passes through memory but x, dy and dx. */
#include "base/sizes.h"
#include "ops/pooling/pooling_band.h"

#define WD_KERNELS_MODULE pooling_band_back
#define WD_KERNELS_ROWS "ops/pooling/pooling_band_back_kernels.def"
#include "ops/kernels_host.inc"

enum {
    TURNS = 32,     /* that windows may take, each with a barrier */
    SMALL = 200000, /* elements of dx, of which turns are what costs, ... */
    LARGE = 16,     /* ... where windows have so many elements */
};

static enum wd_pool_band_work work_of(const struct wd_pool_shape *s)
{
    if (s->max) return WD_POOL_BAND_SCATTER;
    return s->stride[1] == 1 ? WD_POOL_BAND_SPREAD : WD_POOL_BAND_PAIRS;
}

/* Of averages, results of a thread, or pairs of them. */
static int64_t rows_of(const struct wd_pool_shape *s)
{
    return s->stride[1] == 1 ? 4 : 2;
}

static bool takes_maxima(const struct wd_device *device, const struct wd_pool_shape *s,
                         struct wd_reason *reason)
{
    struct wd_pool_band band;
    struct wd_reason other;
    int64_t turns = 1;
    WD_NEED(!s->pixels || s->inner % (16 / s->size) != 0, reason, NOT_SUPPORTED_LAYOUT,
            "pixels of whole runs of channels");
    for (int d = 0; d < 3; ++d) {
        WD_NEED(s->pad[d] < s->window[d] &&
                    (s->windows[d] - 1) * s->stride[d] - s->pad[d] < s->image[d],
                reason, NOT_SUPPORTED_SHAPE, "a window outside of the image along axis %d", d);
        turns *= wd_pool_over(s, d);
    }
    /* 5x5/2 NHWC 32x2x14x14 13.9 us and by tiles 5.8, NCHW 8x8x96x32 9.2 and 7.5; 3x3/1 NCHW 128x3x59x7 7.9 and 9.9 */
    WD_NEED(s->outer * wd_pool_image(s) > SMALL ||
                s->window[0] * s->window[1] * s->window[2] < LARGE ||
                !wd_pool_backward_tile.takes(device, s, &other),
            reason, NOT_SUPPORTED_SHAPE, "large windows of few elements: tiles are faster");
    WD_NEED(turns <= TURNS, reason, NOT_SUPPORTED_SHAPE,
            "windows that overlap would take %lld turns, at most %d", (long long)turns, TURNS);
    WD_NEED(wd_pool_band_of(device, s, work_of(s), rows_of(s), &band), reason, NOT_SUPPORTED_SHAPE,
            "a window of %lld x %lld x %lld pixels does not fit shared memory",
            (long long)s->window[0], (long long)s->window[1], (long long)s->window[2]);
    return true;
}

static bool takes_averages(const struct wd_device *device, const struct wd_pool_shape *s,
                           struct wd_reason *reason)
{
    struct wd_pool_band band;
    WD_NEED(s->size == 8, reason, NOT_SUPPORTED_DATA_TYPE,
            "averages in fp64 alone: sheets have the others");
    WD_NEED(s->image[0] == 1 && s->windows[0] == 1 && s->window[1] == 3 && s->window[2] == 3 &&
                s->stride[1] == s->stride[2] && s->stride[1] <= 2,
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 that overlap in a plane");
    for (int d = 1; d < 3; ++d) {
        WD_NEED(s->pad[d] >= 0 && s->pad[d] < 3 &&
                    (s->stride[d] == 2 || s->image[d] - 3 + s->pad[d] < s->windows[d]),
                reason, NOT_SUPPORTED_SHAPE, "elements that no window covers, along axis %d", d);
    }
    WD_NEED(wd_pool_band_of(device, s, work_of(s), rows_of(s), &band), reason, NOT_SUPPORTED_SHAPE,
            "%lld channels do not fit shared memory", (long long)s->inner);
    return true;
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    return s->max ? takes_maxima(device, s, reason) : takes_averages(device, s, reason);
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
    const enum wd_pool_band_work work = work_of(s);
    const int kernel = work == WD_POOL_BAND_SCATTER ? KERNEL_scatter_band_f32 + s->type
                       : work == WD_POOL_BAND_PAIRS ? KERNEL_pairs_band_f64
                                                    : KERNEL_spread_band_f64;
    struct wd_pool_band band;
    wd_pool_band_call(queue->device, s, work, rows_of(s), m, &wd_pool_backward_band, &band);
    return wd_emit_kernel(queue, &kernel_rows[kernel], band.blocks, band.threads,
                          (uint32_t)band.bytes, &band.args);
}

const struct wd_pool_way wd_pool_backward_band = {takes, NULL, emit_shape, prepare_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_backward_band, problem, reason);
}

static void prepare(const struct wd_problem *problem, void *job)
{
    wd_pool_way_prepare(&wd_pool_backward_band, problem, job);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit_prepared(prepare, call, queue);
}

const struct wd_engine wd_engine_pool_backward_band = {
    .name = "pool_backward_band",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_pool_job),
    .emit = emit,
};
