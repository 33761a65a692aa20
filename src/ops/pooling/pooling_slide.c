/* SPDX-License-Identifier: Apache-2.0
 *
 * Long windows that begin at every element of a plane on the GPU, in fp32, fp16 and bf16 at any alignment,
 * padding that counts as 0 or, forward, repeats the edge, and gradients of such averages: whole rows in shared memory, put together down the columns and then along
 * the rows, so that a window costs what its edges are long. */
#include <string.h>

#include "base/sizes.h"
#include "ops/pooling/pooling_shape.h"
#include "ops/pooling/pooling_slide_args.h"

#define WD_KERNELS_MODULE pooling_slide
#define WD_KERNELS_ROWS "ops/pooling/pooling_slide_kernels.def"
#include "ops/kernels_host.inc"

enum {
    BYTES = 44 << 10,      /* of a block's shared memory: five blocks a processor */
    BYTES_MOST = 96 << 10, /* where windows are so long that small blocks read much twice */
    BLOCKS_EACH = 4,       /* blocks of a processor that joining planes leaves */
    RUN = 4,               /* straight from memory: columns of a thread, */
    ROW_BLOCKS = 5,        /* blocks of a processor, as registers let, */
    ROWS_MOST = 64,        /* and rows of a thread */
};

struct cut {
    int64_t rows; /* of `out` */
    int64_t images;
};

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t few_or_many(int64_t size)
{
    return size >= POOL_SLIDE_MANY ? POOL_SLIDE_MANY : POOL_SLIDE_FEW;
}

/* Bytes of shared memory, and where parts lie in it. */
static int64_t lay_out(const struct wd_pool_shape *s, const struct cut *cut,
                       struct pool_slide_args *a)
{
    const int64_t lows =
        cut->images > 1 ? a->high.ins : wd_least(cut->rows - 1 + a->high.size, a->high.ins);
    const int64_t groups = wd_ceil_div(a->wide.outs, few_or_many(a->wide.size));
    const int64_t wide = groups * few_or_many(a->wide.size);
    const int64_t rows = cut->images * cut->rows;
    const int64_t staged = cut->images * lows * a->wide.ins * s->size + 32;
    const int64_t out_pitch = wide | 1;
    const int64_t middle_pitch = (wide + a->wide.size - 1) | 1;
    const int64_t middle_at = round_up(wd_most(staged, rows * out_pitch * 4), 16);
    const int64_t weights_at = round_up(middle_at + rows * middle_pitch * 4, 16);
    /* what does not fit these fits no shared memory either */
    a->out_pitch = (uint32_t)out_pitch;
    a->middle_pitch = (uint32_t)middle_pitch;
    a->middle_at = (uint32_t)middle_at;
    a->weights_at = (uint32_t)weights_at;
    return weights_at + (a->spread && a->exclude ? round_up(lows * 4, 16) : 0);
}

static void set_axis(struct pool_slide_axis *x, const struct wd_pool_shape *s, int axis)
{
    x->ins = (int32_t)(s->backward ? s->windows[axis] : s->image[axis]);
    x->outs = (int32_t)(s->backward ? s->image[axis] : s->windows[axis]);
    x->size = (int32_t)s->window[axis];
    x->pad = (int32_t)(s->backward ? s->window[axis] - 1 - s->pad[axis] : s->pad[axis]);
    x->image = (int32_t)s->image[axis];
    x->image_pad = (int32_t)s->pad[axis];
}

/* All arguments but memory and scalars, and the shared memory; false where rows do not fit. */
static bool plan(const struct wd_device *device, const struct wd_pool_shape *s,
                 struct pool_slide_args *a, int64_t *blocks, int64_t *bytes)
{
    const int64_t most = wd_least(BYTES_MOST, device->shared_per_block);
    struct cut cut = {.images = 1};
    int64_t parts = 1;
    int64_t group;
    memset(a, 0, sizeof *a);
    set_axis(&a->high, s, 1);
    set_axis(&a->wide, s, 2);
    a->spread = s->backward;
    a->exclude = s->exclude;
    a->edge = s->edge;
    a->mode = wd_pool_mode(s);
    a->inverse = (float)s->inverse;
    a->lowest = (float)s->lowest;
    a->outer = (uint32_t)s->outer;
    a->total = (uint32_t)(s->outer * a->high.ins * a->wide.ins);
    /* as few parts of a plane as fit; where they read half again what they need, larger ones */
    cut.rows = a->high.outs;
    while (lay_out(s, &cut, a) > (2 * cut.rows > a->high.size ? BYTES : most)) {
        if (cut.rows == 1) return false;
        parts += 1 + parts / 4;
        cut.rows = wd_ceil_div(a->high.outs, wd_least(parts, a->high.outs));
    }
    parts = wd_ceil_div(a->high.outs, cut.rows);
    while (parts == 1 && cut.images < s->outer) {
        struct cut next = {.rows = cut.rows, .images = wd_least(2 * cut.images, s->outer)};
        if (lay_out(s, &next, a) > BYTES ||
            wd_ceil_div(s->outer, next.images) < (int64_t)BLOCKS_EACH * device->multiprocessors) {
            break;
        }
        cut = next;
    }
    *bytes = lay_out(s, &cut, a);
    *blocks = wd_ceil_div(s->outer, cut.images) * parts;
    a->images = (uint32_t)cut.images;
    a->rows = (int32_t)cut.rows;
    a->by_tiles = wd_fastdiv_of((uint32_t)parts);
    a->by_columns = wd_fastdiv_of((uint32_t)a->wide.ins);
    group = a->spread && a->exclude ? POOL_SLIDE_FEW : few_or_many(a->high.size);
    a->by_groups = wd_fastdiv_of((uint32_t)wd_ceil_div(cut.rows, group));
    a->by_rows = wd_fastdiv_of((uint32_t)(cut.images * cut.rows));
    return true;
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    struct pool_slide_args a;
    int64_t blocks, bytes;
    WD_NEED(s->size != 8 && !s->pixels, reason, NOT_SUPPORTED_LAYOUT,
            "fp64, or pixels of channels");
    WD_NEED(!s->backward || !s->max, reason, NOT_SUPPORTED, "the gradient of a maximum");
    WD_NEED(s->image[0] == 1 && s->windows[0] == 1 && s->window[0] == 1 && s->pad[0] == 0, reason,
            NOT_SUPPORTED_SHAPE, "more than two dimensions");
    for (int d = 1; d < 3; ++d) {
        int64_t outs = s->backward ? s->image[d] : s->windows[d];
        int64_t ins = s->backward ? s->windows[d] : s->image[d];
        int64_t pad = s->backward ? s->window[d] - 1 - s->pad[d] : s->pad[d];
        WD_NEED(s->stride[d] == 1 && s->window[d] >= POOL_SLIDE_FEW, reason, NOT_SUPPORTED_SHAPE,
                "not windows of %d and more at every element, along axis %d", POOL_SLIDE_FEW, d);
        WD_NEED(pad >= 0 && pad < s->window[d] && outs - 1 - pad < ins, reason, NOT_SUPPORTED_SHAPE,
                "a result is made of nothing along axis %d", d);
    }
    WD_NEED(plan(device, s, &a, &blocks, &bytes), reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements do not fit shared memory", (long long)s->image[2]);
    return true;
}

/* Windows of five around every element of whole runs of single precision, where all of a window counts. */
static bool is_rows(const struct wd_pool_shape *s, const struct wd_pool_memory *m)
{
    if (s->backward || s->max || s->exclude || s->type != 0 || wd_pool_blends(m)) return false;
    for (int d = 1; d < 3; ++d) {
        if (s->window[d] != POOL_SLIDE_ROWS || s->pad[d] != POOL_SLIDE_ROWS / 2) return false;
        if (s->windows[d] != s->image[d]) return false;
    }
    return s->image[2] % RUN == 0 && ((uintptr_t)m->x | (uintptr_t)m->out) % 16 == 0;
}

static cudnnStatus_t emit_rows(struct wd_queue *queue, const struct wd_pool_shape *s,
                               struct pool_slide_args *a)
{
    const int64_t columns = s->image[2] / RUN;
    const int64_t segments = wd_ceil_div(s->outer * columns, POOL_SLIDE_ROW_THREADS);
    const int64_t blocks = (int64_t)queue->device->multiprocessors * ROW_BLOCKS;
    /* as many bands as are resident together, but no rows that are mostly read twice */
    int64_t bands = wd_most(blocks / wd_most(segments, 1), wd_ceil_div(s->image[1], ROWS_MOST));
    bands = wd_least(bands, wd_ceil_div(s->image[1], 2 * POOL_SLIDE_ROWS));
    a->rows = (int32_t)wd_ceil_div(s->image[1], wd_most(bands, 1));
    a->total = (uint32_t)(s->outer * columns);
    a->by_columns = wd_fastdiv_of((uint32_t)columns);
    a->by_groups = wd_fastdiv_of((uint32_t)segments);
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_pool_slide_rows_f32],
                          segments * wd_ceil_div(s->image[1], a->rows), POOL_SLIDE_ROW_THREADS, 0,
                          a);
}

/* Elements that are written at once where each is all that one needs; 0: not so. */
static int written_at_once(const struct pool_slide_args *a, const struct wd_pool_shape *s,
                           const struct wd_pool_memory *m)
{
    const bool counts = !s->max && s->exclude && !a->spread; /* what each window covers */
    if (counts || !a->scales || a->blends) return 0;
    return a->wide.outs % POOL_SLIDE_RUN == 0 &&
                   (uintptr_t)m->out % (POOL_SLIDE_RUN * (uintptr_t)s->size) == 0
               ? POOL_SLIDE_RUN
               : 1;
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    struct pool_slide_args a;
    int64_t blocks, bytes;
    int written;
    if (!plan(queue->device, s, &a, &blocks, &bytes)) return CUDNN_STATUS_INTERNAL_ERROR;
    a.from = s->backward ? m->dy : m->x;
    a.out = m->out;
    a.alpha = (float)m->alpha;
    a.beta = (float)m->beta;
    a.scales = m->alpha != 0.0;
    a.blends = m->beta != 0.0;
    a.streaming = m->streaming;
    if (is_rows(s, m)) return emit_rows(queue, s, &a);
    written = written_at_once(&a, s, m);
    if (written > 0) a.by_runs = wd_fastdiv_of((uint32_t)(a.wide.outs / written));
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_pool_slide_f32 + s->type], blocks,
                          POOL_SLIDE_THREADS, (uint32_t)bytes, &a);
}

const struct wd_pool_way wd_pool_slide = {takes, NULL, emit_shape, NULL};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_slide, problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&wd_pool_slide, call, queue);
}

const struct wd_engine wd_engine_pool_forward_slide = {
    .name = "pool_forward_slide",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};

const struct wd_engine wd_engine_pool_backward_slide = {
    .name = "pool_backward_slide",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
