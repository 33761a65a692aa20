/* SPDX-License-Identifier: Apache-2.0
 *
 * The dynamic loader's cache (/etc/ld.so.cache), read from its file. */
#ifndef WARPDNN_TOOL_LDCACHE_H
#define WARPDNN_TOOL_LDCACHE_H

#include <stdbool.h>

/* Calls `found` with each x86-64 path that the cache has for a name; false where the cache cannot
 * be read or understood. */
bool ldcache_each(const char *cache, const char *name, void (*found)(void *user, const char *path),
                  void *user);

#endif
