/* SPDX-License-Identifier: Apache-2.0
 *
 * See bn_gpu.h. No state. */
#include "ops/norm/bn_gpu.h"

#include <string.h>

#include "base/sizes.h"
#include "graph/norm_shape.h"

bool wd_bn_gpu_see(struct wd_bn_gpu_space *s, const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    int mode = problem->node->attr.norm.mode;
    int order[WD_MAX_RANK];
    int count = wd_tensor_order(x, order);
    bool inside = false;
    memset(s, 0, sizeof *s);
    s->outer = s->params = s->inner = 1;
    for (int i = 0; i < count; ++i) {
        if (wd_norm_is_param_axis(mode, order[i])) {
            if (s->inner > 1) return false;
            s->params *= x->dim[order[i]];
            inside = true;
        } else if (inside) {
            s->inner *= x->dim[order[i]];
        } else {
            s->outer *= x->dim[order[i]];
        }
    }
    s->total = s->outer * s->params * s->inner;
    return true;
}

static int type_index(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_HALF: return 1;
    case CUDNN_DATA_BFLOAT16: return 2;
    case CUDNN_DATA_DOUBLE: return 3;
    default: return -1;
    }
}

/* Whether a parameter's number lies at param * *stride. */
static bool param_stride(const struct wd_tensor *p, const struct wd_tensor *x, int mode,
                         int64_t *stride)
{
    int64_t expected = 0;
    int previous = -1;
    *stride = 0;
    for (int step = 0; step < x->rank; ++step) {
        int next = -1;
        /* axes of x with parameters from the innermost */
        for (int d = 0; d < x->rank; ++d) {
            if (x->dim[d] == 1 || !wd_norm_is_param_axis(mode, d)) continue;
            if (previous >= 0 && x->stride[d] <= x->stride[previous]) continue;
            if (next < 0 || x->stride[d] < x->stride[next]) next = d;
        }
        if (next < 0) break;
        if (previous < 0) *stride = expected = p->stride[next];
        if (p->stride[next] != expected || p->dim[next] != x->dim[next]) return false;
        expected *= x->dim[next];
        previous = next;
    }
    return true;
}

int wd_bn_gpu_type(const struct wd_problem *problem)
{
    return type_index(wd_slot(problem->graph, problem->node, 0)->dtype);
}

/* The slots that hold tensors of x's shape. */
static uint32_t data_slots(const struct wd_problem *problem)
{
    switch (problem->node->op) {
    case WD_OP_BN_TRAINING: return 1u << WD_BN_TRAIN_X | 1u << WD_BN_TRAIN_Z | 1u << WD_BN_TRAIN_Y;
    case WD_OP_BN_INFERENCE: return 1u << WD_BN_INFER_X | 1u << WD_BN_INFER_Z | 1u << WD_BN_INFER_Y;
    default:
        return 1u << WD_BN_GRAD_X | 1u << WD_BN_GRAD_DY | 1u << WD_BN_GRAD_DX | 1u << WD_BN_GRAD_DZ;
    }
}

static int reserve_slot(const struct wd_problem *problem)
{
    switch (problem->node->op) {
    case WD_OP_BN_TRAINING: return WD_BN_TRAIN_RESERVE;
    case WD_OP_BN_BACKWARD: return WD_BN_GRAD_RESERVE;
    default: return -1;
    }
}

bool wd_bn_gpu_match(const struct wd_problem *problem, struct wd_bn_gpu_space *space, bool wide,
                     struct wd_reason *reason)
{
    uint32_t data = data_slots(problem);
    int reserve = reserve_slot(problem);
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    const struct wd_norm_attr *attr = &problem->node->attr.norm;
    int param_dtype = x->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    int64_t stride;
    for (int s = 0; s < wd_op_info(problem->node->op)->slot_count; ++s) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, s);
        if (!tensor || s == reserve) continue;
        WD_NEED(tensor->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is vectorised, %d lanes a unit", s, tensor->vect_count);
        if (data >> s & 1) {
            WD_NEED(type_index(tensor->dtype) >= 0 && tensor->dtype == x->dtype, reason,
                    NOT_SUPPORTED_DATA_TYPE, "slot %d is %s, needed is %sfp32, fp16 or bf16 as x",
                    s, wd_dtype_name(tensor->dtype), wide ? "fp64, " : "");
            WD_NEED(wide || tensor->dtype != CUDNN_DATA_DOUBLE, reason, NOT_SUPPORTED_DATA_TYPE,
                    "slot %d is fp64, needed is fp32, fp16 or bf16", s);
            WD_NEED(wd_tensor_same_layout(tensor, x), reason, NOT_SUPPORTED_LAYOUT,
                    "slot %d lies otherwise than x", s);
        } else {
            WD_NEED(tensor->dtype == param_dtype, reason, NOT_SUPPORTED_DATA_TYPE,
                    "slot %d is %s, needed is %s", s, wd_dtype_name(tensor->dtype),
                    wd_dtype_name(param_dtype));
            WD_NEED(param_stride(tensor, x, attr->mode, &stride), reason, NOT_SUPPORTED_LAYOUT,
                    "the parameters of slot %d do not follow one another as those of x do", s);
        }
    }
    WD_NEED(wd_tensor_count(x) > 0, reason, NOT_SUPPORTED_SHAPE, "x is empty");
    WD_NEED(wd_tensor_is_packed(x), reason, NOT_SUPPORTED_LAYOUT, "x has gaps");
    WD_NEED(wd_bn_gpu_see(space, problem), reason, NOT_SUPPORTED_LAYOUT,
            "the parameters of x are not neighbours in memory");
    WD_NEED(attr->ops == CUDNN_BATCHNORM_OPS_BN ||
                attr->activation.mode == CUDNN_POINTWISE_IDENTITY ||
                wd_norm_reserve_kind(attr) == WD_RESERVE_BITS,
            reason, NOT_SUPPORTED, "the activation is none of identity, relu and clipped relu");
    return true;
}

/* ---- What a problem says by itself ---- */

static void place_param(struct bn_param *p, const struct wd_problem *problem, int slot)
{
    const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, slot);
    if (!tensor) return;
    param_stride(tensor, wd_slot(problem->graph, problem->node, 0), problem->node->attr.norm.mode,
                 &p->stride);
}

static void place_params(struct bn_vector_args *a, const struct wd_problem *problem)
{
    switch (problem->node->op) {
    case WD_OP_BN_TRAINING:
        place_param(&a->scale, problem, WD_BN_TRAIN_SCALE);
        place_param(&a->bias, problem, WD_BN_TRAIN_BIAS);
        place_param(&a->mean, problem, WD_BN_TRAIN_SAVED_MEAN);
        place_param(&a->var, problem, WD_BN_TRAIN_SAVED_INV_STD);
        place_param(&a->running_mean, problem, WD_BN_TRAIN_RUNNING_MEAN);
        place_param(&a->running_var, problem, WD_BN_TRAIN_RUNNING_VAR);
        break;
    case WD_OP_BN_INFERENCE:
        place_param(&a->scale, problem, WD_BN_INFER_SCALE);
        place_param(&a->bias, problem, WD_BN_INFER_BIAS);
        place_param(&a->mean, problem, WD_BN_INFER_MEAN);
        place_param(&a->var, problem, WD_BN_INFER_VAR);
        break;
    default:
        place_param(&a->scale, problem, WD_BN_GRAD_SCALE);
        place_param(&a->mean, problem, WD_BN_GRAD_SAVED_MEAN);
        place_param(&a->var, problem, WD_BN_GRAD_SAVED_INV_STD);
        place_param(&a->dscale, problem, WD_BN_GRAD_DSCALE);
        place_param(&a->dbias, problem, WD_BN_GRAD_DBIAS);
    }
}

struct bn_vector_args wd_bn_gpu_args(const struct wd_problem *problem,
                                     const struct wd_bn_gpu_space *s)
{
    const struct wd_norm_attr *attr = &problem->node->attr.norm;
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    struct bn_vector_args a;
    memset(&a, 0, sizeof a);
    place_params(&a, problem);
    a.epsilon = attr->epsilon;
    a.activates =
        attr->ops != CUDNN_BATCHNORM_OPS_BN && attr->activation.mode != CUDNN_POINTWISE_IDENTITY;
    a.low = (float)attr->activation.lower_clip;
    a.high = (float)attr->activation.upper_clip;
    a.keeps_nan = attr->activation.propagate_nan;
    a.wide_low = attr->activation.lower_clip;
    a.wide_high = attr->activation.upper_clip;
    a.streaming = wd_tensor_extent(x) > problem->device->l2_bytes;
    a.total = s->total;
    a.terms = s->outer * s->inner;
    a.inner = s->inner;
    a.params = (uint32_t)s->params;
    a.by_params = wd_fastdiv_of((uint32_t)s->params);
    return a;
}

/* ---- What a call says ---- */

static void bind_training(struct bn_vector_args *a, const struct wd_call *call)
{
    a->z = wd_call_data(call, WD_BN_TRAIN_Z);
    a->y = wd_call_data(call, WD_BN_TRAIN_Y);
    a->reserve = wd_call_data(call, WD_BN_TRAIN_RESERVE);
    a->scale.data = wd_call_data(call, WD_BN_TRAIN_SCALE);
    a->bias.data = wd_call_data(call, WD_BN_TRAIN_BIAS);
    a->mean.data = wd_call_data(call, WD_BN_TRAIN_SAVED_MEAN);
    a->var.data = wd_call_data(call, WD_BN_TRAIN_SAVED_INV_STD);
    a->running_mean.data = wd_call_data(call, WD_BN_TRAIN_RUNNING_MEAN);
    a->running_var.data = wd_call_data(call, WD_BN_TRAIN_RUNNING_VAR);
    a->factor = call->scalars[WD_BN_FACTOR_SCALAR];
    a->wide_alpha = call->scalars[WD_BN_ALPHA];
    a->wide_beta = call->scalars[WD_BN_BETA];
}

static void bind_inference(struct bn_vector_args *a, const struct wd_call *call)
{
    a->z = wd_call_data(call, WD_BN_INFER_Z);
    a->y = wd_call_data(call, WD_BN_INFER_Y);
    a->scale.data = wd_call_data(call, WD_BN_INFER_SCALE);
    a->bias.data = wd_call_data(call, WD_BN_INFER_BIAS);
    a->mean.data = wd_call_data(call, WD_BN_INFER_MEAN);
    a->var.data = wd_call_data(call, WD_BN_INFER_VAR);
    a->wide_alpha = call->scalars[WD_BN_ALPHA];
    a->wide_beta = call->scalars[WD_BN_BETA];
}

static void bind_backward(struct bn_vector_args *a, const struct wd_call *call)
{
    a->dy = wd_call_data(call, WD_BN_GRAD_DY);
    a->y = wd_call_data(call, WD_BN_GRAD_DX);
    a->dz = wd_call_data(call, WD_BN_GRAD_DZ);
    a->reserve = wd_call_data(call, WD_BN_GRAD_RESERVE);
    a->scale.data = wd_call_data(call, WD_BN_GRAD_SCALE);
    a->mean.data = wd_call_data(call, WD_BN_GRAD_SAVED_MEAN);
    a->var.data = wd_call_data(call, WD_BN_GRAD_SAVED_INV_STD);
    a->dscale.data = wd_call_data(call, WD_BN_GRAD_DSCALE);
    a->dbias.data = wd_call_data(call, WD_BN_GRAD_DBIAS);
    a->wide_alpha = call->scalars[WD_BN_ALPHA_DATA];
    a->wide_beta = call->scalars[WD_BN_BETA_DATA];
    a->alpha_param = call->scalars[WD_BN_ALPHA_PARAM];
    a->beta_param = call->scalars[WD_BN_BETA_PARAM];
}

/* Bytes by which all tensors of x's shape lie behind a multiple of 16; negative where they differ. */
static int misalignment(const struct bn_vector_args *a)
{
    const void *const data[] = {a->y, a->dy, a->z, a->dz};
    int bytes = (int)((uintptr_t)a->x % 16);
    for (size_t i = 0; i < sizeof data / sizeof *data; ++i) {
        if (data[i] && (int)((uintptr_t)data[i] % 16) != bytes) return -1;
    }
    return bytes;
}

void wd_bn_gpu_bind(struct bn_vector_args *a, const struct wd_call *call)
{
    int behind;
    a->x = wd_call_data(call, 0);
    switch (call->problem.node->op) {
    case WD_OP_BN_TRAINING: bind_training(a, call); break;
    case WD_OP_BN_INFERENCE: bind_inference(a, call); break;
    default: bind_backward(a, call);
    }
    a->alpha = (float)a->wide_alpha;
    a->beta = (float)a->wide_beta;
    behind = misalignment(a);
    a->aligned = behind == 0;
    if (behind > 0) {
        a->lead = (uint32_t)behind / (uint32_t)wd_dtype_bytes(wd_call_tensor(call, 0)->dtype);
    }
}
