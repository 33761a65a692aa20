// SPDX-License-Identifier: Apache-2.0
//
// The convolution definition's kernels.
#include "graph/pointwise_modes.h"
#include "ops/conv/conv_args.h"
#include "ops/pointwise/pointwise_args.h"
#define WD_DEF_MODULE conv_def
#define WD_DEF_BODY "ops/conv/conv_def.h"
#define WD_DEF_PASSES "ops/conv/conv_passes.def"
#include "ops/definition_device.inc"
