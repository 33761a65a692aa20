/* SPDX-License-Identifier: Apache-2.0
 *
 * What the batch normalization nodes must be: x and what has its shape, parameters of one element a
 * channel or an activation, saved statistics in pairs, a fused activation with what it needs. */
#include <math.h>

#include "graph/graph.h"
#include "graph/norm_shape.h"
#include "graph/pointwise_modes.h"

/* How a slot's tensor follows from x. */
enum role { DATA, PARAM, RESERVE };
struct slot_role {
    const char *name;
    enum role role;
};

static const struct slot_role infer_slots[] = {
    {"x", DATA},    {"scale", PARAM}, {"bias", PARAM}, {"mean", PARAM},
    {"var", PARAM}, {"z", DATA},      {"y", DATA},
};
static const struct slot_role train_slots[] = {
    {"x", DATA},
    {"scale", PARAM},
    {"bias", PARAM},
    {"z", DATA},
    {"y", DATA},
    {"running_mean", PARAM},
    {"running_var", PARAM},
    {"saved_mean", PARAM},
    {"saved_inv_std", PARAM},
    {"reserve", RESERVE},
};
static const struct slot_role grad_slots[] = {
    {"x", DATA},
    {"dy", DATA},
    {"scale", PARAM},
    {"saved_mean", PARAM},
    {"saved_inv_std", PARAM},
    {"reserve", RESERVE},
    {"dx", DATA},
    {"dscale", PARAM},
    {"dbias", PARAM},
    {"dz", DATA},
};
enum { INFER_Z = 5 };
enum { TRAIN_Z = 3, TRAIN_SAVED_MEAN = 7, TRAIN_SAVED_INV_STD, TRAIN_RESERVE };
enum { GRAD_SAVED_MEAN = 3, GRAD_SAVED_INV_STD, GRAD_RESERVE, GRAD_DZ = 9 };

static bool is_real(int dtype)
{
    return wd_dtype_bits(dtype) >= 8 && dtype != CUDNN_DATA_COMPLEX_FP32 &&
           dtype != CUDNN_DATA_COMPLEX_FP64;
}

static cudnnStatus_t check_data(const char *op, const struct wd_tensor *tensor, const char *name,
                                const struct wd_tensor *x, bool floating)
{
    char own[160];
    char its[160];
    WD_REQUIRE(is_real(tensor->dtype) && !(floating && wd_dtype_is_integer(tensor->dtype)),
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "%s: tensor %s is %s", op, name,
               wd_dtype_name(tensor->dtype));
    WD_REQUIRE(wd_tensor_same_dims(tensor, x), CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: the dims of %s (%s) are not those of x (%s)", op, name,
               wd_tensor_text(tensor, own, sizeof own), wd_tensor_text(x, its, sizeof its));
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_param(const char *op, const struct wd_tensor *tensor, const char *name,
                                 const struct wd_tensor *x, int mode)
{
    char its[160];
    WD_REQUIRE(wd_dtype_bits(tensor->dtype) >= 16 && is_real(tensor->dtype) &&
                   !wd_dtype_is_integer(tensor->dtype),
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: tensor %s is %s, no floating type of 16 bits or more", op, name,
               wd_dtype_name(tensor->dtype));
    WD_REQUIRE(tensor->rank == x->rank, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: %s has %d dimensions, x has %d", op, name, tensor->rank, x->rank);
    for (int d = 0; d < x->rank; ++d) {
        int64_t want = wd_norm_is_param_axis(mode, d) ? x->dim[d] : 1;
        WD_REQUIRE(tensor->dim[d] == want, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: dim[%d]=%lld of %s is not %lld, as x (%s) and the mode want", op, d,
                   (long long)tensor->dim[d], name, (long long)want,
                   wd_tensor_text(x, its, sizeof its));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_pair(const struct wd_graph *graph, const struct wd_node *node,
                                const struct slot_role *slots, int first, int second)
{
    bool has_first = wd_slot(graph, node, first) != NULL;
    bool has_second = wd_slot(graph, node, second) != NULL;
    WD_REQUIRE(has_first == has_second, CUDNN_STATUS_BAD_PARAM, "%s: %s is given without %s",
               wd_op_info(node->op)->name, slots[has_first ? first : second].name,
               slots[has_first ? second : first].name);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_attr(const char *op, const struct wd_norm_attr *attr)
{
    WD_REQUIRE(attr->mode >= CUDNN_BATCHNORM_PER_ACTIVATION &&
                   attr->mode <= CUDNN_BATCHNORM_SPATIAL_PERSISTENT,
               CUDNN_STATUS_BAD_PARAM, "%s: mode=%d is no cudnnBatchNormMode_t", op, attr->mode);
    WD_REQUIRE(attr->ops >= CUDNN_BATCHNORM_OPS_BN &&
                   attr->ops <= CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
               CUDNN_STATUS_BAD_PARAM, "%s: ops=%d is no cudnnBatchNormOps_t", op, attr->ops);
    WD_REQUIRE(attr->epsilon >= CUDNN_BN_MIN_EPSILON && isfinite(attr->epsilon),
               CUDNN_STATUS_BAD_PARAM, "%s: epsilon=%g is not a number of at least %g", op,
               attr->epsilon, CUDNN_BN_MIN_EPSILON);
    if (attr->ops == CUDNN_BATCHNORM_OPS_BN) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(attr->activation.mode == CUDNN_POINTWISE_IDENTITY ||
                   (attr->activation.mode >= CUDNN_POINTWISE_RELU_FWD &&
                    attr->activation.mode < CUDNN_POINTWISE_RELU_BWD),
               CUDNN_STATUS_BAD_PARAM, "%s: pointwise mode %d is no activation", op,
               attr->activation.mode);
    return CUDNN_STATUS_SUCCESS;
}

/* z (or dz) belongs to BN_ADD_ACTIVATION and to nothing else. */
static cudnnStatus_t check_residual(const struct wd_graph *graph, const struct wd_node *node,
                                    const struct slot_role *slots, int slot)
{
    bool wanted = node->attr.norm.ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
    WD_REQUIRE((wd_slot(graph, node, slot) != NULL) == wanted, CUDNN_STATUS_BAD_PARAM,
               "%s: tensor %s is %s, ops is %d", wd_op_info(node->op)->name, slots[slot].name,
               wanted ? "missing" : "given", node->attr.norm.ops);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_reserve(const struct wd_graph *graph, const struct wd_node *node,
                                   const struct wd_tensor *x, int slot)
{
    const struct wd_tensor *reserve = wd_slot(graph, node, slot);
    const char *op = wd_op_info(node->op)->name;
    int64_t bytes = wd_norm_reserve_bytes(&node->attr.norm, x->dtype, wd_tensor_count(x));
    WD_REQUIRE((reserve != NULL) == (bytes > 0), CUDNN_STATUS_BAD_PARAM,
               "%s: the reserve space is %s, this operation keeps %lld bytes in it", op,
               reserve ? "given" : "missing", (long long)bytes);
    if (!reserve) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(reserve->flags & WD_OPAQUE, CUDNN_STATUS_BAD_PARAM,
               "%s: the reserve space is no opaque tensor", op);
    WD_REQUIRE(reserve->dim[0] >= bytes, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
               "%s: a reserve space of %lld bytes is given, %lld are needed", op,
               (long long)reserve->dim[0], (long long)bytes);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_bn(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_norm_attr *attr = &node->attr.norm;
    const struct wd_op_info *info = wd_op_info(node->op);
    const struct wd_tensor *x = wd_slot(graph, node, 0);
    const struct slot_role *slots = node->op == WD_OP_BN_INFERENCE  ? infer_slots
                                    : node->op == WD_OP_BN_TRAINING ? train_slots
                                                                    : grad_slots;
    WD_TRY(check_attr(info->name, attr));
    WD_REQUIRE(x->rank >= 2, CUDNN_STATUS_BAD_PARAM,
               "%s: x has %d dimensions, at least 2 are needed", info->name, x->rank);
    for (int d = 0; d < x->rank; ++d) {
        char its[160];
        WD_REQUIRE(x->dim[d] > 0, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                   "%s: dim[%d] of x (%s) is 0; no elements have no mean", info->name, d,
                   wd_tensor_text(x, its, sizeof its));
    }
    for (int s = 0; s < info->slot_count; ++s) {
        const struct wd_tensor *tensor = wd_slot(graph, node, s);
        if (!tensor || slots[s].role == RESERVE) continue;
        WD_REQUIRE(!(tensor->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
                   "%s: tensor %s is passed by value or opaque", info->name, slots[s].name);
        if (slots[s].role == DATA) {
            WD_TRY(
                check_data(info->name, tensor, slots[s].name, x, node->op != WD_OP_BN_INFERENCE));
        } else {
            WD_TRY(check_param(info->name, tensor, slots[s].name, x, attr->mode));
        }
    }
    if (node->op == WD_OP_BN_INFERENCE) return check_residual(graph, node, slots, INFER_Z);
    if (node->op == WD_OP_BN_TRAINING) {
        WD_TRY(check_pair(graph, node, slots, TRAIN_SAVED_MEAN, TRAIN_SAVED_INV_STD));
        WD_TRY(check_residual(graph, node, slots, TRAIN_Z));
        return check_reserve(graph, node, x, TRAIN_RESERVE);
    }
    WD_TRY(check_pair(graph, node, slots, GRAD_SAVED_MEAN, GRAD_SAVED_INV_STD));
    WD_TRY(check_residual(graph, node, slots, GRAD_DZ));
    return check_reserve(graph, node, x, GRAD_RESERVE);
}
