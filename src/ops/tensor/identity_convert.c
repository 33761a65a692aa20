/* SPDX-License-Identifier: Apache-2.0
 *
 * Types changed on the GPU at the speed of memory: unscaled identities of the pointwise family
 * (cudnnTransformTensor) between fp32, fp16 and bf16, where both tensors are one piece of memory in
 * one order. */
#include <string.h>

#include "base/sizes.h"
#include "ops/engine.h"
#include "ops/tensor/identity_convert_args.h"

#define WD_KERNELS_MODULE identity_convert
#define WD_KERNELS_ROWS "ops/tensor/identity_convert_kernels.def"
#include "ops/kernels_host.inc"

enum { POINTWISE_X, POINTWISE_B, POINTWISE_T, POINTWISE_Y };
enum { ALPHA1, ALPHA2, ALPHA, BETA };

enum { THREADS_FEW = 64 };

/* Of rows of kernels: to the other two types. */
static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_HALF: return 1;
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return -1;
    }
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_node *node = problem->node;
    const struct wd_tensor *x = wd_slot(problem->graph, node, POINTWISE_X);
    const struct wd_tensor *y = wd_slot(problem->graph, node, POINTWISE_Y);
    char text[96];
    WD_NEED(node->attr.pointwise.mode == CUDNN_POINTWISE_IDENTITY, reason, NOT_SUPPORTED,
            "mode %d is not the identity", node->attr.pointwise.mode);
    WD_NEED(!(x->flags & WD_BY_VALUE) && wd_tensor_same_dims(x, y), reason, NOT_SUPPORTED_SHAPE,
            "x repeats");
    WD_NEED(x->dtype != y->dtype && type_index(x->dtype) >= 0 && type_index(y->dtype) >= 0, reason,
            NOT_SUPPORTED_DATA_TYPE, "from %s to %s, needed are two of fp32, fp16 and bf16",
            wd_dtype_name(x->dtype), wd_dtype_name(y->dtype));
    WD_NEED(wd_problem_acc(problem) == WD_ACC_F32, reason, NOT_SUPPORTED_DATA_TYPE,
            "it is to be computed in fp64");
    WD_NEED(node->scalar_class[ALPHA1] == WD_SCALAR_ONE &&
                node->scalar_class[ALPHA] == WD_SCALAR_ONE &&
                node->scalar_class[BETA] == WD_SCALAR_ZERO,
            reason, NOT_SUPPORTED, "x is scaled, or y kept");
    WD_NEED(x->vect_count == 1 && y->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
            "a tensor is vectorised");
    WD_NEED(wd_tensor_count(y) > 0, reason, NOT_SUPPORTED_SHAPE, "y is empty");
    WD_NEED(wd_tensor_is_packed(x) && wd_tensor_is_packed(y), reason, NOT_SUPPORTED_LAYOUT,
            "a tensor has gaps, x is %s", wd_tensor_text(x, text, sizeof text));
    for (int d = 0; d < y->rank; ++d) {
        WD_NEED(y->dim[d] == 1 || x->stride[d] == y->stride[d], reason, NOT_SUPPORTED_LAYOUT,
                "dim %d has stride %lld in x and %lld in y", d, (long long)x->stride[d],
                (long long)y->stride[d]);
    }
    return true;
}

static int64_t shift_of(const void *data, int64_t bytes)
{
    return (int64_t)((uintptr_t)data % (uintptr_t)(CONVERT_ELEMENTS * bytes)) / bytes;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, POINTWISE_X);
    const struct wd_tensor *y = wd_call_tensor(call, POINTWISE_Y);
    int from = type_index(x->dtype);
    int to = type_index(y->dtype);
    int64_t threads = CONVERT_THREADS;
    struct convert_args a;
    memset(&a, 0, sizeof a);
    a.x = wd_call_data(call, POINTWISE_X);
    a.y = wd_call_data(call, POINTWISE_Y);
    a.count = wd_tensor_count(y);
    a.shift = (int32_t)shift_of(a.y, wd_dtype_bytes(y->dtype));
    a.alike = shift_of(a.x, wd_dtype_bytes(x->dtype)) == a.shift;
    a.units = wd_ceil_div(a.count + a.shift, CONVERT_ELEMENTS);
    a.streaming = wd_tensor_extent(y) > queue->device->l2_bytes;
    if (a.units < threads * CONVERT_UNITS * queue->device->multiprocessors) threads = THREADS_FEW;
    return wd_emit_kernel(queue, &kernel_rows[2 * from + to - (to > from)],
                          wd_ceil_div(a.units, threads * CONVERT_UNITS), (uint32_t)threads, 0, &a);
}

const struct wd_engine wd_engine_identity_convert = {
    .name = "identity_convert",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
