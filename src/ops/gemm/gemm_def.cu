// SPDX-License-Identifier: Apache-2.0
//
// The matmul definition's kernels.
#include "ops/gemm/matmul_args.h"
#define WD_DEF_MODULE gemm_def
#define WD_DEF_BODY "ops/gemm/matmul_def.h"
#define WD_DEF_PASSES "ops/gemm/gemm_passes.def"
#include "ops/definition_device.inc"
