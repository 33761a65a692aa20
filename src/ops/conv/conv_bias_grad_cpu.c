/* SPDX-License-Identifier: Apache-2.0
 *
 * The bias gradient on the CPU: the sum of dy over images and points, for each filter. Runs along
 * whatever lies side by side: a channel's points, or a point's channels. Sums are of a bounded number
 * of elements in the type of the sum, of all in double. Where a batch has fewer filters than there
 * are threads the work is not split further: it is bound by memory. A task is a channel or a block of
 * channels; results do not depend on the number of threads. */
#include <string.h>

#include "cpu/module/rows.h"
#include "cpu/module/simd.h"
#include "ops/engine.h"

enum { DY, DB };
enum { ALPHA, BETA };
enum {
    LANES = 16,
    CHUNK = 1024,       /* elements converted at once */
    CHANNELS_MAX = 256, /* of a block */
    ROWS = 64,          /* points summed in single precision */
};

struct work {
    struct wd_view y;
    struct wd_view b;
    double alpha;
    double beta;
    bool wide;
    bool pixels;   /* channels lie side by side */
    int64_t block; /* of channels */
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

WD_SIMD static void add_run(float *restrict sum, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) sum[i] += from[i];
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

/* Items: blocks of channels. */
static void run_pixels(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    float sum[CHANNELS_MAX];
    float row[CHANNELS_MAX];
    double total[CHANNELS_MAX];
    int64_t points = w->y.dim[0];
    for (int d = 2; d < w->y.rank; ++d) points *= w->y.dim[d];
    for (int64_t item = begin; item < end; ++item) {
        int64_t c = item * w->block;
        int64_t channels = w->y.dim[1] - c < w->block ? w->y.dim[1] - c : w->block;
        memset(total, 0, sizeof total);
        for (int64_t p = 0; p < points; p += ROWS) {
            int64_t rows = points - p < ROWS ? points - p : ROWS;
            memset(sum, 0, sizeof sum);
            for (int64_t i = p; i < p + rows; ++i) {
                int64_t at[WD_MAX_RANK] = {0};
                int64_t rest = i;
                int64_t offset;
                for (int d = w->y.rank - 1; d >= 2; --d) {
                    at[d] = rest % w->y.dim[d];
                    rest /= w->y.dim[d];
                }
                at[0] = rest;
                at[1] = c;
                offset = wd_view_offset(&w->y, at);
                if (w->y.dtype == CUDNN_DATA_FLOAT) {
                    add_run(sum, (const float *)w->y.data + offset, channels);
                } else {
                    wd_row_load_f32(row, w->y.data, w->y.dtype, offset, 1, channels);
                    add_run(sum, row, channels);
                }
            }
            for (int64_t j = 0; j < channels; ++j) total[j] += (double)sum[j];
        }
        for (int64_t j = 0; j < channels; ++j) finish(w, c + j, total[j]);
    }
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
    int threads = call->problem.device->multiprocessors;
    struct work w = {
        .y = wd_call_view(call, DY),
        .b = wd_call_view(call, DB),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .wide = wd_problem_acc(&call->problem) == WD_ACC_F64,
    };
    int64_t each = wd_view_count(&w.y) / w.y.dim[1];
    int64_t grain = each > 20000 ? 1 : 20000 / each + 1;
    w.pixels =
        w.y.vect_count == 1 && w.y.stride[1] == 1 && w.y.stride[w.y.rank - 1] != 1 && !w.wide;
    if (!w.pixels) return queue->ops->range(queue, run_channels, &w, w.y.dim[1], grain);
    w.block = (w.y.dim[1] + threads - 1) / threads;
    w.block = w.block < LANES ? LANES : w.block > CHANNELS_MAX ? CHANNELS_MAX : w.block;
    return queue->ops->range(queue, run_pixels, &w, (w.y.dim[1] + w.block - 1) / w.block,
                             grain > w.block ? grain / w.block : 1);
}

const struct wd_engine wd_engine_bias_grad_rows = {
    .name = "bias_grad_rows",
    .op = WD_OP_BIAS_GRAD,
    .device = WD_CPU,
    .match = match,
    .emit = emit,
};
