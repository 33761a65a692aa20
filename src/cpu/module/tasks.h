/* SPDX-License-Identifier: Apache-2.0
 *
 * How an engine of the CPU module shares its work out: it emits a host range of as many items as
 * there are workers, each with a number and a piece of workspace of its own, and every worker takes
 * tasks from one counter until none is left. What a task computes does not depend on who takes it. */
#ifndef WD_CPU_MODULE_TASKS_H
#define WD_CPU_MODULE_TASKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wd_tasks {
    _Atomic int64_t next;
    int64_t count;
};

static inline bool wd_tasks_take(struct wd_tasks *tasks, int64_t *task)
{
    *task = atomic_fetch_add_explicit(&tasks->next, 1, memory_order_relaxed);
    return *task < tasks->count;
}

/* How many of at most `threads` workers find a task. */
static inline int64_t wd_tasks_workers(int64_t count, int threads)
{
    return count < threads ? count : threads;
}

#endif
