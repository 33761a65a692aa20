/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler's gradients on the GPU by tiles in shared memory, in fp32, fp16, bf16 and fp64. A first kernel
 * finds where parts of the grid look, unless the grid is small; the scratch holds that. All sums have one
 * order. No state. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE sampler_tiles
#define WD_KERNELS_ROWS "ops/spatial/sampler_tiles_kernels.def"
#include "ops/kernels_host.inc"

enum {
    LINE_LEAST_LOG2 = 2, /* so that a thread brings two elements of a tile and its frame */
    BOX_LOG2 = 6,        /* places of the smallest box */
    BOX_ROW_LOG2 = 3,    /* that has so many rows */
    BOXED_FROM = 8192,   /* places; of smaller grids all are looked at */
    BOX_BYTES = 16,
    BOXES_BYTES = 7 << 20, /* of the 8 MiB of calls without a workspace */
    ROOM_STEP = SPATIAL_THREADS,
    ROOM_LEAST = 4 * ROOM_STEP,
    ROOM_MOST = 8 * ROOM_STEP,
    SHARED_MOST = 96 << 10, /* so that two blocks fit a processor */
};

/* The boxes of a grid: rows and columns of one, and how many there are, or 0 where all places are looked
 * at one by one. */
static int64_t boxes_of(const struct wd_tensor *grid, int *row_log2, int *column_log2)
{
    const int64_t rows = grid->dim[1], columns = grid->dim[2];
    *row_log2 = *column_log2 = 0;
    if (rows * columns < BOXED_FROM) return 0;
    *row_log2 = wd_spatial_log2(rows, BOX_ROW_LOG2);
    *column_log2 = BOX_LOG2 - *row_log2;
    return wd_spatial_boxes(rows, columns, SPATIAL_BOXES_MAX, row_log2, column_log2);
}

/* Images whose boxes there is room for at once. */
static int64_t boxed_images(const struct wd_tensor *grid, int64_t boxes)
{
    return boxes ? wd_least(BOXES_BYTES / (BOX_BYTES * boxes), grid->dim[0]) : grid->dim[0];
}

static int64_t backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_BACK_GRID);
    int row_log2, column_log2;
    int64_t boxes = boxes_of(grid, &row_log2, &column_log2);
    return boxed_images(grid, boxes) * boxes * BOX_BYTES;
}

/* Room for the places that a tile of the image will see, where places are spread evenly, and half as
 * many more. */
static int64_t room_of(const struct sampler_vector_args *a, int64_t bytes,
                       const struct wd_device *device)
{
    const int64_t places = (int64_t)a->rows * a->columns;
    const int64_t elements = (int64_t)a->height * a->width;
    const int64_t limit = wd_least(SHARED_MOST, device->shared_per_block);
    int64_t room =
        places > elements * ROOM_MOST
            ? ROOM_MOST
            : wd_ceil_div(2 * SPATIAL_THREADS * places / elements, ROOM_STEP) * ROOM_STEP;
    room = wd_clamp(room, ROOM_LEAST, ROOM_MOST);
    while (room > ROOM_STEP && wd_back_bytes(a->lanes_log2, room, bytes) > limit) room -= ROOM_STEP;
    return room;
}

/* Whether 31 bits count the elements of an image that channels are brought of, and one stage more. */
static bool is_little(const struct sampler_image *i, int64_t rows, int64_t columns,
                      int64_t channels)
{
    return (rows - 1) * i->row + (columns - 1) * i->column +
               (channels + SPATIAL_STAGE) * i->channel <=
           INT32_MAX;
}

/* Whether back_planes takes a call: tiles of whole lines, channels that are no runs, and room for two
 * buffers of what a tile with few places needs. */
static bool has_planes(const struct sampler_vector_args *a, int type)
{
    return type != KERNEL_back_tiles_f64 - KERNEL_back_tiles_f32 &&
           a->lanes_log2 == SPATIAL_LINE_LOG2 && !a->x.runs && !a->y.runs && !a->dx.runs &&
           a->room >= ROOM_LEAST && is_little(&a->x, a->height, a->width, a->channels) &&
           is_little(&a->y, a->rows, a->columns, a->channels) &&
           is_little(&a->dx, a->height, a->width, a->channels);
}

static bool backward_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(wd_spatial_spans_little(wd_slot(problem->graph, problem->node, SAMPLER_BACK_X)) &&
                wd_spatial_spans_little(wd_slot(problem->graph, problem->node, SAMPLER_BACK_DY)),
            reason, NOT_SUPPORTED_SHAPE, "a plane spans more than 2^31 elements");
    return true;
}

bool wd_sampler_back_tiles(const struct wd_call *call, const struct wd_device *device,
                           struct sampler_vector_args *a)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_BACK_X);
    const struct wd_tensor *grid = wd_call_tensor(call, SAMPLER_BACK_GRID);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t number = wd_most(bytes, (int64_t)sizeof(float)); /* of the accumulator */
    *a = wd_sampler_args(x, grid, wd_call_data(call, SAMPLER_BACK_GRID));
    a->x = wd_sampler_image(call, SAMPLER_BACK_X);
    a->y = wd_sampler_image(call, SAMPLER_BACK_DY);
    a->dx = wd_sampler_image(call, SAMPLER_BACK_DX);
    a->x.runs = wd_sampler_has_runs(&a->x, a->channels, bytes);
    a->y.runs = wd_sampler_has_runs(&a->y, a->channels, bytes);
    a->dx.runs = wd_sampler_has_runs(&a->dx, a->channels, bytes);
    a->dgrid = wd_call_data(call, SAMPLER_BACK_DGRID);
    wd_sampler_back_scalars(call, a);
    a->streaming = wd_tensor_extent(wd_call_tensor(call, SAMPLER_BACK_DX)) > device->l2_bytes;
    a->by_line = wd_fastdiv_of((uint32_t)a->columns);
    a->lanes_log2 = (int32_t)wd_most(wd_spatial_log2(a->width, SPATIAL_LINE_LOG2), LINE_LEAST_LOG2);
    a->by_column = wd_fastdiv_of((uint32_t)wd_ceil_div(a->width, 1 << a->lanes_log2));
    a->by_row = wd_fastdiv_of((uint32_t)wd_ceil_div(a->height, SPATIAL_THREADS >> a->lanes_log2));
    a->room = (int32_t)room_of(a, number, device);
    return has_planes(a, wd_spatial_type(x->dtype));
}

cudnnStatus_t wd_sampler_emit_boxes(struct wd_queue *queue, const struct sampler_vector_args *a,
                                    int type)
{
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_sampler_boxes_f32 + type],
                          wd_ceil_div(a->count, SPATIAL_THREADS / 32), SPATIAL_THREADS, 0, a);
}

cudnnStatus_t wd_sampler_emit_planes(struct wd_queue *queue, const struct sampler_vector_args *a,
                                     int type, int64_t images)
{
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_back_planes_f32 + type],
                          images * a->by_column.divisor * a->by_row.divisor, SPATIAL_THREADS,
                          (uint32_t)wd_back_bytes(a->lanes_log2, a->room, (int64_t)sizeof(float)),
                          a);
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_BACK_X);
    const struct wd_tensor *grid = wd_call_tensor(call, SAMPLER_BACK_GRID);
    const int type = wd_spatial_type(x->dtype);
    const int64_t number = wd_most(wd_dtype_bytes(x->dtype), (int64_t)sizeof(float));
    const int64_t images = x->dim[0];
    struct sampler_vector_args a;
    const int kernel = wd_sampler_back_tiles(call, queue->device, &a)
                           ? KERNEL_back_planes_f32 + type
                           : KERNEL_back_tiles_f32 + type;
    const int64_t boxes = boxes_of(grid, &a.box_row_log2, &a.box_column_log2);
    const int64_t tiles = (int64_t)a.by_column.divisor * a.by_row.divisor;
    const int64_t batch = wd_least(boxed_images(grid, boxes), SPATIAL_ITEMS_MAX / tiles);
    a.boxes = boxes ? call->workspace : NULL;
    a.by_box = wd_fastdiv_of((uint32_t)wd_ceil_div(a.columns, (int64_t)1 << a.box_column_log2));
    a.by_boxes = wd_fastdiv_of((uint32_t)(boxes ? boxes : (int64_t)a.rows * a.columns));
    for (int64_t first = 0; first < images; first += batch) {
        const int64_t now = wd_least(batch, images - first);
        a.first_image = (uint32_t)first;
        a.count = (uint32_t)(now * boxes);
        if (boxes) {
            WD_TRY(wd_sampler_emit_boxes(queue, &a, type));
        }
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[kernel], now * tiles, SPATIAL_THREADS,
                              (uint32_t)wd_back_bytes(a.lanes_log2, a.room, number), &a));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_sampler_backward_tiles = {
    .name = "sampler_backward_tiles",
    .op = WD_OP_SAMPLER_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = backward_match,
    .workspace = backward_workspace,
    .emit = backward,
};
