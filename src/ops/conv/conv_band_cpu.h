/* SPDX-License-Identifier: Apache-2.0
 *
 * A band of lines of one channel, for the depthwise engines: copied with zeros around it, and where
 * the stride is not 1 with its columns sorted by their remainder, so that each tap reads a contiguous
 * run for each output line, and for stride 1 one run for the whole band. */
#ifndef WD_OPS_CONV_BAND_CPU_H
#define WD_OPS_CONV_BAND_CPU_H

#include "ops/conv/conv_cpu.h"

/* Elements of a band; WD_CONV_BAND_SLACK more stand behind it, for kernels that read whole vectors. */
enum { WD_CONV_BAND = 8192, WD_CONV_BAND_SLACK = 64 };

struct wd_conv_band {
    const struct wd_conv_axis *lines;
    const struct wd_conv_axis *columns;
    int64_t pitch; /* between lines of the band */
    int64_t run;   /* columns of one remainder */
    int64_t left;  /* zeros before column 0 */
    int64_t top;   /* the smallest offset of a tap's line */
    int64_t span;  /* lines that one output line sees */
    int64_t most;  /* output lines that fit; 0: not one */
};

struct wd_conv_band wd_conv_band_of(const struct wd_conv_axis *lines,
                                    const struct wd_conv_axis *columns);

/* What output lines [first, first + count) see of a plane of `height` x `width`, lines `stride`
 * apart. */
void wd_conv_band_fill(const struct wd_conv_band *band, const float *plane, int64_t stride,
                       int64_t height, int64_t width, int64_t first, int64_t count, float *to);

/* Where tap (t, u) of the first output line begins; that of the next is band->pitch times the lines'
 * step further. */
int64_t wd_conv_band_tap(const struct wd_conv_band *band, int64_t t, int64_t u);

/* Whether output lines are as far apart as the band's, so that all are one run. */
static inline bool wd_conv_band_whole(const struct wd_conv_band *band)
{
    return band->lines->step == 1 && band->columns->step == 1;
}

#endif
