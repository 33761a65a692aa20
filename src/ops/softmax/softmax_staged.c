/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax on the GPU over many rows that are no whole runs of 16 bytes, forward and backward:
 * neighbours of a row are neighbours in memory. Tiles of rows go through shared memory, where few
 * threads take each by words. softmax_staged_args.h says how; the cuts depend on shape, type and on how
 * the pointers lie. No state. */
#include "base/sizes.h"
#include "ops/softmax/softmax_gpu.h"
#include "ops/softmax/softmax_staged_args.h"

#define WD_KERNELS_MODULE softmax_staged
#define WD_KERNELS_ROWS "ops/softmax/softmax_staged_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP_BITS = 5,
    ROWS_A_PROCESSOR = 4,   /* of the tensor, at least */
    TILES_A_PROCESSOR = 8,  /* wanted before tiles are as large as TILE_BYTES */
    BYTES_LEAST = 1 << 20,  /* of a tensor; below, copies to shared memory do not pay */
    TILE_BYTES = 28 << 10,  /* of a block: seven of them to a processor */
    SHORT_BYTES = 14 << 10, /* likewise, of rows that are a thread's each */
    LENGTH_BACKWARD = 768,  /* beyond, a block a row is as fast: 1001 took 104 us, and 101 so */
    LENGTH_MAX = STAGED_ELEMENTS << WARP_BITS,
    TYPE_F64 = 1, /* place among the four types */
};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_softmax_shape s;
    if (!wd_softmax_gpu_match(problem, &s, reason)) return false;
    WD_NEED(s.type != TYPE_F64, reason, NOT_SUPPORTED_DATA_TYPE, "fp64 is not taken");
    WD_NEED(s.inner == 1, reason, NOT_SUPPORTED_LAYOUT,
            "neighbours of a row are %lld elements apart", (long long)s.inner);
    WD_NEED(s.length < LENGTH_MAX && s.length % s.elements != 0, reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements are whole runs, or longer than %d", (long long)s.length,
            LENGTH_MAX - 1);
    WD_NEED(s.length <= LENGTH_BACKWARD || wd_softmax_gpu_inputs(problem) == 1, reason,
            NOT_SUPPORTED_SHAPE, "rows of %lld elements of two tensors are longer than %d",
            (long long)s.length, LENGTH_BACKWARD);
    WD_NEED(s.total * s.bytes > BYTES_LEAST &&
                s.outer >= ROWS_A_PROCESSOR * (int64_t)problem->device->multiprocessors,
            reason, NOT_SUPPORTED_SHAPE, "%lld rows of %lld elements are too little",
            (long long)s.outer, (long long)s.length);
    return true;
}

static uint32_t bits_of(int64_t power)
{
    uint32_t bits = 0;
    while (power >> bits > 1) bits += 1;
    return bits;
}

/* How rows are cut into tiles. Neighbours among a warp's rows are `spread` rows apart, so many that
 * they begin an odd number of `lanes` words from each other, modulo the banks, where a tile has room
 * for as many rows: then no two words lie in one bank. */
static void cut(struct softmax_staged_args *a, const struct wd_softmax_shape *s, int64_t inputs,
                const struct wd_device *device)
{
    int64_t lanes = wd_power_up(wd_ceil_div(s->length + (s->bytes == 2), STAGED_ELEMENTS));
    int64_t share = wd_ceil_div(s->outer, TILES_A_PROCESSOR * (int64_t)device->multiprocessors);
    int64_t room = wd_least(TILE_BYTES / inputs / (s->length * s->bytes), share);
    int64_t halves = s->length * s->bytes / 2; /* of a row, in units of two bytes */
    int64_t spread = wd_most(1, 2 * lanes / (halves & -halves));
    int64_t warp_rows = ((int64_t)1 << WARP_BITS) / lanes;
    int64_t group = STAGED_GROUP * lanes;
    int64_t step;
    if (warp_rows == 1) spread = 1;
    while (spread > 1 && warp_rows * spread > room) spread /= 2;
    /* powers of two: a set of rows as they are spread, all warps' rows, rows that are whole runs */
    step = wd_most(warp_rows * spread, s->elements);
    if (STAGED_THREADS / lanes <= room) step = wd_most(step, STAGED_THREADS / lanes);
    a->tile = (uint32_t)wd_most(step, room / step * step);
    a->lane_bits = bits_of(lanes);
    a->spread_bits = bits_of(spread);
    /* rows of all that threads hold end with a whole group, which is loaded as the others' rest is */
    a->whole = (uint32_t)wd_least(s->length / group, STAGED_ELEMENTS / STAGED_GROUP - 1);
    a->runs = (uint32_t)wd_ceil_div(a->tile * s->length + a->shift, s->elements);
}

/* Rows of a few elements: as many as a tile has room for, of all threads alike. */
static void cut_short(struct softmax_staged_args *a, const struct wd_softmax_shape *s,
                      int64_t inputs, const struct wd_device *device)
{
    int64_t share = wd_ceil_div(s->outer, TILES_A_PROCESSOR * (int64_t)device->multiprocessors);
    int64_t room = wd_least(SHORT_BYTES / inputs / (s->length * s->bytes), share);
    a->tile = (uint32_t)wd_most(STAGED_THREADS, room / STAGED_THREADS * STAGED_THREADS);
    a->runs = (uint32_t)wd_ceil_div(a->tile * s->length + a->shift, s->elements);
}

cudnnStatus_t wd_softmax_staged_emit(const struct wd_call *call, struct wd_queue *queue)
{
    int inputs = wd_softmax_gpu_inputs(&call->problem);
    int first = inputs > 1 ? KERNEL_softmax_gradient_staged_f32 : KERNEL_softmax_staged_f32;
    struct softmax_vector_args v;
    struct softmax_staged_args a = {.x = NULL};
    struct wd_softmax_shape s;
    bool alike;
    wd_softmax_gpu_args(call, queue->device, &s, &v, &alike);
    a.x = v.x;
    a.dy = v.dy;
    a.y = v.y;
    a.alpha = v.alpha;
    a.beta = v.beta;
    a.rows = s.outer;
    a.length = (uint32_t)s.length;
    a.shift = alike ? (uint32_t)v.shift : 0;
    a.log = v.log;
    a.streaming = v.streaming;
    a.plain = v.plain;
    a.apart = !alike;
    if (s.length < STAGED_SHORT) {
        first = inputs > 1 ? KERNEL_softmax_gradient_short_f32 : KERNEL_softmax_short_f32;
        cut_short(&a, &s, inputs, queue->device);
    } else {
        cut(&a, &s, inputs, queue->device);
    }
    return wd_emit_kernel(queue, &kernel_rows[first + (s.type > TYPE_F64 ? s.type - 1 : 0)],
                          wd_ceil_div(s.outer, a.tile), STAGED_THREADS,
                          a.runs * STAGED_RUN * (uint32_t)inputs, &a);
}

const struct wd_engine wd_engine_softmax_forward_staged = {
    .name = "softmax_forward_staged",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = wd_softmax_staged_emit,
};

const struct wd_engine wd_engine_softmax_backward_staged = {
    .name = "softmax_backward_staged",
    .op = WD_OP_SOFTMAX_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = wd_softmax_staged_emit,
};
