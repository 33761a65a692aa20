/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills bands of lines for the depthwise engines. Pure functions on the caller's memory. */
#include "ops/conv/conv_band_cpu.h"

#include <string.h>

/* The smallest and largest offset of an axis' taps. */
static void reach(const struct wd_conv_axis *axis, int64_t *low, int64_t *high)
{
    int64_t last = axis->offset + (axis->taps - 1) * axis->offset_step;
    *low = axis->offset < last ? axis->offset : last;
    *high = axis->offset < last ? last : axis->offset;
}

struct wd_conv_band wd_conv_band_of(const struct wd_conv_axis *lines,
                                    const struct wd_conv_axis *columns)
{
    struct wd_conv_band band = {.lines = lines, .columns = columns};
    int64_t low;
    int64_t high;
    int64_t width;
    if (lines->taps < 1 || columns->taps < 1) return band;
    reach(columns, &low, &high);
    band.left = low < 0 ? -low : 0;
    width = (columns->points - 1) * columns->step + high + band.left + 1;
    if (width < 1) width = 1;
    band.run = (width + columns->step - 1) / columns->step;
    band.pitch = band.run * columns->step;
    reach(lines, &low, &high);
    band.top = low;
    band.span = high - low + 1;
    if (band.span * band.pitch > WD_CONV_BAND) return band;
    band.most = (WD_CONV_BAND / band.pitch - band.span) / lines->step + 1;
    return band;
}

void wd_conv_band_fill(const struct wd_conv_band *band, const float *plane, int64_t stride,
                       int64_t height, int64_t width, int64_t first, int64_t count, float *to)
{
    int64_t step = band->columns->step;
    int64_t lines = (count - 1) * band->lines->step + band->span;
    for (int64_t l = 0; l < lines; ++l) {
        int64_t line = first * band->lines->step + band->top + l;
        const float *from = plane + line * stride;
        float *row = to + l * band->pitch;
        if (line < 0 || line >= height) {
            memset(row, 0, (size_t)band->pitch * sizeof *row);
            continue;
        }
        for (int64_t r = 0; r < step; ++r, row += band->run) {
            /* entry i is column i step + r - left */
            int64_t low = (band->left - r + step - 1) / step;
            int64_t high = (width - 1 + band->left - r) / step + 1;
            if (width + band->left <= r) high = 0;
            if (low < 0) low = 0;
            if (low > band->run) low = band->run;
            if (high > band->run) high = band->run;
            if (high < low) high = low;
            for (int64_t i = 0; i < low; ++i) row[i] = 0.0F;
            if (step == 1) {
                memcpy(row + low, from + low - band->left, (size_t)(high - low) * sizeof *row);
            } else {
                for (int64_t i = low; i < high; ++i) row[i] = from[i * step + r - band->left];
            }
            for (int64_t i = high; i < band->run; ++i) row[i] = 0.0F;
        }
    }
}

int64_t wd_conv_band_tap(const struct wd_conv_band *band, int64_t t, int64_t u)
{
    int64_t line = band->lines->offset + t * band->lines->offset_step - band->top;
    int64_t column = band->columns->offset + u * band->columns->offset_step + band->left;
    int64_t step = band->columns->step;
    return line * band->pitch + column % step * band->run + column / step;
}
