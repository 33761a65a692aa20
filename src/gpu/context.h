/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream queue's inside, and its context: made current for the length of an execution and no
 * longer, by a push only where it is not current already. */
#ifndef WD_GPU_CONTEXT_H
#define WD_GPU_CONTEXT_H

#include "gpu/arena.h"
#include "gpu/device.h"
#include "gpu/gpu.h"

struct wd_gpu_queue {
    struct wd_queue base;
    CUcontext context;
    uint64_t context_id;
    CUdevice device;
    CUstream stream;
    int place;         /* of loaded kernels, by the device's capability (gpu/module.h) */
    bool owns_primary; /* a reference to the device's primary context is ours */
    bool pushed;       /* the outermost begin pushed the context */
    int depth;         /* of begins */
    struct wd_arena *held;
};

/* Begins nest; only the outermost pair pushes and pops. `function` is the call that failed. */
CUresult wd_context_enter(struct wd_gpu_queue *queue, const char **function);
void wd_context_leave(struct wd_gpu_queue *queue);

/* Allocating, freeing and loading are forbidden to a thread while a stream captures, for they might
 * synchronise. Between these two they are allowed: what we do there needs no order with captured
 * work. */
CUresult wd_capture_relax(CUstreamCaptureMode *before);
void wd_capture_restore(CUstreamCaptureMode before);

/* Device memory of the current context, whatever captures. */
CUresult wd_relaxed_alloc(size_t bytes, void **data, const char **function);
CUresult wd_relaxed_free(void *data, const char **function);
/* Waits until it is done: for memory that nothing under way uses. */
CUresult wd_relaxed_zero(void *data, size_t bytes, const char **function);

/* The queue behind a base that wd_gpu_queue_create made. */
static inline struct wd_gpu_queue *wd_gpu_queue_of(struct wd_queue *queue)
{
    return (struct wd_gpu_queue *)queue;
}

#endif
