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

enum { TYPE_F64 = 1, TYPE_F16 = 2 }; /* places among the kernels of four types */

enum {
    WARP = SOFTMAX_WARP,
    COLUMN_BLOCK = 256,   /* threads of a block, where there is a choice */
    COLUMN_CHANNELS = 64, /* that a block must have for a cluster to pay */
    ACROSS_SHARED = 64,   /* bounds the shared memory: 40 KiB */
    HELD_THREADS = 128,   /* of a block whose threads have all channels of their positions */
    HELD_CHANNELS = 32,   /* at most */
    HELD_FILL = 64,       /* such threads that a processor must have for them to pay */
};

/* The kernels of a direction, the first of each two to four: columns and those of few channels have no fp64. */
struct direction {
    int columns, columns_one, columns_long;
    int wide8, word32, odd32_f16;
    uint32_t column_runs; /* channels of a thread */
    uint32_t column_ones;
};

static const struct direction forward = {
    KERNEL_softmax_columns_f32,
    KERNEL_softmax_columns_one_f32,
    KERNEL_softmax_columns_long_f32,
    KERNEL_softmax_columns_wide8_f32,
    KERNEL_softmax_columns_word32_f32,
    KERNEL_softmax_columns_odd32_f16,
    8,
    16,
};

static const struct direction backward = {
    KERNEL_softmax_gradient_columns_f32,
    KERNEL_softmax_gradient_columns_one_f32,
    KERNEL_softmax_gradient_columns_long_f32,
    KERNEL_softmax_gradient_columns_wide8_f32,
    KERNEL_softmax_gradient_columns_word32_f32,
    KERNEL_softmax_gradient_columns_odd32_f16,
    4,
    12,
};

static int type_of_three(const struct wd_softmax_shape *s)
{
    return s->type > TYPE_F64 ? s->type - 1 : 0;
}

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
                          bool whole_runs, const struct wd_device *device)
{
    struct tiling t = {.elements = whole_runs ? s->elements : 1,
                       .held = whole_runs ? d->column_runs : d->column_ones};
    int64_t narrowest = 32 / s->bytes / t.elements; /* 32 bytes side by side */
    int most = wd_softmax_gpu_cluster(device);
    if (!whole_runs && s->bytes == 8) t.held = SOFTMAX_WIDE(t.held);
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
                                bool aligned, struct wd_queue *queue, struct softmax_vector_args *a)
{
    bool whole_runs = aligned && s->inner % s->elements == 0 && s->type != TYPE_F64;
    struct tiling t = tile(d, s, whole_runs, queue->device);
    int kernel = t.held == 0  ? d->columns_long + s->type
                 : whole_runs ? d->columns + type_of_three(s)
                              : d->columns_one + s->type;
    int64_t threads = t.across * t.down;
    int64_t slices = t.across < WARP ? threads / WARP : t.down;
    int64_t shared = (slices + 1 + (t.cluster > 1)) * t.across * t.elements * s->pair;
    if (slices == 1 && t.cluster == 1) shared = 0;
    a->runs = wd_ceil_div(s->length, t.cluster);
    a->cluster = (uint32_t)t.cluster;
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
    bool whole_runs = at_once >= SOFTMAX_BYTES && s->inner % s->elements == 0;
    int type = type_of_three(s);
    if (s->length > HELD_CHANNELS || s->type == TYPE_F64) return -1;
    if (whole_runs && s->length <= 8) {
        *positions = s->elements;
        kernel = d->wide8 + type;
    } else if (s->bytes > 2 || (at_once >= 4 && s->inner % 2 == 0)) {
        *positions = s->bytes == 2 ? 2 : 1;
        kernel = d->word32 + type;
    } else {
        *positions = 1;
        kernel = d->odd32_f16 + s->type - TYPE_F16;
    }
    if (s->outer * s->inner / *positions < (int64_t)device->multiprocessors * HELD_FILL) return -1;
    return kernel;
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
    at_once = !alike || a.shift % 2 != 0 ? s.bytes : a.shift == 0 ? SOFTMAX_BYTES : 2 * s.bytes;
    kernel = held_kernel(d, &s, queue->device, at_once, &positions);
    if (kernel >= 0) {
        set_positions(&a, &s, s.outer * s.inner + HELD_THREADS * positions);
        return wd_emit_kernel(queue, &kernel_rows[kernel],
                              wd_ceil_div(a.rows, HELD_THREADS * positions), HELD_THREADS, 0, &a);
    }
    return emit_tiles(d, &s, alike && a.shift == 0, queue, &a);
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
