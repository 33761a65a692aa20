// SPDX-License-Identifier: Apache-2.0
//
// Pointwise kernels for fp32 throughout, and for any mixture of types computed in fp32.
#include "ops/pointwise/pointwise_args.h"

#define WD_DEF_BODY "ops/pointwise/pointwise_def.h"
#include "ops/definition_body.inc"
#define WD_POINTWISE_VALUE pw_value_f32
#include "ops/pointwise/pointwise_any.cuh"
#include "ops/pointwise/pointwise_flat.cuh"
#include "ops/pointwise/pointwise_straight.cuh"

// what is called keeps registers of its caller: without more of them it spills
#define WD_KERNELS_BOUNDS(threads, registers) threads, (registers) == 60 ? 4 : 0
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_vector_kernels.def"
#include "ops/kernels_device.inc"
