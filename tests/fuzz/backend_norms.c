/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizations for graphs that are almost right: any mode, phase and type, with statistics, averages
 * and gradients or without. */
#include <string.h>

#include "fuzz/backend_fuzz.h"

enum { UIDS = 40 }; /* of the tensors that only a normalization has, from here on */

struct norm {
    cudnnBackendDescriptor_t op;
    int mode;
    int64_t uid; /* the next */
    int64_t stat[4], param[4];
    int param_type, stat_type;
};

static void begin(struct norm *n, int type, const int64_t *dims)
{
    bool layers;
    n->op = create(type);
    n->mode = below(6);
    n->uid = UIDS;
    n->param_type = chance(70) ? CUDNN_DATA_FLOAT : random_dtype();
    n->stat_type = chance(80) ? CUDNN_DATA_FLOAT : random_dtype();
    layers =
        n->mode == CUDNN_LAYER_NORM || n->mode == CUDNN_RMS_NORM || n->mode == CUDNN_ADA_LAYER_NORM;
    for (int d = 0; d < 4; ++d) {
        n->stat[d] = d < 2 && !layers ? dims[d] : 1;
        n->param[d] = d == 1 || (layers && d > 0) ? dims[d] : 1;
    }
    if (layers) n->stat[0] = dims[0];
    if (n->mode == CUDNN_ADA_LAYER_NORM) n->param[0] = dims[0];
    if (n->mode == CUDNN_BATCH_NORM) n->stat[0] = 1;
    if (n->mode == CUDNN_GROUP_NORM && chance(50)) n->stat[1] = dims[1] % 2 ? 1 : dims[1] / 2;
}

static void set_param(struct norm *n, int attribute)
{
    set_ref(n->op, attribute, tensor(n->uid++, n->param_type, 4, n->param, false));
}

static void set_stat(struct norm *n, int attribute)
{
    set_ref(n->op, attribute, tensor(n->uid++, n->stat_type, 4, n->stat, false));
}

static void set_scalar(struct norm *n, int attribute)
{
    set_ref(n->op, attribute, scalar(n->uid++, chance(50) ? CUDNN_DATA_FLOAT : CUDNN_DATA_DOUBLE));
}

/* Two tensors that may be there or not, both alike. */
static void set_pair(struct norm *n, int percent, int first, int second)
{
    if (!chance(percent)) return;
    set_stat(n, first);
    set_stat(n, second);
}

cudnnBackendDescriptor_t norm_forward(const int64_t *dims, cudnnBackendDescriptor_t x,
                                      cudnnBackendDescriptor_t y)
{
    struct norm n;
    bool trains = chance(60);
    begin(&n, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, dims);
    set_word(n.op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, n.mode);
    set_word(n.op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
             trains ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE);
    set_ref(n.op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x);
    set_param(&n, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC);
    if (chance(70)) set_param(&n, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC);
    if (n.mode == CUDNN_RMS_NORM) {
        if (chance(80)) set_stat(&n, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC);
    } else {
        set_pair(&n, 80, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC,
                 CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC);
    }
    if (trains || chance(80)) set_scalar(&n, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC);
    if (trains && n.mode == CUDNN_BATCH_NORM && chance(50)) {
        set_scalar(&n, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC);
        set_pair(&n, 98, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
                 CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC);
        set_pair(&n, 98, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
                 CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC);
    }
    set_ref(n.op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y);
    return finish(n.op);
}

cudnnBackendDescriptor_t norm_backward(const int64_t *dims, cudnnBackendDescriptor_t dy,
                                       cudnnBackendDescriptor_t dx)
{
    struct norm n;
    bool given = chance(80);
    begin(&n, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, dims);
    set_word(n.op, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, n.mode);
    set_ref(n.op, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC,
            tensor(n.uid++, chance(70) ? CUDNN_DATA_FLOAT : random_dtype(), 4, dims, false));
    set_ref(n.op, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, dy);
    set_param(&n, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC);
    if (given && n.mode != CUDNN_RMS_NORM) set_stat(&n, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC);
    if (given) set_stat(&n, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC);
    if (!given || chance(10)) set_scalar(&n, CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC);
    set_ref(n.op, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, dx);
    if (chance(80)) set_param(&n, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC);
    if (chance(60)) set_param(&n, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC);
    return finish(n.op);
}
