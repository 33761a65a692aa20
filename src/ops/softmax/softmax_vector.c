/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax on the GPU at the speed of memory, forward and backward, for tensors without gaps that lie
 * alike. What of a row fits into registers - of a few lanes, a warp, a block, a cluster of blocks -
 * is read once; longer rows are read twice. softmax_vector_args.h says how x is walked; the cuts
 * depend on shape, type and device alone. */
#include <string.h>

#include "base/sizes.h"
#include "ops/engine.h"
#include "ops/softmax/softmax_vector_args.h"

#define WD_KERNELS_MODULE softmax_vector
#define WD_KERNELS_ROWS "ops/softmax/softmax_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    WARP = 32,
    CLUSTER_MAX = 8,
    CLUSTER_CAPABILITY = 90,
    FEW_RUNS = 2 * WARP,     /* of a row that is never worth a block */
    FEW_RUNS_MAX = 8 * WARP, /* of a row that a warp can hold */
    CLUSTER_RUNS = 256,      /* that a block must have for a cluster to pay */
    SEGMENT_RUNS = 1024,     /* likewise for a segment of a long row */
    BLOCKS_A_PROCESSOR = 4,  /* of long rows */
    COLUMN_BLOCK = 256,      /* threads of a block of columns, where there is a choice */
    COLUMN_CHANNELS = 64,    /* that a block must have for a cluster to pay */
    ACROSS_SHARED = 64,      /* bounds the shared memory of columns: 40 KiB */
    ELEMENTS_MAX_LOG2 = 35,  /* of a tensor: keeps the count of blocks below 2^31 */
};

/* The kernels of a direction, the first of each four; 0 where there is none. */
struct direction {
    int tensors; /* read */
    int few2, few4, few8;
    int block4;
    int sums, spread;
    int stray;
    int columns, columns_one, columns_long;
    uint32_t column_runs; /* channels of a thread */
    uint32_t column_ones;
};

static const struct direction forward = {
    1,
    KERNEL_softmax_few2_f32,
    KERNEL_softmax_few4_f32,
    KERNEL_softmax_few8_f32,
    KERNEL_softmax_block4_f32,
    KERNEL_softmax_sums_f32,
    KERNEL_softmax_spread_f32,
    KERNEL_softmax_stray_f32,
    KERNEL_softmax_columns_f32,
    KERNEL_softmax_columns_one_f32,
    KERNEL_softmax_columns_long_f32,
    8,
    16,
};

static const struct direction backward = {
    2,
    KERNEL_softmax_gradient_few2_f32,
    KERNEL_softmax_gradient_few4_f32,
    KERNEL_softmax_gradient_few8_f32,
    KERNEL_softmax_gradient_block4_f32,
    KERNEL_softmax_gradient_sums_f32,
    KERNEL_softmax_gradient_spread_f32,
    KERNEL_softmax_gradient_stray_f32,
    KERNEL_softmax_gradient_columns_f32,
    KERNEL_softmax_gradient_columns_one_f32,
    KERNEL_softmax_gradient_columns_long_f32,
    4,
    12,
};

/* A tensor as [outer][length][inner]. */
struct shape {
    int64_t outer;
    int64_t length;
    int64_t inner;
    int64_t total;
    int type;         /* place among the kernels of four types */
    int64_t bytes;    /* of an element */
    int64_t elements; /* of a run */
    int64_t pair;     /* bytes of a maximum and a sum */
};

static int64_t multiple_up(int64_t a, int64_t b)
{
    return wd_ceil_div(a, b) * b;
}

static int64_t power_up(int64_t a)
{
    int64_t power = 1;
    while (power < a) power *= 2;
    return power;
}

static uint32_t log2_of(uint32_t power)
{
    uint32_t bits = 0;
    while (power >> bits > 1) bits += 1;
    return bits;
}

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_DOUBLE: return 1;
    case CUDNN_DATA_HALF: return 2;
    case CUDNN_DATA_BFLOAT16: return 3;
    default: return -1;
    }
}

/* False where elements of a row are not neighbours in memory but for one stride. */
static bool see(struct shape *s, const struct wd_tensor *x, int mode)
{
    int order[WD_MAX_RANK];
    int count = wd_tensor_order(x, order);
    bool inside = false;
    memset(s, 0, sizeof *s);
    s->outer = s->length = s->inner = 1;
    for (int i = 0; i < count; ++i) {
        bool of_row = mode == CUDNN_SOFTMAX_MODE_CHANNEL ? order[i] == 1 : order[i] > 0;
        if (of_row) {
            if (s->inner > 1) return false;
            s->length *= x->dim[order[i]];
            inside = true;
        } else if (inside) {
            s->inner *= x->dim[order[i]];
        } else {
            s->outer *= x->dim[order[i]];
        }
    }
    s->total = s->outer * s->length * s->inner;
    s->type = type_index(x->dtype);
    s->bytes = wd_most(wd_dtype_bits(x->dtype) / 8, 1); /* of less than a byte there is none */
    s->elements = SOFTMAX_BYTES / s->bytes;
    s->pair = x->dtype == CUDNN_DATA_DOUBLE ? 2 * sizeof(double) : 2 * sizeof(float);
    return true;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    struct shape shape;
    for (int s = 0; s < wd_op_info(problem->node->op)->slot_count; ++s) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, s);
        WD_NEED(tensor->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is vectorised, %d lanes a unit", s, tensor->vect_count);
        WD_NEED(type_index(tensor->dtype) >= 0 && tensor->dtype == x->dtype, reason,
                NOT_SUPPORTED_DATA_TYPE, "slot %d is %s, needed is fp64, fp32, fp16 or bf16", s,
                wd_dtype_name(tensor->dtype));
        WD_NEED(wd_tensor_same_layout(tensor, x), reason, NOT_SUPPORTED_LAYOUT,
                "slot %d lies otherwise than slot 0", s);
    }
    WD_NEED(wd_tensor_count(x) > 0, reason, NOT_SUPPORTED_SHAPE, "the tensors are empty");
    WD_NEED(wd_tensor_is_packed(x), reason, NOT_SUPPORTED_LAYOUT, "the tensors have gaps");
    WD_NEED(see(&shape, x, problem->node->attr.softmax.mode), reason, NOT_SUPPORTED_LAYOUT,
            "a dimension of the batch lies between those of a row");
    WD_NEED(shape.total >> ELEMENTS_MAX_LOG2 == 0, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements are more than 2^%d", (long long)shape.total, ELEMENTS_MAX_LOG2);
    WD_NEED(shape.length <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements are longer than 2^31", (long long)shape.length);
    return true;
}

static int cluster_max(const struct wd_device *device)
{
    return device->cooperative && device->capability >= CLUSTER_CAPABILITY ? CLUSTER_MAX : 1;
}

/* ---- Rows ---- */

/* Runs of the longest row that starts anywhere, or of all rows where each is whole runs. */
static int64_t runs_of(const struct shape *s, bool whole)
{
    if (whole && s->length % s->elements == 0) return s->length / s->elements;
    return (s->length + 2 * s->elements - 2) / s->elements;
}

/* What a block holds. */
static int64_t block_runs(const struct direction *d, const struct shape *s)
{
    return (int64_t)kernel_rows[d->block4 + s->type].threads * 4;
}

static bool is_long(const struct direction *d, const struct shape *s,
                    const struct wd_device *device, int64_t runs)
{
    return runs > block_runs(d, s) * cluster_max(device);
}

/* How long rows are cut: as many at once as the cache holds until they are read again. */
struct cut {
    int64_t rows;
    int64_t segments;
    int64_t runs; /* of a segment */
};

static struct cut cut_long(const struct direction *d, const struct shape *s,
                           const struct wd_device *device, int64_t runs)
{
    struct cut cut;
    int64_t wanted;
    int64_t worth = wd_most(1, runs / SEGMENT_RUNS);
    cut.rows = device->l2_bytes / 2 / (s->length * s->bytes * d->tensors);
    cut.rows = wd_most(1, wd_least(cut.rows, s->outer));
    wanted = wd_ceil_div((int64_t)device->multiprocessors * BLOCKS_A_PROCESSOR, cut.rows);
    cut.segments = wd_least(wd_least(wanted, worth), SOFTMAX_LONG_THREADS);
    cut.runs = wd_ceil_div(runs, cut.segments);
    cut.segments = wd_ceil_div(runs, cut.runs);
    return cut;
}

static int64_t workspace_of(const struct direction *d, const struct wd_problem *problem)
{
    struct shape s;
    struct cut cut;
    int64_t runs;
    see(&s, wd_slot(problem->graph, problem->node, 0), problem->node->attr.softmax.mode);
    runs = runs_of(&s, false);
    if (s.inner > 1 || !is_long(d, &s, problem->device, runs)) return 0;
    cut = cut_long(d, &s, problem->device, runs);
    /* pointers that are whole runs may make one segment fewer, never more */
    return cut.rows * cut.segments * s.pair;
}

static int64_t workspace_forward(const struct wd_problem *problem)
{
    return workspace_of(&forward, problem);
}

static int64_t workspace_backward(const struct wd_problem *problem)
{
    return workspace_of(&backward, problem);
}

static void set_lanes(struct softmax_vector_args *a, int64_t lanes)
{
    a->lanes = (uint32_t)lanes;
    a->lane_bits = log2_of((uint32_t)lanes);
}

static cudnnStatus_t emit_few(const struct direction *d, const struct shape *s, int64_t runs,
                              struct wd_queue *queue, struct softmax_vector_args *a)
{
    int kernel = runs <= 2 * WARP ? d->few2 : runs <= 4 * WARP ? d->few4 : d->few8;
    int64_t lanes = wd_least(WARP, power_up(wd_ceil_div(runs, 2)));
    int64_t threads = SOFTMAX_FEW_THREADS;
    int64_t full = 2 * (int64_t)queue->device->multiprocessors;
    while (threads > WARP && s->outer * lanes <= full * threads / 2) threads /= 2;
    set_lanes(a, lanes);
    return wd_emit_kernel(queue, &kernel_rows[kernel + s->type],
                          wd_ceil_div(s->outer, threads / lanes), (uint32_t)threads, 0, a);
}

static cudnnStatus_t emit_block(const struct direction *d, const struct shape *s, int64_t runs,
                                struct wd_queue *queue, struct softmax_vector_args *a)
{
    int64_t cluster = 1;
    int64_t each;
    int most = cluster_max(queue->device);
    while (runs > block_runs(d, s) * cluster) cluster *= 2;
    while (cluster < most && s->outer * cluster * 2 <= queue->device->multiprocessors &&
           runs >= CLUSTER_RUNS * 2 * cluster) {
        cluster *= 2;
    }
    each = wd_ceil_div(runs, cluster);
    a->runs = each;
    a->cluster = (uint32_t)cluster;
    return wd_emit_cluster_kernel(queue, &kernel_rows[d->block4 + s->type], s->outer * cluster,
                                  (uint32_t)multiple_up(wd_ceil_div(each, 4), WARP),
                                  (uint32_t)cluster, 0, a);
}

static cudnnStatus_t emit_long(const struct direction *d, const struct shape *s, int64_t runs,
                               struct wd_queue *queue, struct softmax_vector_args *a)
{
    struct cut cut = cut_long(d, s, queue->device, runs);
    a->segments = (uint32_t)cut.segments;
    a->runs = cut.runs;
    for (int64_t first = 0; first < s->outer; first += cut.rows) {
        a->first = first;
        a->rows = wd_least(cut.rows, s->outer - first);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[d->sums + s->type], a->rows * cut.segments,
                              SOFTMAX_LONG_THREADS, 0, a));
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[d->spread + s->type], a->rows * cut.segments,
                              SOFTMAX_LONG_THREADS, 0, a));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit_stray(const struct direction *d, const struct shape *s,
                                struct wd_queue *queue, struct softmax_vector_args *a)
{
    struct wd_kernel_row *row = &kernel_rows[d->stray + s->type];
    int64_t lanes = power_up(wd_ceil_div(s->length, 4));
    int64_t threads = wd_least(row->threads, wd_most(WARP, lanes));
    if (lanes <= WARP) {
        threads = SOFTMAX_FEW_THREADS;
        set_lanes(a, lanes);
        return wd_emit_kernel(queue, row, wd_ceil_div(s->outer, threads / lanes), (uint32_t)threads,
                              0, a);
    }
    set_lanes(a, 2 * WARP); /* a block */
    return wd_emit_kernel(queue, row, s->outer, (uint32_t)threads, 0, a);
}

static cudnnStatus_t emit_rows(const struct direction *d, const struct shape *s, bool alike,
                               struct wd_queue *queue, struct softmax_vector_args *a)
{
    int64_t runs = runs_of(s, a->shift == 0);
    a->runs = runs;
    if (!alike) return emit_stray(d, s, queue, a);
    if (runs <= FEW_RUNS ||
        (runs <= FEW_RUNS_MAX && s->outer >= 4 * (int64_t)queue->device->multiprocessors)) {
        return emit_few(d, s, runs, queue, a);
    }
    if (is_long(d, s, queue->device, runs)) return emit_long(d, s, runs, queue, a);
    return emit_block(d, s, runs, queue, a);
}

/* ---- Columns ---- */

struct tiling {
    int64_t across; /* threads side by side */
    int64_t down;   /* that share the channels of a position */
    int64_t cluster;
    int64_t elements; /* positions of a thread */
    int64_t held;     /* channels of a thread; 0: it walks over them */
};

/* Threads that share `channels`: enough to hold them, in whole warps. */
static int64_t down_of(const struct tiling *t, int64_t channels)
{
    int64_t step = t->across < WARP ? WARP / t->across : 1;
    return multiple_up(wd_ceil_div(wd_ceil_div(channels, t->cluster), t->held), step);
}

/* The widest tile whose channels a block holds, or a cluster; else one that is walked over. */
static void hold(struct tiling *t, int64_t channels, int64_t narrowest, int most)
{
    for (int64_t wide = 4; wide >= 1; wide /= 2) {
        for (t->cluster = 1; t->cluster <= most; t->cluster *= 2) {
            t->across = narrowest * wide;
            t->down = down_of(t, channels);
            if (t->across * t->down <= SOFTMAX_COLUMN_THREADS) return;
            if (wide == 4) break; /* rather half as wide than in a cluster */
        }
    }
    t->held = 0;
    t->elements = 1;
    t->cluster = 1;
}

static int64_t tiles_of(const struct tiling *t, const struct shape *s)
{
    return wd_ceil_div(s->outer * s->inner, t->across * t->elements);
}

static struct tiling tile(const struct direction *d, const struct shape *s, bool whole_runs,
                          const struct wd_device *device)
{
    struct tiling t = {.elements = whole_runs ? s->elements : 1,
                       .held = whole_runs ? d->column_runs : d->column_ones};
    int64_t narrowest = 32 / s->bytes / t.elements; /* 32 bytes side by side */
    int most = cluster_max(device);
    if (!whole_runs && s->bytes == 8) t.held = SOFTMAX_WIDE(t.held);
    hold(&t, s->length, narrowest, most);
    if (t.held == 0) {
        t.across = 4 * (32 / s->bytes);
        t.down = SOFTMAX_COLUMN_THREADS / t.across;
        while (t.cluster < most && tiles_of(&t, s) * t.cluster * 2 <= device->multiprocessors) {
            t.cluster *= 2;
        }
        return t;
    }
    while (t.across * t.down * 2 <= COLUMN_BLOCK && (t.down == 1 || t.across < ACROSS_SHARED)) {
        t.across *= 2;
        t.down = down_of(&t, s->length);
    }
    while (t.across > narrowest && tiles_of(&t, s) * t.cluster < device->multiprocessors) {
        t.across /= 2;
        t.down = down_of(&t, s->length);
    }
    while (t.cluster < most && tiles_of(&t, s) * t.cluster * 2 <= device->multiprocessors &&
           s->length >= COLUMN_CHANNELS * 2 * t.cluster) {
        t.cluster *= 2;
        t.down = down_of(&t, s->length);
    }
    return t;
}

static cudnnStatus_t emit_columns(const struct direction *d, const struct shape *s, bool aligned,
                                  struct wd_queue *queue, struct softmax_vector_args *a)
{
    bool whole_runs = aligned && s->inner % s->elements == 0;
    struct tiling t = tile(d, s, whole_runs, queue->device);
    int kernel = t.held == 0 ? d->columns_long : whole_runs ? d->columns : d->columns_one;
    int64_t threads = t.across * t.down;
    int64_t slices = t.across < WARP ? threads / WARP : t.down;
    int64_t shared = (slices + 1 + (t.cluster > 1)) * t.across * t.elements * s->pair;
    if (slices == 1 && t.cluster == 1) shared = 0;
    a->rows = s->outer * s->inner;
    a->runs = wd_ceil_div(s->length, t.cluster);
    a->cluster = (uint32_t)t.cluster;
    a->wide = a->rows + t.across * t.elements > INT32_MAX;
    a->by_inner = wd_fastdiv_of(a->wide ? 1 : (uint32_t)s->inner);
    set_lanes(a, t.across);
    return wd_emit_cluster_kernel(queue, &kernel_rows[kernel + s->type],
                                  tiles_of(&t, s) * t.cluster, (uint32_t)threads,
                                  (uint32_t)t.cluster, (uint32_t)shared, a);
}

/* ---- Both ---- */

static cudnnStatus_t emit(const struct direction *d, const struct wd_call *call, int output,
                          struct wd_queue *queue)
{
    const struct wd_softmax_attr *attr = &call->problem.node->attr.softmax;
    const struct wd_tensor *tensor = wd_call_tensor(call, output);
    struct softmax_vector_args a;
    struct shape s;
    uintptr_t off;
    bool alike = true;
    memset(&a, 0, sizeof a);
    see(&s, tensor, attr->mode);
    a.x = wd_call_data(call, 0);
    a.dy = d->tensors > 1 ? wd_call_data(call, BACKWARD_DY) : NULL;
    a.y = wd_call_data(call, output);
    a.partial = call->workspace;
    a.alpha = call->scalars[ALPHA];
    a.beta = call->scalars[BETA];
    a.rows = s.outer;
    a.length = s.length;
    a.inner = s.inner;
    a.total = s.total;
    a.log = attr->algorithm == CUDNN_SOFTMAX_LOG;
    a.streaming = wd_tensor_extent(tensor) > queue->device->l2_bytes;
    a.lanes = a.cluster = a.segments = 1;
    off = (uintptr_t)a.x % SOFTMAX_BYTES;
    for (int i = 0; i <= output; ++i) {
        alike = alike && (uintptr_t)wd_call_data(call, i) % SOFTMAX_BYTES == off;
    }
    a.shift = (int32_t)((int64_t)off / s.bytes);
    if (s.inner > 1) return emit_columns(d, &s, alike && off == 0, queue, &a);
    return emit_rows(d, &s, alike, queue, &a);
}

static cudnnStatus_t emit_forward(const struct wd_call *call, struct wd_queue *queue)
{
    return emit(&forward, call, FORWARD_Y, queue);
}

static cudnnStatus_t emit_backward(const struct wd_call *call, struct wd_queue *queue)
{
    return emit(&backward, call, BACKWARD_DX, queue);
}

const struct wd_engine wd_engine_softmax_forward_vector = {
    .name = "softmax_forward_vector",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace_forward,
    .emit = emit_forward,
};

const struct wd_engine wd_engine_softmax_backward_vector = {
    .name = "softmax_backward_vector",
    .op = WD_OP_SOFTMAX_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace_backward,
    .emit = emit_backward,
};
