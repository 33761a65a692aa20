/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the architectures that the kernels were compiled for serves a device: CUDA's rules.
 * Machine code runs on its own major version from its minor version on (sm_80 on 8.6); with the
 * letter a on exactly that device, with f within its family. PTX is compiled by the driver for what
 * is as new or newer; with a letter as above. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

static bool serves(const char *digits, int capability, bool is_ptx)
{
    char *end;
    int arch = (int)strtol(digits, &end, 10);
    if (*end == 'a') return arch == capability;
    if (*end == 'f' || !is_ptx) return arch / 10 == capability / 10 && arch <= capability;
    return arch <= capability;
}

enum coverage coverage_of(int capability, const char *archs, char *by, int size)
{
    enum coverage best = COVER_NONE;
    if (by) by[0] = '\0';
    while (*archs) {
        int length = (int)strcspn(archs, " ");
        bool is_ptx = text_starts(archs, "compute_");
        const char *digits = archs + strlen(is_ptx ? "compute_" : "sm_");
        enum coverage this = is_ptx ? COVER_JIT : COVER_NATIVE;
        if (this < best && serves(digits, capability, is_ptx)) {
            best = this;
            if (by) snprintf(by, (size_t)size, "%.*s", length, archs);
        }
        archs += length;
        while (*archs == ' ') archs += 1;
    }
    return best;
}
