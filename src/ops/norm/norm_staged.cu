// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm of samples, most of which the chip holds (norm_staged_args.h): a warp asks for rounds, a
// group of warps adds them up, another writes. Images of devices without bulk copies have empty kernels.
#include "ops/norm/norm_staged_back.cuh"
#include "ops/norm/norm_staged_forward.cuh"

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_staged_kernels.def"
#include "ops/kernels_device.inc"
