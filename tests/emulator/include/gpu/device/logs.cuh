// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/logs.cuh, exact where the instruction is not.
#ifndef EMULATOR_LOGS_CUH
#define EMULATOR_LOGS_CUH

#include "gpu/device/math.cuh"

static inline float wd_about_log2(float x)
{
    return emulator_flush(log2f(emulator_flush(x)));
}

#endif
