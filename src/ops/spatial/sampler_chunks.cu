// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients by chunks: the kernels' entry points. Images of devices before sm_90, of which a processor
// has no room for two blocks, have empty kernels.
#include "ops/spatial/sampler_chunks.cuh"

static_assert(CHUNK_THREADS == 448, "as the rows say");

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/spatial/sampler_chunks_kernels.def"
#include "ops/kernels_device.inc"
