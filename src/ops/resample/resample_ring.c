/* SPDX-License-Identifier: Apache-2.0
 *
 * Weighted sums on the GPU, forward and backward: images that are enlarged by two or four, by kernels that
 * know their taps, and all else through rings of lines: by a warp a walk down the rows, or, of runs of
 * channels, by threads that each have their own. Gradients of maxima likewise. */
#include "ops/resample/resample_ring_args.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/resample/resample_walk.h"

#define WD_KERNELS_MODULE resample_ring
#define WD_KERNELS_ROWS "ops/resample/resample_ring_kernels.def"
#include "ops/kernels_host.inc"

enum {
    UP_KERNELS = 9, /* of a type; runs are not enlarged by four, but gradients are */
    UP_THREADS = 128,
    RECORD = 16, /* bytes of a row's record */
    ROWS_FEW = 8,
    WARPS = 48,            /* of a multiprocessor, where there is as much work */
    ROWS = 64,             /* of a walk, at most */
    REGISTERS = 65536,     /* of a multiprocessor */
    SHARED_MAX = 40 << 10, /* bytes of a block */
    LINE_SHORT = 512,      /* bytes of which a ring has more */
};

/* Kernels of a type: by the taps along a line, and rows that are open at a time. */
static const struct {
    int taps;
    int open; /* 0: at most two lines a row */
} forms[] = {{2, 0}, {4, 3}, {8, 6}};
enum { FORMS = sizeof forms / sizeof forms[0], RUN_FORMS = 2 /* the first ones */ };

struct plan {
    int form;
    bool runs;       /* of channels, straight to where their threads are */
    int64_t units;   /* of a line of `out` */
    int64_t threads; /* of a walk */
    int64_t size;    /* as in the arguments */
    int64_t shared;
    int64_t segment;
    int64_t segments;
    int64_t rows;
    int64_t walks;
    int64_t bands;
    int64_t lines;
    int64_t ring; /* lines */
    int64_t pitch;
    int64_t weights_size;
};

static struct wd_resample_tables tables_of(const struct wd_resample_shape *s)
{
    return wd_resample_tables_of(s, s->backward ? RESAMPLE_SHARES : RESAMPLE_PIXELS, 0);
}

static int form_of(const struct wd_resample_shape *s, const struct wd_resample_tables *t)
{
    const struct wd_resample_tables other =
        wd_resample_tables_of(s, s->backward ? RESAMPLE_PIXELS : RESAMPLE_SHARES, 0);
    if (t->taps[1] <= 2 && t->taps[2] <= 2) return 0;
    for (int f = 1; f < FORMS; ++f) {
        if (t->taps[2] <= forms[f].taps && other.taps[1] <= forms[f].open) return f;
    }
    return -1;
}

/* Rows of a walk, evenly, and what they need in shared memory. */
static void set_rows(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                     int64_t out, int64_t rows, struct plan *p)
{
    p->rows = wd_ceil_div(out, wd_ceil_div(out, rows));
    p->lines = wd_resample_reach(s, 1, p->rows, t->taps[1]);
    p->weights_size = p->lines * forms[p->form].open * (int64_t)sizeof(float);
    p->weights_size = wd_ceil_div(p->weights_size, RECORD) * RECORD;
}

/* So many walks that a block's shared memory holds what they need; false where there are none. */
static bool set_walks(int64_t out, int64_t most, struct plan *p)
{
    for (p->walks = wd_least(most, wd_ceil_div(out, p->rows)); p->walks > 0; --p->walks) {
        const int64_t ring = p->runs ? p->ring * p->size * 16 * p->threads : p->size;
        p->shared = p->walks * (p->rows * RECORD + p->weights_size + ring);
        p->bands = wd_ceil_div(out, p->rows * p->walks);
        if (p->shared <= SHARED_MAX) return true;
    }
    return false;
}

/* Elements of any alignment, by a warp each. */
static void set_elements(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                         struct plan *p)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    int64_t columns;
    p->units = out[2] * s->inner;
    p->threads = RING_WARP;
    p->segment = (int64_t)RING_WARP * WALK_PLACES;
    columns = wd_least((p->segment - 1) / s->inner + 2, out[2]);
    p->pitch = wd_resample_reach(s, 2, columns, t->taps[2]) * s->inner * s->size;
    p->pitch = wd_ceil_div(p->pitch, 16) * 16 + 16;
    p->ring = p->pitch <= LINE_SHORT ? RING_LONG : RING_SHORT;
    p->size = p->ring * p->pitch;
}

static void set_runs(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                     struct plan *p)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    p->units = out[2] * s->inner / wd_resample_run(s);
    p->threads = wd_least(wd_ceil_div(p->units, RING_WARP), RING_WALKS) * RING_WARP;
    p->segment = p->threads;
    p->ring = t->taps[2] <= 2 ? RING_LONG : RING_SHORT;
    p->size = t->taps[2];
}

static int kernel_of(const struct wd_resample_shape *s, const struct plan *p)
{
    return p->runs ? KERNEL_resample_ring_runs_f32_2_0 + s->type * RUN_FORMS + p->form
                   : KERNEL_resample_ring_f32_2_0 + s->type * FORMS + p->form;
}

/* False where it is no work for rings. Lines that no window has a part of would be read all the same. */
static bool plan_of(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                    int multiprocessors, struct plan *p)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int axis = s->axis[1];
    int64_t warps;
    int64_t rows;
    memset(p, 0, sizeof *p);
    if (s->type == 3 || s->axis[0] >= 0) return false;
    if (axis >= 0 && !s->backward && t->taps[1] * s->attr->unit[axis] < s->attr->stride[axis]) {
        return false;
    }
    p->form = form_of(s, t);
    p->runs = s->inner > 1 && s->inner % wd_resample_run(s) == 0;
    if (p->form < 0 || (p->runs && p->form >= RUN_FORMS)) return false;
    if (p->runs) set_runs(s, t, p);
    else set_elements(s, t, p);
    p->segments = wd_ceil_div(p->units, p->segment);
    warps = s->outer * out[0] * p->segments * p->threads / RING_WARP;
    rows = ROWS;
    if (p->form > 0 && !s->backward) { /* few are resident, and what walks share is dear */
        rows = wd_resample_walk_rows(warps, out[1], ROWS,
                                     REGISTERS / RING_WARP /
                                         kernel_rows[kernel_of(s, p)].registers * multiprocessors);
    }
    while ((p->form == 0 || s->backward) && rows > ROWS_FEW &&
           warps * wd_ceil_div(out[1], rows) < (int64_t)multiprocessors * WARPS) {
        rows /= 2;
    }
    for (; rows > 0; rows /= 2) {
        set_rows(s, t, out[1], rows, p);
        if (set_walks(out[1], RING_WALKS * RING_WARP / p->threads, p)) return true;
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
    struct plan p;
    if (!wd_resample_shape_of(problem, &s, reason)) return false;
    if (s.max) {
        struct resample_ring_pick_args pick;
        struct wd_resample_launch_size launch;
        WD_NEED(wd_resample_ring_pick_args_of(&s, &aligned, multiprocessors, &pick, &launch),
                reason, NOT_SUPPORTED_SHAPE,
                "a maximum, and no gradient of one by two of planes or odd channels");
        return true;
    }
    if (!wd_resample_can_sum(&s, reason)) return false;
    if (wd_resample_up_args_of(&s, &aligned, multiprocessors, &up) >= 0) return true;
    t = tables_of(&s);
    WD_NEED(plan_of(&s, &t, multiprocessors, &p), reason, NOT_SUPPORTED_SHAPE,
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

static cudnnStatus_t emit_ring(struct wd_queue *queue, const struct wd_resample_shape *s,
                               const struct wd_resample_tables *t, const struct plan *p,
                               const struct wd_resample_memory *m)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int64_t *from = s->backward ? s->windows : s->image;
    struct resample_ring_args a;
    struct resample_walk_args *w = &a.walk;
    memset(&a, 0, sizeof a);
    w->compact = 1;
    for (int d = 0; w->compact && d < RESAMPLE_AXES; ++d) {
        w->compact = wd_resample_set_near(s, t, d, &w->near[d]);
    }
    if (!w->compact) WD_TRY(wd_resample_make_tables(queue, s, t, 1, m->tables));
    w->from = m->from;
    w->out = m->out;
    w->alpha = m->alpha;
    w->beta = m->beta;
    w->scales = m->alpha != 0.0;
    w->blends = m->beta != 0.0;
    w->streaming = m->streaming;
    w->rows = (int32_t)p->rows;
    w->walks = (int32_t)p->walks;
    w->lines = (int32_t)p->lines;
    w->threads = (uint32_t)p->threads;
    w->inner = (uint32_t)s->inner;
    w->units = (uint32_t)p->units;
    w->segment = (uint32_t)p->segment;
    w->weights_at = (uint32_t)(p->walks * p->rows * RECORD);
    w->weights_size = (uint32_t)p->weights_size;
    w->stage_at = (uint32_t)(p->walks * (p->rows * RECORD + p->weights_size));
    w->pitch = (uint32_t)p->pitch;
    w->stage_lines = (uint32_t)p->ring;
    w->total = s->outer * from[0] * from[1] * from[2] * s->inner;
    w->by_run = wd_fastdiv_of((uint32_t)(p->units / out[2]));
    w->by_segments = wd_fastdiv_of((uint32_t)p->segments);
    w->by_bands = wd_fastdiv_of((uint32_t)p->bands);
    w->by_depth = wd_fastdiv_of((uint32_t)out[0]);
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        const char *memory = m->tables;
        w->axis[d].entries = (const struct resample_entry *)(memory + t->entries[d]);
        w->axis[d].weights = memory + t->weights[d];
        w->axis[d].taps = (int32_t)t->taps[d];
        w->axis[d].from = (int32_t)from[d];
        w->axis[d].out = (int32_t)out[d];
    }
    a.size = (uint32_t)p->size;
    return wd_emit_kernel(queue, &kernel_rows[kernel_of(s, p)],
                          s->outer * out[0] * p->bands * p->segments,
                          (uint32_t)(p->threads * p->walks), (uint32_t)p->shared, &a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const bool backward = call->problem.node->op == WD_OP_RESAMPLE_BACKWARD;
    const int output = backward ? WD_RESAMPLE_BACK_DX : WD_RESAMPLE_Y;
    struct wd_resample_memory m = {
        .from = wd_call_data(call, backward ? WD_RESAMPLE_BACK_DY : WD_RESAMPLE_X),
        .out = wd_call_data(call, output),
        .tables = call->workspace,
        .alpha = call->scalars[WD_RESAMPLE_ALPHA],
        .beta = call->scalars[WD_RESAMPLE_BETA],
        .streaming = wd_tensor_extent(wd_call_tensor(call, output)) > queue->device->l2_bytes,
    };
    const int multiprocessors = queue->device->multiprocessors;
    struct wd_reason reason;
    struct wd_resample_shape s;
    struct wd_resample_tables t;
    struct resample_up_args up;
    struct plan p;
    int which;
    wd_resample_shape_of(&call->problem, &s, &reason);
    if (s.max) {
        struct resample_ring_pick_args pick;
        struct wd_resample_launch_size launch;
        m.places = wd_call_data(call, WD_RESAMPLE_BACK_IDX);
        if (!wd_resample_ring_pick_args_of(&s, &m, multiprocessors, &pick, &launch)) {
            return CUDNN_STATUS_INTERNAL_ERROR;
        }
        return wd_emit_kernel(queue, &kernel_rows[KERNEL_resample_ring_pick_f32 + s.type],
                              launch.blocks, launch.threads, launch.shared, &pick);
    }
    which = wd_resample_up_args_of(&s, &m, multiprocessors, &up);
    if (which >= 0 && m.alpha != 0.0 && m.beta == 0.0) {
        static const int up_back[] = {KERNEL_resample_up_back_f32_planes_corners,
                                      KERNEL_resample_up_back_f16_planes_corners,
                                      KERNEL_resample_up_back_bf16_planes_corners};
        which += backward ? up_back[s.type]
                          : KERNEL_resample_up_f32_planes_corners + s.type * UP_KERNELS;
        return wd_emit_kernel(queue, &kernel_rows[which], wd_ceil_div(up.count, UP_THREADS),
                              UP_THREADS, 0, &up);
    }
    t = tables_of(&s);
    if (plan_of(&s, &t, multiprocessors, &p) &&
        (!p.runs || ((uintptr_t)m.from % 16 == 0 && (uintptr_t)m.out % 16 == 0))) {
        return emit_ring(queue, &s, &t, &p, &m);
    }
    /* runs, or enlarging, but for the pointers or what is blended */
    return wd_resample_sum(queue, &s, &m);
}

const struct wd_engine wd_engine_resample_forward_ring = {
    .name = "resample_forward_ring",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_resample_backward_ring = {
    .name = "resample_backward_ring",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
