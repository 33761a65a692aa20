/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid generator on the GPU, of packed grids; see spatial_vector.h. Backward, an image's gradients
 * are added up by several blocks where there are few images. No state. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"
#include "ops/spatial/spatial_vector_args.h"

enum { GRID_IN, GRID_OUT };

enum {
    BLOCKS_A_PROCESSOR = 8,
    TURNS_A_THREAD = 2, /* at least, before an image has more segments */
    RUNS_MANY = 4,      /* of a thread */
    RUNS_ENOUGH = 8,    /* a thread of one block a processor: so many, and threads have several */
};

static int64_t accumulator_bytes(int dtype)
{
    return dtype == CUDNN_DATA_DOUBLE ? 8 : 4;
}

bool wd_grid_vector_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    bool forward = problem->node->op == WD_OP_GRID_FORWARD;
    const struct wd_tensor *grid =
        wd_slot(problem->graph, problem->node, forward ? GRID_OUT : GRID_IN);
    const struct wd_tensor *theta =
        wd_slot(problem->graph, problem->node, forward ? GRID_IN : GRID_OUT);
    WD_NEED(wd_spatial_is_packed(grid) && wd_spatial_is_packed(theta), reason, NOT_SUPPORTED_LAYOUT,
            "the grid or theta is not packed");
    WD_NEED(wd_tensor_count(grid) > 0 && wd_tensor_count(grid) <= SPATIAL_ITEMS_MAX, reason,
            NOT_SUPPORTED_SHAPE, "%lld elements of the grid, needed are 1 to %d",
            (long long)wd_tensor_count(grid), SPATIAL_ITEMS_MAX);
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

/* Runs of an image, wherever it begins. */
static int64_t image_runs(const struct wd_tensor *grid)
{
    int64_t run = SPATIAL_RUN_BYTES / wd_dtype_bytes(grid->dtype);
    return wd_ceil_div(2 * grid->dim[1] * grid->dim[2] + run - 1, run);
}

/* Whether rows are whole runs, of aligned memory, and enough of them; what the kernels need for that. */
static bool set_rows(struct grid_vector_args *a, const struct wd_tensor *grid, bool enough)
{
    const int64_t run = SPATIAL_RUN_BYTES / wd_dtype_bytes(grid->dtype);
    a->by_rows =
        enough && 2 * grid->dim[2] % run == 0 && (uintptr_t)a->grid % SPATIAL_RUN_BYTES == 0;
    a->by_line = wd_fastdiv_of((uint32_t)(2 * grid->dim[2] / run));
    return a->by_rows;
}

/* Of an image's rows so many that there are blocks enough. */
static cudnnStatus_t forward_rows(struct grid_vector_args *a, struct wd_queue *queue,
                                  struct wd_kernel_row *kernel)
{
    const int64_t blocks = (int64_t)BLOCKS_A_PROCESSOR * queue->device->multiprocessors;
    const int64_t together = wd_most(SPATIAL_THREADS / wd_most(a->by_line.divisor, 1), 1);
    const int64_t worth = wd_ceil_div(a->rows, together);
    const int64_t segments = wd_clamp(wd_ceil_div(blocks, a->images), 1, worth);
    a->segment = (uint32_t)(wd_ceil_div(worth, segments) * together);
    a->segments = (uint32_t)wd_ceil_div(a->rows, a->segment);
    a->by_segment = wd_fastdiv_of(a->segments);
    a->elements = (uint32_t)(2 * a->rows * a->columns);
    return wd_emit_kernel(queue, kernel, (int64_t)a->images * a->segments, SPATIAL_THREADS, 0, a);
}

cudnnStatus_t wd_grid_vector_forward(const struct wd_call *call, struct wd_queue *queue,
                                     struct wd_kernel_row *kernels, struct wd_kernel_row *many32)
{
    const struct wd_tensor *grid = wd_call_tensor(call, GRID_OUT);
    const int64_t bytes = wd_dtype_bytes(grid->dtype);
    struct wd_kernel_row *kernel = &kernels[2 * wd_spatial_type(grid->dtype)];
    struct grid_vector_args a = grid_args(grid);
    bool many;
    bool enough; /* rows: long ones want a block each */
    a.theta = wd_call_data(call, GRID_IN);
    a.grid = wd_call_data(call, GRID_OUT);
    a.streaming = wd_tensor_extent(grid) > queue->device->l2_bytes;
    enough =
        image_runs(grid) <= (int64_t)SPATIAL_THREADS * a.rows ||
        (int64_t)a.images * a.rows >= (int64_t)BLOCKS_A_PROCESSOR * queue->device->multiprocessors;
    a.skip = (uint32_t)((uintptr_t)a.grid % SPATIAL_RUN_BYTES / (uintptr_t)bytes);
    a.elements = (uint32_t)wd_tensor_count(grid);
    a.count = (uint32_t)wd_ceil_div((int64_t)a.elements + a.skip, SPATIAL_RUN_BYTES / bytes);
    many = a.count >= RUNS_ENOUGH * SPATIAL_THREADS * (int64_t)queue->device->multiprocessors;
    a.turns = many ? RUNS_MANY : 1;
    if (many && grid->dtype == CUDNN_DATA_FLOAT) kernel = many32;
    else if (set_rows(&a, grid, enough)) return forward_rows(&a, queue, kernel + 1);
    return wd_emit_kernel(queue, kernel, wd_ceil_div(a.count, SPATIAL_THREADS * (int64_t)a.turns),
                          SPATIAL_THREADS, 0, &a);
}

static int64_t segments_of(const struct wd_tensor *grid, const struct wd_device *device)
{
    int64_t blocks = (int64_t)BLOCKS_A_PROCESSOR * device->multiprocessors;
    int64_t worth = image_runs(grid) / (SPATIAL_THREADS * TURNS_A_THREAD);
    return wd_clamp(wd_least(blocks / grid->dim[0], worth), 1, SPATIAL_THREADS);
}

int64_t wd_grid_vector_backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, GRID_IN);
    int64_t segments = segments_of(grid, problem->device);
    return segments > 1 ? grid->dim[0] * segments * 6 * accumulator_bytes(grid->dtype) : 0;
}

cudnnStatus_t wd_grid_vector_backward(const struct wd_call *call, struct wd_queue *queue,
                                      struct wd_kernel_row *kernels, struct wd_kernel_row *finish)
{
    const struct wd_tensor *grid = wd_call_tensor(call, GRID_IN);
    const int type = wd_spatial_type(grid->dtype);
    const int64_t segments = segments_of(grid, call->problem.device);
    struct grid_vector_args a = grid_args(grid);
    a.theta = wd_call_data(call, GRID_OUT);
    a.grid = wd_call_data(call, GRID_IN);
    a.partial = segments > 1 ? call->workspace : NULL;
    a.elements = (uint32_t)(2 * grid->dim[1] * grid->dim[2]);
    a.segments = (uint32_t)segments;
    set_rows(&a, grid, a.rows >= segments);
    a.segment = (uint32_t)wd_ceil_div(a.by_rows ? a.rows : image_runs(grid), segments);
    a.by_segment = wd_fastdiv_of(a.segments);
    WD_TRY(wd_emit_kernel(queue, &kernels[type], grid->dim[0] * segments, SPATIAL_THREADS, 0, &a));
    if (segments == 1) return CUDNN_STATUS_SUCCESS;
    return wd_emit_kernel(queue, &finish[type], grid->dim[0], SPATIAL_THREADS, 0, &a);
}
