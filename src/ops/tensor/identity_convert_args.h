/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the identity_convert kernels, shared by host and device. Both tensors are one piece of
 * memory in one order, cut into units of four elements from `shift` elements before y on. */
#ifndef WD_OPS_IDENTITY_CONVERT_ARGS_H
#define WD_OPS_IDENTITY_CONVERT_ARGS_H

#include "base/shared.h"

enum {
    CONVERT_THREADS = 256,
    CONVERT_ELEMENTS = 4, /* of a unit: 16 bytes of the wider type */
    CONVERT_UNITS = 8,    /* of a thread */
};

struct convert_args {
    const void *x;
    void *y;
    int64_t count; /* elements */
    int64_t units;
    int32_t shift; /* elements between y and the boundary of a unit before it */
    int32_t alike; /* x begins as far behind one */
    int32_t streaming;
};

#endif
