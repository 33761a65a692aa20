/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization on the GPU, in fp32, fp16 and bf16, of planes (NCHW) that are not small:
 * their rows of pixels go through shared memory, however they are aligned. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/lrn/lrn_host.h"
#include "ops/lrn/lrn_walk_args.h"

#define WD_KERNELS_MODULE lrn_walk
#define WD_KERNELS_ROWS "ops/lrn/lrn_walk_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WINDOW = 5, /* that has kernels of its own */
    CHUNK_BYTES = 16,
    BEGINS_BYTES = 256, /* that the kernels declare */
    PLANE_LEAST = 128,  /* pixels: a thread each, of half a block */
    CHANNELS_LEAST = 5, /* of fewer a block has too little on its way */
    CHUNK_LEAST = 32,   /* channels of a block where there are few blocks */
    BLOCKS_ENOUGH = 8,  /* a processor; two rounds of the blocks that it has at a time */
    BLOCKS_LEAST = 1,   /* a processor; below the kernels of lrn_vector have less to wait for */
};

/* Pixels of a block: as many as two copies a lane bring, the same in all spans of a plane. */
static int64_t span_of(int64_t plane, int64_t bytes)
{
    int64_t unit = CHUNK_BYTES / bytes;
    int64_t most = (LRN_ROW_CHUNKS - (plane % unit != 0)) * unit;
    return wd_ceil_div(wd_ceil_div(plane, wd_ceil_div(plane, most)), unit) * unit;
}

/* Channels of a block. */
static int64_t chunk_of(int64_t channels, int64_t blocks, int64_t processors)
{
    int64_t chunks = wd_most(BLOCKS_ENOUGH * processors / blocks, 1);
    return wd_least(wd_most(wd_ceil_div(channels, chunks), CHUNK_LEAST), channels);
}

/* Blocks, were all channels of an image one block's. */
static int64_t columns_of(const struct wd_tensor *x)
{
    const int64_t plane = wd_lrn_plane(x);
    return x->dim[0] * wd_ceil_div(plane, span_of(plane, wd_dtype_bytes(x->dtype)));
}

static int64_t pitch_of(int64_t span, int64_t bytes)
{
    return span * bytes + CHUNK_BYTES;
}

static int64_t shared_bytes(const struct wd_problem *problem, const struct wd_tensor *x)
{
    const int32_t window = problem->node->attr.lrn.window;
    const bool known = window == WINDOW;
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t span = span_of(wd_lrn_plane(x), bytes);
    /* those for any window have room for the longest */
    const int64_t stages = wd_lrn_stages(known ? window : LRN_WINDOW_MAX);
    const int64_t stage = LRN_STAGE * pitch_of(span, bytes);
    if (!wd_lrn_is_backward(problem)) return stages * stage;
    return (stages + LRN_DY_STAGES) * stage +
           wd_lrn_kept(window, known) * span * wd_lrn_accumulator_bytes(x->dtype);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_lrn_attr *attr = &problem->node->attr.lrn;
    const int64_t processors = problem->device->multiprocessors;
    const struct wd_tensor *tensor[3];
    const struct wd_tensor *x;
    int64_t blocks, shared;
    int count = wd_lrn_tensors(problem, tensor);
    x = tensor[0];
    WD_NEED(attr->window <= LRN_WINDOW_MAX, reason, NOT_SUPPORTED_SHAPE,
            "a window of %d channels, at most %d", attr->window, LRN_WINDOW_MAX);
    WD_NEED(attr->alpha >= 0.0, reason, NOT_SUPPORTED,
            "lrnAlpha=%g is negative, and so may be what a power is taken of", attr->alpha);
    WD_NEED(x->dtype != CUDNN_DATA_DOUBLE, reason, NOT_SUPPORTED, "fp64");
    for (int i = 0; i < count; ++i) {
        bool forward = tensor[i]->stride[0] >= 0 && tensor[i]->stride[1] >= 0;
        WD_NEED(forward && wd_lrn_has_planes(tensor[i]), reason, NOT_SUPPORTED_LAYOUT,
                "the pixels of a channel do not lie without gaps");
    }
    WD_NEED(wd_tensor_count(x) > 0 && wd_lrn_plane(x) >= PLANE_LEAST, reason, NOT_SUPPORTED_SHAPE,
            "%lld pixels, needed are %d", (long long)wd_lrn_plane(x), PLANE_LEAST);
    WD_NEED(x->dim[1] >= CHANNELS_LEAST && x->dim[1] <= INT32_MAX / 2, reason, NOT_SUPPORTED_SHAPE,
            "%lld channels, needed are %d to %d", (long long)x->dim[1], CHANNELS_LEAST,
            INT32_MAX / 2);
    blocks = columns_of(x);
    blocks *= wd_ceil_div(x->dim[1], chunk_of(x->dim[1], blocks, processors));
    WD_NEED(blocks >= BLOCKS_LEAST * processors && blocks <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld blocks, needed are %lld to %d", (long long)blocks,
            (long long)(BLOCKS_LEAST * processors), INT32_MAX);
    shared = shared_bytes(problem, x) + BEGINS_BYTES;
    WD_NEED(shared <= problem->device->shared_per_block, reason, NOT_SUPPORTED,
            "a block needs %lld bytes of shared memory, there are %lld", (long long)shared,
            (long long)problem->device->shared_per_block);
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_problem *problem = &call->problem;
    const bool backward = wd_lrn_is_backward(problem);
    const struct wd_tensor *tensor[3];
    struct lrn_walk_args a;
    int count = wd_lrn_tensors(problem, tensor);
    const struct wd_tensor *x = tensor[0];
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t columns = columns_of(x);
    const int64_t chunk = chunk_of(x->dim[1], columns, queue->device->multiprocessors);
    const int64_t chunks = wd_ceil_div(x->dim[1], chunk);
    int kernel = backward ? KERNEL_lrn_walk_backward_f32_5 : KERNEL_lrn_walk_forward_f32_5;
    memset(&a, 0, sizeof a);
    a.v = wd_lrn_args(call, queue->device);
    a.v.chunk = (int32_t)chunk;
    a.v.by_chunk = wd_fastdiv_of((uint32_t)chunks);
    a.v.by_run = wd_fastdiv_of((uint32_t)(columns / x->dim[0]));
    a.plane = wd_lrn_plane(x);
    a.x_end = wd_tensor_extent(x);
    a.dy_end = count > 2 ? wd_tensor_extent(tensor[2]) : 0;
    a.span = (int32_t)span_of(a.plane, bytes);
    a.pitch = (int32_t)pitch_of(a.span, bytes);
    kernel += 2 * wd_lrn_type(x->dtype) + (a.v.window != WINDOW);
    return wd_emit_kernel(queue, &kernel_rows[kernel], columns * chunks, LRN_WALK_THREADS,
                          (uint32_t)shared_bytes(problem, x), &a);
}

const struct wd_engine wd_engine_lrn_forward_walk = {
    .name = "lrn_forward_walk",
    .op = WD_OP_LRN_FORWARD,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};

const struct wd_engine wd_engine_lrn_backward_walk = {
    .name = "lrn_backward_walk",
    .op = WD_OP_LRN_BACKWARD,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
