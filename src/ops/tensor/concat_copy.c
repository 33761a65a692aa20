/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenation on the GPU in one launch for up to sixteen inputs, of any layout and y's type.
 * concat_copy_args.h says how an input is cut. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/engine.h"
#include "ops/tensor/concat_copy_args.h"
#include "ops/tensor/concat_place.h"
#include "ops/tensor/tensor_walk.h"
#include "ops/tensor/transform_turn.h"

#define WD_KERNELS_MODULE concat_copy
#define WD_KERNELS_ROWS "ops/tensor/concat_copy_kernels.def"
#include "ops/kernels_host.inc"

enum {
    CHUNK_LONG = 32, /* bytes, from which on a row goes by 16 between boundaries */
    THREADS_FEW = 64,
    COUNT_MAX_LOG2 = 30, /* elements of an input */
    RESHAPE_PIECE = 1 << 30,
    CHUNK_MAX = INT32_MAX,
    MIX_CHUNK = 64,    /* bytes of a row, below which aligned ones are mixed too */
    MIX_ROW = 2816,    /* of a row of y, at most: sixteen are in shared memory */
    MIX_BYTES = 16384, /* of a tile, wanted */
};

/* An input in bytes, the innermost dim being neighbours in both. A vector is one element. */
static struct wd_walk walk_of(const struct wd_tensor *x, const struct wd_tensor *y)
{
    int64_t bytes = wd_dtype_bytes(y->dtype) * y->vect_count;
    struct wd_walk w = {.rank = 0};
    for (int d = 0; d < x->rank; ++d) {
        bool vectors = x->vect_count > 1 && d == x->vect_dim;
        wd_walk_add(&w, vectors ? x->dim[d] / x->vect_count : x->dim[d], x->stride[d] * bytes,
                    y->stride[d] * bytes);
    }
    wd_walk_add(&w, bytes, 1, 1);
    wd_walk_join(&w);
    if (w.x[w.rank - 1] != 1 || w.y[w.rank - 1] != 1) { /* single bytes far apart */
        w.dim[w.rank] = w.x[w.rank] = w.y[w.rank] = 1;
        w.rank += 1;
    }
    return w;
}

/* An input's walk once it matches, in less room; and whether wd_emit_turn has it. */
struct rows {
    int rank; /* 0: there are no elements */
    bool turned;
    int64_t dim[CONCAT_DIMS + 1];
    int64_t x[CONCAT_DIMS + 1];
    int64_t y[CONCAT_DIMS + 1];
    int64_t count;
};

static struct rows rows_of(const struct wd_walk *w)
{
    struct rows r = {.rank = w->rank, .count = w->count};
    for (int d = 0; d < w->rank; ++d) {
        r.dim[d] = w->dim[d];
        r.x[d] = w->x[d];
        r.y[d] = w->y[d];
    }
    return r;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, CONCAT_Y);
    WD_NEED(wd_dtype_bits(y->dtype) >= 8, reason, NOT_SUPPORTED_DATA_TYPE,
            "elements of y are %s, less than a byte", wd_dtype_name(y->dtype));
    for (int i = 0; i < problem->node->attr.concat.inputs; ++i) {
        const struct wd_tensor *x = wd_slot(problem->graph, problem->node, CONCAT_X + i);
        struct wd_walk w;
        WD_NEED(x->dtype == y->dtype, reason, NOT_SUPPORTED_DATA_TYPE,
                "input %d is %s, y is %s, needed is one type", i, wd_dtype_name(x->dtype),
                wd_dtype_name(y->dtype));
        WD_NEED(x->vect_count == y->vect_count &&
                    (x->vect_count == 1 || x->vect_dim == y->vect_dim),
                reason, NOT_SUPPORTED_LAYOUT, "input %d has other vectors than y", i);
        WD_NEED(wd_tensor_count(x) >> COUNT_MAX_LOG2 == 0, reason, NOT_SUPPORTED_SHAPE,
                "input %d has %lld elements, more than 2^%d", i, (long long)wd_tensor_count(x),
                COUNT_MAX_LOG2);
        if (wd_tensor_count(x) == 0) continue;
        w = walk_of(x, y);
        for (int d = 0; d < w.rank; ++d) {
            WD_NEED(w.x[d] >= 0 && w.y[d] >= 0, reason, NOT_SUPPORTED_LAYOUT,
                    "input %d or y goes backwards", i);
        }
        WD_NEED(w.rank - 1 <= CONCAT_DIMS && w.dim[w.rank - 1] <= CHUNK_MAX, reason,
                NOT_SUPPORTED_SHAPE, "input %d has %d dims of rows of %lld bytes", i, w.rank - 1,
                (long long)w.dim[w.rank - 1]);
    }
    return true;
}

/* The largest power of two up to 16 that divides a number. */
static int64_t power_of(uint64_t all)
{
    int64_t piece = 1;
    while (piece < CONCAT_BYTES && all % (uint64_t)(2 * piece) == 0) piece *= 2;
    return piece;
}

static struct concat_input input_of(const struct rows *w, const void *x, void *y, int64_t extent)
{
    struct concat_input in;
    int last = w->rank - 1;
    int64_t chunk = w->dim[last];
    uint64_t in_y = (uintptr_t)y | (uint64_t)chunk;
    uint64_t in_x = (uintptr_t)x;
    int64_t units;
    memset(&in, 0, sizeof in);
    in.x = x;
    in.y = y;
    in.extent = extent;
    in.chunk = (uint32_t)chunk;
    in.rank = (uint8_t)last;
    in.is_long = chunk >= CHUNK_LONG;
    for (int d = 0; d < last; ++d) {
        in.dim[d] = wd_fastdiv_of((uint32_t)w->dim[d]);
        in.x_stride[d] = w->x[d];
        in.y_stride[d] = w->y[d];
        in_x |= (uint64_t)w->x[d];
        in_y |= (uint64_t)w->y[d];
    }
    in.piece = (uint16_t)power_of(in.is_long ? in_y : in_x | in_y);
    units = chunk / in.piece;
    /* wherever between two boundaries a row begins in y */
    if (in.is_long) units = wd_ceil_div(chunk + CONCAT_BYTES - in.piece, CONCAT_BYTES);
    in.row = wd_fastdiv_of((uint32_t)units);
    in.units = (uint32_t)(w->count / chunk * units);
    return in;
}

/* Whether rows are long and begin as far behind a boundary in x as in y. */
static bool is_alike(const struct concat_input *in)
{
    uint64_t apart = (uintptr_t)in->x ^ (uintptr_t)in->y;
    for (int d = 0; d < in->rank; ++d) apart |= (uint64_t)(in->x_stride[d] - in->y_stride[d]);
    return in->is_long && apart % CONCAT_BYTES == 0;
}

/* Blocks of a launch, each input's first one noted. */
static int64_t set_blocks(struct concat_copy_args *a, bool alike, int64_t threads)
{
    int64_t blocks = 0;
    for (int i = 0; i < a->inputs; ++i) {
        int64_t units = a->input[i].is_long ? CONCAT_LONG : CONCAT_SHORT; /* of a thread */
        a->input[i].first_block = (uint32_t)blocks;
        blocks += wd_ceil_div(a->input[i].units, threads * (alike ? CONCAT_ALIKE : units));
    }
    return blocks;
}

static cudnnStatus_t launch(struct wd_queue *queue, struct concat_copy_args *a)
{
    int64_t threads = CONCAT_THREADS;
    int64_t blocks;
    bool alike = true;
    for (int i = 0; i < a->inputs; ++i) alike &= is_alike(&a->input[i]);
    blocks = set_blocks(a, alike, threads);
    if (blocks < queue->device->multiprocessors) {
        threads = THREADS_FEW;
        blocks = set_blocks(a, alike, threads);
    }
    return wd_emit_kernel(queue, &kernel_rows[alike ? KERNEL_concat_alike : KERNEL_concat_copy],
                          blocks, (uint32_t)threads, 0, a);
}

/* Whether an input has its neighbours elsewhere than y, and is large; then its walk in elements. */
static bool is_turned(const struct wd_tensor *x, const struct wd_tensor *y, struct wd_walk *w)
{
    if (y->vect_count > 1 || !wd_tensor_is_packed(x)) return false;
    w->rank = 0;
    for (int d = 0; d < x->rank; ++d) wd_walk_add(w, x->dim[d], x->stride[d], y->stride[d]);
    wd_walk_join(w);
    return wd_turn_takes(w, wd_dtype_bytes(y->dtype));
}

enum { INPUTS_MAX = WD_MAX_SLOTS - 1 };

static void prepare(const struct wd_problem *problem, void *prepared)
{
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, CONCAT_Y);
    struct rows *rows = prepared;
    for (int i = 0; i < problem->node->attr.concat.inputs; ++i) {
        const struct wd_tensor *x = wd_slot(problem->graph, problem->node, CONCAT_X + i);
        struct wd_walk w;
        rows[i].rank = 0;
        if (wd_tensor_count(x) == 0) continue;
        w = walk_of(x, y);
        rows[i] = rows_of(&w);
        rows[i].turned = is_turned(x, y, &w);
    }
}

/* Whether all inputs are one piece of memory each whose rows are side by side in y, which is one
 * piece; and whether their rows are short, or begin anywhere. Then the kernel's arguments. */
static bool can_mix(const struct wd_call *call, const struct rows *rows, struct concat_mix_args *a)
{
    const struct wd_tensor *y = wd_call_tensor(call, CONCAT_Y);
    int inputs = call->problem.node->attr.concat.inputs;
    int64_t element = wd_dtype_bytes(y->dtype) * y->vect_count;
    int64_t row = 0;
    bool mixes = false;
    if (inputs > MIX_INPUTS || element > 8 || (element & (element - 1)) != 0) return false;
    memset(a, 0, sizeof *a);
    for (int i = 0; i < inputs; ++i) {
        const struct rows *w = &rows[i];
        struct mix_input *in = &a->input[a->inputs];
        if (w->rank == 0) continue;
        if (w->rank != 2 || w->x[0] != w->dim[1] || w->x[1] != 1 || w->y[1] != 1) return false;
        if (a->inputs > 0 && (w->y[0] != a->columns || w->dim[0] != a->rows)) return false;
        if (w->y[0] > MIX_ROW) return false;
        a->columns = (uint32_t)w->y[0]; /* in bytes as yet */
        a->rows = w->dim[0];
        in->x = wd_call_data(call, CONCAT_X + i);
        in->extent = wd_tensor_extent(wd_call_tensor(call, CONCAT_X + i));
        in->chunk = (uint32_t)w->dim[1];
        in->column = (uint32_t)(row / element);
        in->shift = (uint32_t)((uintptr_t)in->x % CONCAT_BYTES);
        row += w->dim[1];
        mixes |= w->dim[1] < MIX_CHUNK || w->dim[1] % CONCAT_BYTES != 0 || in->shift > 0;
        a->inputs += 1;
    }
    return mixes && a->inputs > 1 && row == a->columns && wd_tensor_extent(y) == row * a->rows;
}

static cudnnStatus_t emit_mix(const struct wd_call *call, struct wd_queue *queue,
                              struct concat_mix_args *a)
{
    const struct wd_tensor *y = wd_call_tensor(call, CONCAT_Y);
    int64_t element = wd_dtype_bytes(y->dtype) * y->vect_count;
    int64_t row = a->columns;
    int64_t word = wd_most(element, 4);
    int64_t rows = wd_most(MIX_BYTES / row / MIX_ROWS, 1) * MIX_ROWS;
    int64_t place;
    int kernel = KERNEL_concat_mix_1 + (element == 2) + 2 * (element == 4) + 3 * (element == 8);
    while (rows > MIX_ROWS && a->rows < rows * 2 * queue->device->multiprocessors) {
        rows = rows / 2 / MIX_ROWS * MIX_ROWS;
    }
    a->y = wd_call_data(call, CONCAT_Y);
    a->columns = (uint32_t)(row / element);
    a->by_columns = wd_fastdiv_of(a->columns);
    a->tile_rows = (uint32_t)rows;
    a->shift = (int32_t)((int64_t)((uintptr_t)a->y % (uintptr_t)word) / element);
    place = wd_ceil_div(4 * (int64_t)a->columns, CONCAT_BYTES) * CONCAT_BYTES;
    for (int i = 0; i < a->inputs; ++i) {
        a->input[i].place = (uint32_t)place;
        /* inputs begin in other banks */
        place += rows * a->input[i].chunk + 2 * CONCAT_BYTES;
    }
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(a->rows, rows), MIX_THREADS,
                          (uint32_t)place, a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_concat_attr *attr = &call->problem.node->attr.concat;
    const struct wd_tensor *y = wd_call_tensor(call, CONCAT_Y);
    struct wd_view to = wd_call_view(call, CONCAT_Y);
    int64_t first = 0;
    bool lies = false;
    struct concat_copy_args a;
    struct concat_mix_args mix;
    struct rows own[INPUTS_MAX];
    const struct rows *rows = wd_call_prepared(call, prepare, own);
    memset(&a, 0, sizeof a);
    a.streaming = wd_tensor_extent(y) > queue->device->l2_bytes;
    for (int i = 0; i < attr->in_place; ++i) {
        first += wd_call_tensor(call, CONCAT_X + i)->dim[attr->axis];
    }
    /* nothing is written before this is known */
    if (attr->in_place >= 0 && wd_tensor_count(wd_call_tensor(call, CONCAT_X + attr->in_place))) {
        WD_TRY(wd_concat_look(call, attr->in_place, first, &lies));
    }
    if (!lies && can_mix(call, rows, &mix)) return emit_mix(call, queue, &mix);
    first = 0;
    for (int i = 0; i < attr->inputs; ++i) {
        const struct wd_tensor *x = wd_call_tensor(call, CONCAT_X + i);
        int64_t at[WD_MAX_RANK] = {0};
        char *place;
        at[attr->axis] = first;
        first += x->dim[attr->axis];
        if (rows[i].rank == 0 || (i == attr->in_place && lies)) continue;
        place = (char *)to.data + wd_view_offset(&to, at) * wd_dtype_bytes(to.dtype);
        if (rows[i].turned) {
            struct wd_walk w;
            (void)is_turned(x, y, &w);
            WD_TRY(wd_emit_turn(queue, &w, wd_dtype_bytes(y->dtype),
                                wd_call_data(call, CONCAT_X + i), place, a.streaming));
            continue;
        }
        a.input[a.inputs++] =
            input_of(&rows[i], wd_call_data(call, CONCAT_X + i), place, wd_tensor_extent(x));
        if (a.inputs < CONCAT_INPUTS) continue;
        WD_TRY(launch(queue, &a));
        a.inputs = 0;
    }
    return a.inputs > 0 ? launch(queue, &a) : CUDNN_STATUS_SUCCESS;
}

/* ---- Reshape of what lies without gaps ---- */

enum { RESHAPE_X, RESHAPE_Y };

static bool match_reshape(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, RESHAPE_X);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, RESHAPE_Y);
    WD_NEED(x->dtype == y->dtype && wd_dtype_bits(y->dtype) >= 8, reason, NOT_SUPPORTED_DATA_TYPE,
            "from %s to %s, needed is one type of whole bytes", wd_dtype_name(x->dtype),
            wd_dtype_name(y->dtype));
    WD_NEED(wd_tensor_is_packed(x) && wd_tensor_is_packed(y), reason, NOT_SUPPORTED_LAYOUT,
            "a tensor has gaps");
    return true;
}

/* The driver's copy, or ours where size or addresses are not those that it is fast at. */
static cudnnStatus_t emit_reshape(const struct wd_call *call, struct wd_queue *queue)
{
    const unsigned char *x = wd_call_data(call, RESHAPE_X);
    unsigned char *y = wd_call_data(call, RESHAPE_Y);
    int64_t bytes = wd_tensor_extent(wd_call_tensor(call, RESHAPE_Y));
    struct concat_copy_args a;
    if (x == y || bytes == 0) return CUDNN_STATUS_SUCCESS;
    if (wd_copy_suits(y, x, bytes)) {
        return queue->ops->copy(queue, y, x, (size_t)bytes);
    }
    memset(&a, 0, sizeof a);
    a.streaming = bytes > queue->device->l2_bytes;
    for (int64_t at = 0; at < bytes; at += RESHAPE_PIECE) {
        int64_t piece = wd_least(bytes - at, RESHAPE_PIECE);
        const struct rows w = {.rank = 1, .dim = {piece}, .x = {1}, .y = {1}, .count = piece};
        a.input[a.inputs++] = input_of(&w, x + at, y + at, piece);
        if (a.inputs < CONCAT_INPUTS) continue;
        WD_TRY(launch(queue, &a));
        a.inputs = 0;
    }
    return a.inputs > 0 ? launch(queue, &a) : CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_reshape_copy = {
    .name = "reshape_copy",
    .op = WD_OP_RESHAPE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match_reshape,
    .emit = emit_reshape,
};

const struct wd_engine wd_engine_concat_copy = {
    .name = "concat_copy",
    .op = WD_OP_CONCAT,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct rows[INPUTS_MAX]),
    .emit = emit,
};
