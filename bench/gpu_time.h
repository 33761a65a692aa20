/* SPDX-License-Identifier: Apache-2.0
 *
 * Time on the GPU: work is captured from the stream into a graph, and a replay of the graph is timed
 * by events, after a fill that empties the L2 and keeps the GPU busy while the host puts the replay
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
/* Seconds of one replay. */
double replay_time(const struct replay *replay);
/* Seconds of a copy within the device. */
double copy_time(void *to, const void *from, size_t bytes);
void replay_free(struct replay *replay);

#endif
