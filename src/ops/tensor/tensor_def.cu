// SPDX-License-Identifier: Apache-2.0
//
// The transform definition's kernels.
#include "ops/tensor/tensor_args.h"
#define WD_DEF_MODULE tensor_def
#define WD_DEF_BODY "ops/tensor/tensor_def.h"
#define WD_DEF_PASSES "ops/tensor/tensor_passes.def"
#include "ops/definition_device.inc"
