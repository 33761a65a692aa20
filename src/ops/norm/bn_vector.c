/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization on the GPU at the speed of memory: training, inference and backward for packed
 * tensors in fp32, fp16 and bf16, all of one layout, with z, relu and clipped relu. bn_vector_args.h
 * says how x is walked; the cuts depend on its shape alone. */
#include <string.h>

#include "graph/norm_shape.h"
#include "ops/engine.h"
#include "ops/norm/bn_vector_args.h"

#define WD_KERNELS_MODULE bn_vector
#define WD_KERNELS_ROWS "ops/norm/bn_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { INFER_X, INFER_SCALE, INFER_BIAS, INFER_MEAN, INFER_VAR, INFER_Z, INFER_Y };
enum {
    TRAIN_X,
    TRAIN_SCALE,
    TRAIN_BIAS,
    TRAIN_Z,
    TRAIN_Y,
    TRAIN_RUNNING_MEAN,
    TRAIN_RUNNING_VAR,
    TRAIN_SAVED_MEAN,
    TRAIN_SAVED_INV_STD,
    TRAIN_RESERVE
};
enum {
    GRAD_X,
    GRAD_DY,
    GRAD_SCALE,
    GRAD_SAVED_MEAN,
    GRAD_SAVED_INV_STD,
    GRAD_RESERVE,
    GRAD_DX,
    GRAD_DSCALE,
    GRAD_DBIAS,
    GRAD_DZ
};
enum { ALPHA, BETA, FACTOR };
enum { ALPHA_DATA, BETA_DATA, ALPHA_PARAM, BETA_PARAM };

enum {
    WARPS = BN_THREADS / 32,
    TILE_RUNS = 32,          /* of columns, side by side in a block */
    PARAMS_MAX = 1 << 17,    /* bounds the scratch: 4 MiB of numbers */
    PARTIALS_MAX = 1 << 17,  /* likewise: 3 MiB of sums */
    SEGMENT_ROWS = 8,        /* rows (or runs) of a thread that pay for a segment */
    WALK_ROWS = 8,           /* rows of a thread that writes */
    BLOCKS_A_PROCESSOR = 24, /* enough that the last ones to run are few among them */
};

/* The kernels of a step, by planes and by columns, each a row for fp32, fp16, bf16. */
struct step {
    int planes;
    int columns;
};
static const struct step stats = {KERNEL_bn_stats_planes_f32, KERNEL_bn_stats_columns_f32};
static const struct step apply = {KERNEL_bn_apply_planes_f32, KERNEL_bn_apply_columns_f32};
static const struct step sums = {KERNEL_bn_sums_planes_f32, KERNEL_bn_sums_columns_f32};
static const struct step grad = {KERNEL_bn_grad_planes_f32, KERNEL_bn_grad_columns_f32};

/* x as [outer][params][inner]. */
struct shape {
    int64_t outer;
    int64_t params;
    int64_t inner;
    int64_t total;
    bool columns;
    int64_t width;
    uint32_t tile_runs;
    uint32_t tile_rows;
    uint32_t tiles;
    int64_t units;    /* by columns rows, by planes runs or elements of a parameter */
    int64_t segments; /* of the sums */
    int64_t per_segment;
    bool whole_runs;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* False where parameters are not neighbours in memory. */
static bool see(struct shape *s, const struct wd_tensor *x, int mode)
{
    int order[WD_MAX_RANK];
    int count = 0;
    bool inside = false;
    memset(s, 0, sizeof *s);
    s->outer = s->params = s->inner = 1;
    for (int d = 0; d < x->rank; ++d) {
        int at = count;
        if (x->dim[d] == 1) continue;
        for (; at > 0 && x->stride[order[at - 1]] < x->stride[d]; --at) order[at] = order[at - 1];
        order[at] = d;
        count += 1;
    }
    for (int i = 0; i < count; ++i) {
        if (wd_norm_is_param_axis(mode, order[i])) {
            if (s->inner > 1) return false;
            s->params *= x->dim[order[i]];
            inside = true;
        } else if (inside) {
            s->inner *= x->dim[order[i]];
        } else {
            s->outer *= x->dim[order[i]];
        }
    }
    s->total = s->outer * s->params * s->inner;
    return true;
}

/* How many segments the sums are cut into: enough for all processors, each worth its while. */
static void cut_sums(struct shape *s, const struct wd_device *device, int64_t others,
                     int64_t threads)
{
    int64_t wanted = quotient_up((int64_t)device->multiprocessors * BLOCKS_A_PROCESSOR, others);
    int64_t worth = quotient_up(s->units, threads * SEGMENT_ROWS);
    s->segments = larger(1, smaller(smaller(wanted, worth), PARTIALS_MAX / s->width));
    s->per_segment = quotient_up(s->units, s->segments);
    s->segments = quotient_up(s->units, s->per_segment);
}

static int64_t gcd(int64_t a, int64_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

static void cut(struct shape *s, const struct wd_device *device)
{
    s->columns = s->inner < 2 * BN_RUN;
    if (!s->columns) {
        s->width = s->params;
        s->whole_runs = s->inner % BN_RUN == 0;
        s->units = s->outer * s->inner / (s->whole_runs ? BN_RUN : 1);
        cut_sums(s, device, s->params, BN_THREADS);
        return;
    }
    s->width = s->params * s->inner;
    s->width *= BN_RUN / gcd(s->width, BN_RUN);
    s->tile_runs = (uint32_t)smaller(s->width / BN_RUN, TILE_RUNS);
    s->tile_rows = BN_THREADS / s->tile_runs;
    s->tiles = (uint32_t)quotient_up(s->width / BN_RUN, s->tile_runs);
    s->units = quotient_up(s->total, s->width);
    cut_sums(s, device, s->tiles, s->tile_rows);
}

/* The row's place among the three types. */
static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_HALF: return 1;
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return -1;
    }
}

/* Whether a parameter's number lies at param * *stride. */
static bool param_stride(const struct wd_tensor *p, const struct wd_tensor *x, int mode,
                         int64_t *stride)
{
    int64_t expected = 0;
    int previous = -1;
    *stride = 0;
    for (int step = 0; step < x->rank; ++step) {
        int next = -1;
        /* axes of x with parameters from the innermost */
        for (int d = 0; d < x->rank; ++d) {
            if (x->dim[d] == 1 || !wd_norm_is_param_axis(mode, d)) continue;
            if (previous >= 0 && x->stride[d] <= x->stride[previous]) continue;
            if (next < 0 || x->stride[d] < x->stride[next]) next = d;
        }
        if (next < 0) break;
        if (previous < 0) *stride = expected = p->stride[next];
        if (p->stride[next] != expected || p->dim[next] != x->dim[next]) return false;
        expected *= x->dim[next];
        previous = next;
    }
    return *stride <= INT32_MAX;
}

/* The tensors of x's shape are the slots of the mask `data`, the others have a number a parameter. */
static bool match(const struct wd_problem *problem, uint32_t data, int reserve,
                  struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    const struct wd_norm_attr *attr = &problem->node->attr.norm;
    struct shape shape;
    int64_t stride;
    for (int s = 0; s < wd_op_info(problem->node->op)->slot_count; ++s) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, s);
        if (!tensor || s == reserve) continue;
        WD_NEED(tensor->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is vectorised, %d lanes a unit", s, tensor->vect_count);
        if (data >> s & 1) {
            WD_NEED(type_index(tensor->dtype) >= 0 && tensor->dtype == x->dtype, reason,
                    NOT_SUPPORTED_DATA_TYPE, "slot %d is %s, needed is fp32, fp16 or bf16 as x", s,
                    wd_dtype_name(tensor->dtype));
            WD_NEED(wd_tensor_same_layout(tensor, x), reason, NOT_SUPPORTED_LAYOUT,
                    "slot %d lies otherwise than x", s);
        } else {
            WD_NEED(param_stride(tensor, x, attr->mode, &stride), reason, NOT_SUPPORTED_LAYOUT,
                    "the parameters of slot %d do not follow one another as those of x do", s);
        }
    }
    WD_NEED(wd_tensor_count(x) > 0, reason, NOT_SUPPORTED_SHAPE, "x is empty");
    WD_NEED(wd_tensor_is_packed(x), reason, NOT_SUPPORTED_LAYOUT, "x has gaps");
    WD_NEED(see(&shape, x, attr->mode), reason, NOT_SUPPORTED_LAYOUT,
            "the parameters of x are not neighbours in memory");
    cut(&shape, problem->device);
    WD_NEED(shape.width <= PARAMS_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld columns of parameters are more than %d", (long long)shape.width, PARAMS_MAX);
    WD_NEED(shape.total / BN_RUN < INT32_MAX && shape.units < INT32_MAX, reason,
            NOT_SUPPORTED_SHAPE, "%lld elements are more than 2^34", (long long)shape.total);
    WD_NEED(shape.columns || shape.whole_runs || shape.total <= INT32_MAX, reason,
            NOT_SUPPORTED_SHAPE, "planes of %lld elements, no multiple of %d, in %lld",
            (long long)shape.inner, BN_RUN, (long long)shape.total);
    WD_NEED(attr->ops == CUDNN_BATCHNORM_OPS_BN ||
                attr->activation.mode == CUDNN_POINTWISE_IDENTITY ||
                wd_norm_reserve_kind(attr) == WD_RESERVE_BITS,
            reason, NOT_SUPPORTED, "the activation is none of identity, relu and clipped relu");
    return true;
}

static bool match_training(const struct wd_problem *problem, struct wd_reason *reason)
{
    return match(problem, 1u << TRAIN_X | 1u << TRAIN_Z | 1u << TRAIN_Y, TRAIN_RESERVE, reason);
}

static bool match_inference(const struct wd_problem *problem, struct wd_reason *reason)
{
    return match(problem, 1u << INFER_X | 1u << INFER_Z | 1u << INFER_Y, -1, reason);
}

static bool match_backward(const struct wd_problem *problem, struct wd_reason *reason)
{
    return match(problem, 1u << GRAD_X | 1u << GRAD_DY | 1u << GRAD_DX | 1u << GRAD_DZ,
                 GRAD_RESERVE, reason);
}

static struct shape shape_of(const struct wd_problem *problem)
{
    struct shape shape;
    see(&shape, wd_slot(problem->graph, problem->node, 0), problem->node->attr.norm.mode);
    cut(&shape, problem->device);
    return shape;
}

static int64_t numbers_bytes(const struct shape *s)
{
    return s->params * (int64_t)sizeof(struct bn_numbers);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct shape s = shape_of(problem);
    return numbers_bytes(&s) + s.segments * s.width * (int64_t)sizeof(struct bn_partial);
}

static struct bn_param param_of(const struct wd_call *call, int slot)
{
    const struct wd_problem *problem = &call->problem;
    const struct wd_tensor *tensor = wd_call_tensor(call, slot);
    struct bn_param p = {NULL, 0, 0};
    int64_t stride;
    if (!tensor) return p;
    param_stride(tensor, wd_slot(problem->graph, problem->node, 0), problem->node->attr.norm.mode,
                 &stride);
    p.data = wd_call_data(call, slot);
    p.dtype = tensor->dtype;
    p.stride = (int32_t)stride;
    return p;
}

static struct bn_vector_args args_of(const struct wd_call *call, const struct shape *s,
                                     const struct wd_device *device)
{
    const struct wd_norm_attr *attr = &call->problem.node->attr.norm;
    struct bn_vector_args a;
    int64_t plane = s->columns ? 1 : s->whole_runs ? s->inner / BN_RUN : s->inner;
    memset(&a, 0, sizeof a);
    a.x = wd_call_data(call, 0);
    a.numbers = call->workspace;
    if (call->workspace) {
        a.partial = (struct bn_partial *)((char *)call->workspace + numbers_bytes(s));
    }
    a.epsilon = attr->epsilon;
    a.activates =
        attr->ops != CUDNN_BATCHNORM_OPS_BN && attr->activation.mode != CUDNN_POINTWISE_IDENTITY;
    a.low = (float)attr->activation.lower_clip;
    a.high = (float)attr->activation.upper_clip;
    a.keeps_nan = attr->activation.propagate_nan;
    a.streaming = wd_tensor_extent(wd_call_tensor(call, 0)) > device->l2_bytes;
    a.total = s->total;
    a.terms = s->outer * s->inner;
    a.width = s->width;
    a.params = (uint32_t)s->params;
    a.segments = (uint32_t)s->segments;
    a.units = (uint32_t)s->units;
    a.per_segment = (uint32_t)s->per_segment;
    a.tiles = s->tiles;
    a.tile_runs = s->tile_runs;
    a.tile_rows = s->tile_rows;
    a.whole_runs = s->whole_runs;
    a.by_plane = wd_fastdiv_of((uint32_t)plane);
    a.whole_rows = (uint32_t)(s->total / s->width);
    a.by_inner = wd_fastdiv_of(s->columns ? (uint32_t)s->inner : 1);
    a.by_params = wd_fastdiv_of((uint32_t)s->params);
    a.by_tile = wd_fastdiv_of(s->columns ? s->tile_runs : 1);
    return a;
}

static bool is_aligned(const struct wd_call *call, uint32_t data)
{
    for (int s = 0; s < WD_MAX_SLOTS; ++s) {
        if (data >> s & 1 && wd_call_tensor(call, s) &&
            (uintptr_t)wd_call_data(call, s) % 16 != 0) {
            return false;
        }
    }
    return true;
}

static struct wd_kernel_row *row_of(const struct wd_call *call, const struct step *step,
                                    const struct shape *s)
{
    int first = s->columns ? step->columns : step->planes;
    return &kernel_rows[first + type_index(wd_call_tensor(call, 0)->dtype)];
}

/* The kernel of the sums, then the one of what follows from them. */
static cudnnStatus_t emit_sums(const struct wd_call *call, struct wd_queue *queue,
                               const struct step *step, int finish, const struct shape *s,
                               const struct bn_vector_args *a)
{
    struct bn_vector_args own = *a;
    int64_t blocks = s->segments * (s->columns ? s->tiles : s->params);
    uint32_t threads = s->columns ? s->tile_runs * s->tile_rows : BN_THREADS;
    if (!s->columns && !(own.aligned && s->whole_runs)) {
        /* element by element */
        int64_t elements = s->outer * s->inner;
        own.units = (uint32_t)elements;
        own.per_segment = (uint32_t)quotient_up(elements, s->segments);
        own.by_plane = wd_fastdiv_of((uint32_t)s->inner);
    }
    WD_TRY(wd_emit_kernel(queue, row_of(call, step, s), blocks, threads, 0, &own));
    return wd_emit_kernel(queue, &kernel_rows[finish], quotient_up(s->params, WARPS), BN_THREADS, 0,
                          &own);
}

/* The walk that writes. */
static cudnnStatus_t emit_walk(const struct wd_call *call, struct wd_queue *queue,
                               const struct step *step, const struct shape *s,
                               const struct bn_vector_args *a)
{
    struct bn_vector_args own = *a;
    int64_t blocks;
    if (!s->columns) {
        blocks = quotient_up(quotient_up(s->total, BN_RUN), BN_THREADS);
        return wd_emit_kernel(queue, row_of(call, step, s), blocks, BN_THREADS, 0, &own);
    }
    own.per_segment = s->tile_rows * WALK_ROWS;
    if (quotient_up(s->units, own.per_segment) * s->tiles < queue->device->multiprocessors * 2) {
        own.per_segment = s->tile_rows;
    }
    blocks = quotient_up(s->units, own.per_segment) * s->tiles;
    return wd_emit_kernel(queue, row_of(call, step, s), blocks, s->tile_runs * s->tile_rows, 0,
                          &own);
}

static cudnnStatus_t emit_training(const struct wd_call *call, struct wd_queue *queue)
{
    struct shape s = shape_of(&call->problem);
    struct bn_vector_args a = args_of(call, &s, queue->device);
    a.aligned = is_aligned(call, 1u << TRAIN_X | 1u << TRAIN_Z | 1u << TRAIN_Y);
    a.z = wd_call_data(call, TRAIN_Z);
    a.y = wd_call_data(call, TRAIN_Y);
    a.reserve = wd_call_data(call, TRAIN_RESERVE);
    a.scale = param_of(call, TRAIN_SCALE);
    a.bias = param_of(call, TRAIN_BIAS);
    a.mean = param_of(call, TRAIN_SAVED_MEAN);
    a.var = param_of(call, TRAIN_SAVED_INV_STD);
    a.running_mean = param_of(call, TRAIN_RUNNING_MEAN);
    a.running_var = param_of(call, TRAIN_RUNNING_VAR);
    a.factor = call->scalars[FACTOR];
    a.alpha = (float)call->scalars[ALPHA];
    a.beta = (float)call->scalars[BETA];
    WD_TRY(emit_sums(call, queue, &stats, KERNEL_bn_stats_finish, &s, &a));
    return emit_walk(call, queue, &apply, &s, &a);
}

static cudnnStatus_t emit_inference(const struct wd_call *call, struct wd_queue *queue)
{
    struct shape s = shape_of(&call->problem);
    struct bn_vector_args a = args_of(call, &s, queue->device);
    a.aligned = is_aligned(call, 1u << INFER_X | 1u << INFER_Z | 1u << INFER_Y);
    a.numbers = NULL;
    a.z = wd_call_data(call, INFER_Z);
    a.y = wd_call_data(call, INFER_Y);
    a.scale = param_of(call, INFER_SCALE);
    a.bias = param_of(call, INFER_BIAS);
    a.mean = param_of(call, INFER_MEAN);
    a.var = param_of(call, INFER_VAR);
    a.alpha = (float)call->scalars[ALPHA];
    a.beta = (float)call->scalars[BETA];
    return emit_walk(call, queue, &apply, &s, &a);
}

static cudnnStatus_t emit_backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct shape s = shape_of(&call->problem);
    struct bn_vector_args a = args_of(call, &s, queue->device);
    struct bn_vector_args own;
    a.aligned = is_aligned(call, 1u << GRAD_X | 1u << GRAD_DY | 1u << GRAD_DX | 1u << GRAD_DZ);
    if (!wd_call_tensor(call, GRAD_SAVED_MEAN)) {
        own = a;
        WD_TRY(emit_sums(call, queue, &stats, KERNEL_bn_stats_finish, &s, &own));
    }
    a.dy = wd_call_data(call, GRAD_DY);
    a.y = wd_call_data(call, GRAD_DX);
    a.dz = wd_call_data(call, GRAD_DZ);
    a.reserve = wd_call_data(call, GRAD_RESERVE);
    a.scale = param_of(call, GRAD_SCALE);
    a.mean = param_of(call, GRAD_SAVED_MEAN);
    a.var = param_of(call, GRAD_SAVED_INV_STD);
    a.dscale = param_of(call, GRAD_DSCALE);
    a.dbias = param_of(call, GRAD_DBIAS);
    a.alpha = (float)call->scalars[ALPHA_DATA];
    a.beta = (float)call->scalars[BETA_DATA];
    a.alpha_param = call->scalars[ALPHA_PARAM];
    a.beta_param = call->scalars[BETA_PARAM];
    WD_TRY(emit_sums(call, queue, &sums, KERNEL_bn_sums_finish, &s, &a));
    return emit_walk(call, queue, &grad, &s, &a);
}

const struct wd_engine wd_engine_bn_training_vector = {
    .name = "bn_training_vector",
    .op = WD_OP_BN_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match_training,
    .workspace = workspace,
    .emit = emit_training,
};

const struct wd_engine wd_engine_bn_inference_vector = {
    .name = "bn_inference_vector",
    .op = WD_OP_BN_INFERENCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match_inference,
    .emit = emit_inference,
};

const struct wd_engine wd_engine_bn_backward_vector = {
    .name = "bn_backward_vector",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match_backward,
    .workspace = workspace,
    .emit = emit_backward,
};
