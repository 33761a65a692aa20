/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution on the CPU (one input channel a group) in single precision: fprop, fused
 * fprop and dgrad as sums of shifted lines, which vectorise along bands of lines where pixels lie side
 * by side (NCHW) and along the channels where these do (NHWC). Each tap reads the source again, from
 * the first cache. Dgrad goes through the remainders of a pixel by the stride, as in
 * conv_gemm_cpu.c. A task is a run of points of one channel, or of all of them; results do not depend
 * on the number of threads. */
#include <string.h>

#include "cpu/module/simd.h"
#include "cpu/module/sizes.h"
#include "ops/conv/conv_band_cpu.h"
#include "ops/conv/conv_cpu.h"

enum {
    POINTS = 4096,   /* of a channel at once */
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

static void read_problem(const struct wd_problem *problem, struct work *w)
{
    int64_t line;
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
        w->phase[d] = wd_least(stride, w->to->extent[d]);
        w->phases *= w->phase[d];
        w->points *= wd_ceil_div(w->to->extent[d], stride);
    }
    w->block = w->pixels ? SUMS / wd_least(w->conv.groups, CHANNELS) : POINTS;
    line = wd_ceil_div(w->to->extent[2], w->phase[2]);
    if (!w->pixels && line <= POINTS) w->block = POINTS / line * line; /* whole lines */
    w->block = wd_least(w->block, w->points);
    w->blocks = wd_ceil_div(w->points, w->block);
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
    } else {
        for (int64_t i = 0; i < n; ++i) sum[i] += factor * from[i * step];
    }
}

/* The nine taps of a 3x3 filter at once: `at` are their places in the band. */
WD_SIMD static void add_nine(float *restrict sum, const float *restrict band, const int64_t *at,
                             const float *factor, int64_t n)
{
    const float *a = band + at[0];
    const float *b = band + at[1];
    const float *c = band + at[2];
    const float *d = band + at[3];
    const float *e = band + at[4];
    const float *f = band + at[5];
    const float *g = band + at[6];
    const float *h = band + at[7];
    const float *k = band + at[8];
    float w[9];
    memcpy(w, factor, sizeof w);
    for (int64_t i = 0; i < n; ++i) {
        float top = w[0] * a[i] + w[1] * b[i] + w[2] * c[i];
        float middle = w[3] * d[i] + w[4] * e[i] + w[5] * f[i];
        float bottom = w[6] * g[i] + w[7] * h[i] + w[8] * k[i];
        sum[i] += (top + middle) + bottom;
    }
}

WD_SIMD static void add_channels(float *restrict sum, const float *restrict from,
                                 const float *restrict filter, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) sum[i] += from[i] * filter[i];
}

static const float *source(const struct work *w, int64_t image, int64_t group, int64_t in)
{
    return (const float *)w->from->data + image * w->from->outer +
           (group * w->in + in) * w->from->channel;
}

static float filter_value(const struct work *w, int64_t k, const struct wd_conv_axis *axis,
                          const int64_t *tap)
{
    int64_t at = k * w->conv.w.outer;
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        at += (axis[d].tap_first + tap[d] * axis[d].tap_step) * w->conv.w.space[d];
    }
    return ((const float *)w->conv.w.data)[at];
}

/* Sums of output lines [first, first + count) of one channel, in a plane. */
static void sum_band(const struct work *w, const struct wd_conv_axis *axis,
                     const struct wd_conv_band *band, int64_t image, int64_t group, int64_t out,
                     int64_t first, int64_t count, float *sums)
{
    float lines[WD_CONV_BAND + WD_CONV_BAND_SLACK];
    float wide[WD_CONV_BAND];
    bool whole = wd_conv_band_whole(band);
    int64_t points = axis[2].points;
    int64_t run = whole ? (count - 1) * band->pitch + points : points;
    float *to = whole ? wide : sums;
    memset(to, 0, (size_t)(whole ? run : count * points) * sizeof *to);
    for (int64_t in = 0; in < w->in; ++in) {
        int64_t k = group * w->conv.k + (w->backward ? in : out);
        int64_t taps = axis[1].taps * axis[2].taps;
        wd_conv_band_fill(band, source(w, image, group, in), w->from->space[1], w->from->extent[1],
                          w->from->extent[2], first, count, lines);
        for (int64_t l = 0; l < (whole ? 1 : count); ++l) {
            const float *line = lines + l * axis[1].step * band->pitch;
            float factor[9];
            int64_t at[9];
            for (int64_t t = 0; t < taps; ++t) {
                const int64_t tap[WD_CONV_SPATIAL] = {0, t / axis[2].taps, t % axis[2].taps};
                factor[t % 9] = filter_value(w, k, axis, tap);
                at[t % 9] = wd_conv_band_tap(band, tap[1], tap[2]);
                if (taps != 9) add_line(to + l * points, line + at[t % 9], 1, factor[t % 9], run);
            }
            if (taps == 9) add_nine(to + l * points, line, at, factor, run);
        }
    }
    if (!whole) return;
    for (int64_t l = 0; l < count; ++l) {
        memcpy(sums + l * points, wide + l * band->pitch, (size_t)points * sizeof *sums);
    }
}

/* Sums of any run of points of one channel, tap by tap: images of three dimensions, and lines too
 * long for a band. */
static void sum_lines(const struct work *w, const struct wd_conv_axis *axis,
                      const struct wd_conv_panel *panel, int64_t group, int64_t out, float *sums)
{
    const struct wd_conv_image *from = w->from;
    memset(sums, 0, (size_t)(panel->last - panel->first) * sizeof *sums);
    for (int64_t point = panel->first; point < panel->last;) {
        int64_t column = point % axis[2].points;
        int64_t run = wd_least(axis[2].points - column, panel->last - point);
        int64_t h = point / axis[2].points % axis[1].points;
        int64_t d = point / axis[2].points / axis[1].points;
        int64_t taps = axis[0].taps * axis[1].taps * axis[2].taps;
        for (int64_t i = 0; i < w->in * taps; ++i) {
            int64_t in = i / taps;
            int64_t t = i % taps;
            const int64_t tap[WD_CONV_SPATIAL] = {
                t / axis[2].taps / axis[1].taps, t / axis[2].taps % axis[1].taps, t % axis[2].taps};
            int64_t depth = d * axis[0].step + axis[0].offset + tap[0] * axis[0].offset_step;
            int64_t line = h * axis[1].step + axis[1].offset + tap[1] * axis[1].offset_step;
            int64_t offset = axis[2].offset + tap[2] * axis[2].offset_step;
            int64_t step = axis[2].step;
            int64_t last = from->extent[2] - 1 - offset;
            int64_t low = wd_clamp((offset >= 0 ? 0 : wd_ceil_div(-offset, step)) - column, 0, run);
            int64_t high = wd_clamp((last < 0 ? 0 : last / step + 1) - column, low, run);
            if (depth < 0 || depth >= from->extent[0] || line < 0 || line >= from->extent[1])
                continue;
            if (low == high) continue;
            add_line(sums + low,
                     source(w, panel->image, group, in) + depth * from->space[0] +
                         line * from->space[1] + (column + low) * step + offset,
                     step, filter_value(w, group * w->conv.k + (w->backward ? in : out), axis, tap),
                     high - low);
        }
        sums += run;
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
        struct wd_conv_band band;
        int64_t last;
        axes_of(w, rest % w->phases, s.axis);
        s.panel.image = rest / w->phases / w->out / w->conv.groups;
        s.panel.image_end = s.panel.image + 1;
        s.panel.first = item % w->blocks * w->block;
        last = wd_least(s.panel.first + w->block,
                        s.axis[0].points * s.axis[1].points * s.axis[2].points);
        band = wd_conv_band_of(&s.axis[1], &s.axis[2]);
        if (w->from->extent[0] != 1 || s.axis[0].points != 1 || s.axis[0].taps != 1 ||
            s.axis[0].offset != 0) {
            band.most = 0;
        }
        s.channel = group * w->out + out;
        while (s.panel.first < last) {
            int64_t line = s.panel.first / s.axis[2].points;
            int64_t lines = wd_least((last - s.panel.first) / s.axis[2].points, band.most);
            if (lines > 0 && s.panel.first % s.axis[2].points == 0) {
                s.panel.last = s.panel.first + lines * s.axis[2].points;
                sum_band(w, s.axis, &band, s.panel.image, group, out, line, lines, sums);
            } else {
                /* to the end of the line at most */
                s.panel.last = wd_least(last, (line + 1) * s.axis[2].points);
                sum_lines(w, s.axis, &s.panel, group, out, sums);
            }
            wd_conv_scatter_f32(&s, sums);
            s.panel.first = s.panel.last;
        }
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
        last = wd_least(first + w->block, s.axis[0].points * s.axis[1].points * s.axis[2].points);
        s.panel.image = rest / w->phases;
        s.panel.image_end = s.panel.image + 1;
        for (int64_t c = 0; c < w->conv.groups && first < last; c += CHANNELS) {
            int64_t channels = wd_least(CHANNELS, w->conv.groups - c);
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
    WD_NEED(w.conv.c == 1 && w.conv.groups > 1, reason, NOT_SUPPORTED_SHAPE,
            "%lld input channels in each of %lld groups", (long long)w.conv.c,
            (long long)w.conv.groups);
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
