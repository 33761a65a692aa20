/* SPDX-License-Identifier: Apache-2.0
 *
 * Weighted sums on the GPU by walks down the rows, forward and backward: averages, nearest and bilinear.
 * Where channels come by runs of 16 bytes and all that is touched is aligned, lines are read straight
 * from memory; everything else is staged. */
#include <string.h>

#include "base/sizes.h"
#include "ops/resample/resample_walk.h"

#define WD_KERNELS_MODULE resample_walk
#define WD_KERNELS_ROWS "ops/resample/resample_walk_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    ROWS = 16,    /* of a walk, at most */
    ROWS_FEW = 4, /* of an output */
    ELEMENTS_FEW = 1 << 18,
    SHARED_MAX = 40 << 10, /* bytes of a block: five of them on a multiprocessor */
    BLOCKS = 8,            /* of a multiprocessor, where there is as much work */
    RECORD = 16,           /* bytes of a row's record, of doubles 32 */
};

/* Kernels of a type: by the taps along a line, and rows that are open at a time. Staged lines have no second
 * one: rings have what is longer than two taps, but for volumes. */
static const struct {
    int taps; /* 0: any */
    int open; /* 0: at most two lines a row */
} forms[] = {{2, 0}, {4, 3}, {0, 8}};
enum { FORMS = sizeof forms / sizeof forms[0], OF_TYPE = 2 * FORMS - 1 /* of a type */ };

struct plan {
    int form;
    bool direct; /* runs of channels */
    int64_t units;
    int64_t unit_elements;
    int64_t threads; /* of a walk */
    int64_t segment;
    int64_t segments;
    int64_t walks;
    int64_t rows;
    int64_t bands;
    int64_t lines;
    int64_t stage_lines;
    int64_t depth;
    int64_t pitch;
    int64_t weights_at;
    int64_t weights_size;
    int64_t stage_at;
    int64_t shared;
};

static struct wd_resample_tables tables_of(const struct wd_resample_shape *s)
{
    return wd_resample_tables_of(s, s->backward ? RESAMPLE_SHARES : RESAMPLE_PIXELS, 0);
}

static int form_of(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                   bool direct)
{
    const struct wd_resample_tables other =
        wd_resample_tables_of(s, s->backward ? RESAMPLE_PIXELS : RESAMPLE_SHARES, 0);
    if (t->taps[1] <= 2 && t->taps[2] <= 2) return 0;
    for (int f = 1; f < FORMS; ++f) {
        if (!direct && f == 1) continue;
        if (forms[f].taps > 0 && t->taps[2] > forms[f].taps) continue;
        if (other.taps[1] <= forms[f].open) return f;
    }
    return -1;
}

/* ---- Plans ---- */

/* Bytes of shared memory, and where what lies; lines are staged or not. */
static void set_memory(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                       struct plan *p)
{
    const int64_t wide = s->type == 3 ? 8 : 4;
    const int64_t columns = (p->segment * p->unit_elements - 1) / s->inner + 2;
    p->lines = wd_resample_reach(s, 1, p->rows, t->taps[1]);
    p->weights_at = p->walks * p->rows * RECORD * (wide / 4);
    p->weights_size = p->lines * forms[p->form].open * wide;
    p->weights_size = wd_ceil_div(p->weights_size, RECORD) * RECORD;
    p->stage_at = p->weights_at + p->walks * p->weights_size;
    p->shared = p->stage_at;
    if (p->direct) return;
    p->stage_lines = wd_resample_reach(s, 1, p->walks * p->rows, t->taps[1]);
    p->pitch = wd_resample_reach(s, 2, columns, t->taps[2]) * s->inner * s->size;
    p->pitch = wd_ceil_div(p->pitch, 16) * 16 + 16;
    p->shared += p->depth * p->stage_lines * p->pitch;
}

static void set_threads(struct plan *p, int64_t each, int64_t most)
{
    p->threads = wd_least(wd_ceil_div(wd_ceil_div(p->units, each), WARP) * WARP, most);
    p->segment = p->threads * each;
    p->segments = wd_ceil_div(p->units, p->segment);
}

static void set_rows(struct plan *p, int64_t out, int64_t rows, int64_t walks)
{
    p->rows = wd_least(rows, out);
    p->walks = wd_least(walks, wd_ceil_div(out, p->rows));
    p->bands = wd_ceil_div(out, p->rows * p->walks);
}

/* False where a block's lines do not fit. */
static bool plan_of(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                    int multiprocessors, bool aligned, struct plan *p)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int64_t run = wd_resample_run(s);
    const int64_t each = s->type == 3 ? 2 : WALK_PLACES;
    memset(p, 0, sizeof *p);
    p->direct = aligned && run > 1 && s->inner % run == 0;
    p->form = form_of(s, t, p->direct);
    if (p->form < 0) return false;
    p->unit_elements = p->direct ? run : 1;
    p->units = out[2] * s->inner / p->unit_elements;
    p->depth = t->taps[0];
    /* runs need more registers: blocks of half as many threads fill a multiprocessor better */
    for (int64_t most = WALK_THREADS / (p->direct ? 2 : 1); most >= WARP; most /= 2) {
        set_threads(p, p->direct ? 1 : each, most);
        for (int64_t walks = WALK_THREADS / (p->direct ? 2 : 1) / p->threads; walks >= 1;
             walks /= 2) {
            for (int64_t rows = ROWS; rows >= 1; rows /= 2) {
                set_rows(p, out[1], rows, walks);
                set_memory(s, t, p);
                if (p->shared > SHARED_MAX) continue;
                /* fewer rows a block where multiprocessors would be idle */
                if (s->outer * out[0] * p->bands * p->segments <
                        (int64_t)multiprocessors * BLOCKS &&
                    (rows > 4 || walks > 1)) {
                    if (rows > 4) continue;
                    break;
                }
                return true;
            }
        }
    }
    return false;
}

/* Planes of single precision that are not enlarged, or have few rows or elements, were faster in
 * resample_forward_vector. */
static bool is_quicker_elsewhere(const struct wd_resample_shape *s,
                                 const struct wd_resample_tables *t)
{
    if (s->type != 0 || s->inner != 1 || s->axis[0] >= 0 || s->backward) return false;
    return t->taps[2] <= 2 && (s->windows[2] <= s->image[2] || s->windows[1] < ROWS_FEW ||
                               s->outer * wd_resample_windows(s) < ELEMENTS_FEW);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_resample_shape s;
    struct wd_resample_tables t;
    struct plan p;
    if (!wd_resample_shape_of(problem, &s, reason)) return false;
    WD_NEED(!s.max, reason, NOT_SUPPORTED, "a maximum");
    if (!wd_resample_can_sum(&s, reason) || !wd_resample_can_walk(&s, reason)) return false;
    t = tables_of(&s);
    WD_NEED(plan_of(&s, &t, problem->device->multiprocessors, true, &p), reason,
            NOT_SUPPORTED_SHAPE, "more lines or open rows than a block holds");
    WD_NEED(!is_quicker_elsewhere(&s, &t), reason, NOT_SUPPORTED_SHAPE,
            "planes of single precision for which there are quicker ways");
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reason reason;
    struct wd_resample_shape s;
    wd_resample_shape_of(problem, &s, &reason);
    return wd_resample_sum_bytes(&s);
}

static int kernel_of(const struct wd_resample_shape *s, const struct plan *p)
{
    if (s->type == 3) return KERNEL_resample_staged_f64_2_0 + (p->form > 0);
    return KERNEL_resample_walk_f32_2_0 + s->type * OF_TYPE +
           (p->direct ? p->form : FORMS + (p->form > 0));
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_reason reason;
    struct wd_resample_shape s;
    struct wd_resample_tables t;
    struct resample_walk_args a;
    struct plan p;
    struct wd_resample_memory m;
    const int64_t *out;
    wd_resample_shape_of(&call->problem, &s, &reason);
    m = wd_resample_memory_of(call, &s, queue->device);
    t = tables_of(&s);
    out = s.backward ? s.image : s.windows;
    if (!plan_of(&s, &t, queue->device->multiprocessors,
                 (uintptr_t)m.from % 16 == 0 && (uintptr_t)m.out % 16 == 0, &p)) {
        /* lines that only aligned pointers need not be staged for */
        return wd_resample_sum(queue, &s, &m);
    }
    memset(&a, 0, sizeof a);
    a.compact = forms[p.form].taps > 0; /* else weights are looked up by every line */
    wd_resample_walk_sizes(&s, &t, &a);
    WD_TRY(wd_resample_walk_call(queue, &s, &t, &m, &a));
    a.rows = (int32_t)p.rows;
    a.walks = (int32_t)p.walks;
    a.lines = (int32_t)p.lines;
    a.threads = (uint32_t)p.threads;
    a.units = (uint32_t)p.units;
    a.segment = (uint32_t)p.segment;
    a.weights_at = (uint32_t)p.weights_at;
    a.weights_size = (uint32_t)p.weights_size;
    a.stage_at = (uint32_t)p.stage_at;
    a.pitch = (uint32_t)p.pitch;
    a.stage_lines = (uint32_t)p.stage_lines;
    a.by_run = wd_fastdiv_of((uint32_t)(s.inner / p.unit_elements));
    a.by_segments = wd_fastdiv_of((uint32_t)p.segments);
    a.by_bands = wd_fastdiv_of((uint32_t)p.bands);
    a.by_chunks = wd_fastdiv_of((uint32_t)(p.pitch / 16));
    return wd_emit_kernel(queue, &kernel_rows[kernel_of(&s, &p)],
                          s.outer * out[0] * p.bands * p.segments, (uint32_t)(p.threads * p.walks),
                          (uint32_t)p.shared, &a);
}

const struct wd_engine wd_engine_resample_forward_walk = {
    .name = "resample_forward_walk",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_resample_backward_walk = {
    .name = "resample_backward_walk",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_GPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
