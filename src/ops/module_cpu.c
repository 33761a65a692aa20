/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of the CPU module: its build id, its threads (OpenMP) and its engines, one row each of
 * ops/engines.def. Runs once, under the library's lock. */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/queue.h"
#include "base/status.h"
#include "build_id.h"
#include "cpu/cpu.h"
#include "ops/engine.h"

#define WD_ENGINE(id, name)
#define WD_CPU_ENGINE(id, name) extern const struct wd_engine wd_engine_##name;
#include "ops/engines.def"
#undef WD_ENGINE
#undef WD_CPU_ENGINE

static const void *engine_by_id(int id)
{
    switch (id) {
#define WD_ENGINE(number, name)
#define WD_CPU_ENGINE(number, name)                                                                \
    case number:                                                                                   \
        return &wd_engine_##name;
#include "ops/engines.def"
#undef WD_ENGINE
#undef WD_CPU_ENGINE
    default: return NULL;
    }
}

static int threads = 1;

/* OpenMP's threads do not survive a fork, and GNU's runtime waits for them in the child for good:
 * there, once they have been used, everything runs on the calling thread. */
static atomic_bool threads_used;
static atomic_bool threads_lost;

static void after_fork(void)
{
    if (atomic_load(&threads_used)) atomic_store(&threads_lost, true);
}

static void range(wd_range_fn fn, const void *args, int64_t items, int64_t grain)
{
    int64_t pieces = items / grain;
    if (pieces > (int64_t)threads * 4) pieces = (int64_t)threads * 4;
    if (pieces <= 1 || omp_in_parallel() ||
        atomic_load_explicit(&threads_lost, memory_order_relaxed)) {
        fn(args, 0, items);
        return;
    }
    atomic_store_explicit(&threads_used, true, memory_order_relaxed);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t i = 0; i < pieces; ++i) {
        fn(args, items * i / pieces, items * (i + 1) / pieces);
    }
}

__attribute__((visibility("default"))) const struct wd_cpu_module *warpdnn_cpu_module(
    int wanted, char *(*error_text)(void))
{
    static struct wd_cpu_module self = {WD_BUILD_ID, 1, range, engine_by_id};
    wd_last_error_share(error_text);
    threads = wanted > 0 ? wanted : omp_get_num_procs();
    self.threads = threads;
    /* without it everything works but children of a process that has computed: worth no failure */
    (void)pthread_atfork(NULL, NULL, after_fork);
    return &self;
}
