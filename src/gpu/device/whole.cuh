// SPDX-License-Identifier: Apache-2.0
//
// Numbers of single precision next to whole ones; and a vote.
#ifndef WD_GPU_DEVICE_WHOLE_CUH
#define WD_GPU_DEVICE_WHOLE_CUH

#include <stdint.h>

// A whole number in both forms, of one that is less than 2^22 either way; of others neither means anything. An addition whose
// sum has no room for a fraction, where the instructions that convert have a quarter of its rate or less.
struct wd_whole {
    float value;
    int number;
};
static __device__ __forceinline__ wd_whole wd_round_down(float x)
{
    constexpr float LARGE = 3 << 22;
    const float sum = __fadd_rd(x, LARGE);
    return {sum - LARGE, __float_as_int(sum) - 0x4b400000};
}
static __device__ __forceinline__ wd_whole wd_round_up(float x)
{
    constexpr float LARGE = 3 << 22;
    const float sum = __fadd_ru(x, LARGE);
    return {sum - LARGE, __float_as_int(sum) - 0x4b400000};
}

#endif
