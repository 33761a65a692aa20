/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward of batch normalization on the GPU where a parameter has at most a run a thread of one block, with
 * saved statistics: there waiting for memory is what counts. Tensors off the boundaries go to bn_chip. */
#include "ops/norm/bn_gpu.h"

#define WD_KERNELS_MODULE bn_small
#define WD_KERNELS_ROWS "ops/norm/bn_small_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    UNITS_MOST = 512,
    WAVES = 2, /* of blocks, at most: with more the chip has enough to wait for as it is */
};

/* Elements of a plane: all of a parameter's where it is the only one. */
static int64_t plane_of(const struct wd_bn_gpu_space *s)
{
    return s->params == 1 ? s->total : s->inner;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_bn_gpu_space s;
    int64_t units;
    if (!wd_bn_gpu_match(problem, &s, false, reason)) return false;
    WD_NEED(wd_slot(problem->graph, problem->node, WD_BN_GRAD_SAVED_MEAN), reason, NOT_SUPPORTED,
            "the statistics were not saved");
    units = s.total / s.params / BN_RUN;
    WD_NEED(plane_of(&s) % BN_RUN == 0 && units <= UNITS_MOST, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements a parameter, in planes of %lld, are no runs of %d, or more than %d",
            (long long)(s.total / s.params), (long long)plane_of(&s), BN_RUN, UNITS_MOST);
    /* such are elements to bn_chip, which has those that are misaligned */
    WD_NEED(s.inner % BN_RUN == 0 || !wd_slot(problem->graph, problem->node, WD_BN_GRAD_RESERVE),
            reason, NOT_SUPPORTED_SHAPE, "one parameter with a reserve space");
    WD_NEED(s.params <= (int64_t)WAVES * problem->device->multiprocessors, reason,
            NOT_SUPPORTED_SHAPE, "%lld parameters are not few", (long long)s.params);
    return true;
}

/* The arguments but for pointers and scalars. */
static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct bn_vector_args *a = prepared;
    struct wd_bn_gpu_space s;
    wd_bn_gpu_see(&s, problem);
    *a = wd_bn_gpu_args(problem, &s);
    a->units = (uint32_t)(s.total / s.params / BN_RUN);
    a->by_plane = wd_fastdiv_of((uint32_t)(plane_of(&s) / BN_RUN));
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct bn_vector_args a;
    a = *(const struct bn_vector_args *)wd_call_prepared(call, prepare, &a);
    wd_bn_gpu_bind(&a, call);
    if (!a.aligned) return wd_bn_chip_emit(call, queue);
    return wd_emit_kernel(queue, &kernel_rows[wd_bn_gpu_type(&call->problem)], a.params,
                          (a.units + WARP - 1) / WARP * WARP, 0, &a);
}

const struct wd_engine wd_engine_bn_backward_small = {
    .name = "bn_backward_small",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct bn_vector_args),
    .emit = emit,
};
