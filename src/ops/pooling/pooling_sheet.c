/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of windows of 3x3 in a plane on the GPU at any alignment, in fp32, fp16 and bf16, by boxes of which
 * what is made is put together in shared memory and goes out by lines: of averages at strides of 1 and 2, but
 * for pixels of whole runs at a stride of 1, and of maxima of pixels that are no whole runs at a stride of 2. At a stride
 * of 2 some pixels of 16 bits go by warps instead (pooling_warp_block.h). */
#include "base/sizes.h"
#include "ops/pooling/pooling_band.h"
#include "ops/pooling/pooling_warp_block.h"

#define WD_KERNELS_MODULE pooling_sheet
#define WD_KERNELS_ROWS "ops/pooling/pooling_sheet_kernels.def"
#include "ops/kernels_host.inc"

enum {
    BOX_LEAST = 4,           /* results along both axes */
    RESULTS_LEAST = 1 << 16, /* fewer are sooner by boxes */
    RESIDENT = 768,          /* threads of a processor */
    RESIDENT_MAXIMA = 640,
};

static enum wd_pool_band_work work_of(const struct wd_pool_shape *s)
{
    if (s->max) return WD_POOL_SHEET_MAXIMA;
    return s->stride[1] == 1 ? WD_POOL_COLUMNS_SPREAD : WD_POOL_SHEET_PAIRS;
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    const bool runs = s->pixels && s->inner % (16 / s->size) == 0;
    struct wd_pool_band band;
    WD_NEED(s->size != 8, reason, NOT_SUPPORTED_DATA_TYPE, "fp64");
    WD_NEED(s->image[0] == 1 && s->windows[0] == 1 && s->window[0] == 1 && s->window[1] == 3 &&
                s->window[2] == 3 && s->stride[1] == s->stride[2] && s->stride[1] <= 2,
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 that overlap in a plane");
    WD_NEED(s->windows[1] * s->windows[2] > 1, reason, NOT_SUPPORTED_SHAPE, "one window");
    for (int d = 1; d < 3; ++d) {
        WD_NEED(s->pad[d] >= 0 && s->pad[d] < 3 &&
                    (s->windows[d] - 1) * s->stride[d] - s->pad[d] < s->image[d],
                reason, NOT_SUPPORTED_SHAPE,
                "negative padding, or a window outside of the image, along axis %d", d);
        WD_NEED(s->max || s->stride[d] == 2 || s->image[d] - 3 + s->pad[d] < s->windows[d], reason,
                NOT_SUPPORTED_SHAPE, "elements that no window covers, along axis %d", d);
    }
    WD_NEED(s->stride[1] == 2 || (!runs && !s->max), reason, NOT_SUPPORTED_SHAPE,
            "pixels of whole runs, of which a thread may have several, or maxima at a stride of 1");
    WD_NEED(!s->max || (s->pixels && !runs), reason, NOT_SUPPORTED_LAYOUT,
            "maxima of planes, or of whole runs");
    WD_NEED(s->outer * wd_pool_image(s) >= RESULTS_LEAST, reason, NOT_SUPPORTED_SHAPE,
            "fewer than %d results", RESULTS_LEAST);
    WD_NEED(wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE,
            "nothing has it where it blends");
    WD_NEED(wd_pool_band_of(device, s, work_of(s), 1, &band), reason, NOT_SUPPORTED_SHAPE,
            "%lld channels do not fit shared memory", (long long)s->inner);
    WD_NEED(band.args.axis[1].outs * band.args.axis[2].outs >= BOX_LEAST, reason,
            NOT_SUPPORTED_SHAPE, "%lld channels: boxes of a few results read much twice",
            (long long)s->inner);
    return true;
}

static int kernel_of(const struct wd_pool_shape *s)
{
    const int strided = s->stride[1] == 2;
    if (s->max) return KERNEL_maxima_sheet_f32 + s->type;
    return (strided ? KERNEL_pairs_sheet_f32 : KERNEL_spread_sheet_f32) + s->type;
}

static void prepare_shape(const struct wd_device *device, const struct wd_pool_shape *s,
                          void *prepared)
{
    _Static_assert(sizeof(struct wd_pool_band) <= WD_POOL_PREPARED, "there is room for it");
    wd_pool_band_of(device, s, work_of(s), 1, prepared);
}

static bool emit_warps(struct wd_queue *queue, const struct wd_pool_shape *s,
                       const struct wd_pool_memory *m, cudnnStatus_t *status)
{
    const int kernel = (s->max ? KERNEL_maxima_warp_f16 : KERNEL_pairs_warp_f16) + s->type - 1;
    const int64_t pairs = s->max ? POOL_WARP_MAXIMA : POOL_WARP_SUMS;
    struct pool_warp_args a;
    int64_t blocks;
    if (s->stride[1] != 2 || (s->max && (s->propagate || m->alpha != 1.0))) return false;
    blocks = wd_pool_warps_of(queue->device, s, m, pairs, s->max ? RESIDENT_MAXIMA : RESIDENT, &a);
    if (blocks == 0) return false;
    *status = wd_emit_kernel(queue, &kernel_rows[kernel], blocks, POOL_WARP_THREADS,
                             wd_pool_warp_bytes(pairs), &a);
    return true;
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    struct wd_pool_band band;
    cudnnStatus_t status;
    if (wd_pool_blends(m)) return wd_pool_backward_tile.emit(queue, s, m);
    if (emit_warps(queue, s, m, &status)) return status;
    wd_pool_band_call(queue->device, s, work_of(s), 1, m, &wd_pool_backward_sheet, &band);
    return wd_emit_kernel(queue, &kernel_rows[kernel_of(s)], band.blocks, band.threads,
                          (uint32_t)band.bytes, &band.args);
}

const struct wd_pool_way wd_pool_backward_sheet = {takes, NULL, emit_shape, prepare_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_backward_sheet, problem, reason);
}

static void prepare(const struct wd_problem *problem, void *job)
{
    wd_pool_way_prepare(&wd_pool_backward_sheet, problem, job);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit_prepared(prepare, call, queue);
}

const struct wd_engine wd_engine_pool_backward_sheet = {
    .name = "pool_backward_sheet",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_pool_job),
    .emit = emit,
};
