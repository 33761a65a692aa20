/* SPDX-License-Identifier: Apache-2.0
 *
 * Which code runs on which device: CUDA's rules. Machine code runs on its own major version from its
 * minor version on (sm_80 on 8.6); with the letter a on exactly that device, with f within its family.
 * PTX is compiled by the driver for what is as new or newer; with a letter as above. Also read by the
 * warpdnn command, which links none of the library. */
#ifndef WD_GPU_ARCH_H
#define WD_GPU_ARCH_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* `arch` as nvcc spells it ("sm_90a", "compute_90"), up to a space or the end; `capability` is
 * 10 * major + minor. 0 where it does not run, else the larger the better: all machine code before
 * all PTX, then what is newer. */
static inline int wd_arch_rank(const char *arch, int capability)
{
    const bool is_ptx = strncmp(arch, "compute_", 8) == 0;
    char *end;
    int number = (int)strtol(arch + (is_ptx ? 8 : 3), &end, 10);
    bool runs = number <= capability;
    if (*end == 'a') runs = number == capability;
    else if (*end == 'f' || !is_ptx) runs = runs && number / 10 == capability / 10;
    return runs ? (is_ptx ? 0 : 1 << 16) + 2 * number + (*end == 'a') : 0;
}

static inline bool wd_arch_is_native(int rank)
{
    return rank >= 1 << 16;
}

#endif
