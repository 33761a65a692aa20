/* SPDX-License-Identifier: Apache-2.0
 *
 * Small kernels of the tests' own, with their twins, and executions made of them. */
#ifndef SUPPORT_GPU_KERNELS_H
#define SUPPORT_GPU_KERNELS_H

#include "base/queue.h"
#include "support/fakecuda.h"

/* y[i] = a x[i] + b */
struct line_args {
    float *y;
    const float *x;
    float a, b;
};

struct line_size {
    int64_t count;
};

extern struct wd_kernel line_kernel;
extern struct wd_kernel other_kernel;  /* the same, by another name */
extern struct wd_kernel absent_kernel; /* of which no library holds code */

/* Makes the library forget that it has loaded them, and registers the twins. */
void gpu_kernels_reset(void);

struct wd_launch line_launch(struct wd_kernel *kernel, const struct line_args *args,
                             const struct line_size *size);

/* Executions, begin to end. The first is one kernel. The second, 2 x + 3, goes through scratch in
 * two; through_scratch_at tells where that was. */
cudnnStatus_t run_line(struct wd_queue *queue, float *y, const float *x, int64_t count);
cudnnStatus_t run_through_scratch(struct wd_queue *queue, float *y, const float *x, int64_t count);
extern _Thread_local void *through_scratch_at;

#endif
