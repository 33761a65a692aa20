/* SPDX-License-Identifier: Apache-2.0
 *
 * The bias gradient on the CPU: the sum of dy over images and points, for each filter. Runs along
 * whatever lies side by side: a channel's points, or a point's channels. Sums are of a bounded number
 * of elements in the type of the sum, of all in double. A task is a channel or, of a block of channels,
 * a segment of the points; segments follow from the shape alone and their sums are added in order, so
 * that results do not depend on the number of threads. */
#include <string.h>

#include "cpu/module/rows.h"
#include "cpu/module/simd.h"
#include "cpu/module/sizes.h"
#include "cpu/module/stream.h"
#include "ops/engine.h"

enum { DY, DB };
enum { ALPHA, BETA };
enum {
    LANES = 16,
    CHUNK = 1024,          /* elements converted at once */
    CHANNELS_MAX = 256,    /* of a block */
    POINTS = 8,            /* that are summed in single precision */
    LANES_WIDE = 32,       /* channels that are summed at once */
    CONVERTED = 16,        /* points that are converted at once */
    SEGMENTS = 64,         /* at most */
    SEGMENT_MIN = 1 << 15, /* elements that pay for one */
    PIECE_MIN = 20000,     /* elements that pay for a thread */
    PARTIAL_MAX = 1 << 19, /* sums of all segments */
};

struct work {
    struct wd_view y;
    struct wd_view b;
    double alpha;
    double beta;
    bool wide;
    int64_t segments; /* of the points */
    double *partial;  /* [segment][channel] */
};

WD_SIMD static double sum_run(const float *from, int64_t n)
{
    float lane[LANES] = {0};
    double total = 0.0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int j = 0; j < LANES; ++j) lane[j] += from[i + j];
    }
    for (int j = 0; i < n; ++i, ++j) lane[j] += from[i];
    for (int j = 0; j < LANES; ++j) total += (double)lane[j];
    return total;
}

/* Sums of n channels over points that are `pitch` elements apart. */
WD_SIMD static void add_points(double *restrict total, const float *restrict from, int64_t pitch,
                               int64_t points, int64_t n)
{
    for (; points >= POINTS; points -= POINTS, from += POINTS * pitch) {
        int64_t i = 0;
        for (; i + LANES_WIDE <= n; i += LANES_WIDE) {
            float lane[LANES_WIDE] = {0};
            for (int p = 0; p < POINTS; ++p) {
                wd_ahead((uintptr_t)(from + i + p * pitch) + WD_AHEAD,
                         LANES_WIDE * (int)sizeof(float) / WD_LINE);
                for (int j = 0; j < LANES_WIDE; ++j) lane[j] += from[i + p * pitch + j];
            }
            for (int j = 0; j < LANES_WIDE; ++j) total[i + j] += (double)lane[j];
        }
        for (int p = 0; p < POINTS; ++p) {
            for (int64_t j = i; j < n; ++j) total[j] += (double)from[j + p * pitch];
        }
    }
    for (; points > 0; --points, from += pitch) {
        for (int64_t j = 0; j < n; ++j) total[j] += (double)from[j];
    }
}

/* n elements of one line, in any type. */
static double sum_line(const struct work *w, int64_t at, int64_t stride, int64_t n)
{
    double total = 0.0;
    if (w->y.dtype == CUDNN_DATA_FLOAT && stride == 1 && !w->wide) {
        for (int64_t i = 0; i < n; i += CHUNK) {
            total += sum_run((const float *)w->y.data + at + i, n - i < CHUNK ? n - i : CHUNK);
        }
        return total;
    }
    for (int64_t i = 0; i < n; i += CHUNK) {
        double row[CHUNK];
        int64_t count = n - i < CHUNK ? n - i : CHUNK;
        wd_row_load_f64(row, w->y.data, w->y.dtype, at + i * stride, stride, count);
        for (int64_t j = 0; j < count; ++j) total += row[j];
    }
    return total;
}

static void finish(const struct work *w, int64_t channel, double sum)
{
    int64_t coordinates[WD_MAX_RANK] = {0, channel};
    int64_t at = wd_view_offset(&w->b, coordinates);
    wd_view_blend_f64(&w->b, at, sum, w->alpha, w->beta);
}

/* How many of the last dimensions follow each other at one stride, and their elements. */
static int trailing(const struct wd_view *y, int64_t *elements)
{
    int d = y->rank - 1;
    *elements = y->dim[d];
    for (; d > 2; --d) {
        if (y->stride[d - 1] != *elements * y->stride[y->rank - 1]) break;
        *elements *= y->dim[d - 1];
    }
    return d;
}

/* Items: channels. */
static void run_channels(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    int64_t length;
    int first = trailing(&w->y, &length);
    int64_t lines = w->y.dim[0];
    for (int d = 2; d < first; ++d) lines *= w->y.dim[d];
    for (int64_t c = begin; c < end; ++c) {
        double total = 0.0;
        for (int64_t line = 0; line < lines; ++line) {
            int64_t at[WD_MAX_RANK] = {0};
            int64_t rest = line;
            for (int d = first - 1; d >= 2; --d) {
                at[d] = rest % w->y.dim[d];
                rest /= w->y.dim[d];
            }
            at[0] = rest;
            at[1] = c;
            total += sum_line(w, wd_view_offset(&w->y, at),
                              w->y.stride[w->y.rank - 1] * w->y.vect_count, length);
        }
        finish(w, c, total);
    }
}

/* The same of `points` points that lie `pitch` apart, in any type. */
static void add_any(const struct work *w, double *total, int64_t at, int64_t pitch, int64_t points,
                    int64_t channels)
{
    float row[CONVERTED * CHANNELS_MAX];
    if (w->y.dtype == CUDNN_DATA_FLOAT) {
        add_points(total, (const float *)w->y.data + at, pitch, points, channels);
        return;
    }
    for (int64_t p = 0; p < points; p += CONVERTED) {
        int64_t now = wd_least(CONVERTED, points - p);
        for (int64_t i = 0; i < now; ++i) {
            wd_row_load_f32(row + i * channels, w->y.data, w->y.dtype, at + (p + i) * pitch, 1,
                            channels);
        }
        add_points(total, row, channels, now, channels);
    }
}

/* Items: of a block of channels a segment. */
static void run_pixels(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    int64_t length;
    int first = trailing(&w->y, &length);
    int64_t pitch = w->y.stride[w->y.rank - 1];
    int64_t points = wd_view_count(&w->y) / w->y.dim[1];
    for (int64_t item = begin; item < end; ++item) {
        int64_t segment = item % w->segments;
        int64_t c = item / w->segments * CHANNELS_MAX;
        int64_t channels = wd_least(w->y.dim[1] - c, CHANNELS_MAX);
        int64_t p = points * segment / w->segments;
        int64_t last = points * (segment + 1) / w->segments;
        double total[CHANNELS_MAX] = {0};
        while (p < last) {
            int64_t now = wd_least(length - p % length, last - p);
            int64_t at[WD_MAX_RANK] = {0};
            int64_t rest = p / length;
            for (int d = first - 1; d >= 2; --d) {
                at[d] = rest % w->y.dim[d];
                rest /= w->y.dim[d];
            }
            at[0] = rest;
            at[1] = c;
            add_any(w, total, wd_view_offset(&w->y, at) + p % length * pitch, pitch, now, channels);
            p += now;
        }
        if (w->segments > 1) {
            memcpy(w->partial + segment * w->y.dim[1] + c, total, (size_t)channels * sizeof *total);
            continue;
        }
        for (int64_t j = 0; j < channels; ++j) finish(w, c + j, total[j]);
    }
}

/* Items: channels, whose segments are added in order. */
static void add_segments(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    for (int64_t c = begin; c < end; ++c) {
        double total = 0.0;
        for (int64_t s = 0; s < w->segments; ++s) total += w->partial[s * w->y.dim[1] + c];
        finish(w, c, total);
    }
}

static bool by_pixels(const struct wd_problem *problem)
{
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, DY);
    return y->vect_count == 1 && y->stride[1] == 1 && y->stride[y->rank - 1] != 1 &&
           wd_problem_acc(problem) != WD_ACC_F64;
}

/* By the shape alone. */
static int64_t segments_of(const struct wd_problem *problem)
{
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, DY);
    int64_t channels = y->dim[1];
    int64_t points = wd_tensor_count(y) / channels;
    int64_t work = points * wd_least(channels, CHANNELS_MAX);
    int64_t most = wd_ceil_div(SEGMENTS, wd_ceil_div(channels, CHANNELS_MAX));
    most = wd_least(wd_least(most, PARTIAL_MAX / channels), points);
    return wd_clamp(work / SEGMENT_MIN, 1, wd_most(most, 1));
}

static int64_t workspace(const struct wd_problem *problem)
{
    int64_t segments = by_pixels(problem) ? segments_of(problem) : 1;
    if (segments == 1) return 0;
    return segments * wd_slot(problem->graph, problem->node, DY)->dim[1] * (int64_t)sizeof(double);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, DY);
    const struct wd_tensor *b = wd_slot(problem->graph, problem->node, DB);
    WD_NEED(wd_row_takes(y->dtype) && wd_row_takes(b->dtype), reason, NOT_SUPPORTED_DATA_TYPE,
            "%s and %s: not both of whole bytes", wd_dtype_name(y->dtype), wd_dtype_name(b->dtype));
    WD_NEED(wd_tensor_count(y) > 0, reason, NOT_SUPPORTED_SHAPE, "dy is empty");
    WD_NEED(y->rank >= 3, reason, NOT_SUPPORTED_SHAPE, "dy has %d dimensions", y->rank);
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct work w = {
        .y = wd_call_view(call, DY),
        .b = wd_call_view(call, DB),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .wide = wd_problem_acc(&call->problem) == WD_ACC_F64,
        .partial = call->workspace,
    };
    int64_t channels = w.y.dim[1];
    int64_t each = wd_view_count(&w.y) / channels;
    int64_t items;
    if (!by_pixels(&call->problem)) {
        return queue->ops->range(queue, run_channels, &w, channels, PIECE_MIN / each + 1);
    }
    w.segments = segments_of(&call->problem);
    items = w.segments * wd_ceil_div(channels, CHANNELS_MAX);
    WD_TRY(queue->ops->range(queue, run_pixels, &w, items,
                             PIECE_MIN / (each * channels / items + 1) + 1));
    if (w.segments == 1) return CUDNN_STATUS_SUCCESS;
    return queue->ops->range(queue, add_segments, &w, channels, PIECE_MIN / w.segments);
}

const struct wd_engine wd_engine_bias_grad_rows = {
    .name = "bias_grad_rows",
    .op = WD_OP_BIAS_GRAD,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
