/* SPDX-License-Identifier: Apache-2.0
 *
 * What calls of local response and divisive normalization compute with, shared by host and device: a
 * strength s = k + factor * a sum of squares, and its power. */
#ifndef WD_OPS_LRN_NUMBERS_H
#define WD_OPS_LRN_NUMBERS_H

/* How s^-B is computed. */
enum { LRN_POWER_ANY, LRN_POWER_HALF, LRN_POWER_THREE_QUARTERS, LRN_POWER_ONE };

#define LRN_NUMBERS(type)                                                                          \
    {                                                                                              \
        type alpha;                                                                                \
        type beta; /* what was in the outputs counts so much */                                    \
        type k;                                                                                    \
        type factor;   /* A over the elements of a window */                                       \
        type exponent; /* -B */                                                                    \
        type share;    /* -2 B factor */                                                           \
    }
struct lrn_doubles LRN_NUMBERS(double);
struct lrn_floats LRN_NUMBERS(float);

#endif
