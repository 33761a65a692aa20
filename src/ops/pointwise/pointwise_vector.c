/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the GPU at the speed of memory, for tensors of any strides in types of whole bytes:
 * kernels for fp32, fp16 and bf16 throughout, others for any mixture. Operands that lie as y does are
 * read 16 bytes at a time, repeated ones once a run. Walks of 2^31 elements and more are split. */
#include "ops/engine.h"
#include "ops/joined.h"
#include "ops/pointwise/pointwise_vector_args.h"

#define WD_KERNELS_MODULE pointwise_vector
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { ALPHA1, ALPHA2, ALPHA, BETA };

enum {
    THREADS = 256,
    THREADS_FEW = 64,   /* where there are not enough runs to go round */
    WALK_MAX = 1 << 30, /* elements of a launch */
    ALIGNMENT = 16,
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

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
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

/* The kernel for the types, and how many elements one of its threads has. */
static struct wd_kernel_row *choose(const struct wd_problem *problem, int *run)
{
    static const struct {
        int dtype;
        int first;
    } typed[] = {
        {CUDNN_DATA_FLOAT, KERNEL_pointwise_vector_f32_1},
        {CUDNN_DATA_HALF, KERNEL_pointwise_vector_f16_1},
        {CUDNN_DATA_BFLOAT16, KERNEL_pointwise_vector_bf16_1},
    };
    int dtype = wd_slot(problem->graph, problem->node, POINTWISE_Y)->dtype;
    int mode = problem->node->attr.pointwise.mode;
    int inputs = wd_pointwise_operands(mode);
    bool same = true;
    *run = 8;
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, s);
        if (!tensor || (tensor->flags & WD_BY_VALUE) || !reads(problem, s)) continue;
        same = same && tensor->dtype == dtype;
    }
    switch (mode) {
#define WD_RARE_UNARY(rare) case rare:
#define WD_RARE_BINARY(rare) case rare:
#include "ops/pointwise/pointwise_modes.def"
        same = false;
        break;
    default: break;
    }
    for (size_t i = 0; i < sizeof typed / sizeof *typed && same; ++i) {
        if (typed[i].dtype == dtype && wd_problem_acc(problem) == WD_ACC_F32) {
            /* two loads of 16 bytes, where there is but one input to read */
            if (inputs == 1 && dtype != CUDNN_DATA_FLOAT) *run = 16;
            return &kernel_rows[typed[i].first + inputs - 1];
        }
    }
    *run = 4;
    return &kernel_rows[wd_problem_acc(problem) == WD_ACC_F64 ? KERNEL_pointwise_vector_any_f64
                                                              : KERNEL_pointwise_vector_any_f32];
}

/* How an operand of a walk follows runs of `run` elements. */
static enum pointwise_way way_of(const struct wd_joined *walk, const struct pointwise_operand *o,
                                 int slot, int run)
{
    int last = walk->rank - 1;
    int64_t bytes = wd_dtype_bits(o->dtype) / 8;
    int64_t load = run * bytes < ALIGNMENT ? run * bytes : ALIGNMENT;
    bool aligned = (uintptr_t)o->data % (uintptr_t)load == 0;
    if (!o->data) return POINTWISE_VALUE;
    if (aligned && wd_joined_is_flat(walk, slot)) return POINTWISE_FLAT;
    if (walk->dim[last] % run != 0) return POINTWISE_STRAY;
    if (walk->stride[slot][last] == 0 && slot != POINTWISE_Y) return POINTWISE_REPEAT;
    for (int d = 0; d < last; ++d) {
        aligned = aligned && walk->stride[slot][d] * bytes % load == 0;
    }
    return aligned && walk->stride[slot][last] == 1 ? POINTWISE_ALONG : POINTWISE_STRAY;
}

static cudnnStatus_t launch(struct wd_queue *queue, struct wd_kernel_row *row, int run,
                            struct wd_joined *walk, struct pointwise_vector_args *args)
{
    int64_t runs;
    uint32_t threads = THREADS;
    args->count = (uint32_t)walk->count;
    args->rank = walk->rank;
    for (int d = 0; d < walk->rank; ++d) args->dim[d] = wd_fastdiv_of((uint32_t)walk->dim[d]);
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        struct pointwise_operand *o = &args->operand[s];
        o->way = way_of(walk, o, s, run);
        for (int d = 0; d < walk->rank; ++d) o->stride[d] = (int32_t)walk->stride[s][d];
    }
    runs = (walk->count + run - 1) / run;
    if (runs < (int64_t)THREADS * queue->device->multiprocessors) threads = THREADS_FEW;
    return wd_emit_kernel(queue, row, (runs + threads - 1) / threads, threads, 0, args);
}

/* Pieces of the outermost dimension until each is a walk of one launch. */
static cudnnStatus_t split(struct wd_queue *queue, struct wd_kernel_row *row, int run,
                           const struct wd_joined *walk, const struct pointwise_vector_args *args)
{
    struct wd_joined piece = *walk;
    struct pointwise_vector_args own = *args;
    int64_t inner = walk->count / walk->dim[0];
    int64_t step = inner <= WALK_MAX ? WALK_MAX / inner : 1;
    if (walk->count <= WALK_MAX) return launch(queue, row, run, &piece, &own);
    for (int64_t first = 0; first < walk->dim[0]; first += step) {
        piece.dim[0] = walk->dim[0] - first < step ? walk->dim[0] - first : step;
        piece.count = piece.dim[0] * inner;
        for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
            const struct pointwise_operand *o = &args->operand[s];
            int64_t bytes = wd_dtype_bits(o->dtype) / 8;
            if (o->data) {
                own.operand[s].data = (unsigned char *)o->data + first * walk->stride[s][0] * bytes;
            }
        }
        if (inner > WALK_MAX) {
            struct wd_joined rest = piece;
            rest.rank -= 1;
            for (int d = 0; d < rest.rank; ++d) {
                rest.dim[d] = piece.dim[d + 1];
                for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
                    rest.stride[s][d] = piece.stride[s][d + 1];
                }
            }
            WD_TRY(split(queue, row, run, &rest, &own));
        } else {
            struct wd_joined whole = piece;
            WD_TRY(launch(queue, row, run, &whole, &own));
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    static const int factor[] = {ALPHA1, ALPHA2, -1, BETA};
    const struct wd_problem *problem = &call->problem;
    struct pointwise_vector_args args = {
        .alpha = call->scalars[ALPHA],
        .attr = problem->node->attr.pointwise,
        .by_output = by_output(problem),
    };
    struct wd_view view[POINTWISE_OPERANDS];
    const struct wd_view *views[POINTWISE_OPERANDS];
    struct wd_joined walk;
    int run;
    struct wd_kernel_row *row = choose(problem, &run);
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        int slot = s == POINTWISE_X && args.by_output ? POINTWISE_T : s;
        struct pointwise_operand *o = &args.operand[s];
        if (reads(problem, slot)) view[s] = wd_call_view(call, slot);
        else view[s] = (struct wd_view){.vect_count = 1};
        if (s == POINTWISE_T && args.by_output) view[s] = (struct wd_view){.vect_count = 1};
        views[s] = &view[s];
        o->data = view[s].data;
        o->value = view[s].value;
        o->dtype = view[s].dtype;
        o->factor = slot == POINTWISE_T ? 1.0 : call->scalars[factor[s]];
    }
    if (wd_view_count(&view[POINTWISE_Y]) == 0) return CUDNN_STATUS_SUCCESS;
    wd_join(&walk, views, POINTWISE_OPERANDS, POINTWISE_Y);
    args.streaming = wd_tensor_extent(wd_call_tensor(call, POINTWISE_Y)) > queue->device->l2_bytes;
    return split(queue, row, run, &walk, &args);
}

const struct wd_engine wd_engine_pointwise_vector = {
    .name = "pointwise_vector",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
