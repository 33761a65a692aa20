/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans fprop, fused fprop and dgrad as matrix products. The cut is chosen by a model of a task's
 * time, whose coefficients were fitted to OpenBLAS on one core with AVX-512; only their ratios
 * matter, and these hold elsewhere well enough. */
#include "ops/conv/conv_lower_cpu.h"

#include <string.h>

#include "cpu/module/sizes.h"
#include "cpu/module/tasks.h"

enum {
    PANEL_BYTES = 1 << 20,    /* of gathered columns: half of a core's second cache */
    WORKERS_BYTES = 40 << 20, /* of all workers' panels and sums */
    COLUMNS_MIN = 48,         /* fewer leave a product's edges too large a share */
    COLUMNS_MAX = 1024,       /* of a panel that is gathered or whose sums are finished */
    COLUMNS_WIDEST = 8192,    /* of any: BLAS packs 320 rows of them into a buffer of its own */
    ROWS_MIN = 32,
};

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
    int64_t width = wd_ceil_div(l->points, l->parts);
    panel->image = index / l->parts * l->images;
    panel->image_end = wd_least(panel->image + l->images, l->conv.batch);
    panel->first = index % l->parts * width;
    panel->last = wd_least(panel->first + width, points);
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

/* Backward the rows are the input channels, which is a matrix for a single tap only. */
static bool filter_lies(const struct wd_conv_lowering *l)
{
    const struct wd_conv_image *w = &l->conv.w;
    if (!l->backward) return wd_conv_filter_lies(&l->conv, l->dtype, l->from_pixels);
    return l->taps == 1 && w->dtype == l->dtype && w->lanes == 1 &&
           wd_blas_takes(l->out, l->in, w->channel, w->outer);
}

/* Whether a phase's panel is the source itself: a point sees one pixel, and a different one each.
 * Backward that is so with strides too, for the one phase that sees any. */
static bool sees_itself(const struct wd_conv_lowering *l)
{
    if (!l->backward) return wd_conv_is_pointwise(&l->conv);
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        if (l->conv.w.extent[d] != 1 || l->conv.pad[d] != 0) return false;
        if (wd_ceil_div(l->to->extent[d], l->conv.stride[d]) != l->from->extent[d]) return false;
    }
    return true;
}

static void lay(struct wd_conv_lowering *l)
{
    const struct wd_conv_image *from = l->from;
    const struct wd_conv_image *to = l->to;
    int64_t batch = l->conv.batch;
    int last = WD_CONV_SPATIAL - 1;
    l->from_pixels =
        from->lanes == 1 && from->channel == 1 && (l->in > 1 || from->space[last] != 1);
    l->from_direct = sees_itself(l) && from->lanes == 1 && from->dtype == l->dtype &&
                     wd_conv_flat(from, batch, &l->from_stride, &l->from_whole) &&
                     wd_blas_takes(l->in, l->points, from->channel, l->from_stride);
    l->from_whole &= wd_blas_takes(l->in, batch * l->points, from->channel, l->from_stride);
    l->to_pixels = to->lanes == 1 && to->channel == 1 && (l->out > 1 || to->space[last] != 1);
    l->to_direct = l->phases == 1 && !l->conv.fused && to->lanes == 1 && to->dtype == l->dtype &&
                   wd_conv_flat(to, batch, &l->to_stride, &l->to_whole) &&
                   wd_blas_takes(l->out, l->points, to->channel, l->to_stride);
    l->to_whole &= wd_blas_takes(l->out, batch * l->points, to->channel, l->to_stride);
    l->filter_direct = filter_lies(l);
    if (!l->from_direct || !l->to_direct || !l->from_whole || !l->to_whole || batch == 1) return;
    wd_conv_fold(&l->conv, l->backward ? l->to_stride : l->from_stride,
                 l->backward ? l->from_stride : l->to_stride);
    l->points *= batch;
}

static bool has_panel(const struct wd_conv_lowering *l, int64_t images)
{
    return !l->from_direct || (images > 1 && !l->from_whole);
}

static bool has_sums(const struct wd_conv_lowering *l, int64_t images)
{
    return !l->to_direct || (images > 1 && !l->to_whole);
}

static int64_t columns_most(const struct wd_conv_lowering *l, int64_t images)
{
    return has_panel(l, images) || has_sums(l, images) ? COLUMNS_MAX : COLUMNS_WIDEST;
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
    int64_t columns = images * wd_ceil_div(l->points, parts);
    int64_t panels = wd_ceil_div(l->conv.batch, images) * parts;
    int64_t row_bytes = l->in * l->taps * l->size;
    int64_t cuts = l->filter_direct ? 1 : wd_ceil_div(l->out * row_bytes, WD_CONV_FILTER_BYTES);
    for (; cuts <= l->out; cuts = cuts < 4 ? cuts + 1 : cuts * 3 / 2) {
        int64_t rows = wd_ceil_div(l->out, cuts);
        int64_t tasks = l->conv.groups * wd_ceil_div(l->out, rows) * panels * l->phases;
        double time = (double)wd_ceil_div(tasks, threads) * task_time(l, images, rows, columns);
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
    int64_t bytes = wd_least(WORKERS_BYTES / threads / 2, PANEL_BYTES);
    double best = -1.0;
    for (int64_t images = 1; images <= l->conv.batch; images *= 2) {
        int64_t columns = images * l->points;
        if (columns > columns_most(l, images)) break;
        if (has_panel(l, images) || has_sums(l, images)) {
            if (columns * 8 * l->size > bytes) break;
        } else if (images > 1) {
            break;
        }
        try_panels(l, threads, images, 1, &best);
    }
    for (int64_t parts = 2;; parts = parts < 4 ? parts + 1 : parts * 5 / 4) {
        int64_t columns = wd_ceil_div(l->points, parts);
        if (columns < COLUMNS_MIN && best >= 0.0) break;
        if (columns > columns_most(l, 1)) continue;
        if ((has_panel(l, 1) || has_sums(l, 1)) && columns * 8 * l->size > bytes) continue;
        try_panels(l, threads, 1, parts, &best);
    }
    l->columns = l->images * wd_ceil_div(l->points, l->parts);
    l->panels = wd_ceil_div(l->conv.batch, l->images) * l->parts;
    l->cuts = wd_ceil_div(l->out, l->rows);
    l->depth = l->in * l->taps;
    if (has_panel(l, l->images)) {
        l->depth = wd_least(l->depth, wd_most(bytes / (l->columns * l->size), 1));
        l->panel_bytes = wd_align_line((l->depth * l->columns + WD_CONV_SLACK) * l->size);
    }
    l->sums_rows = l->rows;
    if (has_sums(l, l->images)) {
        l->sums_rows = wd_least(l->rows, wd_most(bytes / (l->columns * l->size), 1));
        l->sums_bytes = wd_align_line(l->sums_rows * l->columns * l->size);
    }
    l->round = l->conv.groups * l->cuts;
    if (!l->filter_direct) {
        int64_t unit_bytes = l->rows * l->in * l->taps * l->size;
        l->round = wd_least(l->round, wd_most(WD_CONV_FILTER_BYTES / unit_bytes, 1));
        l->filter_bytes = wd_align_line(l->round * unit_bytes);
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
        l->phase[d] = wd_least(stride, l->to->extent[d]);
        l->phases *= l->phase[d];
        l->points *= wd_ceil_div(l->to->extent[d], stride);
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
