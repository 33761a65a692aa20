/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax on the CPU, forward and backward, of packed tensors: memory is [outer][length][inner],
 * `length` being the elements of a row. With inner 1 rows lie in one piece: they go through the first
 * cache by blocks, tiny ones side by side, long ones in segments with statistics of their own, which
 * are put together in order; else columns are done in tiles. Sums run in fp32 (fp64 for fp64) over
 * short stretches and in fp64 from there. Results do not depend on the number of threads. */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "ops/engine.h"
#include "ops/pointwise/pointwise_block.h"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    TINY = 48,              /* rows up to here are done side by side */
    SPREAD = 16,            /* elements */
    FARTHEST = 69,          /* exp(-69) is 1e-30 */
    SIDE_BY_SIDE = 16,      /* rows whose sums are taken at once */
    KEPT_BYTES = 128 << 10, /* of exponentials that need not be made again */
    SEGMENT = 1 << 16,      /* elements of a row that have statistics of their own */
    CARRY = 32,             /* terms of a sum in a column before they are carried */
    TILE_BYTES = 128 << 10, /* of input that is done at a time in columns */
    WIDE = 128,             /* columns that are better done at a time for a larger tile, */
    ROW_BYTES = 512 << 10,  /* up to here */
    NEXT_ROW_BYTES = 256 << 10,
    TASK_ELEMENTS = 1 << 14, /* that pay for a second thread */
};

struct stats {
    double max; /* minus infinity: of nothing, or of nothing else */
    double sum; /* of exp(x - max), with max 0 where it is minus infinity; backward: of y * dy */
};

struct args {
    const void *x;  /* backward: y */
    const void *dy; /* null: forward */
    void *out;
    int32_t dtype;
    bool log;
    bool stream;
    double alpha;
    double beta;
    int64_t outer;
    int64_t length;
    int64_t inner;
    int64_t rows;
    int64_t group;    /* rows of a block */
    int64_t segments; /* of a row */
    struct stats *stats;
};

static struct stats no_stats(void)
{
    struct stats none = {-INFINITY, 0.0};
    return none;
}

/* What to shift elements by before exp: where they are all minus infinity, or NaN, anything does. */
static double shift_of(struct stats s)
{
    return s.max == -INFINITY ? 0.0 : s.max;
}

/* Puts the statistics of the next segment to those of the ones before. */
static void add_stats(struct stats *all, struct stats next)
{
    if (next.max > all->max) {
        all->sum = all->sum * exp(all->max - next.max) + next.sum;
        all->max = next.max;
    } else if (next.max == all->max) {
        all->sum += next.sum;
    } else {
        all->sum += next.sum * exp(next.max - all->max);
    }
}

#define WD_LOOPS "ops/softmax/softmax_cpu.inc"
#include "cpu/module/loops.inc"

/* Memory as [outer][length][inner]; false where it is not that. */
static bool find_shape(const struct wd_problem *problem, const struct wd_tensor *x,
                       struct args *shape)
{
    int64_t count = wd_tensor_count(x);
    shape->length = 1;
    shape->inner = 1;
    if (problem->node->attr.softmax.mode == CUDNN_SOFTMAX_MODE_CHANNEL) {
        shape->length = x->dim[1];
        if (x->dim[1] > 1) shape->inner = x->stride[1];
    } else {
        for (int d = 1; d < x->rank; ++d) shape->length *= x->dim[d];
        if (x->dim[0] > 1 && x->stride[0] != shape->length) return false;
    }
    if (count > 0) shape->outer = count / shape->length / shape->inner;
    shape->rows = shape->outer * shape->inner;
    shape->segments = wd_ceil_div(shape->length, SEGMENT);
    return true;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    int slots = wd_op_info(problem->node->op)->slot_count;
    struct args shape = {0};
    char text[100];
    for (int s = 0; s < slots; ++s) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, s);
        WD_NEED(tensor->vect_count == 1 && wd_tensor_is_packed(tensor), reason,
                NOT_SUPPORTED_LAYOUT, "%s is not packed",
                wd_tensor_text(tensor, text, sizeof text));
        WD_NEED(wd_tensor_same_layout(tensor, x), reason, NOT_SUPPORTED_LAYOUT,
                "%s lies unlike the first tensor", wd_tensor_text(tensor, text, sizeof text));
    }
    WD_NEED(find_shape(problem, x, &shape), reason, NOT_SUPPORTED_LAYOUT,
            "instances of %s do not lie in one piece each", wd_tensor_text(x, text, sizeof text));
    return true;
}

/* Whether rows are so few and long that threads share them. */
static bool shares_rows(const struct args *a, const struct wd_device *device)
{
    return a->inner == 1 && a->length > SEGMENT && a->rows < 2 * (int64_t)device->multiprocessors;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct args a = {0};
    find_shape(problem, wd_slot(problem->graph, problem->node, 0), &a);
    if (!shares_rows(&a, problem->device)) return 0;
    return a.rows * a.segments * (int64_t)sizeof(struct stats);
}

struct walks {
    wd_range_fn tiny_rows;
    wd_range_fn short_rows;
    wd_range_fn long_rows;
    wd_range_fn segments;
    wd_range_fn finish_segments;
    wd_range_fn columns;
    int64_t (*column_tiles)(const struct args *a);
};

#define WALKS(end)                                                                                 \
    {                                                                                              \
        tiny_rows_##end, short_rows_##end, long_rows_##end, segments_##end, finish_segments_##end, \
            columns_##end, column_tiles_##end                                                      \
    }

static const struct walks walks_f32_base = WALKS(f32_base);
static const struct walks walks_f64_base = WALKS(f64_base);
#if defined(__x86_64__)
static const struct walks walks_f32_avx2 = WALKS(f32_avx2);
static const struct walks walks_f64_avx2 = WALKS(f64_avx2);
static const struct walks walks_f32_avx512 = WALKS(f32_avx512);
static const struct walks walks_f64_avx512 = WALKS(f64_avx512);
#endif

static cudnnStatus_t run(struct args *a, const struct wd_call *call, struct wd_queue *queue)
{
    const struct walks *walks =
        a->dtype == CUDNN_DATA_DOUBLE ? WD_PICK(&walks_f64) : WD_PICK(&walks_f32);
    int64_t tiles;
    if (a->rows * a->length == 0) return CUDNN_STATUS_SUCCESS;
    a->alpha = call->scalars[ALPHA];
    a->beta = call->scalars[BETA];
    a->log = call->problem.node->attr.softmax.algorithm == CUDNN_SOFTMAX_LOG;
    a->stream = a->beta == 0.0 && a->out != a->x && a->out != a->dy &&
                a->rows * a->length * wd_dtype_bits(a->dtype) / 8 >= WD_STREAM_BYTES;
    if (a->inner > 1) {
        tiles = walks->column_tiles(a);
        return queue->ops->range(queue, walks->columns, a, tiles,
                                 1 + TASK_ELEMENTS / (a->rows * a->length / tiles));
    }
    if (a->length <= WD_BLOCK) {
        a->group = WD_BLOCK / a->length;
        /* whole strips, where the length lets them be */
        while (a->group > 1 && a->length <= TINY && a->group * a->length % WD_STRIP) a->group -= 1;
        if (a->group == 1) a->group = WD_BLOCK / a->length;
        return queue->ops->range(queue, a->length <= TINY ? walks->tiny_rows : walks->short_rows, a,
                                 wd_ceil_div(a->rows, a->group), TASK_ELEMENTS / WD_BLOCK);
    }
    if (!shares_rows(a, call->problem.device)) {
        return queue->ops->range(queue, walks->long_rows, a, a->rows,
                                 1 + TASK_ELEMENTS / a->length);
    }
    a->stats = call->workspace;
    WD_TRY(queue->ops->range(queue, walks->segments, a, a->rows * a->segments, 1));
    return queue->ops->range(queue, walks->finish_segments, a, a->rows * a->segments, 1);
}

static cudnnStatus_t forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct args a = {
        .x = wd_call_data(call, FORWARD_X),
        .out = wd_call_data(call, FORWARD_Y),
        .dtype = wd_call_tensor(call, FORWARD_X)->dtype,
    };
    find_shape(&call->problem, wd_call_tensor(call, FORWARD_X), &a);
    return run(&a, call, queue);
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct args a = {
        .x = wd_call_data(call, BACKWARD_Y),
        .dy = wd_call_data(call, BACKWARD_DY),
        .out = wd_call_data(call, BACKWARD_DX),
        .dtype = wd_call_tensor(call, BACKWARD_Y)->dtype,
    };
    find_shape(&call->problem, wd_call_tensor(call, BACKWARD_Y), &a);
    return run(&a, call, queue);
}

const struct wd_engine wd_engine_softmax_forward_cpu = {
    .name = "softmax_forward_cpu",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = forward,
};

const struct wd_engine wd_engine_softmax_backward_cpu = {
    .name = "softmax_backward_cpu",
    .op = WD_OP_SOFTMAX_BACKWARD,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = backward,
};
