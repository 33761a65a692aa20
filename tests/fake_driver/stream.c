/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's streams, events and captures. Work runs when it is submitted, or, deferred, when
 * somebody waits: then all streams take turns, one piece each. Only what the driver orders is in
 * order, so that work which relies on more gives wrong results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_driver/internal.h"

static struct CUstream_st
    *streams; /* all, dead ones too: a new stream takes a dead one's address */
static struct CUevent_st *events;
static struct capture *captures; /* all that are under way */

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static _Thread_local struct CUstream_st *per_thread;

static struct CUstream_st *new_stream(CUcontext context, bool blocking)
{
    struct CUstream_st *it = streams;
    while (it && it->mark != MARK_DEAD) it = it->next;
    if (!it) {
        it = calloc(1, sizeof *it);
        it->next = streams;
        streams = it;
    }
    it->mark = MARK_STREAM;
    it->id = fake_next_id();
    it->context = context;
    it->blocking = blocking;
    it->capture = NULL;
    it->last_count = 0;
    return it;
}

/* The stream behind a handle: its own, or the context's or thread's default stream. */
CUresult fake_stream(CUstream handle, CUstream *stream)
{
    CUcontext context;
    CUresult result;
    if ((uintptr_t)handle > 2) {
        if (handle->mark != MARK_STREAM) {
            return fake_problem(CUDA_ERROR_INVALID_HANDLE, "%p is no stream", (void *)handle);
        }
        *stream = handle;
        return CUDA_SUCCESS;
    }
    result = fake_need_context(&context);
    if (result != CUDA_SUCCESS) return result;
    if ((uintptr_t)handle == 2) {
        if (!per_thread || per_thread->context != context || per_thread->mark != MARK_STREAM) {
            per_thread = new_stream(context, true);
        }
        *stream = per_thread;
        return CUDA_SUCCESS;
    }
    if (!context->legacy) {
        context->legacy = new_stream(context, true);
        context->legacy->id = 1; /* in every context */
    }
    *stream = context->legacy;
    return CUDA_SUCCESS;
}

static void invalidate(struct capture *capture)
{
    capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

/* The rule of cuThreadExchangeStreamCaptureMode. */
CUresult fake_unsafe_check(const char *function)
{
    for (struct capture *it = captures; it; it = it->next) {
        bool own = pthread_equal(it->thread, pthread_self());
        if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
        if (own ? it->mode == CU_STREAM_CAPTURE_MODE_RELAXED
                : it->mode != CU_STREAM_CAPTURE_MODE_GLOBAL ||
                      thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL) {
            continue;
        }
        invalidate(it);
        return fake_problem(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s is called during a capture",
                            function);
    }
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUresult result = fake_begin("cuThreadExchangeStreamCaptureMode", CALL_PLAIN);
    if (result == CUDA_SUCCESS) {
        CUstreamCaptureMode before = thread_mode;
        thread_mode = *mode;
        *mode = before;
    }
    return fake_end(result);
}

int fakecuda_capture_mode(void)
{
    return thread_mode;
}

static bool run_one(struct CUstream_st *stream)
{
    struct CUgraphNode_st *work = stream->waiting;
    if (!work) return false;
    stream->waiting = work->next;
    fake_run_work(work);
    free(work);
    return true;
}

void fake_flush(void)
{
    bool any = true;
    while (any) {
        any = false;
        for (struct CUstream_st *it = streams; it; it = it->next) any |= run_one(it);
    }
}

static void enqueue(struct CUstream_st *stream, const struct CUgraphNode_st *work)
{
    struct CUgraphNode_st *copy = aligned_alloc(_Alignof(struct CUgraphNode_st), sizeof *copy);
    struct CUgraphNode_st **link = &stream->waiting;
    *copy = *work;
    copy->next = NULL;
    for (int i = 0; copy->kernel && i < copy->kernel->param_count; ++i) {
        copy->params[i] = copy->values + ((unsigned char *)work->params[i] - work->values);
    }
    while (*link) link = &(*link)->next;
    *link = copy;
}

/* A stream whose work the default stream waits for, and the other way round. */
static bool is_ordered_with_legacy(const struct CUstream_st *stream)
{
    return stream->blocking && stream != stream->context->legacy;
}

static CUresult check_legacy(const struct CUstream_st *stream)
{
    if (stream != stream->context->legacy) return CUDA_SUCCESS;
    for (struct CUstream_st *it = streams; it; it = it->next) {
        if (it->mark == MARK_STREAM && it->capture && it->context == stream->context &&
            is_ordered_with_legacy(it)) {
            invalidate(it->capture);
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult record(struct CUstream_st *stream, const struct CUgraphNode_st *work)
{
    CUgraphNode node;
    CUresult result;
    if (stream->capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    result = fake_graph_append(stream->capture->graph, stream->last, (size_t)stream->last_count,
                               work, &node);
    if (result != CUDA_SUCCESS) return result;
    stream->last[0] = node;
    stream->last_count = 1;
    return CUDA_SUCCESS;
}

/* Runs, keeps for later, or captures a piece of work. */
CUresult fake_submit(CUstream handle, struct CUgraphNode_st *work)
{
    CUstream stream;
    CUcontext context;
    CUresult result = fake_stream(handle, &stream);
    if (result == CUDA_SUCCESS) result = fake_need_context(&context);
    if (result != CUDA_SUCCESS) return result;
    if (stream->context != context) {
        return fake_problem(CUDA_ERROR_INVALID_HANDLE, "work for a stream of another context");
    }
    work->context = context;
    fake_log_work(work);
    if (stream->capture) return record(stream, work);
    result = check_legacy(stream);
    if (result != CUDA_SUCCESS) return result;
    fake_count_launch(work);
    if (!fake_is_deferred()) {
        fake_run_work(work);
        return CUDA_SUCCESS;
    }
    if (stream == context->legacy) fake_flush();
    else if (is_ordered_with_legacy(stream) && context->legacy && context->legacy->waiting)
        fake_flush();
    enqueue(stream, work);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    CUcontext context;
    CUresult result = fake_begin("cuStreamCreate", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_need_context(&context);
    if (result == CUDA_SUCCESS)
        *stream = new_stream(context, !(flags & FAKECUDA_STREAM_NON_BLOCKING));
    return fake_end(result);
}

/* The address may be taken again while the work waits, as the driver's may. */
static void destroy_stream(struct CUstream_st *stream)
{
    if (stream->waiting) {
        struct CUstream_st *ghost = calloc(1, sizeof *ghost);
        ghost->mark = MARK_GHOST;
        ghost->waiting = stream->waiting;
        ghost->next = streams;
        streams = ghost;
        stream->waiting = NULL;
    }
    stream->mark = MARK_DEAD;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    CUresult result = fake_begin("cuStreamDestroy", CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS && ((uintptr_t)stream <= 2 || stream->mark != MARK_STREAM)) {
        result = fake_problem(CUDA_ERROR_INVALID_HANDLE, "destroying no stream");
    }
    if (result == CUDA_SUCCESS) destroy_stream(stream);
    return fake_end(result);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    CUstream stream;
    CUresult result = fake_begin("cuStreamGetCtx", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_stream(handle, &stream);
    if (result == CUDA_SUCCESS) *context = stream->context;
    return fake_end(result);
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    CUstream stream;
    CUresult result = fake_begin("cuStreamGetId", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_stream(handle, &stream);
    if (result == CUDA_SUCCESS && stream->capture) {
        /* seen on a real driver: the question alone ends a capture */
        invalidate(stream->capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS) *id = stream->id;
    return fake_end(result);
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    CUstream stream;
    CUresult result = fake_begin("cuStreamIsCapturing", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_stream(handle, &stream);
    if (result == CUDA_SUCCESS) result = check_legacy(stream);
    if (result == CUDA_SUCCESS) {
        *status = stream->capture ? stream->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
    }
    return fake_end(result);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
    CUstream stream;
    CUresult result = fake_begin("cuStreamGetCaptureInfo", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_stream(handle, &stream);
    if (result == CUDA_SUCCESS) result = check_legacy(stream);
    if (result == CUDA_SUCCESS) {
        const struct capture *capture = stream->capture;
        *status = capture ? capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
        if (capture && capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
            if (id) *id = capture->id;
            if (graph) *graph = capture->graph;
            if (dependencies) *dependencies = stream->last;
            if (count) *count = (size_t)stream->last_count;
        }
    }
    return fake_end(result);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    CUstream stream;
    CUresult result = fake_begin("cuStreamSynchronize", CALL_UNSAFE);
    if (result == CUDA_SUCCESS) result = fake_stream(handle, &stream);
    if (result == CUDA_SUCCESS) result = check_legacy(stream);
    if (result == CUDA_SUCCESS && stream->capture) {
        invalidate(stream->capture);
        result =
            fake_problem(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "waiting for a capturing stream");
    }
    if (result == CUDA_SUCCESS) fake_flush();
    return fake_end(result);
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
    CUresult result = fake_begin("cuStreamBeginCapture", CALL_PLAIN);
    if (result == CUDA_SUCCESS && ((uintptr_t)handle <= 1 || handle->mark != MARK_STREAM)) {
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS && handle->capture) result = CUDA_ERROR_ILLEGAL_STATE;
    if (result == CUDA_SUCCESS) {
        struct capture *it = calloc(1, sizeof *it);
        it->id = fake_next_id();
        it->mode = mode;
        it->thread = pthread_self();
        it->graph = fake_graph_new();
        it->graph->captured_into = true;
        it->origin = handle;
        it->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        it->next = captures;
        captures = it;
        handle->capture = it;
        handle->last_count = 0;
    }
    return fake_end(result);
}

static CUresult end_capture(CUstream origin, CUgraph *graph)
{
    struct capture *capture = origin->capture;
    CUresult result = CUDA_SUCCESS;
    struct capture **link = &captures;
    if (!capture || capture->origin != origin) return CUDA_ERROR_ILLEGAL_STATE;
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    for (struct CUstream_st *it = streams; it; it = it->next)
        if (it->capture == capture) it->capture = NULL;
    for (struct CUevent_st *it = events; it; it = it->next)
        if (it->capture == capture) it->capture = NULL;
    *graph = NULL;
    if (capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        capture->graph->captured_into = false;
        *graph = capture->graph;
    } else {
        fake_graph_delete(capture->graph);
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    free(capture);
    return result;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CUresult result = fake_begin("cuStreamEndCapture", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = end_capture(stream, graph);
    return fake_end(result);
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    CUresult result = fake_begin("cuEventCreate", CALL_PLAIN);
    (void)flags;
    if (result == CUDA_SUCCESS) {
        struct CUevent_st *it = calloc(1, sizeof *it);
        it->mark = MARK_EVENT;
        it->next = events;
        events = it;
        *event = it;
    }
    return fake_end(result);
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
    CUstream stream;
    CUresult result = fake_begin("cuEventRecord", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_stream(handle, &stream);
    if (result == CUDA_SUCCESS) {
        event->capture = stream->capture;
        event->last_count = stream->last_count;
        memcpy(event->last, stream->last, sizeof event->last);
        /* outside captures, a wait that follows finds everything done */
        if (!stream->capture) {
            struct timespec now;
            fake_flush();
            clock_gettime(CLOCK_MONOTONIC, &now);
            event->milliseconds = 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
        }
    }
    return fake_end(result);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUresult result = fake_begin("cuEventElapsedTime", CALL_PLAIN);
    if (result == CUDA_SUCCESS && (start->milliseconds <= 0.0 || end->milliseconds <= 0.0)) {
        result = fake_problem(CUDA_ERROR_INVALID_HANDLE, "the time of an event never recorded");
    }
    if (result == CUDA_SUCCESS) *milliseconds = (float)(end->milliseconds - start->milliseconds);
    return fake_end(result);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
    CUstream stream;
    CUresult result = fake_begin("cuStreamWaitEvent", CALL_PLAIN);
    (void)flags;
    if (result == CUDA_SUCCESS) result = fake_stream(handle, &stream);
    if (result == CUDA_SUCCESS && event->capture) {
        if (!stream->capture) {
            stream->capture = event->capture;
            stream->last_count = 0;
        }
        if (stream->capture != event->capture ||
            stream->last_count + event->last_count > DEPENDENCIES_MAX) {
            result = CUDA_ERROR_INVALID_VALUE;
        } else {
            for (int i = 0; i < event->last_count; ++i) {
                stream->last[stream->last_count++] = event->last[i];
            }
        }
    }
    return fake_end(result);
}

CUresult cuEventDestroy_v2(CUevent event)
{
    CUresult result = fake_begin("cuEventDestroy", CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS && event->mark != MARK_EVENT) {
        result = fake_problem(CUDA_ERROR_INVALID_HANDLE, "destroying no event");
    }
    if (result == CUDA_SUCCESS) event->mark = MARK_DEAD;
    return fake_end(result);
}

void fake_stream_drop_context(CUcontext context)
{
    for (struct CUstream_st *it = streams; it; it = it->next)
        if (it->context == context) it->mark = MARK_DEAD;
    context->legacy = NULL;
}

int fake_report_streams(void)
{
    int problems = 0;
    for (struct CUstream_st *it = streams; it; it = it->next) {
        if (it->mark != MARK_STREAM || it == it->context->legacy || it == per_thread) continue;
        fprintf(stderr, "fake driver: stream %llu was not destroyed\n", (unsigned long long)it->id);
        problems += 1;
    }
    for (struct CUevent_st *it = events; it; it = it->next) {
        if (it->mark != MARK_EVENT) continue;
        fprintf(stderr, "fake driver: an event was not destroyed\n");
        problems += 1;
    }
    for (struct capture *it = captures; it; it = it->next) {
        fprintf(stderr, "fake driver: capture %llu was not ended\n", (unsigned long long)it->id);
        problems += 1;
    }
    if (thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL) {
        fprintf(stderr, "fake driver: this thread's capture mode was left at %d\n", thread_mode);
        problems += 1;
    }
    return problems;
}
