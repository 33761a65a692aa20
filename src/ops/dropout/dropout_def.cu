// SPDX-License-Identifier: Apache-2.0
//
// The dropout definition's kernels.
#include "ops/dropout/dropout_args.h"
#define WD_DEF_MODULE dropout_def
#define WD_DEF_BODY "ops/dropout/dropout_def.h"
#define WD_DEF_PASSES "ops/dropout/dropout_passes.def"
#include "ops/definition_device.inc"
