/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts matrices of sums into images, in float and in double: scales, adds what was there or a
 * residual, adds the bias, activates, converts. Pure functions on the caller's memory. */
#include <string.h>

#include "base/dtype.h"
#include "cpu/module/rows.h"
#include "cpu/module/simd.h"
#include "cpu/module/stream.h"
#include "ops/conv/conv_walk_cpu.h"
#include "ops/pointwise/pointwise_args.h"

/* The activations are the definition's. */
#define WD_DEF_BODY "ops/pointwise/pointwise_def.h"
#include "ops/definition_body.inc"

enum {
    CHUNK = 512,  /* elements that are combined at once */
    LINES = 4096, /* elements of whole lines that are put out at once */
};

/* Where the pixels that a point owns begin and end along a dimension. */
static int64_t owned_from(const struct wd_conv_axis *axis, int64_t point)
{
    return point * axis->to_step;
}

static int64_t owned_to(const struct wd_conv_axis *axis, int64_t point, int64_t extent)
{
    int64_t end = (point + 1) * axis->to_step;
    return point == axis->points - 1 || end > extent ? extent : end;
}

/* Outputs beyond the caches that are written whole need not be read for it. */
static bool streams(const struct wd_conv_scatter *s)
{
    return s->fill && s->to->elements * (wd_dtype_bits(s->to->dtype) / 8) >= WD_STREAM_BYTES;
}

static void put_zeros(char *to, int64_t bytes, bool stream)
{
    static const char zeros[4096];
    if (!stream) {
        memset(to, 0, (size_t)bytes);
        return;
    }
    for (int64_t i = 0; i < bytes; i += (int64_t)sizeof zeros) {
        wd_stream(to + i, zeros, (size_t)wd_least(bytes - i, (int64_t)sizeof zeros));
    }
}

/* Zeros into the pixels owned by `run` points from `w` on, of `channels` channels from element `at`
 * on; these or the pixels of a line lie side by side. Of the line that the points themselves are in,
 * either all pixels are left out or, where there is one point, its own. */
static void fill_owned(const struct wd_conv_image *to, const struct wd_conv_axis *axis,
                       const struct walk *w, int64_t run, int64_t at, int64_t channels,
                       bool leave_line, bool stream)
{
    int64_t size = wd_dtype_bits(to->dtype) / 8;
    int64_t column = owned_from(&axis[2], w->at[2]);
    int64_t column_end = owned_to(&axis[2], w->at[2] + run - 1, to->extent[2]);
    bool side_by_side = to->space[2] == channels;
    for (int64_t d = owned_from(&axis[0], w->at[0]);
         d < owned_to(&axis[0], w->at[0], to->extent[0]); ++d) {
        for (int64_t h = owned_from(&axis[1], w->at[1]);
             h < owned_to(&axis[1], w->at[1], to->extent[1]); ++h) {
            bool own = d == w->at[0] * axis[0].to_step + axis[0].to_first &&
                       h == w->at[1] * axis[1].to_step + axis[1].to_first;
            char *line = (char *)to->data + (at + d * to->space[0] + h * to->space[1]) * size;
            if (own && leave_line) continue;
            if (side_by_side && (!own || run > 1)) {
                put_zeros(line + column * channels * size, (column_end - column) * channels * size,
                          stream);
                continue;
            }
            for (int64_t c = column; c < column_end; ++c) {
                if (own && run == 1 && c == w->at[2] * axis[2].to_step + axis[2].to_first) continue;
                put_zeros(line + c * to->space[2] * size, channels * size, stream);
            }
        }
    }
}

#define WD_REALS_BODY "ops/conv/conv_scatter_cpu.inc"
#include "ops/reals.inc"
