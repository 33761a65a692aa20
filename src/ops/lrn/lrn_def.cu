// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the definition of local response and divisive normalization.
#include "ops/lrn/lrn_args.h"
#define WD_DEF_MODULE lrn_def
#define WD_DEF_BODY "ops/lrn/lrn_def.h"
#define WD_DEF_PASSES "ops/lrn/lrn_passes.def"
#include "ops/definition_device.inc"
