// SPDX-License-Identifier: Apache-2.0
//
// The batch normalization definitions' kernels.
#include "ops/norm/norm_args.h"
#define WD_DEF_MODULE norm_def
#define WD_DEF_BODY "ops/norm/norm_def.h"
#define WD_DEF_PASSES "ops/norm/norm_passes.def"
#include "ops/definition_device.inc"
