/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the pointwise passes, shared by host and device. */
#ifndef WD_OPS_POINTWISE_ARGS_H
#define WD_OPS_POINTWISE_ARGS_H

#include "base/view.h"
#include "graph/attr.h"
#include "graph/pointwise_modes.h"

struct pointwise_args {
    struct wd_view x;
    struct wd_view b;
    struct wd_view t;
    struct wd_view y;
    double alpha1;
    double alpha2;
    double alpha;
    double beta;
    int32_t has_t;
    int32_t per_item; /* elements of y that share a byte: 1, 2 or 8, consecutive in memory */
    int32_t order[WD_MAX_RANK]; /* of y's dimensions in memory */
    struct wd_pointwise_attr attr;
};

#endif
