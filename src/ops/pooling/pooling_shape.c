/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling problems as the GPU's engines see them. */
#include "ops/pooling/pooling_shape.h"

#include <float.h>
#include <string.h>

#include "base/sizes.h"

enum { EXTENT_MAX = 1 << 28 }; /* of images, windows, strides, padding: their sums fit 31 bits */

int wd_pool_type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_HALF: return 1;
    case CUDNN_DATA_BFLOAT16: return 2;
    case CUDNN_DATA_DOUBLE: return 3;
    default: return -1;
    }
}

static double lowest_of(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_HALF: return -65504.0;
    case CUDNN_DATA_BFLOAT16: return -0x1.fep127;
    case CUDNN_DATA_DOUBLE: return -DBL_MAX;
    default: return -FLT_MAX;
    }
}

bool wd_pool_lies(const struct wd_tensor *t, bool pixels)
{
    int64_t expected = 1;
    for (int i = 0; i < t->rank; ++i) {
        int d = t->rank - 1 - i;
        if (pixels) d = i == 0 ? 1 : i == t->rank - 1 ? 0 : t->rank - i;
        if (t->dim[d] != 1 && t->stride[d] != expected) return false;
        expected *= t->dim[d];
    }
    return true;
}

static bool is_small(int64_t n)
{
    return n >= -EXTENT_MAX && n <= EXTENT_MAX;
}

bool wd_pool_is_whole(const struct wd_pool_shape *s, int axis)
{
    return s->windows[axis] == 1 && s->pad[axis] >= 0 &&
           s->window[axis] - s->pad[axis] >= s->image[axis];
}

static void set_axis(struct wd_pool_shape *s, int axis, int64_t image, int64_t windows,
                     int64_t window)
{
    s->image[axis] = image;
    s->windows[axis] = windows;
    s->window[axis] = window;
    s->stride[axis] = 1;
    s->pad[axis] = 0;
}

/* Axes that a window covers whole become one, those that nothing is done along join the outer ones.
 * What windows cover and the order of elements stay. */
static void simplify(struct wd_pool_shape *s)
{
    for (int d = 0; d < 3; ++d) {
        if (s->image[d] == 1 && wd_pool_is_whole(s, d)) set_axis(s, d, 1, 1, 1);
    }
    if (s->window[0] == 1 && s->stride[0] == 1 && s->pad[0] == 0 && s->windows[0] == s->image[0]) {
        s->outer *= s->image[0];
        set_axis(s, 0, 1, 1, 1);
    } else if (wd_pool_is_whole(s, 0) && wd_pool_is_whole(s, 1)) {
        int64_t rows = s->image[0] * s->image[1];
        set_axis(s, 1, rows, 1, rows);
        set_axis(s, 0, 1, 1, 1);
    }
}

bool wd_pool_shape_from(const struct wd_pool_attr *attr, bool backward, const struct wd_tensor *x,
                        const struct wd_tensor *y, const struct wd_tensor *source,
                        struct wd_pool_shape *s, struct wd_reason *reason)
{
    const int skip = 3 - attr->spatial;
    int64_t elements = 1;
    memset(s, 0, sizeof *s);
    WD_NEED(attr->spatial <= 3, reason, NOT_SUPPORTED_SHAPE, "%d spatial dimensions, at most 3",
            attr->spatial);
    WD_NEED(wd_pool_type_index(x->dtype) >= 0, reason, NOT_SUPPORTED_DATA_TYPE,
            "the image is %s, needed is fp64, fp32, fp16 or bf16", wd_dtype_name(x->dtype));
    s->backward = backward;
    s->max = attr->mode == CUDNN_POOLING_MAX || attr->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
    if (!s->max) source = NULL;
    WD_NEED(x->vect_count == 1 && y->vect_count == 1 && (!source || source->vect_count == 1),
            reason, NOT_SUPPORTED_LAYOUT, "a tensor is vectorised");
    /* either where both are true: then channels are the better neighbours */
    s->pixels = x->dim[1] > 1 && wd_pool_lies(x, true) && wd_pool_lies(y, true) &&
                (!source || wd_pool_lies(source, true));
    WD_NEED(s->pixels || (wd_pool_lies(x, false) && wd_pool_lies(y, false) &&
                          (!source || wd_pool_lies(source, false))),
            reason, NOT_SUPPORTED_LAYOUT, "neither packed NCHW nor packed NHWC throughout");
    WD_NEED(wd_tensor_count(x) > 0 && wd_tensor_count(x) <= INT32_MAX && wd_tensor_count(y) > 0 &&
                wd_tensor_count(y) <= INT32_MAX,
            reason, NOT_SUPPORTED_SHAPE, "%lld and %lld elements, needed are 1 to 2^31-1",
            (long long)wd_tensor_count(x), (long long)wd_tensor_count(y));
    s->type = wd_pool_type_index(x->dtype);
    s->size = wd_dtype_bytes(x->dtype);
    s->propagate = attr->propagate_nan;
    s->exclude = attr->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    s->lowest = lowest_of(x->dtype);
    s->outer = s->pixels ? x->dim[0] : x->dim[0] * x->dim[1];
    s->inner = s->pixels ? x->dim[1] : 1;
    s->inverse = 1.0;
    for (int d = 0; d < 3; ++d) set_axis(s, d, 1, 1, 1);
    for (int d = 0; d < attr->spatial; ++d) {
        s->image[skip + d] = x->dim[2 + d];
        s->windows[skip + d] = y->dim[2 + d];
        s->window[skip + d] = attr->window[d];
        s->stride[skip + d] = attr->stride[d];
        s->pad[skip + d] = attr->pad_before[d];
        WD_NEED(is_small(x->dim[2 + d]) && is_small(y->dim[2 + d]) && is_small(attr->window[d]) &&
                    is_small(attr->stride[d]) && is_small(attr->pad_before[d]) &&
                    is_small(attr->pad_after[d]),
                reason, NOT_SUPPORTED_SHAPE, "an extent, stride or padding is above %d",
                EXTENT_MAX);
        WD_NEED(elements <= EXTENT_MAX / attr->window[d], reason, NOT_SUPPORTED_SHAPE,
                "a window of more than %d elements", EXTENT_MAX);
        elements *= attr->window[d];
    }
    s->inverse = 1.0 / (double)elements;
    simplify(s);
    return true;
}

bool wd_pool_shape_of(const struct wd_problem *problem, struct wd_pool_shape *s,
                      struct wd_reason *reason)
{
    const struct wd_graph *graph = problem->graph;
    const struct wd_node *node = problem->node;
    const bool backward = node->op == WD_OP_POOL_BACKWARD;
    return wd_pool_shape_from(&node->attr.pool, backward,
                              wd_slot(graph, node, backward ? WD_POOL_BACK_DX : WD_POOL_X),
                              wd_slot(graph, node, backward ? WD_POOL_BACK_DY : WD_POOL_Y),
                              backward ? wd_slot(graph, node, WD_POOL_BACK_X) : NULL, s, reason);
}

struct wd_pool_memory wd_pool_memory_of(const struct wd_call *call,
                                        const struct wd_pool_shape *shape,
                                        const struct wd_device *device)
{
    const int out = shape->backward ? WD_POOL_BACK_DX : WD_POOL_Y;
    struct wd_pool_memory m;
    memset(&m, 0, sizeof m);
    if (!shape->backward) m.x = wd_call_data(call, WD_POOL_X);
    else if (shape->max) m.x = wd_call_data(call, WD_POOL_BACK_X);
    if (shape->backward) m.dy = wd_call_data(call, WD_POOL_BACK_DY);
    m.out = wd_call_data(call, out);
    m.workspace = call->workspace;
    m.alpha = call->scalars[WD_POOL_ALPHA];
    m.beta = call->scalars[WD_POOL_BETA];
    m.streaming = wd_tensor_extent(wd_call_tensor(call, out)) > device->l2_bytes;
    return m;
}

const struct wd_pool_way *wd_pool_way_of(const struct wd_device *device,
                                         const struct wd_pool_shape *s, struct wd_reason *reason)
{
    static const struct wd_pool_way *const forward[] = {&wd_pool_forward_walk,
                                                        &wd_pool_forward_vector,
                                                        &wd_pool_forward_band,
                                                        &wd_pool_slide,
                                                        &wd_pool_forward_single,
                                                        &wd_pool_forward_tile,
                                                        NULL};
    static const struct wd_pool_way *const backward[] = {
        &wd_pool_backward_sheet,  &wd_pool_backward_walk,
        &wd_pool_backward_vector, &wd_pool_backward_band,
        &wd_pool_slide,           &wd_pool_backward_single,
        &wd_pool_backward_tile,   NULL};
    const struct wd_pool_way *const *way = s->backward ? backward : forward;
    while (*way && !(*way)->takes(device, s, reason)) ++way;
    return *way;
}

bool wd_pool_way_match(const struct wd_pool_way *way, const struct wd_problem *problem,
                       struct wd_reason *reason)
{
    struct wd_pool_shape s;
    return wd_pool_shape_of(problem, &s, reason) && way->takes(problem->device, &s, reason);
}

cudnnStatus_t wd_pool_way_emit(const struct wd_pool_way *way, const struct wd_call *call,
                               struct wd_queue *queue)
{
    struct wd_reason reason;
    struct wd_pool_shape s;
    struct wd_pool_memory memory;
    wd_pool_shape_of(&call->problem, &s, &reason);
    memory = wd_pool_memory_of(call, &s, queue->device);
    return way->emit(queue, &s, &memory);
}

void wd_pool_job_prepare(struct wd_pool_job *job, const struct wd_device *device)
{
    memset(job->prepared, 0, sizeof job->prepared);
    if (job->way->prepare) job->way->prepare(device, &job->shape, job->prepared);
}

cudnnStatus_t wd_pool_job_emit(const struct wd_pool_job *job, struct wd_queue *queue,
                               struct wd_pool_memory *memory)
{
    memory->prepared = job->prepared;
    memory->prepared_by = job->way;
    return job->way->emit(queue, &job->shape, memory);
}

void wd_pool_way_prepare(const struct wd_pool_way *way, const struct wd_problem *problem,
                         struct wd_pool_job *job)
{
    struct wd_reason reason;
    wd_pool_shape_of(problem, &job->shape, &reason);
    job->way = way;
    wd_pool_job_prepare(job, problem->device);
}

cudnnStatus_t wd_pool_way_emit_prepared(wd_prepare_fn prepare, const struct wd_call *call,
                                        struct wd_queue *queue)
{
    struct wd_pool_job own;
    const struct wd_pool_job *job = wd_call_prepared(call, prepare, &own);
    struct wd_pool_memory memory = wd_pool_memory_of(call, &job->shape, queue->device);
    return wd_pool_job_emit(job, queue, &memory);
}
