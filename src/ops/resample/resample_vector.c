/* SPDX-License-Identifier: Apache-2.0
 *
 * Resampling forward on the GPU straight from memory, by tables of what counts along each axis; and
 * the launches of weighted sums and of maxima, which the gradients have a use for as well. */
#include "ops/resample/resample_vector.h"

#include <string.h>

#include "base/sizes.h"

#define WD_KERNELS_MODULE resample_vector
#define WD_KERNELS_ROWS "ops/resample/resample_vector_kernels.def"
#include "ops/kernels_host.inc"

enum {
    TABLES_MAX = 16 << 20, /* bytes */
    TABLE_THREADS = 128,
    LONG_WINDOW = 64, /* pixels of which the definition makes a reduction */
    MANY_WINDOWS = 1 << 16,
    ROWS_MAX = 4,   /* of a thread */
    WAVES = 2,      /* of threads that there have to be for one to get more rows */
    RESIDENT = 512, /* threads of a multiprocessor, as the registers have it */
    THREADS_FEW = 64,
};

/* ---- Tables ---- */

static void add_table(struct resample_tables_args *a, const struct wd_resample_shape *s,
                      const struct wd_resample_tables *t, int d, char *memory)
{
    struct resample_table *table = &a->table[a->tables++];
    table->entries = (struct resample_entry *)(memory + t->entries[d]);
    table->weights = memory + t->weights[d];
    table->image = s->image[d];
    table->windows = s->windows[d];
    table->kind = t->kind;
    table->axis = s->axis[d];
    table->length = (int32_t)t->length[d];
    table->taps = (int32_t)t->taps[d];
}

cudnnStatus_t wd_resample_make_tables(struct wd_queue *queue, const struct wd_resample_shape *s,
                                      const struct wd_resample_tables *tables, int count,
                                      void *memory)
{
    struct resample_tables_args a;
    int64_t entries = 0;
    memset(&a, 0, sizeof a);
    a.attr = *s->attr;
    a.wide = s->type == 3;
    for (int t = 0; t < count; ++t) {
        for (int d = 0; d < RESAMPLE_AXES; ++d) {
            add_table(&a, s, &tables[t], d, memory);
            entries += tables[t].length[d];
        }
    }
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_resample_tables],
                          wd_ceil_div(entries, TABLE_THREADS), TABLE_THREADS, 0, &a);
}

cudnnStatus_t wd_resample_launch(struct wd_queue *queue, struct wd_kernel_row *row, int64_t items,
                                 const void *args)
{
    uint32_t threads = RESAMPLE_THREADS;
    if (items < (int64_t)RESAMPLE_THREADS * queue->device->multiprocessors) threads = THREADS_FEW;
    return wd_emit_kernel(queue, row, wd_ceil_div(items, threads), threads, 0, args);
}

static bool is_long(const struct wd_resample_shape *s)
{
    int64_t terms = 1;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        if (s->axis[d] >= 0) terms *= resample_extent(s->attr, s->axis[d], s->image[d]);
    }
    return terms >= LONG_WINDOW && s->outer * wd_resample_windows(s) <= MANY_WINDOWS;
}

/* ---- Weighted sums ---- */

static struct wd_resample_tables sum_tables(const struct wd_resample_shape *s)
{
    return wd_resample_tables_of(s, s->backward ? RESAMPLE_SHARES : RESAMPLE_PIXELS, 0);
}

int64_t wd_resample_sum_bytes(const struct wd_resample_shape *s)
{
    return sum_tables(s).end;
}

bool wd_resample_can_sum(const struct wd_resample_shape *s, struct wd_reason *reason)
{
    WD_NEED(s->backward || s->attr->padding != CUDNN_NEG_INF_PAD ||
                s->attr->mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING || !wd_resample_pads(s),
            reason, NOT_SUPPORTED, "sums of minus infinity");
    WD_NEED(s->backward || !is_long(s), reason, NOT_SUPPORTED_SHAPE,
            "few windows of %lld pixels: the definition shares them out", (long long)s->places);
    WD_NEED(wd_resample_sum_bytes(s) <= TABLES_MAX, reason, NOT_SUPPORTED_SHAPE,
            "tables of %lld bytes, at most %d", (long long)wd_resample_sum_bytes(s), TABLES_MAX);
    return true;
}

/* The most rows that leave enough threads. */
static int rows_of_thread(const struct wd_queue *queue, int64_t threads_a_row, int64_t rows)
{
    const int64_t enough = (int64_t)queue->device->multiprocessors * RESIDENT * WAVES;
    int at_once = ROWS_MAX;
    while (at_once > 1 && threads_a_row * wd_ceil_div(rows, at_once) < enough) at_once /= 2;
    return at_once;
}

cudnnStatus_t wd_resample_sum(struct wd_queue *queue, const struct wd_resample_shape *s,
                              const struct wd_resample_memory *m)
{
    const struct wd_resample_tables tables = sum_tables(s);
    const int64_t *out = s->backward ? s->image : s->windows;
    const int64_t *from = s->backward ? s->windows : s->image;
    const int64_t run = wd_resample_run(s);
    const bool runs = run > 1 && s->inner % run == 0 && (uintptr_t)m->from % 16 == 0 &&
                      (uintptr_t)m->out % 16 == 0;
    const int64_t channels = s->inner / (runs ? run : 1);
    /* planes of single precision with few taps along a line have a kernel of their own */
    const bool few = s->type == 0 && s->inner == 1 && tables.taps[2] <= 2;
    const int64_t columns = out[2];
    struct resample_sum_args a;
    int64_t groups;
    int kernel;
    WD_TRY(wd_resample_make_tables(queue, s, &tables, 1, m->tables));
    memset(&a, 0, sizeof a);
    a.from = m->from;
    a.out = m->out;
    a.alpha = m->alpha;
    a.beta = m->beta;
    a.scales = m->alpha != 0.0;
    a.blends = m->beta != 0.0;
    a.streaming = m->streaming;
    a.inner = (uint32_t)s->inner;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        a.axis[d].entries =
            (const struct resample_entry *)((const char *)m->tables + tables.entries[d]);
        a.axis[d].weights = (const char *)m->tables + tables.weights[d];
        a.axis[d].taps = (int32_t)tables.taps[d];
        a.axis[d].from = (int32_t)from[d];
        a.axis[d].out = (int32_t)out[d];
    }
    a.rows = rows_of_thread(queue, s->outer * out[0] * columns * channels, out[1]);
    groups = wd_ceil_div(out[1], a.rows);
    a.by_run = wd_fastdiv_of((uint32_t)channels);
    a.by_column = wd_fastdiv_of((uint32_t)columns);
    a.by_rows = wd_fastdiv_of((uint32_t)groups);
    a.by_depth = wd_fastdiv_of((uint32_t)out[0]);
    a.count = (uint32_t)(s->outer * out[0] * groups * columns * channels);
    if (s->type == 3) kernel = KERNEL_resample_sum_f64;
    else if (s->type > 0) kernel = KERNEL_resample_sum_f16_16 + (s->type - 1) * 2 + !runs;
    else kernel = few ? KERNEL_resample_sum_f32_1_2 : KERNEL_resample_sum_f32_16 + !runs;
    return wd_resample_launch(queue, &kernel_rows[kernel], a.count, &a);
}

/* ---- Maxima ---- */

bool wd_resample_can_max(const struct wd_resample_shape *s, struct wd_reason *reason)
{
    const int64_t bytes = wd_resample_tables_of(s, RESAMPLE_RANGES, 0).end +
                          wd_resample_tables_of(s, RESAMPLE_OVER, 0).end;
    WD_NEED(bytes <= TABLES_MAX, reason, NOT_SUPPORTED_SHAPE, "tables of %lld bytes, at most %d",
            (long long)bytes, TABLES_MAX);
    WD_NEED((s->backward && s->has_idx) || !is_long(s), reason, NOT_SUPPORTED_SHAPE,
            "few windows of %lld pixels: the definition shares them out", (long long)s->places);
    return true;
}

bool wd_resample_by_runs(const struct wd_resample_shape *s, const struct wd_resample_memory *m)
{
    const int64_t run = wd_resample_run(s);
    return run > 1 && s->inner % run == 0 && (uintptr_t)m->from % 16 == 0 &&
           (uintptr_t)m->out % 16 == 0 &&
           (uintptr_t)m->places % (uintptr_t)wd_least(16, run * s->place_size) == 0;
}

struct resample_max_args wd_resample_max_args_of(const struct wd_resample_shape *s,
                                                 const struct wd_resample_memory *m,
                                                 const struct wd_resample_tables *ranges,
                                                 const struct wd_resample_tables *over)
{
    const int64_t *out = over ? s->image : s->windows;
    const int64_t channels = s->inner / (wd_resample_by_runs(s, m) ? wd_resample_run(s) : 1);
    const char *tables = m->tables;
    struct resample_max_args a;
    memset(&a, 0, sizeof a);
    a.from = m->from;
    a.out = m->out;
    a.places = m->places;
    a.alpha = m->alpha;
    a.beta = m->beta;
    a.scales = m->alpha != 0.0;
    a.blends = m->beta != 0.0;
    a.streaming = m->streaming;
    a.place_size = s->place_size;
    a.propagate = s->attr->propagate_nan;
    a.repeats = resample_repeats(s->attr);
    a.zeros = s->attr->padding == CUDNN_ZERO_PAD;
    a.inner = (uint32_t)s->inner;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        a.axis[d].ranges = (const struct resample_entry *)(tables + ranges->entries[d]);
        if (over) a.axis[d].over = (const struct resample_entry *)(tables + over->entries[d]);
        a.axis[d].image = (int32_t)s->image[d];
        a.axis[d].windows = (int32_t)s->windows[d];
    }
    a.by_run = wd_fastdiv_of((uint32_t)channels);
    a.by_column = wd_fastdiv_of((uint32_t)out[2]);
    a.by_row = wd_fastdiv_of((uint32_t)out[1]);
    a.by_depth = wd_fastdiv_of((uint32_t)out[0]);
    a.count = (uint32_t)(s->outer * out[0] * out[1] * out[2] * channels);
    return a;
}

cudnnStatus_t wd_resample_max(struct wd_queue *queue, const struct wd_resample_shape *s,
                              const struct wd_resample_memory *m,
                              const struct wd_resample_tables *ranges)
{
    const struct resample_max_args a = wd_resample_max_args_of(s, m, ranges, NULL);
    const int kernel = s->type == 3
                           ? KERNEL_resample_max_f64
                           : KERNEL_resample_max_f32_16 + s->type * 2 + !wd_resample_by_runs(s, m);
    return wd_resample_launch(queue, &kernel_rows[kernel], a.count, &a);
}

static cudnnStatus_t emit_places(struct wd_queue *queue, const struct wd_resample_shape *s,
                                 const struct wd_resample_memory *m)
{
    const struct resample_places_args a = wd_resample_places_args_of(s, m);
    const int edge = a.axis[1].window == a.axis[2].window ? a.axis[1].window : 0;
    const int kernel = KERNEL_resample_places_f32_2 + s->type * 3 +
                       (edge == 2   ? 0
                        : edge == 3 ? 1
                                    : 2);
    return wd_resample_launch(queue, &kernel_rows[kernel], a.count, &a);
}

/* ---- Forward ---- */

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_resample_shape s;
    if (!wd_resample_shape_of(problem, &s, reason)) return false;
    return s.max ? wd_resample_can_max(&s, reason) : wd_resample_can_sum(&s, reason);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reason reason;
    struct wd_resample_shape s;
    wd_resample_shape_of(problem, &s, &reason);
    return s.max ? wd_resample_tables_of(&s, RESAMPLE_RANGES, 0).end : wd_resample_sum_bytes(&s);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_reason reason;
    struct wd_resample_shape s;
    struct wd_resample_tables ranges;
    struct wd_resample_memory m;
    wd_resample_shape_of(&call->problem, &s, &reason);
    m = wd_resample_memory_of(call, &s, queue->device);
    if (!s.max) return wd_resample_sum(queue, &s, &m);
    if (s.has_idx && wd_resample_whole(&s)) {
        struct wd_resample_launch_size size;
        struct resample_lines_args a;
        struct resample_places_args tiles;
        struct resample_threes_args threes;
        if (wd_resample_by_runs(&s, &m)) return emit_places(queue, &s, &m);
        if (wd_resample_tiles(&s, &m, &tiles)) {
            return wd_resample_launch(queue, &kernel_rows[KERNEL_resample_planes_f32 + s.type],
                                      tiles.count, &tiles);
        }
        if (wd_resample_threes(&s, &m, queue->device->multiprocessors, &threes)) {
            return wd_resample_launch(queue, &kernel_rows[KERNEL_resample_threes_f32 + s.type],
                                      threes.p.count, &threes);
        }
        if (wd_resample_lines_args_of(&s, &m, queue->device->multiprocessors, &a, &size)) {
            return wd_emit_kernel(queue, &kernel_rows[KERNEL_resample_lines_f32 + s.type],
                                  size.blocks, size.threads, size.shared, &a);
        }
    }
    ranges = wd_resample_tables_of(&s, RESAMPLE_RANGES, 0);
    WD_TRY(wd_resample_make_tables(queue, &s, &ranges, 1, m.tables));
    return wd_resample_max(queue, &s, &m, &ranges);
}

const struct wd_engine wd_engine_resample_forward_vector = {
    .name = "resample_forward_vector",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
