/* SPDX-License-Identifier: Apache-2.0
 *
 * Weighted sums on the GPU, forward and backward: images that are enlarged by two or four, by kernels that
 * know their taps; sums of three taps straight from memory, by words, or, of planes, first down the columns;
 * and all else through rings of lines: by a warp a walk down the rows, or, of runs of channels, by threads that
 * each have their own. Gradients of maxima: of planes through rings, of channels by sums in shared memory. */
#include "ops/resample/resample_ring.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/pooling/pooling_block.h"
#include "ops/pooling/pooling_warp_block.h"
#include "ops/resample/resample_ring_args.h"

#define WD_KERNELS_MODULE resample_ring
#define WD_KERNELS_ROWS "ops/resample/resample_ring_kernels.def"
#include "ops/kernels_host.inc"

enum {
    UP_THREADS = 128,
    WORD_THREADS = 128,
    RECORD = 16, /* bytes of a row's record */
    ROWS_FEW = 8,
    ROWS_LONG = 16,        /* as many are left to walks of which a thread has all its places */
    WARPS = 48,            /* of a multiprocessor, where there is as much work */
    WARPS_FEW = 16,        /* that it has of walks of several planes */
    ROWS = 64,             /* of a walk, at most */
    REGISTERS = 65536,     /* of a multiprocessor */
    SHARED_MAX = 40 << 10, /* bytes of a block */
    LINE_SHORT = 512,      /* bytes of which a ring has more */
    RESIDENT = 768,        /* threads of a multiprocessor, of pooling's warps */
};

/* Kernels of a type: by the taps along a line, and rows that are open at a time. */
static const struct {
    int taps;
    int open;  /* 0: at most two lines a row */
    bool wide; /* there is a kernel whose threads have RING_PLACES, too */
} forms[] = {{2, 0, true}, {4, 3, true}, {8, 6, false}};
enum { FORMS = sizeof forms / sizeof forms[0], RUN_FORMS = 2 /* the first ones */, WORD_FORM = 1 };

/* Kernels of a type, of runs, by the taps: two, at most two lines a row, or these and more, and three open rows. */
enum { RUN_KERNELS = 3, RUN_TAPS = 3 };

static struct wd_resample_tables tables_of(const struct wd_resample_shape *s)
{
    return wd_resample_tables_of(s, s->backward ? RESAMPLE_SHARES : RESAMPLE_PIXELS, 0);
}

/* open: rows of `out` that a line has a part of, at most */
static int form_of(const struct wd_resample_tables *t, int64_t open)
{
    if (t->taps[1] <= 2 && t->taps[2] <= 2) return 0;
    for (int f = 1; f < FORMS; ++f) {
        if (t->taps[2] <= forms[f].taps && open <= forms[f].open) return f;
    }
    return -1;
}

/* Whether elements come straight from memory: measured, sums of three taps are faster than through rings, of
 * two slower. */
static bool is_words(const struct wd_resample_tables *t, int64_t open)
{
    return t->taps[2] <= RING_WORD_TAPS && open <= RING_WORD_OPEN;
}

/* Rows of a walk, evenly, and what they need in shared memory. */
static void set_rows(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                     int64_t out, int64_t rows, struct wd_resample_ring_plan *p)
{
    const int open = p->words ? RING_WORD_OPEN : forms[p->form].open;
    p->rows = wd_ceil_div(out, wd_ceil_div(out, rows));
    p->lines = wd_resample_reach(s, 1, p->rows, t->taps[1]);
    p->weights_size = p->lines * open * (int64_t)sizeof(float);
    p->weights_size = wd_ceil_div(p->weights_size, RECORD) * RECORD;
}

/* So many walks that a block's shared memory holds what they need; false where there are none. */
static bool set_walks(int64_t out, int64_t most, struct wd_resample_ring_plan *p)
{
    for (p->walks = wd_least(most, wd_ceil_div(out, p->rows)); p->walks > 0; --p->walks) {
        const int64_t lines = p->runs    ? p->ring * p->size * RING_RUN_BYTES * RING_RUN_THREADS
                              : p->words ? 0
                                         : p->walks * p->size;
        p->shared = p->walks * (p->rows * RECORD + p->weights_size) + lines;
        p->bands = wd_ceil_div(out, p->rows * p->walks);
        if (p->shared <= SHARED_MAX) return true;
    }
    return false;
}

/* Whether threads have RING_PLACES where there is enough work. So many registers let fewer warps be
 * resident: measured, gradients and fp32 of two taps are slower for it. */
static bool is_wide(const struct wd_resample_shape *s, const struct wd_resample_ring_plan *p)
{
    return forms[p->form].wide && !s->backward && (s->type != 0 || p->form > 0);
}

/* Planes side by side in a walk, where a warp has places enough for several and still there are enough
 * walks. Their lines begin alike in 16 bytes. */
static int64_t planes_of(const struct wd_resample_shape *s, const struct wd_resample_ring_plan *p,
                         int multiprocessors)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int64_t *from = s->backward ? s->windows : s->image;
    const int64_t bands = wd_ceil_div(out[1], ROWS_LONG);
    int64_t planes = (int64_t)RING_WARP * RING_PLACES / wd_most(p->units, RING_WARP);
    if (!is_wide(s, p) || forms[p->form].taps != RING_PLANES_TAPS || s->inner != 1 ||
        from[1] * from[2] * s->size % 16 != 0) {
        return 1;
    }
    while (planes > 1 &&
           wd_ceil_div(s->outer, planes) * bands < (int64_t)multiprocessors * WARPS_FEW) {
        --planes;
    }
    return wd_most(planes, 1);
}

/* Elements of any alignment, by a warp each. */
static void set_elements(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                         int multiprocessors, struct wd_resample_ring_plan *p)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    int64_t columns;
    int64_t warps;
    p->units = out[2] * s->inner;
    p->threads = RING_WARP;
    p->segment = (int64_t)RING_WARP * RING_PLACES;
    warps = s->outer * out[0] * wd_ceil_div(p->units, p->segment);
    p->planes = planes_of(s, p, multiprocessors);
    p->outer = wd_ceil_div(s->outer, p->planes);
    if (p->planes > 1) {
        p->segment = p->units;
    } else if (!is_wide(s, p) || p->units <= (int64_t)RING_WARP * WALK_PLACES ||
               warps * wd_ceil_div(out[1], ROWS_LONG) < (int64_t)multiprocessors * WARPS) {
        p->segment = (int64_t)RING_WARP * WALK_PLACES;
    }
    columns = wd_least((p->segment - 1) / s->inner + 2, out[2]);
    p->pitch = wd_resample_reach(s, 2, columns, t->taps[2]) * s->inner * s->size;
    p->pitch = wd_ceil_div(p->pitch, 16) * 16 + 16;
    p->ring = p->pitch * p->planes <= LINE_SHORT ? RING_LONG : RING_SHORT;
    p->size = p->ring * p->pitch * p->planes;
}

static void set_runs(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                     struct wd_resample_ring_plan *p)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    p->units = out[2] * s->inner / wd_resample_run(s);
    p->threads = wd_least(wd_ceil_div(p->units, RING_WARP), RING_WALKS) * RING_WARP;
    p->segment = p->threads;
    p->size = p->form == 0 ? 2 : wd_most(t->taps[2], RUN_TAPS);
    p->ring = RING_RUN_LINES(p->size);
}

/* Elements of any alignment: planes are gone through as if they were one line, of which the calls have one
 * word more where lines begin between two. */
static void set_words(const struct wd_resample_shape *s, struct wd_resample_ring_plan *p)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int64_t length = out[2] * s->inner;
    p->each = s->size == 2 && length % 2 == 0 ? 2 : 1;
    p->units = length / p->each * s->outer;
    p->threads = WORD_THREADS;
    p->segment = (int64_t)WORD_THREADS * RING_WORDS / p->each;
    p->outer = 1;
}

int64_t wd_resample_ring_words(const struct wd_resample_shape *s,
                               const struct wd_resample_ring_plan *p, const void *to)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const bool between = (uintptr_t)to / s->size % p->each != 0;
    return out[2] * s->inner / p->each + between;
}

static int kernel_of(const struct wd_resample_shape *s, const struct wd_resample_ring_plan *p)
{
    static const int narrow[] = {KERNEL_resample_ring_f32_2_0, KERNEL_resample_ring_f16_2_0,
                                 KERNEL_resample_ring_bf16_2_0};
    static const int wide[] = {KERNEL_resample_ring_f32_4_3_long - 1, /* of two taps none */
                               KERNEL_resample_ring_f16_2_0_long,
                               KERNEL_resample_ring_bf16_2_0_long};
    if (p->runs)
        return KERNEL_resample_ring_runs_f32_2_0 + s->type * RUN_KERNELS + (int)p->size - 2;
    if (p->words && p->each == 1) return KERNEL_resample_ring_words_f32 + s->type;
    if (p->words) return KERNEL_resample_ring_words_f16_pairs + s->type - 1;
    if (p->planes > 1 || p->segment > (int64_t)RING_WARP * WALK_PLACES) {
        return wide[s->type] + p->form;
    }
    return narrow[s->type] + p->form;
}

bool wd_resample_ring_plan_of(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                              int multiprocessors, struct wd_resample_ring_plan *p)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int axis = s->axis[1];
    int64_t open;
    int64_t warps;
    int64_t rows;
    memset(p, 0, sizeof *p);
    if (s->type == 3 || s->axis[0] >= 0) return false;
    if (axis >= 0 && !s->backward && t->taps[1] * s->attr->unit[axis] < s->attr->stride[axis]) {
        return false;
    }
    open = wd_resample_tables_of(s, s->backward ? RESAMPLE_PIXELS : RESAMPLE_SHARES, 0).taps[1];
    p->form = form_of(t, open);
    p->runs = s->inner > 1 && s->inner % wd_resample_run(s) == 0;
    p->words = !p->runs && p->form == WORD_FORM && is_words(t, open);
    if (p->form < 0 || (p->runs && p->form >= RUN_FORMS)) return false;
    p->planes = 1;
    p->outer = s->outer;
    if (p->runs) set_runs(s, t, p);
    else if (p->words) set_words(s, p);
    else set_elements(s, t, multiprocessors, p);
    p->segments = wd_ceil_div(p->units, p->segment);
    warps = p->outer * out[0] * p->segments * p->threads / RING_WARP;
    rows = ROWS;
    /* few are resident, and what walks share is dear */
    if (p->words || (p->form > 0 && !s->backward)) {
        rows = wd_resample_walk_rows(warps, out[1], ROWS,
                                     REGISTERS / RING_WARP /
                                         kernel_rows[kernel_of(s, p)].registers * multiprocessors);
    }
    while (!p->words && (p->form == 0 || s->backward) && rows > ROWS_FEW &&
           warps * wd_ceil_div(out[1], rows) < (int64_t)multiprocessors * WARPS) {
        rows /= 2;
    }
    for (; rows > 0; rows /= 2) {
        set_rows(s, t, out[1], rows, p);
        /* of several planes one by one, so that as many are resident as registers let */
        if (set_walks(out[1], p->planes > 1 ? 1 : RING_WALKS * RING_WARP / p->threads, p)) {
            return true;
        }
    }
    return false;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    static const struct wd_resample_memory aligned;
    const int multiprocessors = problem->device->multiprocessors;
    struct wd_resample_shape s;
    struct wd_resample_tables t;
    struct resample_up_args up;
    struct wd_resample_ring_plan p;
    if (!wd_resample_shape_of(problem, &s, reason)) return false;
    if (s.max) {
        struct resample_ring_pick_args pick;
        struct resample_ring_scatter_args scatter;
        struct wd_resample_launch_size launch;
        WD_NEED(
            wd_resample_ring_pick_args_of(&s, &aligned, multiprocessors, &pick, &launch) ||
                wd_resample_ring_scatter_args_of(&s, &aligned, multiprocessors, &scatter, &launch),
            reason, NOT_SUPPORTED_SHAPE,
            "a maximum, and no gradient of one by two of planes or odd channels");
        return true;
    }
    if (!wd_resample_can_sum(&s, reason) || !wd_resample_can_walk(&s, reason)) return false;
    if (wd_resample_up_args_of(&s, &aligned, multiprocessors, &up) >= 0) return true;
    t = tables_of(&s);
    WD_NEED(wd_resample_ring_plan_of(&s, &t, multiprocessors, &p), reason, NOT_SUPPORTED_SHAPE,
            "a volume, lines that are too long for a ring or that no window has a part of, or too "
            "many rows that share");
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reason reason;
    struct wd_resample_shape s;
    wd_resample_shape_of(problem, &s, &reason);
    return s.max ? 0 : wd_resample_sum_bytes(&s);
}

/* All of the arguments that is known before a call. */
static void set_args(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                     const struct wd_resample_ring_plan *p, struct resample_ring_args *a)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int64_t *from = s->backward ? s->windows : s->image;
    struct resample_walk_args *w = &a->walk;
    w->compact = 1;
    wd_resample_walk_sizes(s, t, w);
    w->rows = (int32_t)p->rows;
    w->walks = (int32_t)p->walks;
    w->lines = (int32_t)p->lines;
    w->threads = (uint32_t)p->threads;
    w->units = (uint32_t)p->units;
    w->segment = (uint32_t)p->segment;
    w->weights_at = (uint32_t)(p->walks * p->rows * RECORD);
    w->weights_size = (uint32_t)p->weights_size;
    w->stage_at = (uint32_t)(p->walks * (p->rows * RECORD + p->weights_size));
    w->pitch = (uint32_t)p->pitch;
    w->stage_lines = (uint32_t)p->ring;
    w->by_run = wd_fastdiv_of((uint32_t)(p->words ? s->inner : p->units / out[2]));
    w->by_segments = wd_fastdiv_of((uint32_t)p->segments);
    w->by_bands = wd_fastdiv_of((uint32_t)p->bands);
    a->size = (uint32_t)p->size;
    a->planes = (uint32_t)p->planes;
    a->outer = (uint32_t)s->outer;
    a->plane_bytes = (uint32_t)(from[1] * from[2] * s->size);
    a->between = (uint32_t)((out[1] - 1) * out[2]);
    a->by_columns = wd_fastdiv_of((uint32_t)out[2]);
}

/* A problem that matches. The rest is of what is no maximum. */
struct work {
    struct wd_resample_shape shape;
    struct wd_resample_tables tables;
    struct wd_resample_ring_plan plan;
    bool rings; /* they do it, at some alignment */
    struct resample_ring_args args;
    struct wd_resample_ring_plan down; /* where there are such args */
    struct resample_ring_args down_args;
    struct wd_pool_job halves; /* where pooling does it, aligned */
};

static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct work *w = prepared;
    struct wd_reason reason;
    int64_t chunks;
    memset(w, 0, sizeof *w);
    if (!wd_resample_shape_of(problem, &w->shape, &reason) || w->shape.max) return;
    w->tables = tables_of(&w->shape);
    w->rings =
        wd_resample_ring_plan_of(&w->shape, &w->tables, problem->device->multiprocessors, &w->plan);
    wd_resample_halves_of(&w->shape, problem->device, &w->halves);
    if (!w->rings) return;
    set_args(&w->shape, &w->tables, &w->plan, &w->args);
    chunks = w->plan.words ? wd_resample_ring_down_of(&w->shape, &w->tables,
                                                      problem->device->multiprocessors, &w->down)
                           : 0;
    if (chunks == 0) return;
    set_args(&w->shape, &w->tables, &w->down, &w->down_args);
    w->down_args.chunks = (uint32_t)chunks;
    w->down_args.walk.stage_at = (uint32_t)(w->down.shared - w->down.walks * w->down.size);
}

static cudnnStatus_t emit_ring(struct wd_queue *queue, const struct work *work,
                               const struct wd_resample_memory *m)
{
    const struct wd_resample_shape *s = &work->shape;
    const struct wd_resample_tables *t = &work->tables;
    const struct wd_resample_ring_plan *p = &work->plan;
    const int64_t *out = s->backward ? s->image : s->windows;
    int64_t segments = p->segments;
    struct resample_ring_args a = work->args;
    WD_TRY(wd_resample_walk_call(queue, s, t, m, &a.walk));
    if (p->words) {
        const int64_t words = wd_resample_ring_words(s, p, m->out);
        a.by_line = wd_fastdiv_of((uint32_t)words);
        a.walk.units = (uint32_t)(words * s->outer);
        segments = wd_ceil_div(words * s->outer, p->segment);
        a.walk.by_segments = wd_fastdiv_of((uint32_t)segments);
    }
    return wd_emit_kernel(queue, &kernel_rows[kernel_of(s, p)],
                          p->outer * out[0] * p->bands * segments,
                          (uint32_t)(p->threads * p->walks), (uint32_t)p->shared, &a);
}

static cudnnStatus_t emit_down(struct wd_queue *queue, const struct work *w,
                               const struct wd_resample_memory *m)
{
    const struct wd_resample_ring_plan *p = &w->down;
    struct resample_ring_args a = w->down_args;
    WD_TRY(wd_resample_walk_call(queue, &w->shape, &w->tables, m, &a.walk));
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_resample_ring_down_f32 + w->shape.type],
                          p->outer * p->bands * p->segments, (uint32_t)(p->threads * p->walks),
                          (uint32_t)p->shared, &a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const int multiprocessors = queue->device->multiprocessors;
    struct work own;
    const struct work *w = wd_call_prepared(call, prepare, &own);
    const struct wd_resample_shape *s = &w->shape;
    struct wd_resample_memory m = wd_resample_memory_of(call, s, queue->device);
    struct resample_up_args up;
    cudnnStatus_t status;
    int which;
    if (s->max) {
        struct resample_ring_pick_args pick;
        struct resample_ring_scatter_args scatter;
        struct wd_resample_launch_size launch;
        if (wd_resample_ring_scatter_args_of(s, &m, multiprocessors, &scatter, &launch)) {
            struct pool_warp_args warps;
            const int64_t blocks =
                wd_resample_warps_of(queue->device, s, &m, &scatter.p, RESIDENT, &warps);
            if (blocks > 0) {
                return wd_emit_kernel(
                    queue, &kernel_rows[KERNEL_resample_warp_pick_f16 + s->type - 1], blocks,
                    POOL_WARP_THREADS, wd_pool_warp_bytes(POOL_WARP_PLACES), &warps);
            }
            return wd_emit_kernel(queue, &kernel_rows[KERNEL_resample_ring_scatter_f32 + s->type],
                                  launch.blocks, launch.threads, launch.shared, &scatter);
        }
        if (!wd_resample_ring_pick_args_of(s, &m, multiprocessors, &pick, &launch)) {
            return CUDNN_STATUS_INTERNAL_ERROR;
        }
        return wd_emit_kernel(queue, &kernel_rows[KERNEL_resample_ring_pick_f32 + s->type],
                              launch.blocks, launch.threads, launch.shared, &pick);
    }
    which = wd_resample_up_args_of(s, &m, multiprocessors, &up);
    if (which >= RESAMPLE_UP_SINGLES && w->plan.words) which = -1;
    if (which >= 0 && m.alpha != 0.0 && m.beta == 0.0) {
        static const int up_forward[] = {
            KERNEL_resample_up_f32_planes_corners, KERNEL_resample_up_f16_planes_corners,
            KERNEL_resample_up_bf16_planes_corners, KERNEL_resample_up_f64_planes_corners};
        static const int up_back[] = {KERNEL_resample_up_back_f32_planes_corners,
                                      KERNEL_resample_up_back_f16_planes_corners,
                                      KERNEL_resample_up_back_bf16_planes_corners};
        which += s->backward ? up_back[s->type] : up_forward[s->type];
        return wd_emit_kernel(queue, &kernel_rows[which], wd_ceil_div(up.count, UP_THREADS),
                              UP_THREADS, 0, &up);
    }
    if (wd_resample_emits_halves(&w->halves, &m, queue, &status)) return status;
    if (w->down_args.chunks > 0 && m.alpha != 0.0 && m.beta == 0.0 && (uintptr_t)m.from % 16 == 0 &&
        (uintptr_t)m.out % 4 == 0) {
        return emit_down(queue, w, &m);
    }
    if (w->rings &&
        (!w->plan.runs || ((uintptr_t)m.from % 16 == 0 && (uintptr_t)m.out % 16 == 0))) {
        return emit_ring(queue, w, &m);
    }
    /* runs, or enlarging, but for the pointers or what is blended */
    return wd_resample_sum(queue, s, &m);
}

const struct wd_engine wd_engine_resample_forward_ring = {
    .name = "resample_forward_ring",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};

const struct wd_engine wd_engine_resample_backward_ring = {
    .name = "resample_backward_ring",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};
