/* SPDX-License-Identifier: Apache-2.0
 *
 * Division of 31-bit numbers by one that is known beforehand, as a multiplication and a shift.
 * Source: T. Granlund and P. Montgomery, "Division by invariant integers using multiplication",
 * PLDI 1994, with a 33-bit multiplier. Made on the host, used on both sides. */
#ifndef WD_BASE_FASTDIV_H
#define WD_BASE_FASTDIV_H

#include "base/shared.h"

struct wd_fastdiv {
    uint32_t divisor;
    uint32_t multiplier; /* less 2^32 */
    uint32_t shift;
};

/* For 1 <= divisor < 2^31; 0, which callers exclude, is as 1. */
static inline struct wd_fastdiv wd_fastdiv_of(uint32_t divisor)
{
    struct wd_fastdiv d = {divisor > 0 ? divisor : 1, 0, 0};
    while (((uint64_t)1 << d.shift) < d.divisor) d.shift += 1;
    d.multiplier =
        (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << d.shift) - d.divisor)) / d.divisor + 1);
    return d;
}

/* n / divisor, for n < 2^31. */
WD_FN uint32_t wd_fastdiv_quotient(uint32_t n, struct wd_fastdiv d)
{
#if WD_ON_DEVICE
    return (__umulhi(n, d.multiplier) + n) >> d.shift;
#else
    return (uint32_t)((((uint64_t)n * d.multiplier) >> 32) + n) >> d.shift;
#endif
}

#endif
