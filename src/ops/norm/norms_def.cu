// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the definitions of the backend's normalizations and batch norm statistics.
#include "ops/norm/norms_args.h"
#define WD_DEF_MODULE norms_def
#define WD_DEF_BODY "ops/norm/norms_def.h"
#define WD_DEF_PASSES "ops/norm/norms_passes.def"
#include "ops/definition_device.inc"
