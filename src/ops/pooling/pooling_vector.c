/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling on the GPU: images of one or two dimensions, NCHW and NHWC, in fp32, fp16 and bf16. The
 * gradient of a maximum goes image by image through a scratch of codes: a kernel notes where each
 * window's maximum is, the next collects. How an output is computed depends on shape and alignment
 * alone. */
#include <float.h>
#include <string.h>

#include "base/sizes.h"
#include "ops/engine.h"
#include "ops/pooling/pooling_vector_args.h"

#define WD_KERNELS_MODULE pooling_vector
#define WD_KERNELS_ROWS "ops/pooling/pooling_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    EXTENT_MAX = 1 << 28, /* of images, windows, strides, padding: their sums fit 31 bits */
    CODES_MAX = 6 << 20,  /* bytes, of the 8 MiB of calls without a workspace */
    LONG_WINDOW = 64,     /* elements that lanes share */
    LONG_PLANE = 8,       /* likewise where a plane has but one window */
    MANY_WINDOWS = 1 << 16,
    LANES_FEW = 32,   /* runs of a window that 8 lanes take on */
    LANES_WARP = 512, /* and 32 */
    TILE_RUNS = 32,
    THREADS_FEW = 64,
};

/* A problem's one form. A one-dimensional image has one row. */
struct shape {
    int type;     /* of the kernels' rows: 0, 1, 2 for fp32, fp16, bf16 */
    int64_t size; /* of an element */
    bool pixels;  /* NHWC */
    bool max;
    int64_t outer; /* planes, or images */
    int64_t inner; /* channels of a pixel, 1 of planes */
    int64_t image[2];
    int64_t windows[2];
    int64_t window[2];
    int64_t stride[2];
    int64_t pad[2];
};

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_HALF: return 1;
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return -1;
    }
}

/* Whether elements lie without gaps, n c ... or n ... c; a dimension of 1 lies anyhow. */
static bool lies(const struct wd_tensor *t, bool pixels)
{
    int64_t expected = 1;
    for (int i = 0; i < t->rank; ++i) {
        int d = t->rank - 1 - i;
        if (pixels) d = i == 0 ? 1 : i == t->rank - 1 ? 0 : t->rank - i;
        if (t->dim[d] != 1 && t->stride[d] != expected) return false;
        expected *= t->dim[d];
    }
    return true;
}

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_POOL_BACKWARD;
}

static const struct wd_tensor *image_of(const struct wd_problem *problem)
{
    return wd_slot(problem->graph, problem->node, is_backward(problem) ? BACKWARD_DX : FORWARD_X);
}

static const struct wd_tensor *windows_of(const struct wd_problem *problem)
{
    return wd_slot(problem->graph, problem->node, is_backward(problem) ? BACKWARD_DY : FORWARD_Y);
}

/* The maxima's x, backward. */
static const struct wd_tensor *source_of(const struct wd_problem *problem)
{
    return is_backward(problem) ? wd_slot(problem->graph, problem->node, BACKWARD_X) : NULL;
}

static struct shape shape_of(const struct wd_problem *problem)
{
    const struct wd_pool_attr *attr = &problem->node->attr.pool;
    const struct wd_tensor *x = image_of(problem);
    const struct wd_tensor *y = windows_of(problem);
    const struct wd_tensor *source = source_of(problem);
    struct shape s = {
        .type = type_index(x->dtype),
        .size = wd_dtype_bits(x->dtype) == 32 ? 4 : 2, /* match takes no others */
        .max = attr->mode == CUDNN_POOLING_MAX || attr->mode == CUDNN_POOLING_MAX_DETERMINISTIC,
        .image = {1, 1},
        .windows = {1, 1},
        .window = {1, 1},
        .stride = {1, 1},
    };
    int skip = 2 - attr->spatial;
    /* either where both are true: then channels are the better neighbours */
    s.pixels = x->dim[1] > 1 && lies(x, true) && lies(y, true) &&
               (!source || !s.max || lies(source, true));
    s.outer = s.pixels ? x->dim[0] : x->dim[0] * x->dim[1];
    s.inner = s.pixels ? x->dim[1] : 1;
    for (int d = 0; d < attr->spatial; ++d) {
        s.image[skip + d] = x->dim[2 + d];
        s.windows[skip + d] = y->dim[2 + d];
        s.window[skip + d] = attr->window[d];
        s.stride[skip + d] = attr->stride[d];
        s.pad[skip + d] = attr->pad_before[d];
    }
    return s;
}

static int64_t image_elements(const struct shape *s)
{
    return s->image[0] * s->image[1] * s->inner;
}

static int64_t image_windows(const struct shape *s)
{
    return s->windows[0] * s->windows[1] * s->inner;
}

static bool is_small(int64_t n)
{
    return n >= -EXTENT_MAX && n <= EXTENT_MAX;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_pool_attr *attr = &problem->node->attr.pool;
    const struct wd_tensor *x = image_of(problem);
    const struct wd_tensor *y = windows_of(problem);
    const struct wd_tensor *source = source_of(problem);
    struct shape s;
    WD_NEED(attr->spatial <= 2, reason, NOT_SUPPORTED_SHAPE, "%d spatial dimensions, at most 2",
            attr->spatial);
    WD_NEED(type_index(x->dtype) >= 0, reason, NOT_SUPPORTED_DATA_TYPE,
            "the image is %s, needed is fp32, fp16 or bf16", wd_dtype_name(x->dtype));
    WD_NEED(x->vect_count == 1 && y->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
            "a tensor is vectorised");
    s = shape_of(problem);
    WD_NEED(s.pixels ||
                (lies(x, false) && lies(y, false) && (!source || !s.max || lies(source, false))),
            reason, NOT_SUPPORTED_LAYOUT, "neither packed NCHW nor packed NHWC throughout");
    WD_NEED(wd_tensor_count(x) > 0 && wd_tensor_count(x) <= INT32_MAX && wd_tensor_count(y) > 0 &&
                wd_tensor_count(y) <= INT32_MAX,
            reason, NOT_SUPPORTED_SHAPE, "%lld and %lld elements, needed are 1 to 2^31-1",
            (long long)wd_tensor_count(x), (long long)wd_tensor_count(y));
    for (int d = 0; d < 2; ++d) {
        WD_NEED(is_small(s.image[d]) && is_small(s.windows[d]) && is_small(s.window[d]) &&
                    is_small(s.stride[d]) && is_small(s.pad[d]) &&
                    is_small(attr->pad_after[d < attr->spatial ? d : 0]),
                reason, NOT_SUPPORTED_SHAPE, "an extent, stride or padding is above %d",
                EXTENT_MAX);
    }
    WD_NEED(s.window[0] <= EXTENT_MAX / s.window[1], reason, NOT_SUPPORTED_SHAPE,
            "a window of %lld elements is above %d", (long long)(s.window[0] * s.window[1]),
            EXTENT_MAX);
    if (!is_backward(problem) || !s.max) return true;
    WD_NEED(source->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT, "x is vectorised");
    WD_NEED(s.window[0] * s.window[1] <= POOL_NO_CODE, reason, NOT_SUPPORTED_SHAPE,
            "a window of %lld elements, their codes end at %d",
            (long long)(s.window[0] * s.window[1]), POOL_NO_CODE);
    WD_NEED(image_windows(&s) <= CODES_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld windows of an image, there is room for the codes of %d",
            (long long)image_windows(&s), CODES_MAX);
    return true;
}

static float lowest_of(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_HALF: return -65504.0f;
    case CUDNN_DATA_BFLOAT16: return -0x1.fep127f;
    default: return -FLT_MAX;
    }
}

static struct pool_vector_args args_of(const struct wd_call *call, const struct shape *s,
                                       const struct wd_device *device)
{
    const struct wd_pool_attr *attr = &call->problem.node->attr.pool;
    const bool backward = is_backward(&call->problem);
    const int out = backward ? BACKWARD_DX : FORWARD_Y;
    struct pool_vector_args a;
    memset(&a, 0, sizeof a);
    if (!backward) a.x = wd_call_data(call, FORWARD_X);
    else if (s->max) a.x = wd_call_data(call, BACKWARD_X);
    if (backward) a.dy = wd_call_data(call, BACKWARD_DY);
    a.out = wd_call_data(call, out);
    a.alpha = (float)call->scalars[ALPHA];
    a.beta = (float)call->scalars[BETA];
    a.scales = call->scalars[ALPHA] != 0.0;
    a.blends = call->scalars[BETA] != 0.0;
    a.streaming = wd_tensor_extent(wd_call_tensor(call, out)) > device->l2_bytes;
    a.mode = !s->max ? POOL_AVERAGE : attr->propagate_nan ? POOL_MAX_NAN : POOL_MAX;
    a.exclude = attr->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    a.lowest = lowest_of(wd_call_tensor(call, out)->dtype);
    a.inverse = 1.0f / (float)(s->window[0] * s->window[1]);
    a.image_h = (int32_t)s->image[0];
    a.image_w = (int32_t)s->image[1];
    a.windows_h = (int32_t)s->windows[0];
    a.windows_w = (int32_t)s->windows[1];
    a.size_h = (int32_t)s->window[0];
    a.size_w = (int32_t)s->window[1];
    a.stride_h = (int32_t)s->stride[0];
    a.stride_w = (int32_t)s->stride[1];
    a.pad_h = (int32_t)s->pad[0];
    a.pad_w = (int32_t)s->pad[1];
    a.inner = (uint32_t)s->inner;
    a.total = (uint32_t)(s->outer * image_elements(s));
    a.aligned = (uintptr_t)a.x % 16 == 0;
    a.by_stride_h = wd_fastdiv_of((uint32_t)s->stride[0]);
    a.by_stride_w = wd_fastdiv_of((uint32_t)s->stride[1]);
    return a;
}

/* ---- Runs ---- */

/* The kernels' variants by bytes of a run: 16, 8, one element. */
enum { RUN_16, RUN_8, RUN_ONE };

static int64_t run_elements(const struct shape *s, int run)
{
    return run == RUN_16 ? 16 / s->size : run == RUN_8 ? 8 / s->size : 1;
}

/* The longest run that rows of `row` elements are made of, for pointers of this alignment. */
static int run_of(const struct shape *s, int64_t row, uintptr_t pointers)
{
    for (int run = RUN_16; run < RUN_ONE; ++run) {
        uintptr_t bytes = run == RUN_16 ? 16 : 8;
        if (row % run_elements(s, run) == 0 && pointers % bytes == 0) return run;
    }
    return RUN_ONE;
}

/* The variant of a window's size. */
static int size_variant(const struct shape *s)
{
    if (s->window[0] != s->window[1]) return 2;
    return s->window[0] == 2 ? 0 : s->window[0] == 3 ? 1 : 2;
}

static cudnnStatus_t launch(struct wd_queue *queue, int kernel, int64_t items,
                            struct pool_vector_args *a)
{
    uint32_t threads = POOL_THREADS;
    a->count = (uint32_t)items;
    if (items < (int64_t)POOL_THREADS * queue->device->multiprocessors) threads = THREADS_FEW;
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(items, threads), threads, 0, a);
}

/* ---- Forward ---- */

/* The kernels of maxima and averages, and those that write codes. */
struct forms {
    int plane;
    int pairs;
    int pixel;
};
static const struct forms pool = {KERNEL_pool_plane_f32_2, KERNEL_pool_pairs_f32_16_2,
                                  KERNEL_pool_pixel_f32_16_2};
static const struct forms code = {KERNEL_code_plane_f32_2, KERNEL_code_pairs_f32_16_2,
                                  KERNEL_code_pixel_f32_16_2};

/* Whether the windows are every second column's, as forward_pairs has them. */
static bool is_pairs(const struct shape *s, int variant)
{
    return variant < 2 && s->stride[1] == 2 && s->pad[1] == variant &&
           2 * s->windows[1] == s->image[1];
}

/* A thread a window, or a run of windows. */
static cudnnStatus_t emit_windows(struct wd_queue *queue, const struct forms *forms,
                                  const struct shape *s, struct pool_vector_args *a)
{
    int variant = size_variant(s);
    int64_t windows = s->outer * image_windows(s);
    uintptr_t in = (uintptr_t)a->x;
    uintptr_t out = forms == &code ? (uintptr_t)a->codes : (uintptr_t)a->out;
    int run;
    if (s->pixels) {
        /* codes are stored one by one */
        run = run_of(s, s->inner, forms == &code ? in : in | out);
        a->by_w = wd_fastdiv_of((uint32_t)(s->inner / run_elements(s, run)));
        a->by_h = wd_fastdiv_of((uint32_t)s->windows[1]);
        a->by_outer = wd_fastdiv_of((uint32_t)s->windows[0]);
        return launch(queue, forms->pixel + (s->type * 3 + run) * 3 + variant,
                      windows / run_elements(s, run), a);
    }
    a->by_h = wd_fastdiv_of((uint32_t)s->windows[0]);
    /* runs of y are half as long as those of x */
    run = is_pairs(s, variant) ? run_of(s, s->image[1], in) : RUN_ONE;
    if (run == RUN_16 && forms == &pool && out % 8 != 0) run = RUN_8;
    if (run == RUN_8 && forms == &pool && out % 4 != 0) run = RUN_ONE;
    if (run == RUN_ONE) {
        a->by_w = wd_fastdiv_of((uint32_t)s->windows[1]);
        return launch(queue, forms->plane + s->type * 3 + variant, windows, a);
    }
    a->by_w = wd_fastdiv_of((uint32_t)(s->image[1] / run_elements(s, run)));
    return launch(queue, forms->pairs + (s->type * 2 + run) * 2 + variant,
                  windows / (run_elements(s, run) / 2), a);
}

/* Elements of the largest part of a window that lies in the image. */
static int64_t window_terms(const struct shape *s)
{
    return wd_least(s->window[0], s->image[0]) * wd_least(s->window[1], s->image[1]);
}

/* Whether lanes share a window: where the image is one, or long windows are few or stand apart. */
static bool is_long(const struct shape *s)
{
    int64_t terms = window_terms(s);
    if (s->windows[0] * s->windows[1] == 1) return terms >= LONG_PLANE;
    return terms >= LONG_WINDOW && (s->outer * image_windows(s) <= MANY_WINDOWS ||
                                    (!s->pixels && 2 * s->stride[1] >= s->window[1]));
}

static cudnnStatus_t emit_long(struct wd_queue *queue, const struct shape *s,
                               struct pool_vector_args *a)
{
    int64_t windows = s->outer * image_windows(s);
    int64_t runs;
    int64_t tiles;
    int run;
    if (!s->pixels) {
        static const int64_t lanes[] = {8, 32, POOL_THREADS};
        runs = window_terms(s) * s->size / 16;
        run = runs <= LANES_FEW ? 0 : runs <= LANES_WARP ? 1 : 2;
        a->by_w = wd_fastdiv_of((uint32_t)s->windows[1]);
        a->by_h = wd_fastdiv_of((uint32_t)s->windows[0]);
        a->count = (uint32_t)windows;
        return wd_emit_kernel(queue, &kernel_rows[KERNEL_pool_lanes_f32_8 + s->type * 3 + run],
                              wd_ceil_div(windows * lanes[run], POOL_THREADS), POOL_THREADS, 0, a);
    }
    run = run_of(s, s->inner, (uintptr_t)a->x | (uintptr_t)a->out);
    runs = s->inner / run_elements(s, run);
    for (a->tile_runs = 1; a->tile_runs < TILE_RUNS && a->tile_runs < runs;) a->tile_runs *= 2;
    tiles = wd_ceil_div(runs, a->tile_runs);
    a->by_w = wd_fastdiv_of((uint32_t)tiles);
    a->by_h = wd_fastdiv_of((uint32_t)s->windows[1]);
    a->by_outer = wd_fastdiv_of((uint32_t)s->windows[0]);
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_pool_columns_f32_16 + s->type * 3 + run],
                          windows / s->inner * tiles, POOL_THREADS, 0, a);
}

static cudnnStatus_t emit_forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct shape s = shape_of(&call->problem);
    struct pool_vector_args a = args_of(call, &s, queue->device);
    return is_long(&s) ? emit_long(queue, &s, &a) : emit_windows(queue, &pool, &s, &a);
}

/* ---- Backward ---- */

/* Planes or images whose codes there is room for at once. */
static int64_t images_at_once(const struct shape *s)
{
    return wd_least(s->outer, CODES_MAX / image_windows(s));
}

static int64_t backward_workspace(const struct wd_problem *problem)
{
    struct shape s = shape_of(problem);
    return s.max ? images_at_once(&s) * image_windows(&s) : 0;
}

static cudnnStatus_t emit_collect(struct wd_queue *queue, const struct shape *s,
                                  struct pool_vector_args *a)
{
    static const int pixel[] = {KERNEL_grad_pixel_average_f32_16, KERNEL_grad_pixel_max_f32_16};
    static const int plane[] = {KERNEL_grad_plane_average_f32_16, KERNEL_grad_plane_max_f32_16};
    int64_t elements = s->outer * image_elements(s);
    int run;
    if (s->pixels) {
        run = run_of(s, s->inner, (uintptr_t)a->dy | (uintptr_t)a->out);
        a->by_w = wd_fastdiv_of((uint32_t)(s->inner / run_elements(s, run)));
        a->by_h = wd_fastdiv_of((uint32_t)s->image[1]);
        a->by_outer = wd_fastdiv_of((uint32_t)s->image[0]);
        return launch(queue, pixel[s->max] + s->type * 3 + run, elements / run_elements(s, run), a);
    }
    run = run_of(s, s->image[1], (uintptr_t)a->out);
    a->by_w = wd_fastdiv_of((uint32_t)(s->image[1] / run_elements(s, run)));
    a->by_h = wd_fastdiv_of((uint32_t)s->image[0]);
    return launch(queue, plane[s->max] + s->type * 3 + run, elements / run_elements(s, run), a);
}

static cudnnStatus_t emit_backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct shape s = shape_of(&call->problem);
    struct pool_vector_args whole = args_of(call, &s, queue->device);
    int64_t outer = s.outer;
    int64_t step = s.max ? images_at_once(&s) : outer;
    for (int64_t first = 0; first < outer; first += step) {
        struct pool_vector_args a = whole;
        int64_t image = first * image_elements(&s) * s.size;
        s.outer = wd_least(step, outer - first);
        a.out = (char *)whole.out + image;
        a.dy = (const char *)whole.dy + first * image_windows(&s) * s.size;
        if (s.max) {
            a.x = (const char *)whole.x + image;
            a.codes = call->workspace;
            WD_TRY(emit_windows(queue, &code, &s, &a));
        }
        WD_TRY(emit_collect(queue, &s, &a));
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_pool_forward_vector = {
    .name = "pool_forward_vector",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit_forward,
};

const struct wd_engine wd_engine_pool_backward_vector = {
    .name = "pool_backward_vector",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = backward_workspace,
    .emit = emit_backward,
};
