/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts that the GPU engines of normalizations share, see norm_gpu.h. */
#include "ops/norm/norm_gpu.h"

enum {
    CLUSTER_CAPABILITY = 90,
};

struct wd_norm_places wd_norm_places(enum wd_op op)
{
    struct wd_norm_places p = {NORM_INFER_X,
                               -1,
                               NORM_INFER_Y,
                               NORM_INFER_SCALE,
                               NORM_INFER_BIAS,
                               NORM_INFER_MEAN,
                               NORM_INFER_INV_STD,
                               -1,
                               -1};
    if (op == WD_OP_NORM_TRAINING) {
        p.y = NORM_TRAIN_Y;
        p.mean = NORM_TRAIN_MEAN;
        p.inv_std = NORM_TRAIN_INV_STD;
    } else if (op == WD_OP_NORM_BACKWARD) {
        p = (struct wd_norm_places){
            NORM_GRAD_X,    NORM_GRAD_DY,      NORM_GRAD_DX,     NORM_GRAD_SCALE, -1,
            NORM_GRAD_MEAN, NORM_GRAD_INV_STD, NORM_GRAD_DSCALE, NORM_GRAD_DBIAS};
    }
    return p;
}

int wd_norm_type(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return NORM_ROWS_F32;
    case CUDNN_DATA_HALF: return NORM_ROWS_F16;
    case CUDNN_DATA_BFLOAT16: return NORM_ROWS_BF16;
    default: return -1;
    }
}

const struct wd_tensor *wd_norm_tensor(const struct wd_problem *problem, int slot)
{
    return slot < 0 ? NULL : wd_slot(problem->graph, problem->node, slot);
}

void *wd_norm_data(const struct wd_call *call, int slot)
{
    return slot < 0 ? NULL : wd_call_data(call, slot);
}

struct norm_rows_param wd_norm_param(const struct wd_call *call, int slot)
{
    const struct wd_tensor *t = slot < 0 ? NULL : wd_call_tensor(call, slot);
    struct norm_rows_param p = {NULL, 0, 0};
    if (!t) return p;
    p.data = wd_call_data(call, slot);
    p.type = wd_norm_type(t->dtype);
    return p;
}

bool wd_norm_aligned(const void *data)
{
    return (uintptr_t)data % 16 == 0;
}

int wd_norm_cluster_max(const struct wd_device *device)
{
    bool has = device->cooperative && device->capability >= CLUSTER_CAPABILITY;
    return has ? NORM_ROWS_CLUSTER_MAX : 1;
}

bool wd_norm_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    const int data[] = {p.x, p.dy, p.y};
    const int params[] = {p.scale, p.bias, p.dscale, p.dbias};
    const int statistics[] = {p.mean, p.inv_std};
    const struct wd_tensor *x = wd_norm_tensor(problem, p.x);
    WD_NEED(wd_tensor_count(x) > 0, reason, NOT_SUPPORTED_SHAPE, "x is empty");
    WD_NEED(wd_problem_acc(problem) == WD_ACC_F32, reason, NOT_SUPPORTED_DATA_TYPE,
            "a type needs more than fp32 to compute in");
    WD_NEED(wd_tensor_is_packed(x), reason, NOT_SUPPORTED_LAYOUT, "x has gaps");
    for (int i = 0; i < 3; ++i) {
        const struct wd_tensor *t = wd_norm_tensor(problem, data[i]);
        if (!t) continue;
        WD_NEED(t->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is vectorised, %d lanes a unit", data[i], t->vect_count);
        WD_NEED(wd_norm_type(t->dtype) >= 0 && t->dtype == x->dtype, reason,
                NOT_SUPPORTED_DATA_TYPE, "slot %d is %s, needed is fp32, fp16 or bf16 as x",
                data[i], wd_dtype_name(t->dtype));
        WD_NEED(wd_tensor_same_layout(t, x), reason, NOT_SUPPORTED_LAYOUT,
                "slot %d lies otherwise than x", data[i]);
    }
    for (int i = 0; i < 4; ++i) {
        const struct wd_tensor *t = wd_norm_tensor(problem, params[i]);
        WD_NEED(!t || (wd_norm_type(t->dtype) >= 0 && t->vect_count == 1), reason,
                NOT_SUPPORTED_DATA_TYPE, "slot %d is %s, needed is fp32, fp16 or bf16", params[i],
                wd_dtype_name(t->dtype));
    }
    for (int i = 0; i < 2; ++i) {
        const struct wd_tensor *t = wd_norm_tensor(problem, statistics[i]);
        WD_NEED(!t || (t->dtype == CUDNN_DATA_FLOAT && t->vect_count == 1), reason,
                NOT_SUPPORTED_DATA_TYPE, "slot %d is %s, needed is fp32", statistics[i],
                wd_dtype_name(t->dtype));
    }
    return true;
}

bool wd_norm_has_statistics(const struct wd_problem *problem, struct wd_reason *reason)
{
    WD_NEED(problem->node->op != WD_OP_NORM_BACKWARD ||
                wd_slot(problem->graph, problem->node, NORM_GRAD_INV_STD),
            reason, NOT_SUPPORTED, "the statistics are not given");
    return true;
}
