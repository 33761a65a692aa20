/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend's normalizations and batch norm statistics as nodes. Which operation a norm forward
 * means is said by its phase, for the statistics are read in one and written in the other. */
#include "graph/from_descriptors.h"
#include "graph/norms.h"

struct slot_name {
    int slot;
    int attribute;
};
#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static cudnnStatus_t bind_all(struct wd_node_builder *builder, const struct wd_desc *op,
                              const struct slot_name *list, int count)
{
    for (int i = 0; i < count; ++i) {
        WD_TRY(wd_node_bind(builder, list[i].slot, op, list[i].attribute));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t bind_peers(struct wd_node_builder *builder, const struct wd_desc *op,
                                int attribute)
{
    int64_t peers = wd_desc_has(op, attribute) ? wd_desc_value(op, attribute)->count : 0;
    int first = wd_norm_first_peer(builder->node->op);
    WD_REQUIRE(peers <= WD_NORM_PEERS_MAX, CUDNN_STATUS_NOT_SUPPORTED,
               "%s: %s has %lld tensors, at most %d are supported", wd_desc_text(op->type),
               wd_attribute(attribute)->name, (long long)peers, (int)WD_NORM_PEERS_MAX);
    for (int64_t i = 0; i < peers; ++i) {
        WD_TRY(wd_node_bind_element(builder, first + (int)i, op, attribute, i));
    }
    return CUDNN_STATUS_SUCCESS;
}

/* What only training can mean. */
static cudnnStatus_t refuse_in_inference(const struct wd_desc *op)
{
    static const int training[] = {
        CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC,
        CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
        CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
        CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
        CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC,
    };
    for (int i = 0; i < COUNT(training); ++i) {
        WD_REQUIRE(!wd_desc_has(op, training[i]), CUDNN_STATUS_BAD_PARAM,
                   "%s: %s is set, but running averages belong to training, and "
                   "CUDNN_ATTR_OPERATION_NORM_FWD_PHASE is CUDNN_NORM_FWD_INFERENCE",
                   wd_desc_text(op->type), wd_attribute(training[i])->name);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_node_norm_forward(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const struct slot_name inference[] = {
        {NORM_INFER_X, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC},
        {NORM_INFER_SCALE, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC},
        {NORM_INFER_BIAS, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC},
        {NORM_INFER_EPSILON, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC},
        {NORM_INFER_MEAN, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC},
        {NORM_INFER_INV_STD, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC},
        {NORM_INFER_Y, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC},
    };
    static const struct slot_name training[] = {
        {NORM_TRAIN_X, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC},
        {NORM_TRAIN_SCALE, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC},
        {NORM_TRAIN_BIAS, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC},
        {NORM_TRAIN_EPSILON, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC},
        {NORM_TRAIN_FACTOR, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC},
        {NORM_TRAIN_IN_MEAN, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC},
        {NORM_TRAIN_IN_VAR, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC},
        {NORM_TRAIN_Y, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC},
        {NORM_TRAIN_MEAN, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC},
        {NORM_TRAIN_INV_STD, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC},
        {NORM_TRAIN_OUT_MEAN, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC},
        {NORM_TRAIN_OUT_VAR, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC},
    };
    static const int peers = CUDNN_ATTR_OPERATION_NORM_FWD_PEER_STAT_DESCS;
    int64_t mode = wd_desc_int(op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE);
    int64_t phase = wd_desc_int(op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE);
    builder->node->attr.norms.mode = (int32_t)mode;
    builder->node->attr.norms.compute = CUDNN_DATA_FLOAT;
    if (phase == CUDNN_NORM_FWD_TRAINING) {
        builder->node->op = WD_OP_NORM_TRAINING;
        WD_TRY(bind_all(builder, op, training, COUNT(training)));
        return bind_peers(builder, op, peers);
    }
    builder->node->op = WD_OP_NORM_INFERENCE;
    WD_TRY(refuse_in_inference(op));
    /* with nothing to gather, the buffers of peers are left alone */
    WD_REQUIRE(!wd_desc_has(op, peers) || mode == CUDNN_BATCH_NORM, CUDNN_STATUS_BAD_PARAM,
               "%s: %s is set, but only CUDNN_BATCH_NORM has statistics of several devices",
               wd_desc_text(op->type), wd_attribute(peers)->name);
    return bind_all(builder, op, inference, COUNT(inference));
}

cudnnStatus_t wd_node_norm_backward(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const struct slot_name slots[] = {
        {NORM_GRAD_X, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC},
        {NORM_GRAD_DY, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC},
        {NORM_GRAD_SCALE, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC},
        {NORM_GRAD_EPSILON, CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC},
        {NORM_GRAD_MEAN, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC},
        {NORM_GRAD_INV_STD, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC},
        {NORM_GRAD_DX, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC},
        {NORM_GRAD_DSCALE, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC},
        {NORM_GRAD_DBIAS, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC},
    };
    builder->node->op = WD_OP_NORM_BACKWARD;
    builder->node->attr.norms.mode = (int32_t)wd_desc_int(op, CUDNN_ATTR_OPERATION_NORM_BWD_MODE);
    builder->node->attr.norms.compute = CUDNN_DATA_FLOAT;
    WD_TRY(bind_all(builder, op, slots, COUNT(slots)));
    return bind_peers(builder, op, CUDNN_ATTR_OPERATION_NORM_BWD_PEER_STAT_DESCS);
}

static cudnnStatus_t read_compute(struct wd_node_builder *builder, const struct wd_desc *op,
                                  int attribute)
{
    int compute = (int)wd_desc_int(op, attribute);
    WD_REQUIRE(wd_norm_computes_in(compute), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: %s is %s, no floating type of 16 bits or more", wd_desc_text(op->type),
               wd_attribute(attribute)->name, wd_dtype_name(compute));
    builder->node->attr.norms.compute = (int32_t)compute;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_node_gen_stats(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const struct slot_name slots[] = {
        {GEN_STATS_X, CUDNN_ATTR_OPERATION_GENSTATS_XDESC},
        {GEN_STATS_SUM, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC},
        {GEN_STATS_SQ_SUM, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC},
    };
    struct wd_norms_attr *attr = &builder->node->attr.norms;
    builder->node->op = WD_OP_GEN_STATS;
    attr->mode = (int32_t)wd_desc_int(op, CUDNN_ATTR_OPERATION_GENSTATS_MODE);
    WD_TRY(read_compute(builder, op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC));
    return bind_all(builder, op, slots, COUNT(slots));
}

cudnnStatus_t wd_node_bn_finalize(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const struct slot_name slots[] = {
        {BN_FINALIZE_SUM, CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC},
        {BN_FINALIZE_SQ_SUM, CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC},
        {BN_FINALIZE_SCALE, CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC},
        {BN_FINALIZE_BIAS, CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC},
        {BN_FINALIZE_IN_MEAN, CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC},
        {BN_FINALIZE_IN_VAR, CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC},
        {BN_FINALIZE_EPSILON, CUDNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC},
        {BN_FINALIZE_FACTOR, CUDNN_ATTR_OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC},
        {BN_FINALIZE_COUNT, CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC},
        {BN_FINALIZE_OUT_MEAN, CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC},
        {BN_FINALIZE_OUT_VAR, CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC},
        {BN_FINALIZE_MEAN, CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC},
        {BN_FINALIZE_INV_STD, CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC},
        {BN_FINALIZE_EQ_SCALE, CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC},
        {BN_FINALIZE_EQ_BIAS, CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC},
    };
    struct wd_norms_attr *attr = &builder->node->attr.norms;
    builder->node->op = WD_OP_BN_FINALIZE;
    attr->mode = (int32_t)wd_desc_int(op, CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE);
    WD_TRY(read_compute(builder, op, CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC));
    return bind_all(builder, op, slots, COUNT(slots));
}

cudnnStatus_t wd_node_bn_weights(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const struct slot_name slots[] = {
        {BN_WEIGHTS_X, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC},
        {BN_WEIGHTS_DY, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC},
        {BN_WEIGHTS_MEAN, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC},
        {BN_WEIGHTS_INV_STD, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC},
        {BN_WEIGHTS_SCALE, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC},
        {BN_WEIGHTS_DSCALE, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC},
        {BN_WEIGHTS_DBIAS, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC},
        {BN_WEIGHTS_EQ_DY_SCALE, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC},
        {BN_WEIGHTS_EQ_X_SCALE, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC},
        {BN_WEIGHTS_EQ_BIAS, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS},
    };
    builder->node->op = WD_OP_BN_BWD_WEIGHTS;
    WD_TRY(read_compute(builder, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC));
    return bind_all(builder, op, slots, COUNT(slots));
}
