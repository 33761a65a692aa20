// SPDX-License-Identifier: Apache-2.0
//
// Chains of pointwise operations on mixtures of floating types.
#include "ops/pointwise/pointwise_args.h"

#define WD_DEF_BODY "ops/pointwise/pointwise_def.h"
#include "ops/definition_body.inc"
#define WD_POINTWISE_VALUE pw_value_f32
#include "ops/pointwise/pointwise_chain.cuh"

#define WD_KERNELS_ROWS "ops/pointwise/pointwise_chain_kernels.def"
#include "ops/kernels_device.inc"
