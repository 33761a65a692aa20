/* SPDX-License-Identifier: Apache-2.0
 *
 * Fprop, fused fprop and dgrad on the CPU as matrix products over panels of columns: what each point
 * sees is gathered into a panel that stays in a core's cache, multiplied with the filter by BLAS, and
 * the product lands in the output itself or, where that cannot be, is finished from the cache. What
 * already lies as a matrix (1x1 filters, packed outputs) is used where it is.
 *
 * Dgrad is the same computation: for each remainder of a pixel by the stride it is a correlation of
 * dy with those taps of the filter that such pixels see, so that each pixel is summed by one product
 * and nothing is added twice. Tasks are independent; a result depends on the shape and on the number
 * of threads (through the panels' sizes) alone. */
#include <string.h>

#include "cpu/module/rows.h"
#include "cpu/module/sizes.h"
#include "cpu/module/tasks.h"
#include "ops/conv/conv_lower_cpu.h"

enum { TAPS_LISTED = 128, CLEARED = 1 << 16 };

/* One execution. */
struct work {
    const struct wd_conv_lowering *l;
    char *filter;
    char *scratch;
    int64_t first_unit; /* units whose filters are at hand */
    int64_t last_unit;
    bool cleared; /* the output holds zeros: phases without taps are done */
    bool fills;   /* the one phase with taps writes the zeros of the others too */
    struct wd_tasks *tasks;
};

struct unit {
    int64_t group;
    int64_t row; /* output channels [row, row_end) of the group */
    int64_t row_end;
};

static struct unit unit_of(const struct wd_conv_lowering *l, int64_t index)
{
    int64_t row = index % l->cuts * l->rows;
    int64_t end = row + l->rows < l->out ? row + l->rows : l->out;
    return (struct unit){index / l->cuts, row, end};
}

static int64_t taps_of(const struct wd_conv_axis *axis)
{
    return axis[0].taps * axis[1].taps * axis[2].taps;
}

/* Where in the workspace the filter of a unit's phase begins, in elements. */
static int64_t filter_place(const struct work *w, int64_t unit, int64_t phase)
{
    const struct wd_conv_lowering *l = w->l;
    int64_t before = (unit - w->first_unit) * l->taps;
    for (int64_t p = 0; p < phase; ++p) {
        struct wd_conv_axis axis[WD_CONV_SPATIAL];
        wd_conv_lower_axes(l, p, axis);
        before += taps_of(axis);
    }
    return before * l->in * l->rows;
}

/* Where a filter's output channels lie side by side, the copy is turned: [in x taps][rows], else it
 * is [rows][in x taps]. */
static bool filter_turned(const struct wd_conv_lowering *l)
{
    return wd_conv_lower_out_stride(l) == 1 && l->conv.w.lanes == 1;
}

static int64_t filter_offset(const struct wd_conv_lowering *l, int64_t group, int64_t out,
                             int64_t in)
{
    int64_t k = group * l->conv.k + (l->backward ? in : out);
    return k * l->conv.w.outer + wd_conv_channel(&l->conv.w, l->backward ? out : in);
}

static int64_t tap_offset(const struct wd_conv_lowering *l, const struct wd_conv_axis *axis,
                          int64_t tap)
{
    int64_t offset = 0;
    for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
        offset += (axis[d].tap_first + tap % axis[d].taps * axis[d].tap_step) * l->conv.w.space[d];
        tap /= axis[d].taps;
    }
    return offset;
}

static void load(const struct wd_conv_lowering *l, char *to, int64_t at, int64_t offset,
                 int64_t stride, int64_t n)
{
    const struct wd_conv_image *w = &l->conv.w;
    if (l->conv.wide) wd_row_load_f64((double *)to + at, w->data, w->dtype, offset, stride, n);
    else wd_row_load_f32((float *)to + at, w->data, w->dtype, offset, stride, n);
}

/* A filter's row of (channel, tap) in single precision, whose taps are listed. */
static void order_taps_f32(float *to, const float *from, int64_t stride, int64_t channels,
                           const int64_t *offset, int64_t taps)
{
    bool packed = true;
    for (int64_t t = 1; t < taps; ++t) packed &= offset[t] == offset[0] + t;
    from += offset[0];
    if (packed && taps == 9) {
        for (int64_t c = 0; c < channels; ++c)
            memcpy(to + c * 9, from + c * stride, 9 * sizeof *to);
    } else if (packed) {
        for (int64_t c = 0; c < channels; ++c) {
            memcpy(to + c * taps, from + c * stride, (size_t)taps * sizeof *to);
        }
    } else {
        for (int64_t c = 0; c < channels; ++c) {
            for (int64_t t = 0; t < taps; ++t) {
                to[c * taps + t] = from[c * stride + offset[t] - offset[0]];
            }
        }
    }
}

/* Items: output channels of the round's units. */
static void order_rows(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct wd_conv_lowering *l = w->l;
    for (int64_t item = begin; item < end; ++item) {
        int64_t index = w->first_unit + item / l->rows;
        struct unit unit = unit_of(l, index);
        int64_t m = item % l->rows;
        if (unit.row + m >= unit.row_end) continue;
        for (int64_t p = 0; p < l->phases; ++p) {
            struct wd_conv_axis axis[WD_CONV_SPATIAL];
            int64_t offset[TAPS_LISTED];
            int64_t base = filter_offset(l, unit.group, unit.row + m, 0);
            int64_t taps;
            int64_t at;
            wd_conv_lower_axes(l, p, axis);
            taps = taps_of(axis);
            at = filter_place(w, index, p) + m * l->in * taps;
            if (!l->from_pixels && l->conv.w.dtype == CUDNN_DATA_FLOAT && !l->conv.wide &&
                l->conv.w.lanes == 1 && taps > 0 && taps <= TAPS_LISTED) {
                for (int64_t t = 0; t < taps; ++t) offset[t] = tap_offset(l, axis, t);
                order_taps_f32((float *)w->filter + at, (const float *)l->conv.w.data + base,
                               wd_conv_lower_in_stride(l), l->in, offset, taps);
                continue;
            }
            for (int64_t t = 0; t < taps; ++t) {
                int64_t tap = tap_offset(l, axis, t);
                if (l->from_pixels && l->conv.w.lanes == 1) {
                    load(l, w->filter, at + t * l->in, base + tap, wd_conv_lower_in_stride(l),
                         l->in);
                    continue;
                }
                for (int64_t c = 0; c < l->in; ++c) {
                    load(l, w->filter, at + (l->from_pixels ? t * l->in + c : c * taps + t),
                         filter_offset(l, unit.group, unit.row + m, c) + tap, 1, 1);
                }
            }
        }
    }
}

/* Items: input channels of the round's units, for turned filters. */
static void order_columns(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct wd_conv_lowering *l = w->l;
    for (int64_t item = begin; item < end; ++item) {
        int64_t index = w->first_unit + item / l->in;
        struct unit unit = unit_of(l, index);
        int64_t c = item % l->in;
        for (int64_t p = 0; p < l->phases; ++p) {
            struct wd_conv_axis axis[WD_CONV_SPATIAL];
            int64_t place = filter_place(w, index, p);
            int64_t taps;
            wd_conv_lower_axes(l, p, axis);
            taps = taps_of(axis);
            for (int64_t t = 0; t < taps; ++t) {
                int64_t row = l->from_pixels ? t * l->in + c : c * taps + t;
                load(l, w->filter, place + row * l->rows,
                     filter_offset(l, unit.group, unit.row, c) + tap_offset(l, axis, t), 1,
                     unit.row_end - unit.row);
            }
        }
    }
}

static const void *element(const struct wd_conv_lowering *l, const void *data, int64_t at)
{
    return (const char *)data + at * l->size;
}

/* Rows from `row` of a unit, columns from `from` of the panel's rows. */
static struct wd_matrix filter_matrix(const struct work *w, int64_t index, int64_t phase,
                                      const struct wd_conv_axis *axis, int64_t row, int64_t from)
{
    const struct wd_conv_lowering *l = w->l;
    struct unit unit = unit_of(l, index);
    struct wd_matrix m;
    int64_t at;
    if (l->filter_direct) {
        m.row = wd_conv_lower_out_stride(l);
        m.column = l->taps == 1 ? wd_conv_lower_in_stride(l) : 1;
        at = filter_offset(l, unit.group, unit.row + row, 0) + from * m.column;
        m.data = element(l, l->conv.w.data, at);
        return m;
    }
    m.row = filter_turned(l) ? 1 : l->in * taps_of(axis);
    m.column = filter_turned(l) ? l->rows : 1;
    at = filter_place(w, index, phase) + row * m.row + from * m.column;
    m.data = element(l, w->filter, at);
    return m;
}

/* alpha filter panel + beta old of one phase, panel and unit. */
static void run_task(const struct work *w, int64_t index, int64_t phase, int64_t panel_index,
                     char *panel, char *sums)
{
    const struct wd_conv_lowering *l = w->l;
    const struct wd_conv_cpu *conv = &l->conv;
    struct unit unit = unit_of(l, index);
    struct wd_conv_gather gather = {.from = l->from, .pixels = l->from_pixels};
    struct wd_conv_scatter scatter = {.conv = conv, .to = l->to, .pixels = l->to_pixels};
    bool from_image;
    bool to_image;
    bool several;
    int64_t depth;
    int64_t columns;
    int64_t gathered = -1; /* the row that the panel begins with */
    wd_conv_lower_axes(l, phase, gather.axis);
    if (!wd_conv_lower_panel(l, gather.axis, panel_index, &gather.panel)) return;
    memcpy(scatter.axis, gather.axis, sizeof scatter.axis);
    scatter.panel = gather.panel;
    gather.channel = unit.group * l->in;
    gather.channels = l->in;
    depth = l->in * taps_of(gather.axis);
    if (depth == 0 && (w->cleared || w->fills || conv->beta == 1.0)) return;
    scatter.fill = w->fills;
    columns = wd_conv_columns(&gather.panel);
    several = gather.panel.image_end - gather.panel.image > 1;
    from_image = l->from_direct && (!several || l->from_whole);
    to_image = l->to_direct && (!several || l->to_whole);
    for (int64_t m = unit.row; m < unit.row_end; m += l->sums_rows) {
        int64_t end = m + l->sums_rows < unit.row_end ? m + l->sums_rows : unit.row_end;
        int64_t channel = unit.group * l->out + m;
        struct wd_matrix c =
            to_image ? wd_conv_image_matrix(l->to, l->size, l->to_stride, &gather.panel, channel)
                     : wd_conv_buffer_matrix(sums, l->to_pixels, end - m, columns);
        for (int64_t row = 0; row < depth || row == 0; row += l->depth) {
            int64_t row_end = row + l->depth < depth ? row + l->depth : depth;
            struct wd_matrix a = filter_matrix(w, index, phase, gather.axis, m - unit.row, row);
            struct wd_matrix b =
                from_image ? wd_conv_image_matrix(l->from, l->size, l->from_stride, &gather.panel,
                                                  gather.channel + row)
                           : wd_conv_buffer_matrix(panel, l->from_pixels, row_end - row, columns);
            double alpha = to_image ? conv->alpha : 1.0;
            double beta = row > 0 ? 1.0 : to_image ? conv->beta : 0.0;
            if (!from_image && gathered != row) {
                if (conv->wide) wd_conv_gather_f64(&gather, row, row_end, panel);
                else wd_conv_gather_f32(&gather, row, row_end, panel);
                gathered = row;
            }
            if (conv->wide) wd_gemm_f64(end - m, columns, row_end - row, alpha, a, b, beta, c);
            else wd_gemm_f32(end - m, columns, row_end - row, alpha, a, b, beta, c);
        }
        if (to_image) continue;
        scatter.channel = channel;
        scatter.rows = end - m;
        if (conv->wide) wd_conv_scatter_f64(&scatter, sums);
        else wd_conv_scatter_f32(&scatter, sums);
    }
}

/* Items: workers. */
static void run_workers(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct wd_conv_lowering *l = w->l;
    int entered = wd_blas_enter();
    for (int64_t worker = begin; worker < end; ++worker) {
        char *panel = w->scratch + worker * (l->panel_bytes + l->sums_bytes);
        int64_t task;
        while (wd_tasks_take(w->tasks, &task)) {
            /* tasks of one panel follow each other, so that its source is still at hand */
            int64_t units = w->last_unit - w->first_unit;
            int64_t unit = w->first_unit + task % units;
            int64_t phase = task / units % l->phases;
            run_task(w, unit, phase, task / units / l->phases, panel, panel + l->panel_bytes);
        }
    }
    wd_blas_leave(entered);
}

/* Items: pieces of CLEARED bytes of a packed output. */
static void clear(const void *args, int64_t begin, int64_t end)
{
    const struct wd_conv_image *to = ((const struct work *)args)->l->to;
    int64_t bytes = to->elements * wd_dtype_bits(to->dtype) / 8;
    int64_t last = end * CLEARED < bytes ? end * CLEARED : bytes;
    memset((char *)to->data + begin * CLEARED, 0, (size_t)(last - begin * CLEARED));
}

/* With strides beyond the filter some phases of dgrad have no taps, and their pixels are 0. Where one
 * phase has all taps it writes these zeros along with its own lines; else clearing a packed output at
 * once is faster than writing them one by one. */
static void choose_zeros(struct work *w)
{
    const struct wd_conv_lowering *l = w->l;
    int64_t elements = l->conv.batch * l->conv.groups * l->out * wd_conv_points(l->to->extent);
    int64_t without = 0;
    if (!l->backward || l->conv.beta != 0.0) return;
    for (int64_t p = 0; p < l->phases; ++p) {
        struct wd_conv_axis axis[WD_CONV_SPATIAL];
        wd_conv_lower_axes(l, p, axis);
        without += taps_of(axis) == 0;
    }
    w->fills = without > 0 && without == l->phases - 1 && wd_conv_fills(l->to);
    w->cleared = without > 0 && !w->fills && l->to->elements == elements;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_conv_cpu conv;
    double phases = 1.0;
    int64_t products;
    if (!wd_conv_cpu_match(problem, reason)) return false;
    wd_conv_cpu_of(problem, &conv);
    products = wd_conv_points(conv.w.extent);
    products *= problem->node->op == WD_OP_CONV_DGRAD ? conv.k : conv.c;
    WD_NEED(products <= WD_CONV_FILTER_BYTES / 8, reason, NOT_SUPPORTED_SHAPE,
            "a sum has %lld products, more than %d", (long long)products, WD_CONV_FILTER_BYTES / 8);
    if (problem->node->op != WD_OP_CONV_DGRAD) return true;
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        phases *= (double)(conv.stride[d] < conv.x.extent[d] ? conv.stride[d] : conv.x.extent[d]);
    }
    WD_NEED(phases <= WD_CONV_PHASES_MAX, reason, NOT_SUPPORTED_SHAPE,
            "the strides leave %.0f remainders, more than %d", phases, WD_CONV_PHASES_MAX);
    return true;
}

static int64_t bytes_of(const struct wd_conv_lowering *l)
{
    return l->filter_bytes + l->workers * (l->panel_bytes + l->sums_bytes);
}

/* The legacy API has one query for plain and fused fprop: the answer suffices for both. */
static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_conv_lowering l;
    int64_t bytes;
    wd_conv_lower(problem, &l);
    bytes = bytes_of(&l);
    if (problem->node->op == WD_OP_CONV_FPROP) {
        wd_conv_lower_fused(problem, &l);
        if (bytes_of(&l) > bytes) bytes = bytes_of(&l);
    }
    return bytes;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_conv_lowering l;
    struct wd_tasks tasks;
    struct work work = {.l = &l, .tasks = &tasks};
    char none[1]; /* where no workspace is needed */
    int64_t units;
    wd_conv_lower(&call->problem, &l);
    wd_conv_cpu_bind(call, &l.conv);
    units = l.conv.groups * l.cuts;
    work.filter = call->workspace ? call->workspace : none;
    work.scratch = work.filter + l.filter_bytes;
    choose_zeros(&work);
    if (work.cleared) {
        int64_t bytes = l.to->elements * wd_dtype_bits(l.to->dtype) / 8;
        WD_TRY(queue->ops->range(queue, clear, &work, (bytes + CLEARED - 1) / CLEARED, 1));
    }
    for (int64_t first = 0; first < units; first += l.round) {
        work.first_unit = first;
        work.last_unit = first + l.round < units ? first + l.round : units;
        if (!l.filter_direct) {
            bool turned = filter_turned(&l);
            int64_t items = (work.last_unit - first) * (turned ? l.in : l.rows);
            int64_t each = l.taps * (turned ? l.rows : l.in);
            WD_TRY(queue->ops->range(queue, turned ? order_columns : order_rows, &work, items,
                                     each > 10000 ? 1 : 10000 / each + 1));
        }
        atomic_init(&tasks.next, 0);
        tasks.count = (work.last_unit - first) * l.phases * l.panels;
        WD_TRY(queue->ops->range(queue, run_workers, &work,
                                 wd_tasks_workers(tasks.count, (int)l.workers), 1));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_conv_fprop_gemm = {
    .name = "conv_fprop_gemm",
    .op = WD_OP_CONV_FPROP,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_fused_gemm = {
    .name = "conv_fused_gemm",
    .op = WD_OP_CONV_FUSED,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_dgrad_gemm = {
    .name = "conv_dgrad_gemm",
    .op = WD_OP_CONV_DGRAD,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
