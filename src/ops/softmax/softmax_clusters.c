/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax on the GPU of long rows that are many, forward and backward; neighbours of a row are neighbours in memory. Each row is
 * held by a cluster of blocks (ops/shares.h), so that it is read once. What lies off the boundaries or is blended goes the way of
 * softmax_vector. */
#include <string.h>

#include "base/sizes.h"
#include "ops/softmax/softmax_clusters_args.h"
#include "ops/softmax/softmax_gpu.h"

#define WD_KERNELS_MODULE softmax_clusters
#define WD_KERNELS_ROWS "ops/softmax/softmax_clusters_kernels.def"
#include "ops/kernels_host.inc"

enum {
    TYPE_F64 = 1, /* place among the four types */
    /* Bytes of a row that other engines are as fast with. Measured on an H200, us, here and by softmax_vector: backward bf16 1024x128256 (251 KB) 202
     * and 217, 1024x100352 (196 KB) 166 and 163, fp32 512x128256 (501 KB) 199 and 274; forward bf16 512x262144 (512 KB) 157 and 156. */
    LEAST = 512 << 10,
    LEAST_BACKWARD = 240 << 10,
};

static bool cut_of(struct wd_share_cut *c, const struct wd_softmax_shape *s,
                   const struct wd_problem *problem)
{
    memset(c, 0, sizeof *c);
    c->shares = s->outer;
    c->units = s->length / s->elements;
    c->halves = true;
    c->two = wd_softmax_gpu_inputs(problem) > 1;
    c->least = c->two ? LEAST_BACKWARD : LEAST;
    return wd_share_cut(c, problem->device);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_softmax_shape s;
    struct wd_share_cut c;
    if (!wd_softmax_gpu_match(problem, &s, reason)) return false;
    WD_NEED(s.type != TYPE_F64, reason, NOT_SUPPORTED_DATA_TYPE, "fp64 is not taken");
    WD_NEED(s.inner == 1, reason, NOT_SUPPORTED_LAYOUT,
            "neighbours of a row are %lld elements apart", (long long)s.inner);
    WD_NEED(s.length % s.elements == 0, reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements, no whole 16 bytes", (long long)s.length);
    WD_NEED(cut_of(&c, &s, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld rows of %lld elements are too few, too small or too large", (long long)s.outer,
            (long long)s.length);
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    const struct wd_engine *any = wd_softmax_gpu_inputs(problem) > 1
                                      ? &wd_engine_softmax_backward_vector
                                      : &wd_engine_softmax_forward_vector;
    return any->workspace(problem);
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct wd_softmax_shape s;
    wd_softmax_see(&s, wd_slot(problem->graph, problem->node, 0), problem->node->attr.softmax.mode);
    (void)cut_of(prepared, &s, problem);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct softmax_vector_args rows;
    struct wd_softmax_shape s;
    struct wd_share_cut own;
    const struct wd_share_cut *c = wd_call_prepared(call, prepare, &own);
    struct softmax_clusters_args a;
    bool alike;
    int row = c->two ? KERNEL_softmax_clusters_backward_f32 : KERNEL_softmax_clusters_forward_f32;
    wd_softmax_gpu_args(call, queue->device, &s, &rows, &alike);
    if (!alike || rows.shift != 0 || !rows.plain) return wd_softmax_vector_emit(call, queue);
    a = (struct softmax_clusters_args){
        .x = rows.x,
        .dy = rows.dy,
        .y = rows.y,
        .cut = wd_share_args_of(c),
        .log = rows.log,
    };
    row += s.type > TYPE_F64 ? s.type - 1 : s.type;
    return wd_emit_cluster_kernel(queue, &kernel_rows[row], c->clusters * c->cluster,
                                  WD_SHARE_THREADS / 2, a.cut.cluster, (uint32_t)c->shared, &a);
}

const struct wd_engine wd_engine_softmax_forward_clusters = {
    .name = "softmax_forward_clusters",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_share_cut),
    .emit = emit,
};

const struct wd_engine wd_engine_softmax_backward_clusters = {
    .name = "softmax_backward_clusters",
    .op = WD_OP_SOFTMAX_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_share_cut),
    .emit = emit,
};
