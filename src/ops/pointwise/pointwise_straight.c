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

/* What the frequent chains do, in the order of their kernels. */
static const int frequent[STRAIGHT_KERNELS - STRAIGHT_ADD_CLAMP][3] = {
    {CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_CLAMP, END},
    {CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_OP_CUDNN_POINTWISE_GELU_FWD, END},
    {CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_OP_CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, END},
    {CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_OP_CUDNN_POINTWISE_SWISH_FWD, END},
    {CHAIN_OP_CUDNN_POINTWISE_SWISH_FWD, CHAIN_OP_CUDNN_POINTWISE_MUL, END},
    {CHAIN_OP_CUDNN_POINTWISE_GELU_FWD, CHAIN_OP_CUDNN_POINTWISE_MUL, END},
    {CHAIN_OP_CUDNN_POINTWISE_MUL, CHAIN_OP_CUDNN_POINTWISE_ADD, END},
    {CHAIN_OP_CUDNN_POINTWISE_MUL, CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_CLAMP},
    {CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_OP_CUDNN_POINTWISE_ADD, CHAIN_CLAMP},
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

int wd_straight_make(struct pointwise_straight_args *args, const struct pointwise_program *program,
                     const struct wd_joined *walk, const struct pointwise_operand *operands)
{
    struct making m = {
        .args = args, .program = program, .walk = walk, .operands = operands, .count = 0};
    const struct pointwise_operand *y = &operands[program->inputs];
    int last = walk->rank - 1;
    bool plain = true;
    memset(args, 0, sizeof *args);
    if (program->acc != WD_ACC_F32 || program->dtype < 0 || program->outputs != 1 ||
        program->length > STRAIGHT_STEPS || y->way != POINTWISE_FLAT) {
        return -1;
    }
    for (int i = 0; i < program->length; ++i) {
        if (!add_step(&m, i)) return -1;
        plain = plain && !args->step[i].swapped;
    }
    args->y = y->data;
    args->length = program->length;
    args->row = wd_fastdiv_of((uint32_t)walk->dim[last]);
    args->period = wd_fastdiv_of(last > 0 ? (uint32_t)walk->dim[last - 1] : 1);
    /* a run lies in two rows at most */
    if (args->repeat == STRAIGHT_ROWS && walk->dim[last] < LOAD / wd_dtype_bytes(program->dtype)) {
        return -1;
    }
    for (int k = STRAIGHT_ADD_CLAMP; plain && k < STRAIGHT_KERNELS; ++k) {
        const int *ops = frequent[k - STRAIGHT_ADD_CLAMP];
        int same = 0;
        while (same < 3 && same < args->length && ops[same] == args->step[same].op) ++same;
        if (same == args->length && (same == 3 || ops[same] == END)) return k;
    }
    return m.count <= 1 ? STRAIGHT_1 : m.count == 2 ? STRAIGHT_2 : STRAIGHT_3;
}

cudnnStatus_t wd_straight_emit(struct wd_queue *queue, const struct straight_kernels *kernels,
                               int kernel, const struct pointwise_straight_args *args)
{
    int runs = kernel < STRAIGHT_ADD_CLAMP ? kernels->runs_any
               : kernel < STRAIGHT_MUL_ADD ? kernels->runs
                                           : kernels->runs_two;
    int64_t run = (int64_t)runs * kernels->chunk;
    int64_t threads = THREADS;
    if (args->count < threads * run * queue->device->multiprocessors) threads = THREADS_FEW;
    return wd_emit_kernel(queue, &kernels->rows[kernel], wd_ceil_div(args->count, threads * run),
                          (uint32_t)threads, 0, args);
}
