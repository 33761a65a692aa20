/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files a process has mapped that tell on which libcudnn it runs: libcudnn*.so*, our CPU
 * module, and the CUDA driver's library. No memory is allocated and nothing is kept: the checker
 * calls this inside other people's programs, as they end. */
#ifndef WARPDNN_TOOL_MAPS_H
#define WARPDNN_TOOL_MAPS_H

#include <stdbool.h>

typedef void (*maps_found)(void *user, const char *path);

/* Calls `found` for each run of mappings of such a file; one file may be told more than once.
 * `maps` is /proc/PID/maps. False where it cannot be read. */
bool maps_each(const char *maps, maps_found found, void *user);

#endif
