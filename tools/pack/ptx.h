/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the text of a PTX module smaller once it is compressed, without changing what it means: no
 * comments and blanks, registers that are never live together share a name, labels, parameters and
 * internal symbols get short ones. Entries and other visible symbols keep theirs.
 *
 * Returns text allocated with malloc, terminated by a zero that *shrunk does not count; or NULL with
 * the reason in *why where the text is not understood: then it is to be used as it is. Thread safe. */
#ifndef WD_PACK_PTX_H
#define WD_PACK_PTX_H

#include <stddef.h>

char *wd_ptx_shrink(const char *text, size_t length, size_t *shrunk, const char **why);

#endif
