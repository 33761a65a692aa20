// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums and gradients of maxima by rings of lines, images that are enlarged: the instances.
#include "ops/resample/resample_ring.cuh"
#include "ops/resample/resample_ring_down.cuh"
#include "ops/resample/resample_ring_pick.cuh"
#include "ops/resample/resample_ring_runs.cuh"
#include "ops/resample/resample_ring_scatter.cuh"
#include "ops/resample/resample_ring_words.cuh"
#include "ops/resample/resample_up.cuh"
#include "ops/resample/resample_warp_pick.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/resample/resample_ring_kernels.def"
#include "ops/kernels_device.inc"
