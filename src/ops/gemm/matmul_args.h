/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the matmul passes, shared by host and device. */
#ifndef WD_OPS_GEMM_MATMUL_ARGS_H
#define WD_OPS_GEMM_MATMUL_ARGS_H

#include "base/view.h"

struct matmul_args {
    struct wd_view a;
    struct wd_view b;
    struct wd_view c;
    struct wd_view m; /* sizes of each batch entry that override M, N, K; rank 0 where absent */
    struct wd_view n;
    struct wd_view k;
    double alpha;
    double beta;
    double padding; /* what c holds beyond the overriding M and N */
};

#endif
