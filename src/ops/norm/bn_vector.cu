// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization at the speed of memory: sums of segments, what follows from them for every
// parameter, and one more walk that writes. Forward reads x twice, backward x and dy. Sums are added
// in an order that depends on the shape alone.
#include "ops/norm/bn_columns.cuh"
#include "ops/norm/bn_planes.cuh"

// left alone the compiler takes registers that cost blocks
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/bn_vector_kernels.def"
#include "ops/kernels_device.inc"
