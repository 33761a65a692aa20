/* SPDX-License-Identifier: Apache-2.0
 *
 * Wgrad on the CPU as matrix products: dw is dy times the transposed columns of x, summed over panels
 * of output points. A task owns a block of dw (filters by rows of the column matrix) and goes through
 * the panels in order; where blocks are fewer than threads, the panels are split and the partial sums
 * added in order afterwards. So a result depends on the shape and the number of threads alone. */
#include <string.h>

#include "cpu/module/rows.h"
#include "cpu/module/sizes.h"
#include "cpu/module/tasks.h"
#include "ops/conv/conv_cpu.h"

enum {
    PANEL_BYTES = 1 << 20,    /* of gathered columns: half of a core's second cache */
    WORKERS_BYTES = 32 << 20, /* of all workers' panels */
    SUMS_BYTES = 24 << 20,    /* of partial sums */
    COLUMNS_MIN = 48,
    COLUMNS_MAX = 1024,
    WIDTH_MIN = 64,
    ROWS_MIN = 32,
    CHUNK = 256, /* elements finished at once */
};

struct lowering {
    struct wd_conv_cpu conv;
    int dtype;     /* of a sum */
    int64_t size;  /* of a sum, bytes */
    int64_t taps;  /* of the filter */
    int64_t depth; /* rows of the column matrix: columns of dw */
    int64_t points;

    bool x_pixels; /* see struct wd_conv_lowering */
    bool x_direct;
    bool x_whole;
    bool y_pixels;
    bool y_direct;
    bool y_whole;
    bool w_direct;
    int64_t x_stride;
    int64_t y_stride;

    int64_t parts;  /* panels an image, or 1 */
    int64_t images; /* images a panel, or 1 */
    int64_t columns;
    int64_t panels;
    int64_t width; /* of a block of dw */
    int64_t rows;
    int64_t blocks_across; /* a group */
    int64_t blocks_down;
    int64_t splits;
    int64_t round; /* blocks whose sums are in the workspace at once */
    int64_t workers;
    int64_t y_rows; /* filters gathered at once */

    int64_t sums_bytes; /* of one block and split; 0 where products go to dw itself */
    int64_t x_bytes;
    int64_t y_bytes;
};

struct work {
    const struct lowering *l;
    char *sums;
    char *scratch;
    int64_t first_block;
    int64_t last_block;
    struct wd_tasks *tasks;
};

struct block {
    int64_t group;
    int64_t row;
    int64_t row_end;
    int64_t from;
    int64_t to;
};

static struct block block_of(const struct lowering *l, int64_t index)
{
    struct block b;
    b.from = index % l->blocks_across * l->width;
    b.to = wd_least(b.from + l->width, l->depth);
    index /= l->blocks_across;
    b.row = index % l->blocks_down * l->rows;
    b.row_end = wd_least(b.row + l->rows, l->conv.k);
    b.group = index / l->blocks_down;
    return b;
}

static struct wd_conv_panel panel_of(const struct lowering *l, int64_t index)
{
    int64_t width = wd_ceil_div(l->points, l->parts);
    struct wd_conv_panel p;
    p.image = index / l->parts * l->images;
    p.image_end = wd_least(p.image + l->images, l->conv.batch);
    p.first = wd_least(index % l->parts * width, l->points);
    p.last = wd_least(p.first + width, l->points);
    return p;
}

static bool x_has_panel(const struct lowering *l, int64_t images)
{
    return !l->x_direct || (images > 1 && !l->x_whole);
}

static bool y_has_panel(const struct lowering *l, int64_t images)
{
    return !l->y_direct || (images > 1 && !l->y_whole);
}

static void lay(struct lowering *l)
{
    struct wd_conv_cpu *conv = &l->conv;
    struct wd_conv_image *x = &conv->x;
    struct wd_conv_image *y = &conv->y;
    int last = WD_CONV_SPATIAL - 1;
    l->x_pixels = x->lanes == 1 && x->channel == 1 && (conv->c > 1 || x->space[last] != 1);
    l->x_direct = wd_conv_is_pointwise(conv) && x->lanes == 1 && x->dtype == l->dtype &&
                  wd_conv_flat(x, conv->batch, &l->x_stride, &l->x_whole) &&
                  wd_blas_takes(conv->c, l->points, x->channel, l->x_stride);
    l->x_whole &= wd_blas_takes(conv->c, conv->batch * l->points, x->channel, l->x_stride);
    l->y_pixels = y->lanes == 1 && y->channel == 1 && (conv->k > 1 || y->space[last] != 1);
    l->y_direct = y->lanes == 1 && y->dtype == l->dtype &&
                  wd_conv_flat(y, conv->batch, &l->y_stride, &l->y_whole) &&
                  wd_blas_takes(conv->k, l->points, y->channel, l->y_stride);
    l->y_whole &= wd_blas_takes(conv->k, conv->batch * l->points, y->channel, l->y_stride);
    l->w_direct = wd_conv_filter_lies(conv, l->dtype, l->x_pixels);
    if (!l->x_direct || !l->y_direct || !l->x_whole || !l->y_whole || conv->batch == 1) return;
    l->points *= conv->batch;
    wd_conv_fold(conv, l->x_stride, l->y_stride);
}

/* Nanoseconds of one panel of a block, as in conv_lower_cpu.c; the block itself is read and written
 * once a panel. */
static double panel_time(const struct lowering *l, int64_t images, int64_t rows, int64_t width,
                         int64_t columns)
{
    double m = (double)rows;
    double n = (double)width;
    double k = (double)columns;
    double x_pack = x_has_panel(l, images) ? 0.5 : 0.3;
    double y_pack = y_has_panel(l, images) ? 0.5 : 0.3;
    return (l->conv.wide ? 2.0 : 1.0) * (m * n * k / 75.0 + x_pack * n * k + y_pack * m * k) +
           0.3 * m * n + 500.0;
}

/* One candidate of panels: takes it with its best blocks and splits if that is faster. */
static void try_panels(struct lowering *l, int threads, int64_t bytes, int64_t images,
                       int64_t parts, double *best)
{
    int64_t columns = images * wd_ceil_div(l->points, parts);
    int64_t panels = wd_ceil_div(l->conv.batch, images) * parts;
    int64_t widest = x_has_panel(l, images) ? bytes / (columns * l->size) : l->depth;
    int64_t across = widest < 1 ? l->depth : wd_ceil_div(l->depth, widest);
    for (; across <= l->depth; across = across < 4 ? across + 1 : across * 3 / 2) {
        int64_t width = wd_ceil_div(l->depth, across);
        for (int64_t down = 1; down <= l->conv.k; down *= 2) {
            int64_t rows = wd_ceil_div(l->conv.k, down);
            int64_t blocks =
                l->conv.groups * wd_ceil_div(l->depth, width) * wd_ceil_div(l->conv.k, rows);
            for (int64_t splits = 1; splits <= threads && splits <= panels; ++splits) {
                double extra = 0.0;
                double time;
                if (splits > 1) {
                    if (blocks >= threads && blocks % threads == 0) break;
                    if (splits * rows * width * l->size > SUMS_BYTES) break;
                    extra =
                        0.5 * (double)(splits * blocks * rows * width) / (double)threads + 3000.0;
                } else if (!l->w_direct && rows * width * l->size > SUMS_BYTES / threads) {
                    break; /* each thread has a block of sums */
                }
                time =
                    (double)(wd_ceil_div(blocks * splits, threads) * wd_ceil_div(panels, splits)) *
                        panel_time(l, images, rows, width, columns) +
                    extra;
                if (*best >= 0.0 && time >= *best * 0.99) continue;
                *best = time;
                l->images = images;
                l->parts = parts;
                l->width = width;
                l->rows = rows;
                l->splits = splits;
            }
            if (rows <= ROWS_MIN) break;
        }
        if (width <= WIDTH_MIN) break;
    }
}

static void cut(struct lowering *l, int threads)
{
    int64_t bytes = wd_least(WORKERS_BYTES / threads / 2, PANEL_BYTES);
    int64_t blocks;
    double best = -1.0;
    for (int64_t images = 1; images <= l->conv.batch; images *= 2) {
        int64_t columns = images * l->points;
        bool gathers = x_has_panel(l, images) || y_has_panel(l, images);
        if (gathers && (columns > COLUMNS_MAX || columns * 8 * l->size > bytes)) break;
        if (!gathers && images > 1) break;
        try_panels(l, threads, bytes, images, 1, &best);
    }
    for (int64_t parts = 2;; parts = parts < 4 ? parts + 1 : parts * 5 / 4) {
        int64_t columns = wd_ceil_div(l->points, parts);
        bool gathers = x_has_panel(l, 1) || y_has_panel(l, 1);
        if (columns < COLUMNS_MIN && best >= 0.0) break;
        if (gathers && (columns > COLUMNS_MAX || columns * 8 * l->size > bytes)) continue;
        try_panels(l, threads, bytes, 1, parts, &best);
    }
    l->columns = l->images * wd_ceil_div(l->points, l->parts);
    l->panels = wd_ceil_div(l->conv.batch, l->images) * l->parts;
    l->blocks_across = wd_ceil_div(l->depth, l->width);
    l->blocks_down = wd_ceil_div(l->conv.k, l->rows);
    blocks = l->conv.groups * l->blocks_across * l->blocks_down;
    l->round = blocks;
    if (!l->w_direct || l->splits > 1) {
        int64_t fit;
        l->sums_bytes = wd_align_line(l->rows * l->width * l->size);
        fit = SUMS_BYTES / (l->sums_bytes * l->splits);
        l->round = wd_least(blocks, fit < 1 ? 1 : fit);
    }
    l->workers = wd_tasks_workers(l->round * l->splits, threads);
    if (x_has_panel(l, l->images)) {
        l->x_bytes = wd_align_line((l->width * l->columns + WD_CONV_SLACK) * l->size);
    }
    l->y_rows = l->rows;
    if (y_has_panel(l, l->images)) {
        int64_t fit = bytes / (l->columns * l->size);
        l->y_rows = wd_least(l->rows, fit < 1 ? 1 : fit);
        l->y_bytes = wd_align_line((l->y_rows * l->columns + WD_CONV_SLACK) * l->size);
    }
}

static void lower(const struct wd_problem *problem, struct lowering *l)
{
    memset(l, 0, sizeof *l);
    wd_conv_cpu_of(problem, &l->conv);
    l->taps = wd_conv_points(l->conv.w.extent);
    l->depth = l->conv.c * l->taps;
    l->points = wd_conv_points(l->conv.y.extent);
    l->dtype = l->conv.wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    l->size = l->conv.wide ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    lay(l);
    cut(l, problem->device->multiprocessors);
}

static const void *element(const struct lowering *l, const void *data, int64_t at)
{
    return (const char *)data + at * l->size;
}

static void gather(const struct lowering *l, const struct wd_conv_gather *g, int64_t row,
                   int64_t row_end, void *to)
{
    if (l->conv.wide) wd_conv_gather_f64(g, row, row_end, to);
    else wd_conv_gather_f32(g, row, row_end, to);
}

/* An axis that reads each output point as it is. */
static struct wd_conv_axis axis_of_output(const struct wd_conv_cpu *conv, int d)
{
    return (struct wd_conv_axis){.points = conv->y.extent[d], .step = 1, .taps = 1};
}

/* One split of a block: its panels in order, into `c`. */
static void run_split(const struct work *w, const struct block *b, int64_t split,
                      struct wd_matrix c, bool into_dw, char *x_panel, char *y_panel)
{
    const struct lowering *l = w->l;
    const struct wd_conv_cpu *conv = &l->conv;
    struct wd_conv_gather x = {.from = &conv->x, .pixels = l->x_pixels};
    struct wd_conv_gather y = {.from = &conv->y, .pixels = l->y_pixels};
    int64_t first = l->panels * split / l->splits;
    int64_t last = l->panels * (split + 1) / l->splits;
    x.channel = b->group * conv->c;
    x.channels = conv->c;
    y.channel = b->group * conv->k;
    y.channels = conv->k;
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        x.axis[d] = wd_conv_axis_forward(conv, d);
        y.axis[d] = axis_of_output(conv, d);
    }
    for (int64_t i = first; i < last; ++i) {
        struct wd_conv_panel panel = panel_of(l, i);
        bool several = panel.image_end - panel.image > 1;
        int64_t columns = wd_conv_columns(&panel);
        struct wd_matrix columns_of_x;
        double alpha = into_dw ? conv->alpha : 1.0;
        double beta = i > first ? 1.0 : into_dw ? conv->beta : 0.0;
        x.panel = y.panel = panel;
        if (l->x_direct && (!several || l->x_whole)) {
            columns_of_x =
                wd_conv_image_matrix(&conv->x, l->size, l->x_stride, &panel, x.channel + b->from);
        } else {
            gather(l, &x, b->from, b->to, x_panel);
            columns_of_x = wd_conv_buffer_matrix(x_panel, l->x_pixels, b->to - b->from, columns);
        }
        columns_of_x = (struct wd_matrix){columns_of_x.data, columns_of_x.column, columns_of_x.row};
        for (int64_t m = b->row; m < b->row_end; m += l->y_rows) {
            int64_t end = wd_least(m + l->y_rows, b->row_end);
            struct wd_matrix out = {element(l, c.data, (m - b->row) * c.row), c.row, c.column};
            struct wd_matrix filters;
            if (l->y_direct && (!several || l->y_whole)) {
                filters =
                    wd_conv_image_matrix(&conv->y, l->size, l->y_stride, &panel, y.channel + m);
            } else {
                gather(l, &y, m, end, y_panel);
                filters = wd_conv_buffer_matrix(y_panel, l->y_pixels, end - m, columns);
            }
            if (conv->wide) {
                wd_gemm_f64(end - m, b->to - b->from, columns, alpha, filters, columns_of_x, beta,
                            out);
            } else {
                wd_gemm_f32(end - m, b->to - b->from, columns, alpha, filters, columns_of_x, beta,
                            out);
            }
        }
    }
}

static char *sums_of(const struct work *w, int64_t block, int64_t split)
{
    return w->sums + ((block - w->first_block) * w->l->splits + split) * w->l->sums_bytes;
}

/* Items: workers. */
static void run_workers(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct lowering *l = w->l;
    int entered = wd_blas_enter();
    for (int64_t worker = begin; worker < end; ++worker) {
        char *x_panel = w->scratch + worker * (l->x_bytes + l->y_bytes);
        int64_t task;
        while (wd_tasks_take(w->tasks, &task)) {
            int64_t index = w->first_block + task / l->splits;
            struct block b = block_of(l, index);
            const struct wd_conv_image *dw = &l->conv.w;
            struct wd_matrix c = {sums_of(w, index, task % l->splits), b.to - b.from, 1};
            if (l->sums_bytes == 0) {
                c.row = dw->outer;
                c.column = l->taps == 1 ? dw->channel : 1;
                c.data =
                    element(l, dw->data, (b.group * l->conv.k + b.row) * c.row + b.from * c.column);
            }
            run_split(w, &b, task % l->splits, c, l->sums_bytes == 0, x_panel,
                      x_panel + l->x_bytes);
        }
    }
    wd_blas_leave(entered);
}

/* n sums of one row, of every split, to dw from `at` on. */
static void finish_run(const struct work *w, int64_t block, int64_t place, int64_t n, int64_t at,
                       int64_t stride)
{
    const struct lowering *l = w->l;
    const struct wd_conv_image *dw = &l->conv.w;
    double sum[CHUNK];
    double other[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t count = wd_least(CHUNK, n - i);
        wd_row_load_f64(sum, sums_of(w, block, 0), l->dtype, place + i, 1, count);
        for (int64_t s = 1; s < l->splits; ++s) {
            wd_row_load_f64(other, sums_of(w, block, s), l->dtype, place + i, 1, count);
            for (int64_t j = 0; j < count; ++j) sum[j] += other[j];
        }
        for (int64_t j = 0; j < count; ++j) {
            sum[j] = l->conv.alpha != 0.0 ? l->conv.alpha * sum[j] : 0.0;
        }
        if (l->conv.beta != 0.0) {
            wd_row_load_f64(other, dw->data, dw->dtype, at + i * stride, stride, count);
            for (int64_t j = 0; j < count; ++j) sum[j] += l->conv.beta * other[j];
        }
        wd_row_store_f64(dw->data, dw->dtype, at + i * stride, stride, sum, count);
    }
}

/* Where tap `tap` lies, relative to its channel. */
static int64_t tap_offset(const struct wd_conv_image *w, int64_t tap)
{
    int64_t offset = 0;
    for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
        offset += tap % w->extent[d] * w->space[d];
        tap /= w->extent[d];
    }
    return offset;
}

/* The stride between the columns of a row of dw where it is one; else 0. */
static int64_t row_stride(const struct lowering *l)
{
    const struct wd_conv_image *dw = &l->conv.w;
    int64_t tap;
    bool whole;
    if (dw->lanes != 1) return 0;
    if (l->taps == 1) return dw->channel;
    if (!wd_conv_flat(dw, 1, &tap, &whole)) return 0;
    if (l->x_pixels) return tap == l->conv.c * dw->channel ? dw->channel : 0;
    return dw->channel == l->taps * tap ? tap : 0;
}

/* Items: rows of the round's blocks. */
static void finish_rows(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct lowering *l = w->l;
    const struct wd_conv_image *dw = &l->conv.w;
    int64_t stride = row_stride(l);
    for (int64_t item = begin; item < end; ++item) {
        int64_t index = w->first_block + item / l->rows;
        struct block b = block_of(l, index);
        int64_t m = item % l->rows;
        int64_t place = m * (b.to - b.from);
        int64_t base = (b.group * l->conv.k + b.row + m) * dw->outer;
        if (b.row + m >= b.row_end) continue;
        if (stride > 0) {
            finish_run(w, index, place, b.to - b.from, base + b.from * stride, stride);
            continue;
        }
        for (int64_t r = b.from; r < b.to; ++r) {
            int64_t channel = l->x_pixels ? r % l->conv.c : r / l->taps;
            int64_t tap = l->x_pixels ? r / l->conv.c : r % l->taps;
            finish_run(w, index, place + r - b.from, 1,
                       base + wd_conv_channel(dw, channel) + tap_offset(dw, tap), 1);
        }
    }
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct lowering l;
    lower(problem, &l);
    return l.round * l.splits * l.sums_bytes + l.workers * (l.x_bytes + l.y_bytes);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct lowering l;
    struct wd_tasks tasks;
    struct work work = {.l = &l, .tasks = &tasks};
    char none[1]; /* where no workspace is needed */
    int64_t blocks;
    lower(&call->problem, &l);
    wd_conv_cpu_bind(call, &l.conv);
    blocks = l.conv.groups * l.blocks_across * l.blocks_down;
    work.sums = call->workspace ? call->workspace : none;
    work.scratch = work.sums + l.round * l.splits * l.sums_bytes;
    for (int64_t first = 0; first < blocks; first += l.round) {
        work.first_block = first;
        work.last_block = wd_least(first + l.round, blocks);
        atomic_init(&tasks.next, 0);
        tasks.count = (work.last_block - first) * l.splits;
        WD_TRY(queue->ops->range(queue, run_workers, &work,
                                 wd_tasks_workers(tasks.count, (int)l.workers), 1));
        if (l.sums_bytes == 0) continue;
        WD_TRY(queue->ops->range(queue, finish_rows, &work, (work.last_block - first) * l.rows,
                                 10000 / l.width + 1));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_conv_wgrad_gemm = {
    .name = "conv_wgrad_gemm",
    .op = WD_OP_CONV_WGRAD,
    .device = WD_CPU,
    .match = wd_conv_cpu_match,
    .workspace = workspace,
    .emit = emit,
};
