/* SPDX-License-Identifier: Apache-2.0
 *
 * The layouts as gpu/driver.h declares them. */
#include "support/gpu_driver_facts.h"

#include "gpu/driver.h"

const struct driver_fact driver_facts[] = {
#define WD_CU_FIELD(type, field)                                                                   \
    {#type "." #field, offsetof(type, field), sizeof(((type *)0)->field), sizeof(type)},
#include "gpu/driver.def"
};

const size_t driver_facts_count = sizeof driver_facts / sizeof driver_facts[0];
