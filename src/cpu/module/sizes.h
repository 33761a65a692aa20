/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes of workspaces on the CPU, and the arithmetic of sizes. */
#ifndef WD_CPU_MODULE_SIZES_H
#define WD_CPU_MODULE_SIZES_H

#include "base/sizes.h"

enum { WD_WORKSPACE_LINE = 64 }; /* bytes: parts of a workspace begin on cache lines */

static inline int64_t wd_align_line(int64_t bytes)
{
    return wd_ceil_div(bytes, WD_WORKSPACE_LINE) * WD_WORKSPACE_LINE;
}

#endif
