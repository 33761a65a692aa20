// SPDX-License-Identifier: Apache-2.0
//
// The kernel of the definition of random numbers.
#include "ops/rng/rng_args.h"
#define WD_DEF_MODULE rng_def
#define WD_DEF_BODY "ops/rng/rng_def.h"
#define WD_DEF_PASSES "ops/rng/rng_passes.def"
#include "ops/definition_device.inc"
