/* SPDX-License-Identifier: Apache-2.0
 *
 * Where libraries differ in large problems whose images and channels have nothing to do with each other:
 * a computation in fp64 of the planes in which they do. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "check_kept.h"
#include "values.h"

/* Elements in which the libraries differ, of one plane: an image and channel. */
struct differing {
    int64_t plane;
    int64_t at; /* within it, logical */
    double value[2];
};

static int by_plane(const void *a, const void *b)
{
    const struct differing *x = a;
    const struct differing *y = b;
    return (x->plane > y->plane) - (x->plane < y->plane);
}

/* Of a packed tensor: which plane the element at a position is of, and where in it. */
static int64_t plane_of(const struct operand *o, int64_t position, int64_t *at)
{
    int64_t index[DIMS_MAX] = {0};
    *at = 0;
    for (int r = 0; r < o->rank; ++r) {
        index[r] = o->dims[r] > 1 ? position / o->strides[r] % o->dims[r] : 0;
        if (r >= 2) *at = *at * o->dims[r] + index[r];
    }
    return index[0] * o->dims[1] + index[1];
}

/* Where the libraries differ in an output; null: nowhere, or no memory. */
static struct differing *list_differing(const struct task *task, const struct operand *o,
                                        const struct kept *mine, const struct kept *theirs,
                                        int64_t *count)
{
    double *a = kept_decode(o, mine, false);
    double *b = kept_decode(o, theirs, false);
    struct differing *list = NULL;
    *count = 0;
    if (a && b) {
        const double rms = kept_rms(b, mine->count);
        for (int pass = 0; pass < 2; ++pass) {
            int64_t n = 0;
            for (int64_t i = 0; i < mine->count; ++i) {
                if (kept_off_by(task, o, a[i], b[i], rms) <= 1.0) continue;
                if (list) {
                    list[n].plane = plane_of(o, kept_position(o, mine, i), &list[n].at);
                    list[n].value[0] = a[i];
                    list[n].value[1] = b[i];
                }
                n += 1;
            }
            *count = n;
            if (n && !list) list = malloc((size_t)n * sizeof *list);
            if (!list) break;
        }
        if (list) qsort(list, (size_t)*count, sizeof *list, by_plane);
    }
    free(a);
    free(b);
    return list;
}

/* reference() of one plane, from inputs as they lie in memory; the caller frees the values. */
static bool plane_reference(const struct task *task, unsigned char *const inputs[OPERANDS_MAX],
                            int64_t plane, double *values[OPERANDS_MAX])
{
    struct problem problem = *task->problem;
    struct task one;
    bool known = true;
    problem.dims[DIM_N] = problem.dims[DIM_C] = 1;
    memset(&one, 0, sizeof one);
    one.family = task->family;
    one.problem = &problem;
    if (!task->family->plan(&one)) return false;
    for (int i = 0; i < task->count; ++i) {
        const struct operand *o = &task->operand[i];
        const int64_t count = one.operand[i].count;
        const int64_t first = plane * count; /* logical */
        values[i] = malloc((size_t)(count ? count : 1) * sizeof *values[i]);
        if (!values[i]) known = false;
        for (int64_t k = 0; values[i] && inputs[i] && k < count; ++k) {
            values[i][k] = value_at(inputs[i], o->type, logical_offset(o, first + k));
        }
    }
    return known && task->family->reference(&one, values);
}

bool check_planes(const struct task *task, const struct buffers *buffers,
                  struct kept (*kept)[OPERANDS_MAX], int64_t bad[2], int64_t *differing, char *why,
                  size_t size)
{
    unsigned char *inputs[OPERANDS_MAX] = {NULL};
    double worst = 1.0;
    bool known = true;
    bad[0] = bad[1] = *differing = 0;
    for (int i = 0; i < task->count; ++i) {
        struct kept all = {NULL, 0};
        if (is_output(&task->operand[i])) continue;
        kept_read(&task->operand[i], buffers->at[i], true, &all);
        inputs[i] = all.data;
        known = known && all.data;
    }
    for (int i = 0; known && i < task->count; ++i) {
        const struct operand *o = &task->operand[i];
        struct differing *list;
        double *values[OPERANDS_MAX] = {NULL};
        double rms = 0.0; /* of a plane */
        int64_t count = 0;
        if (!is_output(o) || o->unchecked) continue;
        list = list_differing(task, o, &kept[0][i], &kept[1][i], &count);
        known = list || !count;
        *differing += count;
        for (int64_t k = 0; known && k < count; ++k) {
            if (k == 0 || list[k].plane != list[k - 1].plane) {
                for (int v = 0; v < task->count; ++v) {
                    free(values[v]);
                    values[v] = NULL;
                }
                known = plane_reference(task, inputs, list[k].plane, values);
                if (known) rms = kept_rms(values[i], o->count / o->dims[0] / o->dims[1]);
            }
            for (int side = 0; known && side < 2; ++side) {
                double right = values[i][list[k].at];
                double off = kept_off_by(task, o, list[k].value[side], right, rms);
                if (off <= 1.0) continue;
                bad[side] += 1;
                if (side == 0 && off > worst) {
                    worst = off;
                    snprintf(why, size, "%s: %.9g for %.9g in fp64", o->name, list[k].value[0],
                             right);
                }
            }
        }
        for (int v = 0; v < task->count; ++v) free(values[v]);
        free(list);
    }
    for (int i = 0; i < task->count; ++i) free(inputs[i]);
    return known;
}
