// SPDX-License-Identifier: Apache-2.0
//
// Chains of pointwise operations on fp16, or bf16, throughout.
#include "ops/pointwise/pointwise_half.cuh"
#include "ops/pointwise/pointwise_chain.cuh"
#include "ops/pointwise/pointwise_straight.cuh"

#define WD_KERNELS_ROWS "ops/pointwise/pointwise_chain_half_kernels.def"
#include "ops/kernels_device.inc"
