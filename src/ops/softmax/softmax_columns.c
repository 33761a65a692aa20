/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax on the GPU over columns, forward and backward: the channels of a position are `inner`
 * elements apart, and positions are neighbours. Channels that fit into the registers of a thread, a
 * block, or a cluster of blocks are read once, more of them twice. The cuts depend on shape, type and
 * device alone. No state. */
#include "base/sizes.h"
#include "ops/softmax/softmax_gpu.h"

#define WD_KERNELS_MODULE softmax_columns
#define WD_KERNELS_ROWS "ops/softmax/softmax_columns_kernels.def"
#include "ops/kernels_host.inc"

enum { TYPE_F64 = 1, TYPE_BF16 = 3 }; /* places among the four types */

enum {
    WARP = SOFTMAX_WARP,
    COLUMN_BLOCK = 256,   /* threads of a block, where there is a choice */
    COLUMN_CHANNELS = 64, /* that a block must have for a cluster to pay */
    ACROSS_SHARED = 64,   /* bounds the shared memory: 40 KiB */
    HELD_THREADS = 128,   /* of a block whose threads have all channels of their positions */
    HELD_CHANNELS = 32,   /* at most */
    RUN = 4,              /* positions of a thread, where there are several */
    HELD_FILL = 64,       /* such threads that a processor must have for them to pay */
    PAIR_POSITIONS = 63,  /* of a warp's words, wherever a channel begins */
    PAIR_ROWS = SOFTMAX_COLUMN_THREADS / SOFTMAX_WARP, /* warps of a block that has such words */
    PAIR_FILL = 16, /* such warps that a processor must have for them to pay */
};

/* The kernels of a direction. There may be no packed ones, fp16 and bf16, and no word32. */
struct direction {
    int runs, packed, one, one_f64, long_, long_f64;
    int wide8, word32, odd32;
    uint32_t column_runs; /* channels of a thread that has several positions */
    uint32_t column_ones;
    uint32_t column_wides; /* of fp64 */
};

static const struct direction forward = {
    KERNEL_softmax_columns_runs,
    -1,
    KERNEL_softmax_columns_one,
    KERNEL_softmax_columns_one_f64,
    KERNEL_softmax_columns_long,
    KERNEL_softmax_columns_long_f64,
    KERNEL_softmax_columns_wide8,
    KERNEL_softmax_columns_word32,
    KERNEL_softmax_columns_odd32,
    8,
    32,
    11,
};

static const struct direction backward = {
    KERNEL_softmax_gradient_columns_runs,
    KERNEL_softmax_gradient_columns_f16,
    KERNEL_softmax_gradient_columns_one,
    KERNEL_softmax_gradient_columns_one_f64,
    KERNEL_softmax_gradient_columns_long,
    KERNEL_softmax_gradient_columns_long_f64,
    KERNEL_softmax_gradient_columns_wide8,
    -1,
    KERNEL_softmax_gradient_columns_odd32,
    4,
    12,
    9,
};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_softmax_shape s;
    if (!wd_softmax_gpu_match(problem, &s, reason)) return false;
    WD_NEED(s.inner > 1, reason, NOT_SUPPORTED_LAYOUT, "neighbours of a row lie side by side");
    return true;
}

struct tiling {
    int64_t across; /* threads side by side */
    int64_t down;   /* that share the channels of a position */
    int64_t cluster;
    int64_t elements; /* positions of a thread */
    int64_t held;     /* channels of a thread; 0: it walks over them */
};

/* Threads that share `channels`: enough to hold them, in whole warps. */
static int64_t down_of(const struct tiling *t, int64_t channels)
{
    int64_t step = t->across < WARP ? WARP / t->across : 1;
    return wd_softmax_multiple_up(wd_ceil_div(wd_ceil_div(channels, t->cluster), t->held), step);
}

/* The widest tile whose channels a block holds, or a cluster; else one that is walked over. */
static void hold(struct tiling *t, int64_t channels, int64_t narrowest, int most)
{
    for (int64_t wide = 4; wide >= 1; wide /= 2) {
        for (t->cluster = 1; t->cluster <= most; t->cluster *= 2) {
            t->across = narrowest * wide;
            t->down = down_of(t, channels);
            if (t->across * t->down <= SOFTMAX_COLUMN_THREADS) return;
            if (wide == 4) break; /* rather half as wide than in a cluster */
        }
    }
    t->held = 0;
    t->elements = 1;
    t->cluster = 1;
}

static int64_t tiles_of(const struct tiling *t, const struct wd_softmax_shape *s)
{
    return wd_ceil_div(s->outer * s->inner, t->across * t->elements);
}

static struct tiling tile(const struct direction *d, const struct wd_softmax_shape *s,
                          int64_t positions, const struct wd_device *device)
{
    struct tiling t = {.elements = positions,
                       .held = positions > 1 ? d->column_runs : d->column_ones};
    int64_t narrowest = 32 / s->bytes / t.elements; /* 32 bytes side by side */
    int most = wd_softmax_gpu_cluster(device);
    if (s->type == TYPE_F64) t.held = d->column_wides;
    hold(&t, s->length, narrowest, most);
    if (t.held == 0) {
        t.across = 4 * (32 / s->bytes);
        t.down = SOFTMAX_COLUMN_THREADS / t.across;
        while (t.cluster < most && tiles_of(&t, s) * t.cluster * 2 <= device->multiprocessors) {
            t.cluster *= 2;
        }
        return t;
    }
    while (t.across * t.down * 2 <= COLUMN_BLOCK && (t.down == 1 || t.across < ACROSS_SHARED)) {
        t.across *= 2;
        t.down = down_of(&t, s->length);
    }
    while (t.across > narrowest && tiles_of(&t, s) * t.cluster < device->multiprocessors) {
        t.across /= 2;
        t.down = down_of(&t, s->length);
    }
    while (t.cluster < most && tiles_of(&t, s) * t.cluster * 2 <= device->multiprocessors &&
           s->length >= COLUMN_CHANNELS * 2 * t.cluster) {
        t.cluster *= 2;
        t.down = down_of(&t, s->length);
    }
    return t;
}

/* `last` is beyond the position of every thread. */
static void set_positions(struct softmax_vector_args *a, const struct wd_softmax_shape *s,
                          int64_t last)
{
    a->rows = s->outer * s->inner;
    a->wide = last > INT32_MAX;
    a->by_inner = wd_fastdiv_of(a->wide ? 1 : (uint32_t)s->inner);
}

static cudnnStatus_t emit_tiles(const struct direction *d, const struct wd_softmax_shape *s,
                                int64_t at_once, struct wd_queue *queue,
                                struct softmax_vector_args *a)
{
    bool wide = s->type == TYPE_F64;
    bool whole_runs = at_once >= RUN * s->bytes && s->inner % RUN == 0 && !wide;
    bool packed =
        d->packed >= 0 && s->bytes == 2 && at_once >= SOFTMAX_BYTES && s->inner % s->elements == 0;
    struct tiling t = tile(d, s, packed ? s->elements : whole_runs ? RUN : 1, queue->device);
    int kernel = t.held == 0  ? (wide ? d->long_f64 : d->long_)
                 : packed     ? d->packed + (s->type == TYPE_BF16)
                 : whole_runs ? d->runs
                 : wide       ? d->one_f64
                              : d->one;
    int64_t threads = t.across * t.down;
    int64_t slices = t.across < WARP ? threads / WARP : t.down;
    int64_t width = t.across * t.elements;
    int64_t shared = (slices * (width + 1) + (1 + (t.cluster > 1)) * width) * s->pair;
    if (slices == 1 && t.cluster == 1) shared = 0;
    a->runs = wd_ceil_div(s->length, t.cluster);
    wd_softmax_set_cluster(a, t.cluster);
    set_positions(a, s, s->outer * s->inner + t.across * t.elements);
    wd_softmax_set_lanes(a, t.across);
    return wd_emit_cluster_kernel(queue, &kernel_rows[kernel], tiles_of(&t, s) * t.cluster,
                                  (uint32_t)threads, (uint32_t)t.cluster, (uint32_t)shared, a);
}

/* The kernel whose threads have all channels of `*positions` each; -1 where there is none, or where
 * too few threads would be busy. `at_once` bytes are what pointers are aligned to at least. */
static int held_kernel(const struct direction *d, const struct wd_softmax_shape *s,
                       const struct wd_device *device, int64_t at_once, int64_t *positions)
{
    int kernel;
    bool whole_runs = at_once >= RUN * s->bytes && s->inner % RUN == 0;
    if (s->length > HELD_CHANNELS || s->type == TYPE_F64) return -1;
    if (whole_runs && s->length <= 8) {
        *positions = RUN;
        kernel = d->wide8;
    } else if (s->bytes == 2 && at_once >= 4 && s->inner % 2 == 0 && d->word32 >= 0) {
        *positions = 2;
        kernel = d->word32;
    } else {
        *positions = 1;
        kernel = d->odd32;
    }
    if (s->outer * s->inner / *positions < (int64_t)device->multiprocessors * HELD_FILL) return -1;
    return kernel;
}

/* By words of two positions, forward; *fits is false where threads would idle: where planes are little more
 * than tiles of a warp's words, or tiles are few. */
static cudnnStatus_t emit_pairs(const struct wd_softmax_shape *s, struct wd_queue *queue,
                                struct softmax_vector_args *a, bool *fits)
{
    const int64_t most = wd_softmax_gpu_cluster(queue->device);
    int64_t tiles = wd_ceil_div(s->inner, PAIR_POSITIONS); /* of a plane */
    int64_t width = wd_ceil_div(s->inner, tiles);
    int64_t cluster = 1;
    int64_t down;
    int64_t shared;
    while (cluster < most && wd_ceil_div(s->length, cluster) > PAIR_ROWS * SOFTMAX_PAIR_CHANNELS) {
        cluster *= 2;
    }
    down = wd_ceil_div(wd_ceil_div(s->length, cluster), SOFTMAX_PAIR_CHANNELS);
    down = wd_softmax_multiple_up(down, 2);
    *fits =
        down <= PAIR_ROWS && width * 4 >= PAIR_POSITIONS * 3 &&
        s->length * 4 >= cluster * down * SOFTMAX_PAIR_CHANNELS * 3 &&
        s->outer * tiles * cluster * down >= PAIR_FILL * (int64_t)queue->device->multiprocessors;
    if (!*fits) return CUDNN_STATUS_SUCCESS;
    a->runs = wd_ceil_div(s->length, cluster);
    a->segments = (uint32_t)tiles;
    a->by_inner = wd_fastdiv_of((uint32_t)tiles);
    a->lanes = (uint32_t)width;
    wd_softmax_set_cluster(a, cluster);
    shared = (down + 1 + (cluster > 1)) * (PAIR_POSITIONS + 2) * s->pair;
    return wd_emit_cluster_kernel(
        queue, &kernel_rows[KERNEL_softmax_columns_pairs_f16 + (s->type == TYPE_BF16)],
        s->outer * tiles * cluster, (uint32_t)(down * WARP), (uint32_t)cluster, (uint32_t)shared,
        a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct direction *d = wd_softmax_gpu_inputs(&call->problem) > 1 ? &backward : &forward;
    struct wd_softmax_shape s;
    struct softmax_vector_args a;
    bool alike;
    int64_t positions;
    int64_t at_once;
    int kernel;
    wd_softmax_gpu_args(call, queue->device, &s, &a, &alike);
    at_once = !alike || a.shift % 2 != 0 ? s.bytes
              : a.shift == 0             ? SOFTMAX_BYTES
              : a.shift % 4 == 0         ? 4 * s.bytes
                                         : 2 * s.bytes;
    kernel = held_kernel(d, &s, queue->device, at_once, &positions);
    if (kernel >= 0) {
        set_positions(&a, &s, s.outer * s.inner + HELD_THREADS * positions);
        return wd_emit_kernel(queue, &kernel_rows[kernel],
                              wd_ceil_div(a.rows, HELD_THREADS * positions), HELD_THREADS, 0, &a);
    }
    if (d == &forward && s.bytes == 2 && a.plain &&
        (at_once < RUN * s.bytes || s.inner % RUN != 0) &&
        ((uintptr_t)a.x ^ (uintptr_t)a.y) % 4 == 0) {
        bool fits;
        WD_TRY(emit_pairs(&s, queue, &a, &fits));
        if (fits) return CUDNN_STATUS_SUCCESS;
    }
    return emit_tiles(d, &s, at_once, queue, &a);
}

const struct wd_engine wd_engine_softmax_forward_columns = {
    .name = "softmax_forward_columns",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};

const struct wd_engine wd_engine_softmax_backward_columns = {
    .name = "softmax_backward_columns",
    .op = WD_OP_SOFTMAX_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
