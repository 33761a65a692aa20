/* SPDX-License-Identifier: Apache-2.0
 *
 * Spatial transformers on the GPU, in fp32, fp16, bf16 and fp64: the grid generator of packed grids, and
 * the sampler of images whose channels are neighbours. All sums have one order. No state. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE spatial_vector
#define WD_KERNELS_ROWS "ops/spatial/spatial_vector_kernels.def"
#include "ops/kernels_host.inc"

enum {
    SHARES_LEAST = 3, /* channels of a thread that has some of a place's, about */
    THREADS_FEW =
        256, /* of a processor: more, and neighbouring places rather than channels are a warp's, ... */
    SHARES_MANY = 24,
    THREADS_MANY = 1024, /* ... unless a thread had more channels than these */
    SHARES_LOG2_MOST = 5,
    RUNS_LEAST =
        4, /* of a pixel that are read side by side: two sectors; a thread may have two such runs ... */
    BLOCKS_ENOUGH =
        12, /* ... where there are so many blocks a processor, twice those that it has room for */
};

/* ---- The sampler ---- */

static const struct wd_tensor *sampler_tensor(const struct wd_problem *problem, int forward,
                                              int backward)
{
    bool is_forward = problem->node->op == WD_OP_SAMPLER_FORWARD;
    return wd_slot(problem->graph, problem->node, is_forward ? forward : backward);
}

static bool fits(const struct wd_tensor *t)
{
    return t->dim[2] * t->dim[3] <= SPATIAL_ITEMS_MAX / 2 &&
           (t->dim[2] == 1 || t->stride[2] <= INT32_MAX) &&
           (t->dim[3] == 1 || t->stride[3] <= INT32_MAX);
}

bool wd_sampler_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = sampler_tensor(problem, SAMPLER_X, SAMPLER_BACK_X);
    const struct wd_tensor *y = sampler_tensor(problem, SAMPLER_Y, SAMPLER_BACK_DY);
    const struct wd_tensor *grid = sampler_tensor(problem, SAMPLER_GRID, SAMPLER_BACK_GRID);
    bool forward = problem->node->op == WD_OP_SAMPLER_FORWARD;
    WD_NEED(wd_tensor_count(x) > 0 && wd_tensor_count(y) > 0, reason, NOT_SUPPORTED_SHAPE,
            "a tensor has no elements");
    WD_NEED(wd_spatial_is_packed(grid), reason, NOT_SUPPORTED_LAYOUT, "the grid is not packed");
    WD_NEED(fits(x) && fits(y), reason, NOT_SUPPORTED_SHAPE,
            "an image has more than %d pixels, or a stride is beyond 2^31", SPATIAL_ITEMS_MAX / 2);
    WD_NEED(x->dim[1] * wd_most(x->dim[2] * x->dim[3], 2 * y->dim[2] * y->dim[3]) <=
                SPATIAL_ITEMS_MAX,
            reason, NOT_SUPPORTED_SHAPE, "an image of %lld channels has more than %d elements",
            (long long)x->dim[1], SPATIAL_ITEMS_MAX);
    if (forward) return true;
    WD_NEED(wd_spatial_is_packed(wd_slot(problem->graph, problem->node, SAMPLER_BACK_DGRID)),
            reason, NOT_SUPPORTED_LAYOUT, "the grid's gradient is not packed");
    WD_NEED(fits(wd_slot(problem->graph, problem->node, SAMPLER_BACK_DX)), reason,
            NOT_SUPPORTED_SHAPE, "a stride of dx is beyond 2^31");
    return true;
}

struct sampler_image wd_sampler_image(const struct wd_call *call, int slot)
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

bool wd_sampler_has_pixels(const struct wd_problem *problem)
{
    const struct wd_tensor *x = sampler_tensor(problem, SAMPLER_X, SAMPLER_BACK_X);
    const struct wd_tensor *y = sampler_tensor(problem, SAMPLER_Y, SAMPLER_BACK_DY);
    return x->dim[1] >= SPATIAL_PIXELS_FROM && x->stride[1] == 1 && y->stride[1] == 1;
}

bool wd_sampler_has_runs(const struct sampler_image *i, int64_t channels, int64_t bytes)
{
    int64_t run = SPATIAL_RUN_BYTES / bytes;
    return channels % run == 0 && i->channel == 1 && (uintptr_t)i->data % SPATIAL_RUN_BYTES == 0 &&
           i->image % run == 0 && i->row % run == 0 && i->column % run == 0;
}

struct sampler_vector_args wd_sampler_args(const struct wd_tensor *x, const struct wd_tensor *grid,
                                           const void *places)
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
    a.scale_w32 = (float)a.scale_w;
    a.scale_h32 = (float)a.scale_h;
    a.grid = places;
    a.pairs = (uintptr_t)places % (uintptr_t)(2 * wd_dtype_bytes(grid->dtype)) == 0;
    return a;
}

void wd_sampler_share(struct sampler_vector_args *a, int64_t places, int multiprocessors)
{
    a->sharing_log2 = 0;
    while (a->sharing_log2 < SHARES_LOG2_MOST) {
        const int64_t threads = places << a->sharing_log2;
        const int channels = a->channels >> a->sharing_log2;
        const int64_t enough =
            (int64_t)(channels > SHARES_MANY ? THREADS_MANY : THREADS_FEW) * multiprocessors;
        if (threads >= enough || channels <= SHARES_LEAST) return;
        a->sharing_log2 += 1;
    }
}

void wd_sampler_scalars(const struct wd_call *call, struct sampler_vector_args *a)
{
    a->alpha = call->scalars[SAMPLER_ALPHA];
    a->beta = call->scalars[SAMPLER_BETA];
    a->alpha32 = (float)a->alpha;
    a->beta32 = (float)a->beta;
    a->scales = a->alpha != 0.0;
    a->blends = a->beta != 0.0;
}

void wd_sampler_back_scalars(const struct wd_call *call, struct sampler_vector_args *a)
{
    wd_sampler_scalars(call, a);
    a->alpha_grid = call->scalars[SAMPLER_ALPHA_GRID];
    a->beta_grid = call->scalars[SAMPLER_BETA_GRID];
    a->scales_grid = a->alpha_grid != 0.0;
    a->blends_grid = a->beta_grid != 0.0;
}

void wd_sampler_skip(struct sampler_vector_args *a, int64_t images, int64_t bytes)
{
    int64_t places = images * a->rows * a->columns * 2 * bytes;
    a->x.data = (char *)a->x.data + images * a->x.image * bytes;
    a->y.data = (char *)a->y.data + images * a->y.image * bytes;
    a->grid = (const char *)a->grid + places;
}

/* A kernel with `items` threads an image: as many images at a time as can be counted. */
static cudnnStatus_t emit_images(struct wd_queue *queue, int kernel,
                                 const struct sampler_vector_args *args, int64_t images,
                                 int64_t items, int64_t bytes)
{
    const int64_t most = wd_spatial_images(items);
    for (int64_t first = 0; first < images; first += most) {
        struct sampler_vector_args a = *args;
        a.count = (uint32_t)(items * wd_least(most, images - first));
        wd_sampler_skip(&a, first, bytes);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(a.count, SPATIAL_THREADS),
                              SPATIAL_THREADS, 0, &a));
    }
    return CUDNN_STATUS_SUCCESS;
}

static bool forward_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(wd_sampler_has_pixels(problem), reason, NOT_SUPPORTED_LAYOUT,
            "channels are not neighbours, or fewer than %d", SPATIAL_PIXELS_FROM);
    return true;
}

static cudnnStatus_t sampler_forward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_X);
    const struct wd_tensor *y = wd_call_tensor(call, SAMPLER_Y);
    const int type = wd_spatial_type(x->dtype);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    struct sampler_vector_args a =
        wd_sampler_args(x, wd_call_tensor(call, SAMPLER_GRID), wd_call_data(call, SAMPLER_GRID));
    int64_t run = 1;
    int64_t runs;
    int64_t side = 1;
    int64_t enough;
    a.x = wd_sampler_image(call, SAMPLER_X);
    a.y = wd_sampler_image(call, SAMPLER_Y);
    wd_sampler_scalars(call, &a);
    a.streaming = wd_tensor_extent(y) > queue->device->l2_bytes;
    if (wd_sampler_has_runs(&a.x, a.channels, bytes) &&
        wd_sampler_has_runs(&a.y, a.channels, bytes)) {
        run = SPATIAL_RUN_BYTES / bytes;
    }
    a.tiled = a.rows % SPATIAL_TILE == 0 && a.columns % SPATIAL_TILE == 0;
    if (a.tiled) side = SPATIAL_TILE;
    runs = a.channels / run;
    enough = (int64_t)BLOCKS_ENOUGH * SPATIAL_THREADS * queue->device->multiprocessors;
    a.room = runs % 2 == 0 && runs >= 2 * RUNS_LEAST &&
                     x->dim[0] * a.rows * a.columns * runs >= 2 * enough
                 ? 2
                 : 1;
    a.chunk = (int32_t)(a.channels / a.room);
    a.by_run = wd_fastdiv_of((uint32_t)(a.chunk / run));
    a.by_column = wd_fastdiv_of((uint32_t)(a.columns / side));
    a.by_row = wd_fastdiv_of((uint32_t)(a.rows / side));
    return emit_images(queue, KERNEL_sample_pixels_f32_run + 2 * type + (run == 1), &a, x->dim[0],
                       (int64_t)a.rows * a.columns * (a.chunk / run), bytes);
}

/* ---- Engines ---- */

static cudnnStatus_t grid_forward(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_grid_vector_forward(call, queue, &kernel_rows[KERNEL_grid_forward_f32],
                                  &kernel_rows[KERNEL_grid_forward_f32_4]);
}

static cudnnStatus_t grid_backward(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_grid_vector_backward(call, queue, &kernel_rows[KERNEL_grid_backward_f32],
                                   &kernel_rows[KERNEL_grid_finish_f32]);
}

const struct wd_engine wd_engine_grid_forward_vector = {
    .name = "grid_forward_vector",
    .op = WD_OP_GRID_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_grid_vector_match,
    .emit = grid_forward,
};

const struct wd_engine wd_engine_grid_backward_vector = {
    .name = "grid_backward_vector",
    .op = WD_OP_GRID_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_grid_vector_match,
    .workspace = wd_grid_vector_backward_workspace,
    .emit = grid_backward,
};

const struct wd_engine wd_engine_sampler_forward_vector = {
    .name = "sampler_forward_vector",
    .op = WD_OP_SAMPLER_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = forward_match,
    .emit = sampler_forward,
};
