/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradients of the sampler on the GPU where there are few channels, narrow or flat images, crowds of places or few,
 * in fp32: a warp, or some, a region of the image. There are two launches, the first of which finds where parts of the grid look;
 * the scratch holds that. Of up to three channels launches before take the images whose grid is an affine
 * map, or nearly. All sums have one order. No state. */
#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE sampler_regions
#define WD_KERNELS_ROWS "ops/spatial/sampler_regions_kernels.def"
#include "ops/kernels_host.inc"

enum {
    /* Of more channels tiles are faster where they are full, and each of their elements has its few places. H200, fp32, us, by
     * tiles and by regions: 224 channels of 224x96 97 and 190; of 128x7 82 and 166. But 203 of 56x232 286 and 151, 128 of
     * 14x281 198 and 169, 96 of 3x287 227 and 149; 64 of 28x256, 2.2 places an element, 206 and 157; 96 of 14x14, 32 places,
     * 2873 and 88; 224 of 96x246, 16 places in all, 3888 and 2092; 36 of 224x1 52 and 40. */
    CHANNELS_MOST = 16,
    FLAT = 4,             /* columns for a row */
    NARROW = 16,          /* columns: tiles would be mostly empty, ... */
    CHANNELS_NARROW = 64, /* ... which costs less than many channels */
    DENSE = 2,            /* places an element */
    SPARSE = 64,          /* elements a place */
    /* Of few elements in all regions are small, and wait for their boxes (7 channels of 2 images of 128x64: 15.6 and 10.3). */
    ELEMENTS_LEAST = 1 << 14,
    CHANNELS_FEW = 3,
    CROWDED =
        4, /* places an element: those of a box that share a cell, and wait for each other, are to be few */
    BOX_LOG2 = 5, /* places of the smallest box: a warp's */
    BOX_COLUMN_LOG2 = 3,
    BOXES_MOST = 1024, /* of an image's grid: a warp goes through all of them, 32 at a time */
    BOX_BYTES = 16,
    BOXES_BYTES = 7 << 20, /* of the 8 MiB of calls without a workspace */
    WARPS = SPATIAL_THREADS / 32,
    WARPS_ENOUGH = 8,   /* a processor */
    BOXES_EACH = 8,     /* of a warp, where several have a region */
    PLACES_EACH = 64,   /* places of one, likewise */
    CHANNELS_WIDE = 4,  /* channels of large regions; more fit smaller ones at once */
    CHANNELS_LEAST = 6, /* of a region where places crowd */
    AREA_LOG2 = 8,      /* elements of a region */
    AREA_LEAST_LOG2 = 5,
    COLUMNS_LOG2 = 5,
    SUMS = SAMPLER_REGION_SUMS,
    SUMS_MANY = 2048, /* of many channels, so that three blocks fit a processor, ... */
    TURNS_OF = 8,     /* ... unless these many turns become so many: */
    TURNS_TO = 7,
    MAPPED_LEAST = 2, /* tiles a processor: fewer do not pay for two more launches */
    LOOKERS = 3,      /* blocks a processor, as many as fit, that look for marked images */
    LOOPING = 90,     /* devices whose registers let blocks of regions take several */
    SPATIAL_PAIR_BYTES = 8,
    SHARED_MOST = WARPS * (2 * SPATIAL_LISTED * 16 + SUMS * 4),
};

/* Whether more than `most` places look at an element of the image. */
static bool is_crowded(const struct wd_tensor *x, const struct wd_tensor *grid, int64_t most)
{
    return grid->dim[1] * grid->dim[2] > most * x->dim[2] * x->dim[3];
}

/* Elements, at most as many as places, that so many neighbouring places look at where `places` see `elements`. */
static int64_t seen_by(int64_t some, int64_t places, int64_t elements)
{
    return wd_clamp(some * elements / places, 1, some);
}

/* The boxes of a grid: rows and columns of one, and how many there are. Where places crowd, those of a box look at as
 * many elements as they can, for those that share a cell wait for each other. */
static int64_t boxes_of(const struct wd_tensor *x, const struct wd_tensor *grid, int *row_log2,
                        int *column_log2)
{
    const int64_t rows = grid->dim[1];
    const int64_t columns = grid->dim[2];
    *column_log2 = wd_spatial_log2(columns, BOX_COLUMN_LOG2);
    *row_log2 = wd_spatial_log2(rows, BOX_LOG2 - *column_log2);
    *column_log2 = BOX_LOG2 - *row_log2;
    if (is_crowded(x, grid, CROWDED)) {
        int64_t best = 0;
        for (int c = wd_spatial_log2(columns, BOX_LOG2); c >= 0; --c) {
            const int64_t seen = seen_by((int64_t)1 << c, columns, x->dim[3]) *
                                 seen_by((int64_t)1 << (BOX_LOG2 - c), rows, x->dim[2]);
            if (seen <= best || (int64_t)1 << (BOX_LOG2 - c) >= 2 * rows) continue;
            best = seen;
            *column_log2 = c;
            *row_log2 = BOX_LOG2 - c;
        }
    }
    return wd_spatial_boxes(rows, columns, BOXES_MOST, row_log2, column_log2);
}

/* Scratch of an image: its boxes and, whether or not it is needed, its map. */
static int64_t bytes_of(int64_t boxes)
{
    return boxes * BOX_BYTES + (int64_t)sizeof(struct sampler_map);
}

static int64_t workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_BACK_X);
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_BACK_GRID);
    int row_log2;
    int column_log2;
    int64_t boxes = boxes_of(x, grid, &row_log2, &column_log2);
    return wd_least(BOXES_BYTES / bytes_of(boxes), grid->dim[0]) * bytes_of(boxes);
}

/* Whether tiles would be slower. */
static bool pays(const struct wd_tensor *x, const struct wd_tensor *grid)
{
    const int64_t channels = x->dim[1];
    const int64_t elements = x->dim[2] * x->dim[3];
    const int64_t places = grid->dim[1] * grid->dim[2];
    if (places > DENSE * elements || SPARSE * places < elements) return true;
    if (x->dim[0] * elements <= ELEMENTS_LEAST && channels > CHANNELS_FEW) return false;
    return channels <= CHANNELS_MOST || x->dim[3] >= FLAT * x->dim[2] ||
           (x->dim[3] < NARROW && channels <= CHANNELS_NARROW);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_BACK_X);
    const struct wd_tensor *dy = wd_slot(problem->graph, problem->node, SAMPLER_BACK_DY);
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_BACK_GRID);
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(x->dtype == CUDNN_DATA_FLOAT, reason, NOT_SUPPORTED, "the images are not of fp32");
    WD_NEED(pays(x, grid), reason, NOT_SUPPORTED_SHAPE,
            "%lld channels of images that are small, or whose tiles are full: tiles are faster",
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

void wd_sampler_cut_regions(struct sampler_vector_args *a, int area_log2, int64_t sums)
{
    const int columns_log2 = wd_least((area_log2 + 1) / 2, COLUMNS_LOG2);
    int64_t most;
    a->lanes_log2 = wd_spatial_log2(a->width, columns_log2);
    a->across_log2 = wd_spatial_log2(a->height, area_log2 - a->lanes_log2);
    a->lanes_log2 = wd_spatial_log2(a->width, area_log2 - a->across_log2);
    most = sums / framed_area(a);
    most -= most % 2 == 0; /* channels of an element take an odd number */
    most = wd_most(most, 1);
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
    return a->channels <= AFFINE_CHANNELS && a->x.column == 1 && a->y.column == 1 && a->rows > 1 &&
           a->columns > 1 && a->width >= AFFINE_LEAST_WIDTH && a->height >= AFFINE_LEAST_HEIGHT &&
           a->width <= AFFINE_SIDE && a->height <= AFFINE_SIDE && a->rows <= AFFINE_SIDE &&
           a->columns <= AFFINE_SIDE &&
           images * a->by_column.divisor * a->by_row.divisor >=
               (int64_t)MAPPED_LEAST * multiprocessors;
}

/* Turns over all channels of an image that warps take for a list of places. */
static int64_t turns_of(const struct sampler_vector_args *a)
{
    return a->by_chunk.divisor * wd_ceil_div(a->chunk, SAMPLER_REGION_TURN);
}

/* Of many channels: as many sums of a warp as let three blocks fit a processor, unless that takes many more turns. */
static int64_t sums_of(struct sampler_vector_args *a, int area_log2)
{
    int64_t turns;
    if (a->channels <= CHANNELS_WIDE) return SUMS;
    wd_sampler_cut_regions(a, area_log2, SUMS);
    turns = turns_of(a);
    wd_sampler_cut_regions(a, area_log2, SUMS_MANY);
    return TURNS_OF * turns < TURNS_TO * turns_of(a) ? SUMS : SUMS_MANY;
}

/* How many warps have a region. Where places crowd, as many as have places enough; else more than one only if regions
 * cannot be smaller. */
static int warps_of(const struct sampler_vector_args *a, int64_t regions, int64_t boxes,
                    bool crowded, int64_t enough)
{
    const int64_t elements = wd_most((int64_t)a->width * a->height, 1);
    const int64_t area = wd_least((int64_t)1 << (a->lanes_log2 + a->across_log2), elements);
    const int64_t places = area * ((int64_t)a->rows * a->columns) / elements;
    int log2 = 0;
    while (1 << log2 < WARPS && boxes >> log2 >= 2 * BOXES_EACH) {
        const bool more = crowded ? places >> log2 >= 2 * PLACES_EACH
                                  : area <= 1 << AREA_LEAST_LOG2 && regions << log2 < enough;
        if (!more) break;
        log2 += 1;
    }
    return log2;
}

/* Cuts the images into regions, small enough that there is work for all processors: by elements, but where places crowd
 * by channels first, for every region near an element sees most of its places. A region has one warp where images may be
 * mapped, of whose regions blocks take several. */
static void cut(struct sampler_vector_args *a, int64_t images, int64_t boxes, bool crowded,
                bool mapped, int multiprocessors)
{
    const int64_t enough = (int64_t)WARPS_ENOUGH * multiprocessors * (crowded ? 2 : 1);
    int area_log2 = AREA_LOG2 - (a->channels > CHANNELS_WIDE);
    int64_t sums = crowded ? SUMS_MANY : sums_of(a, area_log2);
    for (;;) {
        wd_sampler_cut_regions(a, area_log2, sums);
        a->warps_log2 = mapped ? 0 : warps_of(a, images * regions_of(a), boxes, crowded, enough);
        if (images * regions_of(a) << a->warps_log2 >= enough) return;
        if (crowded && a->chunk > CHANNELS_LEAST) sums /= 2;
        else if (area_log2 > AREA_LEAST_LOG2) area_log2 -= 1;
        else return;
    }
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
    const int64_t boxes = boxes_of(x, grid, &a->box_row_log2, &a->box_column_log2);
    const int64_t batch = wd_least(BOXES_BYTES / bytes_of(boxes), images);
    int64_t blocks;
    int64_t most;
    int64_t shared;
    bool mapped;
    bool apart;
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
    tiles.plain = a->pairs && (uintptr_t)a->dgrid % SPATIAL_PAIR_BYTES == 0 && tiles.all.x.runs &&
                  tiles.all.dx.runs && a->channels == AFFINE_CHANNELS && a->scales && !a->blends &&
                  a->scales_grid && !a->blends_grid && a->y.row == a->columns &&
                  (AFFINE_CHANNELS - 1) * a->y.channel + (int64_t)a->rows * a->columns <= INT32_MAX;
    a->boxes = (char *)call->workspace + batch * (int64_t)sizeof(struct sampler_map);
    cut(a, images, boxes, is_crowded(x, grid, CROWDED), mapped, processors);
    wd_sampler_share(a, images * a->rows * a->columns, processors);
    blocks = wd_ceil_div(regions_of(a) << a->warps_log2, WARPS);
    a->by_position = wd_fastdiv_of((uint32_t)blocks);
    shared =
        WARPS * (2 * SPATIAL_LISTED * 16 + wd_ceil_div(framed_area(a) * (a->chunk | 1), 4) * 16);
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
        WD_TRY(wd_emit_kernel(
            queue, &kernel_rows[KERNEL_region_boxes_f32],
            wd_least(lookers, wd_ceil_div((int64_t)a->count << a->sharing_log2, WARPS)),
            SPATIAL_THREADS, 0, &args));
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
