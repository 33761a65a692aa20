/* SPDX-License-Identifier: Apache-2.0
 *
 * How gather and scatter go through the points of a domain. */
#ifndef WD_OPS_CONV_WALK_CPU_H
#define WD_OPS_CONV_WALK_CPU_H

#include "cpu/module/sizes.h"
#include "ops/conv/conv_cpu.h"

/* A point of the domain, as it is walked in row-major order. */
struct walk {
    int64_t at[WD_CONV_SPATIAL];
};

static inline struct walk walk_from(const struct wd_conv_axis *axis, int64_t point)
{
    struct walk w;
    w.at[2] = point % axis[2].points;
    point /= axis[2].points;
    w.at[1] = point % axis[1].points;
    w.at[0] = point / axis[1].points;
    return w;
}

/* Past the end of a line. */
static inline void walk_line(const struct wd_conv_axis *axis, struct walk *w)
{
    w->at[2] = 0;
    if (++w->at[1] < axis[1].points) return;
    w->at[1] = 0;
    w->at[0] += 1;
}

#endif
