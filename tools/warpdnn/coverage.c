/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the architectures that the kernels were compiled for serves a device. */
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "gpu/arch.h"

enum coverage coverage_of(int capability, const char *archs, char *by, int size)
{
    int best = 0;
    if (by) by[0] = '\0';
    while (*archs) {
        int length = (int)strcspn(archs, " ");
        int rank = wd_arch_rank(archs, capability);
        if (rank > best) {
            best = rank;
            if (by) snprintf(by, (size_t)size, "%.*s", length, archs);
        }
        archs += length;
        while (*archs == ' ') archs += 1;
    }
    if (best == 0) return COVER_NONE;
    return wd_arch_is_native(best) ? COVER_NATIVE : COVER_JIT;
}
