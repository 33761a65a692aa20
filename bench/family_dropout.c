/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout, forward and backward; the parameter is the percentage that is dropped.
 *
 * Bytes: the mask is a bit an element, written forward and read backward. What two libraries drop is
 * not the same, so each is checked for itself: forward every element is 0 or x over what is kept, in
 * the right proportion; backward drops what forward dropped. */
#include <math.h>
#include <stdio.h>

#include "device.h"
#include "problem.h"

enum { PERCENT = 0, FORWARD_RESERVE = 2, BACKWARD_RESERVE = 3 };

static const struct problem problems[] = {
#include "dropout.def"
};

static bool is_backward(const struct task *t)
{
    return task_is(t, "backward");
}

/* Backward, "masked" is what forward makes of dy. */
static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    double mask;
    if (!is_backward(t) && !task_is(t, "forward")) return false;
    task_text(t, "%d%%", p->p[PERCENT]);
    task_range(task_tensor(t, is_backward(t) ? "dy" : "x", INPUT, p->type, p->dims), 0.5, 1.5);
    mask = (double)(t->operand[0].count + 7) / 8.0;
    if (is_backward(t)) task_tensor(t, "masked", INPUT, p->type, p->dims)->moves = 0.0;
    task_tensor(t, is_backward(t) ? "dx" : "y", OUTPUT, p->type, p->dims)->own = true;
    task_opaque(t, "reserve", mask);
    return true;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    const struct library *l = s->library;
    cudnnDropoutDescriptor_t dropout;
    size_t states = 0;
    cudnnStatus_t status = l->CreateDropoutDescriptor(&dropout);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    s->made[0] = dropout;
    status = l->DropoutGetStatesSize(s->handle, &states);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    s->made[1] = device_alloc(states);
    status = l->SetDropoutDescriptor(dropout, s->handle, (float)t->problem->p[PERCENT] / 100.0F,
                                     s->made[1], states, 20240607);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return l->DropoutGetReserveSpaceSize(s->tensor[0], &s->opaque_bytes);
}

static void finish(struct session *s)
{
    device_sync();
    if (s->made[0]) s->library->DestroyDropoutDescriptor(s->made[0]);
    device_free(s->made[1]);
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    if (is_backward(t)) {
        return s->library->DropoutBackward(s->handle, s->made[0], s->tensor[0], at[0], s->tensor[2],
                                           at[2], at[BACKWARD_RESERVE], s->opaque_bytes);
    }
    return s->library->DropoutForward(s->handle, s->made[0], s->tensor[0], at[0], s->tensor[1],
                                      at[1], at[FORWARD_RESERVE], s->opaque_bytes);
}

static cudnnStatus_t setup(struct session *s, const struct task *t, void *const *at)
{
    if (!is_backward(t)) return CUDNN_STATUS_SUCCESS;
    return s->library->DropoutForward(s->handle, s->made[0], s->tensor[0], at[0], s->tensor[1],
                                      at[1], at[BACKWARD_RESERVE], s->opaque_bytes);
}

static bool judge(const struct task *t, double *const *values, char *why, size_t size)
{
    double keep = 1.0 - t->problem->p[PERCENT] / 100.0;
    int64_t count = t->operand[0].count;
    int64_t kept = 0;
    double spread = 6.0 * sqrt((double)count * keep * (1.0 - keep)) + 1.0;
    double precision = 8.0 * (t->problem->type == CUDNN_DATA_BFLOAT16 ? 0x1p-8 : 0x1p-11);
    const double *out = values[is_backward(t) ? 2 : 1];
    for (int64_t i = 0; i < count; ++i) {
        double right = is_backward(t) ? values[1][i] : values[0][i] / keep;
        bool is_kept = is_backward(t) ? right != 0.0 : out[i] != 0.0;
        kept += is_kept;
        if (!is_kept && out[i] == 0.0) continue;
        if (fabs(out[i] - right) <= precision * fabs(right)) continue;
        snprintf(why, size, "element %lld is %.9g, which is neither 0 nor %.9g", (long long)i,
                 out[i], right);
        return false;
    }
    if (fabs((double)kept - keep * (double)count) <= spread) return true;
    snprintf(why, size, "%lld of %lld elements are kept, which is not %g of them", (long long)kept,
             (long long)count, keep);
    return false;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    random_problem(p, seed, 2e7);
    p->call = random_next(seed) % 2 ? "forward" : "backward";
    p->p[PERCENT] = random_between(seed, 1, 9) * 10;
}

const struct family family_dropout = {
    .name = "dropout",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .parameter = {{"percent", 0, 100}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .setup = setup,
    .judge = judge,
};
