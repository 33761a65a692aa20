// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm, channels first, and batch norm of planes, of large shares, each held by a block alone or a cluster from its one reading to its one
// writing. norm_clusters_args.h says who has what, norm_clusters_device.cuh how blocks meet.
#include "ops/norm/norm_clusters_backward.cuh"
#include "ops/norm/norm_clusters_forward.cuh"

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_clusters_kernels.def"
#include "ops/kernels_device.inc"
