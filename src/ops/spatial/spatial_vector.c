/* SPDX-License-Identifier: Apache-2.0
 *
 * Spatial transformers on the GPU, in fp32, fp16, bf16 and fp64: the grid generator of packed grids, and
 * the sampler of images of any strides, fast where pixels of a row or channels are neighbours. All sums
 * have one order. The gradient of the image goes through lists of places by cell, for as many images
 * at a time as there is scratch for. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/engine.h"
#include "ops/spatial/spatial_vector_args.h"

#define WD_KERNELS_MODULE spatial_vector
#define WD_KERNELS_ROWS "ops/spatial/spatial_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { GRID_IN, GRID_OUT };
enum { FORWARD_X, FORWARD_GRID, FORWARD_Y };
enum { BACKWARD_X, BACKWARD_DY, BACKWARD_GRID, BACKWARD_DX, BACKWARD_DGRID };
enum { ALPHA, BETA, ALPHA_GRID, BETA_GRID };

enum {
    RUN_BYTES = 16,
    ITEMS_MAX = 1 << 30,    /* threads of a launch */
    BLOCKS_A_PROCESSOR = 8, /* of grid gradients */
    TURNS_A_THREAD = 2,     /* at least, before an image has more segments */
    STRIPS_FROM = 192, /* columns; rows that are shorter fit the first-level cache side by side */
    PIXELS_FROM = 8,   /* channels */
    CHUNK = 8,         /* channels of a thread, at least */
    THREADS_ENOUGH = 8192, /* a processor */
    LANES_ENOUGH = 2048,   /* likewise where threads share a place */
    LANES_MAX = 16,        /* planes */
    LANES_PIXEL = 32,      /* pixels */
    GATHERED = 8,          /* channels of a thread, gradients of planes */
    GATHERED_FEW = 4,      /* where there are so few */
    LISTS_BYTES = 7 << 20, /* of the 8 MiB of calls without a workspace */
    LIST_WORDS = 2,        /* a place */
    CELL_WORDS = 2,        /* a cell */
    PLACES_SMALL = 4096,   /* and cells, of an image that one block lists */
    CELLS_SMALL = 5 * PLACES_SMALL,
};

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_HALF: return 1;
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return 3; /* fp64: the rules take no others */
    }
}

static int64_t accumulator_bytes(int dtype)
{
    return dtype == CUDNN_DATA_DOUBLE ? 8 : 4;
}

static bool is_packed(const struct wd_tensor *t)
{
    int64_t expected = 1;
    for (int d = t->rank - 1; d >= 0; --d) {
        if (t->dim[d] != 1 && t->stride[d] != expected) return false;
        expected *= t->dim[d];
    }
    return true;
}

/* ---- The grid generator ---- */

static bool grid_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    bool forward = problem->node->op == WD_OP_GRID_FORWARD;
    const struct wd_tensor *grid =
        wd_slot(problem->graph, problem->node, forward ? GRID_OUT : GRID_IN);
    const struct wd_tensor *theta =
        wd_slot(problem->graph, problem->node, forward ? GRID_IN : GRID_OUT);
    WD_NEED(is_packed(grid) && is_packed(theta), reason, NOT_SUPPORTED_LAYOUT,
            "the grid or theta is not packed");
    WD_NEED(wd_tensor_count(grid) > 0 && wd_tensor_count(grid) <= ITEMS_MAX, reason,
            NOT_SUPPORTED_SHAPE, "%lld elements of the grid, needed are 1 to %d",
            (long long)wd_tensor_count(grid), ITEMS_MAX);
    return true;
}

/* What both directions need of the grid's shape. */
static struct grid_vector_args grid_args(const struct wd_tensor *grid)
{
    struct grid_vector_args a;
    memset(&a, 0, sizeof a);
    a.images = (uint32_t)grid->dim[0];
    a.rows = (int32_t)grid->dim[1];
    a.columns = (int32_t)grid->dim[2];
    a.inverse_w = a.columns > 1 ? 1.0 / (double)(a.columns - 1) : 0.0;
    a.inverse_h = a.rows > 1 ? 1.0 / (double)(a.rows - 1) : 0.0;
    a.by_column = wd_fastdiv_of((uint32_t)a.columns);
    a.by_row = wd_fastdiv_of((uint32_t)a.rows);
    return a;
}

static cudnnStatus_t grid_forward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *grid = wd_call_tensor(call, GRID_OUT);
    const int64_t bytes = wd_dtype_bytes(grid->dtype);
    struct grid_vector_args a = grid_args(grid);
    a.theta = wd_call_data(call, GRID_IN);
    a.grid = wd_call_data(call, GRID_OUT);
    a.skip = (uint32_t)((uintptr_t)a.grid % RUN_BYTES / (uintptr_t)bytes);
    a.elements = (uint32_t)wd_tensor_count(grid);
    a.count = (uint32_t)wd_ceil_div((int64_t)a.elements + a.skip, RUN_BYTES / bytes);
    a.streaming = wd_tensor_extent(grid) > queue->device->l2_bytes;
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_grid_forward_f32 + type_index(grid->dtype)],
                          wd_ceil_div(a.count, SPATIAL_THREADS), SPATIAL_THREADS, 0, &a);
}

/* Runs of an image, wherever it begins. */
static int64_t image_runs(const struct wd_tensor *grid)
{
    int64_t run = RUN_BYTES / wd_dtype_bytes(grid->dtype);
    return wd_ceil_div(2 * grid->dim[1] * grid->dim[2] + run - 1, run);
}

static int64_t segments_of(const struct wd_tensor *grid, const struct wd_device *device)
{
    int64_t blocks = (int64_t)BLOCKS_A_PROCESSOR * device->multiprocessors;
    int64_t worth = image_runs(grid) / (SPATIAL_THREADS * TURNS_A_THREAD);
    return wd_clamp(wd_least(wd_ceil_div(blocks, grid->dim[0]), worth), 1, SPATIAL_THREADS);
}

static int64_t grid_backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, GRID_IN);
    int64_t segments = segments_of(grid, problem->device);
    return segments > 1 ? grid->dim[0] * segments * 6 * accumulator_bytes(grid->dtype) : 0;
}

static cudnnStatus_t grid_backward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *grid = wd_call_tensor(call, GRID_IN);
    const int type = type_index(grid->dtype);
    const int64_t segments = segments_of(grid, call->problem.device);
    struct grid_vector_args a = grid_args(grid);
    a.theta = wd_call_data(call, GRID_OUT);
    a.grid = wd_call_data(call, GRID_IN);
    a.partial = segments > 1 ? call->workspace : NULL;
    a.elements = (uint32_t)(2 * grid->dim[1] * grid->dim[2]);
    a.segments = (uint32_t)segments;
    a.segment = (uint32_t)wd_ceil_div(image_runs(grid), segments);
    a.by_segment = wd_fastdiv_of(a.segments);
    WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_grid_backward_f32 + type],
                          grid->dim[0] * segments, SPATIAL_THREADS, 0, &a));
    if (segments == 1) return CUDNN_STATUS_SUCCESS;
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_grid_finish_f32 + type], grid->dim[0],
                          SPATIAL_THREADS, 0, &a);
}

/* ---- The sampler ---- */

static const struct wd_tensor *sampler_tensor(const struct wd_problem *problem, int forward,
                                              int backward)
{
    bool is_forward = problem->node->op == WD_OP_SAMPLER_FORWARD;
    return wd_slot(problem->graph, problem->node, is_forward ? forward : backward);
}

static bool fits(const struct wd_tensor *t)
{
    return t->dim[2] * t->dim[3] <= ITEMS_MAX / 2 &&
           (t->dim[2] == 1 || t->stride[2] <= INT32_MAX) &&
           (t->dim[3] == 1 || t->stride[3] <= INT32_MAX);
}

static int64_t cells_of(const struct wd_tensor *x)
{
    return (x->dim[2] + 1) * (x->dim[3] + 1);
}

static int64_t list_bytes(const struct wd_tensor *x, const struct wd_tensor *grid)
{
    int64_t words = CELL_WORDS * cells_of(x) + LIST_WORDS * grid->dim[1] * grid->dim[2];
    return words * (int64_t)sizeof(uint32_t);
}

static bool sampler_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = sampler_tensor(problem, FORWARD_X, BACKWARD_X);
    const struct wd_tensor *y = sampler_tensor(problem, FORWARD_Y, BACKWARD_DY);
    const struct wd_tensor *grid = sampler_tensor(problem, FORWARD_GRID, BACKWARD_GRID);
    bool forward = problem->node->op == WD_OP_SAMPLER_FORWARD;
    WD_NEED(wd_tensor_count(x) > 0 && wd_tensor_count(y) > 0, reason, NOT_SUPPORTED_SHAPE,
            "a tensor has no elements");
    WD_NEED(is_packed(grid), reason, NOT_SUPPORTED_LAYOUT, "the grid is not packed");
    WD_NEED(fits(x) && fits(y), reason, NOT_SUPPORTED_SHAPE,
            "an image has more than %d pixels, or a stride is beyond 2^31", ITEMS_MAX / 2);
    WD_NEED(x->dim[1] * wd_most(x->dim[2] * x->dim[3], 2 * y->dim[2] * y->dim[3]) <= ITEMS_MAX,
            reason, NOT_SUPPORTED_SHAPE, "an image of %lld channels has more than %d elements",
            (long long)x->dim[1], ITEMS_MAX);
    if (forward) return true;
    WD_NEED(is_packed(wd_slot(problem->graph, problem->node, BACKWARD_DGRID)), reason,
            NOT_SUPPORTED_LAYOUT, "the grid's gradient is not packed");
    WD_NEED(fits(wd_slot(problem->graph, problem->node, BACKWARD_DX)), reason, NOT_SUPPORTED_SHAPE,
            "a stride of dx is beyond 2^31");
    WD_NEED(list_bytes(x, grid) <= LISTS_BYTES, reason, NOT_SUPPORTED_SHAPE,
            "the lists of an image take %lld bytes, there is room for %d",
            (long long)list_bytes(x, grid), LISTS_BYTES);
    return true;
}

static struct sampler_image image_of(const struct wd_call *call, int slot)
{
    const struct wd_tensor *t = wd_call_tensor(call, slot);
    struct sampler_image image = {
        .data = wd_call_data(call, slot),
        .image = t->dim[0] > 1 ? t->stride[0] : 0,
        .channel = t->dim[1] > 1 ? t->stride[1] : 0,
        .row = t->dim[2] > 1 ? (int32_t)t->stride[2] : 0,
        .column = t->dim[3] > 1 ? (int32_t)t->stride[3] : 0,
    };
    return image;
}

/* Channels are neighbours in both, and worth a thread each. */
static bool are_pixels(const struct sampler_image *a, const struct sampler_image *b,
                       int64_t channels)
{
    return channels >= PIXELS_FROM && a->channel == 1 && b->channel == 1;
}

static bool is_aligned(const struct sampler_image *i, int64_t run, int64_t bytes)
{
    return (uintptr_t)i->data % (uintptr_t)(run * bytes) == 0 && i->image % run == 0 &&
           i->row % run == 0 && i->column % run == 0;
}

/* Channels of a run that both have aligned. */
static int64_t run_of(const struct sampler_image *a, const struct sampler_image *b,
                      int64_t channels, int64_t bytes)
{
    int64_t run = RUN_BYTES / bytes;
    return channels % run == 0 && is_aligned(a, run, bytes) && is_aligned(b, run, bytes) ? run : 1;
}

static bool are_pairs(const void *grid, int64_t bytes)
{
    return (uintptr_t)grid % (uintptr_t)(2 * bytes) == 0;
}

/* What both directions need. */
static struct sampler_vector_args sampler_args(const struct wd_tensor *x,
                                               const struct wd_tensor *grid)
{
    struct sampler_vector_args a;
    memset(&a, 0, sizeof a);
    a.height = (int32_t)x->dim[2];
    a.width = (int32_t)x->dim[3];
    a.channels = (int32_t)x->dim[1];
    a.rows = (int32_t)grid->dim[1];
    a.columns = (int32_t)grid->dim[2];
    a.scale_w = (double)(a.width - 1) / 2;
    a.scale_h = (double)(a.height - 1) / 2;
    return a;
}

/* Positions of a plane, and how they are counted: rows that are long go by strips. */
static int64_t set_positions(struct sampler_vector_args *a)
{
    int64_t positions = (int64_t)a->rows * a->columns;
    a->tiled = a->columns >= STRIPS_FROM;
    if (a->tiled) {
        positions = (int64_t)a->rows * wd_ceil_div(a->columns, SPATIAL_STRIP) * SPATIAL_STRIP;
    }
    a->by_column = wd_fastdiv_of((uint32_t)a->columns);
    a->by_row = wd_fastdiv_of((uint32_t)a->rows);
    a->by_position = wd_fastdiv_of((uint32_t)positions);
    return positions;
}

/* The tensors from `images` images on. */
static void skip_images(struct sampler_vector_args *a, int64_t images, int64_t bytes)
{
    int64_t places = images * a->rows * a->columns * 2 * bytes;
    a->x.data = (char *)a->x.data + images * a->x.image * bytes;
    a->y.data = (char *)a->y.data + images * a->y.image * bytes;
    a->grid = (const char *)a->grid + places;
    if (a->dgrid) a->dgrid = (char *)a->dgrid + places;
}

/* A kernel with `items` things to do in an image, `a_block` of them a block: as many images at a time
 * as can be counted. */
static cudnnStatus_t emit_images(struct wd_queue *queue, int kernel,
                                 const struct sampler_vector_args *args, int64_t images,
                                 int64_t items, int64_t a_block, int64_t bytes)
{
    int64_t most = wd_most(ITEMS_MAX / wd_most(items, 1), 1);
    for (int64_t first = 0; first < images; first += most) {
        struct sampler_vector_args a = *args;
        a.count = (uint32_t)(items * wd_least(most, images - first));
        skip_images(&a, first, bytes);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(a.count, a_block),
                              SPATIAL_THREADS, 0, &a));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t sampler_forward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, FORWARD_X);
    const struct wd_tensor *y = wd_call_tensor(call, FORWARD_Y);
    const int type = type_index(x->dtype);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t images = x->dim[0];
    struct sampler_vector_args a = sampler_args(x, wd_call_tensor(call, FORWARD_GRID));
    int64_t items;
    int64_t chunks;
    int kernel;
    a.x = image_of(call, FORWARD_X);
    a.y = image_of(call, FORWARD_Y);
    a.grid = wd_call_data(call, FORWARD_GRID);
    a.pairs = are_pairs(a.grid, bytes);
    a.alpha = call->scalars[ALPHA];
    a.beta = call->scalars[BETA];
    a.scales = a.alpha != 0.0;
    a.blends = a.beta != 0.0;
    a.streaming = wd_tensor_extent(y) > queue->device->l2_bytes;
    if (are_pixels(&a.x, &a.y, a.channels)) {
        int64_t run = run_of(&a.x, &a.y, a.channels, bytes);
        int64_t side = 1;
        a.tiled = a.rows % SPATIAL_TILE == 0 && a.columns % SPATIAL_TILE == 0;
        if (a.tiled) side = SPATIAL_TILE;
        a.by_run = wd_fastdiv_of((uint32_t)(a.channels / run));
        a.by_column = wd_fastdiv_of((uint32_t)(a.columns / side));
        a.by_row = wd_fastdiv_of((uint32_t)(a.rows / side));
        items = (int64_t)a.rows * a.columns * (a.channels / run);
        kernel = KERNEL_sample_pixels_f32_run + 2 * type + (run == 1);
        return emit_images(queue, kernel, &a, images, items, SPATIAL_THREADS, bytes);
    }
    items = set_positions(&a);
    chunks = wd_ceil_div((int64_t)THREADS_ENOUGH * queue->device->multiprocessors, images * items);
    chunks = wd_least(chunks, wd_ceil_div(a.channels, CHUNK));
    a.chunk = (int32_t)wd_ceil_div(a.channels, chunks);
    chunks = wd_ceil_div(a.channels, a.chunk);
    a.by_chunk = wd_fastdiv_of((uint32_t)chunks);
    kernel = KERNEL_sample_planes_f32 + 2 * type + (a.x.column > 1);
    return emit_images(queue, kernel, &a, images, items * chunks, SPATIAL_THREADS, bytes);
}

/* ---- Gradients ---- */

static cudnnStatus_t emit_slopes(const struct wd_call *call, struct wd_queue *queue,
                                 struct sampler_vector_args a)
{
    const struct wd_tensor *x = wd_call_tensor(call, BACKWARD_X);
    const int type = type_index(x->dtype);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t images = x->dim[0];
    int64_t items;
    int64_t most;
    int kernel;
    a.lanes = 1;
    if (are_pixels(&a.x, &a.y, a.channels)) {
        int64_t run = run_of(&a.x, &a.y, a.channels, bytes);
        while (a.lanes < LANES_PIXEL && 2 * a.lanes <= a.channels / run) a.lanes *= 2;
        a.by_column = wd_fastdiv_of((uint32_t)a.columns);
        a.by_row = wd_fastdiv_of((uint32_t)a.rows);
        items = (int64_t)a.rows * a.columns;
        kernel = KERNEL_slope_pixels_f32_run + 2 * type + (run == 1);
    } else {
        items = set_positions(&a);
        most = (int64_t)LANES_ENOUGH * queue->device->multiprocessors;
        while (a.lanes < LANES_MAX && 2 * a.lanes <= a.channels &&
               images * items * a.lanes < most) {
            a.lanes *= 2;
        }
        kernel = KERNEL_slope_planes_f32 + 2 * type + (a.x.column > 1);
    }
    return emit_images(queue, kernel, &a, images, items, SPATIAL_THREADS / a.lanes, bytes);
}

/* Images whose lists there is room for at once. */
static int64_t listed_images(const struct wd_tensor *x, const struct wd_tensor *grid)
{
    return wd_clamp(LISTS_BYTES / list_bytes(x, grid), 1, x->dim[0]);
}

static int64_t sampler_backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, BACKWARD_X);
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, BACKWARD_GRID);
    return RUN_BYTES + listed_images(x, grid) * list_bytes(x, grid);
}

static cudnnStatus_t emit_gather(const struct wd_call *call, struct wd_queue *queue,
                                 struct sampler_vector_args *a, int64_t images)
{
    const struct wd_tensor *dx = wd_call_tensor(call, BACKWARD_DX);
    const int type = type_index(dx->dtype);
    const int64_t pixels = images * dx->dim[2] * dx->dim[3];
    int64_t each;
    int kernel;
    a->by_width = wd_fastdiv_of((uint32_t)a->width);
    a->by_height = wd_fastdiv_of((uint32_t)a->height);
    if (are_pixels(&a->y, &a->dx, a->channels)) {
        int64_t run = run_of(&a->y, &a->dx, a->channels, wd_dtype_bytes(dx->dtype));
        each = a->channels / run;
        a->by_run = wd_fastdiv_of((uint32_t)each);
        kernel = KERNEL_gather_pixels_f32_run + 2 * type + (run == 1);
    } else {
        bool few = a->channels <= GATHERED_FEW;
        each = wd_ceil_div(a->channels, few ? GATHERED_FEW : GATHERED);
        a->by_chunk = wd_fastdiv_of((uint32_t)each);
        kernel = KERNEL_gather_planes_f32 + 2 * type + few;
    }
    a->count = (uint32_t)(pixels * each);
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(pixels * each, SPATIAL_THREADS),
                          SPATIAL_THREADS, 0, a);
}

/* Counts, parts, places, order: then each element collects. */
static cudnnStatus_t emit_lists(const struct wd_call *call, struct wd_queue *queue,
                                struct sampler_vector_args *a, int64_t images)
{
    const int type = type_index(wd_call_tensor(call, BACKWARD_X)->dtype);
    const int64_t places = images * a->rows * a->columns;
    const int64_t blocks = wd_ceil_div(places, SPATIAL_THREADS);
    uint32_t *words = call->workspace;
    a->all_cells = (uint32_t)(images * a->cells);
    a->cursor = words;
    a->counts = words + 1;
    a->ends = a->counts + a->all_cells;
    a->list = a->ends + a->all_cells;
    a->sorted = a->list + places;
    a->count = (uint32_t)places;
    if ((int64_t)a->rows * a->columns <= PLACES_SMALL && a->cells <= CELLS_SMALL) {
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_list_image_f32 + type], images,
                              SPATIAL_THREADS, 0, a));
        return emit_gather(call, queue, a, images);
    }
    WD_TRY(
        queue->ops->fill(queue, a->cursor, 0, (size_t)(a->ends - a->cursor) * sizeof *a->cursor));
    WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_list_count_f32 + type], blocks,
                          SPATIAL_THREADS, 0, a));
    WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_list_share],
                          wd_ceil_div(a->all_cells, SPATIAL_THREADS), SPATIAL_THREADS, 0, a));
    WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_list_fill_f32 + type], blocks, SPATIAL_THREADS,
                          0, a));
    WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_list_order_f32 + type], blocks,
                          SPATIAL_THREADS, 0, a));
    return emit_gather(call, queue, a, images);
}

static cudnnStatus_t sampler_backward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, BACKWARD_X);
    const struct wd_tensor *grid = wd_call_tensor(call, BACKWARD_GRID);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    int64_t most = listed_images(x, grid);
    struct sampler_vector_args a = sampler_args(x, grid);
    a.x = image_of(call, BACKWARD_X);
    a.y = image_of(call, BACKWARD_DY);
    a.dx = image_of(call, BACKWARD_DX);
    a.grid = wd_call_data(call, BACKWARD_GRID);
    a.dgrid = wd_call_data(call, BACKWARD_DGRID);
    a.pairs = are_pairs(a.grid, bytes);
    a.alpha = call->scalars[ALPHA];
    a.beta = call->scalars[BETA];
    a.alpha_grid = call->scalars[ALPHA_GRID];
    a.beta_grid = call->scalars[BETA_GRID];
    a.scales = a.alpha != 0.0;
    a.blends = a.beta != 0.0;
    a.scales_grid = a.alpha_grid != 0.0;
    a.blends_grid = a.beta_grid != 0.0;
    a.streaming = wd_tensor_extent(wd_call_tensor(call, BACKWARD_DX)) > queue->device->l2_bytes;
    WD_TRY(emit_slopes(call, queue, a));
    a.cells = (uint32_t)cells_of(x);
    a.by_column = wd_fastdiv_of((uint32_t)a.columns);
    a.by_position = wd_fastdiv_of((uint32_t)((int64_t)a.rows * a.columns));
    /* lists, and what gathers by them, count images from first_image on */
    for (int64_t first = 0; first < x->dim[0]; first += most) {
        a.first_image = (uint32_t)first;
        WD_TRY(emit_lists(call, queue, &a, wd_least(most, x->dim[0] - first)));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_grid_forward_vector = {
    .name = "grid_forward_vector",
    .op = WD_OP_GRID_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = grid_match,
    .emit = grid_forward,
};

const struct wd_engine wd_engine_grid_backward_vector = {
    .name = "grid_backward_vector",
    .op = WD_OP_GRID_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = grid_match,
    .workspace = grid_backward_workspace,
    .emit = grid_backward,
};

const struct wd_engine wd_engine_sampler_forward_vector = {
    .name = "sampler_forward_vector",
    .op = WD_OP_SAMPLER_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = sampler_match,
    .emit = sampler_forward,
};

const struct wd_engine wd_engine_sampler_backward_vector = {
    .name = "sampler_backward_vector",
    .op = WD_OP_SAMPLER_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = sampler_match,
    .workspace = sampler_backward_workspace,
    .emit = sampler_backward,
};
