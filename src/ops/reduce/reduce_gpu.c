/* SPDX-License-Identifier: Apache-2.0
 *
 * See reduce_gpu.h. No state. */
#include "ops/reduce/reduce_gpu.h"

#include <string.h>

#include "base/sizes.h"
#include "graph/reduce_shape.h"

enum { ALPHA, BETA };

enum {
    WARP = 32,
    CLUSTER_MAX = 8,
    CLUSTER_CAPABILITY = 90,
    CLUSTER_BYTES = 2 << 20, /* of x: below, a second launch takes longer than it saves */
    BLOCKS_A_PROCESSOR = 4,  /* of 256 threads: what it has at once; */
    WAVES_MOST = 3,          /* of blocks that are all there at once, */
    WORTH_A_WAVE = 25,       /* percent of places that another one fills more; */
    BLOCK_BYTES = 128 << 10, /* of x, that pay for a block more than a processor has at once */
    ELEMENTS_MAX_LOG2 = 35,  /* of x: keeps the count of blocks below 2^31 */
};

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return REDUCE_F32;
    case CUDNN_DATA_DOUBLE: return REDUCE_F64;
    case CUDNN_DATA_HALF: return REDUCE_F16;
    case CUDNN_DATA_BFLOAT16: return REDUCE_BF16;
    default: return -1;
    }
}

static enum wd_reduce_class class_of(int op)
{
    if (wd_reduce_has_index(op)) return WD_REDUCE_PICK;
    if (op == CUDNN_REDUCE_TENSOR_MUL || op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS) {
        return WD_REDUCE_PRODUCT;
    }
    return WD_REDUCE_SUM;
}

/* False where dims that are reduced and dims that are not alternate too often. `*counts`: memory goes
 * through the reduced dims in their own order. */
static bool see(struct wd_reduce_space *s, const struct wd_tensor *x, const struct wd_tensor *y,
                bool *counts)
{
    enum { GROUPS = 5 }; /* k0 r0 k1 r1 k2, filled from the end */
    int64_t group[GROUPS] = {1, 1, 1, 1, 1};
    int order[WD_MAX_RANK];
    int count = wd_tensor_order(x, order);
    int at = GROUPS - 1;
    int reduced_behind = WD_MAX_RANK;
    memset(s, 0, sizeof *s);
    *counts = true;
    for (int i = count - 1; i >= 0; --i) {
        int d = order[i];
        bool kept = y->dim[d] != 1;
        if (kept != (at % 2 == 0)) at -= 1;
        if (at < 0) return false;
        group[at] *= x->dim[d];
        if (!kept) {
            *counts &= d < reduced_behind;
            reduced_behind = d;
        }
    }
    s->k0 = group[0];
    s->r0 = group[1];
    s->k1 = group[2];
    s->r1 = group[3];
    s->k2 = group[4];
    s->outputs = s->k0 * s->k1 * s->k2;
    s->terms = s->r0 * s->r1;
    s->total = s->outputs * s->terms;
    s->type = type_index(x->dtype);
    s->bytes = wd_dtype_bytes(x->dtype);
    s->elements = REDUCE_BYTES / s->bytes;
    return true;
}

static void see_node(struct wd_reduce_space *s, const struct wd_problem *problem)
{
    const struct wd_reduce_attr *attr = &problem->node->attr.reduce;
    s->class = class_of(attr->op);
    s->state = s->class == WD_REDUCE_PICK && s->type == REDUCE_F64 ? 16 : 8;
    s->indices = wd_slot(problem->graph, problem->node, WD_REDUCE_INDICES) != NULL;
}

bool wd_reduce_gpu_match(struct wd_reduce_space *s, const struct wd_problem *problem,
                         struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, WD_REDUCE_X);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, WD_REDUCE_Y);
    char text[96];
    bool counts;
    WD_NEED(type_index(x->dtype) >= 0 && type_index(y->dtype) >= 0, reason, NOT_SUPPORTED_DATA_TYPE,
            "x is %s and y %s, needed are fp64, fp32, fp16 or bf16", wd_dtype_name(x->dtype),
            wd_dtype_name(y->dtype));
    WD_NEED((x->dtype == CUDNN_DATA_DOUBLE) == (y->dtype == CUDNN_DATA_DOUBLE), reason,
            NOT_SUPPORTED_DATA_TYPE, "x is %s and y %s, fp64 goes with fp64",
            wd_dtype_name(x->dtype), wd_dtype_name(y->dtype));
    WD_NEED(
        x->dtype == CUDNN_DATA_DOUBLE || problem->node->attr.reduce.compute != CUDNN_DATA_DOUBLE,
        reason, NOT_SUPPORTED_DATA_TYPE, "%s is to be computed in fp64", wd_dtype_name(x->dtype));
    WD_NEED(x->vect_count == 1 && y->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
            "a tensor is vectorised");
    WD_NEED(wd_tensor_count(x) > 0, reason, NOT_SUPPORTED_SHAPE, "x is empty");
    WD_NEED(wd_tensor_is_packed(x), reason, NOT_SUPPORTED_LAYOUT, "x has gaps: %s",
            wd_tensor_text(x, text, sizeof text));
    WD_NEED(see(s, x, y, &counts), reason, NOT_SUPPORTED_LAYOUT,
            "dims that are reduced and dims that are not alternate too often in x, %s",
            wd_tensor_text(x, text, sizeof text));
    see_node(s, problem);
    s->permuted = !counts && s->indices;
    WD_NEED(s->total >> ELEMENTS_MAX_LOG2 == 0, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements are more than 2^%d", (long long)s->total, ELEMENTS_MAX_LOG2);
    WD_NEED(s->outputs <= INT32_MAX / 2, reason, NOT_SUPPORTED_SHAPE,
            "%lld outputs are more than 2^30", (long long)s->outputs);
    WD_NEED(s->terms < INT32_MAX || !s->indices, reason, NOT_SUPPORTED_SHAPE,
            "%lld terms are more than indices are computed of", (long long)s->terms);
    return true;
}

struct wd_reduce_space wd_reduce_gpu_see(const struct wd_problem *problem)
{
    struct wd_reduce_space s;
    bool counts;
    (void)see(&s, wd_slot(problem->graph, problem->node, WD_REDUCE_X),
              wd_slot(problem->graph, problem->node, WD_REDUCE_Y), &counts);
    see_node(&s, problem);
    s.permuted = !counts && s.indices;
    return s;
}

/* ---- Cuts ---- */

int64_t wd_reduce_gpu_fill(int64_t tiles, int64_t wave)
{
    int64_t best = 1, most = 0;
    for (int64_t waves = 1; waves <= WAVES_MOST; ++waves) {
        int64_t segments = wd_most(waves * wave / tiles, 1);
        int64_t blocks = tiles * segments;
        int64_t percent = 100 * blocks / (wd_ceil_div(blocks, wave) * wave);
        if (percent < most + WORTH_A_WAVE) continue;
        best = segments;
        most = percent;
    }
    return best;
}

struct wd_reduce_cut wd_reduce_gpu_cut(const struct wd_reduce_space *s,
                                       const struct wd_device *device, int64_t tiles, int64_t worth,
                                       int64_t blocks, bool fills)
{
    struct wd_reduce_cut cut = {1, 1};
    bool much = s->total * s->bytes > CLUSTER_BYTES;
    int64_t all = (int64_t)device->multiprocessors * (much ? blocks : (int64_t)BLOCKS_A_PROCESSOR);
    int64_t wanted;
    bool clusters = device->cooperative && device->capability >= CLUSTER_CAPABILITY;
    if (much) {
        int64_t one = (int64_t)device->multiprocessors * BLOCKS_A_PROCESSOR;
        all = wd_clamp(s->total * s->bytes / BLOCK_BYTES, one, all);
    }
    wanted = all / tiles;
    if (much && fills && all == (int64_t)device->multiprocessors * blocks) {
        wanted = wd_reduce_gpu_fill(tiles, all);
    }
    /* several waves balance themselves: cut only what is less than one */
    if (much && tiles >= (int64_t)device->multiprocessors * BLOCKS_A_PROCESSOR) return cut;
    cut.segments = wd_most(1, wd_least(wanted, worth));
    /* of much, whole clusters of large blocks wait for room: it was 1.6 of the floor */
    if (!clusters || much || cut.segments == 1) return cut;
    while (cut.cluster * 2 <= wd_least(cut.segments, CLUSTER_MAX)) cut.cluster *= 2;
    cut.segments = cut.cluster;
    return cut;
}

int64_t wd_reduce_gpu_workspace(const struct wd_reduce_space *s, const struct wd_reduce_cut *cut)
{
    return cut->segments > cut->cluster ? cut->segments * s->outputs * s->state : 0;
}

void wd_reduce_gpu_set_cut(struct reduce_vector_args *a, const struct wd_reduce_cut *cut,
                           int64_t units)
{
    const int64_t each = wd_ceil_div(units, cut->segments);
    a->units = (uint32_t)units;
    a->cluster = (uint32_t)cut->cluster;
    a->per_segment = (uint32_t)each;
    a->segments = (uint32_t)(cut->cluster > 1 ? cut->segments : wd_ceil_div(units, each));
}

void wd_reduce_gpu_set_lanes(struct reduce_vector_args *a, int64_t lanes)
{
    a->lanes = (uint32_t)lanes;
    a->lane_bits = 0;
    while (lanes >> a->lane_bits > 1) a->lane_bits += 1;
}

uint32_t wd_reduce_gpu_shared(const struct wd_reduce_space *s, int64_t threads, int64_t across,
                              int64_t elements)
{
    int64_t slices = across < WARP ? threads / WARP : threads / across;
    return (uint32_t)((slices * (across + 1) + across) * elements * s->state);
}

/* ---- Arguments ---- */

/* Where outputs lie in y and in the indices: the first counts as memory of x does, the second as dims
 * do. */
static void place_outputs(struct reduce_vector_args *a, const struct wd_tensor *x,
                          const struct wd_tensor *y)
{
    int order[WD_MAX_RANK];
    int64_t by_dim[WD_MAX_RANK];
    int64_t expected = 1;
    int count = wd_tensor_order(x, order);
    for (int d = y->rank - 1; d >= 0; --d) {
        by_dim[d] = expected;
        expected *= y->dim[d];
    }
    for (int i = 0; i < count; ++i) {
        int d = order[i];
        if (y->dim[d] == 1) continue;
        a->kept_dim[a->kept] = (uint32_t)y->dim[d];
        a->y_stride[a->kept] = y->stride[d];
        a->index_stride[a->kept] = by_dim[d];
        a->kept += 1;
    }
    expected = 1;
    for (int k = a->kept - 1; k >= 0; --k) {
        a->y_strays |= a->y_stride[k] != expected;
        a->index_strays |= a->index_stride[k] != expected;
        expected *= a->kept_dim[k];
    }
}

/* How indices count terms that memory has in another order. */
static void count_terms(struct reduce_vector_args *a, const struct wd_tensor *x,
                        const struct wd_tensor *y)
{
    int order[WD_MAX_RANK];
    uint32_t by_dim[WD_MAX_RANK] = {0};
    uint32_t expected = 1;
    int count = wd_tensor_order(x, order);
    for (int d = y->rank - 1; d >= 0; --d) {
        if (y->dim[d] != 1) continue;
        by_dim[d] = expected;
        expected *= (uint32_t)x->dim[d];
    }
    for (int i = 0; i < count; ++i) {
        int d = order[i];
        if (y->dim[d] != 1) continue;
        a->counted_dim[a->counted] = wd_fastdiv_of((uint32_t)x->dim[d]);
        a->counted_step[a->counted] = by_dim[d];
        a->counted += 1;
    }
}

cudnnStatus_t wd_reduce_gpu_args(const struct wd_call *call, const struct wd_reduce_space *s,
                                 struct reduce_vector_args *a)
{
    const struct wd_reduce_attr *attr = &call->problem.node->attr.reduce;
    const struct wd_tensor *y = wd_call_tensor(call, WD_REDUCE_Y);
    int64_t y_run = wd_most(s->elements * wd_dtype_bits(y->dtype) / 8, 1);
    memset(a, 0, sizeof *a);
    a->x = wd_call_data(call, WD_REDUCE_X);
    a->y = wd_call_data(call, WD_REDUCE_Y);
    a->indices = s->indices ? wd_call_data(call, WD_REDUCE_INDICES) : NULL;
    a->partial = call->workspace;
    a->bfloat = s->type == REDUCE_BF16;
    a->index_bytes = wd_index_bytes(attr->index_type);
    WD_REQUIRE((uintptr_t)a->indices % (uintptr_t)a->index_bytes == 0,
               CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
               "indices %p are not aligned to their elements of %d bytes", a->indices,
               a->index_bytes);
    a->alpha = call->scalars[ALPHA];
    a->beta = call->scalars[BETA];
    a->terms = (double)s->terms;
    a->total = s->total;
    a->slice = s->r0 * s->k1 * s->r1 * s->k2;
    a->piece = s->k1 * s->r1 * s->k2;
    a->line = s->r1 * s->k2;
    a->outputs = (uint32_t)s->outputs;
    a->cluster = a->segments = 1;
    a->shift = (int32_t)((int64_t)((uintptr_t)a->x % REDUCE_BYTES) / s->bytes);
    a->by_k1 = wd_fastdiv_of((uint32_t)s->k1);
    a->keep = UINT32_MAX;
    if (attr->op == CUDNN_REDUCE_TENSOR_AMAX || attr->op == CUDNN_REDUCE_TENSOR_NORM1) {
        a->keep = INT32_MAX;
    }
    if (attr->op == CUDNN_REDUCE_TENSOR_MIN) a->flip = UINT32_C(1) << 31;
    a->squares = attr->op == CUDNN_REDUCE_TENSOR_NORM2;
    a->skips_zeros = attr->op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
    a->propagate = attr->propagate_nan != 0;
    a->end = attr->op == CUDNN_REDUCE_TENSOR_AVG     ? REDUCE_MEAN
             : attr->op == CUDNN_REDUCE_TENSOR_NORM2 ? REDUCE_ROOT
                                                     : REDUCE_PLAIN;
    a->y_type = type_index(y->dtype);
    place_outputs(a, wd_call_tensor(call, WD_REDUCE_X), y);
    if (s->permuted) count_terms(a, wd_call_tensor(call, WD_REDUCE_X), y);
    a->y_runs = !a->y_strays && a->beta == 0.0 &&
                (uintptr_t)a->y % (uintptr_t)wd_least(y_run, REDUCE_BYTES) == 0;
    a->index_runs =
        a->indices && !a->index_strays && a->index_bytes == 4 && (uintptr_t)a->indices % 8 == 0;
    return CUDNN_STATUS_SUCCESS;
}
