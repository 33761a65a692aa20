/* SPDX-License-Identifier: Apache-2.0
 *
 * See pointwise_program.h. No state. */
#include "ops/pointwise/pointwise_program.h"

#include <string.h>

#include "graph/pointwise_modes.h"

enum { X, B, T, Y, OPERANDS };
enum { ALPHA1, ALPHA2, ALPHA, BETA };

static const char *const names[] = {"x", "b", "t", "y"};

/* What the making of a program remembers of each instruction. */
struct making {
    const struct wd_problem *problem;
    struct pointwise_program *program;
    int32_t tensor[CHAIN_INSTRUCTIONS];  /* that it makes */
    int last_use[CHAIN_INSTRUCTIONS];    /* the last instruction that wants the result, or itself */
    int place[CHAIN_INSTRUCTIONS];       /* where it is kept, or -1 */
    int from[CHAIN_INSTRUCTIONS][T + 1]; /* by operand: the instruction that makes it, or -1 */
    uint8_t in[CHAIN_INSTRUCTIONS][T + 1]; /* by operand: the input, where it is read */
    uint32_t taken;                        /* places, as a mask */
};

/* clang-format off */
static int gradient_by_output(int mode)
{
    switch (mode) {
#define WD_BY_OUTPUT(known) case known: return CHAIN_BY_##known;
#include "ops/pointwise/pointwise_modes.def"
    default: return -1;
    }
}

static int plain_op(int mode)
{
    switch (mode) {
#define WD_UNARY(known) case known: return CHAIN_OP_##known;
#define WD_BINARY(known) case known: return CHAIN_OP_##known;
#include "ops/pointwise/pointwise_modes.def"
    default: return -1;
    }
}
/* clang-format on */

/* Whether the node is a gradient that needs the forward output alone, and has it. */
static bool is_by_output(const struct wd_node *node)
{
    return node->slot[T] >= 0 && gradient_by_output(node->attr.pointwise.mode) >= 0;
}

int wd_pointwise_op(const struct wd_pointwise_attr *attr, bool by_output)
{
    if (attr->mode == CUDNN_POINTWISE_BINARY_SELECT) return CHAIN_SELECT;
    if (attr->mode == CUDNN_POINTWISE_RELU_FWD && attr->lower_slope == 0.0 &&
        !attr->propagate_nan && attr->lower_clip <= attr->upper_clip) {
        return CHAIN_CLAMP;
    }
    return by_output ? gradient_by_output(attr->mode) : plain_op(attr->mode);
}

/* The slot that an instruction's operand is taken from, or -1. */
static int slot_of(const struct wd_node *node, int operand)
{
    int mode = node->attr.pointwise.mode;
    switch (operand) {
    case X: return is_by_output(node) ? T : X;
    case B: return wd_pointwise_operands(mode) > 1 ? B : -1;
    default: return mode == CUDNN_POINTWISE_BINARY_SELECT ? T : -1;
    }
}

/* What the element of a tensor becomes when it is read by the next node; -1: what no kernel does. */
static int round_of(int dtype, enum wd_acc acc)
{
    switch (dtype) {
    case CUDNN_DATA_DOUBLE: return acc == WD_ACC_F64 ? CHAIN_AS_IS : -1;
    case CUDNN_DATA_FLOAT: return acc == WD_ACC_F64 ? CHAIN_TO_F32 : CHAIN_AS_IS;
    case CUDNN_DATA_HALF: return CHAIN_TO_F16;
    case CUDNN_DATA_BFLOAT16: return CHAIN_TO_BF16;
    case CUDNN_DATA_BOOLEAN: return CHAIN_TO_BOOL;
    default: return -1;
    }
}

/* Whether the kernels read and write such a tensor. */
static bool check_memory(const struct wd_tensor *tensor, const char *name, enum wd_acc acc,
                         struct wd_reason *reason)
{
    WD_NEED(tensor->dtype != CUDNN_DATA_BOOLEAN && round_of(tensor->dtype, acc) >= 0, reason,
            NOT_SUPPORTED_DATA_TYPE, "elements of %s are %s", name, wd_dtype_name(tensor->dtype));
    WD_NEED(tensor->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
            "%s is vectorised, %d lanes a unit", name, tensor->vect_count);
    for (int d = 0; d < tensor->rank; ++d) {
        WD_NEED(tensor->dim[d] == 1 || tensor->stride[d] <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
                "stride %lld of %s is beyond 2^31", (long long)tensor->stride[d], name);
    }
    return true;
}

/* One type of all that is in memory, as far as it has been seen. */
static void see_type(struct making *m, const struct wd_tensor *tensor)
{
    struct pointwise_program *p = m->program;
    bool is_first = p->inputs + p->outputs == 0;
    if (is_first) p->dtype = tensor->dtype;
    else if (p->dtype != tensor->dtype) p->dtype = -1;
}

/* Finds operand `operand` of instruction i: a result of one before, or an input. */
static bool find_operand(struct making *m, int i, int operand, int slot, struct wd_reason *reason)
{
    struct pointwise_program *p = m->program;
    const struct wd_problem *problem = m->problem;
    int32_t tensor = wd_problem_node(problem, i)->slot[slot];
    const struct wd_tensor *t = &problem->graph->tensors[tensor];
    for (int j = i - 1; j >= 0; --j) {
        if (m->tensor[j] != tensor) continue;
        WD_NEED(round_of(t->dtype, p->acc) >= 0, reason, NOT_SUPPORTED_DATA_TYPE,
                "elements of %s are %s", names[slot], wd_dtype_name(t->dtype));
        m->from[i][operand] = j;
        m->last_use[j] = i;
        p->instruction[j].round = (uint8_t)round_of(t->dtype, p->acc);
        return true;
    }
    for (int k = 0; k < p->inputs; ++k) {
        if (p->input[k] != tensor) continue;
        m->in[i][operand] = (uint8_t)k;
        return true;
    }
    WD_NEED(p->inputs < CHAIN_INPUTS, reason, NOT_SUPPORTED_GRAPH_PATTERN, "more than %d inputs",
            CHAIN_INPUTS);
    if (!(t->flags & WD_BY_VALUE)) {
        if (!check_memory(t, names[slot], p->acc, reason)) return false;
        see_type(m, t);
    }
    m->in[i][operand] = (uint8_t)p->inputs;
    p->input[p->inputs++] = tensor;
    return true;
}

static bool add_node(struct making *m, int i, struct wd_reason *reason)
{
    const struct wd_problem *problem = m->problem;
    const struct wd_node *node = wd_problem_node(problem, i);
    struct pointwise_program *p = m->program;
    struct pointwise_instruction *in = &p->instruction[i];
    struct wd_problem single = {.graph = problem->graph, .node = node, .device = problem->device};
    const struct wd_tensor *y;
    int op;
    WD_NEED(node->op == WD_OP_POINTWISE, reason, NOT_SUPPORTED_GRAPH_PATTERN,
            "operation %s is not pointwise", wd_op_info(node->op)->name);
    op = wd_pointwise_op(&node->attr.pointwise, is_by_output(node));
    WD_NEED(op >= 0, reason, NOT_SUPPORTED, "mode %d is not done in a chain",
            node->attr.pointwise.mode);
    WD_NEED(node->scalar_class[ALPHA] == WD_SCALAR_ONE &&
                node->scalar_class[BETA] == WD_SCALAR_ZERO,
            reason, NOT_SUPPORTED, "a result is scaled or blended into");
    y = wd_slot(problem->graph, node, Y);
    if (i == 0) p->acc = wd_problem_acc(&single);
    WD_NEED(p->acc == wd_problem_acc(&single), reason, NOT_SUPPORTED_DATA_TYPE,
            "some nodes compute in double precision and some do not");
    WD_NEED(wd_tensor_same_dims(y, wd_slot(problem->graph, wd_problem_node(problem, 0), Y)), reason,
            NOT_SUPPORTED_SHAPE, "outputs have several shapes");
    m->tensor[i] = node->slot[Y];
    m->last_use[i] = i;
    m->place[i] = -1;
    in->op = (uint8_t)op;
    for (int o = X; o <= T; ++o) {
        int slot = slot_of(node, o);
        m->from[i][o] = -1;
        if (slot >= 0 && !find_operand(m, i, o, slot, reason)) return false;
    }
    if (wd_problem_hides(problem, node->slot[Y])) return true;
    WD_NEED(p->outputs < CHAIN_OUTPUTS, reason, NOT_SUPPORTED_GRAPH_PATTERN, "more than %d outputs",
            CHAIN_OUTPUTS);
    if (!check_memory(y, names[Y], p->acc, reason)) return false;
    see_type(m, y);
    p->output[p->outputs++] = node->slot[Y];
    in->write = (uint8_t)p->outputs;
    return true;
}

/* Where instruction i finds its operands, and where its result goes. */
static bool place_operands(struct making *m, int i, struct wd_reason *reason)
{
    const struct wd_node *node = wd_problem_node(m->problem, i);
    struct pointwise_program *p = m->program;
    uint8_t source[T + 1] = {CHAIN_NOTHING, CHAIN_NOTHING, CHAIN_NOTHING};
    int place = 0;
    for (int o = X; o <= T; ++o) {
        int j = m->from[i][o];
        if (slot_of(node, o) < 0) continue;
        if (j < 0) source[o] = (uint8_t)(CHAIN_INPUT + m->in[i][o]);
        else if (j == i - 1) source[o] = CHAIN_RESULT;
        else source[o] = (uint8_t)(CHAIN_KEPT + m->place[j]);
    }
    p->instruction[i].x = source[X];
    p->instruction[i].b = source[B];
    p->instruction[i].t = source[T];
    /* operands are fetched before the result is kept: it may take the place of one */
    for (int j = 0; j < i; ++j) {
        if (m->last_use[j] == i && m->place[j] >= 0) m->taken &= ~(1u << m->place[j]);
    }
    if (m->last_use[i] <= i + 1) return true;
    while (m->taken >> place & 1u) ++place;
    WD_NEED(place < CHAIN_KEEPS, reason, NOT_SUPPORTED_GRAPH_PATTERN,
            "more than %d results wait for a later operation", CHAIN_KEEPS);
    m->taken |= 1u << place;
    m->place[i] = place;
    p->instruction[i].keep = (uint8_t)(place + 1);
    if (place >= p->kept) p->kept = place + 1;
    return true;
}

bool wd_pointwise_program_make(const struct wd_problem *problem, struct pointwise_program *program,
                               struct wd_reason *reason)
{
    struct making making = {.problem = problem, .program = program};
    memset(program, 0, sizeof *program);
    WD_NEED(problem->piece_count <= CHAIN_INSTRUCTIONS, reason, NOT_SUPPORTED_GRAPH_PATTERN,
            "%d operations are more than %d", problem->piece_count, CHAIN_INSTRUCTIONS);
    for (int i = 0; i < problem->piece_count; ++i) {
        if (!add_node(&making, i, reason)) return false;
    }
    for (int i = 0; i < problem->piece_count; ++i) {
        if (!place_operands(&making, i, reason)) return false;
    }
    WD_NEED(program->outputs > 0, reason, NOT_SUPPORTED_GRAPH_PATTERN, "nothing is written");
    program->length = problem->piece_count;
    return true;
}

void wd_pointwise_program_factors(const struct wd_call *call, struct pointwise_program *program)
{
    for (int i = 0; i < program->length; ++i) {
        const struct wd_node *node = wd_problem_node(&call->problem, i);
        const struct wd_pointwise_attr *attr = &node->attr.pointwise;
        const double *scalars = wd_call_scalars(call, i);
        struct pointwise_instruction *in = &program->instruction[i];
        const double factor[CHAIN_FACTORS] = {
            [CHAIN_ALPHA1] = is_by_output(node) ? 1.0 : scalars[ALPHA1],
            [CHAIN_ALPHA2] = scalars[ALPHA2],
            [CHAIN_LOWER_CLIP] = attr->lower_clip,
            [CHAIN_UPPER_CLIP] = attr->upper_clip,
            [CHAIN_LOWER_SLOPE] = attr->lower_slope,
            [CHAIN_ELU_ALPHA] = attr->elu_alpha,
            [CHAIN_SOFTPLUS_BETA] = attr->softplus_beta,
            [CHAIN_SWISH_BETA] = attr->swish_beta,
        };
        in->scales =
            factor[CHAIN_ALPHA1] != 1.0 || (in->b != CHAIN_NOTHING && factor[CHAIN_ALPHA2] != 1.0);
        in->propagate_nan = attr->propagate_nan;
        for (int f = 0; f < CHAIN_FACTORS; ++f) {
            if (program->acc == WD_ACC_F64) in->factor.f64[f] = factor[f];
            else in->factor.f32[f] = (float)factor[f];
        }
    }
}
