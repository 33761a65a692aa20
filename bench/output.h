/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a run goes: text for people, and the files of --json, --csv and --html; "-" is standard output. */
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file;
    char path[PATH_MAX];
    char part[PATH_MAX]; /* what is written until it is whole; empty: the path itself */
};

/* Where tables go: standard output, or standard error where a file goes to standard output. */
FILE *output_text(void);

/* Whether a file of this name (null: none) can be written, before there is something to write. It is
 * left as it was. False with a text, as below. */
bool output_probe(const char *path);
bool output_open(struct output *output, const char *path);
bool output_close(struct output *output);
/* At the end: whether standard output took what was written to it. */
bool output_finish(void);

#endif
