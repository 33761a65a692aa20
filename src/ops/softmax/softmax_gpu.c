/* SPDX-License-Identifier: Apache-2.0
 *
 * See softmax_gpu.h. No state. */
#include "ops/softmax/softmax_gpu.h"

#include <string.h>

#include "base/sizes.h"

enum { ALPHA, BETA };

enum {
    CLUSTER_CAPABILITY = 90,
    ELEMENTS_MAX_LOG2 = 35, /* of a tensor: keeps the count of blocks below 2^31 */
};

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_DOUBLE: return 1;
    case CUDNN_DATA_HALF: return 2;
    case CUDNN_DATA_BFLOAT16: return 3;
    default: return -1;
    }
}

bool wd_softmax_see(struct wd_softmax_shape *s, const struct wd_tensor *x, int mode)
{
    int order[WD_MAX_RANK];
    int count = wd_tensor_order(x, order);
    bool inside = false;
    memset(s, 0, sizeof *s);
    s->outer = s->length = s->inner = 1;
    for (int i = 0; i < count; ++i) {
        bool of_row = mode == CUDNN_SOFTMAX_MODE_CHANNEL ? order[i] == 1 : order[i] > 0;
        if (of_row) {
            if (s->inner > 1) return false;
            s->length *= x->dim[order[i]];
            inside = true;
        } else if (inside) {
            s->inner *= x->dim[order[i]];
        } else {
            s->outer *= x->dim[order[i]];
        }
    }
    s->total = s->outer * s->length * s->inner;
    s->type = type_index(x->dtype);
    s->bytes = wd_dtype_bytes(x->dtype);
    s->elements = SOFTMAX_BYTES / s->bytes;
    s->pair = x->dtype == CUDNN_DATA_DOUBLE ? 2 * sizeof(double) : 2 * sizeof(float);
    return true;
}

bool wd_softmax_gpu_match(const struct wd_problem *problem, struct wd_softmax_shape *shape,
                          struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    for (int s = 0; s < wd_op_info(problem->node->op)->slot_count; ++s) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, s);
        WD_NEED(tensor->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is vectorised, %d lanes a unit", s, tensor->vect_count);
        WD_NEED(type_index(tensor->dtype) >= 0 && tensor->dtype == x->dtype, reason,
                NOT_SUPPORTED_DATA_TYPE, "slot %d is %s, needed is fp64, fp32, fp16 or bf16", s,
                wd_dtype_name(tensor->dtype));
        WD_NEED(wd_tensor_same_layout(tensor, x), reason, NOT_SUPPORTED_LAYOUT,
                "slot %d lies otherwise than slot 0", s);
    }
    WD_NEED(wd_tensor_count(x) > 0, reason, NOT_SUPPORTED_SHAPE, "the tensors are empty");
    WD_NEED(wd_tensor_is_packed(x), reason, NOT_SUPPORTED_LAYOUT, "the tensors have gaps");
    WD_NEED(wd_softmax_see(shape, x, problem->node->attr.softmax.mode), reason,
            NOT_SUPPORTED_LAYOUT, "a dimension of the batch lies between those of a row");
    WD_NEED(shape->total >> ELEMENTS_MAX_LOG2 == 0, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements are more than 2^%d", (long long)shape->total, ELEMENTS_MAX_LOG2);
    WD_NEED(shape->length <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements are longer than 2^31", (long long)shape->length);
    return true;
}

int wd_softmax_gpu_inputs(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_SOFTMAX_BACKWARD ? 2 : 1;
}

int wd_softmax_gpu_cluster(const struct wd_device *device)
{
    return device->cooperative && device->capability >= CLUSTER_CAPABILITY ? SOFTMAX_CLUSTER_MAX
                                                                           : 1;
}

void wd_softmax_set_lanes(struct softmax_vector_args *a, int64_t lanes)
{
    a->lanes = (uint32_t)lanes;
    a->lane_bits = 0;
    while (lanes >> a->lane_bits > 1) a->lane_bits += 1;
}

void wd_softmax_set_cluster(struct softmax_vector_args *a, int64_t blocks)
{
    a->cluster = (uint32_t)blocks;
    a->cluster_bits = 0;
    while (blocks >> a->cluster_bits > 1) a->cluster_bits += 1;
}

void wd_softmax_gpu_args(const struct wd_call *call, const struct wd_device *device,
                         struct wd_softmax_shape *s, struct softmax_vector_args *a, bool *alike)
{
    const struct wd_softmax_attr *attr = &call->problem.node->attr.softmax;
    int inputs = wd_softmax_gpu_inputs(&call->problem); /* y, or dx, comes behind them */
    const struct wd_tensor *tensor = wd_call_tensor(call, inputs);
    uintptr_t off;
    memset(a, 0, sizeof *a);
    wd_softmax_see(s, tensor, attr->mode);
    a->x = wd_call_data(call, 0);
    a->dy = inputs > 1 ? wd_call_data(call, 1) : NULL;
    a->y = wd_call_data(call, inputs);
    a->partial = call->workspace;
    a->alpha = call->scalars[ALPHA];
    a->beta = call->scalars[BETA];
    a->plain = a->alpha == 1.0 && a->beta == 0.0;
    a->rows = s->outer;
    a->length = s->length;
    a->inner = s->inner;
    a->total = s->total;
    a->format = s->type == 2 ? WD_FORMAT_F16 : s->type == 3 ? WD_FORMAT_BF16 : WD_FORMAT_F32;
    a->log = attr->algorithm == CUDNN_SOFTMAX_LOG;
    a->streaming = wd_tensor_extent(tensor) > device->l2_bytes;
    a->lanes = a->cluster = a->segments = 1;
    off = (uintptr_t)a->x % SOFTMAX_BYTES;
    *alike = true;
    for (int i = 0; i <= inputs; ++i) {
        *alike = *alike && (uintptr_t)wd_call_data(call, i) % SOFTMAX_BYTES == off;
    }
    a->shift = (int32_t)((int64_t)off / s->bytes);
}
