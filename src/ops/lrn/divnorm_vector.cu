// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization: the kernels' entry points.
#include "ops/lrn/divnorm_vector.cuh"

// Registers of 20 blocks a processor, where windows are short; nvcc would take a few more.
#define WD_KERNELS_BOUNDS(threads, registers) threads, (registers) == 96 ? 20 : 0
#define WD_KERNELS_ROWS "ops/lrn/divnorm_vector_kernels.def"
#include "ops/kernels_device.inc"
