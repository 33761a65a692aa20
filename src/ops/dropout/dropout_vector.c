/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout on the GPU in one pass, for tensors without gaps that lie in the order of their dims, or
 * both with channels as neighbours. dropout_vector_args.h says how they are walked. */
#include <string.h>

#include "base/sizes.h"
#include "ops/dropout/dropout_vector_args.h"
#include "ops/engine.h"

#define WD_KERNELS_MODULE dropout_vector
#define WD_KERNELS_ROWS "ops/dropout/dropout_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { FORWARD_X, FORWARD_STATE, FORWARD_Y, FORWARD_RESERVE };
enum { BACKWARD_DY, BACKWARD_RESERVE, BACKWARD_DX };
enum { PROBABILITY };

enum {
    THREADS_FEW = 64,
    BLOCKS_A_PROCESSOR = 16, /* with more, threads take several groups */
    BLOCKS_AT_ONCE = 4, /* flat: those that are there at once, each of which waits for the state */
    OCTET_BYTES = 2048, /* of a mask: a block's at once, wanted */
    CHANNELS_MAX = 1 << 14, /* of which a block holds the bytes of one octet, twice */
    TILE_BYTES = 16384,     /* of y, wanted: what a block's threads load at once */
    TILE_ROW = 128,         /* bytes of a pixel, where there are more */
    TILE_ROW_WHOLE = 256,   /* up to which a tile has all channels */
    SHARED_MOST = 48000,    /* what a launch may ask for */
    WARP_BYTES = 32,        /* of the mask: a warp's for each group of a lane */
    ELEMENTS_MAX_LOG2 = 34, /* numbers are counted by fours in 32 bits */
};

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_DOUBLE: return 1;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return -1;
    }
}

static int64_t plane_of(const struct wd_tensor *t)
{
    int64_t plane = 1;
    for (int d = 2; d < t->rank; ++d) plane *= t->dim[d];
    return plane;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, 2);
    char text[96];
    WD_NEED(type_index(y->dtype) >= 0, reason, NOT_SUPPORTED_DATA_TYPE,
            "elements are %s, needed is fp64, fp32, fp16 or bf16", wd_dtype_name(y->dtype));
    WD_NEED(x->vect_count == 1 && y->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
            "a tensor is vectorised");
    WD_NEED(wd_tensor_count(y) > 0, reason, NOT_SUPPORTED_SHAPE, "the tensors are empty");
    WD_NEED(wd_tensor_count(y) >> ELEMENTS_MAX_LOG2 == 0, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements are more than 2^%d", (long long)wd_tensor_count(y), ELEMENTS_MAX_LOG2);
    if (wd_tensor_is_nchw(x) && wd_tensor_is_nchw(y)) return true;
    WD_NEED(wd_tensor_same_dims(x, y) && wd_tensor_is_nhwc(x) && wd_tensor_is_nhwc(y), reason,
            NOT_SUPPORTED_LAYOUT,
            "not both lie in the order of dims, nor with channels fastest: %s",
            wd_tensor_text(x, text, sizeof text));
    WD_NEED(y->dim[1] <= CHANNELS_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld channels are more than %d", (long long)y->dim[1], CHANNELS_MAX);
    WD_NEED(y->dim[0] * plane_of(y) < INT32_MAX / 2, reason, NOT_SUPPORTED_SHAPE,
            "%lld pixels are too many to be counted", (long long)(y->dim[0] * plane_of(y)));
    return true;
}

static cudnnStatus_t emit_flat(int kernel, struct wd_queue *queue, struct dropout_vector_args *a,
                               int64_t bytes)
{
    int64_t own = WARP_BYTES * wd_clamp(8 / bytes, 1, 4) - (a->shift > 0); /* groups of a warp */
    int64_t most = (int64_t)queue->device->multiprocessors * BLOCKS_AT_ONCE;
    int64_t threads = DROPOUT_THREADS;
    int64_t warps;
    a->groups = wd_most(a->mask_bytes, wd_ceil_div(a->count + a->shift, DROPOUT_GROUP));
    warps = wd_ceil_div(a->groups, own);
    if (warps * 32 < threads * queue->device->multiprocessors) threads = THREADS_FEW;
    if (!a->state) most = INT32_MAX; /* nothing to be counted */
    return wd_emit_kernel(queue, &kernel_rows[kernel],
                          wd_least(most, wd_ceil_div(warps, threads / 32)), (uint32_t)threads, 0,
                          a);
}

static cudnnStatus_t emit_pixels(int kernel, struct wd_queue *queue, struct dropout_vector_args *a,
                                 const struct wd_tensor *y, int64_t bytes)
{
    int64_t elements = DROPOUT_BYTES / bytes;
    int64_t plane = plane_of(y) / DROPOUT_GROUP;
    int64_t all = wd_most(y->dim[0] * plane, 1);
    int64_t channels = y->dim[1];
    int64_t most = (int64_t)queue->device->multiprocessors * BLOCKS_A_PROCESSOR;
    a->octets = (uint32_t)wd_clamp(OCTET_BYTES / channels, 1, all);
    while (a->octets > 1 && all < a->octets * 2 * (int64_t)queue->device->multiprocessors) {
        a->octets = (a->octets + 1) / 2;
    }
    a->all_octets = (uint32_t)all;
    a->tiles = (uint32_t)wd_ceil_div(all, a->octets);
    a->by_channels = wd_fastdiv_of(a->channels / (uint32_t)elements);
    a->by_octets = wd_fastdiv_of(a->octets);
    a->by_plane = wd_fastdiv_of((uint32_t)plane);
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_least(a->tiles, most), DROPOUT_THREADS,
                          (a->octets + 1) * (a->channels + DROPOUT_PAD), a);
}

/* Tiles have all channels where these are few or begin anywhere, else some of them. */
static cudnnStatus_t emit_tiles(int kernel, struct wd_queue *queue, struct dropout_vector_args *a,
                                const struct wd_tensor *y, int64_t bytes, bool in_runs)
{
    int64_t most = (int64_t)queue->device->multiprocessors * BLOCKS_A_PROCESSOR;
    int64_t plane = plane_of(y);
    int64_t images = wd_most(y->dim[0], 1);
    int64_t wide = y->dim[1];
    int64_t pixels, groups, spans;
    if (in_runs && wide * bytes > TILE_ROW_WHOLE) wide = TILE_ROW / bytes;
    a->contiguous = wide == y->dim[1];
    groups = wd_ceil_div(y->dim[1], wide);
    pixels = wd_most(TILE_BYTES / bytes / wide / DROPOUT_GROUP, 1) * DROPOUT_GROUP;
    pixels = wd_least(pixels, wd_most((SHARED_MOST - DROPOUT_BYTES) / wide, 1));
    while (pixels >= 2 * DROPOUT_GROUP &&
           images * wd_ceil_div(plane, pixels) * groups < 2 * queue->device->multiprocessors) {
        pixels = pixels / 2 / DROPOUT_GROUP * DROPOUT_GROUP;
    }
    pixels = wd_least(pixels, plane);
    spans = wd_ceil_div(plane, pixels);
    a->plane = (uint32_t)plane;
    a->tile_channels = (uint32_t)wide;
    a->tile_pixels = (uint32_t)pixels;
    a->row_groups = (uint32_t)((pixels + 2 * DROPOUT_GROUP - 2) / DROPOUT_GROUP);
    if (plane % DROPOUT_GROUP == 0 && pixels % DROPOUT_GROUP == 0) {
        a->row_groups = (uint32_t)(pixels / DROPOUT_GROUP);
    }
    a->tiles = (uint32_t)(images * spans * groups);
    a->by_channels = wd_fastdiv_of((uint32_t)wide);
    a->by_groups = wd_fastdiv_of((uint32_t)groups);
    a->by_spans = wd_fastdiv_of((uint32_t)spans);
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_least(a->tiles, most), DROPOUT_THREADS,
                          (uint32_t)(pixels * wide + DROPOUT_BYTES), a);
}

static cudnnStatus_t emit(const struct wd_call *call, int reserve, struct wd_queue *queue)
{
    const struct wd_tensor *y = wd_call_tensor(call, 2);
    double probability = call->scalars[PROBABILITY];
    uint64_t threshold = wd_chance_threshold(probability);
    int64_t bytes = wd_dtype_bytes(y->dtype); /* match takes 2, 4 and 8 */
    int type = type_index(y->dtype);
    bool backward = reserve == BACKWARD_RESERVE;
    bool in_runs; /* channels as neighbours are whole loads */
    int kernel;
    struct dropout_vector_args a;
    memset(&a, 0, sizeof a);
    a.x = wd_call_data(call, 0);
    a.y = wd_call_data(call, 2);
    a.state = backward ? NULL : wd_call_data(call, FORWARD_STATE);
    a.mask = wd_call_data(call, reserve);
    a.scale = probability < 1.0 ? 1.0 / (1.0 - probability) : 0.0;
    a.count = wd_tensor_count(y);
    /* forward every byte of the reserve space is written, also those behind the last element */
    a.mask_bytes =
        backward ? wd_ceil_div(a.count, DROPOUT_GROUP) : wd_call_tensor(call, reserve)->dim[0];
    a.bfloat = y->dtype == CUDNN_DATA_BFLOAT16;
    a.none = threshold > UINT32_MAX;
    a.threshold = wd_threshold_of((uint32_t)threshold);
    a.channels = (uint32_t)y->dim[1];
    a.whole_bytes = (uint32_t)(a.count / DROPOUT_GROUP);
    a.last_bits = (UINT32_C(1) << a.count % DROPOUT_GROUP) - 1;
    a.shift = (int32_t)((int64_t)((uintptr_t)a.y % DROPOUT_BYTES) / bytes);
    a.alike = (uintptr_t)a.x % DROPOUT_BYTES == (uintptr_t)a.y % DROPOUT_BYTES;
    a.streaming = wd_tensor_extent(y) > queue->device->l2_bytes;
    if (wd_tensor_is_nchw(wd_call_tensor(call, 0)) && wd_tensor_is_nchw(y)) {
        return emit_flat(
            (backward ? KERNEL_dropout_backward_flat_f32 : KERNEL_dropout_forward_flat_f32) + type,
            queue, &a, bytes);
    }
    in_runs = a.shift == 0 && a.alike && y->dim[1] % (DROPOUT_BYTES / bytes) == 0;
    if (in_runs && plane_of(y) % DROPOUT_GROUP == 0) {
        kernel = backward ? KERNEL_dropout_backward_pixels_f32 : KERNEL_dropout_forward_pixels_f32;
        return emit_pixels(kernel + type, queue, &a, y, bytes);
    }
    kernel = backward ? KERNEL_dropout_backward_tiles_f32 : KERNEL_dropout_forward_tiles_f32;
    return emit_tiles(kernel + type, queue, &a, y, bytes, in_runs);
}

static cudnnStatus_t emit_forward(const struct wd_call *call, struct wd_queue *queue)
{
    return emit(call, FORWARD_RESERVE, queue);
}

static cudnnStatus_t emit_backward(const struct wd_call *call, struct wd_queue *queue)
{
    return emit(call, BACKWARD_RESERVE, queue);
}

const struct wd_engine wd_engine_dropout_forward_vector = {
    .name = "dropout_forward_vector",
    .op = WD_OP_DROPOUT_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit_forward,
};

const struct wd_engine wd_engine_dropout_backward_vector = {
    .name = "dropout_backward_vector",
    .op = WD_OP_DROPOUT_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit_backward,
};
