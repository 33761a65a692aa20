/* SPDX-License-Identifier: Apache-2.0
 *
 * Random tensors on the GPU in one pass, for tensors without gaps that lie in the order of their
 * dims, or with channels as neighbours. rng_vector_args.h says how they are walked. */
#include <math.h>
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
    TYPE_F16,
    TYPE_BF16,
    TYPES_WIDE,
    TYPE_I8 = TYPES_WIDE,
    TYPE_U8,
    TYPE_I32,
    TYPE_BITS
};

enum {
    THREADS_FEW = 64,
    ELEMENTS_MAX_LOG2 = 34, /* numbers are counted by fours in 32 bits */
    BLOCK = 4,              /* elements of one */
};

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return TYPE_F32;
    case CUDNN_DATA_DOUBLE: return TYPE_F64;
    case CUDNN_DATA_HALF: return TYPE_F16;
    case CUDNN_DATA_BFLOAT16: return TYPE_BF16;
    case CUDNN_DATA_INT8: return TYPE_I8;
    case CUDNN_DATA_UINT8: return TYPE_U8;
    case CUDNN_DATA_INT32: return TYPE_I32;
    case CUDNN_DATA_BOOLEAN: return TYPE_BITS;
    default: return -1;
    }
}

static int64_t plane_of(const struct wd_tensor *y)
{
    int64_t plane = 1;
    for (int d = 2; d < y->rank; ++d) plane *= y->dim[d];
    return plane;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, RNG_Y);
    int distribution = problem->node->attr.rng.distribution;
    int type = type_index(y->dtype);
    char text[96];
    WD_NEED(type >= 0, reason, NOT_SUPPORTED_DATA_TYPE,
            "y is %s, needed is fp64, fp32, fp16, bf16, int8, uint8, int32 or a mask",
            wd_dtype_name(y->dtype));
    WD_NEED(type < TYPES_WIDE || distribution != CUDNN_RNG_DISTRIBUTION_NORMAL, reason,
            NOT_SUPPORTED_DATA_TYPE, "y is %s, and normal numbers are of floating point",
            wd_dtype_name(y->dtype));
    WD_NEED(type != TYPE_BITS || distribution == CUDNN_RNG_DISTRIBUTION_BERNOULLI, reason,
            NOT_SUPPORTED_DATA_TYPE, "y is a mask of distribution %d", distribution);
    WD_NEED(y->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT, "y is vectorised");
    WD_NEED(wd_tensor_count(y) > 0, reason, NOT_SUPPORTED_SHAPE, "y is empty");
    WD_NEED(wd_tensor_count(y) >> ELEMENTS_MAX_LOG2 == 0, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements are more than 2^%d", (long long)wd_tensor_count(y), ELEMENTS_MAX_LOG2);
    if (wd_tensor_is_nchw(y)) return true;
    WD_NEED(type < TYPES_WIDE && wd_tensor_is_nhwc(y), reason, NOT_SUPPORTED_LAYOUT,
            "y lies neither in the order of dims nor, of fp64, fp32, fp16 or bf16, with channels "
            "fastest: %s",
            wd_tensor_text(y, text, sizeof text));
    WD_NEED(wd_tensor_count(y) < INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements with channels fastest are too many to be counted",
            (long long)wd_tensor_count(y));
    return true;
}

/* How far the kernel's estimates of normal numbers are off at most: 2^-41 of the radius for each of
 * its factors, and what the definition's own sum rounds. */
static void set_slip(struct rng_vector_args *a)
{
    const double deviation = a->attr.deviation;
    a->slip = deviation * 0x1p-40;
    a->slip_mean = fabs(a->attr.mean) * 0x1p-50;
    a->estimates =
        fabs(a->attr.mean) < 1e100 && deviation < 1e100 && (deviation == 0.0 || deviation > 1e-100);
}

static cudnnStatus_t emit_flat(struct wd_queue *queue, struct rng_vector_args *a, int type,
                               int64_t run)
{
    bool normal = a->attr.distribution == CUDNN_RNG_DISTRIBUTION_NORMAL;
    int kernel = (normal ? KERNEL_rng_flat_normal_f32 : KERNEL_rng_flat_f32) + type;
    int64_t threads = RNG_THREADS;
    a->runs = wd_ceil_div(a->count + a->shift, run);
    if (a->runs < threads * RNG_RUNS * queue->device->multiprocessors) threads = THREADS_FEW;
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(a->runs, threads * RNG_RUNS),
                          (uint32_t)threads, 0, a);
}

static cudnnStatus_t emit_pixels(struct wd_queue *queue, struct rng_vector_args *a, int type,
                                 const struct wd_tensor *y, int64_t run)
{
    bool normal = a->attr.distribution == CUDNN_RNG_DISTRIBUTION_NORMAL;
    int64_t plane = plane_of(y);
    int kernel = (normal ? KERNEL_rng_single_normal_f32 : KERNEL_rng_single_f32) + type;
    a->channels = (uint32_t)y->dim[1];
    a->plane = (uint32_t)plane;
    a->by_channels = wd_fastdiv_of(a->channels);
    a->by_plane = wd_fastdiv_of(a->plane);
    a->runs = wd_ceil_div(a->count + a->shift, run);
    if (a->shift == 0 && y->dim[1] % run == 0 && plane % BLOCK == 0) {
        kernel = (normal ? KERNEL_rng_quads_normal_f32 : KERNEL_rng_quads_f32) + type;
        a->by_channels = wd_fastdiv_of((uint32_t)(y->dim[1] / run));
        a->by_plane = wd_fastdiv_of((uint32_t)(plane / BLOCK));
        a->runs = a->count / (BLOCK * run);
    }
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(a->runs, RNG_THREADS),
                          RNG_THREADS, 0, a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *y = wd_call_tensor(call, RNG_Y);
    struct rng_args numbers = wd_rng_args_of(call);
    int64_t bits = wd_most(wd_dtype_bits(y->dtype), 1); /* match takes whole bytes and masks */
    int type = type_index(y->dtype);
    /* elements of 16 bytes, at least a block */
    int64_t run = wd_most(RNG_BYTES * 8 / bits, BLOCK);
    int64_t boundary = type == TYPE_BITS ? RNG_WORD / 8 : RNG_BYTES;
    struct rng_vector_args a;
    memset(&a, 0, sizeof a);
    a.y = numbers.y.data;
    a.seed = numbers.seed;
    a.offset = numbers.offset;
    a.seed_value = numbers.seed_value;
    a.offset_value = numbers.offset_value;
    a.seed_dtype = numbers.seed_dtype;
    a.offset_dtype = numbers.offset_dtype;
    a.attr = numbers.attr;
    a.count = wd_tensor_count(y);
    a.threshold = (uint64_t)ceil(a.attr.probability * 4294967296.0);
    a.shift = (int32_t)((int64_t)((uintptr_t)a.y % (uintptr_t)boundary) * 8 / bits);
    a.streaming = wd_tensor_extent(y) > queue->device->l2_bytes;
    set_slip(&a);
    if (type == TYPE_BITS) return emit_flat(queue, &a, type, RNG_WORD);
    if (wd_tensor_is_nchw(y)) return emit_flat(queue, &a, type, run);
    return emit_pixels(queue, &a, type, y, RNG_BYTES * 8 / bits);
}

const struct wd_engine wd_engine_rng_vector = {
    .name = "rng_vector",
    .op = WD_OP_RNG,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
