/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU engines of softmax share on the host: which tensors they take, how a tensor is seen as
 * [outer][length][inner], and the arguments that every launch has. Plain functions of shape, type and
 * device. */
#ifndef WD_OPS_SOFTMAX_GPU_H
#define WD_OPS_SOFTMAX_GPU_H

#include "ops/engine.h"
#include "ops/kernels.h"
#include "ops/softmax/softmax_vector_args.h"

enum { SOFTMAX_WARP = 32, SOFTMAX_CLUSTER_MAX = SOFTMAX_CLUSTER_BLOCKS };

/* A tensor as [outer][length][inner]. */
struct wd_softmax_shape {
    int64_t outer;
    int64_t length;
    int64_t inner;
    int64_t total;
    int type;         /* place among the kernels of four types */
    int64_t bytes;    /* of an element */
    int64_t elements; /* of a run */
    int64_t pair;     /* bytes of a maximum and a sum */
};

/* False where elements of a row are not neighbours in memory but for one stride. */
bool wd_softmax_see(struct wd_softmax_shape *s, const struct wd_tensor *x, int mode);

/* The conditions of all; `s` is set where they hold. */
bool wd_softmax_gpu_match(const struct wd_problem *problem, struct wd_softmax_shape *s,
                          struct wd_reason *reason);

/* Sets what does not depend on the kernel; `shift` where the tensors lie alike, and *alike to whether
 * they do: whether all are equally far behind a boundary of 16 bytes. */
void wd_softmax_gpu_args(const struct wd_call *call, const struct wd_device *device,
                         struct wd_softmax_shape *s, struct softmax_vector_args *a, bool *alike);

/* Tensors that the operation reads. */
int wd_softmax_gpu_inputs(const struct wd_problem *problem);

/* Blocks of a cluster at most; 1 where there are none. */
int wd_softmax_gpu_cluster(const struct wd_device *device);

/* The launch of the staged engines (softmax_staged.c), also for rows of whole runs that begin
 * elsewhere: of up to 1023 elements, not of fp64. */
cudnnStatus_t wd_softmax_staged_emit(const struct wd_call *call, struct wd_queue *queue);

/* The launch of the engines of blocks and clusters (softmax_vector.c), also for rows of up to 8 KiB elements that
 * begin anywhere, which take no workspace. */
cudnnStatus_t wd_softmax_vector_emit(const struct wd_call *call, struct wd_queue *queue);

/* These engines, which have what others of long rows leave to them. */
extern const struct wd_engine wd_engine_softmax_forward_vector;
extern const struct wd_engine wd_engine_softmax_backward_vector;

/* `lanes` and `blocks` are powers of two. */
void wd_softmax_set_lanes(struct softmax_vector_args *a, int64_t lanes);
void wd_softmax_set_cluster(struct softmax_vector_args *a, int64_t blocks);

static inline int64_t wd_softmax_multiple_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

#endif
