/* SPDX-License-Identifier: Apache-2.0
 *
 * What a library costs on the host: to open, to make a handle, its first call, the calls after it, the
 * memory that it takes. Each library is measured in a fresh process, this program run again with a flag
 * of its own, with the context made beforehand. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdio.h>

extern const char host_flag[];
/* That process: `host_flag ours|peer PATH DEVICE`, where -1 is the CPU. Prints figures, a name and a value a line. */
int host_child(int argc, char **argv);
/* Measures both libraries and prints a table. */
void host_measure(void);
/* The figures as JSON objects, separated by commas; as a table of a page. */
void host_json(FILE *file);
void host_html(FILE *file);

#endif
