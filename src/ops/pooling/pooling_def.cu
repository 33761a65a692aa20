// SPDX-License-Identifier: Apache-2.0
//
// The pooling definition's kernels.
#include "ops/pooling/pooling_args.h"
#define WD_DEF_MODULE pooling_def
#define WD_DEF_BODY "ops/pooling/pooling_def.h"
#define WD_DEF_PASSES "ops/pooling/pooling_passes.def"
#include "ops/definition_device.inc"
