// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm over rows without gaps at the speed of memory: a row is read once, by a warp,
// a group of warps or a cluster that stays and walks on, with the next rows on their way to shared
// memory and the parameters of its columns in registers. What a row's warps found is joined while they
// look at the next one. Sums are joined in an order that depends on the shape and the device alone.
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "ops/norm/norm_plain.cuh"
#include "ops/norm/norm_rows_drawn.cuh"
#include "ops/norm/norm_rows_odd_drawn.cuh"
#include "ops/norm/norm_rows_parted.cuh"

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_rows_kernels.def"
#include "ops/kernels_device.inc"
