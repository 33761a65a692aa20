/* SPDX-License-Identifier: Apache-2.0
 *
 * Time on the GPU: work is captured from the stream into a graph, and a replay of the graph is timed
 * by events. What goes before it empties the L2 and keeps the GPU busy while the host puts the replay
 * into the queue, so that no time of the host's is in it. */
#ifndef BENCH_GPU_TIME_H
#define BENCH_GPU_TIME_H

#include "driver.h"

struct replay {
    CUgraphExec exec;
};

/* Captures what goes into the device's stream between the two. The first is false where the stream
 * refuses, the second where the work could not be captured: then nothing is left behind. */
bool replay_begin(void);
bool replay_end(struct replay *replay);
/* Ends a capture whose work was refused. */
void replay_abandon(void);
/* What goes before a replay that is timed, and so what it finds in the L2. A fill leaves lines of its own to
 * be written back, as many as the L2 holds: nothing to what writes as much itself, but up to an
 * eighth of the traffic of what only reads. The same replay, untimed, leaves what the work itself leaves: for
 * work that goes through several times the L2. */
enum before { BEFORE_FILL, BEFORE_SAME };
/* Seconds of one replay. */
double replay_time(const struct replay *replay, enum before before);
/* Seconds of a copy within the device, of several times the L2. */
double copy_time(void *to, const void *from, size_t bytes);
void replay_free(struct replay *replay);

#endif
