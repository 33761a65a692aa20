/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums and what is picked of few long rows of little memory, on GPUs that have clusters: a cluster a
 * row, one launch, one round of loads (reduce_cluster.cu). The cuts depend on shape and type alone,
 * but for whether x begins at whole runs. No state. */
#include "base/sizes.h"
#include "ops/reduce/reduce_gpu.h"

#define WD_KERNELS_MODULE reduce_cluster
#define WD_KERNELS_ROWS "ops/reduce/reduce_cluster_kernels.def"
#include "ops/kernels_host.inc"

enum {
    TYPES = 2, /* fp32, those of two bytes */
    CLUSTER = REDUCE_CLUSTER_MOST,
    CLUSTER_CAPABILITY = 90,
    OUTPUTS_MAX = 16,         /* clusters that there is room for at once */
    ROW_BYTES_MIN = 16 << 10, /* below, a block is as fast alone */
    ROW_BYTES_MAX = 1 << 20,  /* beyond, more blocks are worth a second launch */
    THREADS_MIN = 64,
    THREADS_MAX = 1024,
};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_reduce_space s;
    if (!wd_reduce_gpu_match(&s, problem, reason)) return false;
    WD_NEED(problem->device->cooperative && problem->device->capability >= CLUSTER_CAPABILITY,
            reason, NOT_SUPPORTED, "the device has no clusters");
    WD_NEED(s.type != REDUCE_F64 && s.class != WD_REDUCE_PRODUCT, reason, NOT_SUPPORTED_DATA_TYPE,
            "fp64 and products are not taken");
    WD_NEED(s.k2 == 1 && s.r0 == 1 && !s.permuted, reason, NOT_SUPPORTED_LAYOUT,
            "outputs are no rows of neighbours in memory");
    WD_NEED(s.outputs <= OUTPUTS_MAX && s.r1 * s.bytes >= ROW_BYTES_MIN &&
                s.r1 * s.bytes <= ROW_BYTES_MAX,
            reason, NOT_SUPPORTED_SHAPE, "%lld rows of %lld bytes are no work for a cluster each",
            (long long)s.outputs, (long long)(s.r1 * s.bytes));
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_reduce_space s = wd_reduce_gpu_see(&call->problem);
    int kernel =
        s.class == WD_REDUCE_PICK ? KERNEL_reduce_cluster_pick_f32 : KERNEL_reduce_cluster_sum_f32;
    struct reduce_vector_args a;
    int64_t threads = wd_ceil_div(s.r1, s.elements * CLUSTER * REDUCE_CLUSTER_RUNS);
    WD_TRY(wd_reduce_gpu_args(call, &s, &a));
    threads = wd_clamp(wd_power_up(threads), THREADS_MIN, THREADS_MAX);
    return wd_emit_cluster_kernel(queue, &kernel_rows[kernel + (s.type > REDUCE_F64)],
                                  s.outputs * CLUSTER, (uint32_t)threads, CLUSTER, 0, &a);
}

const struct wd_engine wd_engine_reduce_cluster = {
    .name = "reduce_cluster",
    .op = WD_OP_REDUCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
