/* SPDX-License-Identifier: Apache-2.0
 *
 * warpdnn_bench: times calls of the public API and sets them against what the machine can do in the
 * same run: products of matrices against sgemm at 2048^3 on the same threads, memory-bound calls
 * against a plain vector copy of as many bytes, counting each input once read and each output once
 * written.
 *
 *     main.c       options and order          reference.c  sgemm and copy rates
 *     conv.c       problems_conv.def          memory.c     problems_memory.def
 *     matmul.c     problems_matmul.def
 *     report.c     rows, tables, means, JSON  timing.c     how a call is timed */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cudnn.h"
#include "warpdnn.h"

struct options {
    int batch;        /* of convolutions */
    double seconds;   /* a row, at least */
    bool nhwc;        /* channels side by side */
    const char *only; /* rows whose text contains it, or null */
    bool json;
    bool processor; /* time of the processors, spread over the threads, instead of the clock's */
};

extern cudnnHandle_t bench_handle;
extern struct options bench_options;

/* Ends the program with the text of a call that failed. */
void bench_check(cudnnStatus_t status, const char *what);
/* Elements of the handle's device, random in [-0.5, 0.5). */
float *bench_floats(int64_t count);
/* Whether --only takes this row. */
bool bench_wanted(const char *set, const char *name, const char *problem);

/* Runs a call once to warm up and then for the time that is asked for, at least five times. The
 * shortest run counts: what else runs on the machine only ever adds. */
struct timing {
    double best; /* seconds */
    double median;
    int runs;
};
struct timing bench_time(cudnnStatus_t (*call)(void *context), void *context);
/* Seconds, of the clock or by --processor-time. */
double bench_now(void);
/* The threads that the library uses on the CPU. */
int bench_threads(void);

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

/* A timed row. `work` is FLOP where `products`, else bytes. */
struct row {
    char set[24];
    char name[32];
    char problem[64];
    char engine[64];
    bool products;
    bool counted; /* takes part in the set's mean */
    double work;
    double copy; /* bytes a second of a copy of this size, for memory-bound rows */
    struct timing timing;
};
void report_add(const struct row *row);
/* Tables with means, or JSON, of all rows, against the references as they are now. */
void report_print(void);

void bench_convolutions(void);
void bench_matmul(void);
void bench_memory(void);

#endif
