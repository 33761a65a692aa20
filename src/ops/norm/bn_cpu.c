/* SPDX-License-Identifier: Apache-2.0
 *
 * How the work of batch normalization is cut up and run: see bn_cpu.h. */
#include "ops/norm/bn_cpu.h"

#include <string.h>

#include "base/sizes.h"
#include "cpu/module/bits.h"
#include "cpu/module/rows.h"

enum {
    INNER_MIN = 32,            /* shorter runs go by columns */
    WIDTH_MAX = 1 << 16,       /* columns: bounds the workspace to 8 MiB */
    ITEMS = 16,                /* wanted of a step, for the threads to share */
    SEGMENT_MIN = 1 << 12,     /* elements that pay for being an item */
    PIECE_MIN = 1 << 15,       /* elements that pay for a thread */
    PARAMS_A_PIECE = 1 << 9,   /* likewise, where there is nothing to do but to finish */
    GATHER_MAX = WD_BLOCK / 8, /* runs up to here are gathered into blocks */
    WIDEN_MIN = WD_BLOCK * 8,  /* elements that pay for several rows in one */
    BITS = 8,
};

/* False where parameters are not neighbours in memory. */
static bool see(struct wd_bn_shape *s, const struct wd_tensor *x, int mode)
{
    int order[WD_MAX_RANK];
    int count = wd_tensor_order(x, order);
    memset(s, 0, sizeof *s);
    s->outer = s->params = s->inner = 1;
    for (int i = 0; i < count; ++i) {
        int axis = order[i];
        if (wd_norm_is_param_axis(mode, axis)) {
            if (s->inner > 1) return false;
            s->param_axis[s->param_rank++] = axis;
            s->params *= x->dim[axis];
        } else if (s->param_rank == 0) {
            s->outer *= x->dim[axis];
        } else {
            s->inner *= x->dim[axis];
        }
    }
    s->terms = s->outer * s->inner;
    s->total = s->terms * s->params;
    if (s->params == 1) {
        s->inner = s->terms;
        s->outer = 1;
    }
    return true;
}

/* Chooses the way and its cuts. */
static void cut(struct wd_bn_shape *s)
{
    int64_t row = s->params * s->inner;
    s->columns = s->inner < INNER_MIN;
    s->segments = 1;
    s->blocks = 1;
    s->width = s->params;
    if (!s->columns) {
        if (s->params < ITEMS / 2) {
            s->segments = wd_least(wd_ceil_div(ITEMS, s->params), s->terms / SEGMENT_MIN + 1);
        }
        return;
    }
    s->width = row;
    if (row < WD_BN_COLUMNS && s->total >= WIDEN_MIN) {
        /* several rows in one; whole lines of them, if it can be */
        int64_t lines = row * (16 / wd_gcd(row, 16));
        int64_t unit = lines <= WD_BN_COLUMNS ? lines : row;
        s->width = WD_BN_COLUMNS / unit * unit;
    }
    s->blocks = wd_ceil_div(s->width, WD_BN_COLUMNS);
    if (s->blocks < ITEMS) {
        int64_t rows = wd_ceil_div(s->total, s->width);
        int64_t most = rows / (SEGMENT_MIN / wd_least(s->width, WD_BN_COLUMNS)) + 1;
        s->segments = wd_least(wd_ceil_div(ITEMS, s->blocks), most);
    }
}

bool wd_bn_match(const struct wd_problem *problem, uint32_t data, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    const struct wd_norm_attr *attr = &problem->node->attr.norm;
    struct wd_bn_shape shape;
    char text[96];
    for (int s = 0; s < WD_MAX_SLOTS; ++s) {
        const struct wd_tensor *tensor;
        if (!(data >> s & 1)) continue;
        tensor = wd_slot(problem->graph, problem->node, s);
        if (!tensor) continue;
        WD_NEED(tensor->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is vectorised, %d lanes a unit", s, tensor->vect_count);
        WD_NEED(wd_row_takes(tensor->dtype), reason, NOT_SUPPORTED_DATA_TYPE,
                "elements of slot %d are %s, not whole bytes", s, wd_dtype_name(tensor->dtype));
        WD_NEED(wd_tensor_same_layout(tensor, x), reason, NOT_SUPPORTED_LAYOUT,
                "slot %d lies otherwise than x, %s", s, wd_tensor_text(tensor, text, sizeof text));
    }
    WD_NEED(wd_tensor_count(x) > 0, reason, NOT_SUPPORTED_SHAPE, "x is empty");
    WD_NEED(wd_tensor_is_packed(x), reason, NOT_SUPPORTED_LAYOUT, "x is not packed: %s",
            wd_tensor_text(x, text, sizeof text));
    WD_NEED(see(&shape, x, attr->mode), reason, NOT_SUPPORTED_LAYOUT,
            "an activation's parameters are no neighbours in x, %s",
            wd_tensor_text(x, text, sizeof text));
    WD_NEED(shape.params <= WIDTH_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld parameters are more than %d", (long long)shape.params, WIDTH_MAX);
    WD_NEED(shape.inner >= INNER_MIN || shape.params * shape.inner <= WIDTH_MAX, reason,
            NOT_SUPPORTED_SHAPE, "%lld parameters in runs of %lld make more than %d columns",
            (long long)shape.params, (long long)shape.inner, WIDTH_MAX);
    if (problem->node->op != WD_OP_BN_INFERENCE) {
        WD_NEED(wd_norm_reserve_kind(attr) != WD_RESERVE_VALUES, reason, NOT_SUPPORTED,
                "the fused activation (pointwise mode %d) keeps derivatives, not bits",
                attr->activation.mode);
    }
    return true;
}

static int64_t numbers_bytes(const struct wd_bn_shape *s, bool wide)
{
    return wd_ceil_div(s->width * (wide ? 8 : 4), WD_LINE) * WD_LINE;
}

int64_t wd_bn_workspace(const struct wd_problem *problem)
{
    struct wd_bn_shape s;
    see(&s, wd_slot(problem->graph, problem->node, 0), problem->node->attr.norm.mode);
    cut(&s);
    return WD_BN_NUMBERS * numbers_bytes(&s, wd_problem_acc(problem) == WD_ACC_F64) +
           s.segments * 2 * s.width * (int64_t)sizeof(double);
}

struct wd_bn_data wd_bn_data(const struct wd_call *call, int slot)
{
    const struct wd_tensor *tensor = wd_call_tensor(call, slot);
    struct wd_bn_data data = {NULL, CUDNN_DATA_FLOAT};
    if (tensor) data = (struct wd_bn_data){wd_call_data(call, slot), tensor->dtype};
    return data;
}

void wd_bn_args_init(struct wd_bn_args *a, const struct wd_call *call)
{
    const struct wd_problem *problem = &call->problem;
    char *workspace = call->workspace;
    memset(a, 0, sizeof *a);
    a->attr = problem->node->attr.norm;
    see(&a->shape, wd_call_tensor(call, 0), a->attr.mode);
    cut(&a->shape);
    a->wide = wd_problem_acc(problem) == WD_ACC_F64;
    a->activates = a->attr.ops != CUDNN_BATCHNORM_OPS_BN &&
                   a->attr.activation.mode != CUDNN_POINTWISE_IDENTITY;
    for (int i = 0; i < WD_BN_NUMBERS; ++i, workspace += numbers_bytes(&a->shape, a->wide)) {
        a->number[i] = workspace;
    }
    a->sums = (double *)(void *)workspace;
}

/* ---- Blocks ---- */

void wd_bn_first(const struct wd_bn_args *a, int64_t item, struct wd_bn_block *block)
{
    const struct wd_bn_shape *s = &a->shape;
    memset(block, 0, sizeof *block);
    if (s->columns) {
        int64_t rows = wd_ceil_div(s->total, s->width);
        block->segment = item / s->blocks;
        block->column = item % s->blocks * WD_BN_COLUMNS;
        block->at = rows * block->segment / s->segments;
        block->end = rows * (block->segment + 1) / s->segments;
        block->stride = s->width;
    } else {
        int64_t unit = s->inner <= GATHER_MAX ? s->inner : 1; /* whole runs, or elements */
        int64_t units = s->terms / unit;
        block->segment = item / s->params;
        block->column = item % s->params;
        block->at = units * block->segment / s->segments * unit;
        block->end = units * (block->segment + 1) / s->segments * unit;
        block->stride = s->params * s->inner;
    }
}

static bool next_columns(const struct wd_bn_shape *s, struct wd_bn_block *block, int max_rows)
{
    int64_t left;
    if (block->at >= block->end) return false;
    block->offset = block->at * s->width + block->column;
    left = s->total - block->offset; /* the last row may be shorter */
    if (left <= 0) return false;
    block->n = wd_least(wd_least(WD_BN_COLUMNS, s->width - block->column), left);
    block->rows = (int)wd_least(max_rows, block->end - block->at);
    while (block->rows > 1 && left < (block->rows - 1) * s->width + block->n) block->rows -= 1;
    block->at += block->rows;
    return true;
}

bool wd_bn_next(const struct wd_bn_args *a, struct wd_bn_block *block, int max_rows)
{
    const struct wd_bn_shape *s = &a->shape;
    int64_t in_run;
    int64_t most;
    if (s->columns) return next_columns(s, block, max_rows);
    if (block->at >= block->end) return false;
    if (s->inner <= GATHER_MAX) {
        block->offset = block->at / s->inner * block->stride + block->column * s->inner;
        block->n = s->inner;
        block->rows = (int)wd_least(WD_BLOCK / s->inner, (block->end - block->at) / s->inner);
        block->at += block->rows * s->inner;
        return true;
    }
    in_run = block->at % s->inner;
    block->offset = block->at / s->inner * block->stride + block->column * s->inner + in_run;
    block->n = wd_least(s->inner - in_run, block->end - block->at);
    most = WD_BLOCK;
    if (block->by_lines) most -= ((int64_t)((uintptr_t)a->y.data / 4) + block->offset) % WD_STRIP;
    block->n = wd_least(block->n, most);
    block->rows = 1;
    block->at += block->n;
    return true;
}

#define WD_REALS_BODY "ops/norm/bn_rows.inc"
#include "ops/reals.inc"

/* ---- Numbers ---- */

void wd_bn_total(const struct wd_bn_args *a, int64_t param, double *sum)
{
    const struct wd_bn_shape *s = &a->shape;
    int64_t row = s->columns ? s->params * s->inner : s->width;
    int64_t columns = s->columns ? s->inner : 1;
    long double first = 0; /* up to thousands are added one by one */
    long double second = 0;
    for (int64_t segment = 0; segment < s->segments; ++segment) {
        const double *from = a->sums + segment * 2 * s->width + param * columns;
        for (int64_t at = 0; at < s->width; at += row) {
            for (int64_t i = 0; i < columns; ++i) {
                first += from[at + i];
                second += from[at + i + s->width];
            }
        }
    }
    sum[0] = (double)first;
    sum[1] = (double)second;
}

void wd_bn_set(const struct wd_bn_args *a, enum wd_bn_number which, int64_t param, double value)
{
    const struct wd_bn_shape *s = &a->shape;
    int64_t row = s->columns ? s->params * s->inner : s->width;
    int64_t columns = s->columns ? s->inner : 1;
    for (int64_t at = param * columns; at < s->width; at += row) {
        for (int64_t i = at; i < at + columns; ++i) {
            if (a->wide) ((double *)a->number[which])[i] = value;
            else ((float *)a->number[which])[i] = (float)value;
        }
    }
}

double wd_bn_get(const struct wd_bn_args *a, enum wd_bn_number which, int64_t param)
{
    int64_t i = a->shape.columns ? param * a->shape.inner : param;
    return a->wide ? ((double *)a->number[which])[i] : (double)((float *)a->number[which])[i];
}

void wd_bn_set_mean(const struct wd_bn_args *a, int64_t param, double mean, double rest)
{
    wd_bn_set(a, WD_BN_MEAN, param, mean);
    if (!a->wide) rest += mean - (double)(float)mean;
    wd_bn_set(a, WD_BN_REST, param, rest);
}

static int64_t param_offset(const struct wd_bn_args *a, const struct wd_view *view, int64_t param)
{
    int64_t at[WD_MAX_RANK] = {0};
    for (int i = a->shape.param_rank - 1; i >= 0; --i) {
        int axis = a->shape.param_axis[i];
        at[axis] = param % view->dim[axis];
        param /= view->dim[axis];
    }
    return wd_view_offset(view, at);
}

double wd_bn_param(const struct wd_bn_args *a, const struct wd_view *view, int64_t param)
{
    return wd_view_load_f64(view, param_offset(a, view, param));
}

void wd_bn_put_param(const struct wd_bn_args *a, const struct wd_view *view, int64_t param,
                     double value, double alpha, double beta)
{
    if (view->data) wd_view_blend_f64(view, param_offset(a, view, param), value, alpha, beta);
}

/* ---- Bits ---- */

static void put_shared(uint8_t *byte, unsigned mask, unsigned bits)
{
    __atomic_fetch_and(byte, (uint8_t)~mask, __ATOMIC_RELAXED);
    __atomic_fetch_or(byte, (uint8_t)(bits & mask), __ATOMIC_RELAXED);
}

void wd_bn_bits_put(const struct wd_bn_args *a, int64_t first, int64_t n, const uint8_t *pass)
{
    int64_t i = 0;
    while (i < n) {
        uint8_t *byte = a->reserve + (first + i) / BITS;
        int from = (int)((first + i) % BITS);
        if (from == 0 && n - i >= BITS) {
            *byte = wd_bits_gather(pass + i);
            i += BITS;
        } else {
            int count = (int)wd_least(BITS - from, n - i);
            unsigned mask = ((1u << count) - 1u) << from;
            unsigned bits = 0;
            for (int k = 0; k < count; ++k) bits |= (unsigned)pass[i + k] << (from + k);
            if (first + i + count == a->shape.total) mask |= 0xffu << from; /* nobody's */
            put_shared(byte, mask, bits);
            i += count;
        }
    }
}

void wd_bn_bits_get(const struct wd_bn_args *a, int64_t first, int64_t n, uint8_t *pass)
{
    int64_t i = 0;
    while (i < n) {
        int from = (int)((first + i) % BITS);
        if (from == 0 && n - i >= BITS) {
            wd_bits_spread(pass + i, a->reserve[(first + i) / BITS]);
            i += BITS;
        } else {
            pass[i] = (uint8_t)(a->reserve[(first + i) / BITS] >> from & 1);
            i += 1;
        }
    }
}

/* ---- Running ---- */

/* From the sums to the outputs, parameter by parameter. */
static void run_params(const void *v, int64_t begin, int64_t end)
{
    const struct wd_bn_args *a = v;
    for (int64_t p = begin; p < end; ++p) {
        for (int i = 0; i < a->step_count; ++i) {
            if (a->steps[i].work) a->steps[i].work(a, p);
            if (a->steps[i].finish) a->steps[i].finish(a, p);
        }
    }
    wd_stream_fence();
}

static void run_items(const void *v, int64_t begin, int64_t end)
{
    const struct wd_bn_args *a = v;
    for (int64_t item = begin; item < end; ++item) a->steps[a->step].work(a, item);
    wd_stream_fence();
}

static void run_finish(const void *v, int64_t begin, int64_t end)
{
    const struct wd_bn_args *a = v;
    for (int64_t p = begin; p < end; ++p) a->steps[a->step].finish(a, p);
}

cudnnStatus_t wd_bn_run(struct wd_bn_args *a, struct wd_queue *queue,
                        const struct wd_bn_step *steps, int count)
{
    const struct wd_bn_shape *s = &a->shape;
    int64_t items = s->segments * (s->columns ? s->blocks : s->params);
    int64_t grain = PIECE_MIN / (s->total / items + 1) + 1;
    a->steps = steps;
    a->step_count = count;
    if (!s->columns && s->segments == 1) {
        return queue->ops->range(queue, run_params, a, s->params, grain);
    }
    for (a->step = 0; a->step < count; ++a->step) {
        if (steps[a->step].work) WD_TRY(queue->ops->range(queue, run_items, a, items, grain));
        if (!steps[a->step].finish) continue;
        WD_TRY(queue->ops->range(queue, run_finish, a, s->params, PARAMS_A_PIECE));
    }
    return CUDNN_STATUS_SUCCESS;
}
