/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax on the GPU over rows of a block, a cluster of blocks, or more, forward and backward;
 * neighbours of a row are neighbours in memory. Rows that fit into the shared memory of a cluster are
 * read once; longer ones twice, in groups that the cache keeps until then. softmax_vector_args.h says
 * how x is walked; the cuts depend on shape, type and device alone. No state. */
#include "base/sizes.h"
#include "ops/softmax/softmax_gpu.h"

#define WD_KERNELS_MODULE softmax_vector
#define WD_KERNELS_ROWS "ops/softmax/softmax_vector_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = SOFTMAX_WARP,
    SHARED_FIXED = 2 << 10,   /* bound of a block's own and of the system's shared memory */
    SHARED_WANTED = 40 << 10, /* of a block's part, so that a processor has several */
    CLUSTER_RUNS = 512,       /* that a block must have for a cluster to pay */
    SEGMENT_RUNS = SOFTMAX_LONG_THREADS * SOFTMAX_LONG_RUNS,
    SEGMENTS_MAX = 1024, /* of a row: what a block joins */
    BLOCK_RUNS = 4,      /* of a thread, where there is a choice */
    BLOCK_THREADS = 256, /* likewise; more where the block is alone on its processor */
};

/* The kernels of a direction, the first of each four. */
struct direction {
    int tensors; /* read */
    int block, sums, spread, stray;
};

static const struct direction forward = {
    1,
    KERNEL_softmax_block_f32,
    KERNEL_softmax_sums_f32,
    KERNEL_softmax_spread_f32,
    KERNEL_softmax_stray_f32,
};

static const struct direction backward = {
    2,
    KERNEL_softmax_gradient_block_f32,
    KERNEL_softmax_gradient_sums_f32,
    KERNEL_softmax_gradient_spread_f32,
    KERNEL_softmax_gradient_stray_f32,
};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_softmax_shape s;
    if (!wd_softmax_gpu_match(problem, &s, reason)) return false;
    WD_NEED(s.inner == 1, reason, NOT_SUPPORTED_LAYOUT,
            "neighbours of a row are %lld elements apart", (long long)s.inner);
    /* a row is up to a cluster's; such short ones other engines have taken */
    WD_NEED(s.outer <= INT32_MAX / SOFTMAX_CLUSTER_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld rows are more than a launch has blocks for", (long long)s.outer);
    return true;
}

/* Runs of the longest row that starts anywhere, or of all rows where each is whole runs. */
static int64_t runs_of(const struct wd_softmax_shape *s, bool whole)
{
    if (whole && s->length % s->elements == 0) return s->length / s->elements;
    return (s->length + 2 * s->elements - 2) / s->elements;
}

/* Runs of each tensor that a block can have. */
static int64_t block_runs(const struct direction *d, const struct wd_device *device)
{
    return (device->shared_per_block - SHARED_FIXED) / (SOFTMAX_BYTES * d->tensors);
}

static bool is_long(const struct direction *d, const struct wd_device *device, int64_t runs)
{
    int64_t cluster = wd_softmax_gpu_cluster(device);
    return wd_ceil_div(runs, cluster) > block_runs(d, device);
}

/* How long rows are cut: as many at once as the cache holds until they are read again, equally many
 * each time; all at once where the cache holds most of the tensor. */
struct cut {
    int64_t rows;
    int64_t segments;
    int64_t runs; /* of a segment */
};

static struct cut cut_long(const struct direction *d, const struct wd_softmax_shape *s,
                           const struct wd_device *device, int64_t runs)
{
    struct cut cut;
    int64_t row_bytes = s->length * s->bytes * d->tensors;
    int64_t most = wd_most(1, device->l2_bytes / 8 * 5 / row_bytes);
    if (s->outer * row_bytes <= device->l2_bytes / 2 * 3) most = s->outer;
    cut.rows = wd_ceil_div(s->outer, wd_ceil_div(s->outer, most));
    cut.segments = wd_least(wd_ceil_div(runs, SEGMENT_RUNS), SEGMENTS_MAX);
    cut.runs = wd_ceil_div(runs, cut.segments);
    cut.segments = wd_ceil_div(runs, cut.runs);
    return cut;
}

/* Pointers that are whole runs may make fewer segments, never more. */
static int64_t workspace(const struct wd_problem *problem)
{
    const struct direction *d = wd_softmax_gpu_inputs(problem) > 1 ? &backward : &forward;
    struct wd_softmax_shape s;
    struct cut cut;
    wd_softmax_see(&s, wd_slot(problem->graph, problem->node, 0), problem->node->attr.softmax.mode);
    if (!is_long(d, problem->device, runs_of(&s, false))) return 0;
    cut = cut_long(d, &s, problem->device, runs_of(&s, false));
    return cut.rows * wd_least(SEGMENTS_MAX, cut.segments + 1) * s.pair;
}

static cudnnStatus_t emit_block(const struct direction *d, const struct wd_softmax_shape *s,
                                int64_t runs, struct wd_queue *queue, struct softmax_vector_args *a)
{
    const struct wd_device *device = queue->device;
    int64_t cluster = 1;
    int64_t each;
    int64_t threads;
    int most = wd_softmax_gpu_cluster(device);
    while (cluster < most &&
           wd_ceil_div(runs, cluster) * SOFTMAX_BYTES * d->tensors > SHARED_WANTED) {
        cluster *= 2;
    }
    while (cluster < most && s->outer * cluster * 2 <= device->multiprocessors &&
           runs >= CLUSTER_RUNS * 2 * cluster) {
        cluster *= 2;
    }
    each = wd_ceil_div(runs, cluster);
    threads = wd_softmax_multiple_up(wd_ceil_div(each, BLOCK_RUNS), WARP);
    if (threads > BLOCK_THREADS) {
        int64_t bytes = each * SOFTMAX_BYTES * d->tensors + SHARED_FIXED;
        int64_t resident = wd_most(1, device->shared_per_processor / bytes);
        threads = wd_least(threads, wd_most(BLOCK_THREADS, SOFTMAX_BLOCK_THREADS / resident));
        threads = wd_least(threads, kernel_rows[d->block + s->type].threads) / WARP * WARP;
    }
    a->runs = each;
    a->cluster = (uint32_t)cluster;
    return wd_emit_cluster_kernel(queue, &kernel_rows[d->block + s->type], s->outer * cluster,
                                  (uint32_t)threads, (uint32_t)cluster,
                                  (uint32_t)(each * SOFTMAX_BYTES * d->tensors), a);
}

static cudnnStatus_t emit_long(const struct direction *d, const struct wd_softmax_shape *s,
                               int64_t runs, struct wd_queue *queue, struct softmax_vector_args *a)
{
    struct cut cut = cut_long(d, s, queue->device, runs);
    a->segments = (uint32_t)cut.segments;
    a->runs = cut.runs;
    for (int64_t first = 0; first < s->outer; first += cut.rows) {
        a->first = first;
        a->rows = wd_least(cut.rows, s->outer - first);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[d->sums + s->type], a->rows * cut.segments,
                              SOFTMAX_LONG_THREADS, 0, a));
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[d->spread + s->type], a->rows * cut.segments,
                              SOFTMAX_LONG_THREADS, 0, a));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit_stray(const struct direction *d, const struct wd_softmax_shape *s,
                                struct wd_queue *queue, struct softmax_vector_args *a)
{
    struct wd_kernel_row *row = &kernel_rows[d->stray + s->type];
    int64_t threads = wd_power_up(wd_ceil_div(s->length, 4));
    wd_softmax_set_lanes(a, 2 * WARP); /* a block */
    threads = wd_least(row->threads, wd_most(WARP, threads));
    return wd_emit_kernel(queue, row, s->outer, (uint32_t)threads, 0, a);
}

cudnnStatus_t wd_softmax_vector_emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct direction *d = wd_softmax_gpu_inputs(&call->problem) > 1 ? &backward : &forward;
    struct wd_softmax_shape s;
    struct softmax_vector_args a;
    bool alike;
    int64_t runs;
    wd_softmax_gpu_args(call, queue->device, &s, &a, &alike);
    runs = runs_of(&s, a.shift == 0);
    if (!alike) return emit_stray(d, &s, queue, &a);
    /* as the workspace was asked for: by the runs of any pointers */
    if (is_long(d, queue->device, runs_of(&s, false))) return emit_long(d, &s, runs, queue, &a);
    return emit_block(d, &s, runs, queue, &a);
}

const struct wd_engine wd_engine_softmax_forward_vector = {
    .name = "softmax_forward_vector",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = wd_softmax_vector_emit,
};

const struct wd_engine wd_engine_softmax_backward_vector = {
    .name = "softmax_backward_vector",
    .op = WD_OP_SOFTMAX_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = wd_softmax_vector_emit,
};
