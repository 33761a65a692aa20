/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a module of machine code (a cubin, which is ELF) smaller once it is compressed: what only debuggers read, the frames of
 * calls that kernels do not make, is emptied in place, and with it what would be put into it when the module is loaded. Everything
 * else stays where it is. Thread safe. */
#ifndef WD_PACK_CODE_H
#define WD_PACK_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* False, with the reason in *why and the image as it was, where the image is not understood; else *why is NULL. */
bool wd_code_shrink(char *image, size_t bytes, const char **why);

#endif
