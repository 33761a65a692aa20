// SPDX-License-Identifier: Apache-2.0
//
// The kernels of norm_wide.cuh and norm_wide_forward.cuh.
#include "ops/norm/norm_wide_forward.cuh"

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_wide_kernels.def"
#include "ops/kernels_device.inc"
