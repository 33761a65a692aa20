/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for spatial transformers, on both devices: take whatever the rule
 * accepts. */
#include "ops/engine.h"
#include "ops/spatial/spatial_args.h"

#define WD_DEF_MODULE spatial_def
#define WD_DEF_BODY "ops/spatial/spatial_def.h"
#define WD_DEF_PASSES "ops/spatial/spatial_passes.def"
#include "ops/definition_host.inc"

enum { GRID_IN, GRID_OUT };
enum { FORWARD_X, FORWARD_GRID, FORWARD_Y };
enum { BACKWARD_X, BACKWARD_DY, BACKWARD_GRID, BACKWARD_DX, BACKWARD_DGRID };
enum { ALPHA, BETA, ALPHA_GRID, BETA_GRID };

/* Pixels that are sorted at a time: 16 bytes each, so that the scratch stays below 8 MiB. */
enum { SORTED_MAX = 1 << 18 };

static cudnnStatus_t grid_forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct grid_args args = {wd_call_view(call, GRID_IN), wd_call_view(call, GRID_OUT)};
    return wd_emit_map(queue, &wd_pass_grid_forward, wd_problem_acc(&call->problem), &args,
                       wd_view_count(&args.grid) / 2);
}

static int64_t grid_backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *dgrid = wd_slot(problem->graph, problem->node, GRID_IN);
    return wd_pass_scratch(&wd_pass_grid_backward, wd_problem_acc(problem), 2 * dgrid->dim[0],
                           dgrid->dim[1] * dgrid->dim[2]);
}

static cudnnStatus_t grid_backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct grid_args args = {wd_call_view(call, GRID_OUT), wd_call_view(call, GRID_IN)};
    return wd_emit_reduce(queue, &wd_pass_grid_backward, wd_problem_acc(&call->problem), &args,
                          2 * args.grid.dim[0], args.grid.dim[1] * args.grid.dim[2],
                          call->workspace);
}

static cudnnStatus_t sampler_forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct sampler_args args = {
        .x = wd_call_view(call, FORWARD_X),
        .y = wd_call_view(call, FORWARD_Y),
        .grid = wd_call_view(call, FORWARD_GRID),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
    };
    return wd_emit_map(queue, &wd_pass_sampler_forward, wd_problem_acc(&call->problem), &args,
                       wd_view_count(&args.y));
}

/* The sorts of a backward pass: of several images at a time, or of a piece of one. */
struct sorts {
    int64_t images;
    int64_t pixels;
};

static struct sorts plan_sorts(int64_t images, int64_t all)
{
    struct sorts sorts = {1, all < SORTED_MAX ? all : SORTED_MAX};
    if (all > 0 && all < SORTED_MAX) sorts.images = SORTED_MAX / all;
    if (sorts.images > images) sorts.images = images;
    return sorts;
}

static int64_t sorted_bytes(const struct sorts *sorts)
{
    return sorts->images * sorts->pixels * (int64_t)(sizeof(int64_t) + 2 * sizeof(int32_t));
}

/* The sums of dgrid are done before the first sort begins. */
static int64_t sampler_backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, BACKWARD_X);
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, BACKWARD_GRID);
    int64_t all = grid->dim[1] * grid->dim[2];
    struct sorts sorts = plan_sorts(grid->dim[0], all);
    int64_t sums = wd_pass_scratch(&wd_pass_sampler_grid, wd_problem_acc(problem),
                                   grid->dim[0] * all, x->dim[1]);
    int64_t sorted = sorted_bytes(&sorts);
    return sums > sorted ? sums : sorted;
}

/* Sorts what args names, by runs of 1, 2, 4 ... pixels; leaves the order in args->from. */
static cudnnStatus_t sort(struct wd_queue *queue, enum wd_acc acc, struct sampler_args *args,
                          int64_t images, int32_t *order, int32_t *other)
{
    int64_t items = images * args->pixels;
    args->to = order;
    WD_TRY(wd_emit_map(queue, &wd_pass_sampler_cells, acc, args, items));
    args->from = order;
    for (args->run = 1; args->run < args->pixels; args->run *= 2) {
        args->to = args->from == order ? other : order;
        WD_TRY(wd_emit_map(queue, &wd_pass_sampler_merge, acc, args, items));
        args->from = args->to;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t sampler_backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct sampler_args args = {
        .x = wd_call_view(call, BACKWARD_X),
        .y = wd_call_view(call, BACKWARD_DY),
        .grid = wd_call_view(call, BACKWARD_GRID),
        .dx = wd_call_view(call, BACKWARD_DX),
        .dgrid = wd_call_view(call, BACKWARD_DGRID),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .alpha_grid = call->scalars[ALPHA_GRID],
        .beta_grid = call->scalars[BETA_GRID],
    };
    enum wd_acc acc = wd_problem_acc(&call->problem);
    int64_t all = args.grid.dim[1] * args.grid.dim[2];
    struct sorts sorts = plan_sorts(args.grid.dim[0], all);
    int64_t sorted = sorts.images * sorts.pixels;
    int64_t in_image = args.dx.dim[1] * args.dx.dim[2] * args.dx.dim[3];
    int32_t *order = (int32_t *)((int64_t *)call->workspace + sorted);
    WD_TRY(wd_emit_reduce(queue, &wd_pass_sampler_grid, acc, &args, args.grid.dim[0] * all,
                          args.x.dim[1], call->workspace));
    args.cell = call->workspace;
    for (int64_t image = 0; image < args.grid.dim[0]; image += sorts.images) {
        int64_t left = args.grid.dim[0] - image;
        int64_t images = left < sorts.images ? left : sorts.images;
        args.first_image = image;
        args.beta = call->scalars[BETA];
        for (int64_t pixel = 0; pixel < all; pixel += sorts.pixels) {
            args.first_pixel = pixel;
            args.pixels = all - pixel < sorts.pixels ? all - pixel : sorts.pixels;
            WD_TRY(sort(queue, acc, &args, images, order, order + sorted));
            WD_TRY(wd_emit_map(queue, &wd_pass_sampler_gather, acc, &args, images * in_image));
            args.beta = 1.0; /* further pieces of an image add to it */
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_grid_forward_def_cpu = {
    .name = "grid_forward_def",
    .op = WD_OP_GRID_FORWARD,
    .device = WD_CPU,
    .last_resort = true,
    .emit = grid_forward,
};

const struct wd_engine wd_engine_grid_forward_def_gpu = {
    .name = "grid_forward_def",
    .op = WD_OP_GRID_FORWARD,
    .device = WD_GPU,
    .last_resort = true,
    .emit = grid_forward,
};

const struct wd_engine wd_engine_grid_backward_def_cpu = {
    .name = "grid_backward_def",
    .op = WD_OP_GRID_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = grid_backward_workspace,
    .emit = grid_backward,
};

const struct wd_engine wd_engine_grid_backward_def_gpu = {
    .name = "grid_backward_def",
    .op = WD_OP_GRID_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = grid_backward_workspace,
    .emit = grid_backward,
};

const struct wd_engine wd_engine_sampler_forward_def_cpu = {
    .name = "sampler_forward_def",
    .op = WD_OP_SAMPLER_FORWARD,
    .device = WD_CPU,
    .last_resort = true,
    .emit = sampler_forward,
};

const struct wd_engine wd_engine_sampler_forward_def_gpu = {
    .name = "sampler_forward_def",
    .op = WD_OP_SAMPLER_FORWARD,
    .device = WD_GPU,
    .last_resort = true,
    .emit = sampler_forward,
};

const struct wd_engine wd_engine_sampler_backward_def_cpu = {
    .name = "sampler_backward_def",
    .op = WD_OP_SAMPLER_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = sampler_backward_workspace,
    .emit = sampler_backward,
};

const struct wd_engine wd_engine_sampler_backward_def_gpu = {
    .name = "sampler_backward_def",
    .op = WD_OP_SAMPLER_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = sampler_backward_workspace,
    .emit = sampler_backward,
};
