/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over any dimensions: the parameters are the mask of those that go (N C D H W as digits) and
 * whether indices are wanted. */
#include <math.h>

#include "problem.h"

static const struct entry {
    const char *call;
    cudnnReduceTensorOp_t op;
    double low, high;
} entries[] = {
    {"add", CUDNN_REDUCE_TENSOR_ADD, -1, 1},
    {"mul", CUDNN_REDUCE_TENSOR_MUL, 0.99, 1.01},
    {"min", CUDNN_REDUCE_TENSOR_MIN, -1, 1},
    {"max", CUDNN_REDUCE_TENSOR_MAX, -1, 1},
    {"amax", CUDNN_REDUCE_TENSOR_AMAX, -1, 1},
    {"avg", CUDNN_REDUCE_TENSOR_AVG, -1, 1},
    {"norm1", CUDNN_REDUCE_TENSOR_NORM1, -1, 1},
    {"norm2", CUDNN_REDUCE_TENSOR_NORM2, -1, 1},
    {"mul_no_zeros", CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS, 0.99, 1.01},
};
enum { ENTRIES = sizeof entries / sizeof entries[0], MASK = 0, INDICES = 1 };
/* The mask's digits. */
enum { OVER_W = 1, OVER_H = 10, OVER_D = 100, OVER_C = 1000, OVER_N = 10000 };

static const struct problem problems[] = {
#include "reduce.def"
};

static const struct entry *entry_of(const struct task *task)
{
    for (int i = 0; i < ENTRIES; ++i)
        if (task_is(task, entries[i].call)) return &entries[i];
    return NULL;
}

static bool goes(const struct problem *p, int d)
{
    static const int digit[] = {OVER_N, OVER_C, OVER_D, OVER_H, OVER_W};
    return p->p[MASK] / digit[d] % 10 == 1;
}

static bool finds(const struct entry *e)
{
    return e->op == CUDNN_REDUCE_TENSOR_MIN || e->op == CUDNN_REDUCE_TENSOR_MAX ||
           e->op == CUDNN_REDUCE_TENSOR_AMAX;
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    int out[DIMS_MAX];
    char over[8] = "";
    int length = 0;
    if (!e) return false;
    for (int d = 0; d < DIMS_MAX; ++d) {
        out[d] = goes(p, d) ? 1 : p->dims[d];
        t->terms *= (double)p->dims[d] / out[d];
        if (goes(p, d)) over[length++] = "NCDHW"[d];
    }
    if (e->op == CUDNN_REDUCE_TENSOR_MUL || e->op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS) {
        t->slack = sqrt(t->terms); /* errors of a product do not cancel */
    }
    task_text(t, "over %s%s", over, p->p[INDICES] ? " indices" : "");
    task_range(task_tensor(t, "a", INPUT, p->type, p->dims), e->low, e->high);
    task_tensor(t, "c", OUTPUT, p->type, out);
    if (p->p[INDICES]) {
        /* equal values are found at any of their places */
        task_tensor(t, "indices", OUTPUT, CUDNN_DATA_INT32, out)->unchecked = true;
    }
    return true;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    const struct library *l = s->library;
    cudnnReduceTensorDescriptor_t reduce;
    size_t indices = 0;
    cudnnStatus_t status = l->CreateReduceTensorDescriptor(&reduce);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    s->made[0] = reduce;
    status = l->SetReduceTensorDescriptor(
        reduce, entry_of(t)->op, task_compute(t), CUDNN_NOT_PROPAGATE_NAN,
        t->problem->p[INDICES] ? CUDNN_REDUCE_TENSOR_FLATTENED_INDICES
                               : CUDNN_REDUCE_TENSOR_NO_INDICES,
        CUDNN_32BIT_INDICES);
    if (status == CUDNN_STATUS_SUCCESS) {
        status =
            l->GetReductionIndicesSize(s->handle, reduce, s->tensor[0], s->tensor[1], &indices);
    }
    s->number[0] = (int64_t)indices;
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (t->problem->p[INDICES] && indices > t->operand[2].bytes) return CUDNN_STATUS_INTERNAL_ERROR;
    return l->GetReductionWorkspaceSize(s->handle, reduce, s->tensor[0], s->tensor[1],
                                        &s->workspace_bytes);
}

static void finish(struct session *s)
{
    if (s->made[0]) s->library->DestroyReduceTensorDescriptor(s->made[0]);
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    return s->library->ReduceTensor(s->handle, s->made[0], t->problem->p[INDICES] ? at[2] : NULL,
                                    (size_t)s->number[0], s->workspace, s->workspace_bytes,
                                    scalar_one(t), s->tensor[0], at[0], scalar_zero(t),
                                    s->tensor[1], at[1]);
}

static double first_of(cudnnReduceTensorOp_t op)
{
    switch (op) {
    case CUDNN_REDUCE_TENSOR_MUL:
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: return 1.0;
    case CUDNN_REDUCE_TENSOR_MIN: return INFINITY;
    case CUDNN_REDUCE_TENSOR_MAX: return -INFINITY;
    default: return 0.0;
    }
}

static double joined(cudnnReduceTensorOp_t op, double sum, double a)
{
    switch (op) {
    case CUDNN_REDUCE_TENSOR_MUL: return sum * a;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: return a != 0.0 ? sum * a : sum;
    case CUDNN_REDUCE_TENSOR_MIN: return fmin(sum, a);
    case CUDNN_REDUCE_TENSOR_MAX: return fmax(sum, a);
    case CUDNN_REDUCE_TENSOR_AMAX: return fmax(sum, fabs(a));
    case CUDNN_REDUCE_TENSOR_NORM1: return sum + fabs(a);
    case CUDNN_REDUCE_TENSOR_NORM2: return sum + a * a;
    default: return sum + a;
    }
}

static bool reference(const struct task *t, double *const *values)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    const struct operand *a = &t->operand[0];
    const struct operand *c = &t->operand[1];
    for (int64_t i = 0; i < c->count; ++i) values[1][i] = first_of(e->op);
    for (int64_t i = 0; i < a->count; ++i) {
        int64_t left = i;
        int64_t at = 0;
        int64_t step = 1;
        for (int d = DIMS_MAX - 1; d >= 0; --d) {
            if (!goes(p, d)) {
                at += left % p->dims[d] * step;
                step *= p->dims[d];
            }
            left /= p->dims[d];
        }
        values[1][at] = joined(e->op, values[1][at], values[0][i]);
    }
    for (int64_t i = 0; i < c->count; ++i) {
        if (e->op == CUDNN_REDUCE_TENSOR_AVG) values[1][i] /= t->terms;
        if (e->op == CUDNN_REDUCE_TENSOR_NORM2) values[1][i] = sqrt(values[1][i]);
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    static const int digit[] = {OVER_N, OVER_C, OVER_H, OVER_W};
    const struct entry *e = &entries[random_next(seed) % ENTRIES];
    random_problem(p, seed, 2e7);
    p->call = e->call;
    for (int i = 0; i < 4; ++i) p->p[MASK] += random_next(seed) % 2 ? digit[i] : 0;
    if (p->p[MASK] == 0) p->p[MASK] = OVER_W;
    p->p[INDICES] = finds(e) && random_next(seed) % 2;
}

const struct family family_reduce = {
    .name = "reduce",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .parameter = {{"the mask", 1, 11111}, {"indices", 0, 1}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .reference = reference,
};
