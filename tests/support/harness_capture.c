/* SPDX-License-Identifier: Apache-2.0
 *
 * A call captured into a CUDA graph and replayed. */
#include <stdio.h>
#include <stdlib.h>

#include "support/driver.h"
#include "support/harness_internal.h"

typedef int (*fn_stream_create)(void **stream, unsigned flags);
typedef int (*fn_stream)(void *stream);
typedef int (*fn_begin)(void *stream, int mode);
typedef int (*fn_end)(void *stream, void **graph);
typedef int (*fn_instantiate)(void **exec, void *graph, unsigned long long flags);
typedef int (*fn_launch)(void *exec, void *stream);
typedef int (*fn_one)(void *object);

static void *stream;

void capture_start(void)
{
    driver_open();
    if (DRIVER(fn_stream_create, "cuStreamCreate")(&stream, 1) != 0 ||
        cudnnSetStream(harness_handle, (cudaStream_t)stream) != CUDNN_STATUS_SUCCESS) {
        printf("no stream\n0 passed, 1 failed\n");
        exit(1);
    }
}

void capture_finish(void)
{
    cudnnSetStream(harness_handle, NULL);
    DRIVER(fn_stream, "cuStreamDestroy_v2")(stream);
}

/* Captures the call; null, and the case has failed, where it or its instance is refused. */
static void *capture(cudnnStatus_t (*call)(void *context), void *context)
{
    void *graph = NULL;
    void *exec = NULL;
    cudnnStatus_t status;
    int result = DRIVER(fn_begin, "cuStreamBeginCapture_v2")(stream, 0);
    if (result != 0) {
        case_fail("cuStreamBeginCapture: error %d", result);
        return NULL;
    }
    status = call(context);
    result = DRIVER(fn_end, "cuStreamEndCapture")(stream, &graph);
    if (status != CUDNN_STATUS_SUCCESS || result != 0 || !graph) {
        char text[512];
        cudnnGetLastErrorString(text, sizeof text);
        case_fail("in a capture: %s (%s), cuStreamEndCapture %d", cudnnGetErrorString(status), text,
                  result);
        return NULL;
    }
    result = DRIVER(fn_instantiate, "cuGraphInstantiateWithFlags")(&exec, graph, 0);
    DRIVER(fn_one, "cuGraphDestroy")(graph);
    if (result != 0) case_fail("cuGraphInstantiate: error %d", result);
    return result == 0 ? exec : NULL;
}

bool replay_call(cudnnStatus_t (*call)(void *context), void *context, int times,
                 void (*look)(void *context, int replay))
{
    void *exec = capture(call, context);
    int result = 0;
    if (!exec) return false;
    for (int i = 0; i < times && result == 0; ++i) {
        result = DRIVER(fn_launch, "cuGraphLaunch")(exec, stream);
        if (result == 0) result = DRIVER(fn_stream, "cuStreamSynchronize")(stream);
        if (result != 0) case_fail("replay %d: error %d", i, result);
        else if (look) look(context, i);
    }
    DRIVER(fn_one, "cuGraphExecDestroy")(exec);
    return result == 0;
}

bool capture_and_replay(cudnnStatus_t (*call)(void *context), void *context)
{
    return replay_call(call, context, 1, NULL);
}
