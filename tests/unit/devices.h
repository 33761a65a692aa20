/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that are only described, as initializers with a number of processors, for tests of what is a pure
 * function of problem and device. */
#ifndef TESTS_UNIT_DEVICES_H
#define TESTS_UNIT_DEVICES_H

/* sm_90, and what is newer and as large */
#define DEVICE_NEW(version, processors)                                                            \
    {                                                                                              \
        .kind = WD_GPU, .capability = (version), .multiprocessors = (processors),                  \
        .shared_per_block = 232448, .shared_per_processor = 233472, .l2_bytes = 62914560,          \
        .cooperative = true, .grids_meet = true                                                    \
    }
/* sm_120: less shared memory */
#define DEVICE_NEWER(version, processors)                                                          \
    {                                                                                              \
        .kind = WD_GPU, .capability = (version), .multiprocessors = (processors),                  \
        .shared_per_block = 101376, .shared_per_processor = 102400, .l2_bytes = 100663296,         \
        .cooperative = true, .grids_meet = true                                                    \
    }
/* sm_80: no clusters */
#define DEVICE_OLD(processors)                                                                     \
    {                                                                                              \
        .kind = WD_GPU, .capability = 80, .multiprocessors = (processors),                         \
        .shared_per_block = 166912, .shared_per_processor = 167936, .l2_bytes = 41943040,          \
        .cooperative = true, .grids_meet = true                                                    \
    }
/* sm_86, whose grids do not meet */
#define DEVICE_SMALL(processors)                                                                   \
    {                                                                                              \
        .kind = WD_GPU, .capability = 86, .multiprocessors = (processors),                         \
        .shared_per_block = 101376, .shared_per_processor = 102400                                 \
    }

#endif
