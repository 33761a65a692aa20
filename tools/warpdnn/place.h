/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the command finds what belongs to it: beside itself, in a build tree or where it was
 * installed, never by the loader's path. */
#ifndef WARPDNN_TOOL_PLACE_H
#define WARPDNN_TOOL_PLACE_H

#include <stdbool.h>

struct place {
    char *tool;    /* this program */
    char *library; /* libcudnn.so.9, ours, by its real name; null where it is missing */
    char *folder;  /* the library's folder, for LD_LIBRARY_PATH */
    char *checker; /* libwarpdnn_run.so; null where it is missing */
    char *bench;   /* warpdnn_bench; null where it is missing */
    char *looked;  /* where the library was looked for */
};

/* False where there is no library of ours. */
bool place_find(struct place *place);
void place_free(struct place *place);

#endif
