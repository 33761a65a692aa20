/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution on the CPU (one input channel a group) in single precision: fprop, fused
 * fprop and dgrad as sums of shifted lines, which vectorise along the line where its pixels lie side
 * by side (NCHW) and along the channels where these do (NHWC). Each tap reads the source again, from
 * the first cache. Dgrad goes through the remainders of a pixel by the stride, as in
 * conv_gemm_cpu.c. A task is a run of points of one channel, or of all of them; results do not depend
 * on the number of threads. */
#include <string.h>

#include "cpu/module/simd.h"
#include "ops/conv/conv_cpu.h"

enum {
    POINTS = 2048,   /* of a channel at once */
    SUMS = 4096,     /* of several points' channels at once */
    CHANNELS = 1024, /* of these, at most */
    PHASES_MAX = 1024,
};

struct work {
    struct wd_conv_cpu conv;
    const struct wd_conv_image *from;
    const struct wd_conv_image *to;
    bool backward;
    bool pixels;  /* channels lie side by side */
    int64_t in;   /* channels of `from` in a group */
    int64_t out;  /* channels of `to` */
    int64_t taps; /* of the filter */
    int64_t phases;
    int64_t phase[WD_CONV_SPATIAL];
    int64_t points; /* of the largest phase's domain */
    int64_t block;  /* points a task */
    int64_t blocks; /* of a phase and image */
    float *filter;  /* pixels: [tap][channel] */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void read_problem(const struct wd_problem *problem, struct work *w)
{
    memset(w, 0, sizeof *w);
    wd_conv_cpu_of(problem, &w->conv);
    w->backward = problem->node->op == WD_OP_CONV_DGRAD;
    w->from = w->backward ? &w->conv.y : &w->conv.x;
    w->to = w->backward ? &w->conv.x : &w->conv.y;
    w->in = w->backward ? w->conv.k : 1;
    w->out = w->backward ? 1 : w->conv.k;
    w->taps = wd_conv_points(w->conv.w.extent);
    w->pixels = w->from->channel == 1 && w->conv.groups > 1;
    w->phases = 1;
    w->points = 1;
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        int64_t stride = w->backward ? w->conv.stride[d] : 1;
        w->phase[d] = least(stride, w->to->extent[d]);
        w->phases *= w->phase[d];
        w->points *= ceil_div(w->to->extent[d], stride);
    }
    w->block = w->pixels ? SUMS / least(w->conv.groups, CHANNELS) : POINTS;
    w->block = least(w->block, w->points);
    w->blocks = ceil_div(w->points, w->block);
}

static void axes_of(const struct work *w, int64_t phase, struct wd_conv_axis *axis)
{
    for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
        if (w->backward) axis[d] = wd_conv_axis_backward(&w->conv, d, phase % w->phase[d]);
        else axis[d] = wd_conv_axis_forward(&w->conv, d);
        phase /= w->phase[d];
    }
}

WD_SIMD static void add_line(float *restrict sum, const float *restrict from, int64_t step,
                             float factor, int64_t n)
{
    if (step == 1) {
        for (int64_t i = 0; i < n; ++i) sum[i] += factor * from[i];
    } else if (step == 2) {
        for (int64_t i = 0; i < n; ++i) sum[i] += factor * from[2 * i];
    } else {
        for (int64_t i = 0; i < n; ++i) sum[i] += factor * from[i * step];
    }
}

/* Three taps at once, `apart` from each other: the commonest line. */
WD_SIMD static void add_three(float *restrict sum, const float *restrict from, int64_t apart,
                              const float *factor, int64_t n)
{
    float first = factor[0];
    float second = factor[1];
    float third = factor[2];
    for (int64_t i = 0; i < n; ++i) {
        sum[i] =
            ((sum[i] + first * from[i]) + second * from[i + apart]) + third * from[i + 2 * apart];
    }
}

WD_SIMD static void add_channels(float *restrict sum, const float *restrict from,
                                 const float *restrict filter, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) sum[i] += from[i] * filter[i];
}

/* Points [low, high) of a line's run that read inside the source at this offset. */
static void inside(const struct wd_conv_axis *axis, int64_t offset, int64_t extent, int64_t column,
                   int64_t run, int64_t *low, int64_t *high)
{
    int64_t last = extent - 1 - offset;
    int64_t first = offset >= 0 ? 0 : ceil_div(-offset, axis->step);
    int64_t end = last < 0 ? 0 : last / axis->step + 1;
    *low = clamp(first - column, 0, run);
    *high = clamp(end - column, *low, run);
}

/* One line of one tap row: all its taps along the line. `line` is where the source's line begins,
 * `filter` where the tap row does. */
static void add_taps(const struct work *w, const struct wd_conv_axis *axis, const float *line,
                     const float *filter, int64_t column, int64_t run, float *sum)
{
    int64_t extent = w->from->extent[2];
    int64_t tap_stride = axis->tap_step * w->conv.w.space[2];
    int64_t low;
    int64_t high;
    filter += axis->tap_first * w->conv.w.space[2];
    if (axis->taps == 3 && axis->step == 1) {
        float factor[3] = {filter[0], filter[tap_stride], filter[2 * tap_stride]};
        int64_t last = axis->offset + 2 * axis->offset_step;
        int64_t from;
        int64_t to;
        inside(axis, axis->offset, extent, column, run, &low, &high);
        inside(axis, last, extent, column, run, &from, &to);
        if (from < low) from = low;
        if (to > high) to = high;
        if (from < to) {
            /* the two ends, where a tap looks beyond the line, one by one */
            for (int t = 0; t < 3; ++t) {
                int64_t offset = axis->offset + t * axis->offset_step;
                inside(axis, offset, extent, column, run, &low, &high);
                for (int64_t i = low; i < least(from, high); ++i) {
                    sum[i] += factor[t] * line[column + i + offset];
                }
                for (int64_t i = to > low ? to : low; i < high; ++i) {
                    sum[i] += factor[t] * line[column + i + offset];
                }
            }
            add_three(sum + from, line + column + from + axis->offset, axis->offset_step, factor,
                      to - from);
            return;
        }
    }
    for (int64_t t = 0; t < axis->taps; ++t) {
        int64_t offset = axis->offset + t * axis->offset_step;
        inside(axis, offset, extent, column, run, &low, &high);
        if (low >= high) continue;
        add_line(sum + low, line + (column + low) * axis->step + offset, axis->step,
                 filter[t * tap_stride], high - low);
    }
}

/* Sums of a run of points of one output channel. */
static void sum_lines(const struct work *w, const struct wd_conv_axis *axis,
                      const struct wd_conv_panel *panel, int64_t group, int64_t out, float *sum)
{
    const struct wd_conv_image *from = w->from;
    const struct wd_conv_image *filter = &w->conv.w;
    int64_t point = panel->first;
    memset(sum, 0, (size_t)(panel->last - panel->first) * sizeof *sum);
    while (point < panel->last) {
        int64_t column = point % axis[2].points;
        int64_t run = least(axis[2].points - column, panel->last - point);
        int64_t h = point / axis[2].points % axis[1].points;
        int64_t d = point / axis[2].points / axis[1].points;
        for (int64_t in = 0; in < w->in; ++in) {
            int64_t k = group * w->conv.k + (w->backward ? in : out);
            const float *image = (const float *)from->data + panel->image * from->outer +
                                 (group * w->in + in) * from->channel;
            const float *taps = (const float *)filter->data + k * filter->outer;
            for (int64_t t0 = 0; t0 < axis[0].taps; ++t0) {
                int64_t depth = d * axis[0].step + axis[0].offset + t0 * axis[0].offset_step;
                if (depth < 0 || depth >= from->extent[0]) continue;
                for (int64_t t1 = 0; t1 < axis[1].taps; ++t1) {
                    int64_t line = h * axis[1].step + axis[1].offset + t1 * axis[1].offset_step;
                    if (line < 0 || line >= from->extent[1]) continue;
                    add_taps(w, &axis[2], image + depth * from->space[0] + line * from->space[1],
                             taps + (axis[0].tap_first + t0 * axis[0].tap_step) * filter->space[0] +
                                 (axis[1].tap_first + t1 * axis[1].tap_step) * filter->space[1],
                             column, run, sum);
                }
            }
        }
        sum += run;
        point += run;
    }
}

/* Items: (image, group, output channel, phase, block of points). */
static void run_lines(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    float sums[POINTS];
    for (int64_t item = begin; item < end; ++item) {
        struct wd_conv_scatter s = {.conv = &w->conv, .to = w->to, .rows = 1};
        int64_t rest = item / w->blocks;
        int64_t out = rest / w->phases % w->out;
        int64_t group = rest / w->phases / w->out % w->conv.groups;
        axes_of(w, rest % w->phases, s.axis);
        s.panel.image = rest / w->phases / w->out / w->conv.groups;
        s.panel.image_end = s.panel.image + 1;
        s.panel.first = item % w->blocks * w->block;
        s.panel.last =
            least(s.panel.first + w->block, s.axis[0].points * s.axis[1].points * s.axis[2].points);
        if (s.panel.first >= s.panel.last) continue;
        s.channel = group * w->out + out;
        sum_lines(w, s.axis, &s.panel, group, out, sums);
        wd_conv_scatter_f32(&s, sums);
    }
}

/* Items: (image, phase, block of points); all channels of them. */
static void run_pixels(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct wd_conv_image *from = w->from;
    float sums[SUMS];
    for (int64_t item = begin; item < end; ++item) {
        struct wd_conv_scatter s = {.conv = &w->conv, .to = w->to, .pixels = true};
        int64_t rest = item / w->blocks;
        int64_t first = item % w->blocks * w->block;
        int64_t last;
        axes_of(w, rest % w->phases, s.axis);
        last = least(first + w->block, s.axis[0].points * s.axis[1].points * s.axis[2].points);
        s.panel.image = rest / w->phases;
        s.panel.image_end = s.panel.image + 1;
        for (int64_t c = 0; c < w->conv.groups && first < last; c += CHANNELS) {
            int64_t channels = least(CHANNELS, w->conv.groups - c);
            const float *image = (const float *)from->data + s.panel.image * from->outer + c;
            float *sum = sums;
            memset(sums, 0, (size_t)(channels * (last - first)) * sizeof *sums);
            for (int64_t point = first; point < last; ++point, sum += channels) {
                int64_t at[WD_CONV_SPATIAL];
                at[2] = point % s.axis[2].points;
                at[1] = point / s.axis[2].points % s.axis[1].points;
                at[0] = point / s.axis[2].points / s.axis[1].points;
                for (int64_t t = 0; t < s.axis[0].taps * s.axis[1].taps * s.axis[2].taps; ++t) {
                    int64_t place = 0;
                    int64_t tap = 0;
                    int64_t tap_stride = 1;
                    int64_t digits = t;
                    bool hit = true;
                    for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
                        const struct wd_conv_axis *axis = &s.axis[d];
                        int64_t digit = digits % axis->taps;
                        int64_t pixel =
                            at[d] * axis->step + axis->offset + digit * axis->offset_step;
                        digits /= axis->taps;
                        hit &= pixel >= 0 && pixel < from->extent[d];
                        place += pixel * from->space[d];
                        tap += (axis->tap_first + digit * axis->tap_step) * tap_stride;
                        tap_stride *= w->conv.w.extent[d];
                    }
                    if (!hit) continue;
                    add_channels(sum, image + place, w->filter + tap * w->conv.groups + c,
                                 channels);
                }
            }
            s.channel = c;
            s.rows = channels;
            s.panel.first = first;
            s.panel.last = last;
            if (w->to->channel == 1) {
                wd_conv_scatter_f32(&s, sums);
                continue;
            }
            /* point by point, each a column of one row a channel */
            s.pixels = false;
            for (int64_t point = first; point < last; ++point) {
                s.panel.first = point;
                s.panel.last = point + 1;
                wd_conv_scatter_f32(&s, sums + (point - first) * channels);
            }
        }
    }
}

/* Items: taps. */
static void turn_filter(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct wd_conv_image *filter = &w->conv.w;
    for (int64_t tap = begin; tap < end; ++tap) {
        int64_t rest = tap;
        int64_t offset = 0;
        for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
            offset += rest % filter->extent[d] * filter->space[d];
            rest /= filter->extent[d];
        }
        for (int64_t c = 0; c < w->conv.groups; ++c) {
            w->filter[tap * w->conv.groups + c] =
                ((const float *)filter->data)[c * filter->outer + offset];
        }
    }
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct work w;
    double phases = 1.0;
    if (!wd_conv_cpu_match(problem, reason)) return false;
    read_problem(problem, &w);
    WD_NEED(w.conv.c == 1, reason, NOT_SUPPORTED_SHAPE, "%lld input channels a group, not 1",
            (long long)w.conv.c);
    WD_NEED(w.from->dtype == CUDNN_DATA_FLOAT && w.conv.w.dtype == CUDNN_DATA_FLOAT && !w.conv.wide,
            reason, NOT_SUPPORTED_DATA_TYPE, "not in single precision");
    WD_NEED(w.from->lanes == 1 && w.conv.w.lanes == 1 && w.to->lanes == 1, reason,
            NOT_SUPPORTED_LAYOUT, "vectorised channels");
    WD_NEED(w.pixels || w.from->space[2] == 1, reason, NOT_SUPPORTED_LAYOUT,
            "neither lines nor channels lie side by side");
    WD_NEED(!w.pixels || w.conv.k == 1, reason, NOT_SUPPORTED_SHAPE,
            "%lld filters a group where channels lie side by side", (long long)w.conv.k);
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) phases *= (double)w.phase[d];
    WD_NEED(phases <= PHASES_MAX, reason, NOT_SUPPORTED_SHAPE,
            "the strides leave %.0f remainders, more than %d", phases, PHASES_MAX);
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct work w;
    read_problem(problem, &w);
    return w.pixels ? w.taps * w.conv.groups * (int64_t)sizeof(float) : 0;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct work w;
    int64_t items;
    int64_t each;
    read_problem(&call->problem, &w);
    wd_conv_cpu_bind(call, &w.conv);
    items = w.conv.batch * w.phases * w.blocks;
    each = w.block * (w.taps / w.phases + 1);
    if (!w.pixels) {
        items *= w.conv.groups * w.out;
        each *= w.in;
        return queue->ops->range(queue, run_lines, &w, items, each > 20000 ? 1 : 20000 / each + 1);
    }
    w.filter = call->workspace;
    each *= w.conv.groups;
    WD_TRY(queue->ops->range(queue, turn_filter, &w, w.taps, 10000 / w.conv.groups + 1));
    return queue->ops->range(queue, run_pixels, &w, items, each > 20000 ? 1 : 20000 / each + 1);
}

const struct wd_engine wd_engine_conv_fprop_depthwise = {
    .name = "conv_fprop_depthwise",
    .op = WD_OP_CONV_FPROP,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_fused_depthwise = {
    .name = "conv_fused_depthwise",
    .op = WD_OP_CONV_FUSED,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_conv_dgrad_depthwise = {
    .name = "conv_dgrad_depthwise",
    .op = WD_OP_CONV_DGRAD,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
