/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for resampling, on both devices: take whatever the rule accepts. */
#include "ops/engine.h"
#include "ops/resample/resample_args.h"

#define WD_DEF_MODULE resample_def
#define WD_DEF_BODY "ops/resample/resample_def.h"
#define WD_DEF_PASSES "ops/resample/resample_passes.def"
#include "ops/definition_host.inc"

enum { FORWARD_X, FORWARD_Y, FORWARD_IDX };
enum { BACKWARD_DY, BACKWARD_IDX, BACKWARD_X, BACKWARD_Y, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    /* Windows whose maxima are remembered at a time: 64 MiB, or one image where that has more. */
    PLACES_MAX = 1 << 23,
    /* From this size on a window is a reduction, unless there are enough windows for all threads of
     * a device: then each is scanned by one. A function of the shape alone, so that every device
     * adds in the same order. */
    LONG_WINDOW = 64,
    MANY_WINDOWS = 1 << 16,
};

/* Double where values or the compute type are wide; indices do not count. */
static enum wd_acc acc_of(const struct wd_problem *problem)
{
    static const int forward[] = {FORWARD_X, FORWARD_Y, FORWARD_Y};
    static const int backward[] = {BACKWARD_DY, BACKWARD_DX, BACKWARD_X};
    const int *slots = problem->node->op == WD_OP_RESAMPLE_FORWARD ? forward : backward;
    int dtypes[4] = {problem->node->attr.resample.compute};
    int count = 1;
    for (int i = 0; i < 3; ++i) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, slots[i]);
        if (tensor) dtypes[count++] = tensor->dtype;
    }
    return wd_acc_for(dtypes, count);
}

/* Elements of the largest part of a window that lies in the image. */
static int64_t window_terms(const struct wd_resample_attr *attr, const int64_t *image)
{
    int64_t terms = 1;
    for (int s = 0; s < attr->spatial; ++s) terms *= resample_extent(attr, s, image[s]);
    return terms;
}

static bool is_long(int64_t windows, int64_t terms)
{
    return terms >= LONG_WINDOW && windows <= MANY_WINDOWS;
}

static int64_t forward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, FORWARD_X);
    int64_t windows = wd_tensor_count(wd_slot(problem->graph, problem->node, FORWARD_Y));
    int64_t terms = window_terms(&problem->node->attr.resample, x->dim + 2);
    if (!is_long(windows, terms)) return 0;
    return wd_pass_scratch(&wd_pass_resample_forward_long, acc_of(problem), windows, terms);
}

static cudnnStatus_t forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct resample_args args = {
        .x = wd_call_view(call, FORWARD_X),
        .y = wd_call_view(call, FORWARD_Y),
        .idx = wd_call_view(call, FORWARD_IDX),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .has_idx = wd_call_tensor(call, FORWARD_IDX) != NULL,
        .attr = call->problem.node->attr.resample,
    };
    enum wd_acc acc = acc_of(&call->problem);
    int64_t windows = wd_view_count(&args.y);
    int64_t terms = window_terms(&args.attr, args.x.dim + 2);
    if (!is_long(windows, terms)) {
        return wd_emit_map(queue, &wd_pass_resample_forward, acc, &args, windows);
    }
    return wd_emit_reduce(queue, &wd_pass_resample_forward_long, acc, &args, windows, terms,
                          call->workspace);
}

/* How the backward pass of a maximum without an index tensor goes through the images (N times C):
 * so many at a time that the places of their maxima fit the scratch. */
struct batches {
    int64_t images;
    int64_t at_once; /* 0: there is nothing to remember */
    int64_t windows; /* of an image */
    int64_t terms;   /* of a window */
    bool reduce;     /* each window's maximum is a reduction */
};

static struct batches plan_batches(const struct wd_resample_attr *attr, const int64_t *dx,
                                   const int64_t *dy, bool has_idx)
{
    struct batches plan = {.images = dx[0] * dx[1], .windows = 1};
    for (int s = 0; s < attr->spatial; ++s) plan.windows *= dy[2 + s];
    plan.terms = window_terms(attr, dx + 2);
    if (attr->mode != CUDNN_RESAMPLE_MAXPOOL || has_idx || plan.windows == 0) return plan;
    plan.at_once = PLACES_MAX / plan.windows;
    if (plan.at_once == 0) plan.at_once = 1;
    if (plan.at_once > plan.images) plan.at_once = plan.images;
    plan.reduce = is_long(plan.images * plan.windows, plan.terms);
    return plan;
}

static int64_t places_bytes(const struct batches *plan)
{
    return (plan->at_once * plan->windows * (int64_t)sizeof(int64_t) + 255) / 256 * 256;
}

static int64_t backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *dy = wd_slot(problem->graph, problem->node, BACKWARD_DY);
    const struct wd_tensor *dx = wd_slot(problem->graph, problem->node, BACKWARD_DX);
    struct batches plan = plan_batches(&problem->node->attr.resample, dx->dim, dy->dim,
                                       problem->node->slot[BACKWARD_IDX] >= 0);
    int64_t partials = 0;
    /* few windows: all of their maxima fit at once */
    if (plan.reduce) {
        partials = wd_pass_scratch(&wd_pass_resample_forward_long, acc_of(problem),
                                   plan.images * plan.windows, plan.terms);
    }
    return places_bytes(&plan) + partials;
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct resample_args args = {
        .x = wd_call_view(call, BACKWARD_X),
        .y = wd_call_view(call, BACKWARD_DY),
        .idx = wd_call_view(call, BACKWARD_IDX),
        .dx = wd_call_view(call, BACKWARD_DX),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .has_idx = wd_call_tensor(call, BACKWARD_IDX) != NULL,
        .attr = call->problem.node->attr.resample,
    };
    enum wd_acc acc = acc_of(&call->problem);
    struct batches plan = plan_batches(&args.attr, args.dx.dim, args.y.dim, args.has_idx != 0);
    int64_t elements = wd_view_count(&args.dx);
    int64_t in_image = plan.images > 0 ? elements / plan.images : 0;
    if (plan.at_once == 0) {
        return wd_emit_map(queue, &wd_pass_resample_backward, acc, &args, elements);
    }
    args.places = call->workspace;
    for (int64_t image = 0; image < plan.images; image += plan.at_once) {
        int64_t left = plan.images - image;
        int64_t now = left < plan.at_once ? left : plan.at_once;
        args.first_window = image * plan.windows;
        args.first_element = image * in_image;
        if (plan.reduce) {
            WD_TRY(wd_emit_reduce(queue, &wd_pass_resample_forward_long, acc, &args,
                                  now * plan.windows, plan.terms,
                                  (char *)call->workspace + places_bytes(&plan)));
        } else {
            WD_TRY(wd_emit_map(queue, &wd_pass_resample_forward, acc, &args, now * plan.windows));
        }
        WD_TRY(wd_emit_map(queue, &wd_pass_resample_backward, acc, &args, now * in_image));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_resample_forward_def_cpu = {
    .name = "resample_forward_def",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = forward_workspace,
    .emit = forward,
};

const struct wd_engine wd_engine_resample_forward_def_gpu = {
    .name = "resample_forward_def",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = forward_workspace,
    .emit = forward,
};

const struct wd_engine wd_engine_resample_backward_def_cpu = {
    .name = "resample_backward_def",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = backward_workspace,
    .emit = backward,
};

const struct wd_engine wd_engine_resample_backward_def_gpu = {
    .name = "resample_backward_def",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = backward_workspace,
    .emit = backward,
};
