/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements norm_world.h. */
#include "api/norm_world.h"

#include <math.h>
#include <string.h>

#include "support/harness_internal.h"

static const float one = 1.0f;
static const float zero = 0.0f;

cudnnTensorDescriptor_t norm_tensor(cudnnTensorFormat_t format, cudnnDataType_t type, int rank,
                                    const int *dim)
{
    cudnnTensorDescriptor_t t;
    cudnnCreateTensorDescriptor(&t);
    cudnnSetTensorNdDescriptorEx(t, format, type, rank, dim);
    return t;
}

static void make_valid(struct norm_world *w, const int *shape, const int *of_params)
{
    struct tensor *data[7];
    struct tensor *params[10];
    for (int i = 0; i < 7; ++i) {
        data[i] = tensor_inout(CUDNN_DATA_FLOAT, 4, shape, LAYOUT_NCHW, -1.0, 1.0);
    }
    for (int i = 0; i < 10; ++i) {
        params[i] = tensor_inout(CUDNN_DATA_FLOAT, 4, of_params, LAYOUT_NCHW, 0.5, 1.0);
    }
    w->valid = (struct norm_arguments){
        .handle = harness_handle,
        .mode = CUDNN_BATCHNORM_SPATIAL, /* which is CUDNN_NORM_PER_CHANNEL */
        .ops = CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
        .algo = CUDNN_NORM_ALGO_STANDARD,
        .groups = 1,
        .alpha = &one,
        .beta = &zero,
        .alpha_param = &one,
        .beta_param = &zero,
        .x_desc = data[0]->desc,
        .y_desc = data[0]->desc,
        .z_desc = data[0]->desc,
        .dy_desc = data[0]->desc,
        .dx_desc = data[0]->desc,
        .dz_desc = data[0]->desc,
        .param_desc = params[0]->desc,
        .stats_desc = params[2]->desc,
        .x = data[0]->data,
        .z = data[1]->data,
        .y = data[2]->data,
        .y_in = data[3]->data,
        .dy = data[4]->data,
        .dx = data[5]->data,
        .dz = data[6]->data,
        .scale = params[0]->data,
        .bias = params[1]->data,
        .mean = params[2]->data,
        .var = params[3]->data,
        .running_mean = params[4]->data,
        .running_var = params[5]->data,
        .saved_mean = params[6]->data,
        .saved_inv = params[7]->data,
        .dscale = params[8]->data,
        .dbias = params[9]->data,
        .factor = 0.1,
        .epsilon = 1e-5,
        .workspace = tensor_bytes(4096)->data,
        .workspace_bytes = 4096,
        .size = &w->size,
    };
    cudnnCreateActivationDescriptor(&w->valid.activation);
    cudnnSetActivationDescriptor(w->valid.activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN,
                                 0.0);
}

void norm_world_begin(struct norm_world *w, norm_call *reserve_size)
{
    static const int shape[4] = {2, 3, 4, 5};
    static const int other[4] = {2, 3, 4, 6};
    static const int of_params[4] = {1, 3, 1, 1};
    static const int wrong_params[4] = {1, 4, 1, 1};
    w->unset = NULL;
    cudnnCreateTensorDescriptor(&w->unset);
    cudnnCreateActivationDescriptor(&w->no_activation);
    w->wide = norm_tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, other);
    w->half = norm_tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 4, shape);
    w->rank3 = norm_tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 3, shape);
    w->nhwc = norm_tensor(CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 4, shape);
    w->integers = norm_tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_INT8, 4, shape);
    w->params_wrong = norm_tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, wrong_params);
    w->params_f64 = norm_tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 4, of_params);
    make_valid(w, shape, of_params);
    reserve_size(&w->valid);
    w->valid.reserve_bytes = w->size;
    w->valid.reserve = tensor_bytes((int64_t)w->size)->data;
    refusal_guard();
}

void norm_world_end(struct norm_world *w)
{
    cudnnTensorDescriptor_t made[] = {w->unset, w->wide,     w->half,         w->rank3,
                                      w->nhwc,  w->integers, w->params_wrong, w->params_f64};
    for (int i = 0; i < 8; ++i) cudnnDestroyTensorDescriptor(made[i]);
    cudnnDestroyActivationDescriptor(w->valid.activation);
    cudnnDestroyActivationDescriptor(w->no_activation);
    case_end();
}

void norm_refuse_row(const struct norm_function *f, const char *argument, int line,
                     cudnnStatus_t status, const struct norm_arguments *row)
{
    if (!refusal_begin(f->name, argument, line)) return;
    refusal_end(f->name, argument, status, f->call(row));
}

#define ROW(status, argument, change)                                                              \
    do {                                                                                           \
        struct norm_arguments row = valid;                                                         \
        row.change;                                                                                \
        norm_refuse_row(f, argument, __LINE__, CUDNN_STATUS_##status, &row);                       \
    } while (0)

static void refuse_numbers(const struct norm_world *w, const struct norm_function *f,
                           struct norm_arguments valid)
{
    ROW(BAD_PARAM_NULL_POINTER, "handle", handle = NULL);
    ROW(BAD_PARAM, "mode", mode = -1);
    ROW(BAD_PARAM, "mode", mode = f->modes);
    if (f->newer) {
        ROW(NOT_SUPPORTED, "algo", algo = -1);
        ROW(NOT_SUPPORTED, "algo", algo = 2);
        ROW(BAD_PARAM, "groupCnt", groups = 0);
        ROW(BAD_PARAM, "groupCnt", groups = 2);
    }
    if (f->ops) {
        ROW(BAD_PARAM, f->ops, ops = -1);
        ROW(BAD_PARAM, f->ops, ops = 3);
        ROW(BAD_PARAM_NULL_POINTER, "activationDesc", activation = NULL);
        ROW(BAD_PARAM, "activationDesc", activation = w->no_activation);
    }
    if (f->epsilon) {
        ROW(BAD_PARAM, "epsilon", epsilon = -1e-9);
        ROW(BAD_PARAM, "epsilon", epsilon = NAN);
        ROW(BAD_PARAM, "epsilon", epsilon = INFINITY);
    }
    if (f->factor) {
        ROW(BAD_PARAM, "exponentialAverageFactor", factor = NAN);
        ROW(BAD_PARAM, "exponentialAverageFactor", factor = INFINITY);
        ROW(BAD_PARAM, "exponentialAverageFactor", factor = -INFINITY);
    }
}

static void refuse_spaces(const struct norm_function *f, struct norm_arguments valid)
{
    f->workspace_size(&valid);
    valid.workspace_bytes = *valid.size;
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, "workSpaceSizeInBytes", workspace_bytes -= 1);
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, "workSpaceSizeInBytes", workspace_bytes = 0);
    ROW(BAD_PARAM_NULL_POINTER, f->workspace, workspace = NULL);
    ROW(BAD_PARAM_MISALIGNED_POINTER, f->workspace, workspace = (char *)valid.workspace + 4);
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, "reserveSpaceSizeInBytes", reserve_bytes -= 1);
    ROW(BAD_PARAM_NULL_POINTER, "reserveSpace", reserve = NULL);
}

/* What stands in the place of a pointer, and what that is answered with. */
struct wrong {
    int line;
    cudnnStatus_t status;
    const void *pointer;
};
#define WRONG(status, pointer)                                                                     \
    {                                                                                              \
        __LINE__, CUDNN_STATUS_##status, (pointer)                                                 \
    }

static void refuse_pointer(const struct norm_function *f, const struct norm_arguments *valid,
                           const struct norm_argument *argument, const struct wrong *wrong)
{
    struct norm_arguments row = *valid;
    memcpy((char *)&row + argument->field, &wrong->pointer, sizeof wrong->pointer);
    norm_refuse_row(f, argument->name, wrong->line, wrong->status, &row);
}

static void refuse_list(const struct norm_function *f, const struct norm_arguments *valid,
                        const struct norm_argument *list, const struct wrong *wrong, int count)
{
    for (; list->name; ++list) {
        for (int i = 0; i < count; ++i) refuse_pointer(f, valid, list, &wrong[i]);
    }
}

void norm_refuse(const struct norm_world *w, const struct norm_function *f)
{
    const struct norm_arguments *valid = &w->valid;
    const struct wrong null = WRONG(BAD_PARAM_NULL_POINTER, NULL);
    const struct wrong params[] = {
        null,
        WRONG(BAD_PARAM, w->unset),
        WRONG(BAD_PARAM, w->params_f64),
        WRONG(BAD_PARAM_SHAPE_MISMATCH, w->params_wrong),
        WRONG(BAD_PARAM_SHAPE_MISMATCH, valid->x_desc),
    };
    const struct wrong likes[] = {
        null,
        WRONG(BAD_PARAM, w->unset),
        WRONG(BAD_PARAM_SHAPE_MISMATCH, w->wide),
        WRONG(BAD_PARAM_SHAPE_MISMATCH, w->rank3),
        WRONG(BAD_PARAM, w->half),
    };
    const struct norm_argument x[] = {NORM_ARGUMENT(xDesc, x_desc), {0, NULL, 0}};
    refuse_numbers(w, f, *valid);
    refuse_list(f, valid, x, likes, 2); /* null, and not set */
    refuse_list(f, valid, f->param, params, 5);
    refuse_list(f, valid, f->like, likes, 5);
    refuse_list(f, valid, f->needed, &null, 1);
    for (const struct norm_argument *a = f->apart; a->name; ++a) {
        struct wrong other = WRONG(BAD_PARAM, NULL);
        memcpy(&other.pointer, (const char *)valid + a->other, sizeof other.pointer);
        refuse_pointer(f, valid, a, &other);
    }
    if (f->workspace) refuse_spaces(f, *valid);
}

void norm_accept(const char *what, const struct norm_arguments *a, norm_call *const *calls,
                 int count)
{
    for (int i = 0; i < count; ++i) {
        cudnnStatus_t status;
        char text[512];
        if (!case_begin("accepted/%s/%d", what, i)) continue;
        status = calls[i](a);
        cudnnGetLastErrorString(text, sizeof text);
        if (status != CUDNN_STATUS_SUCCESS) case_fail("%s: %s", cudnnGetErrorString(status), text);
        warpdnnSynchronize(harness_handle);
        case_count();
    }
}
