// SPDX-License-Identifier: Apache-2.0
//
// The reduce definition's kernels.
#include "ops/reduce/reduce_args.h"
#define WD_DEF_MODULE reduce_def
#define WD_DEF_BODY "ops/reduce/reduce_def.h"
#define WD_DEF_PASSES "ops/reduce/reduce_passes.def"
#include "ops/definition_device.inc"
