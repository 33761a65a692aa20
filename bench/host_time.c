/* SPDX-License-Identifier: Apache-2.0
 *
 * Host times of calls. Each round is short, for the best of them counts: what else runs on the machine
 * only ever adds. */
#include "host_time.h"

#include "bench.h"
#include "device.h"

enum { PIECES = 200, CALLS_MIN = 10, ROUNDS = 9 };
/* Of work on the device, in a round. */
static const double seconds_most = 0.005;

/* A call that takes long on the device, or on a stand-in that works at once, is measured less often. */
static int calls_of(double waited, int pieces)
{
    int calls = pieces > 1 ? PIECES / pieces : PIECES;
    if (waited * calls > seconds_most) calls = (int)(seconds_most / waited);
    return calls < CALLS_MIN ? CALLS_MIN : calls;
}

static CUfunction nothing;
static void *somewhere;

static cudnnStatus_t launch(void *context)
{
    (void)context;
    if (nothing) cu.cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, device.stream, NULL, NULL);
    else device_set(somewhere, 0, 4096);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t launch_meeting(void *context)
{
    (void)context;
    cu.cuLaunchCooperativeKernel(nothing, 1, 1, 1, 32, 1, 1, 0, device.stream, NULL);
    return CUDNN_STATUS_SUCCESS;
}

static void find_nothing(void)
{
    static const char code[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry nothing()\n{\n ret;\n}\n";
    static bool tried;
    CUmodule module;
    bool have = cu.cuModuleLoadData && cu.cuModuleGetFunction && cu.cuLaunchKernel && !tried &&
                cu.cuModuleLoadData(&module, code) == 0;
    tried = true;
    if (have && cu.cuModuleGetFunction(&nothing, module, "nothing") != 0) nothing = NULL;
}

/* Seconds of one of `calls`, from an empty queue on. */
static double round_of(cudnnStatus_t (*call)(void *context), void *context, int calls)
{
    double start;
    device_sync();
    start = clock_now();
    for (int i = 0; i < calls; ++i) call(context);
    return (clock_now() - start) / calls;
}

static void keep_best(double *best, double spent)
{
    if (*best == 0.0 || spent < *best) *best = spent;
}

double host_time_beside(cudnnStatus_t (*call)(void *context), void *context, int pieces,
                        double *beside)
{
    double best = 0.0;
    double start;
    int calls;
    if (beside) *beside = 0.0;
    if (call(context) != CUDNN_STATUS_SUCCESS) return 0.0;
    device_sync();
    start = clock_now();
    call(context);
    device_sync();
    calls = calls_of(clock_now() - start, pieces);
    if (beside) find_nothing();
    for (int r = 0; r < (calls > CALLS_MIN ? ROUNDS : ROUNDS / 2); ++r) {
        if (beside && nothing) keep_best(beside, round_of(launch, NULL, PIECES));
        keep_best(&best, round_of(call, context, calls));
    }
    device_sync();
    return best;
}

double host_time(cudnnStatus_t (*call)(void *context), void *context, int pieces)
{
    return host_time_beside(call, context, pieces, NULL);
}

double host_time_launch(void)
{
    double seconds;
    find_nothing();
    somewhere = device_alloc(4096);
    seconds = host_time(launch, NULL, 1);
    device_free(somewhere);
    return seconds;
}

double host_time_meeting(void)
{
    find_nothing();
    return nothing && cu.cuLaunchCooperativeKernel ? host_time(launch_meeting, NULL, 1) : 0.0;
}
