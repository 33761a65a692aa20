/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts changed on the GPU at the speed of memory: packed tensors of one type whose dims lie in
 * another order, as identities of the pointwise family (cudnnTransformTensor) and as transforms by
 * descriptor, blocks folded into channels and back included. transform_turn_args.h says how. */
#include <string.h>

#include "base/sizes.h"
#include "ops/engine.h"
#include "ops/tensor/transform_turn.h"
#include "ops/tensor/transform_turn_args.h"

#define WD_KERNELS_MODULE transform_turn
#define WD_KERNELS_ROWS "ops/tensor/transform_turn_kernels.def"
#include "ops/kernels_host.inc"

enum { ALPHA1, ALPHA2, ALPHA, BETA }; /* of pointwise */
enum { SRC, DEST };
enum { SCALE, BLEND }; /* of a transform: alpha, beta */

enum {
    SIDE = 64,             /* of a tile, wanted */
    SIDE_WIDE = 32,        /* likewise along b of elements of 8 bytes */
    SIDE_HALF = 128,       /* likewise of 2 bytes, where rows are no whole runs */
    SIDE_LEAST = 16,       /* where tiles are few */
    WHOLE_ROW = 128,       /* a row that a tile takes whole, if it is no whole runs; */
    WHOLE_HALF = 256,      /* of 2 bytes */
    THIN_ELEMENTS = 4096,  /* of a tile of a thin plane, at most */
    TILE_BYTES = 16 << 10, /* at most */
    TILE_LEAST = 1024,     /* elements of a tile that is not cut further */
    DIRECT_MAX = 1 << 16,  /* elements that are moved one by one: they stay in the cache */
    THREADS_FEW = 64,
    PLANE_MIN = 256, /* elements: smaller ones are not worth a tile */
    RUNS_A_THREAD = 4,
    WIDE = 2,           /* times as large: tiles of elements of 2 bytes, */
    WIDE_MIN = 1 << 20, /* from so many elements on, */
    FEW_COLUMNS = 8,    /* but where rows of x are these or more, and below SIDE */
};

/* Blocks: a spatial dim is two, the second of which goes along the channels. */
static struct wd_walk walk_fold(const struct wd_transform_attr *p, const struct wd_tensor *src,
                                const struct wd_tensor *dest)
{
    bool folds = p->direction == CUDNN_TRANSFORM_FOLD;
    const struct wd_tensor *image = folds ? src : dest;
    const struct wd_tensor *folded = folds ? dest : src;
    int64_t phase = image->dim[1] * folded->stride[1]; /* between phases */
    struct wd_walk w = {.rank = 0};
    for (int d = 0; d < 2; ++d) wd_walk_add(&w, image->dim[d], src->stride[d], dest->stride[d]);
    for (int d = src->rank - 1; d >= 2; --d) {
        int64_t block = p->fold[d - 2];
        int64_t outer = image->stride[d] * block;
        wd_walk_add(&w, folded->dim[d], folds ? outer : folded->stride[d],
                    folds ? folded->stride[d] : outer);
        wd_walk_add(&w, block, folds ? image->stride[d] : phase, folds ? phase : image->stride[d]);
        phase *= block;
    }
    wd_walk_join(&w);
    return w;
}

/* Elements of types that are moved and scaled; of others, moved alone. */
static bool moves(const struct wd_tensor *t, bool plain)
{
    switch (t->dtype) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return true;
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_INT64: return plain;
    default: return false;
    }
}

static bool match_pair(const struct wd_tensor *x, const struct wd_tensor *y, bool plain,
                       struct wd_reason *reason)
{
    char text[96];
    WD_NEED(x->dtype == y->dtype && moves(y, plain), reason, NOT_SUPPORTED_DATA_TYPE,
            "from %s to %s, needed is one type of 2, 4 or 8 bytes%s", wd_dtype_name(x->dtype),
            wd_dtype_name(y->dtype), plain ? "" : " that is scaled");
    WD_NEED(x->vect_count == 1 && y->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
            "a tensor is vectorised");
    WD_NEED(wd_tensor_count(y) > 0, reason, NOT_SUPPORTED_SHAPE, "y is empty");
    WD_NEED(wd_tensor_is_packed(x) && wd_tensor_is_packed(y), reason, NOT_SUPPORTED_LAYOUT,
            "a tensor has gaps, x is %s", wd_tensor_text(x, text, sizeof text));
    return true;
}

static bool match_walk(const struct wd_walk *w, struct wd_reason *reason)
{
    int a = wd_walk_neighbours(w);
    WD_NEED(w->rank <= WD_MAX_RANK, reason, NOT_SUPPORTED_SHAPE, "%d dims are moved, at most %d",
            w->rank, WD_MAX_RANK);
    for (int d = 0; d < w->rank; ++d) {
        WD_NEED(w->dim[d] < INT32_MAX, reason, NOT_SUPPORTED_SHAPE, "a dim of %lld is above 2^31",
                (long long)w->dim[d]);
    }
    WD_NEED(a >= 0, reason, NOT_SUPPORTED_LAYOUT, "x has no neighbours");
    if (a == w->rank - 1) {
        WD_NEED(w->count < INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
                "%lld elements are too many to be counted", (long long)w->count);
        return true;
    }
    WD_NEED(w->dim[a] * w->dim[w->rank - 1] >= PLANE_MIN || w->count <= DIRECT_MAX, reason,
            NOT_SUPPORTED_SHAPE, "planes of %lld by %lld elements are below %d",
            (long long)w->dim[a], (long long)w->dim[w->rank - 1], PLANE_MIN);
    WD_NEED(w->count / PLANE_MIN < INT32_MAX / 4, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements are too many to be counted", (long long)w->count);
    return true;
}

/* Whether the listed scalars are 1 and beta, the last one, is 0. */
static bool is_plain(const struct wd_node *node, int first, int second, int beta)
{
    return node->scalar_class[first] == WD_SCALAR_ONE &&
           node->scalar_class[second] == WD_SCALAR_ONE &&
           node->scalar_class[beta] == WD_SCALAR_ZERO;
}

bool wd_turn_matches(const struct wd_problem *problem, struct wd_walk *walk,
                     struct wd_reason *reason)
{
    const struct wd_node *node = problem->node;
    const struct wd_tensor *x = wd_slot(problem->graph, node, WD_TURN_X);
    const struct wd_tensor *y = wd_slot(problem->graph, node, WD_TURN_Y);
    WD_NEED(node->attr.pointwise.mode == CUDNN_POINTWISE_IDENTITY, reason, NOT_SUPPORTED,
            "mode %d is not the identity", node->attr.pointwise.mode);
    WD_NEED(!(x->flags & WD_BY_VALUE) && wd_tensor_same_dims(x, y), reason, NOT_SUPPORTED_SHAPE,
            "x repeats");
    if (!match_pair(x, y, is_plain(node, ALPHA1, ALPHA, BETA), reason)) return false;
    *walk = wd_walk_of(x, y);
    WD_NEED(wd_walk_neighbours(walk) != walk->rank - 1, reason, NOT_SUPPORTED_LAYOUT,
            "neighbours of x are neighbours of y");
    return match_walk(walk, reason);
}

bool wd_turn_moves_only(const struct wd_problem *problem, struct wd_reason *reason)
{
    WD_NEED(is_plain(problem->node, ALPHA1, ALPHA, BETA), reason, NOT_SUPPORTED,
            "elements are scaled");
    return true;
}

static bool match_pointwise(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_walk w;
    return wd_turn_matches(problem, &w, reason);
}

static bool match_transform(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_transform_attr *p = &problem->node->attr.transform;
    const struct wd_tensor *src = wd_slot(problem->graph, problem->node, SRC);
    const struct wd_tensor *dest = wd_slot(problem->graph, problem->node, DEST);
    const struct wd_tensor *image = p->direction == CUDNN_TRANSFORM_FOLD ? src : dest;
    const struct wd_tensor *folded = p->direction == CUDNN_TRANSFORM_FOLD ? dest : src;
    struct wd_walk w;
    if (!match_pair(src, dest, is_plain(problem->node, SCALE, SCALE, BLEND), reason)) return false;
    for (int d = 0; d < src->rank; ++d) {
        WD_NEED(p->before[d] == 0 && p->after[d] == 0, reason, NOT_SUPPORTED_SHAPE,
                "dim %d is padded by %lld and %lld", d, (long long)p->before[d],
                (long long)p->after[d]);
        WD_NEED(d < 2 || folded->dim[d] * p->fold[d - 2] == image->dim[d], reason,
                NOT_SUPPORTED_SHAPE, "blocks of %lld do not divide dim %d of %lld",
                (long long)(d < 2 ? 1 : p->fold[d - 2]), d, (long long)image->dim[d]);
    }
    WD_NEED(wd_tensor_count(src) == wd_tensor_count(dest), reason, NOT_SUPPORTED_SHAPE,
            "blocks do not divide %lld channels", (long long)folded->dim[1]);
    w = walk_fold(p, src, dest);
    return match_walk(&w, reason);
}

/* ---- Emission ---- */

static bool strides_divide(const int64_t *stride, const struct wd_walk *w, int64_t run)
{
    for (int d = 0; d < w->rank; ++d) {
        if (stride[d] != 1 && stride[d] % run != 0) return false;
    }
    return true;
}

/* Also what is little, element by element, however it lies. */
static cudnnStatus_t emit_rows(struct wd_queue *queue, const struct wd_walk *w, int size,
                               int64_t run, struct turn_args *a)
{
    int last = w->rank - 1;
    bool runs = w->x[last] == 1 && a->x_shift == 0 && a->y_shift == 0 && w->dim[last] % run == 0 &&
                strides_divide(w->x, w, run) && strides_divide(w->y, w, run);
    int64_t elements = runs ? run : 1;
    int64_t threads = TURN_THREADS;
    a->count = (uint32_t)(w->count / elements);
    a->by_tile_a = wd_fastdiv_of((uint32_t)(w->dim[last] / elements));
    a->rank = last;
    a->x_row = w->x[last];
    for (int d = 0; d < last; ++d) {
        a->dim[d] = wd_fastdiv_of((uint32_t)w->dim[d]);
        a->x_stride[d] = w->x[d];
        a->y_stride[d] = w->y[d];
    }
    if (a->count < threads * RUNS_A_THREAD * queue->device->multiprocessors) threads = 64;
    return wd_emit_kernel(
        queue, &kernel_rows[(runs ? KERNEL_turn_rows_runs_2 : KERNEL_turn_rows_ones_2) + size],
        wd_ceil_div(a->count, threads * RUNS_A_THREAD), (uint32_t)threads, 0, a);
}

struct sides {
    int64_t ta;
    int64_t tb;
};

/* A side of a tile: whole runs, a whole row where it is none but short, or what is left. */
static int64_t side_of(int64_t extent, bool runs, int64_t side, int64_t bytes)
{
    if (extent <= side) return extent;
    if (runs) return side;
    if (extent <= (bytes == 2 ? WHOLE_HALF : WHOLE_ROW)) return extent;
    return bytes == 2 ? SIDE_HALF : side;
}

/* Whole lines of memory. */
static int64_t in_lines(int64_t elements)
{
    return elements >= SIDE_WIDE ? elements / SIDE_WIDE * SIDE_WIDE : SIDE_LEAST;
}

static int64_t half_of(int64_t side)
{
    return wd_ceil_div(side, 16) * 8;
}

/* Of planes of ea by eb elements; tiles are `times` as large, along a where they may be. */
static struct sides sides_of(const struct wd_walk *w, int64_t ea, int64_t eb, bool x_runs,
                             bool y_runs, int64_t bytes, int64_t times, int64_t processors)
{
    int64_t most = times * TILE_BYTES / bytes;
    int64_t thin = wd_least(most, times * THIN_ELEMENTS);
    int64_t side_b = bytes == 8 ? SIDE_WIDE : SIDE;
    struct sides s = {side_of(ea, x_runs, times * SIDE, bytes), side_of(eb, y_runs, side_b, bytes)};
    /* what one side leaves of a tile the other takes */
    if (s.tb < side_b && s.ta >= SIDE)
        s.ta = wd_least(ea, wd_most(s.ta, thin / s.tb / SIDE * SIDE));
    else if (s.ta < SIDE && s.tb >= side_b) {
        s.tb = wd_least(eb, wd_most(s.tb, thin / s.ta / SIDE * SIDE));
    }
    if (s.ta * s.tb > most) {
        if (s.tb == eb && !y_runs) s.ta = wd_least(s.ta, in_lines(most / s.tb));
        else s.tb = wd_least(s.tb, in_lines(most / s.ta));
    }
    while (s.ta * s.tb >= TILE_LEAST && w->count < 2 * s.ta * s.tb * processors) {
        bool stays = s.tb == eb && !y_runs;
        if (s.ta > SIDE_LEAST && (s.ta >= s.tb || stays)) s.ta = half_of(s.ta);
        else if (s.tb > SIDE_LEAST) s.tb = half_of(s.tb);
        else break;
    }
    return s;
}

/* Runs that a piece of a row touches, wherever it begins. */
static int64_t touched(int64_t elements, int64_t run)
{
    return (elements + 2 * run - 2) / run;
}

static cudnnStatus_t emit_tiles(struct wd_queue *queue, const struct wd_walk *w, int size,
                                int64_t run, int64_t times, struct turn_args *a)
{
    int at_a = wd_walk_neighbours(w);
    int at_b = w->rank - 1;
    int64_t bytes = TURN_BYTES / run;
    int64_t ea = w->dim[at_a];
    int64_t eb = w->dim[at_b];
    bool x_runs = a->x_shift == 0 && ea % run == 0 && strides_divide(w->x, w, run);
    bool y_runs = a->y_shift == 0 && eb % run == 0 && strides_divide(w->y, w, run);
    struct sides s =
        sides_of(w, ea, eb, x_runs, y_runs, bytes, times, queue->device->multiprocessors);
    int64_t tiles_a = wd_ceil_div(ea, s.ta);
    int64_t tiles_b = wd_ceil_div(eb, s.tb);
    int64_t further = 1;
    int64_t x_units = touched(s.ta, run);
    int64_t y_units = touched(s.tb, run);
    int64_t rows = s.tb;
    int64_t elements;
    int64_t threads;
    int kernel;
    a->a = (uint32_t)ea;
    a->b = (uint32_t)eb;
    a->ta = (uint32_t)s.ta;
    a->tb = (uint32_t)s.tb;
    a->x_row = w->x[at_b];
    a->y_row = w->y[at_a];
    a->x_step = (uint32_t)(a->x_row % run);
    a->y_step = (uint32_t)(a->y_row % run);
    a->x_way = TURN_SHIFTED;
    a->y_way = TURN_SHIFTED;
    if (x_runs) {
        a->x_way = TURN_RUNS;
        x_units = wd_ceil_div(s.ta, run);
    } else if (s.ta == ea && (s.tb == 1 || a->x_row == ea) &&
               (ea % 2 != 0 || (bytes == 2 && ea % 4 != 0) || ea < 2 * run)) {
        /* rows of an odd number of words, or few: read across they lie in different banks */
        a->x_way = TURN_CHUNK;
        x_units = 1;
    }
    if (y_runs) {
        a->y_way = TURN_RUNS;
        y_units = wd_ceil_div(s.tb, run);
    } else if (s.tb == eb && (s.ta == 1 || a->y_row == eb)) {
        a->y_way = TURN_CHUNK;
        y_units = s.tb;
    }
    /* rows of an odd number of words, so that neighbours begin in other banks */
    a->pitch = (uint32_t)(x_units * run + (bytes == 2 ? 2 : 1));
    if (a->x_way == TURN_CHUNK) a->pitch = (uint32_t)ea;
    if (a->x_way == TURN_SHIFTED) {
        /* as in x modulo a run, where rows so begin in other banks; else with room for where each begins */
        a->by_runs = a->x_step % 2 != 0 || (bytes == 2 && a->x_step % 4 != 0);
        a->pitch += (uint32_t)run;
        if (a->by_runs) a->pitch = (uint32_t)(x_units * run) + a->x_step;
    }
    if (a->y_way == TURN_SHIFTED) { /* runs that stick out read what is not used */
        a->lead = (uint32_t)(wd_ceil_div((run - 1) * a->pitch, run) * run);
        a->streaming = 0; /* tiles side by side share lines */
        rows += run - 1;
    }
    elements = a->lead + rows * a->pitch + 2 * run;
    a->by_x = wd_fastdiv_of((uint32_t)x_units);
    a->by_y = wd_fastdiv_of((uint32_t)y_units);
    a->by_tile_a = wd_fastdiv_of((uint32_t)tiles_a);
    a->by_tile_b = wd_fastdiv_of((uint32_t)tiles_b);
    for (int d = 0; d < w->rank; ++d) {
        if (d == at_a || d == at_b) continue;
        a->dim[a->rank] = wd_fastdiv_of((uint32_t)w->dim[d]);
        a->x_stride[a->rank] = w->x[d];
        a->y_stride[a->rank] = w->y[d];
        a->rank += 1;
        further *= w->dim[d];
    }
    threads = THREADS_FEW;
    while (threads < TURN_THREADS && threads * run < s.ta * s.tb) threads *= 2;
    kernel = a->x_way == TURN_SHIFTED ? KERNEL_turn_shifted_2 : KERNEL_turn_tiles_2;
    return wd_emit_kernel(queue, &kernel_rows[kernel + size], tiles_a * tiles_b * further,
                          (uint32_t)threads, (uint32_t)(elements * bytes), a);
}

/* Scaled elements of 2 bytes have a type. */
struct manner {
    double alpha;
    double beta;
    bool bfloat;
    int64_t times; /* tiles as large */
};

static cudnnStatus_t emit(struct wd_queue *queue, const struct wd_walk *w, int64_t bytes,
                          const void *from, void *to, bool streaming, const struct manner *how)
{
    int64_t run = TURN_BYTES / bytes; /* bytes are 2, 4 or 8 */
    int size = bytes == 2 ? 0 : bytes == 4 ? 1 : 2;
    struct turn_args a;
    memset(&a, 0, sizeof a);
    a.x = from;
    a.y = to;
    a.alpha = how->alpha;
    a.beta = how->beta;
    a.total = w->count;
    a.plain = a.alpha == 1.0 && a.beta == 0.0;
    a.bfloat = how->bfloat;
    a.x_shift = (int32_t)((int64_t)((uintptr_t)from % TURN_BYTES) / bytes);
    a.y_shift = (int32_t)((int64_t)((uintptr_t)to % TURN_BYTES) / bytes);
    a.streaming = streaming;
    if (wd_walk_neighbours(w) == w->rank - 1 || w->count <= DIRECT_MAX) {
        return emit_rows(queue, w, size, run, &a);
    }
    return emit_tiles(queue, w, size, run, how->times, &a);
}

bool wd_turn_takes(const struct wd_walk *walk, int64_t bytes)
{
    struct wd_reason reason;
    int last = walk->rank - 1;
    if (bytes != 2 && bytes != 4 && bytes != 8) return false;
    return walk->count > DIRECT_MAX && walk->y[last] == 1 && walk->x[last] != 1 &&
           match_walk(walk, &reason);
}

cudnnStatus_t wd_emit_turn(struct wd_queue *queue, const struct wd_walk *walk, int64_t bytes,
                           const void *from, void *to, bool streaming)
{
    const struct manner as_it_is = {1.0, 0.0, false, 1};
    return emit(queue, walk, bytes, from, to, streaming, &as_it_is);
}

static cudnnStatus_t emit_tensors(const struct wd_walk *w, const struct wd_tensor *y,
                                  const void *from, void *to, double alpha, double beta,
                                  int64_t times, struct wd_queue *queue)
{
    const struct manner how = {alpha, beta, y->dtype == CUDNN_DATA_BFLOAT16, times};
    return emit(queue, w, wd_dtype_bytes(y->dtype), from, to,
                wd_tensor_extent(y) > queue->device->l2_bytes, &how);
}

/* Tiles of rows of x of 8 to 63 elements, if wider, would be read for rows of y from few banks; those of
 * few columns that are stored as they begin have many empty rows beside them, which not every device's
 * shared memory would hold. */
static int64_t times_of(const struct wd_walk *w, int64_t bytes)
{
    int at_a = wd_walk_neighbours(w);
    int64_t ea = w->dim[at_a];
    int64_t eb = w->dim[w->rank - 1];
    if (bytes != 2 || w->count < WIDE_MIN || (eb < FEW_COLUMNS && w->y[at_a] != eb)) return 1;
    return ea < FEW_COLUMNS || ea >= SIDE ? WIDE : 1;
}

static cudnnStatus_t emit_pointwise(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *y = wd_call_tensor(call, WD_TURN_Y);
    struct wd_walk w = wd_walk_of(wd_call_tensor(call, WD_TURN_X), y);
    return emit_tensors(&w, y, wd_call_data(call, WD_TURN_X), wd_call_data(call, WD_TURN_Y),
                        call->scalars[ALPHA] * call->scalars[ALPHA1], call->scalars[BETA],
                        times_of(&w, wd_dtype_bytes(y->dtype)), queue);
}

static cudnnStatus_t emit_transform(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *dest = wd_call_tensor(call, DEST);
    struct wd_walk w =
        walk_fold(&call->problem.node->attr.transform, wd_call_tensor(call, SRC), dest);
    return emit_tensors(&w, dest, wd_call_data(call, SRC), wd_call_data(call, DEST),
                        call->scalars[SCALE], call->scalars[BLEND], 1, queue);
}

const struct wd_engine wd_engine_identity_turn = {
    .name = "identity_turn",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match_pointwise,
    .emit = emit_pointwise,
};

const struct wd_engine wd_engine_transform_turn = {
    .name = "transform_turn",
    .op = WD_OP_TRANSFORM,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match_transform,
    .emit = emit_transform,
};
