/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's time for a call: putting its work into the queue, not the work itself. */
#ifndef BENCH_HOST_TIME_H
#define BENCH_HOST_TIME_H

#include "cudnn.h"

/* Seconds a call: the best of some rounds, the stream empty before each, and no round so long that the
 * driver's queue fills up, into which a call puts `pieces` of work. 0 where the call fails. */
double host_time(cudnnStatus_t (*call)(void *context), void *context, int pieces);
/* Likewise, and in turns with it those of the driver's launch of an empty kernel, since processors are not as fast all
 * the time; 0 where there is no compiler for one. */
double host_time_beside(cudnnStatus_t (*call)(void *context), void *context, int pieces,
                        double *beside);
/* Those of the driver's own launch of an empty kernel, or where there is no compiler of a fill. */
double host_time_launch(void);
/* Likewise of one whose blocks are all there at once; 0 where the driver has none. */
double host_time_meeting(void);

#endif
