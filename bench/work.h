/* SPDX-License-Identifier: Apache-2.0
 *
 * A problem under way: its operands in K sets of buffers, enough of them that nothing is found in the L2,
 * and the time that both libraries take for it, in turn. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include "check.h"
#include "problem.h"
#include "result.h"

enum { MINE, THEIRS, LIBRARIES, SETS_MAX = 64 };
extern struct library *const work_library[LIBRARIES];

struct work {
    struct task task;
    struct session session[LIBRARIES];
    bool ready[LIBRARIES]; /* prepared and accepted */
    int sets;
    struct buffers buffers[SETS_MAX][LIBRARIES];
    struct result result;
};

/* Bytes of a problem's tensors. */
double work_footprint(const struct task *task);

/* Bytes of a set of buffers; the libraries share all but opaque ones. */
size_t work_set_bytes(const struct work *w);

/* How many sets, and their memory: false where there is too little. */
void work_choose_sets(struct work *w);
bool work_take_buffers(struct work *w);

/* A library's call on a set of buffers. */
cudnnStatus_t work_call(struct work *w, int l, int set);

/* The time of what is ready, into the result: of both libraries on the GPU, of ours on the CPU. */
void work_take_time(struct work *w);
/* The host's time of a call, and how much that puts into the queue. */
void work_time_host(struct work *w);

#endif
