/* SPDX-License-Identifier: Apache-2.0
 *
 * See work.h. */
#include "work.h"

#include <stdlib.h>

#include "bench.h"
#include "check.h"
#include "device.h"
#include "gpu_time.h"
#include "host_time.h"
#include "run.h"

enum { L2S = 8, SETS_MIN = 4, RUNS_MIN = 15, RUNS_MAX = 400, FEW = 3 };
static const size_t slack_bytes = 1024; /* room beside a buffer: for odd pointers and alignment */

double work_footprint(const struct task *task)
{
    double bytes = 0.0;
    for (int i = 0; i < task->count; ++i) bytes += (double)task->operand[i].bytes;
    return bytes;
}

static size_t whole(size_t bytes)
{
    return (bytes + slack_bytes + 511) / 512 * 512;
}

size_t work_set_bytes(const struct work *w)
{
    size_t bytes = 0;
    for (int i = 0; i < w->task.count; ++i) {
        if (w->task.operand[i].role != OPAQUE) bytes += whole(w->task.operand[i].bytes);
        else bytes += whole(w->session[MINE].opaque_bytes) + whole(w->session[THEIRS].opaque_bytes);
    }
    return bytes;
}

/* So many that they exceed several times the L2, and that what a replay costs to begin is spread over
 * a few calls at least. */
void work_choose_sets(struct work *w)
{
    double bytes = work_footprint(&w->task);
    double sets = (double)L2S * (double)device.l2 / (bytes > 1.0 ? bytes : 1.0) + 1.0;
    w->sets = 1;
    if (!device.gpu || bench_options.host_calls) return;
    w->sets = sets < SETS_MIN ? SETS_MIN : sets > SETS_MAX ? SETS_MAX : (int)sets;
    while (w->sets > 1 &&
           (double)w->sets * (double)work_set_bytes(w) > 0.4 * (double)device.memory) {
        w->sets /= 2;
    }
}

/* Whether the sets do exceed several times the L2, so that none finds anything of the replay before. */
static bool beyond_l2(const struct work *w)
{
    return device.l2 > 0 &&
           (double)w->sets * work_footprint(&w->task) >= (double)L2S * (double)device.l2;
}

bool work_take_buffers(struct work *w)
{
    size_t workspace =
        whole(w->session[MINE].workspace_bytes) + whole(w->session[THEIRS].workspace_bytes);
    if (!device_reserve((size_t)w->sets * work_set_bytes(w) + workspace)) return false;
    for (int l = 0; l < LIBRARIES; ++l) {
        w->session[l].workspace = device_take(whole(w->session[l].workspace_bytes));
    }
    for (int k = 0; k < w->sets; ++k) {
        for (int i = 0; i < w->task.count; ++i) {
            const struct operand *o = &w->task.operand[i];
            size_t off = (size_t)w->task.problem->odd * type_bytes(o->type);
            for (int l = 0; l < LIBRARIES; ++l) {
                if (o->role == OPAQUE) {
                    w->buffers[k][l].at[i] = device_take(whole(w->session[l].opaque_bytes));
                } else if (l == MINE) {
                    w->buffers[k][l].at[i] = (char *)device_take(whole(o->bytes)) + off;
                } else {
                    w->buffers[k][l].at[i] = w->buffers[k][MINE].at[i];
                }
            }
        }
    }
    return true;
}

cudnnStatus_t work_call(struct work *w, int l, int set)
{
    bench_whose = work_library[l]->label;
    return w->task.family->run(&w->session[l], &w->task, w->buffers[set][l].at);
}

/* A graph of the call on every set of buffers, after one run of each as it is; false where a library
 * does not run or cannot be captured. */
static bool capture(struct work *w, int l, struct replay *replay)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    replay->exec = NULL;
    for (int k = 0; k < w->sets && status == CUDNN_STATUS_SUCCESS; ++k) {
        buffers_fill(&w->task, &w->buffers[k][l], (unsigned)k);
        if (w->task.family->setup) {
            status = w->task.family->setup(&w->session[l], &w->task, w->buffers[k][l].at);
        }
        if (status == CUDNN_STATUS_SUCCESS) status = work_call(w, l, k);
    }
    if (status != CUDNN_STATUS_SUCCESS || !replay_begin()) return false;
    for (int k = 0; k < w->sets && status == CUDNN_STATUS_SUCCESS; ++k) status = work_call(w, l, k);
    if (status == CUDNN_STATUS_SUCCESS) return replay_end(replay);
    replay_abandon();
    return false;
}

/* One uncaptured pass over all sets, by the clock, where a library cannot be captured; 0 where it does
 * not run either. */
static double time_uncaptured(struct work *w, int l)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    double start;
    device_flush_l2();
    device_sync();
    start = clock_now();
    for (int k = 0; k < w->sets && status == CUDNN_STATUS_SUCCESS; ++k) status = work_call(w, l, k);
    device_sync();
    return status == CUDNN_STATUS_SUCCESS ? clock_now() - start : 0.0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void time_gpu(struct work *w)
{
    static double time[LIBRARIES][RUNS_MAX];
    struct replay replay[LIBRARIES] = {{NULL}, {NULL}};
    bool captured[LIBRARIES] = {false, false};
    double seconds = bench_options.seconds > 0.0 ? bench_options.seconds : 0.15;
    double begin;
    double *out[LIBRARIES] = {&w->result.ours, &w->result.peer};
    enum before before = beyond_l2(w) ? BEFORE_SAME : BEFORE_FILL;
    int runs = 0;
    for (int l = 0; l < LIBRARIES; ++l) {
        if (w->ready[l]) captured[l] = capture(w, l, &replay[l]);
        if (captured[l]) replay_time(&replay[l], BEFORE_FILL); /* also uploads the graph */
    }
    begin = clock_now();
    while (runs < RUNS_MAX) {
        double spent = clock_now() - begin;
        if (runs >= RUNS_MIN && spent > seconds) break;
        if (runs >= FEW && spent > 5.0 * seconds) break; /* something is very slow */
        for (int l = 0; l < LIBRARIES; ++l) {
            if (!w->ready[l]) continue;
            time[l][runs] = captured[l] ? replay_time(&replay[l], before) : time_uncaptured(w, l);
        }
        runs += 1;
    }
    for (int l = 0; l < LIBRARIES; ++l) {
        replay_free(&replay[l]);
        if (!w->ready[l]) continue;
        qsort(time[l], (size_t)runs, sizeof **time, by_value);
        *out[l] = time[l][runs / 2] / w->sets;
    }
    w->result.runs = runs;
    w->result.captured = captured[MINE];
    w->result.peer_captured = captured[THEIRS];
}

static cudnnStatus_t call_mine(void *work)
{
    return work_call(work, MINE, 0);
}

static void time_cpu(struct work *w)
{
    double before = bench_reference_copy(w->result.bytes);
    struct timing timing = cpu_time(call_mine, w);
    double after = bench_reference_copy(w->result.bytes);
    w->result.ours = timing.best;
    w->result.runs = timing.runs;
    w->result.floor = w->result.bytes / (after > before ? after : before);
}

void work_time_host(struct work *w)
{
    warpdnnStatistics_t before;
    warpdnnStatistics_t after;
    ours.GetStatistics(&before);
    if (work_call(w, MINE, 0) != CUDNN_STATUS_SUCCESS) return;
    ours.GetStatistics(&after);
    w->result.pieces = (int)(after.kernels_emitted - before.kernels_emitted);
    w->result.host = host_time_beside(call_mine, w, w->result.pieces, &w->result.launch);
}

void work_take_time(struct work *w)
{
    if (device.gpu) time_gpu(w);
    else if (w->ready[MINE]) time_cpu(w);
}
