/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of resampling on the GPU straight from memory. Of sums they are weighted sums themselves;
 * of maxima each pixel looks for itself among the places of the windows over it, which are those of the
 * index tensor, or noted in the workspace before. */
#include "ops/resample/resample_vector.h"

#define WD_KERNELS_MODULE resample_vector_back
#define WD_KERNELS_ROWS "ops/resample/resample_vector_back_kernels.def"
#include "ops/kernels_host.inc"

enum { NOTES_MAX = 256 << 20 }; /* bytes */

/* The workspace of a maximum: two kinds of tables, and notes. */
struct layout {
    struct wd_resample_tables tables[2];
    int64_t notes; /* where they begin, and as many bytes */
    int64_t notes_size;
};

static struct layout layout_of(const struct wd_resample_shape *s)
{
    struct layout l;
    l.tables[0] = wd_resample_tables_of(s, RESAMPLE_RANGES, 0);
    l.tables[1] = wd_resample_tables_of(s, RESAMPLE_OVER, l.tables[0].end);
    l.notes = l.tables[1].end;
    l.notes_size = s->has_idx ? 0 : s->outer * wd_resample_windows(s) * s->place_size;
    return l;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_resample_shape s;
    if (!wd_resample_shape_of(problem, &s, reason)) return false;
    if (!s.max) return wd_resample_can_sum(&s, reason);
    WD_NEED(layout_of(&s).notes_size <= NOTES_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld bytes to note places in, at most %d", (long long)layout_of(&s).notes_size,
            NOTES_MAX);
    return wd_resample_can_max(&s, reason);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reason reason;
    struct wd_resample_shape s;
    struct layout l;
    wd_resample_shape_of(problem, &s, &reason);
    if (!s.max) return wd_resample_sum_bytes(&s);
    l = layout_of(&s);
    return l.notes + l.notes_size;
}

static cudnnStatus_t emit_collect(struct wd_queue *queue, const struct wd_resample_shape *s,
                                  const struct wd_resample_memory *m, const struct layout *l)
{
    const struct resample_max_args a = wd_resample_max_args_of(s, m, &l->tables[0], &l->tables[1]);
    const bool runs = wd_resample_by_runs(s, m);
    const int kernel = s->type == 3 ? KERNEL_resample_collect_f64
                                    : KERNEL_resample_collect_f32_16 + s->type * 2 + !runs;
    return wd_resample_launch(queue, &kernel_rows[kernel], a.count, &a);
}

/* The edge of windows by two of 2 or 3 rows and columns, by runs; 0: they are not. */
static int twos_of(const struct wd_resample_shape *s, const struct wd_resample_memory *m)
{
    if (!s->has_idx || !wd_resample_whole(s) || !wd_resample_by_runs(s, m)) return 0;
    const struct resample_places_args a = wd_resample_places_args_of(s, m);
    const struct resample_places_axis *h = &a.axis[1];
    const struct resample_places_axis *w = &a.axis[2];
    if (s->axis[0] >= 0 || h->window != w->window || h->stride != 2 || w->stride != 2) return 0;
    return h->window == 2 || h->window == 3 ? h->window : 0;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_reason reason;
    struct wd_resample_shape s;
    struct layout l;
    struct wd_resample_memory m;
    wd_resample_shape_of(&call->problem, &s, &reason);
    m = wd_resample_memory_of(call, &s, queue->device);
    if (!s.max) return wd_resample_sum(queue, &s, &m);
    if (twos_of(&s, &m) > 0) {
        const struct resample_places_args a = wd_resample_places_args_of(&s, &m);
        const int kernel = KERNEL_resample_twos_f32_2 + s.type * 2 + (twos_of(&s, &m) == 3);
        return wd_resample_launch(queue, &kernel_rows[kernel], a.count, &a);
    }
    if (s.has_idx && wd_resample_whole(&s)) {
        struct wd_resample_launch_size size;
        struct resample_lines_args a;
        struct resample_places_args tiles;
        struct resample_threes_args threes;
        if (wd_resample_tiles(&s, &m, &tiles)) {
            return wd_resample_launch(queue, &kernel_rows[KERNEL_resample_planes_back_f32 + s.type],
                                      2 * (int64_t)tiles.count, &tiles);
        }
        if (wd_resample_threes(&s, &m, queue->device->multiprocessors, &threes)) {
            return wd_resample_launch(queue, &kernel_rows[KERNEL_resample_threes_back_f32 + s.type],
                                      threes.p.count, &threes);
        }
        if (wd_resample_lines_args_of(&s, &m, queue->device->multiprocessors, &a, &size)) {
            return wd_emit_kernel(queue, &kernel_rows[KERNEL_resample_lines_back_f32 + s.type],
                                  size.blocks, size.threads, size.shared, &a);
        }
    }
    l = layout_of(&s);
    WD_TRY(wd_resample_make_tables(queue, &s, l.tables, 2, m.tables));
    if (!s.has_idx) {
        struct wd_resample_memory again = {.from = wd_call_data(call, WD_RESAMPLE_BACK_X),
                                           .tables = m.tables};
        m.places = again.places = (char *)call->workspace + l.notes;
        WD_TRY(wd_resample_max(queue, &s, &again, &l.tables[0]));
    }
    return emit_collect(queue, &s, &m, &l);
}

const struct wd_engine wd_engine_resample_backward_vector = {
    .name = "resample_backward_vector",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
