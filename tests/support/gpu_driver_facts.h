/* SPDX-License-Identifier: Apache-2.0
 *
 * The layouts that gpu/driver.h declares, for comparing with cuda.h's in a file that includes that
 * (the two headers cannot meet in one). */
#ifndef SUPPORT_GPU_DRIVER_FACTS_H
#define SUPPORT_GPU_DRIVER_FACTS_H

#include <stddef.h>

struct driver_fact {
    const char *name;
    size_t offset, field_size, type_size;
};

extern const struct driver_fact driver_facts[];
extern const size_t driver_facts_count;

#endif
