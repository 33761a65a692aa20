/* SPDX-License-Identifier: Apache-2.0
 *
 * warpdnn_bench: times calls of the public API in our library, and in NVIDIA's beside it, against what
 * the machine can do in the same run. README.md says what is measured and how.
 *
 *   options.c main.c   the command line, the order of things
 *   library.c find.c   the two libraries, opened privately and verified
 *   device.c driver.c  a GPU through the driver, or the host
 *   problem.h          problems, families, operands; family_X.c with X.def is one family each
 *   run.c work.c       one problem after the other in both libraries; its buffers, and its time
 *   own.c              problems of a file in place of a list
 *   values.c check.c   random values; what comes out, compared (check_kept.c, check_planes.c)
 *   gpu_time.c cpu_time.c        how a call is timed
 *   odd.c              whether the peer stands pointers that lie odd
 *   host.c             what a library costs on the host, in processes of its own
 *   host_time.c        how long the host takes for a call
 *   result.c           the rows of a run, and their means; printed by table.c, csv.c, json.c, html.c
 *                      (files: output.c), and set against an older run by against.c
 *   sets.c conv.c matmul.c memory.c reference.c   the sets of the CPU: --cpu --conv --matmul --memory */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "library.h"

/* What the program answers. */
enum exit_status { EXIT_FINE = 0, EXIT_BAD_ROWS = 1, EXIT_CANNOT_RUN = 2 };

struct options {
    bool cpu;
    bool conv, matmul, memory; /* sets of the CPU */
    bool list;
    bool no_peer;
    bool no_host;
    bool no_check;
    bool host_calls; /* nothing but the host's time of calls */
    int device;
    const char *ours;
    const char *peer;
    const char *family;   /* or null: all */
    const char *only;     /* rows whose text contains it, or null */
    const char *problems; /* a file of them in place of the family's list, or null */
    const char *json, *csv, *html, *against;
    double noise;   /* percent */
    double seconds; /* a row; 0: not said */
    double limit;   /* MB of a problem's tensors; 0: none */
    uint64_t seed;
    int random;     /* problems a family */
    int batch;      /* of the sets' convolutions */
    bool nhwc;      /* of the sets */
    bool processor; /* time of the processors, spread over the threads, instead of the clock's */
};
extern struct options bench_options;

/* Fills bench_options; ends the program with the usage where it makes no sense. */
void options_read(int argc, char **argv);

/* Whether --only takes a row of this text. */
bool bench_wanted(const char *text);
/* Ends the program where a call of ours failed that must not. */
void bench_check(cudnnStatus_t status, const char *what);
/* Ends the program where it cannot go on, after a text of the caller's; rows that are there are kept. */
_Noreturn void bench_give_up(void);
/* Whether a signal asked for the end: what is under way is finished, nothing more is begun. */
bool bench_is_stopped(void);

/* What is under way, for the text of a driver call that fails: a row, and whose calls. */
extern char bench_row[224];
extern const char *bench_whose;

double clock_now(void);
/* The threads that the library uses on the CPU. */
int bench_threads(void);

/* Runs a call on the CPU once to warm up and then for the time that is asked for, at least five times.
 * The shortest run counts: what else runs on the machine only ever adds. */
struct timing {
    double best; /* seconds */
    double median;
    int runs;
};
struct timing cpu_time(cudnnStatus_t (*call)(void *context), void *context);
double cpu_now(void); /* the clock, or by --processor-time */

/* What the machine can do, best of all measurements in this run. */
struct reference {
    double sgemm;  /* FLOP/s, 0 while there is no OpenBLAS */
    char core[32]; /* OpenBLAS's kernels */
    int threads;
};
/* Measures again and keeps the better. */
const struct reference *bench_reference_sgemm(void);
/* Bytes a second of a plain copy that reads and writes `bytes` in all: caches are large, so that what
 * a call is set against must have its size. */
double bench_reference_copy(double bytes);

#endif
