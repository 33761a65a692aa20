/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling forward on the GPU straight from memory: windows that share little with their neighbours,
 * and long ones that lanes share, of images of one or two dimensions, and of three
 * where windows are pairs of columns, in fp32, fp16 and bf16. How an
 * output is computed depends on shape and alignment alone. */
#include "ops/pooling/pooling_band.h"
#include "ops/pooling/pooling_vector.h"

#include <string.h>

#define WD_KERNELS_MODULE pooling_vector
#define WD_KERNELS_ROWS "ops/pooling/pooling_vector_kernels.def"
#include "ops/kernels_host.inc"

enum {
    LONG_WINDOW = 64, /* elements that lanes share */
    LONG_PLANE = 8,   /* likewise where a plane has but one window: 7x7 in 0.6 of a box's time */
    MANY_WINDOWS = 1 << 16,
    LANES_FEW = 32,      /* runs of a window that 8 lanes take on */
    LANES_WARP = 512,    /* and 32 */
    TILE_RUNS = 256,     /* runs of a row of threads, and where there are few blocks */
    TILE_RUNS_MANY = 32, /* more where a processor has three blocks */
    TILE_RUNS_FEW = 4,
    THREADS_FEW = 64,
};

static int64_t run_elements(const struct wd_pool_shape *s)
{
    return 16 / s->size;
}

/* Elements of the largest part of a window that lies in the image. */
static int64_t window_terms(const struct wd_pool_shape *s)
{
    return wd_least(s->window[1], s->image[1]) * wd_least(s->window[2], s->image[2]);
}

/* Whether lanes share a window: where the image is one, or long windows are few and stand apart. */
static bool is_long(const struct wd_pool_shape *s)
{
    int64_t terms = window_terms(s);
    if (!wd_pool_is_flat(s)) return false;
    if (s->windows[1] * s->windows[2] == 1) return terms >= LONG_PLANE;
    return terms >= LONG_WINDOW && 2 * s->stride[2] >= s->window[2] &&
           (!s->pixels || s->outer * wd_pool_windows(s) <= MANY_WINDOWS);
}

/* Whether the windows are every second column's, as forward_pairs and forward_deep have them. */
static bool is_pairs(const struct wd_pool_shape *s)
{
    return !s->pixels &&
           ((s->window[2] == 2 && s->window[1] <= 2) ||
            (s->window[2] == 3 && s->window[1] == 3 && wd_pool_is_flat(s))) &&
           s->stride[2] == 2 && s->pad[2] == s->window[2] - 2 && 2 * s->windows[2] == s->image[2] &&
           s->image[2] % run_elements(s) == 0;
}

/* Runs of channels, of windows of few elements or that share little. */
static bool is_pixel(const struct wd_pool_shape *s)
{
    return s->pixels && s->inner % run_elements(s) == 0 && wd_pool_is_single(s);
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    WD_NEED(s->size != 8, reason, NOT_SUPPORTED_DATA_TYPE, "fp64: pool_forward_tile has it");
    WD_NEED(!wd_pool_is_planes(s), reason, NOT_SUPPORTED_SHAPE,
            "small planes, better staged several at a time");
    WD_NEED(wd_pool_is_flat(s) || (is_pairs(s) && wd_pool_tile_fits(device, s)), reason,
            NOT_SUPPORTED_SHAPE, "windows of three dimensions, other than of pairs of columns");
    WD_NEED(is_long(s) || is_pairs(s) || is_pixel(s) || !wd_pool_tile_fits(device, s), reason,
            NOT_SUPPORTED_SHAPE, "no runs, or windows that are better cut from a box");
    return true;
}

struct pool_vector_args wd_pool_vector_args_of(const struct wd_pool_shape *s,
                                               const struct wd_pool_memory *m)
{
    struct pool_vector_args a;
    memset(&a, 0, sizeof a);
    a.x = m->x;
    a.dy = m->dy;
    a.out = m->out;
    a.alpha = (float)m->alpha;
    a.beta = (float)m->beta;
    a.scales = m->alpha != 0.0;
    a.blends = m->beta != 0.0;
    a.streaming = m->streaming;
    a.mode = wd_pool_mode(s);
    a.exclude = s->exclude;
    a.lowest = (float)s->lowest;
    a.inverse = (float)s->inverse;
    a.image_d = (int32_t)s->image[0];
    a.windows_d = (int32_t)s->windows[0];
    a.size_d = (int32_t)s->window[0];
    a.stride_d = (int32_t)s->stride[0];
    a.pad_d = (int32_t)s->pad[0];
    a.image_h = (int32_t)s->image[1];
    a.image_w = (int32_t)s->image[2];
    a.windows_h = (int32_t)s->windows[1];
    a.windows_w = (int32_t)s->windows[2];
    a.size_h = (int32_t)s->window[1];
    a.size_w = (int32_t)s->window[2];
    a.stride_h = (int32_t)s->stride[1];
    a.stride_w = (int32_t)s->stride[2];
    a.pad_h = (int32_t)s->pad[1];
    a.pad_w = (int32_t)s->pad[2];
    a.inner = (uint32_t)s->inner;
    a.total = (uint32_t)(s->outer * wd_pool_image(s));
    a.aligned = (uintptr_t)a.x % 16 == 0;
    a.by_stride_h = wd_fastdiv_of((uint32_t)s->stride[1]);
    a.by_stride_w = wd_fastdiv_of((uint32_t)s->stride[2]);
    return a;
}

cudnnStatus_t wd_pool_vector_launch(struct wd_queue *queue, struct wd_kernel_row *row,
                                    int64_t items, struct pool_vector_args *a)
{
    uint32_t threads = POOL_THREADS;
    a->count = (uint32_t)items;
    if (items < (int64_t)POOL_THREADS * queue->device->multiprocessors) threads = THREADS_FEW;
    return wd_emit_kernel(queue, row, wd_ceil_div(items, threads), threads, 0, a);
}

static cudnnStatus_t launch(struct wd_queue *queue, int kernel, int64_t items,
                            struct pool_vector_args *a)
{
    return wd_pool_vector_launch(queue, &kernel_rows[kernel], items, a);
}

static cudnnStatus_t emit_pairs(struct wd_queue *queue, const struct wd_pool_shape *s,
                                struct pool_vector_args *a)
{
    a->by_w = wd_fastdiv_of((uint32_t)(s->image[2] / run_elements(s)));
    a->by_h = wd_fastdiv_of((uint32_t)s->windows[1]);
    if (!wd_pool_is_flat(s)) {
        a->by_outer = wd_fastdiv_of((uint32_t)s->windows[0]);
        return launch(queue, KERNEL_pool_deep_f32 + s->type,
                      s->outer * wd_pool_windows(s) / (run_elements(s) / 2), a);
    }
    return launch(queue, KERNEL_pool_pairs_f32_2 + s->type * 2 + (s->window[2] == 3),
                  s->outer * wd_pool_windows(s) / (run_elements(s) / 2), a);
}

static cudnnStatus_t emit_pixels(struct wd_queue *queue, const struct wd_pool_shape *s,
                                 struct pool_vector_args *a)
{
    int variant = s->window[1] != s->window[2] || s->window[1] < 2 || s->window[1] > 3
                      ? 2
                      : (int)s->window[1] - 2;
    a->by_w = wd_fastdiv_of((uint32_t)(s->inner / run_elements(s)));
    a->by_h = wd_fastdiv_of((uint32_t)s->windows[2]);
    a->by_outer = wd_fastdiv_of((uint32_t)s->windows[1]);
    return launch(queue, KERNEL_pool_pixel_f32_2 + s->type * 3 + variant,
                  s->outer * wd_pool_windows(s) / run_elements(s), a);
}

static cudnnStatus_t emit_lanes(struct wd_queue *queue, const struct wd_pool_shape *s,
                                struct pool_vector_args *a)
{
    int64_t windows = s->outer * wd_pool_windows(s);
    int64_t runs = window_terms(s) / run_elements(s);
    static const int64_t lanes[] = {8, 32, POOL_THREADS};
    int way = runs <= LANES_FEW ? 0 : runs <= LANES_WARP ? 1 : 2;
    a->by_w = wd_fastdiv_of((uint32_t)s->windows[2]);
    a->by_h = wd_fastdiv_of((uint32_t)s->windows[1]);
    a->count = (uint32_t)windows;
    a->lanes = (uint32_t)lanes[way];
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_pool_lanes_f32 + s->type],
                          wd_ceil_div(windows * lanes[way], POOL_THREADS), POOL_THREADS, 0, a);
}

static cudnnStatus_t emit_columns(struct wd_queue *queue, const struct wd_pool_shape *s, bool runs,
                                  struct pool_vector_args *a)
{
    int64_t pixels = s->outer * s->windows[1] * s->windows[2];
    int64_t of_pixel = s->inner / (runs ? run_elements(s) : 1);
    int64_t tiles;
    for (a->tile_runs = 1; a->tile_runs < TILE_RUNS && a->tile_runs < of_pixel;) a->tile_runs *= 2;
    while (a->tile_runs > TILE_RUNS_FEW &&
           pixels * wd_ceil_div(of_pixel, a->tile_runs) <
               (a->tile_runs > TILE_RUNS_MANY ? 3 : 1) * (int64_t)queue->device->multiprocessors) {
        a->tile_runs /= 2;
    }
    tiles = wd_ceil_div(of_pixel, a->tile_runs);
    a->by_w = wd_fastdiv_of((uint32_t)tiles);
    a->by_h = wd_fastdiv_of((uint32_t)s->windows[2]);
    a->by_outer = wd_fastdiv_of((uint32_t)s->windows[1]);
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_pool_columns_f32_16 + s->type * 2 + !runs],
                          pixels * tiles, POOL_THREADS, 0, a);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    struct pool_vector_args a = wd_pool_vector_args_of(s, m);
    const bool runs = (uintptr_t)m->x % 16 == 0 && (uintptr_t)m->out % 16 == 0;
    if (runs && is_pixel(s) && !is_long(s)) return emit_pixels(queue, s, &a);
    /* runs of y are half as long as those of x */
    if ((uintptr_t)m->x % 16 == 0 && (uintptr_t)m->out % 8 == 0 && is_pairs(s) && !is_long(s)) {
        return emit_pairs(queue, s, &a);
    }
    if (!is_long(s) && wd_pool_is_flat(s) && wd_pool_is_single(s))
        return wd_pool_forward_single.emit(queue, s, m);
    if (!is_long(s) && wd_pool_tile_fits(queue->device, s)) {
        return wd_pool_forward_tile.emit(queue, s, m);
    }
    if (!s->pixels) return emit_lanes(queue, s, &a);
    return emit_columns(queue, s, runs && s->inner % run_elements(s) == 0, &a);
}

const struct wd_pool_way wd_pool_forward_vector = {takes, NULL, emit_shape, NULL};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_forward_vector, problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&wd_pool_forward_vector, call, queue);
}

const struct wd_engine wd_engine_pool_forward_vector = {
    .name = "pool_forward_vector",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
