/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures, replays and their time. */
#include "gpu_time.h"

#include <stddef.h>

#include "bench.h"
#include "device.h"

static CUevent start;
static CUevent end;

bool replay_begin(void)
{
    device_sync();
    return cu.cuStreamBeginCapture(device.stream, CU_CAPTURE_RELAXED) == 0;
}

bool replay_end(struct replay *replay)
{
    CUgraph graph = NULL;
    bool made = cu.cuStreamEndCapture(device.stream, &graph) == 0 && graph &&
                cu.cuGraphInstantiateWithFlags(&replay->exec, graph, 0) == 0;
    if (graph) cu.cuGraphDestroy(graph);
    if (!made) replay->exec = NULL;
    return made;
}

void replay_abandon(void)
{
    CUgraph graph = NULL;
    if (cu.cuStreamEndCapture(device.stream, &graph) == 0 && graph) cu.cuGraphDestroy(graph);
}

/* Seconds that what `enqueue` puts into the stream takes there. */
static double time_of(void (*enqueue)(void *context), void *context)
{
    float milliseconds = 0.0F;
    double begin;
    if (!start) {
        driver_check(cu.cuEventCreate(&start, 0), "an event");
        driver_check(cu.cuEventCreate(&end, 0), "an event");
    }
    if (!cu.cuEventElapsedTime) { /* a stand-in: the clock will do */
        device_sync();
        begin = clock_now();
        enqueue(context);
        device_sync();
        return clock_now() - begin;
    }
    driver_check(cu.cuEventRecord(start, device.stream), "an event");
    enqueue(context);
    driver_check(cu.cuEventRecord(end, device.stream), "an event");
    device_sync();
    driver_check(cu.cuEventElapsedTime(&milliseconds, start, end), "the time between events");
    return milliseconds > 0.0F ? (double)milliseconds * 1e-3 : 1e-9;
}

static void launch_replay(void *context)
{
    const struct replay *replay = context;
    driver_check(cu.cuGraphLaunch(replay->exec, device.stream), "a replay");
}

double replay_time(const struct replay *replay, enum before before)
{
    if (before == BEFORE_SAME) launch_replay((void *)replay);
    else device_flush_l2();
    return time_of(launch_replay, (void *)replay);
}

struct transfer {
    CUdeviceptr to, from;
    size_t bytes;
};

static void launch_copy(void *context)
{
    const struct transfer *t = context;
    driver_check(cu.cuMemcpyDtoDAsync(t->to, t->from, t->bytes, device.stream), "a copy");
}

/* In the stream itself: as a node of a graph a copy goes through an engine that is half as fast. */
double copy_time(void *to, const void *from, size_t bytes)
{
    struct transfer t = {(CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes};
    launch_copy(&t);
    return time_of(launch_copy, &t);
}

void replay_free(struct replay *replay)
{
    if (replay->exec) cu.cuGraphExecDestroy(replay->exec);
    replay->exec = NULL;
}
