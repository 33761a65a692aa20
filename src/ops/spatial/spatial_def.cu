// SPDX-License-Identifier: Apache-2.0
//
// The spatial transformer's definition: its kernels.
#include "ops/spatial/spatial_args.h"
#define WD_DEF_MODULE spatial_def
#define WD_DEF_BODY "ops/spatial/spatial_def.h"
#define WD_DEF_PASSES "ops/spatial/spatial_passes.def"
#include "ops/definition_device.inc"
