/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions on the CPU: packed tensors of floating point whose reduced dims lie, in memory, as
 * [lead][outer][reduced][inner] with lead or inner 1, lead and reduced being summed over. What one
 * output place sees is taken as rows of columns, each column with an accumulator of its own; where
 * `inner` is small several of its elements are joined into one row. Rows are cut into segments by
 * the shape alone, and what these come to is put together in order: results do not depend on the
 * number of threads. The results are the definition's but for the order of sums, and these and
 * products are kept in double. */
#include <math.h>
#include <string.h>

#include "cpu/module/rows.h"
#include "cpu/module/sizes.h"
#include "cpu/module/vmath.h"
#include "graph/reduce_shape.h"
#include "ops/engine.h"

enum { X, Y, INDICES };
enum { ALPHA, BETA };

enum {
    COLUMNS = 512,         /* of an item: with their accumulators they stay in the first cache */
    JOINED = 64,           /* columns wanted of a row */
    LANES = 32,            /* columns that are done at once */
    GROUP = 8,             /* rows that are done at once */
    CHUNK = 4096,          /* elements that are converted at once */
    PART = 16,             /* elements of one row that are done at once */
    SHORT = 512,           /* rows up to here are done by themselves */
    ITEMS = 256,           /* that segments are cut for */
    SEGMENT_MIN = 1 << 15, /* elements that pay for one */
    PIECE_MIN = 1 << 14,   /* elements that pay for a thread */
};

struct shape {
    int64_t lead;
    int64_t outer;
    int64_t reduced;
    int64_t inner;
    int64_t outputs;
    int64_t terms;
    int64_t joined;   /* elements of the reduced dims in a row */
    int64_t width;    /* columns of a row */
    int64_t blocks;   /* of columns */
    int64_t rows;     /* of one place, and of that what lies in one piece */
    int64_t segments; /* of the rows of all pieces */
    int64_t gather;   /* short rows of an item; 0: rows are not short */
    bool counts;      /* memory goes through the reduced dims in their own order */
    int kept_rank;
    int kept[WD_MAX_RANK]; /* dims of the outputs, from the outermost in memory */
};

/* What has been seen of an output: as the definition's. */
struct state {
    double value;
    int64_t index; /* -1: nothing */
};

struct args {
    struct shape s;
    const void *x;
    int dtype;
    int op;
    bool propagate;
    bool follows; /* y's elements lie in the order of the outputs */
    struct wd_view y;
    void *indices;
    int index_type;
    double alpha;
    double beta;
    struct state *partial; /* [segment][output] */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool picks(int op)
{
    return wd_reduce_has_index(op) != 0;
}

static bool is_product(int op)
{
    return op == CUDNN_REDUCE_TENSOR_MUL || op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
}

static int64_t segment_begin(const struct shape *s, int64_t segment)
{
    return s->lead * s->rows * segment / s->segments;
}

/* Coordinates of an output. */
static void place(const struct args *a, int64_t output, int64_t *at)
{
    for (int d = 0; d < a->y.rank; ++d) at[d] = 0;
    for (int i = a->s.kept_rank - 1; i >= 0; --i) {
        int64_t extent = a->y.dim[a->s.kept[i]];
        at[a->s.kept[i]] = output % extent;
        output /= extent;
    }
}

static void put_indices(const struct args *a, int64_t first, int64_t n, const struct state *from)
{
    for (int64_t i = 0; i < n; ++i) {
        int64_t at[WD_MAX_RANK];
        int64_t item = 0;
        place(a, first + i, at);
        for (int d = 0; d < a->y.rank; ++d) item = item * a->y.dim[d] + at[d];
        switch (a->index_type) {
        case CUDNN_64BIT_INDICES: ((uint64_t *)a->indices)[item] = (uint64_t)from[i].index; break;
        case CUDNN_16BIT_INDICES: ((uint16_t *)a->indices)[item] = (uint16_t)from[i].index; break;
        case CUDNN_8BIT_INDICES: ((uint8_t *)a->indices)[item] = (uint8_t)from[i].index; break;
        default: ((uint32_t *)a->indices)[item] = (uint32_t)from[i].index; break;
        }
    }
}

/* Takes up what others have seen of the same output, for operators that pick an element. */
WD_LANE void take_pick(int op, bool propagate, struct state *s, const struct state *other)
{
    bool s_nan = isnan(s->value);
    bool other_nan = isnan(other->value);
    bool wins = op == CUDNN_REDUCE_TENSOR_MIN ? other->value < s->value : other->value > s->value;
    if (other->index < 0) return;
    if (s->index < 0) wins = true;
    else if (s_nan && other_nan) wins = other->index < s->index;
    else if (s_nan) wins = !propagate;
    else if (other_nan) wins = propagate;
    else if (other->value == s->value) wins = other->index < s->index;
    if (wins) *s = *other;
}

static void take(const struct args *a, struct state *s, const struct state *other)
{
    if (picks(a->op)) take_pick(a->op, a->propagate, s, other);
    else if (is_product(a->op)) s->value *= other->value;
    else s->value += other->value;
}

#define WD_LOOPS "ops/reduce/reduce_walk.inc"
#include "cpu/module/loops.inc"

/* Whether memory is as described above. */
static bool find_shape(const struct wd_tensor *x, const struct wd_tensor *y, struct shape *s)
{
    int order[WD_MAX_RANK];
    int64_t group[4] = {1, 1, 1, 1}; /* lead, outer, reduced, inner */
    int count = 0;
    int last = -1; /* group */
    int reduced_before = -1;
    memset(s, 0, sizeof *s);
    s->counts = true;
    for (int d = 0; d < x->rank; ++d) {
        int at = count;
        if (x->dim[d] == 1) continue;
        for (; at > 0 && x->stride[order[at - 1]] < x->stride[d]; --at) order[at] = order[at - 1];
        order[at] = d;
        count += 1;
    }
    for (int i = 0; i < count; ++i) {
        int d = order[i];
        bool kept = y->dim[d] != 1;
        if (last < 0) last = kept ? 1 : 0;
        else if (kept != (last % 2 == 1)) last += 1;
        if (last > 3) return false;
        group[last] *= x->dim[d];
        if (kept) {
            s->kept[s->kept_rank++] = d;
        } else {
            s->counts &= d > reduced_before;
            reduced_before = d;
        }
    }
    if (last <= 1 && group[0] > 1) { /* nothing is reduced further in */
        group[2] = group[0];
        group[3] = group[1];
        group[0] = group[1] = 1;
    }
    s->lead = group[0];
    s->outer = group[1];
    s->reduced = group[2];
    s->inner = group[3];
    s->outputs = s->outer * s->inner;
    s->terms = s->lead * s->reduced;
    return s->lead == 1 || s->inner == 1;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* How the work is cut, by the shape alone. */
static void cut(struct shape *s)
{
    int64_t lines = LANES / common_divisor(s->inner, LANES);
    int64_t items;
    int64_t work;
    s->joined = 1;
    s->segments = 1;
    if (s->lead == 1 && s->inner == 1 && s->reduced <= SHORT) {
        s->gather = wd_least(CHUNK / s->reduced, COLUMNS);
        return;
    }
    if (s->inner < JOINED) {
        s->joined = lines * wd_most(JOINED / (lines * s->inner), 1);
        if (s->joined * s->inner > COLUMNS) s->joined = COLUMNS / s->inner;
        s->joined = smaller(s->joined, s->reduced);
    }
    s->width = s->joined * s->inner;
    s->blocks = wd_ceil_div(s->width, COLUMNS);
    s->rows = wd_ceil_div(s->reduced, s->joined);
    items = s->outer * s->blocks;
    work = s->terms * wd_ceil_div(s->inner, s->blocks);
    s->segments = smaller(wd_ceil_div(ITEMS, items), work / SEGMENT_MIN);
    s->segments = wd_clamp(s->segments, 1, s->lead * s->rows);
}

static bool wide(const struct wd_problem *problem)
{
    return problem->node->attr.reduce.compute == CUDNN_DATA_DOUBLE ||
           wd_problem_acc(problem) == WD_ACC_F64;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, X);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, Y);
    struct shape s;
    char text[96];
    WD_NEED(x->dtype == CUDNN_DATA_FLOAT || x->dtype == CUDNN_DATA_DOUBLE ||
                x->dtype == CUDNN_DATA_HALF || x->dtype == CUDNN_DATA_BFLOAT16,
            reason, NOT_SUPPORTED_DATA_TYPE, "x is %s", wd_dtype_name(x->dtype));
    WD_NEED(wd_tensor_count(x) > 0, reason, NOT_SUPPORTED_SHAPE, "x is empty");
    WD_NEED(x->vect_count == 1 && wd_tensor_is_packed(x), reason, NOT_SUPPORTED_LAYOUT,
            "x is not packed: %s", wd_tensor_text(x, text, sizeof text));
    WD_NEED(find_shape(x, y, &s), reason, NOT_SUPPORTED_LAYOUT,
            "dims that are reduced and dims that are not alternate too often in x, %s",
            wd_tensor_text(x, text, sizeof text));
    WD_NEED(s.counts || !wd_slot(problem->graph, problem->node, INDICES), reason,
            NOT_SUPPORTED_LAYOUT, "indices count otherwise than x lies, %s",
            wd_tensor_text(x, text, sizeof text));
    cut(&s);
    WD_NEED(s.lead * s.rows < INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld rows are too many to be counted", (long long)(s.lead * s.rows));
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct shape s;
    find_shape(wd_slot(problem->graph, problem->node, X), wd_slot(problem->graph, problem->node, Y),
               &s);
    cut(&s);
    if (s.segments == 1) return 0;
    return s.segments * s.outputs * (int64_t)sizeof(struct state);
}

struct walks {
    wd_range_fn short_items;
    wd_range_fn items;
    wd_range_fn finish;
};

#define WALKS(end)                                                                                 \
    {                                                                                              \
        short_items_##end, items_##end, finish_##end                                               \
    }

static const struct walks walks_f32_base = WALKS(f32_base);
static const struct walks walks_f64_base = WALKS(f64_base);
#if defined(__x86_64__)
static const struct walks walks_f32_avx2 = WALKS(f32_avx2);
static const struct walks walks_f64_avx2 = WALKS(f64_avx2);
static const struct walks walks_f32_avx512 = WALKS(f32_avx512);
static const struct walks walks_f64_avx512 = WALKS(f64_avx512);
#endif

/* Whether y's elements lie in the order of the outputs. */
static bool follows(const struct shape *s, const struct wd_view *y)
{
    int64_t expected = 1;
    if (y->vect_count != 1) return false;
    for (int i = s->kept_rank - 1; i >= 0; --i) {
        if (y->stride[s->kept[i]] != expected) return false;
        expected *= y->dim[s->kept[i]];
    }
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_reduce_attr *attr = &call->problem.node->attr.reduce;
    const struct walks *walks = wide(&call->problem) ? WD_PICK(&walks_f64) : WD_PICK(&walks_f32);
    const struct shape *s;
    int64_t items;
    struct args a = {
        .x = wd_call_data(call, X),
        .dtype = wd_call_tensor(call, X)->dtype,
        .op = attr->op,
        .propagate = attr->propagate_nan != 0,
        .y = wd_call_view(call, Y),
        .indices = wd_call_data(call, INDICES),
        .index_type = attr->index_type,
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .partial = call->workspace,
    };
    uintptr_t bytes = (uintptr_t)wd_index_bytes(attr->index_type);
    WD_REQUIRE(!a.indices || (uintptr_t)a.indices % bytes == 0,
               CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
               "indices %p are not aligned to their elements of %d bytes", a.indices, (int)bytes);
    find_shape(wd_call_tensor(call, X), wd_call_tensor(call, Y), &a.s);
    cut(&a.s);
    s = &a.s;
    a.follows = follows(s, &a.y);
    if (s->gather > 0) {
        return queue->ops->range(queue, walks->short_items, &a, wd_ceil_div(s->outer, s->gather),
                                 PIECE_MIN / (s->gather * s->reduced) + 1);
    }
    items = s->outer * s->blocks * s->segments;
    WD_TRY(queue->ops->range(queue, walks->items, &a, items,
                             PIECE_MIN / (s->outputs * s->terms / items + 1) + 1));
    if (s->segments == 1) return CUDNN_STATUS_SUCCESS;
    return queue->ops->range(queue, walks->finish, &a, s->outputs,
                             PIECE_MIN / (s->segments * 8) + 1);
}

const struct wd_engine wd_engine_reduce_cpu = {
    .name = "reduce_cpu",
    .op = WD_OP_REDUCE,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
