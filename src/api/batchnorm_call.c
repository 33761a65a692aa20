/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done with a call of either interface of batch normalization (batchnorm.h): its arguments
 * are checked, the node is made of them and run. Ranks other than 4 and 5 are taken too. */
#include "api/batchnorm.h"

#include <math.h>
#include <string.h>

#include "graph/norm_shape.h"
#include "graph/norm_slots.h"

const struct wd_bn_interface wd_bn_batchnorm = {
    .mode_type = "cudnnBatchNormMode_t",
    .mode_count = CUDNN_BATCHNORM_SPATIAL_PERSISTENT + 1,
    .ops_name = "bnOps",
    .ops_type = "cudnnBatchNormOps_t",
};
const struct wd_bn_interface wd_bn_normalization = {
    .mode_type = "cudnnNormMode_t",
    .mode_count = CUDNN_NORM_PER_CHANNEL + 1,
    .ops_name = "normOps",
    .ops_type = "cudnnNormOps_t",
    .chooses = true,
};
_Static_assert((int)CUDNN_NORM_PER_ACTIVATION == (int)CUDNN_BATCHNORM_PER_ACTIVATION &&
                   (int)CUDNN_NORM_PER_CHANNEL == (int)CUDNN_BATCHNORM_SPATIAL,
               "the modes of both interfaces are the same");
_Static_assert((int)CUDNN_NORM_OPS_NORM == (int)CUDNN_BATCHNORM_OPS_BN &&
                   (int)CUDNN_NORM_OPS_NORM_ADD_ACTIVATION ==
                       (int)CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
               "so are the operations");

/* fp64 for fp64, fp32 for what fp32 can hold. */
static int param_dtype(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_INT8: return CUDNN_DATA_FLOAT;
    default: return dtype;
    }
}

void wd_bn_derive(struct cudnnTensorStruct *result, const struct cudnnTensorStruct *x, int mode)
{
    struct wd_tensor derived = x->tensor;
    for (int d = 0; d < derived.rank; ++d) {
        if (!wd_norm_is_param_axis(mode, d)) derived.dim[d] = 1;
    }
    if (derived.vect_count > 1) {
        int64_t units[WD_MAX_RANK];
        memcpy(units, derived.dim, sizeof units);
        units[derived.vect_dim] /= derived.vect_count;
        wd_strides_nchw(units, derived.rank, derived.stride);
        result->declared_dtype = x->declared_dtype;
        result->declared_format = -1;
    } else {
        derived.dtype = param_dtype(derived.dtype);
        wd_strides_nchw(derived.dim, derived.rank, derived.stride);
        result->declared_dtype = derived.dtype;
        result->declared_format = CUDNN_TENSOR_NCHW;
    }
    result->tensor = derived;
    result->head.set = 1;
}

static bool activates(const struct wd_bn_call *call)
{
    return call->ops != CUDNN_BATCHNORM_OPS_BN;
}

static bool adds(const struct wd_bn_call *call)
{
    return call->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
}

/* ---- Checks ---- */

cudnnStatus_t wd_bn_check_mode(const char *function, const struct wd_bn_interface *interface,
                               int mode)
{
    if (mode >= 0 && mode < interface->mode_count) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "mode=%d is no %s", mode,
                      interface->mode_type);
}

/* What every call has: its handle, what it is to do, and x. */
static cudnnStatus_t check_request(const struct wd_bn_call *call)
{
    const struct wd_bn_interface *interface = call->interface;
    WD_TRY(wd_check_handle(call->function, call->handle));
    WD_TRY(wd_bn_check_mode(call->function, interface, call->mode));
    if (interface->chooses && call->algo != CUDNN_NORM_ALGO_STANDARD &&
        call->algo != CUDNN_NORM_ALGO_PERSIST) {
        /* an unknown algorithm is documented as not supported */
        return wd_fail_in(call->function, CUDNN_STATUS_NOT_SUPPORTED,
                          "algo=%d is no cudnnNormAlgo_t", call->algo);
    }
    if (interface->chooses && call->group_count != 1) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM,
                          "groupCnt=%d is not 1, the only value that is supported",
                          call->group_count);
    }
    if (call->ops < CUDNN_BATCHNORM_OPS_BN || call->ops > CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM, "%s=%d is no %s",
                          interface->ops_name, call->ops, interface->ops_type);
    }
    if (activates(call)) {
        WD_TRY(wd_check_descriptor(call->function, "activationDesc", WD_DESC_ACTIVATION,
                                   call->activation, 1));
    }
    return wd_check_descriptor(call->function, call->x.desc_name, WD_DESC_TENSOR, call->x.desc, 1);
}

static cudnnStatus_t check_given(const struct wd_bn_call *call, const struct wd_bn_pointer *data)
{
    if (data->pointer || !data->name) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null",
                      data->name);
}

/* A further tensor with the dims and type of x; where it lies over `over`, with its layout. */
static cudnnStatus_t check_like(const struct wd_bn_call *call, const struct wd_bn_tensor *tensor,
                                const struct wd_bn_tensor *over)
{
    const void *data = tensor->data.pointer;
    WD_TRY(wd_check_descriptor(call->function, tensor->desc_name, WD_DESC_TENSOR, tensor->desc, 1));
    WD_TRY(wd_check_same_tensor(call->function, tensor->desc, tensor->desc_name, call->x.desc,
                                call->x.desc_name));
    WD_TRY(check_given(call, &tensor->data));
    if (over && data && data == over->data.pointer &&
        !wd_tensor_same_layout(&tensor->desc->tensor, &over->desc->tensor)) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM,
                          "%s and %s are the same memory, but the strides of %s and %s differ",
                          tensor->data.name, over->data.name, tensor->desc_name, over->desc_name);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_param(const struct wd_bn_call *call, const struct wd_bn_tensor *tensor)
{
    const struct wd_tensor *x = &call->x.desc->tensor;
    const struct wd_tensor *param;
    bool fits;
    char own[160];
    char its[160];
    WD_TRY(wd_check_descriptor(call->function, tensor->desc_name, WD_DESC_TENSOR, tensor->desc, 1));
    param = &tensor->desc->tensor;
    fits = param->rank == x->rank;
    for (int d = 0; fits && d < x->rank; ++d) {
        fits = param->dim[d] == (wd_norm_is_param_axis(call->mode, d) ? x->dim[d] : 1);
    }
    if (!fits) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "the dims of %s (%s) are not those that mode %d derives from %s (%s)",
                          tensor->desc_name, wd_tensor_text(param, own, sizeof own), call->mode,
                          call->x.desc_name, wd_tensor_text(x, its, sizeof its));
    }
    if (param->dtype != param_dtype(x->dtype)) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM, "%s is %s; for %s of %s it is %s",
                          tensor->desc_name, wd_dtype_name(param->dtype), call->x.desc_name,
                          wd_dtype_name(x->dtype), wd_dtype_name(param_dtype(x->dtype)));
    }
    return CUDNN_STATUS_SUCCESS;
}

/* The request, the output over x, the parameters, and the scalars. */
static cudnnStatus_t check_common(const struct wd_bn_call *call, const struct wd_bn_tensor *output)
{
    WD_TRY(check_request(call));
    if (!(call->epsilon >= CUDNN_BN_MIN_EPSILON) || !isfinite(call->epsilon)) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM,
                          "epsilon=%g is not a number of at least CUDNN_BN_MIN_EPSILON=%g",
                          call->epsilon, CUDNN_BN_MIN_EPSILON);
    }
    WD_TRY(check_given(call, &call->x.data));
    WD_TRY(check_like(call, output, &call->x));
    WD_TRY(check_param(call, &call->param));
    if (call->stats.desc_name) WD_TRY(check_param(call, &call->stats));
    WD_TRY(check_given(call, &call->alpha));
    WD_TRY(check_given(call, &call->beta));
    return check_given(call, &call->scale);
}

static cudnnStatus_t check_forward(const struct wd_bn_call *call)
{
    WD_TRY(check_common(call, &call->y));
    WD_TRY(check_given(call, &call->bias));
    return adds(call) ? check_like(call, &call->z, &call->y) : CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_backward(const struct wd_bn_call *call)
{
    WD_TRY(check_common(call, &call->dx));
    WD_TRY(check_like(call, &call->dy, &call->dx));
    WD_TRY(check_given(call, &call->alpha_param));
    WD_TRY(check_given(call, &call->beta_param));
    WD_TRY(check_given(call, &call->dscale));
    WD_TRY(check_given(call, &call->dbias));
    if (activates(call)) {
        /* what the activation did stands in the reserve space; y and the bias are only checked */
        WD_TRY(check_like(call, &call->y, NULL));
        WD_TRY(check_given(call, &call->bias));
    }
    return adds(call) ? check_like(call, &call->dz, &call->dy) : CUDNN_STATUS_SUCCESS;
}

/* The saved statistics: both or neither. */
static cudnnStatus_t check_saved(const struct wd_bn_call *call)
{
    const struct wd_bn_pointer *a = &call->saved_mean;
    const struct wd_bn_pointer *b = &call->saved_inv_std;
    if ((a->pointer == NULL) == (b->pointer == NULL)) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                      "%s is null, but %s is not: both or neither", a->pointer ? b->name : a->name,
                      a->pointer ? a->name : b->name);
}

/* Two outputs of one size each need memory of their own. */
static cudnnStatus_t check_apart(const struct wd_bn_call *call, const struct wd_bn_pointer *a,
                                 const struct wd_bn_pointer *b)
{
    if (!a->pointer || a->pointer != b->pointer) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM, "%s and %s are the same memory",
                      a->name, b->name);
}

static struct wd_norm_attr attr_of(const struct wd_bn_call *call)
{
    struct wd_norm_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.mode = call->mode;
    attr.ops = call->ops;
    attr.epsilon = call->epsilon;
    if (activates(call)) attr.activation = wd_activation_attr(call->activation, 0);
    return attr;
}

static int64_t reserve_needed(const struct wd_bn_call *call)
{
    const struct wd_tensor *x = &call->x.desc->tensor;
    struct wd_norm_attr attr;
    if (!activates(call)) return 0;
    attr = attr_of(call);
    return wd_norm_reserve_bytes(&attr, x->dtype, wd_tensor_count(x));
}

static cudnnStatus_t check_reserve(const struct wd_bn_call *call)
{
    int64_t needed = reserve_needed(call);
    if (needed == 0) return CUDNN_STATUS_SUCCESS;
    if (call->reserve_bytes < (size_t)needed) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                          "reserveSpaceSizeInBytes=%zu is less than the %lld that are needed",
                          call->reserve_bytes, (long long)needed);
    }
    if (!call->reserve) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                          "reserveSpace is null, %lld bytes are needed", (long long)needed);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- The node, from checked descriptors: what is optional is absent where its pointer is null ---- */

static void bind_data(struct wd_single *single, int slot, const struct wd_bn_tensor *tensor)
{
    wd_bind(single, slot, &tensor->desc->tensor, tensor->desc_name, tensor->data.pointer,
            tensor->data.name);
}

static void bind_param(struct wd_single *single, int slot, const struct wd_bn_call *call,
                       const struct wd_bn_pointer *data)
{
    wd_bind(single, slot, &call->param.desc->tensor, call->param.desc_name, data->pointer,
            data->name);
}

static void bind_stats(struct wd_single *single, int slot, const struct wd_bn_call *call,
                       const struct wd_bn_pointer *data)
{
    const struct wd_bn_tensor *stats = call->stats.desc_name ? &call->stats : &call->param;
    if (!data->pointer) return;
    wd_bind(single, slot, &stats->desc->tensor, stats->desc_name, data->pointer, data->name);
}

/* The reserve space, as large as it is needed. */
static void bind_reserve(struct wd_single *single, int slot, const struct wd_bn_call *call)
{
    int64_t needed = reserve_needed(call);
    struct wd_tensor reserve;
    if (needed == 0) return;
    reserve = wd_opaque_bytes(needed);
    wd_single_bind(single, slot, &reserve, call->reserve, "reserveSpace");
}

static void bind_training(const struct wd_bn_call *call, struct wd_single *single)
{
    wd_single_init(single, WD_OP_BN_TRAINING);
    single->node.attr.norm = attr_of(call);
    bind_data(single, WD_BN_TRAIN_X, &call->x);
    bind_param(single, WD_BN_TRAIN_SCALE, call, &call->scale);
    bind_param(single, WD_BN_TRAIN_BIAS, call, &call->bias);
    if (adds(call)) bind_data(single, WD_BN_TRAIN_Z, &call->z);
    bind_data(single, WD_BN_TRAIN_Y, &call->y);
    bind_stats(single, WD_BN_TRAIN_RUNNING_MEAN, call, &call->mean);
    bind_stats(single, WD_BN_TRAIN_RUNNING_VAR, call, &call->var);
    bind_stats(single, WD_BN_TRAIN_SAVED_MEAN, call, &call->saved_mean);
    bind_stats(single, WD_BN_TRAIN_SAVED_INV_STD, call, &call->saved_inv_std);
    bind_reserve(single, WD_BN_TRAIN_RESERVE, call);
}

static void bind_backward(const struct wd_bn_call *call, struct wd_single *single)
{
    wd_single_init(single, WD_OP_BN_BACKWARD);
    single->node.attr.norm = attr_of(call);
    bind_data(single, WD_BN_GRAD_X, &call->x);
    bind_data(single, WD_BN_GRAD_DY, &call->dy);
    bind_param(single, WD_BN_GRAD_SCALE, call, &call->scale);
    bind_stats(single, WD_BN_GRAD_SAVED_MEAN, call, &call->saved_mean);
    bind_stats(single, WD_BN_GRAD_SAVED_INV_STD, call, &call->saved_inv_std);
    bind_reserve(single, WD_BN_GRAD_RESERVE, call);
    bind_data(single, WD_BN_GRAD_DX, &call->dx);
    bind_param(single, WD_BN_GRAD_DSCALE, call, &call->dscale);
    bind_param(single, WD_BN_GRAD_DBIAS, call, &call->dbias);
    if (adds(call)) bind_data(single, WD_BN_GRAD_DZ, &call->dz);
}

static void set_scalar(struct wd_single *single, int index, const struct wd_bn_call *call,
                       const struct wd_bn_pointer *value)
{
    wd_single_scalar(single, index, wd_scalar(value->pointer, call->x.desc->tensor.dtype));
}

static cudnnStatus_t run(const struct wd_bn_call *call, struct wd_single *single)
{
    int64_t bytes = WD_WORKSPACE_ARENA;
    if (call->workspace_name) {
        single->workspace = call->workspace_name;
        single->workspace_size = "workSpaceSizeInBytes";
        bytes = wd_bytes_given(call->workspace_bytes);
    }
    return wd_run(call->function, call->handle, single, call->workspace, bytes);
}

/* ---- The calls ---- */

cudnnStatus_t wd_bn_inference(const struct wd_bn_call *call)
{
    struct wd_single single;
    WD_TRY(check_forward(call));
    WD_TRY(check_given(call, &call->mean));
    WD_TRY(check_given(call, &call->var));
    wd_single_init(&single, WD_OP_BN_INFERENCE);
    single.node.attr.norm = attr_of(call);
    bind_data(&single, WD_BN_INFER_X, &call->x);
    bind_param(&single, WD_BN_INFER_SCALE, call, &call->scale);
    bind_param(&single, WD_BN_INFER_BIAS, call, &call->bias);
    bind_stats(&single, WD_BN_INFER_MEAN, call, &call->mean);
    bind_stats(&single, WD_BN_INFER_VAR, call, &call->var);
    if (adds(call)) bind_data(&single, WD_BN_INFER_Z, &call->z);
    bind_data(&single, WD_BN_INFER_Y, &call->y);
    set_scalar(&single, WD_BN_ALPHA, call, &call->alpha);
    set_scalar(&single, WD_BN_BETA, call, &call->beta);
    return run(call, &single);
}

cudnnStatus_t wd_bn_training(const struct wd_bn_call *call)
{
    struct wd_single single;
    WD_TRY(check_forward(call));
    WD_TRY(check_saved(call));
    WD_TRY(check_apart(call, &call->mean, &call->var));
    WD_TRY(check_apart(call, &call->saved_mean, &call->saved_inv_std));
    if (!isfinite(call->factor)) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM,
                          "exponentialAverageFactor=%g is no finite number", call->factor);
    }
    WD_TRY(check_reserve(call));
    bind_training(call, &single);
    set_scalar(&single, WD_BN_ALPHA, call, &call->alpha);
    set_scalar(&single, WD_BN_BETA, call, &call->beta);
    wd_single_scalar(&single, WD_BN_FACTOR_SCALAR, call->factor);
    return run(call, &single);
}

cudnnStatus_t wd_bn_backward(const struct wd_bn_call *call)
{
    struct wd_single single;
    WD_TRY(check_backward(call));
    WD_TRY(check_saved(call));
    WD_TRY(check_apart(call, &call->dscale, &call->dbias));
    if (adds(call)) WD_TRY(check_apart(call, &call->dz.data, &call->dx.data));
    WD_TRY(check_reserve(call));
    bind_backward(call, &single);
    set_scalar(&single, WD_BN_ALPHA_DATA, call, &call->alpha);
    set_scalar(&single, WD_BN_BETA_DATA, call, &call->beta);
    set_scalar(&single, WD_BN_ALPHA_PARAM, call, &call->alpha_param);
    set_scalar(&single, WD_BN_BETA_PARAM, call, &call->beta_param);
    return run(call, &single);
}

static cudnnStatus_t check_size(const struct wd_bn_call *call, const size_t *bytes)
{
    return check_given(call, &(const struct wd_bn_pointer){bytes, "sizeInBytes"});
}

/* ---- The workspace: a request does not say which statistics the call will have, and engines differ
 * in what they need with and without them, so the answer is the most of all that it may have ---- */

/* In the place of a pointer to statistics, which no plan looks behind. */
static const char given;

static cudnnStatus_t raise_workspace(const struct wd_bn_call *call, struct wd_single *single,
                                     size_t *most)
{
    size_t bytes;
    WD_TRY(wd_run_workspace(call->function, call->handle, single, &bytes));
    if (bytes > *most) *most = bytes;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_bn_training_workspace(const struct wd_bn_call *call, size_t *bytes)
{
    size_t most = 0;
    WD_TRY(check_forward(call));
    WD_TRY(check_size(call, bytes));
    for (int i = 0; i < 4; ++i) {
        struct wd_bn_call with = *call;
        struct wd_single single;
        with.mean.pointer = with.var.pointer = i & 1 ? &given : NULL;
        with.saved_mean.pointer = with.saved_inv_std.pointer = i & 2 ? &given : NULL;
        bind_training(&with, &single);
        WD_TRY(raise_workspace(call, &single, &most));
    }
    *bytes = most;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_bn_backward_workspace(const struct wd_bn_call *call, size_t *bytes)
{
    size_t most = 0;
    WD_TRY(check_backward(call));
    WD_TRY(check_size(call, bytes));
    for (int i = 0; i < 2; ++i) {
        struct wd_bn_call with = *call;
        struct wd_single single;
        with.saved_mean.pointer = with.saved_inv_std.pointer = i ? &given : NULL;
        bind_backward(&with, &single);
        WD_TRY(raise_workspace(call, &single, &most));
    }
    *bytes = most;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_bn_reserve(const struct wd_bn_call *call, size_t *bytes)
{
    WD_TRY(check_request(call));
    WD_TRY(check_size(call, bytes));
    *bytes = (size_t)reserve_needed(call);
    return CUDNN_STATUS_SUCCESS;
}
