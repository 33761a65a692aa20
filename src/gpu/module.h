/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels: loaded when first used, for all devices of a capability and all contexts at once. Safe for threads and legal
 * while a stream captures. */
#ifndef WD_GPU_MODULE_H
#define WD_GPU_MODULE_H

#include "gpu/context.h"

/* The place of what is loaded for devices of a capability; -1 where the process uses too many kinds. */
int wd_module_place(int capability);

/* The kernel of a launch, loaded and allowed the shared memory that the launch asks for on the
 * queue's device. The queue's context is current. */
cudnnStatus_t wd_kernel_get(const struct wd_gpu_queue *queue, const struct wd_launch *launch,
                            CUkernel *kernel);

#endif
