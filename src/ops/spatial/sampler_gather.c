/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler's gradients on the GPU, in fp32, fp16 and bf16: of the image by lists of places and windows
 * of dy, of the grid by windows of the image. A first kernel finds where parts of the grid look; the scratch
 * holds that. All sums have one order. No state. */
#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE sampler_gather
#define WD_KERNELS_ROWS "ops/spatial/sampler_gather_kernels.def"
#include "ops/kernels_host.inc"

enum {
    CHANNELS_LEAST = 32, /* fewer are not worth lists and windows */
    NARROW = 16,         /* columns or rows: tiles would be mostly empty */
    BLOCKS_LEAST = 2,    /* a processor: as many as it has room for */
    BOX_LOG2 = 6,        /* places of the smallest box */
    BOX_ROW_LOG2 = 3,    /* that has so many rows */
    BOX_BYTES = 16,
    BOXES_BYTES = 7 << 20, /* of the 8 MiB of calls without a workspace */
    CAPACITY = 4 * WINDOW_THREADS,
    SIDE = 32,               /* of a tile of elements */
    LISTED = 1984,           /* places of such a tile, at most: two blocks of runs leave 92 KiB */
    SHARED_MOST = 113 << 10, /* two */
    SHARED_PLACES = WINDOW_STAGES * WINDOW_BYTES * SLOPE_ROOM,
};
_Static_assert((int)CHANNELS_LEAST >= (int)SPATIAL_WINDOWS_FROM, "windows that 31 bits count");
/* How many more places a tile may see than it has if they were spread evenly, by a slight turn too. */
static const double CROWDED = 1.4;
static const double TURN = 0.12;

/* The boxes of a grid: rows and columns of one, and how many there are. */
static int64_t boxes_of(const struct wd_tensor *grid, int *row_log2, int *column_log2)
{
    const int64_t rows = grid->dim[1];
    const int64_t columns = grid->dim[2];
    *row_log2 = wd_spatial_log2(rows, BOX_ROW_LOG2);
    *column_log2 = BOX_LOG2 - *row_log2;
    return wd_spatial_boxes(rows, columns, SPATIAL_BOXES_MAX, row_log2, column_log2);
}

/* Images whose boxes there is room for at once. */
static int64_t boxed_images(const struct wd_tensor *grid, int64_t boxes)
{
    return wd_least(BOXES_BYTES / (BOX_BYTES * boxes), grid->dim[0]);
}

static int64_t workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_BACK_GRID);
    int row_log2;
    int column_log2;
    int64_t boxes = boxes_of(grid, &row_log2, &column_log2);
    return boxed_images(grid, boxes) * boxes * BOX_BYTES;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_BACK_X);
    const struct wd_tensor *dy = wd_slot(problem->graph, problem->node, SAMPLER_BACK_DY);
    const struct wd_tensor *dx = wd_slot(problem->graph, problem->node, SAMPLER_BACK_DX);
    const int64_t elements = x->dim[2] * x->dim[3];
    const int64_t places = dy->dim[2] * dy->dim[3];
    const bool pixels = wd_sampler_lies_in_runs(x, 1) && wd_sampler_lies_in_runs(dy, 1) &&
                        wd_sampler_lies_in_runs(dx, 1);
    const bool planes =
        wd_sampler_lies_in_runs(x, 3) && wd_sampler_lies_in_runs(dy, 3) && dx->stride[3] == 1;
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(x->dtype != CUDNN_DATA_DOUBLE, reason, NOT_SUPPORTED, "the images are of fp64");
    WD_NEED(wd_spatial_spans_little(x) && wd_spatial_spans_little(dy) &&
                wd_spatial_spans_little(dx),
            reason, NOT_SUPPORTED_SHAPE, "a plane spans more than 2^31 elements");
    WD_NEED(pixels || planes, reason, NOT_SUPPORTED_LAYOUT,
            "neither channels nor rows are runs of %d bytes", SPATIAL_RUN_BYTES);
    WD_NEED(x->dim[1] >= CHANNELS_LEAST && x->dim[2] >= NARROW && x->dim[3] >= NARROW, reason,
            NOT_SUPPORTED_SHAPE, "fewer than %d channels, or narrow images", CHANNELS_LEAST);
    /* As measured, an element costs half of what it does in back_tiles, but a place of planes, whose
     * gradients are a kernel of their own here, twice as much. */
    WD_NEED((planes ? 2 : 1) * places <= elements, reason, NOT_SUPPORTED_SHAPE,
            "%lld places for %lld elements", (long long)places, (long long)elements);
    WD_NEED(x->dim[0] * elements >=
                (int64_t)BLOCKS_LEAST * SIDE * SIDE * problem->device->multiprocessors,
            reason, NOT_SUPPORTED_SHAPE, "fewer than %d blocks a processor", BLOCKS_LEAST);
    WD_NEED(problem->device->shared_per_block >= SHARED_MOST, reason, NOT_SUPPORTED_ARCH_MISMATCH,
            "%d bytes of shared memory a block are needed", SHARED_MOST);
    return true;
}

/* Tiles of elements so high; returns the elements of a window. */
static int64_t cut_elements(struct sampler_window_args *a, int64_t high, int64_t bytes)
{
    struct sampler_cut *cut = &a->elements;
    const int64_t run = SPATIAL_RUN_BYTES / bytes;
    const int64_t across = wd_ceil_div(a->all.width, SIDE);
    const int64_t along = wd_ceil_div(a->all.height, high);
    const double width = (double)a->all.columns / a->all.width;
    const double height = (double)a->all.rows / a->all.height;
    int64_t columns;
    int64_t rows;
    cut->width = (int32_t)wd_ceil_div(a->all.width, across);
    cut->height = (int32_t)wd_ceil_div(a->all.height, along);
    cut->by_tile = wd_fastdiv_of((uint32_t)(across * along));
    cut->by_width = wd_fastdiv_of((uint32_t)cut->width);
    cut->by_column = wd_fastdiv_of((uint32_t)across);
    columns = (int64_t)(width * CROWDED * (cut->width + TURN * cut->height + 1)) / 5 * 4;
    columns = wd_least(columns + 2, a->all.columns);
    rows = (int64_t)(height * CROWDED * (cut->height + TURN * cut->width + 1)) / 5 * 4;
    rows = wd_least(rows + 2, a->all.rows);
    columns = wd_ceil_div(columns + run - 1, run) * run + run;
    return columns * (rows + 2) + run;
}

/* The highest tiles whose places and windows there is room for. */
static void set_elements(struct sampler_window_args *a, int64_t bytes)
{
    const double density = (double)a->all.rows * a->all.columns / a->all.height / a->all.width;
    a->listed = LISTED;
    for (int64_t high = SIDE; high >= 1; high /= 2) {
        const int64_t room = cut_elements(a, high, bytes);
        double places;
        places = CROWDED * density * (a->elements.width + 1) * (a->elements.height + 1);
        if (places <= LISTED && room <= GATHER_ROOM) break;
    }
}

/* The cuts of a problem that matches. */
struct cuts {
    struct sampler_cut places;
    struct sampler_cut elements;
    int32_t listed;
};

static void prepare(const struct wd_problem *problem, void *prepared)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_BACK_X);
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_BACK_GRID);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t enough = 3 * (int64_t)problem->device->multiprocessors;
    struct sampler_window_args a = {.all = wd_sampler_args(x, grid, NULL)};
    set_elements(&a, bytes);
    for (int64_t capacity = CAPACITY;; capacity /= 2) { /* blocks enough for all processors */
        wd_sampler_cut_places(&a.places, &a.all, capacity, SLOPE_ROOM, bytes, 1);
        if (capacity <= WINDOW_THREADS || x->dim[0] * a.places.by_tile.divisor >= enough) break;
    }
    *(struct cuts *)prepared = (struct cuts){a.places, a.elements, a.listed};
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_BACK_X);
    const struct wd_tensor *grid = wd_call_tensor(call, SAMPLER_BACK_GRID);
    const int type = wd_spatial_type(x->dtype);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t images = x->dim[0];
    struct sampler_window_args a = {
        .all = wd_sampler_args(x, grid, wd_call_data(call, SAMPLER_BACK_GRID)),
    };
    struct cuts own;
    const struct cuts *cuts;
    bool of_pixels;
    const int64_t boxes = boxes_of(grid, &a.all.box_row_log2, &a.all.box_column_log2);
    int64_t batch = boxed_images(grid, boxes);
    int64_t threads;
    a.all.x = wd_sampler_image(call, SAMPLER_BACK_X);
    a.all.y = wd_sampler_image(call, SAMPLER_BACK_DY);
    a.all.dx = wd_sampler_image(call, SAMPLER_BACK_DX);
    a.all.dgrid = wd_call_data(call, SAMPLER_BACK_DGRID);
    a.all.x.runs = wd_sampler_has_runs(&a.all.x, a.all.channels, bytes);
    a.all.y.runs = wd_sampler_has_runs(&a.all.y, a.all.channels, bytes);
    a.all.dx.runs = a.all.y.runs && wd_sampler_has_runs(&a.all.dx, a.all.channels, bytes);
    a.all.by_run =
        wd_fastdiv_of((uint32_t)wd_most(a.all.channels / (SPATIAL_RUN_BYTES / bytes), 1));
    of_pixels = a.all.x.runs && a.all.dx.runs;
    wd_sampler_back_scalars(call, &a.all);
    a.all.streaming =
        wd_tensor_extent(wd_call_tensor(call, SAMPLER_BACK_DX)) > queue->device->l2_bytes;
    a.all.by_line = wd_fastdiv_of((uint32_t)a.all.columns);
    a.all.boxes = call->workspace;
    a.all.by_box =
        wd_fastdiv_of((uint32_t)wd_ceil_div(a.all.columns, (int64_t)1 << a.all.box_column_log2));
    a.all.by_boxes = wd_fastdiv_of((uint32_t)boxes);
    cuts = wd_call_prepared(call, prepare, &own);
    a.elements = cuts->elements;
    a.places = cuts->places;
    a.listed = cuts->listed;
    a.by_across =
        (1U << 16) / (uint32_t)(a.elements.width + 1) + 1; /* exact: SIDE bounds the cells */
    a.elements.wide = wd_sampler_is_wide(&a.all.y, a.all.columns, bytes);
    a.places.wide = wd_sampler_is_wide(&a.all.x, a.all.width, bytes);
    threads = wd_most(a.places.by_tile.divisor, a.elements.by_tile.divisor) * GATHER_THREADS;
    batch = wd_least(batch, wd_spatial_images(threads));
    for (int64_t first = 0; first < images; first += batch) {
        const int64_t now = wd_least(batch, images - first);
        a.all.first_image = (uint32_t)first;
        a.all.count = (uint32_t)(now * boxes);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_gather_boxes_f32 + type],
                              wd_ceil_div(a.all.count, SPATIAL_THREADS / 32), SPATIAL_THREADS, 0,
                              &a.all));
        if (!of_pixels) {
            WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_slope_windows_f32 + type],
                                  now * a.places.by_tile.divisor, WINDOW_THREADS, SHARED_PLACES,
                                  &a));
        }
        WD_TRY(wd_emit_kernel(
            queue,
            &kernel_rows[(of_pixels ? KERNEL_gather_pixels_f32 : KERNEL_gather_tiles_f32) + type],
            now * a.elements.by_tile.divisor, GATHER_THREADS,
            (uint32_t)wd_gather_bytes(&a, of_pixels), &a));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_sampler_backward_gather = {
    .name = "sampler_backward_gather",
    .op = WD_OP_SAMPLER_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct cuts),
    .emit = backward,
};
