/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler's gradients on the GPU of planes, in fp32, fp16 and bf16, by chunks of rows, both from one
 * reading of x and dy. A first kernel finds where parts of the grid look; images that there is no room for are
 * done again by tiles in a third. The scratch holds what these know of each other. All sums have one order. No
 * state. */
#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/sampler_chunks_args.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE sampler_chunks
#define WD_KERNELS_ROWS "ops/spatial/sampler_chunks_kernels.def"
#include "ops/kernels_host.inc"

extern const struct wd_engine wd_engine_sampler_backward_tiles;

enum {
    CHANNELS_LEAST = 16,   /* fewer are not worth lists */
    NARROW = 24,           /* columns or rows: tiles would be mostly empty */
    BLOCKS_LEAST = 1,      /* a processor, */
    BLOCKS_MOST = 2,       /* that has so many at a time, */
    BLOCK_RESERVES = 1024, /* each with so much shared memory more */
    BOX_LOG2 = 5,          /* places of the smallest box: a warp's */
    BOX_ROW_LOG2 = 2,      /* that has so many rows */
    BOX_BYTES = 16,
    BOXES_BYTES = 7 << 20, /* of the 8 MiB of calls without a workspace */
    SECTOR = 32,           /* bytes */
    ROWS_MOST = CHUNK_ROWS * 7 / 8,
    SPLITS_MOST = 64, /* tiles side by side that are thought of */
};
/* How much denser than evenly spread places lie along a row or column where an image is seen, and how far a slight
 * turn takes a row. */
static const double CROWDED = 1.12;
static const double TURN = 0.12;
/* Places of an element on average that its slots are meant for. */
static const double PLACES_MOST = 1.3;

/* The boxes of a grid: rows and columns of one, and how many there are. */
static int64_t boxes_of(const struct wd_tensor *grid, int *row_log2, int *column_log2)
{
    const int64_t rows = grid->dim[1];
    const int64_t columns = grid->dim[2];
    *row_log2 = wd_spatial_log2(rows, BOX_ROW_LOG2);
    *column_log2 = BOX_LOG2 - *row_log2;
    for (;;) {
        int64_t boxes = wd_ceil_div(rows, (int64_t)1 << *row_log2) *
                        wd_ceil_div(columns, (int64_t)1 << *column_log2);
        if (boxes <= SPATIAL_BOXES_MAX) return boxes;
        if ((int64_t)1 << *row_log2 < rows) *row_log2 += 1;
        if ((int64_t)1 << *column_log2 < columns) *column_log2 += 1;
    }
}

/* Scratch of an image: its boxes and its mark, by which no box loses its alignment. */
static int64_t bytes_of(int64_t boxes)
{
    return boxes * BOX_BYTES + (int64_t)sizeof(uint32_t);
}
static int64_t images_at_once(const struct wd_tensor *grid, int64_t boxes)
{
    return wd_least(BOXES_BYTES / bytes_of(boxes), grid->dim[0]);
}

static int64_t workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_BACK_GRID);
    int row_log2;
    int column_log2;
    const int64_t boxes = boxes_of(grid, &row_log2, &column_log2);
    return wd_most(wd_ceil_div(images_at_once(grid, boxes) * bytes_of(boxes), BOX_BYTES) *
                       BOX_BYTES,
                   wd_engine_sampler_backward_tiles.workspace(problem));
}

static struct sampler_vector_args args_of(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_BACK_X);
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_BACK_GRID);
    struct sampler_vector_args a = wd_sampler_args(x, grid, NULL);
    boxes_of(grid, &a.box_row_log2, &a.box_column_log2);
    return a;
}

/* How an image is cut into tiles. */
struct cut {
    int32_t width;
    int32_t height;
    int32_t across;
    int32_t down;
};

/* Along one side of the grid, which has so many rows or columns: how many boxes some of these touch at most, that are
 * turned, as boxes are. */
static int64_t boxes_along(double seen, int64_t all, int log2, int across_log2)
{
    const double box = (double)((int64_t)1 << log2);
    const double across = TURN * (double)((int64_t)1 << across_log2);
    return wd_least((int64_t)((seen + across) / box) + 2, wd_ceil_div(all, (int64_t)1 << log2));
}

/* Tiles so wide and as high as there is room for; what they bring and write of a channel, in elements, or
 * 0 where there is no room. */
static double cut_image(struct cut *cut, const struct sampler_vector_args *a, int64_t wide,
                        int64_t bytes)
{
    const int64_t run = CHUNK_BYTES / bytes;
    const int64_t sector = SECTOR / bytes;
    const int64_t room = bytes == 4 ? CHUNK_ROOM32 : CHUNK_ROOM;
    const double by_column = CROWDED * a->columns / a->width; /* places for an element */
    const double by_row = CROWDED * a->rows / a->height;
    const int64_t seen = wd_least(wide + 1, a->width);
    const int64_t pitch = wd_ceil_div(seen, run) * run;
    int64_t high = wd_least(CHUNK_ELEMENTS / seen, CHUNK_ELEMENTS / pitch + 1);
    if (high < a->height) high -= 1;
    high = wd_least(high, a->height);
    for (; high > 0; high -= (high + 7) / 8) {
        const int64_t down = wd_ceil_div(a->height, high);
        high = wd_ceil_div(a->height, down);
        /* the rows of places are as many as lie below each other, and those that the turn adds; each has its part of
         * the parallelogram, begins and ends within a chunk, or sector, and is apart from the next by banks */
        const double rows = wd_least(
            (int64_t)(by_row * (double)(high + 1) + TURN * by_row * (double)(wide + 1)) + 2,
            a->rows);
        const double columns =
            by_column * (double)(wide + 1) + TURN * by_column * (double)(high + 1) + 2;
        const int64_t near = (boxes_along(rows, a->rows, a->box_row_log2, a->box_column_log2) *
                              boxes_along(columns, a->columns, a->box_column_log2, a->box_row_log2))
                             << (a->box_row_log2 + a->box_column_log2 - BOX_LOG2);
        const double places = by_column * by_row * (double)(high + 1) * (double)(wide + 1) + rows;
        const double chunks = (places + rows * (double)run) / (double)run + rows;
        const int64_t of_x = pitch / run * (high + (high < a->height));
        if (rows > ROWS_MOST || near > CHUNK_NEAR || (wide + 1) * (high + 1) > CHUNK_CELLS ||
            chunks + (double)of_x > (double)room ||
            pitch * (high + (high < a->height)) >= CHUNK_OUT) {
            continue;
        }
        *cut = (struct cut){(int32_t)wide, (int32_t)high, (int32_t)wd_ceil_div(a->width, wide),
                            (int32_t)down};
        return (double)cut->across * cut->down *
               (CHUNK_ELEMENTS + places + rows * (double)sector +
                (double)((pitch + sector) * (high + 1)) + (double)(wide * high));
    }
    return 0;
}

/* How much longer all tiles take than they would if the last turn of blocks were as full as the others. */
static double turns_of(int64_t tiles, int64_t processors)
{
    const int64_t at_once = BLOCKS_MOST * processors;
    return (double)(wd_ceil_div(tiles, at_once) * at_once) / (double)tiles;
}

/* The cut that takes least, by what it moves, between sectors where rows are whole ones, else between chunks. */
static bool find_cut(struct cut *best, const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_BACK_X);
    const struct sampler_vector_args args = args_of(problem);
    const struct sampler_vector_args *a = &args;
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t sector = SECTOR / bytes;
    const int64_t run = CHUNK_BYTES / bytes;
    const int64_t unit = a->width % sector == 0 ? sector : run;
    double least = 0;
    for (int64_t across = 1; across <= SPLITS_MOST && across <= a->width; ++across) {
        const int64_t wide =
            across == 1 ? a->width : wd_ceil_div(wd_ceil_div(a->width, across), unit) * unit;
        struct cut cut = {0};
        double takes = cut_image(&cut, a, wide, bytes);
        if (takes == 0) continue;
        takes *= turns_of(x->dim[0] * cut.across * cut.down, problem->device->multiprocessors);
        if (least != 0 && takes >= least) continue;
        least = takes;
        *best = cut;
    }
    return least != 0;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_BACK_X);
    const struct wd_tensor *dy = wd_slot(problem->graph, problem->node, SAMPLER_BACK_DY);
    const struct wd_tensor *dx = wd_slot(problem->graph, problem->node, SAMPLER_BACK_DX);
    const int64_t elements = x->dim[2] * x->dim[3];
    const int64_t places = dy->dim[2] * dy->dim[3];
    struct cut cut = {0};
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(x->dtype != CUDNN_DATA_DOUBLE, reason, NOT_SUPPORTED, "the images are of fp64");
    WD_NEED(wd_sampler_lies_in_runs(x, 3) && wd_sampler_lies_in_runs(dy, 3) &&
                wd_sampler_lies_in_runs(dx, 3),
            reason, NOT_SUPPORTED_LAYOUT, "rows are not runs of %d bytes", SPATIAL_RUN_BYTES);
    WD_NEED(x->dim[1] >= CHANNELS_LEAST && x->dim[2] >= NARROW && x->dim[3] >= NARROW, reason,
            NOT_SUPPORTED_SHAPE, "fewer than %d channels, or narrow images", CHANNELS_LEAST);
    WD_NEED((double)places <= PLACES_MOST * (double)elements && dy->dim[2] <= CHUNK_SIDE_MOST &&
                dy->dim[3] <= CHUNK_SIDE_MOST,
            reason, NOT_SUPPORTED_SHAPE, "%lld places for %lld elements", (long long)places,
            (long long)elements);
    WD_NEED(problem->device->shared_per_block >= CHUNK_SHARED, reason, NOT_SUPPORTED_ARCH_MISMATCH,
            "%d bytes of shared memory a block are needed", CHUNK_SHARED);
    WD_NEED(problem->device->capability >= 90 &&
                problem->device->shared_per_processor >=
                    (int64_t)BLOCKS_MOST * (CHUNK_SHARED + BLOCK_RESERVES),
            reason, NOT_SUPPORTED_ARCH_MISMATCH, "a processor has no room for %d blocks",
            BLOCKS_MOST);
    WD_NEED(find_cut(&cut, problem), reason, NOT_SUPPORTED_SHAPE, "tiles have no room");
    WD_NEED(x->dim[0] * cut.across * cut.down >=
                (int64_t)BLOCKS_LEAST * problem->device->multiprocessors,
            reason, NOT_SUPPORTED_SHAPE, "fewer than %d tiles a processor", BLOCKS_LEAST);
    return true;
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    find_cut(prepared, problem);
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_BACK_X);
    const struct wd_tensor *grid = wd_call_tensor(call, SAMPLER_BACK_GRID);
    const int type = wd_spatial_type(x->dtype);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t images = x->dim[0];
    struct sampler_chunk_args args = {.width = 0};
    struct sampler_vector_args *a = &args.all;
    struct cut own;
    const struct cut *cut;
    int64_t boxes;
    int64_t tiles;
    int64_t old_tiles;
    int64_t most;
    const bool planes = wd_sampler_back_tiles(call, queue->device, a);
    /* What is blended cannot be done again; alpha is in the weights. */
    if (!planes || a->x.channel == 0 || a->y.channel == 0 || a->blends || a->blends_grid ||
        !a->scales || !a->scales_grid || !wd_sampler_is_wide(&a->x, a->width, bytes) ||
        !wd_sampler_is_wide(&a->y, a->columns, bytes) ||
        !wd_sampler_is_wide(&a->dx, a->width, bytes)) {
        struct wd_call handed = *call;
        handed.prepared = NULL;
        return wd_engine_sampler_backward_tiles.emit(&handed, queue);
    }
    cut = wd_call_prepared(call, prepare, &own);
    boxes = boxes_of(grid, &a->box_row_log2, &a->box_column_log2);
    most = images_at_once(grid, boxes);
    tiles = (int64_t)cut->across * cut->down;
    old_tiles = (int64_t)a->by_column.divisor * a->by_row.divisor;
    a->boxes = call->workspace;
    a->marks = (uint32_t *)((char *)call->workspace + most * boxes * BOX_BYTES);
    a->by_box = wd_fastdiv_of((uint32_t)wd_ceil_div(a->columns, (int64_t)1 << a->box_column_log2));
    a->by_boxes = wd_fastdiv_of((uint32_t)boxes);
    args.by_x = (float)(a->alpha_grid * a->scale_w);
    args.by_y = (float)(a->alpha_grid * a->scale_h);
    args.width = cut->width;
    args.height = cut->height;
    /* Where there are few places, x and dx are what is read and written: rows of these have all banks. */
    args.paired = 2 * (int64_t)a->rows * a->columns >= (int64_t)a->height * a->width;
    args.by_across = wd_fastdiv_of((uint32_t)cut->across);
    args.by_down = wd_fastdiv_of((uint32_t)cut->down);
    most = wd_least(most, wd_spatial_images(wd_most(tiles, old_tiles) * CHUNK_THREADS));
    for (int64_t first = 0; first < images; first += most) {
        const int64_t now = wd_least(most, images - first);
        a->first_image = (uint32_t)first;
        a->count = (uint32_t)(now * boxes);
        WD_TRY(wd_sampler_emit_boxes(queue, a, type));
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_back_chunks_f32 + type], now * tiles,
                              CHUNK_THREADS, CHUNK_SHARED, &args));
        WD_TRY(wd_sampler_emit_planes(queue, a, type, now));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_sampler_backward_chunks = {
    .name = "sampler_backward_chunks",
    .op = WD_OP_SAMPLER_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct cut),
    .emit = backward,
};
