/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU engines of batch normalization share on the host: x
 * as [outer][params][inner], what all engines demand of a problem, and the arguments that do not
 * depend on how x is walked. */
#ifndef WD_OPS_NORM_BN_GPU_H
#define WD_OPS_NORM_BN_GPU_H

#include "graph/norm_slots.h"
#include "ops/engine.h"
#include "ops/norm/bn_vector_args.h"

enum {
    BN_LARGE = 64 << 20
}; /* bytes of x from which on what backward masks by planes is read twice */

struct wd_bn_gpu_space {
    int64_t outer;
    int64_t params;
    int64_t inner;
    int64_t total;
};

/* False where parameters are not neighbours in memory. */
bool wd_bn_gpu_see(struct wd_bn_gpu_space *space, const struct wd_problem *problem);

/* Packed tensors of one layout in fp32, fp16 or bf16, parameters in fp32 (if `wide` also fp64 with
 * parameters in fp64), and an activation that is none, the identity, relu or clipped relu. */
bool wd_bn_gpu_match(const struct wd_problem *problem, struct wd_bn_gpu_space *space, bool wide,
                     struct wd_reason *reason);

/* 0, 1, 2 or 3 for fp32, fp16, bf16 and fp64: the order of rows in the tables. */
int wd_bn_gpu_type(const struct wd_problem *problem);

/* The arguments, but for how x is walked and where the scratch is, in two parts: what the problem says, which
 * is for engines to prepare; and in each call its pointers and scalars, and whether all lie alike. */
struct bn_vector_args wd_bn_gpu_args(const struct wd_problem *problem,
                                     const struct wd_bn_gpu_space *space);
void wd_bn_gpu_bind(struct bn_vector_args *a, const struct wd_call *call);

/* Engines that take what matches wherever tensors lie. */
extern const struct wd_engine wd_engine_bn_training_vector;
extern const struct wd_engine wd_engine_bn_inference_vector;
extern const struct wd_engine wd_engine_bn_backward_vector;

/* Channels that a block of bn_cluster holds where its blocks, one a processor, walk down them; 0: they do not. */
int64_t wd_bn_cluster_slots(const struct wd_problem *problem, const struct wd_bn_gpu_space *s);

/* Training and backward of parameters whose elements fit the registers of a block, wherever pointers lie. */
cudnnStatus_t wd_bn_chip_emit(const struct wd_call *call, struct wd_queue *queue);

#endif
