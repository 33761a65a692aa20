/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU floor: the queue that runs work on the host at once, and the module with the fast engines
 * (libwarpdnn_cpu.so: OpenMP and BLAS), which stands beside libcudnn.so.9 and is opened privately by
 * the first CPU handle, or the first plan for a CPU. Without it the definitions serve, on one
 * thread. */
#ifndef WD_CPU_CPU_H
#define WD_CPU_CPU_H

#include "base/queue.h"

cudnnStatus_t wd_cpu_queue_create(struct wd_queue **queue);
void wd_cpu_queue_destroy(struct wd_queue *queue);

/* What the module exports through its one symbol, `warpdnn_cpu_module`. */
struct wd_cpu_module {
    const char *build_id; /* must equal the library's */
    int threads;          /* that it uses */
    /* fn over [0, items) in pieces of at least `grain`, on the module's threads. */
    void (*range)(wd_range_fn fn, const void *args, int64_t items, int64_t grain);
    /* struct wd_engine of this id, or null. */
    const void *(*engine_by_id)(int id);
};

/* The module's entry: `threads` to use, 0 for all cores; and where the library keeps the last error of
 * a thread (wd_last_error_text), which what the module refuses goes to. */
const struct wd_cpu_module *warpdnn_cpu_module(int threads, char *(*error_text)(void));

/* Loads the module once a process; null where there is none, with the reason in `why` (may be null).
 * `set_threads` of WARPDNN_THREADS is passed on. Safe for threads. */
const struct wd_cpu_module *wd_cpu_module(const char **why);

#endif
