/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler of planes, whose channels are not neighbours, on the GPU, in fp32, fp16, bf16 and fp64. No
 * state. */
#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE sampler_planes
#define WD_KERNELS_ROWS "ops/spatial/sampler_planes_kernels.def"
#include "ops/kernels_host.inc"

enum {
    THREADS_MOST = 512, /* neighbours of many rows share what they look at */
    PLACES_MOST = 4,    /* of a thread, one after the other, of few channels */
    BLOCKS_ENOUGH = 12, /* of SPATIAL_THREADS a processor: twice those that it has room for */
    LARGE_ENOUGH = 24,  /* of THREADS_MOST: eight times, lest many wait for the last ones */
    LARGE_PLACES = 4 * THREADS_MOST, /* of an image, at least ... */
    LARGE_TIMES = 4,                 /* ... and what blocks of so many threads need of work */
    CHUNK = 8,                       /* channels of a thread, at least */
    STRIPS_FROM = 192, /* columns; shorter rows fit the first-level cache side by side */
};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_X);
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(wd_spatial_spans_little(x), reason, NOT_SUPPORTED_SHAPE,
            "a plane spans more than 2^31 elements");
    WD_NEED(!wd_sampler_has_pixels(problem), reason, NOT_SUPPORTED_LAYOUT,
            "channels are neighbours");
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_X);
    const int type = wd_spatial_type(x->dtype);
    const int64_t images = x->dim[0];
    int64_t enough = (int64_t)BLOCKS_ENOUGH * queue->device->multiprocessors;
    struct sampler_vector_args a =
        wd_sampler_args(x, wd_call_tensor(call, SAMPLER_GRID), wd_call_data(call, SAMPLER_GRID));
    int64_t positions = (int64_t)a.rows * a.columns;
    int64_t blocks;
    int64_t chunks;
    int64_t most;
    int64_t threads = SPATIAL_THREADS;
    a.x = wd_sampler_image(call, SAMPLER_X);
    a.y = wd_sampler_image(call, SAMPLER_Y);
    wd_sampler_scalars(call, &a);
    a.tiled = a.columns >= STRIPS_FROM && a.rows > 1;
    if (a.tiled) {
        positions = (int64_t)a.rows * wd_ceil_div(a.columns, SPATIAL_STRIP) * SPATIAL_STRIP;
    }
    a.by_column = wd_fastdiv_of((uint32_t)a.columns);
    a.by_row = wd_fastdiv_of((uint32_t)a.rows);
    a.count = (uint32_t)positions;
    if (x->dtype != CUDNN_DATA_DOUBLE && a.channels >= CHUNK && positions >= LARGE_PLACES &&
        images * positions * a.channels >= LARGE_TIMES * enough * SPATIAL_THREADS * CHUNK) {
        threads = THREADS_MOST;
        enough = (int64_t)LARGE_ENOUGH * queue->device->multiprocessors;
    }
    a.room = a.channels < CHUNK ? PLACES_MOST : 1;
    while (a.room > 1 && images * positions < enough * threads * a.room) a.room /= 2;
    blocks = wd_ceil_div(positions, threads * a.room);
    chunks = wd_least(wd_ceil_div(enough, images * blocks), wd_ceil_div(a.channels, CHUNK));
    a.chunk = (int32_t)wd_ceil_div(a.channels, chunks);
    if (a.chunk > 4) a.chunk = (a.chunk + 3) / 4 * 4; /* four are looked at together */
    chunks = wd_ceil_div(a.channels, a.chunk);
    a.by_position = wd_fastdiv_of((uint32_t)blocks);
    threads = wd_least(wd_ceil_div(positions, 32) * 32, threads); /* small images: fewer */
    a.by_chunk = wd_fastdiv_of((uint32_t)chunks);
    blocks *= chunks;
    most = wd_most(SPATIAL_ITEMS_MAX / blocks, 1);
    for (int64_t first = 0; first < images; first += most) {
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_sample_lean_f32 + type],
                              wd_least(most, images - first) * blocks, (uint32_t)threads, 0, &a));
        wd_sampler_skip(&a, most, wd_dtype_bytes(x->dtype));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_sampler_forward_planes = {
    .name = "sampler_forward_planes",
    .op = WD_OP_SAMPLER_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
