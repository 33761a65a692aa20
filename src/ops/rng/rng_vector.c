/* SPDX-License-Identifier: Apache-2.0
 *
 * Random tensors on the GPU in one pass, for tensors without gaps that lie in the order of their
 * dims, or with channels as neighbours. rng_vector_args.h says how they are walked. */
#include <string.h>

#include "base/sizes.h"
#include "ops/engine.h"
#include "ops/rng/rng_call.h"
#include "ops/rng/rng_vector_args.h"

#define WD_KERNELS_MODULE rng_vector_exact
#define WD_KERNELS_ROWS "ops/rng/rng_vector_exact_kernels.def"
#include "ops/kernels_host.inc"

enum {
    TYPE_F32,
    TYPE_F64,
    TYPE_16, /* fp16 and bf16 */
    TYPES_WIDE,
    TYPE_BYTE = TYPES_WIDE, /* int8 and uint8 */
    TYPE_I32,
    TYPES_UNIFORM,
    TYPE_OTHER = TYPES_UNIFORM, /* of whole bytes */
    TYPE_BITS
};

enum {
    THREADS_FEW = 64,
    ELEMENTS_MAX_LOG2 = 34,   /* blocks of bits are counted in 32 bits */
    TILE_BYTES = 16384,       /* wanted with a table, */
    TILE_BYTES_ALONE = 32768, /* and without, */
    TILE_BYTES_MOST = 39000,  /* of which a block has two where it has a table */
    TILES_AT_ONCE = 6,        /* of a processor, for which there is room at least */
    TILE_ROW_WHOLE = 256,     /* up to which a tile has all channels */
    TILE_PIXELS = 128,
    TILES_A_PROCESSOR = 4, /* at least, where tiles can be smaller */
    TABLE_BYTES = 2 * RNG_RADII,
    WARP_TILE_BYTES = 8192, /* up to which a warp turns a tile alone */
    TURNED_THREADS = 128,
    PAIRS_BYTES =
        64, /* of a pixel, at least: two channels a thread are stored a sector at a time */
    BLOCK_SHARED = 1024, /* what a block takes besides */
    REGISTERS = 65536,   /* of a processor */
    MUCH = 1024,         /* warps a processor, of a run each: several times what runs at once */
    MUCH_MORE = 2750,    /* likewise, of blocks that have three times as many runs */
};

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return TYPE_F32;
    case CUDNN_DATA_DOUBLE: return TYPE_F64;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return TYPE_16;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8: return TYPE_BYTE;
    case CUDNN_DATA_INT32: return TYPE_I32;
    case CUDNN_DATA_BOOLEAN: return TYPE_BITS;
    default: return wd_dtype_bits(dtype) >= 8 ? TYPE_OTHER : -1;
    }
}

static int64_t plane_of(const struct wd_tensor *y)
{
    int64_t plane = 1;
    for (int d = 2; d < y->rank; ++d) plane *= y->dim[d];
    return plane;
}

enum { FLAT, PAIRS, TILES };

/* The kernel that makes y's elements in a way, or -1. */
static int kernel_of(const struct wd_rng_attr *attr, int dtype, int way)
{
    static const int chance[][4] = {
        {KERNEL_rng_chance_8, KERNEL_rng_chance_16, KERNEL_rng_chance_32, KERNEL_rng_chance_64},
        {-1, KERNEL_rng_pairs_chance_16, KERNEL_rng_pairs_chance_32, -1},
        {KERNEL_rng_tiles_chance_8, KERNEL_rng_tiles_chance_16, KERNEL_rng_tiles_chance_32,
         KERNEL_rng_tiles_chance_64}};
    static const int uniform[][TYPES_UNIFORM] = {
        {KERNEL_rng_uniform_f32, KERNEL_rng_uniform_f64, KERNEL_rng_uniform_16,
         KERNEL_rng_uniform_byte, KERNEL_rng_uniform_i32},
        {KERNEL_rng_pairs_uniform_f32, -1, KERNEL_rng_pairs_uniform_16, -1, -1},
        {KERNEL_rng_tiles_uniform_f32, KERNEL_rng_tiles_uniform_f64, KERNEL_rng_tiles_uniform_16,
         -1, -1}};
    static const int normal[][TYPES_WIDE] = {
        {KERNEL_rng_normal_f32, KERNEL_rng_normal_f64, KERNEL_rng_normal_16},
        {KERNEL_rng_pairs_normal_f32, -1, KERNEL_rng_pairs_normal_16},
        {KERNEL_rng_tiles_normal_f32, KERNEL_rng_tiles_normal_f64, KERNEL_rng_tiles_normal_16}};
    int type = type_index(dtype);
    int width = 0;
    switch (attr->distribution) {
    case CUDNN_RNG_DISTRIBUTION_BERNOULLI:
        if (type == TYPE_BITS) return KERNEL_rng_chance_bits;
        while (8 << width < wd_dtype_bits(dtype)) width += 1;
        return chance[way][width];
    case CUDNN_RNG_DISTRIBUTION_UNIFORM:
        return type >= 0 && type < TYPES_UNIFORM ? uniform[way][type] : -1;
    default: return type >= 0 && type < TYPES_WIDE ? normal[way][type] : -1;
    }
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, RNG_Y);
    int distribution = problem->node->attr.rng.distribution;
    int type = type_index(y->dtype);
    char text[96];
    WD_NEED(type >= 0, reason, NOT_SUPPORTED_DATA_TYPE, "y is %s, needed are whole bytes or a mask",
            wd_dtype_name(y->dtype));
    WD_NEED(distribution == CUDNN_RNG_DISTRIBUTION_BERNOULLI ||
                type < (distribution == CUDNN_RNG_DISTRIBUTION_NORMAL ? (int)TYPES_WIDE
                                                                      : (int)TYPES_UNIFORM),
            reason, NOT_SUPPORTED_DATA_TYPE,
            "y is %s, and uniform numbers are fp64, fp32, fp16, bf16, int8, uint8 or int32, normal "
            "ones of floating point",
            wd_dtype_name(y->dtype));
    WD_NEED(y->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT, "y is vectorised");
    WD_NEED(wd_tensor_count(y) > 0, reason, NOT_SUPPORTED_SHAPE, "y is empty");
    WD_NEED(wd_tensor_count(y) >> ELEMENTS_MAX_LOG2 == 0, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements are more than 2^%d", (long long)wd_tensor_count(y), ELEMENTS_MAX_LOG2);
    if (wd_tensor_is_nchw(y)) return true;
    WD_NEED(type < TYPES_WIDE ||
                (type != TYPE_BITS && distribution == CUDNN_RNG_DISTRIBUTION_BERNOULLI),
            reason, NOT_SUPPORTED_DATA_TYPE, "y is %s, not in the order of its dims",
            wd_dtype_name(y->dtype));
    WD_NEED(wd_tensor_is_nhwc(y), reason, NOT_SUPPORTED_LAYOUT,
            "y lies neither in the order of its dims nor with channels fastest: %s",
            wd_tensor_text(y, text, sizeof text));
    WD_NEED(wd_tensor_count(y) < INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements with channels fastest are too many to be counted",
            (long long)wd_tensor_count(y));
    return true;
}

/* Whether a kernel's blocks bring the table of radii where there is enough for them. */
static bool may_stay(int kernel)
{
    return kernel == KERNEL_rng_normal_16 || kernel == KERNEL_rng_pairs_normal_16;
}

/* Normal numbers of 16 bits, by blocks that stay where there are units for all of their threads. Returns how many
 * blocks there are. */
static int64_t stay(const struct wd_queue *queue, struct rng_vector_args *a, int kernel,
                    int64_t units, int64_t threads)
{
    const struct wd_kernel_row *row = &kernel_rows[kernel];
    int64_t blocks =
        REGISTERS / (int64_t)(row->threads * row->registers) * queue->device->multiprocessors;
    a->near = units >= blocks * threads;
    if (!a->near) blocks = wd_ceil_div(units, threads);
    return blocks;
}

/* Whether instructions bind a kernel, so that what a block does before its first run counts. */
static bool much_each(int kernel)
{
    return kernel == KERNEL_rng_normal_f32 || kernel == KERNEL_rng_chance_8;
}

static cudnnStatus_t emit_flat(struct wd_queue *queue, struct rng_vector_args *a, int kernel,
                               int64_t run, int64_t shift)
{
    int64_t own = kernel != KERNEL_rng_chance_bits && shift > 0 ? 31 : 32; /* runs of a warp */
    int64_t threads = RNG_THREADS;
    int64_t warps = wd_ceil_div(wd_ceil_div(a->count + shift, run), own);
    if (may_stay(kernel)) {
        int64_t blocks;
        threads = kernel_rows[kernel].threads;
        if (warps < queue->device->multiprocessors * (threads / 32)) threads = THREADS_FEW;
        blocks = stay(queue, a, kernel, 32 * warps, threads);
        a->turns = (uint32_t)wd_ceil_div(32 * warps, blocks * threads);
        return wd_emit_kernel(queue, &kernel_rows[kernel], blocks, (uint32_t)threads, 0, a);
    }
    a->runs = RNG_RUNS;
    if (warps * 32 < threads * RNG_RUNS * queue->device->multiprocessors) threads = THREADS_FEW;
    else if (much_each(kernel) && warps >= MUCH * queue->device->multiprocessors) {
        a->runs *= 2;
        if (kernel == KERNEL_rng_normal_f32 && warps >= MUCH_MORE * queue->device->multiprocessors)
            a->runs *= 3;
    }
    /* where runs are handed on, all but the first */
    a->whole_blocks = (uint32_t)((a->count + shift) / (threads / 32 * a->runs * own * run));
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(warps, threads / 32 * a->runs),
                          (uint32_t)threads, 0, a);
}

/* A thread has two channels, and as many pixels as a block of bits has elements. */
static cudnnStatus_t emit_pairs(struct wd_queue *queue, struct rng_vector_args *a, int kernel,
                                const struct wd_tensor *y, int64_t block)
{
    int64_t pairs = a->channels / 2;
    int64_t rows = a->count / (2 * block * pairs), units = rows * pairs;
    int64_t threads = RNG_THREADS;
    int64_t blocks;
    a->row_blocks = (uint32_t)(plane_of(y) / block);
    a->by_units = wd_fastdiv_of((uint32_t)pairs);
    a->by_spans = wd_fastdiv_of(a->row_blocks);
    a->all_rows = (uint32_t)rows;
    if (may_stay(kernel)) {
        threads = kernel_rows[kernel].threads;
        if (units < queue->device->multiprocessors * threads) threads = THREADS_FEW;
        blocks = stay(queue, a, kernel, units, threads);
    } else {
        if (units < threads * RNG_RUNS * queue->device->multiprocessors) threads = THREADS_FEW;
        blocks = wd_ceil_div(pairs * wd_ceil_div(rows, RNG_RUNS), threads);
    }
    blocks = wd_most(blocks, wd_ceil_div(pairs, threads)); /* at least a row at a time */
    return wd_emit_kernel(queue, &kernel_rows[kernel], blocks, (uint32_t)threads, 0, a);
}

/* How many blocks a processor has at once. A quarter of it has a quarter of the registers and takes every fourth warp. */
static int64_t resident(const struct wd_queue *queue, int kernel, int64_t threads, int64_t shared)
{
    int64_t by_warps = REGISTERS / (32 * (int64_t)kernel_rows[kernel].registers) /
                       (4 * wd_ceil_div(threads, 4 * 32));
    int64_t by_shared = queue->device->shared_per_processor / (shared + BLOCK_SHARED);
    return wd_most(wd_least(by_warps, by_shared), 1);
}

/* Tiles that are turned, by a warp each, or two where they are large. With a table a processor has one block, whose
 * groups draw their tiles. */
static cudnnStatus_t emit_turned(struct wd_queue *queue, struct rng_vector_args *a, int kernel)
{
    int64_t most = queue->device->shared_per_block - TABLE_BYTES - BLOCK_SHARED;
    int64_t groups, blocks;
    a->tile_bytes = (uint32_t)(a->plane * RNG_ROW);
    a->group = a->tile_bytes <= WARP_TILE_BYTES ? 32 : 64;
    if (kernel != KERNEL_rng_tiles_normal_16) {
        groups = TURNED_THREADS / a->group;
        blocks = wd_ceil_div(a->all_tiles, groups);
    } else {
        void *counters = NULL;
        WD_TRY(queue->ops->counters(queue, &counters));
        a->counter = counters;
        kernel = KERNEL_rng_turned_normal_16;
        /* two warps meet at a barrier of their own, of which a block has 15 */
        groups = wd_least(most / a->tile_bytes, a->group == 32 ? RNG_GROUPS : 15);
        groups = wd_clamp(wd_ceil_div(a->all_tiles, queue->device->multiprocessors), 1, groups);
        blocks = wd_least(wd_ceil_div(a->all_tiles, groups), queue->device->multiprocessors);
    }
    return wd_emit_kernel(queue, &kernel_rows[kernel], blocks, (uint32_t)(groups * a->group),
                          (uint32_t)(groups * a->tile_bytes), a);
}

/* Tiles have all channels where these are few, else some of them, in whole units of memory. What a block finds out
 * before its first number is much: without a table, which takes room, tiles are large (uniform fp32 NHWC
 * 63x61x111x113, odd pointer: 66.7 us by half as many pixels, 57.0). */
static cudnnStatus_t emit_tiles(struct wd_queue *queue, struct rng_vector_args *a, int kernel,
                                const struct wd_tensor *y, int64_t block)
{
    int64_t bytes = wd_dtype_bytes(y->dtype);
    int64_t plane = plane_of(y);
    int64_t images = wd_most(y->dim[0], 1);
    int64_t channels = y->dim[1];
    int64_t wide = channels;
    int64_t threads = RNG_THREADS;
    int64_t wanted = kernel == KERNEL_rng_tiles_normal_16 ? TILE_BYTES : TILE_BYTES_ALONE;
    int64_t pixels, groups, spans, blocks;
    uint32_t shared;
    if (wanted == TILE_BYTES_ALONE) {
        wanted =
            wd_least(wanted, queue->device->shared_per_processor / TILES_AT_ONCE - BLOCK_SHARED);
    }
    if (channels * bytes > TILE_ROW_WHOLE && channels * bytes % RNG_BYTES == 0 && a->shift == 0) {
        wide = RNG_ROW / bytes;
        a->units = RNG_ROW / RNG_BYTES;
    } else if (channels * bytes * block > TILE_BYTES_MOST - RNG_BYTES) {
        wide = 2 * RNG_ROW / bytes;
    }
    a->contiguous = wide == channels;
    pixels = wd_clamp(wanted / (wide * bytes) / block * block, block, TILE_PIXELS);
    groups = wd_ceil_div(channels, wide);
    while (pixels >= 2 * block && images * wd_ceil_div(plane, pixels) * groups <
                                      TILES_A_PROCESSOR * (int64_t)queue->device->multiprocessors) {
        pixels = pixels / 2 / block * block;
    }
    pixels = wd_least(pixels, plane);
    spans = wd_ceil_div(plane, pixels);
    a->small = spans == 1 && plane % block != 0;
    /* 4 and 2 bytes have such kernels; 16 bytes of channels are a block of bits or two */
    a->turned = a->small && a->units > 0 && (bytes == 2 || bytes == 4) && channels % block == 0 &&
                wide % block == 0;
    a->tile_channels = (uint32_t)wide;
    a->tile_pixels = (uint32_t)pixels;
    a->by_channels = wd_fastdiv_of((uint32_t)wide);
    a->by_units = wd_fastdiv_of((uint32_t)a->units);
    a->by_groups = wd_fastdiv_of((uint32_t)groups);
    a->by_spans = wd_fastdiv_of((uint32_t)spans);
    a->all_tiles = (uint32_t)(images * spans * groups);
    a->tile_bytes =
        (uint32_t)(RNG_BYTES * wd_ceil_div(pixels * wide * bytes + RNG_BYTES, RNG_BYTES));
    if (a->turned) return emit_turned(queue, a, kernel);
    a->parts = (uint32_t)wd_most(threads / wide, 1);
    if (wide <= threads) threads = a->parts * wide;
    blocks = a->all_tiles;
    shared = a->tile_bytes;
    if (kernel == KERNEL_rng_tiles_normal_16) { /* by blocks that stay, for they have a table */
        shared *= 2;
        blocks = wd_least(blocks, queue->device->multiprocessors *
                                      resident(queue, kernel, threads, shared + TABLE_BYTES));
    }
    return wd_emit_kernel(queue, &kernel_rows[kernel], blocks, (uint32_t)threads, shared, a);
}

/* The bits of a number of y's type, in all elements of eight bytes; of a mask, of its bit. */
static uint64_t bits_of(int dtype, double value)
{
    int64_t bytes = wd_dtype_bytes(dtype);
    uint64_t bits = 0;
    if (dtype == CUDNN_DATA_BOOLEAN) return value != 0.0 ? UINT64_MAX : 0;
    for (int64_t i = 0; i < (int64_t)sizeof bits / bytes; ++i) {
        wd_store_f64(&bits, dtype, i, value);
    }
    return bits;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *y = wd_call_tensor(call, RNG_Y);
    struct rng_args numbers = wd_rng_args_of(call);
    int64_t bytes = wd_dtype_bytes(y->dtype);
    int64_t block = rng_block_elements(numbers.how);
    int way = wd_tensor_is_nchw(y) ? FLAT : PAIRS;
    int kernel = kernel_of(&numbers.attr, y->dtype, way);
    uint64_t threshold = wd_chance_threshold(numbers.attr.probability);
    struct rng_vector_args a;
    memset(&a, 0, sizeof a);
    a.y = numbers.y.data;
    a.seed = numbers.seed;
    a.offset = numbers.offset;
    a.seed_value = numbers.seed_value;
    a.offset_value = numbers.offset_value;
    a.seed_dtype = numbers.seed_dtype;
    a.offset_dtype = numbers.offset_dtype;
    wd_philox_keys(a.seed_value, a.key);
    a.exponent = 0x4b000000u;
    a.count = wd_tensor_count(y);
    a.scale = numbers.scale;
    a.bfloat = y->dtype == CUDNN_DATA_BFLOAT16;
    a.plain = a.scale.step_f == 1.0f && a.scale.base_f == 0.0f;
    a.halves = a.plain && !a.bfloat;
    a.byte_least = y->dtype == CUDNN_DATA_INT8 ? -128.0f : 0.0f;
    a.byte_most = a.byte_least + 255.0f;
    if (numbers.how == RNG_CHANCE) {
        bool certain = threshold > UINT32_MAX;
        a.threshold = wd_threshold_of(certain ? 0 : (uint32_t)threshold);
        a.none = bits_of(y->dtype, certain ? 1.0 : 0.0);
        a.flip = bits_of(y->dtype, 1.0) ^ bits_of(y->dtype, 0.0);
    }
    a.shift = (int32_t)((uintptr_t)a.y % RNG_BYTES);
    a.streaming = wd_tensor_extent(y) > queue->device->l2_bytes;
    if (kernel == KERNEL_rng_chance_bits) {
        a.shift = (int32_t)((uintptr_t)a.y % (RNG_WORD / 8) * 8);
        return emit_flat(queue, &a, kernel, RNG_WORD, a.shift);
    }
    if (way == FLAT) return emit_flat(queue, &a, kernel, RNG_BYTES / bytes, a.shift / bytes);
    a.channels = (uint32_t)y->dim[1];
    a.plane = (uint32_t)plane_of(y);
    if (kernel >= 0 && y->dim[1] % 2 == 0 && y->dim[1] * bytes >= PAIRS_BYTES &&
        plane_of(y) % block == 0 && a.shift % (2 * bytes) == 0) {
        return emit_pairs(queue, &a, kernel, y, block);
    }
    return emit_tiles(queue, &a, kernel_of(&numbers.attr, y->dtype, TILES), y, block);
}

const struct wd_engine wd_engine_rng_vector = {
    .name = "rng_vector",
    .op = WD_OP_RNG,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
