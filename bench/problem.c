/* SPDX-License-Identifier: Apache-2.0
 *
 * What families share: operands, types, random problems. */
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FAMILY(name) extern const struct family family_##name;
#include "families.def"

const struct family *const families[] = {
#define FAMILY(name) &family_##name,
#include "families.def"
};
const int family_count = sizeof families / sizeof families[0];

size_t type_bytes(cudnnDataType_t type)
{
    switch (type) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64: return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32: return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return 1;
    }
}

const char *type_name(cudnnDataType_t type)
{
    switch (type) {
    case CUDNN_DATA_DOUBLE: return "fp64";
    case CUDNN_DATA_FLOAT: return "fp32";
    case CUDNN_DATA_HALF: return "fp16";
    case CUDNN_DATA_BFLOAT16: return "bf16";
    case CUDNN_DATA_INT8: return "int8";
    case CUDNN_DATA_INT32: return "int32";
    default: return "other";
    }
}

const char *layout_name(enum layout layout)
{
    return layout == NHWC ? "NHWC" : "NCHW";
}

/* Packed strides, over 4 or 5 dims; 1-D and 2-D images have no depth. */
static void lay_out(struct operand *o, const int dims[DIMS_MAX], bool deep, enum layout layout)
{
    int next = 1;
    o->rank = deep ? 5 : 4;
    o->count = 1;
    for (int d = 0, r = 0; d < DIMS_MAX; ++d) {
        if (d == DIM_D && !deep) continue;
        o->dims[r++] = dims[d];
        o->count *= dims[d];
    }
    if (layout == NHWC) {
        o->strides[1] = 1;
        next = o->dims[1];
    }
    for (int r = o->rank - 1; r >= 0; --r) {
        if (layout == NHWC && r == 1) continue;
        o->strides[r] = next;
        next *= o->dims[r];
    }
    o->bytes = (size_t)o->count * type_bytes(o->type);
}

struct operand *task_tensor(struct task *task, const char *name, enum role role,
                            cudnnDataType_t type, const int dims[DIMS_MAX])
{
    struct operand *o = &task->operand[task->count++];
    memset(o, 0, sizeof *o);
    o->name = name;
    o->role = role;
    o->type = type;
    o->low = -1.0;
    o->high = 1.0;
    lay_out(o, dims, task->problem->dims[DIM_D] > 1, task->problem->layout);
    o->moves = (double)o->bytes * (role == BOTH ? 2.0 : 1.0);
    return o;
}

void task_opaque(struct task *task, const char *name, double moves)
{
    struct operand *o = &task->operand[task->count++];
    memset(o, 0, sizeof *o);
    o->name = name;
    o->role = OPAQUE;
    o->bytes = (size_t)moves;
    o->moves = moves;
}

void task_layout(const struct task *task, struct operand *operand, enum layout layout)
{
    bool deep = task->problem->dims[DIM_D] > 1;
    int dims[DIMS_MAX] = {1, 1, 1, 1, 1};
    for (int d = 0, r = 0; d < DIMS_MAX; ++d) {
        if (d != DIM_D || deep) dims[d] = operand->dims[r++];
    }
    lay_out(operand, dims, deep, layout);
}

struct operand *task_channels(struct task *task, const char *name, enum role role)
{
    const int dims[DIMS_MAX] = {1, task->problem->dims[DIM_C], 1, 1, 1};
    return task_tensor(task, name, role, task_compute(task), dims);
}

void task_text(struct task *task, const char *format, ...)
{
    const struct problem *p = task->problem;
    char depth[16] = "";
    char more[80];
    va_list list;
    va_start(list, format);
    vsnprintf(more, sizeof more, format, list);
    va_end(list);
    if (p->dims[DIM_D] > 1) snprintf(depth, sizeof depth, "%dx", p->dims[DIM_D]);
    snprintf(task->text, sizeof task->text, "%s %s %s %dx%dx%s%dx%d%s%s%s", p->call,
             type_name(p->type), layout_name(p->layout), p->dims[DIM_N], p->dims[DIM_C], depth,
             p->dims[DIM_H], p->dims[DIM_W], more[0] ? " " : "", more, p->odd ? " odd" : "");
}

void task_range(struct operand *operand, double low, double high)
{
    operand->low = low;
    operand->high = high;
}

double task_norm_slack(double count)
{
    return 1.0 + 1000.0 / count;
}

cudnnDataType_t task_compute(const struct task *task)
{
    return task->problem->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

bool task_is(const struct task *task, const char *call)
{
    return strcmp(task->problem->call, call) == 0;
}

const void *scalar_one(const struct task *task)
{
    static const float one = 1.0F;
    static const double one64 = 1.0;
    return task->problem->type == CUDNN_DATA_DOUBLE ? (const void *)&one64 : &one;
}

const void *scalar_zero(const struct task *task)
{
    static const double zero64 = 0.0; /* all bits zero serve both */
    (void)task;
    return &zero64;
}

uint64_t random_next(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int random_between(uint64_t *seed, int low, int high)
{
    return low + (int)(random_next(seed) % (uint64_t)(high - low + 1));
}

int random_pick(uint64_t *seed, int count, const int *values)
{
    return values[random_next(seed) % (uint64_t)count];
}

int random_size(uint64_t *seed, int most)
{
    static const int usual[] = {1,  2,  3,  4,  7,  8,   14,  16,  17,
                                28, 32, 56, 64, 96, 112, 128, 224, 256};
    int size = random_next(seed) % 3 ? random_pick(seed, sizeof usual / sizeof usual[0], usual)
                                     : random_between(seed, 1, 300);
    if (most < 1) most = 1;
    return size < most ? size : most;
}

void random_problem(struct problem *problem, uint64_t *seed, double elements)
{
    static const int types[] = {FP32, FP32, FP16, BF16};
    static const int order[] = {DIM_C, DIM_H, DIM_W, DIM_N};
    double left = elements;
    memset(problem, 0, sizeof *problem);
    problem->type = (cudnnDataType_t)random_pick(seed, 4, types);
    problem->layout = random_next(seed) % 2 ? NHWC : NCHW;
    problem->dims[DIM_D] = 1;
    for (int i = 0; i < 4; ++i) {
        int most = left > 1024.0 ? 1024 : (int)left;
        problem->dims[order[i]] = random_size(seed, most);
        left /= problem->dims[order[i]];
    }
    problem->odd = random_next(seed) % 5 == 0;
}
