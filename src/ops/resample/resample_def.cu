// SPDX-License-Identifier: Apache-2.0
//
// The resample definition's kernels.
#include "ops/resample/resample_args.h"
#define WD_DEF_MODULE resample_def
#define WD_DEF_BODY "ops/resample/resample_def.h"
#define WD_DEF_PASSES "ops/resample/resample_passes.def"
#include "ops/definition_device.inc"
