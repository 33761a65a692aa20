/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of small windows that overlap, on the GPU straight from memory, of pixels of whole runs:
 * averages, and maxima in fp32; averages of few elements one by one, at any alignment. Maxima go image by image through a
 * workspace of codes: a kernel notes where each window's maximum is, the next collects. */
#include "ops/pooling/pooling_vector.h"

#define WD_KERNELS_MODULE pooling_single_back
#define WD_KERNELS_ROWS "ops/pooling/pooling_single_back_kernels.def"
#include "ops/kernels_host.inc"

enum { CODES_MAX = 6 << 20 }; /* bytes, of the 8 MiB of calls without a workspace */

static int64_t run_elements(const struct wd_pool_shape *s)
{
    return 16 / s->size;
}

/* Whether a thread has a run of a pixel; else an element. */
static bool has_runs(const struct wd_pool_shape *s)
{
    return s->pixels && s->inner % run_elements(s) == 0 && wd_pool_is_near(s);
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    WD_NEED(s->size != 8, reason, NOT_SUPPORTED_DATA_TYPE, "fp64: pool_backward_tile has it");
    WD_NEED(wd_pool_is_flat(s), reason, NOT_SUPPORTED_SHAPE, "windows of three dimensions");
    if (!s->max && !has_runs(s) && wd_pool_is_small(s)) return true;
    WD_NEED(wd_pool_is_near(s), reason, NOT_SUPPORTED_SHAPE,
            "windows of %lld x %lld are better cut from a box in shared memory",
            (long long)s->window[1], (long long)s->window[2]);
    WD_NEED(has_runs(s), reason, NOT_SUPPORTED_LAYOUT, "not pixels of whole runs");
    if (!s->max) return true;
    /* 0.89 of a box's time; of halves 1.06 */
    WD_NEED(s->size == 4, reason, NOT_SUPPORTED_DATA_TYPE, "maxima of two-byte elements");
    WD_NEED(wd_pool_windows(s) <= CODES_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld windows of an image, there is room for the codes of %d",
            (long long)wd_pool_windows(s), CODES_MAX);
    WD_NEED(wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE, "not at any alignment");
    return true;
}

/* Planes or images whose codes there is room for at once. */
static int64_t images_at_once(const struct wd_pool_shape *s)
{
    return wd_least(s->outer, CODES_MAX / wd_pool_windows(s));
}

/* Bytes of codes. */
static int64_t notes(const struct wd_pool_shape *s)
{
    return s->max ? images_at_once(s) * wd_pool_windows(s) : 0;
}

static cudnnStatus_t emit_codes(struct wd_queue *queue, const struct wd_pool_shape *s,
                                struct pool_vector_args a)
{
    const bool of_three = s->window[1] == 3 && s->window[2] == 3;
    const int64_t run = run_elements(s);
    a.by_w = wd_fastdiv_of((uint32_t)(s->inner / run));
    a.by_h = wd_fastdiv_of((uint32_t)s->windows[2]);
    a.by_outer = wd_fastdiv_of((uint32_t)s->windows[1]);
    return wd_pool_vector_launch(queue, &kernel_rows[KERNEL_code_pixel_f32_16_3 + !of_three],
                                 s->outer * wd_pool_windows(s) / run, &a);
}

static cudnnStatus_t emit_collect(struct wd_queue *queue, const struct wd_pool_shape *s,
                                  struct pool_vector_args a)
{
    const bool runs = has_runs(s);
    const int64_t run = runs ? run_elements(s) : 1;
    const int kernel =
        s->max ? KERNEL_from_pixel_max_f32_16
               : (runs ? KERNEL_from_pixel_average_f32 : KERNEL_from_element_f32) + (int)s->type;
    a.by_w = wd_fastdiv_of((uint32_t)(s->inner / run));
    a.by_h = wd_fastdiv_of((uint32_t)s->image[2]);
    a.by_outer = wd_fastdiv_of((uint32_t)s->image[1]);
    return wd_pool_vector_launch(queue, &kernel_rows[kernel], s->outer * wd_pool_image(s) / run,
                                 &a);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    struct pool_vector_args whole;
    struct wd_pool_shape part = *s;
    int64_t step;
    if (has_runs(s) && ((uintptr_t)m->x | (uintptr_t)m->out | (uintptr_t)m->dy) % 16 != 0) {
        return wd_pool_backward_tile.emit(queue, s, m);
    }
    whole = wd_pool_vector_args_of(s, m);
    step = s->max ? images_at_once(s) : s->outer;
    for (int64_t first = 0; first < s->outer; first += step) {
        struct pool_vector_args a = whole;
        int64_t image = first * wd_pool_image(s) * s->size;
        part.outer = wd_least(step, s->outer - first);
        a.out = (char *)whole.out + image;
        a.dy = (const char *)whole.dy + first * wd_pool_windows(s) * s->size;
        if (s->max) {
            a.x = (const char *)whole.x + image;
            a.codes = m->workspace;
            WD_TRY(emit_codes(queue, &part, a));
        }
        WD_TRY(emit_collect(queue, &part, a));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_pool_way wd_pool_backward_single = {takes, notes, emit_shape, NULL};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_backward_single, problem, reason);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reason reason;
    struct wd_pool_shape s;
    wd_pool_shape_of(problem, &s, &reason);
    return notes(&s);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&wd_pool_backward_single, call, queue);
}

const struct wd_engine wd_engine_pool_backward_single = {
    .name = "pool_backward_single",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
