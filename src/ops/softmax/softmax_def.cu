// SPDX-License-Identifier: Apache-2.0
//
// The softmax definition's kernels.
#include "ops/softmax/softmax_args.h"
#define WD_DEF_MODULE softmax_def
#define WD_DEF_BODY "ops/softmax/softmax_def.h"
#define WD_DEF_PASSES "ops/softmax/softmax_passes.def"
#include "ops/definition_device.inc"
