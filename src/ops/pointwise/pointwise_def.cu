// SPDX-License-Identifier: Apache-2.0
//
// The pointwise definition's kernels.
#include "ops/pointwise/pointwise_args.h"
#define WD_DEF_MODULE pointwise_def
#define WD_DEF_BODY "ops/pointwise/pointwise_def.h"
#define WD_DEF_PASSES "ops/pointwise/pointwise_passes.def"
#include "ops/definition_device.inc"
