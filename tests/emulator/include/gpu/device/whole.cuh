// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/whole.cuh: what means nothing there is as strange here.
#ifndef EMULATOR_WHOLE_CUH
#define EMULATOR_WHOLE_CUH

#include <math.h>
#include <stdint.h>

struct wd_whole {
    float value;
    int number;
};
static inline wd_whole emulator_whole(float value)
{
    const bool known = fabsf(value) <= 1 << 22;
    return {known ? value : NAN, known ? (int)value : 0x7b7b7b7b};
}
static inline wd_whole wd_round_down(float x)
{
    return emulator_whole(floorf(x));
}
static inline wd_whole wd_round_up(float x)
{
    return emulator_whole(ceilf(x));
}

#endif
