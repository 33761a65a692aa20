/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory. Every allocation of the library goes through here, so that tests can make each one
 * fail in turn and count what is alive. */
#ifndef WD_BASE_ALLOC_H
#define WD_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory, or null. */
void *wd_alloc(size_t bytes);
void wd_free(void *data);

/* Bytes alive now. */
uint64_t wd_alloc_bytes(void);

/* For tests: the n-th allocation from now fails (1 is the next), once; 0 switches it off. Returns
 * how many allocations were made since the last call. Affects the calling thread only. */
uint64_t wd_alloc_fail_at(uint64_t n);

#endif
