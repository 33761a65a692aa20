// SPDX-License-Identifier: Apache-2.0
//
// Pointwise kernels for fp16 and bf16.
#include "ops/pointwise/pointwise_half.cuh"
#include "ops/pointwise/pointwise_flat.cuh"
#include "ops/pointwise/pointwise_straight.cuh"

#define WD_KERNELS_ROWS "ops/pointwise/pointwise_half_kernels.def"
#include "ops/kernels_device.inc"
