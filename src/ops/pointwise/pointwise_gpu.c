/* SPDX-License-Identifier: Apache-2.0
 *
 * See pointwise_gpu.h. No state. */
#include "ops/pointwise/pointwise_gpu.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/pointwise/pointwise_walk.h"

enum { ALPHA1, ALPHA2, ALPHA, BETA };

enum {
    THREADS = 256,
    THREADS_FEW = 64,        /* where there are not enough runs to go round */
    BLOCKS_A_PROCESSOR = 64, /* with more, threads take several runs: a block takes time to begin */
    RUNS_A_THREAD = 4,
    ALIGNMENT = 16,
    COPY_BYTES =
        16 << 20, /* from here on the driver copies as fast, and less takes it longer to begin */
};

static const char *const names[] = {"x", "b", "t", "y"};

/* tanh, sigmoid and elu need nothing but dy where their output is at hand. */
static bool by_output(const struct wd_problem *problem)
{
    switch (problem->node->attr.pointwise.mode) {
    case CUDNN_POINTWISE_TANH_BWD:
    case CUDNN_POINTWISE_SIGMOID_BWD:
    case CUDNN_POINTWISE_ELU_BWD:
        return wd_slot(problem->graph, problem->node, POINTWISE_T) != NULL;
    default: return false;
    }
}

/* Whether the mode reads the operand. */
static bool reads(const struct wd_problem *problem, int slot)
{
    int mode = problem->node->attr.pointwise.mode;
    switch (slot) {
    case POINTWISE_X: return !by_output(problem);
    case POINTWISE_B: return wd_pointwise_operands(mode) > 1;
    case POINTWISE_T: return by_output(problem) || mode == CUDNN_POINTWISE_BINARY_SELECT;
    default: return true;
    }
}

bool wd_pointwise_gpu_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    WD_NEED(problem->node->attr.pointwise.mode != CUDNN_POINTWISE_GEN_INDEX, reason, NOT_SUPPORTED,
            "GEN_INDEX reads no operand");
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, s);
        if (!tensor || (tensor->flags & WD_BY_VALUE) || !reads(problem, s)) continue;
        WD_NEED(wd_dtype_bits(tensor->dtype) >= 8, reason, NOT_SUPPORTED_DATA_TYPE,
                "elements of %s are %s, not whole bytes", names[s], wd_dtype_name(tensor->dtype));
        WD_NEED(tensor->dtype != CUDNN_DATA_COMPLEX_FP32 &&
                    tensor->dtype != CUDNN_DATA_COMPLEX_FP64,
                reason, NOT_SUPPORTED_DATA_TYPE, "elements of %s are complex", names[s]);
        WD_NEED(tensor->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
                "%s is vectorised, %d lanes a unit", names[s], tensor->vect_count);
        for (int d = 0; d < tensor->rank; ++d) {
            WD_NEED(tensor->dim[d] == 1 || tensor->stride[d] <= INT32_MAX, reason,
                    NOT_SUPPORTED_SHAPE, "stride %lld of %s is beyond 2^31",
                    (long long)tensor->stride[d], names[s]);
        }
    }
    return true;
}

/* Whether a slot has memory that the mode reads or writes. */
static const struct wd_tensor *used(const struct wd_problem *problem, int slot)
{
    const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, slot);
    if (!tensor || (tensor->flags & WD_BY_VALUE) || !reads(problem, slot)) return NULL;
    return tensor;
}

int wd_pointwise_gpu_type(const struct wd_problem *problem)
{
    int dtype = wd_slot(problem->graph, problem->node, POINTWISE_Y)->dtype;
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        const struct wd_tensor *tensor = used(problem, s);
        if (tensor && tensor->dtype != dtype) return -1;
    }
    switch (problem->node->attr.pointwise.mode) {
#define WD_RARE_UNARY(rare) case rare:
#define WD_RARE_BINARY(rare) case rare:
#include "ops/pointwise/pointwise_modes.def"
        return -1;
    default:
        return wd_problem_acc(problem) == (dtype == CUDNN_DATA_DOUBLE ? WD_ACC_F64 : WD_ACC_F32)
                   ? dtype
                   : -1;
    }
}

/* What every launch of a call has in common. */
struct launching {
    struct wd_queue *queue;
    const struct wd_problem *problem;
    const struct wd_pointwise_kernels *kernels;
    struct pointwise_vector_args args;
    bool fills; /* one number everywhere */
};

/* Whether the mode has a kernel of pointwise_flat.cuh. */
static bool is_frequent(const struct pointwise_vector_args *args)
{
    switch (args->attr.mode) {
#define WD_FLAT_UNARY(mode) case mode:
#define WD_FLAT_BINARY(mode) case mode:
#include "ops/pointwise/pointwise_flat_modes.def"
        return !args->by_output;
#define WD_FLAT_BY_OUTPUT(mode) case mode:
#include "ops/pointwise/pointwise_flat_modes.def"
        return args->by_output;
    default: return false;
    }
}

/* Whether a kernel serves that knows no other way than POINTWISE_FLAT. */
static bool is_flat(const struct wd_joined *walk, const struct pointwise_operand *operands,
                    const struct pointwise_vector_args *args)
{
    uintptr_t off = (uintptr_t)operands[POINTWISE_Y].data % ALIGNMENT;
    int inputs = wd_pointwise_operands(args->attr.mode);
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        const struct pointwise_operand *o = &operands[s];
        bool is_used = s == POINTWISE_Y || s < inputs;
        if (!is_used) continue;
        if (!o->data || (uintptr_t)o->data % ALIGNMENT != off || !wd_joined_is_flat(walk, s)) {
            return false;
        }
    }
    return off % (uintptr_t)wd_pointwise_element_bytes(&operands[POINTWISE_Y]) == 0;
}

/* Fewer blocks, whose threads take several runs, where there are many. */
static int64_t few(int64_t blocks, int64_t processors)
{
    return blocks > processors * BLOCKS_A_PROCESSOR ? wd_ceil_div(blocks, RUNS_A_THREAD) : blocks;
}

/* The number as the type has it, in whole loads. */
static cudnnStatus_t fill(const struct launching *l, const struct wd_joined *walk,
                          const struct pointwise_operand *operands)
{
    const struct pointwise_operand *x = &operands[POINTWISE_X];
    const struct pointwise_operand *y = &operands[POINTWISE_Y];
    int64_t size = wd_pointwise_element_bytes(y);
    int64_t bytes = walk->count * size;
    int64_t before = wd_least((int64_t)(-(uintptr_t)y->data % ALIGNMENT), bytes);
    int64_t threads = THREADS_FEW;
    int64_t blocks;
    struct pointwise_fill_args args = {
        .y = (char *)y->data + before,
        .loads = (uint32_t)((bytes - before) / ALIGNMENT),
        .before = (uint32_t)before,
        .behind = (uint32_t)((bytes - before) % ALIGNMENT),
        .streaming = l->args.streaming,
    };
    for (int i = 0; i < ALIGNMENT / size; ++i) {
        if (wd_problem_acc(l->problem) == WD_ACC_F64) {
            double value = x->factor * x->value;
            if (l->args.alpha != 1.0) value = l->args.alpha != 0.0 ? l->args.alpha * value : 0.0;
            wd_store_f64(args.pattern, y->dtype, i, value);
        } else {
            float value = (float)x->factor * (float)x->value;
            if (l->args.alpha != 1.0) {
                value = l->args.alpha != 0.0 ? (float)l->args.alpha * value : 0.0F;
            }
            wd_store_f32(args.pattern, y->dtype, i, value);
        }
    }
    if (args.loads >= THREADS * (uint32_t)l->queue->device->multiprocessors) threads = THREADS;
    blocks = few(wd_ceil_div(args.loads, threads), l->queue->device->multiprocessors);
    return wd_emit_kernel(l->queue, wd_pointwise_fill(), blocks > 0 ? blocks : 1, (uint32_t)threads,
                          0, &args);
}

static cudnnStatus_t launch(void *context, const struct wd_joined *walk,
                            const struct pointwise_operand *operands)
{
    struct launching *l = context;
    struct pointwise_vector_args *args = &l->args;
    const struct wd_pointwise_kernels *kernels = l->kernels;
    const struct wd_pointwise_kernel *kernel = &kernels->any;
    int64_t processors = l->queue->device->multiprocessors;
    int64_t threads = THREADS;
    int64_t runs;
    int64_t blocks;
    if (l->fills && wd_joined_is_flat(walk, POINTWISE_Y) &&
        (uintptr_t)operands[POINTWISE_Y].data %
                (uintptr_t)wd_pointwise_element_bytes(&operands[POINTWISE_Y]) ==
            0) {
        return fill(l, walk, operands);
    }
    if (kernels->flat[0].row && is_frequent(args) && is_flat(walk, operands, args)) {
        int inputs = wd_pointwise_operands(args->attr.mode);
        const struct wd_pointwise_kernel *little = &kernels->little[inputs - 1];
        kernel = &kernels->flat[inputs - 1];
        if (little->row && walk->count < processors * THREADS * kernel->run * kernel->runs) {
            kernel = little;
        }
    } else if (kernels->straight.rows) {
        struct pointwise_straight_args straight;
        memcpy(args->operand, operands, sizeof args->operand);
        args->skip = wd_pointwise_follow(walk, args->operand, POINTWISE_OPERANDS, POINTWISE_Y,
                                         kernels->straight.chunk);
        if (wd_straight_make_single(&straight, args, walk, args->operand)) {
            return wd_straight_emit(l->queue, &kernels->straight, &straight,
                                    (uint32_t)walk->count + args->skip, args->skip,
                                    args->streaming);
        }
    }
    memcpy(args->operand, operands, sizeof args->operand);
    args->skip =
        wd_pointwise_follow(walk, args->operand, POINTWISE_OPERANDS, POINTWISE_Y, kernel->run);
    args->count = (uint32_t)walk->count + args->skip;
    args->rank = walk->rank;
    for (int d = 0; d < walk->rank; ++d) args->dim[d] = wd_fastdiv_of((uint32_t)walk->dim[d]);
    runs = wd_ceil_div(args->count, kernel->run);
    if (kernel->runs > 0) {
        if (runs < threads * processors) threads = THREADS_FEW;
        blocks = wd_ceil_div(runs, threads * kernel->runs);
    } else {
        if (runs < threads * processors) threads = THREADS_FEW;
        blocks = few(wd_ceil_div(runs, threads), processors);
    }
    return wd_emit_kernel(l->queue, kernel->row, blocks, (uint32_t)threads, 0, args);
}

/* Whole copies are the driver's, where it is as fast as a kernel. */
static bool is_copy(const struct wd_joined *walk, const struct pointwise_operand *operands,
                    const struct launching *l)
{
    const struct pointwise_operand *x = &operands[POINTWISE_X];
    const struct pointwise_operand *y = &operands[POINTWISE_Y];
    int64_t bytes = walk->count * wd_pointwise_element_bytes(y);
    return l->args.attr.mode == CUDNN_POINTWISE_IDENTITY && l->args.plain && x->data &&
           x->data != y->data && x->factor == 1.0 && x->dtype == y->dtype &&
           wd_joined_is_flat(walk, POINTWISE_X) && wd_joined_is_flat(walk, POINTWISE_Y) &&
           bytes >= COPY_BYTES && wd_copy_suits(y->data, x->data, bytes);
}

/* Identities that are blended into y are sums. */
static void sum_identity(struct launching *l, struct pointwise_operand *operands,
                         struct wd_view *view)
{
    struct pointwise_operand *x = &operands[POINTWISE_X];
    struct pointwise_operand *y = &operands[POINTWISE_Y];
    double alpha = l->args.alpha;
    if (l->args.attr.mode != CUDNN_POINTWISE_IDENTITY || y->factor == 0.0 || alpha == 0.0) return;
    if (alpha != 1.0 && x->factor != 1.0) return; /* two roundings */
    operands[POINTWISE_B] = *x;
    operands[POINTWISE_B].factor = alpha * x->factor;
    view[POINTWISE_B] = view[POINTWISE_X];
    *x = *y;
    view[POINTWISE_X] = view[POINTWISE_Y];
    y->factor = 0.0;
    l->args.alpha = 1.0;
    l->args.attr.mode = CUDNN_POINTWISE_ADD;
}

cudnnStatus_t wd_pointwise_gpu_emit(const struct wd_call *call, struct wd_queue *queue,
                                    const struct wd_pointwise_kernels *kernels)
{
    static const int factor[] = {ALPHA1, ALPHA2, -1, BETA};
    const struct wd_problem *problem = &call->problem;
    struct launching l = {.queue = queue, .problem = problem, .kernels = kernels};
    struct pointwise_operand operands[POINTWISE_OPERANDS] = {{0}};
    bool has_output = by_output(problem);
    struct wd_view view[POINTWISE_OPERANDS];
    const struct wd_view *views[POINTWISE_OPERANDS];
    struct wd_joined walk;
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        int slot = s == POINTWISE_X && has_output ? POINTWISE_T : s;
        struct pointwise_operand *o = &operands[s];
        if (reads(problem, slot)) view[s] = wd_call_view(call, slot);
        else view[s] = (struct wd_view){.vect_count = 1};
        if (s == POINTWISE_T && has_output) view[s] = (struct wd_view){.vect_count = 1};
        views[s] = &view[s];
        o->data = view[s].data;
        o->value = view[s].value;
        o->dtype = view[s].dtype;
        o->factor = slot == POINTWISE_T ? 1.0 : call->scalars[factor[s]];
    }
    if (wd_view_count(&view[POINTWISE_Y]) == 0) return CUDNN_STATUS_SUCCESS;
    l.args.alpha = call->scalars[ALPHA];
    l.args.attr = problem->node->attr.pointwise;
    l.args.by_output = has_output;
    l.args.streaming =
        wd_tensor_extent(wd_call_tensor(call, POINTWISE_Y)) > queue->device->l2_bytes;
    sum_identity(&l, operands, view);
    l.args.plain = l.args.alpha == 1.0 && operands[POINTWISE_Y].factor == 0.0;
    l.fills = l.args.attr.mode == CUDNN_POINTWISE_IDENTITY && !operands[POINTWISE_X].data &&
              operands[POINTWISE_Y].factor == 0.0;
    wd_join(&walk, views, POINTWISE_OPERANDS, POINTWISE_Y);
    if (is_copy(&walk, operands, &l)) {
        return queue->ops->copy(
            queue, operands[POINTWISE_Y].data, operands[POINTWISE_X].data,
            (size_t)(walk.count * wd_pointwise_element_bytes(&operands[POINTWISE_Y])));
    }
    return wd_pointwise_split(&walk, operands, POINTWISE_OPERANDS, launch, &l);
}
