/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of overlapping windows of 3x3 straight from memory: a thread walks down the rows. Over pixels of
 * whole runs of channels, in fp32, fp16 and bf16, averages (of any depth) whose windows begin at every element,
 * and maxima in images of two dimensions, at a stride of 2; such maxima in planes. What is blended boxes have. */
#include "ops/pooling/pooling_columns_args.h"
#include "ops/pooling/pooling_walk.h"

#include <string.h>

#define WD_KERNELS_MODULE pooling_walk_back
#define WD_KERNELS_ROWS "ops/pooling/pooling_walk_back_kernels.def"
#include "ops/kernels_host.inc"

enum {
    COLUMNS = 2, /* of dx of a thread; of maxima half as many */
    PAIRS = 1,
    LANE_COLUMNS = 4, /* of planes, of a lane */
    WARP = 32,
    STRIP_LEAST = 12, /* pairs of rows of a lane */
    RESIDENT = 1024,  /* threads of a processor */
    /* Of planes, pairs of rows of all lanes, for each thread that is resident: of fewer than a quarter nothing is faster (max
     * backward fp16 1x2x112x187 3.4 us, by boxes 5.7), of more up to six boxes are (fp32 4x28x186x79 11.5 for 24.7,
     * 32x1x293x145 9.6 for 20.2). */
    PAIRS_FEW = 4,
    PAIRS_MANY = 6,
};

static int64_t lane_groups(const struct wd_pool_shape *s)
{
    return wd_ceil_div(s->image[2], LANE_COLUMNS);
}

/* Segments of a row of a plane, a warp or part of one each: a lane on either side is the neighbouring segment's. */
static int64_t segments_of(const struct wd_pool_shape *s)
{
    return lane_groups(s) <= WARP ? 1 : wd_ceil_div(lane_groups(s), WARP - 2);
}

static int64_t pairs_of(const struct wd_pool_shape *s)
{
    return (s->pad[1] + s->image[1] + 1) / 2 - s->pad[1] / 2;
}

static bool takes_maxima(const struct wd_device *device, const struct wd_pool_shape *s,
                         struct wd_reason *reason)
{
    const int64_t room = (int64_t)RESIDENT * device->multiprocessors;
    int64_t work;
    WD_NEED(wd_pool_walk_is_flat(s) && s->window[1] == 3 && s->window[2] == 3 &&
                s->stride[1] == 2 && s->stride[2] == 2,
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 at a stride of 2 in a plane");
    WD_NEED(s->pad[1] >= 0 && s->pad[1] < 3 && s->pad[2] >= 0 && s->pad[2] < 3, reason,
            NOT_SUPPORTED_SHAPE, "the padding is negative, or as large as a window");
    if (s->pixels) return wd_pool_walk_takes(s, reason);
    WD_NEED(s->pad[2] == 0 ||
                (s->pad[2] == 1 && s->windows[2] <= 2 * wd_ceil_div(s->image[2], LANE_COLUMNS)),
            reason, NOT_SUPPORTED_SHAPE,
            "more than a column of padding, or a window behind the last one");
    work = s->outer * segments_of(s) * wd_least(lane_groups(s), WARP) * pairs_of(s);
    WD_NEED(work * PAIRS_FEW <= room || work >= room * PAIRS_MANY, reason, NOT_SUPPORTED_SHAPE,
            "%lld pairs of rows of lanes: boxes are faster", (long long)work);
    return true;
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    WD_NEED(s->size != 8, reason, NOT_SUPPORTED_DATA_TYPE, "fp64: boxes have it");
    WD_NEED(wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE, "not at any alignment");
    if (s->max) return takes_maxima(device, s, reason);
    WD_NEED(s->window[1] == 3 && s->window[2] == 3 && s->stride[0] == 1 && s->stride[1] == 1 &&
                s->stride[2] == 1,
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 at every element");
    return wd_pool_walk_takes(s, reason);
}

static cudnnStatus_t emit_columns(struct wd_queue *queue, const struct wd_pool_shape *s,
                                  const struct wd_pool_memory *m)
{
    const int64_t lanes = wd_least(lane_groups(s), WARP);
    const int64_t segments = segments_of(s);
    const int64_t pairs = pairs_of(s);
    const uintptr_t run = (uintptr_t)wd_least(16, LANE_COLUMNS * s->size);
    const bool runs =
        s->image[2] % LANE_COLUMNS == 0 && ((uintptr_t)m->x | (uintptr_t)m->out) % run == 0;
    const int kernel = KERNEL_grad_columns_f32_0_any + s->type * 4 + (int)s->pad[2] * 2 + runs;
    struct pool_columns_args a;
    int64_t warps;
    memset(&a, 0, sizeof a);
    a.x = m->x;
    a.dy = m->dy;
    a.out = m->out;
    a.alpha = (float)m->alpha;
    a.streaming = m->streaming;
    a.mode = wd_pool_mode(s);
    a.image_h = (int32_t)s->image[1];
    a.image_w = (int32_t)s->image[2];
    a.windows_h = (int32_t)s->windows[1];
    a.windows_w = (int32_t)s->windows[2];
    a.pad_h = (int32_t)s->pad[1];
    a.rows_of_warp = (uint32_t)(WARP / lanes);
    a.strip = (int32_t)wd_pool_walk_strip(queue->device,
                                          wd_ceil_div(s->outer * segments, a.rows_of_warp) * WARP,
                                          pairs, STRIP_LEAST, RESIDENT);
    a.by_lanes = wd_fastdiv_of((uint32_t)lanes);
    a.by_segments = wd_fastdiv_of((uint32_t)segments);
    a.by_strips = wd_fastdiv_of((uint32_t)wd_ceil_div(pairs, a.strip));
    a.units = (uint32_t)(s->outer * segments * a.by_strips.divisor);
    warps = wd_ceil_div(a.units, a.rows_of_warp);
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(warps * WARP, POOL_THREADS),
                          POOL_THREADS, 0, &a);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    const uintptr_t image = (uintptr_t)m->out | (s->max ? (uintptr_t)m->x : 0);
    struct pool_walk_args a;
    int kernel = KERNEL_grad_walk_f32 + s->type;
    if (wd_pool_blends(m)) return wd_pool_backward_tile.emit(queue, s, m);
    if (s->max && !s->pixels) return emit_columns(queue, s, m);
    /* words of 16 bits are added as they lie */
    if (s->max && s->size == 2 && m->alpha != 1.0) return wd_pool_backward_tile.emit(queue, s, m);
    if ((image | (uintptr_t)m->dy) % 16 != 0) return wd_pool_backward_tile.emit(queue, s, m);
    a = wd_pool_walk_args_of(queue->device, s, 1, m);
    if (!s->max) kernel = KERNEL_spread_walk_f32_3_flat + s->type * 2 + !wd_pool_walk_is_flat(s);
    return wd_pool_walk_launch(queue, &kernel_rows[kernel], &a);
}

const struct wd_pool_way wd_pool_backward_walk = {takes, NULL, emit_shape, NULL};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_backward_walk, problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&wd_pool_backward_walk, call, queue);
}

const struct wd_engine wd_engine_pool_backward_walk = {
    .name = "pool_backward_walk",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
