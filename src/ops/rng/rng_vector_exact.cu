// SPDX-License-Identifier: Apache-2.0
//
// Random tensors in one pass over y, 16 bytes a store. Values are the definition's, bit for bit: the
// same functions make them (rng_numbers.h), and so this file is compiled without contraction.
#include "ops/rng/rng_channels.cuh"
#include "ops/rng/rng_flat.cuh"

// Kernels of few registers, which normal numbers of 16 bits have, by as many threads as there can be.
#define WD_KERNELS_BOUNDS(threads, registers)                                                      \
    threads, (registers) <= 40 ? 65536 / ((threads) * (registers)) : 0
#define WD_KERNELS_ROWS "ops/rng/rng_vector_exact_kernels.def"
#include "ops/kernels_device.inc"
