/* SPDX-License-Identifier: Apache-2.0
 *
 * Scratch memory on a device. An execution takes what it needs from arenas and gives them back when
 * all its work has been emitted; the next execution whose work is ordered after it - on the same
 * stream, outside captures or within one capture - may then have the same memory. An execution
 * that is under way holds its arenas alone, so that two threads emitting to one stream at once
 * never share any. What is taken for a graph belongs to the graph until it dies.
 *
 * Safe for threads. Everything but wd_arena_give needs the queue's context to be current. */
#ifndef WD_GPU_ARENA_H
#define WD_GPU_ARENA_H

#include "gpu/loader.h"

enum { WD_ARENA_BYTES_MAX = 8 << 20 };

struct wd_arena;

/* What orders executions: equal keys mean one after the other. Ids, for handles are reused. */
struct wd_arena_key {
    uint64_t context;
    uint64_t stream;
    uint64_t capture; /* 0: none */
};

/* A capture id for work that is put into a graph by hand: never equal to another. */
uint64_t wd_arena_capture_id(void);

/* Adds `bytes` of scratch to what the execution holds (a list that starts out null). `owner` is the
 * graph that the work goes into, or null. At most WD_ARENA_BYTES_MAX an execution. */
cudnnStatus_t wd_arena_take(struct wd_arena **held, const struct wd_arena_key *key, CUgraph owner,
                            size_t bytes, void **data);

/* WD_COUNTERS_BYTES and the board (base/board.h) beside what the execution holds, or in an arena of its own: zeros when they are
 * first asked for, and then as they were left. */
cudnnStatus_t wd_arena_counters(struct wd_arena **held, const struct wd_arena_key *key,
                                CUgraph owner, void **data);

/* Gives back all that the execution holds. */
void wd_arena_give(struct wd_arena **held);

/* Counts the queues of a context. The last one to close frees the context's arenas but for those
 * that graphs own; `usable` says whether the context is current, else its memory is taken for gone
 * with it. Opening fails only for want of host memory. */
cudnnStatus_t wd_arena_open_context(uint64_t context);
void wd_arena_close_context(uint64_t context, bool usable);

#endif
