/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engines of local response normalization on the GPU share on the host. */
#include "ops/lrn/lrn_host.h"

#include <string.h>

#include "base/sizes.h"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    CHUNK = 24,                 /* channels that a thread walks along, about */
    CHUNK_AROUND = 6,           /* times those that it reads beside its own */
    CHUNK_FEW = 4,              /* where there are few threads */
    THREADS_FEW = 1024,         /* a processor */
    THREADS_FEW_BACKWARD = 512, /* that have twice as much on its way */
    THREADS_LEAST = 512,        /* for which chunks are cut that read much beside their own */
    WARP = 32,
    WASTE = 16, /* of so many pixels one, and no more, may have a thread in vain */
};

int wd_lrn_type(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_HALF: return 1;
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return 3; /* fp64: the rule takes no others */
    }
}

bool wd_lrn_is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_LRN_BACKWARD;
}

int wd_lrn_tensors(const struct wd_problem *problem, const struct wd_tensor **tensor)
{
    bool backward = wd_lrn_is_backward(problem);
    tensor[0] = wd_slot(problem->graph, problem->node, backward ? BACKWARD_X : FORWARD_X);
    tensor[1] = wd_slot(problem->graph, problem->node, backward ? BACKWARD_DX : FORWARD_Y);
    if (!backward) return 2;
    tensor[2] = wd_slot(problem->graph, problem->node, BACKWARD_DY);
    return 3;
}

int64_t wd_lrn_plane(const struct wd_tensor *t)
{
    int64_t elements = 1;
    for (int d = 2; d < t->rank; ++d) elements *= t->dim[d];
    return elements;
}

bool wd_lrn_has_planes(const struct wd_tensor *t)
{
    int64_t expected = 1;
    for (int d = t->rank - 1; d >= 2; --d) {
        if (t->dim[d] != 1 && t->stride[d] != expected) return false;
        expected *= t->dim[d];
    }
    return true;
}

/* Whether all elements do, the channels of a pixel first. */
static bool has_pixels(const struct wd_tensor *t)
{
    int64_t expected = t->dim[1];
    if (t->dim[1] != 1 && t->stride[1] != 1) return false;
    for (int d = t->rank - 1; d >= 2; --d) {
        if (t->dim[d] != 1 && t->stride[d] != expected) return false;
        expected *= t->dim[d];
    }
    return t->dim[0] == 1 || t->stride[0] == expected;
}

bool wd_lrn_are_pixels(const struct wd_problem *problem)
{
    const struct wd_tensor *tensor[3];
    int count = wd_lrn_tensors(problem, tensor);
    for (int i = 0; i < count; ++i)
        if (!has_pixels(tensor[i])) return false;
    return tensor[0]->dim[1] > 1;
}

int64_t wd_lrn_accumulator_bytes(int dtype)
{
    return dtype == CUDNN_DATA_DOUBLE ? 8 : 4;
}

int wd_lrn_power(double beta)
{
    if (beta == 0.5) return LRN_POWER_HALF;
    if (beta == 0.75) return LRN_POWER_THREE_QUARTERS;
    return beta == 1.0 ? LRN_POWER_ONE : LRN_POWER_ANY;
}

struct lrn_floats wd_lrn_rounded(const struct lrn_doubles *full)
{
    return (struct lrn_floats){.alpha = (float)full->alpha,
                               .beta = (float)full->beta,
                               .k = (float)full->k,
                               .factor = (float)full->factor,
                               .exponent = (float)full->exponent,
                               .share = (float)full->share};
}

static struct lrn_operand operand_of(const struct wd_call *call, int slot)
{
    const struct wd_tensor *t = wd_call_tensor(call, slot);
    struct lrn_operand o = {
        .data = wd_call_data(call, slot),
        .image = t->dim[0] > 1 ? t->stride[0] : 0,
        .plane = t->dim[1] > 1 ? t->stride[1] : 0,
    };
    return o;
}

struct lrn_vector_args wd_lrn_args(const struct wd_call *call, const struct wd_device *device)
{
    const struct wd_lrn_attr *attr = &call->problem.node->attr.lrn;
    const bool backward = wd_lrn_is_backward(&call->problem);
    const int out = backward ? BACKWARD_DX : FORWARD_Y;
    struct lrn_vector_args a;
    memset(&a, 0, sizeof a);
    a.x = operand_of(call, backward ? BACKWARD_X : FORWARD_X);
    if (backward) a.dy = operand_of(call, BACKWARD_DY);
    a.out = operand_of(call, out);
    a.full.alpha = call->scalars[ALPHA];
    a.full.beta = call->scalars[BETA];
    a.full.k = attr->k;
    a.full.factor = attr->alpha / attr->window;
    a.full.exponent = -attr->beta;
    a.full.share = -2.0 * attr->alpha * attr->beta / attr->window;
    a.single = wd_lrn_rounded(&a.full);
    a.power = wd_lrn_power(attr->beta);
    a.scales = a.full.alpha != 0.0;
    a.blends = a.full.beta != 0.0;
    a.plain = a.scales && !a.blends;
    a.streaming = wd_tensor_extent(wd_call_tensor(call, out)) > device->l2_bytes;
    a.channels = (int32_t)wd_call_tensor(call, out)->dim[1];
    a.window = attr->window;
    a.back = (attr->window - 1) / 2;
    a.ahead = attr->window - 1 - a.back;
    return a;
}

int wd_lrn_pointers(struct lrn_vector_args *a, struct lrn_operand **operand)
{
    operand[0] = &a->x;
    operand[1] = &a->out;
    operand[2] = &a->dy;
    return a->dy.data ? 3 : 2;
}

bool wd_lrn_runs_fit(struct lrn_vector_args *a, int64_t plane, int64_t run, int64_t bytes)
{
    struct lrn_operand *operand[3];
    int count = wd_lrn_pointers(a, operand);
    if (plane % run != 0) return false;
    for (int i = 0; i < count; ++i) {
        if ((uintptr_t)operand[i]->data % (uintptr_t)(run * bytes) != 0 ||
            operand[i]->image % run != 0 || operand[i]->plane % run != 0) {
            return false;
        }
    }
    return true;
}

int64_t wd_lrn_chunk(int64_t channels, int64_t threads, int64_t around, bool backward,
                     int64_t processors)
{
    const int64_t few = (backward ? THREADS_FEW_BACKWARD : THREADS_FEW) * processors;
    const int64_t most = LRN_ITEMS_MAX / threads;
    const int64_t shortest = wd_most((channels + CHUNK / 2) / CHUNK, 1);
    const int64_t longer = wd_most(CHUNK, CHUNK_AROUND * around);
    int64_t chunks = (channels + longer / 2) / longer;
    if (threads * wd_ceil_div(channels, CHUNK) < few) return wd_least(CHUNK_FEW, channels);
    chunks = wd_most(chunks, wd_ceil_div(THREADS_LEAST * processors, threads));
    chunks = wd_least(wd_least(chunks, shortest), most);
    return wd_ceil_div(channels, wd_most(chunks, 1));
}

bool wd_lrn_has_pairs(int64_t plane)
{
    const int64_t pairs = LRN_SPREAD * WARP;
    return wd_ceil_div(plane, pairs) * pairs <= plane + plane / WASTE;
}

int64_t wd_lrn_cut_planes(const struct wd_tensor *x, const struct wd_device *device, int64_t run,
                          bool spreads, struct lrn_vector_args *a)
{
    const bool backward = a->dy.data != NULL;
    const int64_t plane = wd_lrn_plane(x);
    const bool pairs = spreads && run == LRN_SPREAD && wd_lrn_has_pairs(plane);
    const int64_t runs = pairs ? wd_ceil_div(plane, run * WARP) * WARP : wd_ceil_div(plane, run);
    const int64_t threads = x->dim[0] * runs;
    const int64_t around = (int64_t)(a->window - 1) * (backward ? 2 : 1);
    const int64_t chunk =
        wd_lrn_chunk(x->dim[1], threads, around, backward, device->multiprocessors);
    const int64_t chunks = wd_ceil_div(x->dim[1], chunk);
    a->chunk = (int32_t)chunk;
    a->plane = plane;
    a->count = (uint32_t)(threads * chunks);
    a->by_run = wd_fastdiv_of((uint32_t)runs);
    a->by_spread = wd_fastdiv_of((uint32_t)(pairs ? WARP : runs));
    a->by_chunk = wd_fastdiv_of((uint32_t)chunks);
    return threads * chunks;
}
