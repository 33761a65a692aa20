/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the reduce pass, shared by host and device. */
#ifndef WD_OPS_REDUCE_ARGS_H
#define WD_OPS_REDUCE_ARGS_H

#include "base/view.h"
#include "graph/attr.h"

struct reduce_args {
    struct wd_view x;
    struct wd_view y;
    void *indices; /* null: none */
    double alpha;
    double beta;
    int64_t terms;
    int32_t axes; /* that are reduced */
    int32_t axis[WD_MAX_RANK];
    int32_t unused;
    struct wd_reduce_attr attr;
};

#endif
