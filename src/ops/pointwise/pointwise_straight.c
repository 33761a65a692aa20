/* SPDX-License-Identifier: Apache-2.0
 *
 * See pointwise_straight.h. No state. */
#include "ops/pointwise/pointwise_straight.h"

#include <string.h>

#include "base/sizes.h"

enum {
    THREADS = 256,
    THREADS_FEW = 64, /* where there are not enough runs to go round */
    LOAD = 16,        /* bytes: a run */
};

enum { END = -1 };

/* What the frequent chains do. */
static const int frequent[STRAIGHT_KINDS][3] = {
    [STRAIGHT_SWISH_MUL] = {CHAIN_OP_CUDNN_POINTWISE_SWISH_FWD, CHAIN_OP_CUDNN_POINTWISE_MUL, END},
    [STRAIGHT_GELU_MUL] = {CHAIN_OP_CUDNN_POINTWISE_GELU_FWD, CHAIN_OP_CUDNN_POINTWISE_MUL, END},
    [STRAIGHT_MUL] = {CHAIN_OP_CUDNN_POINTWISE_MUL, END},
    [STRAIGHT_ADD] = {CHAIN_OP_CUDNN_POINTWISE_ADD, END},
    [STRAIGHT_ADD_CLAMP] = {CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_CLAMP, END},
    [STRAIGHT_ADD_GELU] = {CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_OP_CUDNN_POINTWISE_GELU_FWD, END},
    [STRAIGHT_ADD_TANH] = {CHAIN_OP_CUDNN_POINTWISE_ADD,
                           CHAIN_OP_CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, END},
    [STRAIGHT_ADD_SWISH] = {CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_OP_CUDNN_POINTWISE_SWISH_FWD, END},
    [STRAIGHT_MUL_ADD] = {CHAIN_OP_CUDNN_POINTWISE_MUL, CHAIN_OP_CUDNN_POINTWISE_ADD, END},
    [STRAIGHT_MUL_ADD_CLAMP] = {CHAIN_OP_CUDNN_POINTWISE_MUL, CHAIN_OP_CUDNN_POINTWISE_ADD,
                                CHAIN_CLAMP},
    [STRAIGHT_ADD_ADD_CLAMP] = {CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_OP_CUDNN_POINTWISE_ADD,
                                CHAIN_CLAMP},
};

/* What goes along while the steps are made. */
struct making {
    struct pointwise_straight_args *args;
    const struct pointwise_program *program;
    const struct wd_joined *walk;
    const struct pointwise_operand *operands;
    int count; /* operands that are used */
};

static bool commutes(int op)
{
    return op == CHAIN_OP_CUDNN_POINTWISE_ADD || op == CHAIN_OP_CUDNN_POINTWISE_MUL;
}

static bool is_input(int source)
{
    return source >= CHAIN_INPUT;
}

static const struct pointwise_operand *input_of(const struct making *m, int source)
{
    return &m->operands[source - CHAIN_INPUT];
}

/* How an operand that is no whole tensor repeats along the walk, with the stride from row to row. */
static enum straight_repeat repeat_of(const struct wd_joined *walk, int slot, int32_t *stride)
{
    const int64_t *s = walk->stride[slot];
    int last = walk->rank - 1;
    *stride = 0;
    if (walk->rank == 1) return s[0] == 0 ? STRAIGHT_ROWS : STRAIGHT_NONE;
    if (s[last] == 1 && walk->rank == 2 && s[0] == 0) return STRAIGHT_ALONG;
    if (s[last] != 0 || walk->rank > 3 || (walk->rank == 3 && s[0] != 0)) return STRAIGHT_NONE;
    *stride = (int32_t)s[last - 1];
    return STRAIGHT_ROWS;
}

/* Takes an input as the next operand; false where it does not lie as the kernels can follow. */
static bool add_operand(struct making *m, int source)
{
    struct pointwise_straight_args *args = m->args;
    const struct pointwise_operand *o = input_of(m, source);
    struct straight_operand *to = &args->operand[m->count];
    enum straight_repeat repeat;
    if (m->count == STRAIGHT_OPERANDS) return false;
    m->count += 1;
    *to = (struct straight_operand){.data = o->data, .value = (float)o->value};
    if (!o->data || o->way == POINTWISE_FLAT) return true;
    repeat = repeat_of(m->walk, source - CHAIN_INPUT, &to->stride);
    if (repeat == STRAIGHT_NONE) return false;
    if (args->repeat != STRAIGHT_NONE && args->repeat != (int32_t)repeat) return false;
    args->repeat = (int32_t)repeat;
    to->repeats = 1;
    return true;
}

static bool add_step(struct making *m, int i)
{
    const struct pointwise_instruction *in = &m->program->instruction[i];
    struct straight_step *step = &m->args->step[i];
    int last = m->program->length - 1;
    int source = in->b;
    if (in->t != CHAIN_NOTHING || in->keep || (in->write != 0) != (i == last)) return false;
    *step = (struct straight_step){
        .op = in->op, .round = in->round, .scales = in->scales, .propagate_nan = in->propagate_nan};
    memcpy(step->factor, in->factor.f32, sizeof step->factor);
    if (i == 0) {
        bool second = is_input(in->x) && input_of(m, in->x)->way != POINTWISE_FLAT;
        if (!is_input(in->x) || (in->b != CHAIN_NOTHING && !is_input(in->b))) return false;
        if (second && in->b == CHAIN_NOTHING) return false;
        if (second) source = in->x;
        step->swapped = second;
        if (input_of(m, second ? in->b : in->x)->way != POINTWISE_FLAT) return false;
        m->args->x = input_of(m, second ? in->b : in->x)->data;
    } else if (in->x == CHAIN_RESULT) {
        if (in->b != CHAIN_NOTHING && !is_input(in->b)) return false;
    } else {
        if (!is_input(in->x) || in->b != CHAIN_RESULT) return false;
        step->swapped = 1;
        source = in->x;
    }
    if (source != CHAIN_NOTHING) {
        if (!add_operand(m, source)) return false;
        step->operand = (uint8_t)m->count;
    }
    if (step->swapped) {
        float first = step->factor[CHAIN_ALPHA1];
        step->factor[CHAIN_ALPHA1] = step->factor[CHAIN_ALPHA2];
        step->factor[CHAIN_ALPHA2] = first;
        step->swapped = !commutes(in->op);
    }
    return true;
}

/* Whether the steps are those of a frequent chain, which keeps the order of its operands, and leaves
 * results as they are or makes them elements of its tensors' type. */
static bool is_kind(const struct making *m, int kind, int dtype)
{
    const struct pointwise_straight_args *args = m->args;
    int own = dtype == CUDNN_DATA_HALF ? CHAIN_TO_F16 : CHAIN_TO_BF16;
    for (int i = 0; i < 3; ++i) {
        const struct straight_step *step = &args->step[i];
        if (i == args->length) return frequent[kind][i] == END;
        if (frequent[kind][i] != step->op || step->swapped) return false;
        if (step->round == CHAIN_AS_IS) continue;
        if (dtype == CUDNN_DATA_FLOAT || step->round != own) return false;
    }
    return args->length == 3;
}

/* What is left when the steps are there. */
static bool end(const struct making *m, const struct pointwise_operand *y)
{
    struct pointwise_straight_args *args = m->args;
    const struct wd_joined *walk = m->walk;
    int last = walk->rank - 1;
    args->y = y->data;
    args->row = wd_fastdiv_of((uint32_t)walk->dim[last]);
    args->period = wd_fastdiv_of(last > 0 ? (uint32_t)walk->dim[last - 1] : 1);
    /* a run lies in two rows at most */
    if (args->repeat == STRAIGHT_ROWS && walk->dim[last] < LOAD / wd_dtype_bytes(y->dtype)) {
        return false;
    }
    args->kind = 0;
    while (args->kind < STRAIGHT_KINDS && !is_kind(m, args->kind, y->dtype)) ++args->kind;
    return args->kind < STRAIGHT_KINDS || m->count <= 1;
}

bool wd_straight_make(struct pointwise_straight_args *args, const struct pointwise_program *program,
                      const struct wd_joined *walk, const struct pointwise_operand *operands)
{
    struct making m = {
        .args = args, .program = program, .walk = walk, .operands = operands, .count = 0};
    const struct pointwise_operand *y = &operands[program->inputs];
    memset(args, 0, sizeof *args);
    if (program->acc != WD_ACC_F32 || program->dtype < 0 || program->outputs != 1 ||
        program->length > STRAIGHT_STEPS || y->way != POINTWISE_FLAT) {
        return false;
    }
    for (int i = 0; i < program->length; ++i) {
        if (!add_step(&m, i)) return false;
    }
    args->length = program->length;
    return end(&m, y);
}

bool wd_straight_make_single(struct pointwise_straight_args *args,
                             const struct pointwise_vector_args *how, const struct wd_joined *walk,
                             const struct pointwise_operand *operands)
{
    struct making m = {.args = args, .walk = walk, .operands = operands, .count = 0};
    const struct wd_pointwise_attr *attr = &how->attr;
    const struct pointwise_operand *y = &operands[POINTWISE_Y];
    bool binary = wd_pointwise_operands(attr->mode) > 1;
    bool second = binary && operands[POINTWISE_X].way != POINTWISE_FLAT;
    int x = second ? POINTWISE_B : POINTWISE_X;
    int b = second ? POINTWISE_X : POINTWISE_B;
    int op = wd_pointwise_op(attr, how->by_output);
    struct straight_step *step = &args->step[0];
    memset(args, 0, sizeof *args);
    if (op < 0 || op == CHAIN_SELECT || !how->plain || y->way != POINTWISE_FLAT ||
        operands[x].way != POINTWISE_FLAT) {
        return false;
    }
    args->x = operands[x].data;
    args->length = 1;
    *step = (struct straight_step){.op = (uint8_t)op, .propagate_nan = attr->propagate_nan};
    step->swapped = second && !commutes(op);
    step->factor[CHAIN_ALPHA1] = (float)operands[x].factor;
    step->factor[CHAIN_LOWER_CLIP] = (float)attr->lower_clip;
    step->factor[CHAIN_UPPER_CLIP] = (float)attr->upper_clip;
    step->factor[CHAIN_LOWER_SLOPE] = (float)attr->lower_slope;
    step->factor[CHAIN_ELU_ALPHA] = (float)attr->elu_alpha;
    step->factor[CHAIN_SOFTPLUS_BETA] = (float)attr->softplus_beta;
    step->factor[CHAIN_SWISH_BETA] = (float)attr->swish_beta;
    if (binary) {
        if (!add_operand(&m, CHAIN_INPUT + b)) return false;
        step->operand = 1;
        step->factor[CHAIN_ALPHA2] = (float)operands[b].factor;
    }
    step->scales = operands[x].factor != 1.0 || (binary && operands[b].factor != 1.0);
    return end(&m, y);
}

cudnnStatus_t wd_straight_emit(struct wd_queue *queue, const struct straight_kernels *kernels,
                               struct pointwise_straight_args *args, uint32_t count, uint32_t skip,
                               bool streaming)
{
    int row = args->kind < STRAIGHT_ONE     ? STRAIGHT_ROW_ONE
              : args->kind < STRAIGHT_KINDS ? STRAIGHT_ROW_TWO
                                            : STRAIGHT_ROW_ANY;
    int64_t threads = THREADS;
    int64_t run;
    args->count = count;
    args->skip = skip;
    args->streaming = streaming;
    if (count < threads * kernels->runs[row] * kernels->chunk * queue->device->multiprocessors) {
        threads = THREADS_FEW;
        if (row == STRAIGHT_ROW_ONE) row = STRAIGHT_ROW_LITTLE;
    }
    args->runs = row == STRAIGHT_ROW_ANY && threads == THREADS_FEW ? 1 : kernels->runs[row];
    run = (int64_t)args->runs * kernels->chunk;
    return wd_emit_kernel(queue, &kernels->rows[row], wd_ceil_div(count, threads * run),
                          (uint32_t)threads, 0, args);
}
