/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradients of the sampler on the GPU where the grid has few places, in fp32: one launch, in which a
 * block looks at all places of its image. All sums have one order. No state. */
#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE sampler_little
#define WD_KERNELS_ROWS "ops/spatial/sampler_little_kernels.def"
#include "ops/kernels_host.inc"

enum {
    PLACES_MOST = 4096,  /* of an image: 128 KiB of shared memory */
    CHANNELS_MOST = 16,  /* of images that are not narrow; more are worth tiles */
    NARROW = 16,         /* columns: tiles would be mostly empty */
    LOOKS_FEW = 1 << 20, /* where all blocks look at no more places, any number of channels */
    /* More of them take longer than lists (H200, fp32, us): 46x224x136x7 from 128x7, 7e6 and more, 119 and by tiles 82;
     * 128x8x17x224 from 224x224, 1e8, 887 and by regions 222; 32x16x164x14, 1.6e6, 26.6 and 27.4. */
    LOOKS_MOST = 1 << 22,
    SPARSE = 512,         /* elements for a place: most tiles have none, */
    CHANNELS_SPARSE = 32, /* and blocks all channels */
    GROUP = 4,            /* channels at a time */
    TILES_ENOUGH = 16,    /* a processor; more, and blocks take several groups */
    THREADS = SAMPLER_LITTLE_THREADS,
    THREADS_LEAST = 128,
    THREADS_LOG2 = 9,
    COLUMNS_LOG2 = 5, /* of a tile */
};

void wd_sampler_cut_little(struct sampler_vector_args *a, int64_t images, int multiprocessors)
{
    const int64_t groups = wd_ceil_div(a->channels, GROUP);
    int64_t tiles;
    int64_t turns;
    a->lanes_log2 = wd_spatial_log2(a->width, COLUMNS_LOG2);
    a->across_log2 = wd_spatial_log2(a->height, THREADS_LOG2 - a->lanes_log2);
    a->lanes_log2 = wd_spatial_log2(a->width, THREADS_LOG2 - a->across_log2);
    a->by_column = wd_fastdiv_of((uint32_t)wd_ceil_div(a->width, (int64_t)1 << a->lanes_log2));
    a->by_row = wd_fastdiv_of((uint32_t)wd_ceil_div(a->height, (int64_t)1 << a->across_log2));
    tiles = images * a->by_column.divisor * a->by_row.divisor;
    turns = wd_clamp(tiles * groups / ((int64_t)TILES_ENOUGH * multiprocessors), 1, groups);
    turns = wd_ceil_div(groups, wd_ceil_div(groups, turns));
    a->chunk = (int32_t)(GROUP * turns);
    a->by_chunk = wd_fastdiv_of((uint32_t)wd_ceil_div(groups, turns));
}

static int64_t blocks_of(const struct sampler_vector_args *a)
{
    return (int64_t)a->by_column.divisor * a->by_row.divisor * a->by_chunk.divisor;
}

static int64_t shared_of(const struct sampler_vector_args *a)
{
    const int64_t cells =
        (((int64_t)1 << a->lanes_log2) + 1) * (((int64_t)1 << a->across_log2) + 1);
    return (int64_t)a->rows * a->columns * 32 + (cells + 1) * 4;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_BACK_X);
    const struct wd_tensor *dy = wd_slot(problem->graph, problem->node, SAMPLER_BACK_DY);
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_BACK_GRID);
    const int64_t places = dy->dim[2] * dy->dim[3];
    struct sampler_vector_args a;
    int64_t looks;
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(x->dtype == CUDNN_DATA_FLOAT, reason, NOT_SUPPORTED, "the images are not of fp32");
    WD_NEED(places <= PLACES_MOST, reason, NOT_SUPPORTED_SHAPE,
            "%lld places an image, at most %d are taken", (long long)places, PLACES_MOST);
    WD_NEED(wd_spatial_spans_little(x), reason, NOT_SUPPORTED_SHAPE,
            "a plane spans more than 2^31 elements");
    a = wd_sampler_args(x, grid, NULL);
    wd_sampler_cut_little(&a, x->dim[0], problem->device->multiprocessors);
    WD_NEED(blocks_of(&a) <= SPATIAL_ITEMS_MAX, reason, NOT_SUPPORTED_SHAPE, "too many tiles");
    looks =
        x->dim[0] * a.by_column.divisor * a.by_row.divisor * wd_ceil_div(x->dim[1], GROUP) * places;
    if (x->dim[1] <= CHANNELS_SPARSE && places * SPARSE <= x->dim[2] * x->dim[3] &&
        !wd_sampler_has_pixels(problem)) {
        looks = x->dim[0] * blocks_of(&a) * places;
    }
    WD_NEED(looks <= LOOKS_FEW || (!wd_sampler_has_pixels(problem) &&
                                   (x->dim[1] <= CHANNELS_MOST || x->dim[3] < NARROW)),
            reason, NOT_SUPPORTED_SHAPE,
            "%lld channels of images that are not narrow: tiles are faster", (long long)x->dim[1]);
    WD_NEED(looks <= LOOKS_MOST, reason, NOT_SUPPORTED_SHAPE,
            "all blocks would look at %lld places: lists are faster", (long long)looks);
    WD_NEED(problem->device->shared_per_block >= shared_of(&a), reason, NOT_SUPPORTED_ARCH_MISMATCH,
            "%lld bytes of shared memory a block are needed", (long long)shared_of(&a));
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_BACK_X);
    const struct wd_tensor *grid = wd_call_tensor(call, SAMPLER_BACK_GRID);
    const int64_t images = x->dim[0];
    const int64_t places = grid->dim[1] * grid->dim[2];
    struct sampler_vector_args a = wd_sampler_args(x, grid, wd_call_data(call, SAMPLER_BACK_GRID));
    int64_t threads;
    int64_t batch;
    a.x = wd_sampler_image(call, SAMPLER_BACK_X);
    a.y = wd_sampler_image(call, SAMPLER_BACK_DY);
    a.dx = wd_sampler_image(call, SAMPLER_BACK_DX);
    a.dgrid = wd_call_data(call, SAMPLER_BACK_DGRID);
    wd_sampler_back_scalars(call, &a);
    a.streaming = wd_tensor_extent(wd_call_tensor(call, SAMPLER_BACK_DX)) > queue->device->l2_bytes;
    a.by_position = wd_fastdiv_of((uint32_t)places);
    a.by_line = wd_fastdiv_of((uint32_t)a.columns);
    wd_sampler_cut_little(&a, images, queue->device->multiprocessors);
    wd_sampler_share(&a, images * places, queue->device->multiprocessors);
    threads = wd_clamp((int64_t)1 << (a.lanes_log2 + a.across_log2), THREADS_LEAST, THREADS);
    batch = wd_most(SPATIAL_ITEMS_MAX / wd_most(blocks_of(&a), places << a.sharing_log2), 1);
    for (int64_t first = 0; first < images; first += batch) {
        const int64_t now = wd_least(batch, images - first);
        a.first_image = (uint32_t)first;
        a.count = (uint32_t)(now * places);
        a.room = (int32_t)wd_ceil_div((int64_t)a.count << a.sharing_log2, threads);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_back_little_f32],
                              a.room + now * blocks_of(&a), (uint32_t)threads,
                              (uint32_t)shared_of(&a), &a));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_sampler_backward_little = {
    .name = "sampler_backward_little",
    .op = WD_OP_SAMPLER_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
