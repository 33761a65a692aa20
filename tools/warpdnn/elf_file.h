/* SPDX-License-Identifier: Apache-2.0
 *
 * What a shared library says of itself, read from its file without loading it. */
#ifndef WARPDNN_TOOL_ELF_FILE_H
#define WARPDNN_TOOL_ELF_FILE_H

#include <stdbool.h>

struct elf_facts {
    bool loadable;    /* a shared library for x86-64 */
    bool cudnn;       /* it exports or asks for cudnnGetVersion */
    bool warpdnn;     /* a libcudnn.so.9 with warpdnnGetVersionString: ours */
    char soname[128]; /* "" where it has none */
    char why[160];    /* why it is not loadable */
};

/* False, with `why`, where the file cannot be read or is no shared library of this machine. */
bool elf_read(const char *path, struct elf_facts *facts);

/* Whether the file holds these bytes anywhere. */
bool file_holds(const char *path, const char *string);

#endif
