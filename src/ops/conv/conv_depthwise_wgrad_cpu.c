/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise wgrad on the CPU (one input channel a group) in single precision: for each tap the dot
 * product of dy with the shifted image, in sixteen lanes along a line where pixels lie side by side
 * (NCHW), in one lane a channel where channels do (NHWC). Sums are of one image in single precision,
 * of all images in double. A task is a filter, or a block of channels; results do not depend on the
 * number of threads. */
#include <string.h>

#include "cpu/module/simd.h"
#include "cpu/module/sizes.h"
#include "ops/conv/conv_band_cpu.h"
#include "ops/conv/conv_cpu.h"

enum {
    TAPS_MAX = 64,
    LANES = 16,
    CHANNELS_MAX = 64, /* of a block */
};

struct work {
    struct wd_conv_cpu conv;
    struct wd_conv_axis axis[WD_CONV_SPATIAL];
    int64_t taps;
    int64_t block; /* channels of a task where they lie side by side */
    bool pixels;
};

static void read_problem(const struct wd_problem *problem, struct work *w)
{
    memset(w, 0, sizeof *w);
    wd_conv_cpu_of(problem, &w->conv);
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) w->axis[d] = wd_conv_axis_forward(&w->conv, d);
    w->taps = wd_conv_points(w->conv.w.extent);
    w->pixels = w->conv.x.channel == 1 && w->conv.y.channel == 1;
    w->block = wd_clamp(wd_ceil_div(w->conv.groups, problem->device->multiprocessors), LANES,
                        CHANNELS_MAX);
}

WD_SIMD static void dot_line(float *restrict lane, const float *restrict y, const float *restrict x,
                             int64_t step, int64_t n)
{
    int64_t i = 0;
    if (step == 1) {
        for (; i + LANES <= n; i += LANES) {
            for (int j = 0; j < LANES; ++j) lane[j] += y[i + j] * x[i + j];
        }
    } else {
        for (; i + LANES <= n; i += LANES) {
            for (int j = 0; j < LANES; ++j) lane[j] += y[i + j] * x[(i + j) * step];
        }
    }
    for (int j = 0; i < n; ++i, ++j) lane[j] += y[i] * x[i * step];
}

WD_SIMD static void dot_channels(float *restrict lane, const float *restrict y,
                                 const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) lane[i] += y[i] * x[i];
}

/* The source of tap `tap` for output point `at`; false where it lies in the padding. Looks at the
 * first `dims` dimensions only. */
static bool source(const struct work *w, int64_t tap, const int64_t *at, int dims, int64_t *place)
{
    bool hit = true;
    *place = 0;
    for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
        const struct wd_conv_axis *axis = &w->axis[d];
        int64_t pixel = at[d] * axis->step + axis->offset + tap % axis->taps * axis->offset_step;
        tap /= axis->taps;
        if (d >= dims) continue;
        hit &= pixel >= 0 && pixel < w->conv.x.extent[d];
        *place += pixel * w->conv.x.space[d];
    }
    return hit;
}

/* alpha sum + beta old into tap `tap` of filter k. */
static void finish(const struct work *w, int64_t k, int64_t tap, double sum)
{
    const struct wd_conv_image *dw = &w->conv.w;
    int64_t at = k * dw->outer;
    float *to;
    for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
        at += tap % dw->extent[d] * dw->space[d];
        tap /= dw->extent[d];
    }
    to = (float *)dw->data + at;
    sum = w->conv.alpha != 0.0 ? w->conv.alpha * sum : 0.0;
    if (w->conv.beta != 0.0) sum += w->conv.beta * (double)*to;
    *to = (float)sum;
}

/* One image's dot products of a filter, band by band: dy takes the band's shape, with zeros where it
 * has no column. */
static void dot_bands(const struct work *w, const struct wd_conv_band *band, const float *image,
                      const float *out, float *lane)
{
    float lines[WD_CONV_BAND + WD_CONV_BAND_SLACK];
    float wide[WD_CONV_BAND];
    const struct wd_conv_image *y = &w->conv.y;
    int64_t points = w->axis[2].points;
    bool whole = wd_conv_band_whole(band);
    for (int64_t first = 0; first < w->axis[1].points; first += band->most) {
        int64_t rest = w->axis[1].points - first;
        int64_t count = rest < band->most ? rest : band->most;
        wd_conv_band_fill(band, image, w->conv.x.space[1], w->conv.x.extent[1], w->conv.x.extent[2],
                          first, count, lines);
        for (int64_t l = 0; l < count && whole; ++l) {
            float *row = wide + l * band->pitch;
            memcpy(row, out + (first + l) * y->space[1], (size_t)points * sizeof *row);
            memset(row + points, 0, (size_t)(band->pitch - points) * sizeof *row);
        }
        for (int64_t t = 0; t < w->taps; ++t) {
            const float *tap =
                lines + wd_conv_band_tap(band, t / w->axis[2].taps, t % w->axis[2].taps);
            if (whole) {
                dot_line(lane + t * LANES, wide, tap, 1, (count - 1) * band->pitch + points);
                continue;
            }
            for (int64_t l = 0; l < count; ++l) {
                dot_line(lane + t * LANES, out + (first + l) * y->space[1],
                         tap + l * w->axis[1].step * band->pitch, 1, points);
            }
        }
    }
}

/* The same line by line, for images of three dimensions and lines too long for a band. */
static void dot_lines(const struct work *w, const float *image, const float *out, float *lane)
{
    const struct wd_conv_image *x = &w->conv.x;
    const struct wd_conv_image *y = &w->conv.y;
    const struct wd_conv_axis *last = &w->axis[2];
    for (int64_t line = 0; line < y->extent[0] * y->extent[1]; ++line) {
        int64_t at[WD_CONV_SPATIAL] = {line / y->extent[1], line % y->extent[1], 0};
        const float *row = out + at[0] * y->space[0] + at[1] * y->space[1];
        for (int64_t t = 0; t < w->taps; ++t) {
            int64_t offset = last->offset + t % last->taps * last->offset_step;
            int64_t beyond = x->extent[2] - 1 - offset;
            int64_t low = offset >= 0 ? 0 : wd_ceil_div(-offset, last->step);
            int64_t high = beyond < 0 ? 0 : beyond / last->step + 1;
            int64_t place;
            if (high > last->points) high = last->points;
            if (low >= high || !source(w, t, at, 2, &place)) continue;
            dot_line(lane + t * LANES, row + low, image + place + low * last->step + offset,
                     last->step, high - low);
        }
    }
}

/* Items: filters. */
static void run_lines(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct wd_conv_image *x = &w->conv.x;
    const struct wd_conv_image *y = &w->conv.y;
    struct wd_conv_band band = wd_conv_band_of(&w->axis[1], &w->axis[2]);
    bool flat =
        x->extent[0] == 1 && y->extent[0] == 1 && w->axis[0].taps == 1 && w->axis[0].offset == 0;
    float lane[TAPS_MAX * LANES];
    double total[TAPS_MAX];
    for (int64_t k = begin; k < end; ++k) {
        memset(total, 0, sizeof total);
        for (int64_t n = 0; n < w->conv.batch; ++n) {
            const float *image = (const float *)x->data + n * x->outer + k / w->conv.k * x->channel;
            const float *out = (const float *)y->data + n * y->outer + k * y->channel;
            memset(lane, 0, (size_t)w->taps * LANES * sizeof *lane);
            if (flat && band.most > 0) dot_bands(w, &band, image, out, lane);
            else dot_lines(w, image, out, lane);
            for (int64_t t = 0; t < w->taps; ++t) {
                for (int j = 0; j < LANES; ++j) total[t] += (double)lane[t * LANES + j];
            }
        }
        for (int64_t t = 0; t < w->taps; ++t) finish(w, k, t, total[t]);
    }
}

/* Items: blocks of channels. */
static void run_pixels(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct wd_conv_image *x = &w->conv.x;
    const struct wd_conv_image *y = &w->conv.y;
    int64_t points = wd_conv_points(y->extent);
    float lane[TAPS_MAX * CHANNELS_MAX];
    double total[TAPS_MAX * CHANNELS_MAX];
    for (int64_t item = begin; item < end; ++item) {
        int64_t c = item * w->block;
        int64_t channels = w->conv.groups - c < w->block ? w->conv.groups - c : w->block;
        memset(total, 0, (size_t)(w->taps * channels) * sizeof *total);
        for (int64_t n = 0; n < w->conv.batch; ++n) {
            const float *image = (const float *)x->data + n * x->outer + c;
            const float *out = (const float *)y->data + n * y->outer + c;
            memset(lane, 0, (size_t)(w->taps * channels) * sizeof *lane);
            for (int64_t p = 0; p < points; ++p) {
                int64_t at[WD_CONV_SPATIAL] = {p / y->extent[2] / y->extent[1],
                                               p / y->extent[2] % y->extent[1], p % y->extent[2]};
                const float *row =
                    out + at[0] * y->space[0] + at[1] * y->space[1] + at[2] * y->space[2];
                for (int64_t t = 0; t < w->taps; ++t) {
                    int64_t place;
                    if (!source(w, t, at, WD_CONV_SPATIAL, &place)) continue;
                    dot_channels(lane + t * channels, row, image + place, channels);
                }
            }
            for (int64_t i = 0; i < w->taps * channels; ++i) total[i] += (double)lane[i];
        }
        for (int64_t t = 0; t < w->taps; ++t) {
            for (int64_t j = 0; j < channels; ++j) finish(w, c + j, t, total[t * channels + j]);
        }
    }
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct work w;
    if (!wd_conv_cpu_match(problem, reason)) return false;
    read_problem(problem, &w);
    WD_NEED(w.conv.c == 1 && w.conv.groups > 1, reason, NOT_SUPPORTED_SHAPE,
            "%lld input channels in each of %lld groups", (long long)w.conv.c,
            (long long)w.conv.groups);
    WD_NEED(w.taps <= TAPS_MAX, reason, NOT_SUPPORTED_SHAPE, "%lld taps, more than %d",
            (long long)w.taps, TAPS_MAX);
    WD_NEED(w.conv.x.dtype == CUDNN_DATA_FLOAT && w.conv.y.dtype == CUDNN_DATA_FLOAT &&
                w.conv.w.dtype == CUDNN_DATA_FLOAT && !w.conv.wide,
            reason, NOT_SUPPORTED_DATA_TYPE, "not in single precision");
    WD_NEED(w.conv.x.lanes == 1 && w.conv.y.lanes == 1 && w.conv.w.lanes == 1, reason,
            NOT_SUPPORTED_LAYOUT, "vectorised channels");
    WD_NEED(w.pixels || (w.conv.x.space[2] == 1 && w.conv.y.space[2] == 1), reason,
            NOT_SUPPORTED_LAYOUT, "neither lines nor channels lie side by side in both x and dy");
    WD_NEED(!w.pixels || w.conv.k == 1, reason, NOT_SUPPORTED_SHAPE,
            "%lld filters a group where channels lie side by side", (long long)w.conv.k);
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct work w;
    read_problem(&call->problem, &w);
    wd_conv_cpu_bind(call, &w.conv);
    if (w.pixels)
        return queue->ops->range(queue, run_pixels, &w, wd_ceil_div(w.conv.groups, w.block), 1);
    return queue->ops->range(queue, run_lines, &w, w.conv.groups * w.conv.k, 1);
}

const struct wd_engine wd_engine_conv_wgrad_depthwise = {
    .name = "conv_wgrad_depthwise",
    .op = WD_OP_CONV_WGRAD,
    .device = WD_CPU,
    .match = match,
    .emit = emit,
};
