// SPDX-License-Identifier: Apache-2.0
//
// The sampler of planes: the kernels' entry points. Their budget of registers is used, so that the
// loads of a place are under way together: left to itself the compiler takes 32 and waits for each pair.
#include "ops/spatial/sampler_planes.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/spatial/sampler_planes_kernels.def"
#include "ops/kernels_device.inc"
