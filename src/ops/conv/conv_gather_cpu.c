/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves what output points see into matrices, in float and in double. Pure functions on the caller's
 * memory. */
#include <string.h>

#include "base/dtype.h"
#include "cpu/module/rows.h"
#include "cpu/module/simd.h"
#include "ops/conv/conv_walk_cpu.h"

static int64_t taps_of(const struct wd_conv_axis *axis)
{
    return axis[0].taps * axis[1].taps * axis[2].taps;
}

/* Where tap `tap` (of the row-major order of taps) reads, relative to a point times its step. */
static void offsets_of(const struct wd_conv_axis *axis, int64_t tap, int64_t *offset)
{
    for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
        offset[d] = axis[d].offset + tap % axis[d].taps * axis[d].offset_step;
        tap /= axis[d].taps;
    }
}

/* Points [*low, *high) of an axis that read inside an extent, at this offset. */
static void inside(const struct wd_conv_axis *axis, int64_t offset, int64_t extent, int64_t *low,
                   int64_t *high)
{
    int64_t last = extent - 1 - offset;
    *low = offset >= 0 ? 0 : (-offset + axis->step - 1) / axis->step;
    *high = last < 0 ? 0 : last / axis->step + 1;
    if (*high > axis->points) *high = axis->points;
    if (*low > *high) *low = *high;
}

#define WD_REALS_BODY "ops/conv/conv_gather_cpu.inc"
#include "ops/reals.inc"
