/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a test's cases reached all kernels of some engines, as the fake driver saw it. */
#ifndef TESTS_OPS_KERNELS_REACHED_H
#define TESTS_OPS_KERNELS_REACHED_H

/* A case for each kernel, failed where nothing launched it. Without effect on another driver, on the
 * CPU, and where WARPDNN_ENGINES (but for *) leaves engines out. */
void kernels_reached(const char *const *symbols, int count);

#endif
