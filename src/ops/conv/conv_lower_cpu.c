/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans fprop, fused fprop and dgrad as matrix products. The cut is chosen by a model of a task's
 * time, whose coefficients were fitted to OpenBLAS on one core with AVX-512; only their ratios
 * matter, and these hold elsewhere well enough. */
#include "ops/conv/conv_lower_cpu.h"

#include <string.h>

#include "cpu/module/blas.h"
#include "cpu/module/tasks.h"

enum {
    PANEL_BYTES = 1 << 20,    /* of gathered columns: half of a core's second cache */
    WORKERS_BYTES = 40 << 20, /* of all workers' panels and sums */
    COLUMNS_MIN = 48,         /* fewer leave a product's edges too large a share */
    COLUMNS_MAX = 1024,       /* of a gathered panel */
    COLUMNS_WIDEST = 8192,    /* of any: BLAS packs 320 rows of them into a buffer of its own */
    ROWS_MIN = 32,
    ALIGNMENT = 64,
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t align_up(int64_t bytes)
{
    return ceil_div(bytes, ALIGNMENT) * ALIGNMENT;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least(int64_t value, int64_t floor)
{
    return value < floor ? floor : value;
}

void wd_conv_lower_axes(const struct wd_conv_lowering *l, int64_t phase, struct wd_conv_axis *axis)
{
    for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
        if (l->backward) axis[d] = wd_conv_axis_backward(&l->conv, d, phase % l->phase[d]);
        else axis[d] = wd_conv_axis_forward(&l->conv, d);
        phase /= l->phase[d];
    }
}

bool wd_conv_lower_panel(const struct wd_conv_lowering *l, const struct wd_conv_axis *axis,
                         int64_t index, struct wd_conv_panel *panel)
{
    int64_t points = axis[0].points * axis[1].points * axis[2].points;
    int64_t width = ceil_div(l->points, l->parts);
    panel->image = index / l->parts * l->images;
    panel->image_end = least(panel->image + l->images, l->conv.batch);
    panel->first = index % l->parts * width;
    panel->last = least(panel->first + width, points);
    return panel->first < panel->last;
}

int64_t wd_conv_lower_out_stride(const struct wd_conv_lowering *l)
{
    return l->backward ? l->conv.w.channel : l->conv.w.outer;
}

int64_t wd_conv_lower_in_stride(const struct wd_conv_lowering *l)
{
    return l->backward ? l->conv.w.outer : l->conv.w.channel;
}

/* Whether the filter is a matrix of `out` rows whose columns are the panel's rows. */
static bool filter_lies(const struct wd_conv_lowering *l)
{
    const struct wd_conv_image *w = &l->conv.w;
    int64_t tap;
    bool whole;
    if (w->dtype != l->dtype || w->lanes != 1) return false;
    if (l->taps == 1) {
        return wd_blas_takes(l->out, l->in, wd_conv_lower_out_stride(l),
                             wd_conv_lower_in_stride(l));
    }
    if (l->backward || !wd_conv_flat(w, 1, &tap, &whole)) return false;
    if (l->from_pixels) {
        if (w->channel != 1 || tap != l->in) return false;
    } else if (tap != 1 || w->channel != l->taps) {
        return false;
    }
    return wd_blas_takes(l->out, l->in * l->taps, w->outer, 1);
}

/* A 1x1 filter that looks at each pixel once. */
static bool sees_each_pixel_once(const struct wd_conv_cpu *conv)
{
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        if (conv->w.extent[d] != 1 || conv->stride[d] != 1 || conv->pad[d] != 0) return false;
        if (conv->x.extent[d] != conv->y.extent[d]) return false;
    }
    return true;
}

/* Makes one image of all, where the pixels of all lie at one stride on both sides. */
static void fold_images(struct wd_conv_lowering *l)
{
    struct wd_conv_cpu *conv = &l->conv;
    if (!l->from_whole || !l->to_whole || conv->batch == 1) return;
    l->points *= conv->batch;
    conv->batch = 1;
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        bool last = d == WD_CONV_SPATIAL - 1;
        conv->x.extent[d] = conv->y.extent[d] = last ? l->points : 1;
    }
    conv->x.space[WD_CONV_SPATIAL - 1] = l->backward ? l->to_stride : l->from_stride;
    conv->y.space[WD_CONV_SPATIAL - 1] = l->backward ? l->from_stride : l->to_stride;
}

static void lay(struct wd_conv_lowering *l)
{
    const struct wd_conv_image *from = l->from;
    const struct wd_conv_image *to = l->to;
    int64_t batch = l->conv.batch;
    int last = WD_CONV_SPATIAL - 1;
    l->from_pixels =
        from->lanes == 1 && from->channel == 1 && (l->in > 1 || from->space[last] != 1);
    l->from_direct = sees_each_pixel_once(&l->conv) && from->lanes == 1 &&
                     from->dtype == l->dtype &&
                     wd_conv_flat(from, batch, &l->from_stride, &l->from_whole) &&
                     wd_blas_takes(l->in, l->points, from->channel, l->from_stride);
    l->from_whole &= wd_blas_takes(l->in, batch * l->points, from->channel, l->from_stride);
    l->to_pixels = to->lanes == 1 && to->channel == 1 && (l->out > 1 || to->space[last] != 1);
    l->to_direct = l->phases == 1 && !l->conv.fused && to->lanes == 1 && to->dtype == l->dtype &&
                   wd_conv_flat(to, batch, &l->to_stride, &l->to_whole) &&
                   wd_blas_takes(l->out, l->points, to->channel, l->to_stride);
    l->to_whole &= wd_blas_takes(l->out, batch * l->points, to->channel, l->to_stride);
    l->filter_direct = filter_lies(l);
    if (l->from_direct && l->to_direct) fold_images(l);
}

static bool has_panel(const struct wd_conv_lowering *l, int64_t images)
{
    return !l->from_direct || (images > 1 && !l->from_whole);
}

static bool has_sums(const struct wd_conv_lowering *l, int64_t images)
{
    return !l->to_direct || (images > 1 && !l->to_whole);
}

/* Nanoseconds of a task. A product packs both of its operands; a gathered panel was written before,
 * and sums are read again to be finished. */
static double task_time(const struct wd_conv_lowering *l, int64_t images, int64_t rows,
                        int64_t columns)
{
    double depth = (double)(l->in * l->taps) / (double)l->phases;
    double m = (double)rows;
    double n = (double)columns;
    double pack = has_panel(l, images) ? 0.5 : 0.3;
    double finish = has_sums(l, images) ? 0.4 : 0.1;
    double time = depth * (m * n / 75.0 + 0.3 * m + pack * n) + finish * m * n;
    return (l->conv.wide ? 2.0 : 1.0) * time + 1000.0;
}

/* One candidate of panels: takes it with its best number of units if that is faster. */
static void try_panels(struct wd_conv_lowering *l, int threads, int64_t images, int64_t parts,
                       double *best)
{
    int64_t columns = images * ceil_div(l->points, parts);
    int64_t panels = ceil_div(l->conv.batch, images) * parts;
    int64_t row_bytes = l->in * l->taps * l->size;
    int64_t cuts = l->filter_direct ? 1 : ceil_div(l->out * row_bytes, WD_CONV_FILTER_BYTES);
    for (; cuts <= l->out; cuts = cuts < 4 ? cuts + 1 : cuts * 3 / 2) {
        int64_t rows = ceil_div(l->out, cuts);
        int64_t tasks = l->conv.groups * ceil_div(l->out, rows) * panels * l->phases;
        double time = (double)ceil_div(tasks, threads) * task_time(l, images, rows, columns);
        if (*best < 0.0 || time < *best * 0.99) {
            *best = time;
            l->images = images;
            l->parts = parts;
            l->rows = rows;
        }
        if (rows <= ROWS_MIN) break;
    }
}

static void cut(struct wd_conv_lowering *l, int threads)
{
    int64_t bytes = least(WORKERS_BYTES / threads / 2, PANEL_BYTES);
    double best = -1.0;
    for (int64_t images = 1; images <= l->conv.batch; images *= 2) {
        int64_t columns = images * l->points;
        if (columns > (has_panel(l, images) ? COLUMNS_MAX : COLUMNS_WIDEST)) break;
        if (has_panel(l, images) || has_sums(l, images)) {
            if (columns * 8 * l->size > bytes) break;
        } else if (images > 1) {
            break;
        }
        try_panels(l, threads, images, 1, &best);
    }
    for (int64_t parts = 2;; parts = parts < 4 ? parts + 1 : parts * 5 / 4) {
        int64_t columns = ceil_div(l->points, parts);
        if (columns < COLUMNS_MIN && best >= 0.0) break;
        if (columns > (has_panel(l, 1) ? COLUMNS_MAX : COLUMNS_WIDEST)) continue;
        if ((has_panel(l, 1) || has_sums(l, 1)) && columns * 8 * l->size > bytes) continue;
        try_panels(l, threads, 1, parts, &best);
    }
    l->columns = l->images * ceil_div(l->points, l->parts);
    l->panels = ceil_div(l->conv.batch, l->images) * l->parts;
    l->cuts = ceil_div(l->out, l->rows);
    l->depth = l->in * l->taps;
    if (has_panel(l, l->images)) {
        l->depth = least(l->depth, at_least(bytes / (l->columns * l->size), 1));
        l->panel_bytes = align_up((l->depth * l->columns + WD_CONV_SLACK) * l->size);
    }
    l->sums_rows = l->rows;
    if (has_sums(l, l->images)) {
        l->sums_rows = least(l->rows, at_least(bytes / (l->columns * l->size), 1));
        l->sums_bytes = align_up(l->sums_rows * l->columns * l->size);
    }
    l->round = l->conv.groups * l->cuts;
    if (!l->filter_direct) {
        int64_t unit_bytes = l->rows * l->in * l->taps * l->size;
        l->round = least(l->round, at_least(WD_CONV_FILTER_BYTES / unit_bytes, 1));
        l->filter_bytes = align_up(l->round * unit_bytes);
    }
    l->workers = wd_tasks_workers(l->round * l->phases * l->panels, threads);
}

static void lower(const struct wd_problem *problem, bool fused, struct wd_conv_lowering *l)
{
    memset(l, 0, sizeof *l);
    wd_conv_cpu_of(problem, &l->conv);
    l->conv.fused |= fused;
    l->backward = problem->node->op == WD_OP_CONV_DGRAD;
    l->from = l->backward ? &l->conv.y : &l->conv.x;
    l->to = l->backward ? &l->conv.x : &l->conv.y;
    l->in = l->backward ? l->conv.k : l->conv.c;
    l->out = l->backward ? l->conv.c : l->conv.k;
    l->taps = wd_conv_points(l->conv.w.extent);
    l->dtype = l->conv.wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    l->size = l->conv.wide ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    l->phases = 1;
    l->points = 1;
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        int64_t stride = l->backward ? l->conv.stride[d] : 1;
        l->phase[d] = least(stride, l->to->extent[d]);
        l->phases *= l->phase[d];
        l->points *= ceil_div(l->to->extent[d], stride);
    }
    lay(l);
    cut(l, problem->device->multiprocessors);
}

void wd_conv_lower(const struct wd_problem *problem, struct wd_conv_lowering *l)
{
    lower(problem, false, l);
}

void wd_conv_lower_fused(const struct wd_problem *problem, struct wd_conv_lowering *l)
{
    lower(problem, true, l);
}
