/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices that the unit tests of reduce cut for, which are only described, and random numbers of 64 bits. */
#ifndef TESTS_UNIT_REDUCE_DEVICES_H
#define TESTS_UNIT_REDUCE_DEVICES_H

#include <stdint.h>
#include <stdlib.h>

#include "devices.h"

static const struct wd_device devices[] = {
    DEVICE_NEW(90, 132), DEVICE_NEW(90, 114), DEVICE_NEW(100, 148), DEVICE_NEW(90, 2),
    DEVICE_SMALL(2),     DEVICE_SMALL(84),    DEVICE_OLD(108),
};
enum { DEVICES = sizeof devices / sizeof devices[0] };

static int64_t any(int64_t low, int64_t high)
{
    return low + (((int64_t)rand() << 31) ^ rand()) % (high - low + 1);
}

#endif
