/* SPDX-License-Identifier: Apache-2.0
 *
 * See pointwise_gpu.h. No state. */
#include "ops/pointwise/pointwise_gpu.h"

#include "ops/joined.h"
#include "ops/pointwise/pointwise_vector_args.h"

enum { ALPHA1, ALPHA2, ALPHA, BETA };

enum {
    THREADS = 256,
    THREADS_FEW = 64,        /* where there are not enough runs to go round */
    WALK_MAX = 1 << 30,      /* elements of a launch */
    BLOCKS_A_PROCESSOR = 64, /* with more, threads take several runs: a block takes time to begin */
    RUNS_A_THREAD = 4,
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
    default: return wd_problem_acc(problem) == WD_ACC_F32 ? dtype : -1;
    }
}

bool wd_pointwise_gpu_fills(const struct wd_call *call)
{
    const struct wd_tensor *x = wd_call_tensor(call, POINTWISE_X);
    return call->problem.node->attr.pointwise.mode == CUDNN_POINTWISE_IDENTITY &&
           (x->flags & WD_BY_VALUE) && call->scalars[BETA] == 0.0;
}

/* Of whole bytes, as match has seen. */
static int64_t element_bytes(const struct pointwise_operand *o)
{
    int bits = wd_dtype_bits(o->dtype);
    return bits < 8 ? 1 : bits / 8;
}

/* Bytes that a thread loads at once of a run. */
static int64_t load_bytes(const struct pointwise_operand *o, int run)
{
    int64_t bytes = run * element_bytes(o);
    return bytes > 0 && bytes < ALIGNMENT ? bytes : ALIGNMENT;
}

/* How many elements y begins behind a whole load, where it lies as the index counts and all tensors
 * that do so begin as far behind; else 0. */
static uint32_t skip_of(const struct wd_joined *walk, const struct pointwise_vector_args *args,
                        int run)
{
    int64_t skip = -1;
    if (!wd_joined_is_flat(walk, POINTWISE_Y)) return 0;
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        const struct pointwise_operand *o = &args->operand[s];
        int64_t own;
        if (!o->data || !wd_joined_is_flat(walk, s)) continue;
        own = (int64_t)((uintptr_t)o->data % (uintptr_t)load_bytes(o, run)) / element_bytes(o);
        if (skip >= 0 && own != skip) return 0;
        skip = own;
    }
    return skip > 0 ? (uint32_t)skip : 0;
}

/* How an operand of a walk follows runs of `run` elements. */
static enum pointwise_way way_of(const struct wd_joined *walk, const struct pointwise_operand *o,
                                 int slot, int run)
{
    int last = walk->rank - 1;
    int64_t bytes = element_bytes(o);
    int64_t load = load_bytes(o, run);
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
    int64_t blocks;
    int64_t most;
    uint32_t threads = THREADS;
    args->skip = skip_of(walk, args, run);
    args->count = (uint32_t)walk->count + args->skip;
    args->rank = walk->rank;
    for (int d = 0; d < walk->rank; ++d) args->dim[d] = wd_fastdiv_of((uint32_t)walk->dim[d]);
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        struct pointwise_operand *o = &args->operand[s];
        if (o->data && wd_joined_is_flat(walk, s)) {
            o->data = (char *)o->data - args->skip * element_bytes(o);
        }
        o->way = way_of(walk, o, s, run);
        if (args->skip > 0 && o->data && o->way != POINTWISE_FLAT) o->way = POINTWISE_STRAY;
        for (int d = 0; d < walk->rank; ++d) o->stride[d] = (int32_t)walk->stride[s][d];
    }
    runs = ((int64_t)args->count + run - 1) / run;
    if (runs < (int64_t)THREADS * queue->device->multiprocessors) threads = THREADS_FEW;
    blocks = (runs + threads - 1) / threads;
    most = (int64_t)queue->device->multiprocessors * BLOCKS_A_PROCESSOR;
    if (blocks > most) blocks = (blocks + RUNS_A_THREAD - 1) / RUNS_A_THREAD;
    return wd_emit_kernel(queue, row, blocks, threads, 0, args);
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
            int64_t bytes = element_bytes(o);
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

static bool is_flat(const struct wd_joined *walk, const struct pointwise_vector_args *args)
{
    for (int s = 0; s < POINTWISE_OPERANDS; ++s) {
        const struct pointwise_operand *o = &args->operand[s];
        if (!o->data) continue;
        if ((uintptr_t)o->data % ALIGNMENT != 0 || !wd_joined_is_flat(walk, s)) return false;
    }
    return true;
}

cudnnStatus_t wd_pointwise_gpu_emit(const struct wd_call *call, struct wd_queue *queue,
                                    struct wd_pointwise_kernel kernel,
                                    const struct wd_pointwise_kernel *flat)
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
    if (flat && is_flat(&walk, &args)) kernel = *flat;
    return split(queue, kernel.row, kernel.run, &walk, &args);
}
