/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization on the GPU at the speed of memory: training, inference and backward for packed
 * tensors of any size. bn_vector_args.h says how x is walked; the cuts depend on its shape alone. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/bn_gpu.h"

#define WD_KERNELS_MODULE bn_vector
#define WD_KERNELS_ROWS "ops/norm/bn_vector_kernels.def"
#include "ops/kernels_host.inc"

extern const struct wd_engine wd_engine_bn_training_def_gpu;
extern const struct wd_engine wd_engine_bn_backward_def_gpu;

enum {
    TYPES = 4,
    FINISH_LANES_MIN = 8,   /* threads that join a parameter's sums ... */
    FINISH_ITEMS = 4,       /* ... and of those sums what one of them has */
    RANGE = 1 << 16,        /* columns that are worked on at once, where there are more */
    PARAMS_MAX = 1 << 17,   /* bounds the scratch: 4 MiB of numbers */
    WIDTH_MOST = 1 << 30,   /* columns at once, of inference, which has none */
    PARTIALS_MAX = 1 << 17, /* likewise: 3 MiB of sums */
    SEGMENT_ROWS = 8,       /* rows (or runs) of a thread that pay for a segment */
    WALK_ROWS_MIN = 8,      /* rows of a thread that writes: they share its parameters */
    WALK_ROWS_MAX = 64,
    WALK_BLOCKS = 6, /* of a processor, wanted of it: three waves of two */
    /* blocks that a processor has at once of those that sum: their registers say so (the tables).
     * One wave of equal blocks, since what follows a segment's sums takes its time. */
    PLANE_BLOCKS = 5,
    PLANE_BLOCKS_WIDE = 4, /* fp64 */
    COLUMN_BLOCKS = 3,
    COLUMN_BLOCKS_WIDE = 2,
};

/* The kernels of a step, by planes and by columns, each a row for fp32, fp16, bf16, fp64; and of what
 * follows from its sums, for fp32 and fp64. */
struct step {
    int planes;
    int columns;
    int finish;
};
static const struct step stats = {KERNEL_bn_stats_planes_f32, KERNEL_bn_stats_columns_f32,
                                  KERNEL_bn_stats_finish_f32};
static const struct step apply = {KERNEL_bn_apply_planes_f32, KERNEL_bn_apply_columns_f32, 0};
/* planes where the last thread of a block has the next block's first run too; not of fp64 */
static const struct step apply_led = {KERNEL_bn_apply_planes_led_f32, 0, 0};
static const struct step sums = {KERNEL_bn_sums_planes_f32, KERNEL_bn_sums_columns_f32,
                                 KERNEL_bn_sums_finish_f32};
static const struct step grad = {KERNEL_bn_grad_planes_f32, KERNEL_bn_grad_columns_f32, 0};

/* How x is cut. */
struct shape {
    struct wd_bn_gpu_space space;
    bool columns;
    bool wide;     /* fp64 */
    bool sums;     /* not inference, which keeps nothing between kernels */
    int64_t width; /* of a range of columns; by planes the parameters */
    int64_t pitch; /* of all columns */
    uint32_t tile_runs;
    uint32_t tile_rows;
    uint32_t tiles;
    int64_t units;    /* by columns rows, by planes runs of a parameter */
    int64_t segments; /* of the sums */
    bool whole_runs;
};

/* How many segments the sums are cut into: enough for all processors, each worth its while. A segment
 * takes every so many units, `threads` at a time; the fewest that take no more turns are the best. */
static void cut_sums(struct shape *s, int64_t wanted, int64_t threads)
{
    int64_t turns = wd_ceil_div(s->units, threads);
    int64_t worth = wd_ceil_div(turns, SEGMENT_ROWS);
    s->segments = wd_most(1, wd_least(wd_least(wanted, worth), PARTIALS_MAX / s->width));
    s->segments = wd_ceil_div(turns, wd_ceil_div(turns, s->segments));
}

static void cut(struct shape *s, const struct wd_device *device)
{
    s->columns = s->space.inner < 2 * BN_RUN;
    if (!s->columns) {
        s->width = s->space.params;
        s->whole_runs = s->space.inner % BN_RUN == 0;
        s->units = s->space.outer * wd_ceil_div(s->space.inner, BN_RUN);
        cut_sums(s,
                 device->multiprocessors * (s->wide ? PLANE_BLOCKS_WIDE : PLANE_BLOCKS) /
                     s->space.params,
                 BN_THREADS);
        return;
    }
    s->width = s->space.params * s->space.inner;
    s->width *= BN_RUN / wd_gcd(s->width, BN_RUN);
    s->pitch = s->width;
    if ((s->sums || s->width > WIDTH_MOST) && s->width > RANGE && s->space.inner == 1 &&
        s->width == s->space.params) {
        s->width = RANGE;
    }
    s->tile_runs = (uint32_t)wd_least(s->width / BN_RUN, BN_TILE_RUNS);
    s->tile_rows = BN_THREADS / s->tile_runs;
    s->tiles = (uint32_t)wd_ceil_div(s->width / BN_RUN, s->tile_runs);
    if (!s->sums) { /* of few rows of odd length there may be less than one of whole runs */
        const int64_t runs = wd_ceil_div(s->space.total + BN_RUN, BN_RUN);
        s->tiles = (uint32_t)wd_least(s->tiles, wd_ceil_div(runs, s->tile_runs));
    }
    s->units = wd_ceil_div(s->space.total, s->pitch);
    cut_sums(s, device->multiprocessors * (s->wide ? COLUMN_BLOCKS_WIDE : COLUMN_BLOCKS) / s->tiles,
             s->tile_rows);
}

static bool is_wide(const struct wd_problem *problem)
{
    return wd_slot(problem->graph, problem->node, 0)->dtype == CUDNN_DATA_DOUBLE;
}

static bool has_sums(const struct wd_problem *problem)
{
    return problem->node->op != WD_OP_BN_INFERENCE;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct shape shape = {.columns = false};
    int most;
    if (!wd_bn_gpu_match(problem, &shape.space, true, reason)) return false;
    shape.wide = is_wide(problem);
    shape.sums = has_sums(problem);
    cut(&shape, problem->device);
    most = shape.sums ? PARAMS_MAX >> shape.wide : WIDTH_MOST;
    WD_NEED(shape.width <= most, reason, NOT_SUPPORTED_SHAPE,
            "%lld columns of parameters are more than %d", (long long)shape.width, most);
    WD_NEED(shape.space.total / BN_RUN < INT32_MAX && shape.units < INT32_MAX, reason,
            NOT_SUPPORTED_SHAPE, "%lld elements are more than 2^34", (long long)shape.space.total);
    WD_NEED(shape.columns || shape.whole_runs || shape.space.total <= INT32_MAX, reason,
            NOT_SUPPORTED_SHAPE, "planes of %lld elements, no multiple of %d, in %lld",
            (long long)shape.space.inner, BN_RUN, (long long)shape.space.total);
    return true;
}

/* Planes of which one by one a parameter has more elements than 31 bits count: where tensors lie each
 * otherwise, the definition sums them. */
static bool is_uncounted(const struct shape *s)
{
    return !s->columns && s->space.outer * s->space.inner > INT32_MAX;
}

static struct shape shape_of(const struct wd_problem *problem)
{
    struct shape shape = {.columns = false};
    wd_bn_gpu_see(&shape.space, problem);
    shape.wide = is_wide(problem);
    shape.sums = has_sums(problem);
    cut(&shape, problem->device);
    return shape;
}

static int64_t numbers_bytes(const struct shape *s)
{
    return wd_least(s->space.params, s->width) * BN_NUMBERS * (s->wide ? 8 : 4);
}

static int64_t scratch_bytes(const struct shape *s)
{
    return numbers_bytes(s) + s->segments * s->width * (int64_t)sizeof(struct bn_partial);
}

static bool by_ranges(const struct shape *s)
{
    return s->columns && s->pitch != s->width;
}

/* The range of columns that begins with `first`, as a tensor of its own. */
static struct shape range_of(const struct shape *whole, int64_t first,
                             const struct wd_device *device)
{
    struct shape s = {
        .columns = true, .wide = whole->wide, .sums = whole->sums, .space = whole->space};
    s.space.params = wd_least(RANGE, whole->pitch - first);
    s.space.total = s.space.outer * s.space.params;
    cut(&s, device);
    return s;
}

static const struct wd_engine *definition_of(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_BN_TRAINING ? &wd_engine_bn_training_def_gpu
                                                  : &wd_engine_bn_backward_def_gpu;
}

/* Of several ranges the most: the last one is narrower, but may be cut into more segments. */
static int64_t workspace(const struct wd_problem *problem)
{
    struct shape s = shape_of(problem);
    int64_t bytes = scratch_bytes(&s);
    if (by_ranges(&s)) {
        struct shape last = range_of(&s, (s.pitch - 1) / RANGE * RANGE, problem->device);
        bytes = wd_most(bytes, scratch_bytes(&last));
    }
    if (is_uncounted(&s)) bytes = wd_most(bytes, definition_of(problem)->workspace(problem));
    return bytes;
}

/* Whether runs may begin before x. Bytes of the reserve space are runs from the first element on: by planes backward puts
 * a run's bits together from two of them, forward needs those of the next run, whose input must not be overwritten before. */
static bool may_lead(const struct bn_vector_args *a, const struct shape *s)
{
    if (s->columns) return !a->reserve && !by_ranges(s);
    if (s->space.total >= INT32_MAX - BN_RUN) return false;
    return !a->reserve || a->dy || (!s->wide && a->x != a->y && a->z != a->y);
}

/* How x is walked, by runs that begin `lead` elements before it, if they may. */
static void place(struct bn_vector_args *a, const struct shape *s)
{
    int64_t plane = s->columns ? 1 : s->whole_runs ? s->space.inner / BN_RUN : s->space.inner;
    int64_t total = s->space.total;
    if (a->lead && may_lead(a, s)) {
        a->aligned = true; /* from where runs begin now */
        a->copying = !s->columns && a->reserve && !a->dy;
    } else {
        a->lead = 0;
    }
    a->width = s->width;
    a->pitch = s->pitch;
    a->segments = (uint32_t)s->segments;
    a->units = (uint32_t)(s->columns ? wd_ceil_div(total + a->lead, s->pitch) : s->units);
    a->tiles = s->tiles;
    a->tile_runs = s->tile_runs;
    a->tile_rows = s->tile_rows;
    a->whole_rows = s->columns ? (uint32_t)((total + a->lead) / s->pitch) : 0;
    a->whole_runs = s->whole_runs;
    a->by_plane = wd_fastdiv_of((uint32_t)plane);
    a->by_inner = wd_fastdiv_of(s->columns ? (uint32_t)s->space.inner : 1);
    a->by_copies = wd_fastdiv_of(s->columns ? (uint32_t)(s->width / s->space.params) : 1);
    a->by_tile = wd_fastdiv_of(s->columns ? s->tile_runs : 1);
}

/* Inference has no scratch. */
static void put_scratch(struct bn_vector_args *a, const struct shape *s, void *scratch)
{
    a->numbers = scratch;
    if (scratch) a->partial = (struct bn_partial *)((char *)scratch + numbers_bytes(s));
}

/* What is prepared of a problem: its cut, and the arguments of tensors that are aligned, but for pointers and
 * scalars. */
struct work {
    struct shape shape;
    struct bn_vector_args args;
};

static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct work *w = prepared;
    w->shape = shape_of(problem);
    w->args = wd_bn_gpu_args(problem, &w->shape.space);
    /* ranges are placed one by one */
    if (!by_ranges(&w->shape)) place(&w->args, &w->shape);
}

static struct wd_kernel_row *row_of(const struct wd_call *call, const struct step *step,
                                    const struct shape *s)
{
    int first = s->columns ? step->columns : step->planes;
    return &kernel_rows[first + wd_bn_gpu_type(&call->problem)];
}

/* Planes whose parameter is looked for by elements: runs are of two of them. */
static void by_elements(struct bn_vector_args *a, const struct shape *s)
{
    a->whole_runs = false;
    a->by_plane = wd_fastdiv_of((uint32_t)s->space.inner);
}

/* What sums goes by the runs in which a plane lies, wherever it begins in the first of them. */
static void by_runs(struct bn_vector_args *a, const struct shape *s)
{
    int64_t runs = s->whole_runs && !a->lead ? s->space.inner / BN_RUN
                                             : (s->space.inner + 2 * BN_RUN - 2) / BN_RUN;
    a->by_plane = wd_fastdiv_of((uint32_t)runs);
    a->units = (uint32_t)(s->space.outer * runs);
}

/* The kernel of the sums, then the one of what follows from them. */
static cudnnStatus_t emit_sums(const struct wd_call *call, struct wd_queue *queue,
                               const struct step *step, const struct shape *s,
                               const struct bn_vector_args *a)
{
    struct bn_vector_args own = *a;
    int64_t blocks = s->segments * (s->columns ? s->tiles : s->space.params);
    uint32_t threads = s->columns ? s->tile_runs * s->tile_rows : BN_THREADS;
    uint32_t items = own.segments * own.by_copies.divisor;
    if (!s->columns && own.aligned) {
        by_runs(&own, s);
    } else if (!s->columns) {
        by_elements(&own, s);
        own.units = (uint32_t)(s->space.outer * s->space.inner);
    }
    WD_TRY(wd_emit_kernel(queue, row_of(call, step, s), blocks, threads, 0, &own));
    own.finish_lanes = FINISH_LANES_MIN;
    while (own.finish_lanes < BN_THREADS && own.finish_lanes * FINISH_ITEMS < items) {
        own.finish_lanes *= 2;
    }
    return wd_emit_kernel(queue, &kernel_rows[step->finish + s->wide],
                          wd_ceil_div(s->space.params * own.finish_lanes, BN_THREADS), BN_THREADS,
                          0, &own);
}

/* The walk that writes. */
static cudnnStatus_t emit_walk(const struct wd_call *call, struct wd_queue *queue,
                               const struct step *step, const struct shape *s,
                               const struct bn_vector_args *a)
{
    struct bn_vector_args own = *a;
    int64_t blocks;
    int64_t rows;
    if (!s->columns) {
        if (own.lead) by_elements(&own, s);
        blocks =
            wd_ceil_div(wd_ceil_div(s->space.total + own.lead, BN_RUN), BN_THREADS - own.copying);
        return wd_emit_kernel(queue, row_of(call, step, s), blocks, BN_THREADS, 0, &own);
    }
    rows = wd_ceil_div((int64_t)own.units * s->tiles,
                       (int64_t)s->tile_rows * queue->device->multiprocessors * WALK_BLOCKS);
    rows = wd_clamp(rows, WALK_ROWS_MIN, WALK_ROWS_MAX);
    if ((int64_t)own.units * s->tiles < rows * s->tile_rows * queue->device->multiprocessors * 2) {
        rows = 1;
    }
    own.per_segment = (uint32_t)(s->tile_rows * rows);
    blocks = wd_ceil_div(own.units, own.per_segment) * s->tiles;
    return wd_emit_kernel(queue, row_of(call, step, s), blocks, s->tile_runs * s->tile_rows, 0,
                          &own);
}

static cudnnStatus_t run_training(const struct wd_call *call, struct wd_queue *queue,
                                  const struct shape *s, const struct bn_vector_args *a)
{
    WD_TRY(emit_sums(call, queue, &stats, s, a));
    return emit_walk(call, queue, a->copying ? &apply_led : &apply, s, a);
}

static cudnnStatus_t run_inference(const struct wd_call *call, struct wd_queue *queue,
                                   const struct shape *s, const struct bn_vector_args *a)
{
    return emit_walk(call, queue, &apply, s, a);
}

static cudnnStatus_t run_backward(const struct wd_call *call, struct wd_queue *queue,
                                  const struct shape *s, const struct bn_vector_args *a)
{
    if (!a->mean.data) {
        struct bn_vector_args own = *a;
        own.scale.data = NULL;
        WD_TRY(emit_sums(call, queue, &stats, s, &own));
    }
    WD_TRY(emit_sums(call, queue, &sums, s, a));
    return emit_walk(call, queue, &grad, s, a);
}

typedef cudnnStatus_t (*run_fn)(const struct wd_call *call, struct wd_queue *queue,
                                const struct shape *s, const struct bn_vector_args *a);

/* Moves every pointer on to column `first`. */
static void move_on(struct bn_vector_args *a, int64_t first, int64_t size)
{
    struct bn_param *params[] = {&a->scale,        &a->bias,        &a->mean,   &a->var,
                                 &a->running_mean, &a->running_var, &a->dscale, &a->dbias};
    const void **inputs[] = {&a->x, &a->dy, &a->z};
    void **outputs[] = {&a->y, &a->dz};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; ++i) {
        if (*inputs[i]) *inputs[i] = (const char *)*inputs[i] + first * size;
    }
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; ++i) {
        if (*outputs[i]) *outputs[i] = (char *)*outputs[i] + first * size;
    }
    for (size_t i = 0; i < sizeof params / sizeof *params; ++i) {
        if (!params[i]->data) continue;
        params[i]->data = (char *)params[i]->data + first * params[i]->stride * (size == 8 ? 8 : 4);
    }
    if (a->reserve) a->reserve += first / BN_RUN;
    a->total -= first;
}

/* All parameters at once, or range by range of columns, whose scratch is then the same. */
static cudnnStatus_t run_ranges(const struct wd_call *call, struct wd_queue *queue,
                                const struct shape *whole, struct bn_vector_args *a, void *scratch,
                                run_fn run)
{
    int64_t size = wd_dtype_bytes(wd_call_tensor(call, 0)->dtype);
    if (!by_ranges(whole)) {
        if (a->lead) place(a, whole);
        put_scratch(a, whole, scratch);
        return run(call, queue, whole, a);
    }
    for (int64_t first = 0; first < whole->pitch; first += RANGE) {
        struct bn_vector_args own = *a;
        struct shape s = range_of(whole, first, queue->device);
        own.lead = 0; /* a range ends where another begins */
        place(&own, &s);
        put_scratch(&own, &s, scratch);
        own.pitch = whole->pitch;
        own.params = (uint32_t)s.space.params;
        own.by_params = wd_fastdiv_of(own.params);
        move_on(&own, first, size);
        WD_TRY(run(call, queue, &s, &own));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue, void *scratch,
                          run_fn run)
{
    struct work own;
    const struct work *w = wd_call_prepared(call, prepare, &own);
    struct bn_vector_args a = w->args;
    wd_bn_gpu_bind(&a, call);
    if (!a.aligned && scratch && is_uncounted(&w->shape)) {
        return definition_of(&call->problem)->emit(call, queue);
    }
    return run_ranges(call, queue, &w->shape, &a, scratch, run);
}

static cudnnStatus_t emit_training(const struct wd_call *call, struct wd_queue *queue)
{
    return emit(call, queue, call->workspace, run_training);
}

static cudnnStatus_t emit_inference(const struct wd_call *call, struct wd_queue *queue)
{
    return emit(call, queue, NULL, run_inference);
}

static cudnnStatus_t emit_backward(const struct wd_call *call, struct wd_queue *queue)
{
    return emit(call, queue, call->workspace, run_backward);
}

const struct wd_engine wd_engine_bn_training_vector = {
    .name = "bn_training_vector",
    .op = WD_OP_BN_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .workspace = workspace,
    .emit = emit_training,
};

const struct wd_engine wd_engine_bn_inference_vector = {
    .name = "bn_inference_vector",
    .op = WD_OP_BN_INFERENCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit_inference,
};

const struct wd_engine wd_engine_bn_backward_vector = {
    .name = "bn_backward_vector",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .workspace = workspace,
    .emit = emit_backward,
};
