// SPDX-License-Identifier: Apache-2.0
//
// norm_clusters forward by two blocks a processor, of half the threads and half the room each: while one adds up and meets, the other
// moves data.
#define NORM_CLUSTERS_AT_ONCE 2
#include "ops/norm/norm_clusters_forward.cuh"

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_halves_clusters_kernels.def"
#include "ops/kernels_device.inc"
