/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler of planes on the GPU by windows of the image in shared memory, in fp32, fp16 and bf16,
 * where there are channels enough to find windows for; and how places are cut into tiles. No state. */
#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE sampler_windows
#define WD_KERNELS_ROWS "ops/spatial/sampler_windows_kernels.def"
#include "ops/kernels_host.inc"

enum {
    CHANNELS_LEAST = 8,
    ROWS_LEAST = 8,
    CROWD_MOST = 16,        /* places a pixel */
    PLACES_LEAST = 1 << 16, /* of all images and channels: below that latency is all */
    CAPACITY = 8 * WINDOW_THREADS,
    SPLITS_MOST = 32,   /* tiles side by side */
    BLOCKS_ENOUGH = 15, /* a processor */
    CHUNK = 8,          /* channels of a block, at least */
    SHARED_MOST = WINDOW_STAGES * WINDOW_BYTES * SAMPLE_ROOM,
};
/* How much of the other side a slight turn adds to the sides of a window. */
static const double TURN = 0.12;

bool wd_sampler_is_wide(const struct sampler_image *i, int64_t width, int64_t bytes)
{
    int64_t run = SPATIAL_RUN_BYTES / bytes;
    return (i->column == 1 || width == 1) && width % run == 0 && i->row % run == 0 &&
           i->channel % run == 0 && i->image % run == 0 &&
           (uintptr_t)i->data % SPATIAL_RUN_BYTES == 0;
}

bool wd_sampler_cut_places(struct sampler_cut *cut, const struct sampler_vector_args *a,
                           int64_t capacity, int64_t most, int64_t bytes)
{
    const int64_t run = SPATIAL_RUN_BYTES / bytes;
    const double across = (double)a->width / a->columns;
    const double along = (double)a->height / a->rows;
    double best = 0.0;
    for (int64_t split = 1; split <= SPLITS_MOST && split <= a->columns; ++split) {
        const int64_t width = wd_ceil_div(a->columns, split);
        const int64_t lines = wd_least(capacity / width, a->rows);
        const int64_t parts = lines ? wd_ceil_div(a->rows, lines) : 0;
        const int64_t height = parts ? wd_ceil_div(a->rows, parts) : 0;
        int64_t columns = (int64_t)(across * ((double)width + TURN * (double)height)) + 2;
        int64_t rows = (int64_t)(along * ((double)height + TURN * (double)width)) + 2;
        int64_t room;
        double cost;
        if (lines == 0) continue;
        columns = wd_ceil_div(wd_least(columns, a->width) + run - 1, run) * run + run;
        room = columns * (wd_least(rows, a->height) + 2) + run;
        cost = (double)(split * parts) * (double)(room + width * height);
        if (room > most || (best > 0.0 && cost >= best)) continue;
        best = cost;
        cut->width = (int32_t)width;
        cut->height = (int32_t)height;
        cut->tiles = (uint32_t)(split * parts);
        cut->by_width = wd_fastdiv_of((uint32_t)width);
        cut->by_column = wd_fastdiv_of((uint32_t)split);
    }
    return best > 0.0;
}

bool wd_sampler_copies_wide(const struct wd_tensor *t)
{
    const int64_t run = SPATIAL_RUN_BYTES / wd_dtype_bytes(t->dtype);
    const int side = t->stride[1] == 1 ? 1 : 3; /* channels or columns */
    bool wide = t->stride[side] == 1 && t->dim[side] % run == 0;
    for (int d = 0; d < t->rank; ++d) {
        wide &= d == side || t->dim[d] == 1 || t->stride[d] % run == 0;
    }
    return wide;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_X);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, SAMPLER_Y);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(bytes < (int64_t)sizeof(double), reason, NOT_SUPPORTED, "the images are of fp64");
    WD_NEED(wd_spatial_spans_little(x) && wd_spatial_spans_little(y), reason, NOT_SUPPORTED_SHAPE,
            "a plane spans more than 2^31 elements");
    WD_NEED(!wd_sampler_has_pixels(problem), reason, NOT_SUPPORTED_LAYOUT,
            "channels are neighbours");
    WD_NEED(x->dim[1] >= CHANNELS_LEAST && wd_tensor_count(y) >= PLACES_LEAST, reason,
            NOT_SUPPORTED_SHAPE, "fewer than %d channels, or little altogether", CHANNELS_LEAST);
    WD_NEED(wd_sampler_copies_wide(x), reason, NOT_SUPPORTED_LAYOUT,
            "rows are not runs of %d bytes", SPATIAL_RUN_BYTES);
    WD_NEED(y->dim[2] >= ROWS_LEAST && y->dim[3] >= ROWS_LEAST &&
                y->dim[2] * y->dim[3] <= CROWD_MOST * x->dim[2] * x->dim[3],
            reason, NOT_SUPPORTED_SHAPE, "narrow images, or many places a pixel");
    WD_NEED(x->dim[2] * x->dim[3] <= y->dim[2] * y->dim[3] * 3 / 2, reason, NOT_SUPPORTED_SHAPE,
            "places are far apart");
    WD_NEED(problem->device->shared_per_block >= SHARED_MOST, reason, NOT_SUPPORTED_ARCH_MISMATCH,
            "%d bytes of shared memory a block are needed", SHARED_MOST);
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_X);
    const struct wd_tensor *y = wd_call_tensor(call, SAMPLER_Y);
    const int type = wd_spatial_type(x->dtype);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t images = x->dim[0];
    const int64_t enough = (int64_t)BLOCKS_ENOUGH * queue->device->multiprocessors;
    struct sampler_window_args a = {
        .all = wd_sampler_args(x, wd_call_tensor(call, SAMPLER_GRID),
                               wd_call_data(call, SAMPLER_GRID)),
    };
    int64_t capacity = CAPACITY;
    int64_t chunks;
    int64_t blocks;
    int64_t most;
    a.all.x = wd_sampler_image(call, SAMPLER_X);
    a.all.y = wd_sampler_image(call, SAMPLER_Y);
    a.all.alpha = call->scalars[SAMPLER_ALPHA];
    a.all.beta = call->scalars[SAMPLER_BETA];
    a.all.scales = a.all.alpha != 0.0;
    a.all.blends = a.all.beta != 0.0;
    a.all.streaming = wd_tensor_extent(y) > queue->device->l2_bytes;
    a.places.wide = wd_sampler_is_wide(&a.all.x, a.all.width, bytes);
    while (!wd_sampler_cut_places(&a.places, &a.all, capacity, SAMPLE_ROOM, bytes)) {
        capacity /= 2; /* narrow tiles of few places fit at last: their windows are of few pixels */
    }
    chunks = wd_clamp(wd_ceil_div(enough, images * a.places.tiles), 1,
                      wd_ceil_div(a.all.channels, CHUNK));
    a.all.chunk = (int32_t)wd_ceil_div(a.all.channels, chunks);
    a.all.chunk =
        (int32_t)(wd_ceil_div(a.all.chunk, WINDOW_BYTES / bytes) * (WINDOW_BYTES / bytes));
    chunks = wd_ceil_div(a.all.channels, a.all.chunk);
    blocks = chunks * a.places.tiles;
    a.by_tile = wd_fastdiv_of((uint32_t)blocks);
    most = wd_most(SPATIAL_ITEMS_MAX / WINDOW_THREADS / blocks, 1);
    for (int64_t first = 0; first < images; first += most) {
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_sample_windows_f32 + type],
                              wd_least(most, images - first) * blocks, WINDOW_THREADS, SHARED_MOST,
                              &a));
        wd_sampler_skip(&a.all, most, bytes);
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_sampler_forward_windows = {
    .name = "sampler_forward_windows",
    .op = WD_OP_SAMPLER_FORWARD,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
