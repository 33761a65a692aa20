/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradients of the sampler on the GPU where there are few channels or narrow images, in fp32: a warp
 * a region of the image. There are two launches, the first of which finds where parts of the grid look;
 * the scratch holds that. Of up to three channels launches before take the images whose grid is an affine
 * map, or nearly. All sums have one order. No state. */
#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE sampler_regions
#define WD_KERNELS_ROWS "ops/spatial/sampler_regions_kernels.def"
#include "ops/kernels_host.inc"

enum {
    CHANNELS_MOST = 16, /* of images that are not narrow; more are worth tiles in shared memory */
    NARROW = 16,        /* columns: tiles would be mostly empty */
    /* Of narrow images with more channels tiles are faster all the same but where more than CROWDED places look at an element.
     * H200, fp32, us, by tiles and by regions: 224 channels of 128x7 82 and 161, 36 of 224x1 52 and 40; 96 of 14x14, 32
     * places at each, 2873 and 1366. */
    CHANNELS_NARROW = 64,
    CROWDED = 4,
    BOX_LOG2 = 5, /* places of the smallest box: a warp's */
    BOX_COLUMN_LOG2 = 3,
    BOXES_MOST = 1024, /* of an image's grid: a warp goes through all of them, 32 at a time */
    BOX_BYTES = 16,
    BOXES_BYTES = 7 << 20, /* of the 8 MiB of calls without a workspace */
    WARPS = SPATIAL_THREADS / 32,
    WARPS_ENOUGH = 8,  /* a processor */
    CHANNELS_WIDE = 4, /* channels of large regions; more fit smaller ones at once */
    AREA_LOG2 = 8,     /* elements of a region */
    AREA_LEAST_LOG2 = 5,
    COLUMNS_LOG2 = 5,
    SUMS = SAMPLER_REGION_SUMS,
    MAPPED_LEAST = 5, /* tiles a processor: fewer do not pay for two more launches */
    LOOKERS = 4,      /* blocks a processor, as many as fit, that look for marked images */
    LOOPING = 90,     /* devices whose registers let blocks of regions take several */
    SPATIAL_PAIR_BYTES = 8,
    SHARED_MOST = WARPS * (2 * SPATIAL_LISTED * 16 + SUMS * 4),
};

/* The boxes of a grid: rows and columns of one, and how many there are. */
static int64_t boxes_of(const struct wd_tensor *grid, int *row_log2, int *column_log2)
{
    const int64_t rows = grid->dim[1];
    const int64_t columns = grid->dim[2];
    *column_log2 = wd_spatial_log2(columns, BOX_COLUMN_LOG2);
    *row_log2 = wd_spatial_log2(rows, BOX_LOG2 - *column_log2);
    *column_log2 = BOX_LOG2 - *row_log2;
    return wd_spatial_boxes(rows, columns, BOXES_MOST, row_log2, column_log2);
}

/* Scratch of an image: its boxes and, whether or not it is needed, its map. */
static int64_t bytes_of(int64_t boxes)
{
    return boxes * BOX_BYTES + (int64_t)sizeof(struct sampler_map);
}

static int64_t workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_BACK_GRID);
    int row_log2;
    int column_log2;
    int64_t boxes = boxes_of(grid, &row_log2, &column_log2);
    return wd_least(BOXES_BYTES / bytes_of(boxes), grid->dim[0]) * bytes_of(boxes);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_BACK_X);
    const struct wd_tensor *dy = wd_slot(problem->graph, problem->node, SAMPLER_BACK_DY);
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(x->dtype == CUDNN_DATA_FLOAT, reason, NOT_SUPPORTED, "the images are not of fp32");
    WD_NEED(
        x->dim[1] <= CHANNELS_MOST ||
            (x->dim[3] < NARROW && (x->dim[1] <= CHANNELS_NARROW ||
                                    dy->dim[2] * dy->dim[3] > CROWDED * x->dim[2] * x->dim[3])),
        reason, NOT_SUPPORTED_SHAPE,
        "%lld channels of images that are not narrow, or that few places look at: tiles are faster",
        (long long)x->dim[1]);
    WD_NEED(!wd_sampler_has_pixels(problem), reason, NOT_SUPPORTED_LAYOUT,
            "channels are neighbours");
    WD_NEED(wd_spatial_spans_little(x) && wd_spatial_spans_little(dy), reason, NOT_SUPPORTED_SHAPE,
            "a plane spans more than 2^31 elements");
    WD_NEED(problem->device->shared_per_block >= SHARED_MOST, reason, NOT_SUPPORTED_ARCH_MISMATCH,
            "%d bytes of shared memory a block are needed", SHARED_MOST);
    return true;
}

/* Elements of a region and of the frame around it. */
static int64_t framed_area(const struct sampler_vector_args *a)
{
    return (((int64_t)1 << a->lanes_log2) + 2) * (((int64_t)1 << a->across_log2) + 2);
}

void wd_sampler_cut_regions(struct sampler_vector_args *a, int area_log2)
{
    const int columns_log2 = wd_least((area_log2 + 1) / 2, COLUMNS_LOG2);
    int64_t most;
    a->lanes_log2 = wd_spatial_log2(a->width, columns_log2);
    a->across_log2 = wd_spatial_log2(a->height, area_log2 - a->lanes_log2);
    a->lanes_log2 = wd_spatial_log2(a->width, area_log2 - a->across_log2);
    most = SUMS / framed_area(a);
    most -= most % 2 == 0; /* channels of an element take an odd number */
    a->chunk = (int32_t)wd_ceil_div(a->channels, wd_ceil_div(a->channels, most));
    a->by_chunk = wd_fastdiv_of((uint32_t)wd_ceil_div(a->channels, a->chunk));
    a->by_column = wd_fastdiv_of((uint32_t)wd_ceil_div(a->width, (int64_t)1 << a->lanes_log2));
    a->by_row = wd_fastdiv_of((uint32_t)wd_ceil_div(a->height, (int64_t)1 << a->across_log2));
}

static int64_t regions_of(const struct sampler_vector_args *a)
{
    return (int64_t)a->by_column.divisor * a->by_row.divisor * a->by_chunk.divisor;
}

bool wd_sampler_cut_affine(struct sampler_vector_args *a, int64_t images, int multiprocessors)
{
    a->by_column = wd_fastdiv_of((uint32_t)wd_ceil_div(a->width, AFFINE_WIDTH));
    a->by_row = wd_fastdiv_of((uint32_t)wd_ceil_div(a->height, AFFINE_HEIGHT));
    a->by_line = wd_fastdiv_of((uint32_t)a->columns);
    a->by_chunk = wd_fastdiv_of((uint32_t)wd_ceil_div(a->columns, AFFINE_PIECE));
    a->x.runs = wd_sampler_is_wide(&a->x, a->width, sizeof(float));
    a->dx.runs = wd_sampler_is_wide(&a->dx, a->width, sizeof(float));
    return a->pairs && (uintptr_t)a->dgrid % SPATIAL_PAIR_BYTES == 0 &&
           a->channels <= AFFINE_CHANNELS && a->x.column == 1 && a->y.column == 1 && a->rows > 1 &&
           a->columns > 1 && a->width >= AFFINE_LEAST_WIDTH && a->height >= AFFINE_LEAST_HEIGHT &&
           a->width <= AFFINE_SIDE && a->height <= AFFINE_SIDE && a->rows <= AFFINE_SIDE &&
           a->columns <= AFFINE_SIDE &&
           images * a->by_column.divisor * a->by_row.divisor >=
               (int64_t)MAPPED_LEAST * multiprocessors;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_BACK_X);
    const struct wd_tensor *grid = wd_call_tensor(call, SAMPLER_BACK_GRID);
    const int64_t images = x->dim[0];
    const int processors = queue->device->multiprocessors;
    struct sampler_affine_args args = {
        .all = wd_sampler_args(x, grid, wd_call_data(call, SAMPLER_BACK_GRID)),
    };
    struct sampler_affine_args tiles;
    struct sampler_vector_args *a = &args.all;
    const int64_t boxes = boxes_of(grid, &a->box_row_log2, &a->box_column_log2);
    const int64_t batch = wd_least(BOXES_BYTES / bytes_of(boxes), images);
    int64_t blocks;
    int64_t most;
    int64_t shared;
    bool mapped;
    bool apart;
    int area_log2 = AREA_LOG2 - (x->dim[1] > CHANNELS_WIDE);
    a->x = wd_sampler_image(call, SAMPLER_BACK_X);
    a->y = wd_sampler_image(call, SAMPLER_BACK_DY);
    a->dx = wd_sampler_image(call, SAMPLER_BACK_DX);
    a->dgrid = wd_call_data(call, SAMPLER_BACK_DGRID);
    wd_sampler_back_scalars(call, a);
    a->streaming =
        wd_tensor_extent(wd_call_tensor(call, SAMPLER_BACK_DX)) > queue->device->l2_bytes;
    a->by_box = wd_fastdiv_of((uint32_t)wd_ceil_div(a->columns, (int64_t)1 << a->box_column_log2));
    a->by_boxes = wd_fastdiv_of((uint32_t)boxes);
    args.by_x = (float)(a->alpha_grid * a->scale_w);
    args.by_y = (float)(a->alpha_grid * a->scale_h);
    tiles = args;
    mapped = wd_sampler_cut_affine(&tiles.all, images, processors);
    if (mapped) args.maps = tiles.maps = call->workspace;
    /* What is blended cannot be done again by other kernels: places are looked at before. */
    apart = a->blends || a->blends_grid;
    args.checks = apart;
    tiles.plain = tiles.all.x.runs && tiles.all.dx.runs && a->channels == AFFINE_CHANNELS &&
                  a->scales && !a->blends && a->scales_grid && !a->blends_grid &&
                  a->y.row == a->columns &&
                  (AFFINE_CHANNELS - 1) * a->y.channel + (int64_t)a->rows * a->columns <= INT32_MAX;
    a->boxes = (char *)call->workspace + batch * (int64_t)sizeof(struct sampler_map);
    wd_sampler_cut_regions(a, area_log2);
    while (area_log2 > AREA_LEAST_LOG2 &&
           images * regions_of(a) < (int64_t)WARPS_ENOUGH * processors) {
        wd_sampler_cut_regions(a, --area_log2);
    }
    blocks = wd_ceil_div(regions_of(a), WARPS);
    a->by_position = wd_fastdiv_of((uint32_t)blocks);
    shared = WARPS *
             (2 * SPATIAL_LISTED * 16 + framed_area(a) * (a->chunk | 1) * (int64_t)sizeof(float));
    most = wd_least(batch, SPATIAL_ITEMS_MAX / wd_most(blocks, boxes));
    for (int64_t first = 0; first < images; first += most) {
        const int64_t now = wd_least(most, images - first);
        const int64_t lookers = mapped ? (int64_t)LOOKERS * processors : SPATIAL_ITEMS_MAX;
        const bool loops = mapped && queue->device->capability >= LOOPING;
        a->first_image = tiles.all.first_image = (uint32_t)first;
        a->count = (uint32_t)(now * boxes);
        args.images = (uint32_t)now;
        args.blocks = (uint32_t)(now * blocks);
        if (mapped) {
            const int64_t each = (int64_t)tiles.all.by_column.divisor * tiles.all.by_row.divisor;
            WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_fit_maps_f32], now, SPATIAL_THREADS, 0,
                                  &tiles));
            tiles.fills = !apart;
            tiles.checks = true;
            WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_affine_tiles_f32], now * each,
                                  SPATIAL_THREADS, AFFINE_SHARED, &tiles));
            if (apart) {
                tiles.fills = true;
                tiles.checks = false;
                WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_affine_tiles_f32], now * each,
                                      SPATIAL_THREADS, AFFINE_SHARED, &tiles));
            }
        }
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_region_boxes_f32],
                              wd_least(lookers, wd_ceil_div(a->count, WARPS)), SPATIAL_THREADS, 0,
                              &args));
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_back_regions_f32],
                              loops ? wd_least(lookers, now * blocks) : now * blocks,
                              SPATIAL_THREADS, (uint32_t)shared, &args));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_sampler_backward_regions = {
    .name = "sampler_backward_regions",
    .op = WD_OP_SAMPLER_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
