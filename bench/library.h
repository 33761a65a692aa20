/* SPDX-License-Identifier: Apache-2.0
 *
 * The two libraries: found, opened privately by absolute path, and called through pointers whose
 * folder is verified. Nothing of either is linked. */
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

#include "cudnn.h"
#include "warpdnn.h"

struct library {
    const char *label; /* "ours" or "peer" */
    bool open;
    char path[PATH_MAX];
    char folder[PATH_MAX];
    double open_seconds; /* what dlopen took */
    /* the pointers, without cudnn or warpdnn before the name; those of OURS are null in the peer */
#define API(name) __typeof__(cudnn##name) *name;
#define OURS(name) __typeof__(warpdnn##name) *name;
#include "library.def"
};

extern struct library ours;
extern struct library peer;

/* Opens `path` into `library` and verifies every pointer. False with a text on standard error. */
bool library_open(struct library *library, const char *path, bool is_ours);
/* Whether every mapped libcudnn* lies in the folder of one of the libraries that are open. */
bool library_verify_maps(void);

/* Where ours is: `named`, or beside the program. False with a text. */
bool library_find_ours(const char *named, char path[PATH_MAX]);
/* Where the peer is: `named`, or in PyTorch's package. False, with a text only where it was named. */
bool library_find_peer(const char *named, char path[PATH_MAX]);
/* Puts the peer's folder, and those of the packages beside it, first on the loader's path by running
 * the program again, once: its library opens others by name. */
void library_reexec(const char *path, char **argv);

#endif
