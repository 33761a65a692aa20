/* SPDX-License-Identifier: Apache-2.0
 *
 * One problem after the other: sessions in both libraries, the check, and the time (work.c). */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "check.h"
#include "compose.h"
#include "device.h"
#include "odd.h"
#include "values.h"
#include "work.h"

enum { AGAIN = 2 };

static cudnnHandle_t handle[LIBRARIES];
struct library *const work_library[LIBRARIES] = {&ours, &peer};

bool run_open(void)
{
    for (int l = 0; l < LIBRARIES; ++l) {
        cudnnStatus_t status;
        if (!work_library[l]->open) continue;
        status = work_library[l]->Create(&handle[l]);
        if (status == CUDNN_STATUS_SUCCESS && device.gpu) {
            status = work_library[l]->SetStream(handle[l], (cudaStream_t)device.stream);
        }
        if (status == CUDNN_STATUS_SUCCESS) continue;
        fprintf(stderr, "%s: no handle: %s\n", work_library[l]->path,
                work_library[l]->GetErrorString(status));
        handle[l] = NULL;
        if (l == MINE || bench_options.peer) return false; /* what was named must be there */
        fprintf(stderr, "the rows have no peer\n");
    }
    return true;
}

void run_close(void)
{
    for (int l = 0; l < LIBRARIES; ++l) {
        if (handle[l]) work_library[l]->Destroy(handle[l]);
        handle[l] = NULL;
    }
}

cudnnHandle_t run_handle(const struct library *of)
{
    return handle[of == &peer ? THEIRS : MINE];
}

static bool plan(const struct family *family, const struct problem *problem, struct task *task)
{
    memset(task, 0, sizeof *task);
    task->family = family;
    task->problem = problem;
    task->terms = 1.0;
    task->slack = 1.0;
    task->limit = 1.5;
    if (!family->plan(task)) {
        fprintf(stderr, "%s knows no call %s\n", family->name, problem->call);
        return false;
    }
    return true;
}

bool run_wanted(const struct task *task)
{
    char text[224];
    snprintf(text, sizeof text, "%s %s", task->family->name, task->text);
    return bench_wanted(text);
}

bool run_plan(const struct family *family, struct problem *problem, struct task *task)
{
    static const struct {
        int dim, least;
    } order[] = {{DIM_N, 2}, {DIM_H, 1}, {DIM_D, 1}, {DIM_W, 1}, {DIM_C, 1}, {DIM_N, 1}};
    if (!plan(family, problem, task)) return false;
    for (size_t i = 0; bench_options.limit > 0.0 && i < sizeof order / sizeof order[0];) {
        int *dim = &problem->dims[order[i].dim];
        if (work_footprint(task) <= bench_options.limit * 1e6) break;
        if (*dim > order[i].least) *dim = (*dim + 1) / 2;
        else i += 1;
        if (!plan(family, problem, task)) return false;
    }
    return true;
}

static double moved(const struct task *task)
{
    double bytes = 0.0;
    for (int i = 0; i < task->count; ++i) bytes += task->operand[i].moves;
    return bytes;
}

static void finish(struct session *s, const struct task *task)
{
    if (task->family->finish) task->family->finish(s);
    composed_free(s);
    for (int i = 0; i < task->count; ++i) {
        if (s->tensor[i]) s->library->DestroyTensorDescriptor(s->tensor[i]);
    }
    memset(s, 0, sizeof *s);
}

static cudnnStatus_t prepare(struct session *s, const struct task *task, int l)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    memset(s, 0, sizeof *s);
    s->library = work_library[l];
    s->handle = handle[l];
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < task->count; ++i) {
        const struct operand *o = &task->operand[i];
        if (o->role == OPAQUE) continue;
        status = s->library->CreateTensorDescriptor(&s->tensor[i]);
        if (status == CUDNN_STATUS_SUCCESS) {
            status = s->library->SetTensorNdDescriptor(s->tensor[i], o->type, o->rank, o->dims,
                                                       o->strides);
        }
    }
    if (status == CUDNN_STATUS_SUCCESS) status = task->family->prepare(s, task);
    return status;
}

static void keep_engine(struct result *r)
{
    const char *engine = "";
    ours.GetLastEngine(handle[MINE], &engine);
    snprintf(r->engine, sizeof r->engine, "%s", engine);
}

/* Planning the problem's graph, descriptors and all, once it is known: the best of some. */
static void time_plan(struct work *w)
{
    enum { ROUNDS = 5 };
    struct session *s = &w->session[MINE];
    struct result *r = &w->result;
    void *workspace = s->workspace;
    r->nodes = composed_operations(s);
    for (int i = 0; i < ROUNDS && r->nodes > 0; ++i) {
        double start;
        double spent;
        finish(s, &w->task);
        start = clock_now();
        r->ours_status = prepare(s, &w->task, MINE);
        spent = clock_now() - start;
        s->workspace = workspace;
        if (r->ours_status != CUDNN_STATUS_SUCCESS) return;
        if (r->plan == 0.0 || spent < r->plan) r->plan = spent;
    }
}

/* All that --host-calls asks for. */
static void measure_host(struct work *w)
{
    struct result *r = &w->result;
    time_plan(w);
    buffers_fill(&w->task, &w->buffers[0][MINE], 0);
    if (r->ours_status == CUDNN_STATUS_SUCCESS && w->task.family->setup) {
        r->ours_status = w->task.family->setup(&w->session[MINE], &w->task, w->buffers[0][MINE].at);
    }
    if (r->ours_status == CUDNN_STATUS_SUCCESS) r->ours_status = work_call(w, MINE, 0);
    if (r->ours_status != CUDNN_STATUS_SUCCESS) {
        r->verdict = REFUSED;
        ours.GetLastErrorString(r->note, sizeof r->note);
        return;
    }
    keep_engine(r);
    work_time_host(w);
}

static void measure(struct work *w)
{
    struct result *r = &w->result;
    check_problem(&w->task, &w->session[MINE], w->ready[THEIRS] ? &w->session[THEIRS] : NULL,
                  w->buffers[0], r);
    w->ready[MINE] = r->ours_status == CUDNN_STATUS_SUCCESS;
    w->ready[THEIRS] = w->ready[THEIRS] && r->peer_status == CUDNN_STATUS_SUCCESS;
    if (w->ready[MINE]) keep_engine(r);
    if (device.gpu) r->floor = device.copy > 0.0 ? r->bytes / device.copy : 0.0;
    work_take_time(w);
    /* what looks slower than in the older run is looked at again */
    for (int again = 0; again < AGAIN && against_is_slower(r); ++again) {
        double before = r->ours;
        work_take_time(w);
        if (before < r->ours) r->ours = before;
    }
    if (device.gpu && w->ready[MINE]) work_time_host(w);
}

/* Texts of the family under way. Problems that were scaled down, and random ones, may be alike; those
 * that --only leaves out count, so that the others are the same with and without it. */
struct texts {
    char (*text)[sizeof((struct task *)NULL)->text];
    int count;
};

/* Whether the text is new; it is remembered. */
static bool remember(struct texts *texts, const char *text)
{
    size_t size = sizeof *texts->text;
    void *more;
    for (int i = 0; i < texts->count; ++i) {
        if (!strcmp(texts->text[i], text)) return false;
    }
    more = realloc(texts->text, (size_t)(texts->count + 1) * size);
    if (!more) bench_give_up();
    texts->text = more;
    snprintf(texts->text[texts->count++], size, "%s", text);
    return true;
}

/* False: it was there before. */
static bool run_problem(const struct family *family, const struct problem *listed,
                        struct texts *texts)
{
    static struct work w;
    struct problem problem = *listed;
    memset(&w, 0, sizeof w);
    if (!run_plan(family, &problem, &w.task)) return true;
    if (!remember(texts, w.task.text)) return false;
    if (!run_wanted(&w.task) || bench_is_stopped()) return true;
    snprintf(bench_row, sizeof bench_row, "%s %s", family->name, w.task.text);
    w.result.bytes = moved(&w.task);
    w.result.limit = w.task.limit;
    w.result.peer_present = handle[THEIRS] != NULL;
    snprintf(w.result.family, sizeof w.result.family, "%s", family->name);
    snprintf(w.result.problem, sizeof w.result.problem, "%s", w.task.text);
    for (int l = 0; l < LIBRARIES; ++l) {
        cudnnStatus_t status;
        double start = clock_now();
        if (!handle[l] || (l == MINE && odd_is_probe())) continue;
        status = prepare(&w.session[l], &w.task, l);
        if (l == MINE && composed_operations(&w.session[l]) > 0) {
            w.result.first = clock_now() - start;
        }
        w.ready[l] = status == CUDNN_STATUS_SUCCESS;
        *(l == MINE ? &w.result.ours_status : &w.result.peer_status) = status;
    }
    if (w.ready[THEIRS] && problem.odd && !odd_is_probe() &&
        !odd_peer_survives(family->name, w.task.text)) {
        w.ready[THEIRS] = false;
        w.result.peer_status = CUDNN_STATUS_EXECUTION_FAILED;
        snprintf(w.result.note, sizeof w.result.note, "the peer fails on odd pointers");
    }
    if (!w.ready[MINE] && !odd_is_probe()) {
        char text[200];
        ours.GetLastErrorString(text, sizeof text);
        snprintf(w.result.note, sizeof w.result.note, "ours: %s", text);
        w.result.verdict = REFUSED;
    }
    work_choose_sets(&w);
    w.result.sets = w.sets;
    if (!work_take_buffers(&w)) {
        snprintf(w.result.note, sizeof w.result.note,
                 "needs %.0f MB of memory, which are not there", (double)work_set_bytes(&w) * 1e-6);
    } else if (w.ready[MINE] && bench_options.host_calls) {
        measure_host(&w);
    } else if (w.ready[MINE]) {
        measure(&w);
    } else if (w.ready[THEIRS] && device.gpu) {
        if (device.copy > 0.0) w.result.floor = w.result.bytes / device.copy;
        work_take_time(&w);
    }
    for (int l = 0; l < LIBRARIES; ++l) {
        if (w.session[l].library) finish(&w.session[l], &w.task);
    }
    bench_row[0] = 0;
    /* what the peer's own process says while it is being ended is not believed */
    if (problem.odd && bench_is_stopped()) return true;
    result_add(&w.result);
    table_row(&w.result);
    return true;
}

void run_family(const struct family *family)
{
    enum {
        TRIES = 50
    }; /* a new one is not to be had where problems are scaled down to next to nothing */
    const struct problem_list listed = own_or_listed(family);
    struct texts texts = {NULL, 0};
    uint64_t seed = bench_options.seed;
    for (const char *c = family->name; *c; ++c) seed = seed * 31 + (unsigned char)*c;
    for (int i = 0; i < listed.count; ++i) run_problem(family, &listed.problems[i], &texts);
    for (int i = 0, tries = 0; i < bench_options.random && tries < TRIES; ++tries) {
        struct problem problem;
        memset(&problem, 0, sizeof problem);
        family->random(&problem, &seed);
        if (!run_problem(family, &problem, &texts)) continue;
        i += 1;
        tries = 0;
    }
    free(texts.text);
}
