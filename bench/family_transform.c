/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor transforms: copies from one layout to the other, and from one type to another. The problem's
 * layout and type are those of x. */
#include "problem.h"

enum kind { TURN, SAME, TO_HALF, TO_FLOAT, KINDS };
static const char *const names[] = {"turn", "copy", "to_fp16", "to_fp32"};

static const struct problem problems[] = {
#include "transform.def"
};

static int kind_of(const struct task *t)
{
    for (int k = 0; k < KINDS; ++k)
        if (task_is(t, names[k])) return k;
    return -1;
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    int kind = kind_of(t);
    cudnnDataType_t to = p->type;
    struct operand *y;
    if (kind < 0) return false;
    if (kind == TO_HALF) to = CUDNN_DATA_HALF;
    if (kind == TO_FLOAT) to = CUDNN_DATA_FLOAT;
    task_text(t, "%s", "");
    task_tensor(t, "x", INPUT, p->type, p->dims);
    y = task_tensor(t, "y", OUTPUT, to, p->dims);
    if (kind == TURN) task_layout(t, y, p->layout == NCHW ? NHWC : NCHW);
    return true;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    (void)s;
    (void)t;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    return s->library->TransformTensor(s->handle, scalar_one(t), s->tensor[0], at[0],
                                       scalar_zero(t), s->tensor[1], at[1]);
}

static bool reference(const struct task *t, double *const *values)
{
    for (int64_t i = 0; i < t->operand[0].count; ++i) values[1][i] = values[0][i];
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    random_problem(p, seed, 2e7);
    p->call = names[random_next(seed) % 2];
}

const struct family family_transform = {
    .name = "transform",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .reference = reference,
};
