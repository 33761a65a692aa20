// SPDX-License-Identifier: Apache-2.0
//
// Local response normalization along channels of planes: the kernels' entry points. Their budgets of
// registers leave room for as many blocks as shared memory does.
#include "ops/lrn/lrn_walk.cuh"

#define WD_KERNELS_ROWS "ops/lrn/lrn_walk_kernels.def"
#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#include "ops/kernels_device.inc"
