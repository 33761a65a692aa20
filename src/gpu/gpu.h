/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU floor as the floors above see it: the driver API opened at run time, devices, the queues
 * that run on a stream, fill a CUDA graph or patch one, and device memory. Nothing here is touched
 * before the first handle asks for a GPU, and a machine without a driver never gets past the probe.
 *
 * Thread rules: the probe and the tables behind it are safe for threads; a queue belongs to one
 * thread at a time, as its handle does. */
#ifndef WD_GPU_GPU_H
#define WD_GPU_GPU_H

#include "base/queue.h"

/* What the machine has. NONE: no driver library or no device: the CPU may serve. UNUSABLE: a driver
 * too old, no permission, a device that no kernel of ours covers, a failing driver call: an error
 * for every caller that did not ask for the CPU. */
enum wd_gpu_state { WD_GPU_NONE, WD_GPU_READY, WD_GPU_UNUSABLE };

/* Looks once a process (opens libcuda.so.1, initialises it); `why` (may be null) then says what was
 * found and what is needed, and stays valid. */
enum wd_gpu_state wd_gpu_probe(const char **why);

/* The facts of the device with this ordinal, which stay valid; null where the machine has none, or
 * before the probe has found any. */
const struct wd_device *wd_device_at(int ordinal);

/* Whether the calling thread has a CUDA context current (false where there is no driver). Works in
 * a build without CUDA kernels too: it is how such a build finds out that it must refuse. */
bool wd_gpu_context_is_current(void);

/* A stream queue on the current context, or on the primary context of device 0 (retained until
 * destroy) where none is current. The stream is the legacy default stream at first. */
cudnnStatus_t wd_gpu_queue_create(struct wd_queue **queue);
void wd_gpu_queue_destroy(struct wd_queue *queue);

/* The stream must belong to the queue's context: BAD_PARAM_STREAM_MISMATCH otherwise. Refused with
 * nothing changed while the stream is in an invalid capture state. */
cudnnStatus_t wd_gpu_queue_set_stream(struct wd_queue *queue, cudaStream_t stream);
cudaStream_t wd_gpu_queue_stream(const struct wd_queue *queue);

/* Waits for the queue's stream. Refused while it captures. */
cudnnStatus_t wd_gpu_queue_synchronize(struct wd_queue *queue);

/* Queues that write the work of the next execution into `graph` as one chain of nodes, or that
 * update the nodes of such a chain in place (same count, same order, same functions; else
 * BAD_PARAM_CUDA_GRAPH_MISMATCH and the graph is left as it was). Borrow `stream_queue`'s context.
 * Scratch that they hand out is owned by the graph. The object lives in caller's memory. */
struct wd_gpu_graph_queue {
    struct wd_queue base;
    struct wd_queue *stream_queue;
    cudaGraph_t graph;
    void *last;      /* CUgraphNode after which the next one goes */
    void *nodes;     /* patch: the chain, in order */
    size_t count;    /* patch: its length */
    size_t position; /* patch: nodes seen so far */
};
cudnnStatus_t wd_gpu_graph_queue_init(struct wd_gpu_graph_queue *queue,
                                      struct wd_queue *stream_queue, cudaGraph_t graph);
cudnnStatus_t wd_gpu_patch_queue_init(struct wd_gpu_graph_queue *queue,
                                      struct wd_queue *stream_queue, cudaGraph_t graph);
/* Ends either; for a patch also checks that the whole chain was met. Passes `status` through. */
cudnnStatus_t wd_gpu_graph_queue_fini(struct wd_gpu_graph_queue *queue, cudnnStatus_t status);

/* Device memory on the queue's context. Copy takes host and device pointers in any direction,
 * is ordered after the queue's stream and complete on return. */
cudnnStatus_t wd_gpu_malloc(struct wd_queue *queue, size_t bytes, void **data);
cudnnStatus_t wd_gpu_free(struct wd_queue *queue, void *data);
cudnnStatus_t wd_gpu_copy(struct wd_queue *queue, void *to, const void *from, size_t bytes);

/* Whether the process has a driver library open, whoever opened it; false costs no more than asking
 * whether libraries came since the last time. */
bool wd_gpu_driver_is_loaded(void);

/* Whether `data` is device memory that a kernel on the queue's context may use: 1, 0, or -1 where
 * the driver cannot tell. For the checks of DESIGN section 8; also used by CPU handles (null queue)
 * to refuse device pointers while a driver is loaded. */
int wd_gpu_owns_pointer(struct wd_queue *queue, const void *data);

/* Arena bytes alive, all contexts. */
uint64_t wd_gpu_scratch_bytes(void);

#endif
