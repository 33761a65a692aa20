/* SPDX-License-Identifier: Apache-2.0
 *
 * Divisive normalization on the GPU: two-dimensional images of any strides, in fp32, fp16, bf16 and fp64.
 * The caller's temp and temp2 are not touched. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/engine.h"
#include "ops/lrn/divnorm_vector.h"
#include "ops/lrn/lrn_host.h"

#define WD_KERNELS_MODULE divnorm_vector
#define WD_KERNELS_ROWS "ops/lrn/divnorm_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { DIV_X, DIV_MEANS, DIV_TEMP, DIV_TEMP2, DIV_Y };
enum { DIVB_X, DIVB_MEANS, DIVB_DY, DIVB_TEMP, DIVB_TEMP2, DIVB_DX, DIVB_DMEANS };
enum { ALPHA, BETA };

enum {
    ELEMENTS_MAX = 1 << 28,   /* of a plane */
    QUADS_MOST = 40,          /* of a row that is one tile wide */
    QUADS_OF_PART = 32,       /* of a tile, where rows are several wide */
    BYTES_FORWARD = 40 << 10, /* of shared memory, of which a processor has room for five blocks' */
    BYTES_BACKWARD = 72 << 10, /* or three */
    ROWS_LEAST = 4,            /* of a tile */
    TILES_ENOUGH = 24,         /* a processor: with more, a block has several */
    TILES_LEAST = 2,           /* a processor, if planes can be cut to as many */
    ARRAYS_FORWARD =
        2, /* sums and squares; backward also shares, shares times means, and direct parts */
    ARRAYS_BACKWARD = 5,
    BYTES_OWN = 2 << 10, /* bound of what kernels and the system have beside that */
    WARP = 32,
    REGISTERS = 65536, /* of a processor */
    WALK_WARPS = DIVNORM_WALK_THREADS / WARP,
    WALKS_LEAST = 256, /* threads of a processor that go down rows, else tiles */
    BLOCKS_LEAST =
        2, /* of theirs, that a processor has, else tiles: one leaves it idle between rows */
    SEGMENTS_MOST = 16, /* of a plane */
    ROWS_OF_START = 6,  /* that a strip could go down in the time until its first is there */
    RUN_BYTES = 16,     /* alignment of a run, at most */
};

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_DIVNORM_BACKWARD;
}

static struct divnorm_steps steps_of(const struct wd_tensor *t)
{
    struct divnorm_steps s = {t->stride[0], t->stride[1], 0, 0};
    if (t->dim[2] > 1) s.row = (int32_t)t->stride[2];
    if (t->dim[3] > 1) s.pixel = (int32_t)t->stride[3];
    return s;
}

/* Whether 31 bits say where a pixel is, in its plane. */
static bool is_near(const struct wd_tensor *t)
{
    const int64_t most = INT32_MAX;
    return (t->dim[2] == 1 || t->stride[2] <= most / t->dim[2]) &&
           (t->dim[3] == 1 || t->stride[3] <= most / t->dim[3]) &&
           (t->dim[2] - 1) * t->stride[2] * (t->dim[2] > 1) +
                   (t->dim[3] - 1) * t->stride[3] * (t->dim[3] > 1) <=
               most;
}

static bool are_same(const struct wd_tensor *a, const struct wd_tensor *b)
{
    for (int d = 0; d < a->rank; ++d)
        if (a->dim[d] > 1 && a->stride[d] != b->stride[d]) return false;
    return true;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_lrn_attr *attr = &problem->node->attr.lrn;
    const bool backward = is_backward(problem);
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, DIV_X);
    const struct wd_tensor *means = wd_slot(problem->graph, problem->node, DIV_MEANS);
    const struct wd_tensor *out =
        wd_slot(problem->graph, problem->node, backward ? (int)DIVB_DX : (int)DIV_Y);
    const struct wd_tensor *dy = backward ? wd_slot(problem->graph, problem->node, DIVB_DY) : NULL;
    const struct wd_tensor *dmeans =
        backward ? wd_slot(problem->graph, problem->node, DIVB_DMEANS) : NULL;
    WD_NEED(attr->window <= DIVNORM_WINDOW_MAX, reason, NOT_SUPPORTED_SHAPE,
            "a window of %d pixels, at most %d", attr->window, DIVNORM_WINDOW_MAX);
    WD_NEED(attr->alpha >= 0.0, reason, NOT_SUPPORTED,
            "lrnAlpha=%g is negative, and so may be what a power is taken of", attr->alpha);
    WD_NEED(x->rank == 4, reason, NOT_SUPPORTED_SHAPE, "%d spatial dimensions, needed are 2",
            x->rank - 2);
    WD_NEED((!means || are_same(means, x)) && (!dy || are_same(dy, x)), reason,
            NOT_SUPPORTED_LAYOUT, "the means or dy are not laid out as x is");
    WD_NEED(!dmeans || are_same(dmeans, out), reason, NOT_SUPPORTED_LAYOUT,
            "dMeans are not laid out as dx is");
    WD_NEED(wd_tensor_count(x) > 0 && x->dim[2] * x->dim[3] <= ELEMENTS_MAX, reason,
            NOT_SUPPORTED_SHAPE, "a plane of %lld elements, needed are 1 to %d",
            (long long)(x->dim[2] * x->dim[3]), ELEMENTS_MAX);
    WD_NEED(is_near(x) && is_near(out), reason, NOT_SUPPORTED_LAYOUT,
            "pixels of a plane are more than 2^31 elements apart");
    WD_NEED(x->dim[1] <= ELEMENTS_MAX, reason, NOT_SUPPORTED_SHAPE, "%lld channels, at most %d",
            (long long)x->dim[1], ELEMENTS_MAX);
    return true;
}

/* Whether there is an instance for this window alone. */
static bool has_kernel(int window, int dtype)
{
    if (dtype == CUDNN_DATA_FLOAT && window == 9) return true;
    return dtype != CUDNN_DATA_DOUBLE && window == 5;
}

/* The instance for a window and a type, among those of a direction. */
static int instance_of(int dtype, int window)
{
    static const int first[] = {0, 3, 5, 7, 8}; /* of a type; its last is for any window */
    const int type = wd_lrn_type(dtype);
    if (!has_kernel(window, dtype)) return first[type + 1] - 1;
    return first[type] + (window == 9);
}

/* Columns of a thread that goes down rows, or has runs of some. */
static int64_t walk_columns(int dtype)
{
    return dtype == CUDNN_DATA_FLOAT ? DIVNORM_QUAD : 2 * DIVNORM_QUAD;
}

/* Whether a plane's rows are made of aligned runs, wherever it begins. */
static bool is_whole(const struct divnorm_steps *s, const struct wd_tensor *t, int64_t run)
{
    const int64_t bytes = wd_dtype_bytes(t->dtype);
    const int64_t unit = wd_least(run * bytes, RUN_BYTES);
    return (t->dim[3] == 1 || s->pixel == 1) && t->dim[3] % run == 0 &&
           (t->dim[0] == 1 || s->image * bytes % unit == 0) &&
           (t->dim[1] == 1 || s->channel * bytes % unit == 0) &&
           (t->dim[2] == 1 || s->row * bytes % unit == 0);
}

static bool is_aligned(const void *data, int dtype, int64_t run)
{
    const int64_t unit = wd_least(run * wd_dtype_bytes(dtype), RUN_BYTES);
    return (uintptr_t)data % (uintptr_t)unit == 0; /* null is */
}

static int32_t quads_of(int64_t pixels)
{
    return (int32_t)wd_ceil_div(pixels, DIVNORM_QUAD);
}

/* Tiles side by side; `most` quads wide at most. */
static int32_t cut_rows(struct divnorm_vector_args *a, int32_t most, bool backward)
{
    const int32_t quads = quads_of(a->width);
    const int32_t parts = quads <= most ? 1 : (int32_t)wd_ceil_div(quads, most);
    a->quads = (int32_t)wd_ceil_div(quads, parts);
    a->before = 0;
    a->stored = a->quads;
    if (parts > 1) {
        a->before = quads_of(a->back) + (backward ? quads_of(a->ahead) : 0);
        a->stored += a->before + quads_of(a->ahead) + (backward ? quads_of(a->back) : 0);
    }
    a->pitch = a->stored * DIVNORM_QUAD;
    a->by_part = wd_fastdiv_of((uint32_t)parts);
    return parts;
}

static int64_t shared_bytes(const struct divnorm_vector_args *a, int dtype, int64_t stored_rows)
{
    const int64_t arrays = a->dy ? ARRAYS_BACKWARD : ARRAYS_FORWARD;
    const int64_t size = dtype == CUDNN_DATA_DOUBLE ? 8 : 4;
    /* and as many pixels of a window along a row, of one quad more for a thread's last run */
    return ((arrays * stored_rows + 1) * a->pitch + DIVNORM_QUAD) * size;
}

/* Tiles of planes, or planes of a block; how many bytes of shared memory that takes. */
static int64_t cut(struct divnorm_vector_args *a, int64_t planes, int dtype,
                   const struct wd_device *device)
{
    const bool backward = a->dy != NULL;
    const int64_t wanted =
        wd_least(backward ? BYTES_BACKWARD : BYTES_FORWARD, device->shared_per_block - BYTES_OWN);
    const int32_t more = backward ? a->window - 1 : 0; /* rows that are stored around a tile's */
    const int32_t down = has_kernel(a->window, dtype) ? DIVNORM_DOWN : DIVNORM_DOWN_ANY;
    int32_t parts = cut_rows(a, QUADS_MOST, backward);
    const int64_t run = !backward && wd_dtype_bytes(dtype) == 2 ? DIVNORM_QUADS_HALF : 1;
    int64_t stored, pairs, steps, shared, segments;
    if (parts > 1) parts = cut_rows(a, QUADS_OF_PART, backward);
    while (a->quads > 1 && shared_bytes(a, dtype, more + ROWS_LEAST) > wanted) {
        parts = cut_rows(a, a->quads / 2, backward);
    }
    pairs = a->stored * (DIVNORM_QUAD / DIVNORM_PAIR);
    /* as many rows as threads have at once, or as there is room for */
    stored = wd_most(DIVNORM_THREADS / pairs, 1) * DIVNORM_DOWN;
    while (stored > more + ROWS_LEAST && shared_bytes(a, dtype, stored) > wanted) stored -= 1;
    stored = wd_most(stored, more + ROWS_LEAST);
    a->rows = (int32_t)wd_least(a->height, stored - more);
    while (a->rows > ROWS_LEAST && planes * parts * wd_ceil_div(a->height, a->rows) <
                                       (int64_t)TILES_LEAST * device->multiprocessors) {
        a->rows = (int32_t)wd_most(wd_ceil_div(a->rows, 2), ROWS_LEAST);
    }
    /* several tiles a block where there are enough: what comes before them is as much work as 20 pixels a thread */
    segments = wd_ceil_div(a->height, a->rows);
    a->tiles = (int32_t)wd_clamp(
        planes * parts * segments / ((int64_t)TILES_ENOUGH * device->multiprocessors), 1, segments);
    a->by_segment = wd_fastdiv_of((uint32_t)wd_ceil_div(segments, a->tiles));
    a->stored_rows = (int32_t)wd_least(a->height, a->rows + more);
    steps = wd_ceil_div(a->stored_rows, down);
    a->planes = 1;
    if (parts == 1 && a->rows == a->height) {
        const int64_t plane = wd_most(shared_bytes(a, dtype, a->stored_rows), 1);
        a->planes = (int32_t)wd_least(DIVNORM_THREADS / (pairs * steps), wanted / plane);
        a->planes =
            (int32_t)wd_least(a->planes, planes / ((int64_t)TILES_LEAST * device->multiprocessors));
        a->planes = (int32_t)wd_most(a->planes, 1);
    }
    a->asks = a->planes == 1 && parts == 1 && a->in_whole && a->in.row == a->width;
    a->total = (uint32_t)planes;
    a->by_columns = wd_fastdiv_of((uint32_t)pairs);
    a->by_steps = wd_fastdiv_of((uint32_t)steps);
    a->by_own_steps = wd_fastdiv_of((uint32_t)wd_ceil_div(a->rows, down));
    a->by_own = wd_fastdiv_of((uint32_t)wd_ceil_div(a->quads, run));
    shared = a->quads;
    if (backward && parts > 1) shared += quads_of(a->ahead) + quads_of(a->back);
    a->by_shared = wd_fastdiv_of((uint32_t)wd_ceil_div(shared, run));
    a->by_row = wd_fastdiv_of((uint32_t)a->stored_rows);
    a->by_own_row = wd_fastdiv_of((uint32_t)a->rows);
    return shared_bytes(a, dtype, (int64_t)a->planes * a->stored_rows);
}

static struct divnorm_vector_args args_of(const struct wd_call *call)
{
    const struct wd_lrn_attr *attr = &call->problem.node->attr.lrn;
    const bool backward = is_backward(&call->problem);
    const int out = backward ? (int)DIVB_DX : (int)DIV_Y;
    const struct wd_tensor *x = wd_call_tensor(call, DIV_X);
    struct divnorm_vector_args a;
    memset(&a, 0, sizeof a);
    a.x = wd_call_data(call, DIV_X);
    a.means = wd_call_data(call, DIV_MEANS);
    a.out = wd_call_data(call, out);
    if (backward) {
        a.dy = wd_call_data(call, DIVB_DY);
        a.dmeans = wd_call_data(call, DIVB_DMEANS);
    }
    a.in = steps_of(x);
    a.to = steps_of(wd_call_tensor(call, out));
    a.in_whole = is_whole(&a.in, x, DIVNORM_QUAD) && is_aligned(a.x, x->dtype, DIVNORM_QUAD) &&
                 is_aligned(a.means, x->dtype, DIVNORM_QUAD) &&
                 is_aligned(a.dy, x->dtype, DIVNORM_QUAD);
    a.to_whole = is_whole(&a.to, x, DIVNORM_QUAD) && is_aligned(a.out, x->dtype, DIVNORM_QUAD) &&
                 is_aligned(a.dmeans, x->dtype, DIVNORM_QUAD);
    a.full.alpha = call->scalars[ALPHA];
    a.full.beta = call->scalars[BETA];
    a.full.k = attr->k;
    a.full.factor = attr->alpha / attr->window / attr->window;
    a.full.exponent = -attr->beta;
    a.full.share = -2.0 * attr->beta * a.full.factor;
    a.single = wd_lrn_rounded(&a.full);
    a.scales = a.full.alpha != 0.0;
    a.blends = a.full.beta != 0.0;
    a.power = wd_lrn_power(attr->beta);
    a.window = attr->window;
    a.back = (attr->window - 1) / 2;
    a.ahead = attr->window - 1 - a.back;
    a.height = (int32_t)x->dim[2];
    a.width = (int32_t)x->dim[3];
    a.by_channel = wd_fastdiv_of((uint32_t)x->dim[1]);
    return a;
}

static void *moved(const void *data, int64_t elements, int dtype)
{
    return data ? (char *)(uintptr_t)data + elements * wd_dtype_bytes(dtype) : NULL;
}

/* The kernel that goes down rows for a call, backward one whose blocks have rows, or -1 where there is none: windows of
 * 5 (of fp32 also 9; backward of fp32 alone), planes of whole aligned runs, results that are not blended. */
static int walk_of(const struct divnorm_vector_args *a, const struct wd_call *call)
{
    const struct wd_tensor *x = wd_call_tensor(call, DIV_X);
    const int64_t run = walk_columns(x->dtype);
    if (!has_kernel(a->window, x->dtype) || !a->scales || a->blends) return -1;
    if (a->dy && x->dtype != CUDNN_DATA_FLOAT) return -1;
    if (a->dmeans && !a->means) return -1;
    if (!is_whole(&a->in, x, run) || !is_whole(&a->to, x, run)) return -1;
    if (!is_aligned(a->x, x->dtype, run) || !is_aligned(a->means, x->dtype, run) ||
        !is_aligned(a->dy, x->dtype, run) || !is_aligned(a->out, x->dtype, run) ||
        !is_aligned(a->dmeans, x->dtype, run))
        return -1;
    if (a->dy) return KERNEL_divnorm_sheet_backward_f32_5 + (a->window == 9);
    return KERNEL_divnorm_walk_forward_f32_5 +
           (x->dtype == CUDNN_DATA_FLOAT ? a->window == 9 : wd_lrn_type(x->dtype) + 1);
}

static int64_t bytes_between(const void *from, const void *to)
{
    return to ? (int64_t)(uintptr_t)to - (int64_t)(uintptr_t)from : 0;
}

/* What of a walk its cut does not say. */
static void fill_walk(struct divnorm_walk_args *w, const struct divnorm_vector_args *a, int dtype)
{
    const int64_t bytes = wd_dtype_bytes(dtype);
    memset(w, 0, sizeof *w);
    w->x = a->x, w->means = a->means, w->out = a->out;
    w->in = a->in, w->to = a->to;
    w->in_row = a->in.row * bytes;
    w->to_row = a->to.row * bytes;
    w->own = -a->ahead * w->in_row;
    w->own_means = w->own + bytes_between(a->x, a->means);
    w->single = a->single;
    w->power = a->power;
    w->height = a->height, w->width = a->width;
    w->by_channel = a->by_channel;
}

/* Of shared memory of a block. */
static int64_t walk_bytes(int dtype)
{
    return WALK_WARPS * DIVNORM_RING_ROWS * DIVNORM_RING_LANES * walk_columns(dtype) *
           wd_dtype_bytes(dtype);
}

/* Blocks that a processor has at once, with so many bytes of shared memory each. */
static int64_t blocks_at_once(const struct wd_kernel_row *kernel, int64_t shared,
                              const struct wd_device *device)
{
    return wd_least(REGISTERS / (kernel->threads * kernel->registers),
                    device->shared_per_processor / (shared + BYTES_OWN));
}

bool wd_divnorm_cut_walk(struct divnorm_walk_args *w, const struct divnorm_vector_args *a,
                         const struct wd_kernel_row *kernel, int64_t planes, int dtype,
                         const struct wd_device *device)
{
    const int64_t groups = a->width / walk_columns(dtype);
    const int64_t parts = groups <= WARP ? 1 : wd_ceil_div(groups, WARP - 2);
    const int64_t blocks = blocks_at_once(kernel, walk_bytes(dtype), device);
    const int64_t at_once = WALK_WARPS * blocks * device->multiprocessors;
    const int32_t margin = parts > 1; /* lanes that see what is beside their strip */
    const int32_t lanes = (int32_t)wd_ceil_div(groups, parts) + 2 * margin;
    const int32_t around = a->window - 1; /* rows a strip has beside its own */
    int64_t segments = 1, best = INT64_MAX;
    if (blocks < BLOCKS_LEAST) return false;
    fill_walk(w, a, dtype);
    w->margin = margin;
    w->strips = (int32_t)wd_least(WARP / lanes, DIVNORM_RING_STRIPS);
    for (int64_t n = 1; n <= SEGMENTS_MOST; ++n) {
        const int64_t rows =
            wd_ceil_div(wd_ceil_div(a->height, n), DIVNORM_WALK_PHASES) * DIVNORM_WALK_PHASES;
        const int64_t warps = wd_ceil_div(planes * parts * wd_ceil_div(a->height, rows), w->strips);
        const int64_t time = wd_ceil_div(warps, at_once) * (rows + around + ROWS_OF_START);
        if (time >= best) continue;
        best = time;
        w->rows = (int32_t)rows;
        segments = wd_ceil_div(a->height, rows);
    }
    if (planes * groups * segments < (int64_t)WALKS_LEAST * device->multiprocessors) return false;
    w->by_segment = wd_fastdiv_of((uint32_t)segments);
    w->by_group = wd_fastdiv_of((uint32_t)lanes);
    w->by_part = wd_fastdiv_of((uint32_t)parts);
    w->items = (uint32_t)(planes * parts * segments);
    return true;
}

static cudnnStatus_t emit_walk(struct wd_queue *queue, int kernel,
                               const struct divnorm_walk_args *w, int dtype)
{
    return wd_emit_kernel(queue, &kernel_rows[kernel],
                          wd_ceil_div(wd_ceil_div(w->items, w->strips), WALK_WARPS),
                          DIVNORM_WALK_THREADS, (uint32_t)walk_bytes(dtype), w);
}

/* As many images at a time as there are numbers for. */
static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, DIV_X);
    const bool backward = is_backward(&call->problem);
    const int kernel = (backward ? KERNEL_divnorm_backward_f32_5 : KERNEL_divnorm_forward_f32_5) +
                       instance_of(x->dtype, call->problem.node->attr.lrn.window);
    struct divnorm_vector_args a = args_of(call);
    const int walk = walk_of(&a, call);
    const int64_t most =
        wd_most(ELEMENTS_MAX / (x->dim[1] * wd_ceil_div(x->dim[2] * x->dim[3], 4)), 1);
    for (int64_t first = 0; first < x->dim[0]; first += most) {
        const int64_t planes = wd_least(most, x->dim[0] - first) * x->dim[1];
        struct divnorm_vector_args piece = a;
        struct divnorm_walk_args down;
        struct divnorm_sheet_args sheet;
        struct wd_divnorm_launch l;
        int64_t shared, items;
        piece.x = moved(a.x, first * a.in.image, x->dtype);
        piece.means = moved(a.means, first * a.in.image, x->dtype);
        piece.dy = moved(a.dy, first * a.in.image, x->dtype);
        piece.out = moved(a.out, first * a.to.image, x->dtype);
        piece.dmeans = moved(a.dmeans, first * a.to.image, x->dtype);
        if (walk >= 0 && backward &&
            wd_divnorm_cut_sheet(&sheet, &piece, planes, kernel_rows[walk].threads, queue->device,
                                 &l)) {
            WD_TRY(
                wd_emit_kernel(queue, &kernel_rows[walk], l.blocks, l.threads, l.shared, &sheet));
            continue;
        }
        if (walk >= 0 && !backward &&
            wd_divnorm_cut_walk(&down, &piece, &kernel_rows[walk], planes, x->dtype,
                                queue->device)) {
            WD_TRY(emit_walk(queue, walk, &down, x->dtype));
            continue;
        }
        shared = cut(&piece, planes, x->dtype, queue->device);
        items = piece.planes * wd_most((int64_t)piece.by_columns.divisor * piece.by_steps.divisor,
                                       (int64_t)piece.by_shared.divisor * piece.stored_rows);
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[kernel],
                              wd_ceil_div(planes, piece.planes) * piece.by_part.divisor *
                                  piece.by_segment.divisor,
                              (uint32_t)wd_least(DIVNORM_THREADS, wd_ceil_div(items, 32) * 32),
                              (uint32_t)shared, &piece));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_divnorm_forward_vector = {
    .name = "divnorm_forward_vector",
    .op = WD_OP_DIVNORM_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};

const struct wd_engine wd_engine_divnorm_backward_vector = {
    .name = "divnorm_backward_vector",
    .op = WD_OP_DIVNORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
