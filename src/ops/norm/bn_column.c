/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization on the GPU where columns have few rows, as per activation: a thread has a column, reads it, and
 * writes when it is still in the cache. Training, inference, and backward with saved statistics, of nothing but
 * the norm, at any alignment. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/bn_column_args.h"
#include "ops/norm/bn_gpu.h"

#define WD_KERNELS_MODULE bn_column
#define WD_KERNELS_ROWS "ops/norm/bn_column_kernels.def"
#include "ops/kernels_host.inc"

enum {
    /* of a column in all that is read twice: so that what is under way stays in the cache */
    ROW_BYTES = 128,
    COLUMNS_LEAST = 512, /* a thread each */
    COLUMNS_BUSY = 64,   /* of a multiprocessor, that more than LITTLE rows need */
    /* Likewise, of inference, whose rows need not be one thread's: 65 of 56 rows took 7.2 us where bn_inference_vector
     * takes 3.4 (H200). That has more rows than ROW_BYTES, too, but off the boundaries where there are so many. */
    COLUMNS_INFERENCE = 256,
    COLUMNS_TALL = 1024,
    LITTLE = 4,
};

/* The slot of what is added to results, and of the reserve space (-1: none), of an operation; its first kernel. */
struct step {
    int added;
    int reserve;
    int kernel;
};

static struct step step_of(const struct wd_problem *problem)
{
    switch (problem->node->op) {
    case WD_OP_BN_TRAINING:
        return (struct step){WD_BN_TRAIN_Z, WD_BN_TRAIN_RESERVE, KERNEL_bn_column_forward_f32};
    case WD_OP_BN_INFERENCE:
        return (struct step){WD_BN_INFER_Z, -1, KERNEL_bn_column_inference_f32};
    default: return (struct step){WD_BN_GRAD_DZ, WD_BN_GRAD_RESERVE, KERNEL_bn_column_backward_f32};
    }
}

/* Whether columns are longer than what is read twice should be. */
static bool is_tall(const struct wd_problem *problem, int64_t rows)
{
    const int size = (int)wd_dtype_bytes(wd_slot(problem->graph, problem->node, 0)->dtype);
    return rows * size * (problem->node->op == WD_OP_BN_BACKWARD ? 2 : 1) > ROW_BYTES;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_norm_attr *attr = &problem->node->attr.norm;
    const struct step step = step_of(problem);
    const bool backward = problem->node->op == WD_OP_BN_BACKWARD;
    struct wd_bn_gpu_space s;
    const bool inference = problem->node->op == WD_OP_BN_INFERENCE;
    int64_t busy = inference ? COLUMNS_INFERENCE : COLUMNS_BUSY;
    bool tall;
    if (!wd_bn_gpu_match(problem, &s, false, reason)) return false;
    WD_NEED(!backward || wd_slot(problem->graph, problem->node, WD_BN_GRAD_SAVED_MEAN), reason,
            NOT_SUPPORTED, "the statistics were not saved");
    WD_NEED(step.reserve < 0 || !wd_slot(problem->graph, problem->node, step.reserve), reason,
            NOT_SUPPORTED, "the reserve space is bn_grid's");
    WD_NEED(!wd_slot(problem->graph, problem->node, step.added) &&
                (attr->ops == CUDNN_BATCHNORM_OPS_BN ||
                 attr->activation.mode == CUDNN_POINTWISE_IDENTITY),
            reason, NOT_SUPPORTED, "an activation, or something is added");
    tall = is_tall(problem, s.outer);
    if (tall) busy = COLUMNS_TALL;
    WD_NEED(s.inner == 1 && (inference || !tall), reason, NOT_SUPPORTED_SHAPE,
            "not columns of up to %d bytes", ROW_BYTES);
    WD_NEED(s.params >= COLUMNS_LEAST && s.params <= INT32_MAX && s.outer <= INT32_MAX &&
                (s.outer <= LITTLE || s.params >= busy * problem->device->multiprocessors),
            reason, NOT_SUPPORTED_SHAPE, "%lld columns are few, or too many", (long long)s.params);
    return !tall || wd_engine_bn_inference_vector.match(problem, reason);
}

/* The arguments but for pointers and scalars. */
static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct bn_column_args *a = prepared;
    struct wd_bn_gpu_space s;
    wd_bn_gpu_see(&s, problem);
    memset(a, 0, sizeof *a);
    a->bn = wd_bn_gpu_args(problem, &s);
    a->bn.units = (uint32_t)s.outer;
    a->inverse = 1.0 / (double)s.outer;
    a->unbiased = 1.0 / (double)wd_most(s.outer - 1, 1);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct bn_column_args a;
    const int kernel = step_of(&call->problem).kernel + wd_bn_gpu_type(&call->problem);
    a = *(const struct bn_column_args *)wd_call_prepared(call, prepare, &a);
    wd_bn_gpu_bind(&a.bn, call);
    if (a.bn.aligned && is_tall(&call->problem, a.bn.units)) {
        struct wd_call handed = *call;
        handed.prepared = NULL;
        return wd_engine_bn_inference_vector.emit(&handed, queue);
    }
    a.plain = a.bn.alpha == 1.0f && a.bn.beta == 0.0f;
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(a.bn.params, BN_COLUMN_THREADS),
                          BN_COLUMN_THREADS, 0, &a);
}

const struct wd_engine wd_engine_bn_training_column = {
    .name = "bn_training_column",
    .op = WD_OP_BN_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct bn_column_args),
    .emit = emit,
};

const struct wd_engine wd_engine_bn_backward_column = {
    .name = "bn_backward_column",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct bn_column_args),
    .emit = emit,
};

const struct wd_engine wd_engine_bn_inference_column = {
    .name = "bn_inference_column",
    .op = WD_OP_BN_INFERENCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct bn_column_args),
    .emit = emit,
};
