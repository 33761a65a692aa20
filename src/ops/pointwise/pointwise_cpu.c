/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the CPU: chunks of the output, in the order of its memory, go through blocks in the
 * first cache. An operand that lies as the output does is read in place; one that repeats with a
 * short period, as a bias of channels that are innermost, is spread once a task; others are gathered
 * by rows. Takes all types of whole bytes, any strides, all modes but GEN_INDEX. Results do not
 * depend on the number of threads. */
#include <string.h>

#include "base/sizes.h"
#include "cpu/module/rows.h"
#include "cpu/module/stream.h"
#include "graph/pointwise_modes.h"
#include "ops/engine.h"
#include "ops/joined.h"
#include "ops/pointwise/pointwise_block.h"

enum { X, B, T, Y, OPERANDS };
enum { ALPHA1, ALPHA2, ALPHA, BETA };

/* Chunks that pay for a second thread, which takes some microseconds to start. */
enum { CHUNKS_A_TASK = 8 };

/* How an operand gets into a block. */
enum way {
    ABSENT,
    FLAT,     /* it lies as the index counts */
    REPEATED, /* one chunk of it serves all */
    ROWS,     /* row by row of the innermost dimension */
};

struct operand {
    void *data;
    double value; /* where data is null */
    int32_t dtype;
    enum way way;
    bool flat;
    int64_t stride[WD_MAX_RANK];
};

struct args {
    struct wd_pointwise_attr attr;
    double factor[OPERANDS]; /* alpha1, alpha2, 1, beta */
    double alpha;
    struct operand operand[OPERANDS];
    int rank;
    int64_t dim[WD_MAX_RANK]; /* by falling stride of y */
    int64_t count;
    int64_t chunk; /* elements, at most WD_BLOCK */
    bool stream;   /* past the caches */
};

/* Where row `at` of the innermost dimension begins. */
static int64_t row_offset(const struct args *a, const struct operand *o, const int64_t *at)
{
    int64_t offset = 0;
    for (int d = 0; d < a->rank; ++d) offset += at[d] * o->stride[d];
    return offset;
}

/* To the beginning of the next row. */
static void next_row(const struct args *a, int64_t *at)
{
    at[a->rank - 1] = 0;
    for (int d = a->rank - 2; d >= 0; --d) {
        if (++at[d] < a->dim[d]) return;
        at[d] = 0;
    }
}

#define WD_REALS_BODY "ops/pointwise/pointwise_cpu.inc"
#include "ops/reals.inc"

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    static const char *const names[] = {"x", "b", "t", "y"};
    WD_NEED(problem->node->attr.pointwise.mode != CUDNN_POINTWISE_GEN_INDEX, reason, NOT_SUPPORTED,
            "GEN_INDEX reads no operand");
    for (int s = 0; s < OPERANDS; ++s) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, s);
        if (!tensor || (tensor->flags & WD_BY_VALUE)) continue;
        WD_NEED(wd_row_takes(tensor->dtype), reason, NOT_SUPPORTED_DATA_TYPE,
                "elements of %s are %s, not whole bytes", names[s], wd_dtype_name(tensor->dtype));
        WD_NEED(tensor->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
                "%s is vectorised, %d lanes a unit", names[s], tensor->vect_count);
    }
    return true;
}

static struct wd_view take_operand(struct operand *o, const struct wd_call *call, int slot)
{
    struct wd_view view = wd_call_view(call, slot);
    o->data = view.data;
    o->value = view.value;
    o->dtype = view.dtype;
    o->way = wd_call_tensor(call, slot) ? ROWS : ABSENT;
    return view;
}

/* Puts the dimensions in the order of y's memory and makes one of neighbours that all operands walk
 * as one. */
static void join_dims(struct args *a, const struct wd_view *view)
{
    const struct wd_view *views[OPERANDS] = {&view[X], &view[B], &view[T], &view[Y]};
    struct wd_joined walk;
    wd_join(&walk, views, OPERANDS, Y);
    a->rank = walk.rank;
    a->count = walk.count;
    memcpy(a->dim, walk.dim, sizeof a->dim);
    for (int s = 0; s < OPERANDS; ++s) {
        memcpy(a->operand[s].stride, walk.stride[s], sizeof walk.stride[s]);
        a->operand[s].flat = view[s].data && wd_joined_is_flat(&walk, s);
    }
}

/* How many elements there are before the operand comes again. */
static int64_t period(const struct args *a, const struct operand *o)
{
    int64_t elements = a->count;
    for (int d = 0; d < a->rank && o->stride[d] == 0; ++d) elements /= a->dim[d];
    return elements;
}

static void choose_ways(struct args *a)
{
    int64_t longest = 1;
    int64_t step;
    for (int s = 0; s < OPERANDS; ++s) {
        struct operand *o = &a->operand[s];
        int64_t own = period(a, o);
        if (o->way == ABSENT) continue;
        if (o->flat) {
            o->way = FLAT;
        } else if (s != Y && own <= WD_BLOCK) {
            o->way = REPEATED;
            if (own > longest) longest = own;
        }
    }
    /* periods divide one another; and chunks are whole strips where they can be */
    for (step = longest; step % WD_STRIP != 0;) step *= 2;
    if (step > WD_BLOCK) step = longest;
    a->chunk = WD_BLOCK / step * step;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct args args = {
        .attr = call->problem.node->attr.pointwise,
        .factor = {call->scalars[ALPHA1], call->scalars[ALPHA2], 1.0, call->scalars[BETA]},
        .alpha = call->scalars[ALPHA],
    };
    const struct wd_tensor *y = wd_call_tensor(call, Y);
    struct wd_view view[OPERANDS];
    bool wide = wd_problem_acc(&call->problem) == WD_ACC_F64;
    if (wd_tensor_count(y) == 0) return CUDNN_STATUS_SUCCESS;
    for (int s = 0; s < OPERANDS; ++s) view[s] = take_operand(&args.operand[s], call, s);
    join_dims(&args, view);
    choose_ways(&args);
    args.stream = args.operand[Y].way == FLAT && args.factor[Y] == 0.0 &&
                  wd_tensor_extent(y) >= WD_STREAM_BYTES;
    for (int s = 0; s < Y; ++s) {
        if (args.operand[s].data == args.operand[Y].data) args.stream = false; /* in place */
    }
    return queue->ops->range(queue, wide ? run_f64 : run_f32, &args,
                             wd_ceil_div(args.count, args.chunk), CHUNKS_A_TASK);
}

const struct wd_engine wd_engine_pointwise_cpu = {
    .name = "pointwise_cpu",
    .op = WD_OP_POINTWISE,
    .device = WD_CPU,
    .match = match,
    .emit = emit,
};
