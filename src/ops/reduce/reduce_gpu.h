/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU engines of reduce share on the host: which problems they take, how x lies, where
 * outputs go, how work is cut among blocks, and the second stage. Pure functions. */
#ifndef WD_OPS_REDUCE_GPU_H
#define WD_OPS_REDUCE_GPU_H

#include "ops/engine.h"
#include "ops/reduce/reduce_vector_args.h"

enum { WD_REDUCE_X, WD_REDUCE_Y, WD_REDUCE_INDICES };

/* Kernels are in this order, four types each. */
enum wd_reduce_class { WD_REDUCE_SUM, WD_REDUCE_PRODUCT, WD_REDUCE_PICK };

/* x as [k0][r0][k1][r1][k2], the r being reduced. */
struct wd_reduce_space {
    int64_t k0, r0, k1, r1, k2;
    int64_t outputs;
    int64_t terms;
    int64_t total;
    int type;         /* enum reduce_type of x */
    int64_t bytes;    /* of an element */
    int64_t elements; /* of a run */
    enum wd_reduce_class class;
    int64_t state; /* bytes */
    bool indices;
    bool permuted; /* indices count otherwise than memory goes through the reduced dims */
};

/* Packed x of four types, dims that alternate at most so often, y of any strides. */
bool wd_reduce_gpu_match(struct wd_reduce_space *space, const struct wd_problem *problem,
                         struct wd_reason *reason);
/* Which of three types kernels are of: fp16 and bf16 share one. */
static inline int wd_reduce_gpu_type(const struct wd_reduce_space *s)
{
    return s->type < REDUCE_F16 ? s->type : REDUCE_F16;
}

/* For problems that match. */
struct wd_reduce_space wd_reduce_gpu_see(const struct wd_problem *problem);

/* How the units of an output are cut; a cluster's blocks need no workspace. */
struct wd_reduce_cut {
    int64_t segments;
    int64_t cluster;
};
/* Segments of so many blocks without a cut, for a wave of blocks: of one, or where that is far from full, of a few. */
int64_t wd_reduce_gpu_fill(int64_t tiles, int64_t wave);
enum { WD_REDUCE_BLOCKS = 12 }; /* of a processor, several waves, so that none is waited for */
/* `tiles` blocks without a cut; `worth` segments that pay; `blocks` of a processor, where there is much;
 * `fills`: these are there at once, and segments fill them (wd_reduce_gpu_fill), where x is enough for all of them. */
struct wd_reduce_cut wd_reduce_gpu_cut(const struct wd_reduce_space *space,
                                       const struct wd_device *device, int64_t tiles, int64_t worth,
                                       int64_t blocks, bool fills);
int64_t wd_reduce_gpu_workspace(const struct wd_reduce_space *space,
                                const struct wd_reduce_cut *cut);

/* Everything but how x is walked. */
cudnnStatus_t wd_reduce_gpu_args(const struct wd_call *call, const struct wd_reduce_space *space,
                                 struct reduce_vector_args *args);
/* The cut of `units`, but for segments that would have none; a cluster has all its blocks. */
void wd_reduce_gpu_set_cut(struct reduce_vector_args *args, const struct wd_reduce_cut *cut,
                           int64_t units);
void wd_reduce_gpu_set_lanes(struct reduce_vector_args *args, int64_t lanes);

/* Bytes of shared memory in which a block joins its columns, `elements` a thread. */
uint32_t wd_reduce_gpu_shared(const struct wd_reduce_space *space, int64_t threads, int64_t across,
                              int64_t elements);

/* Joins the segments, where there are several and no cluster has done so. */
cudnnStatus_t wd_reduce_gpu_finish(struct wd_queue *queue, const struct wd_reduce_space *space,
                                   const struct reduce_vector_args *args);

#endif
