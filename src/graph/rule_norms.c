/* SPDX-License-Identifier: Apache-2.0
 *
 * What the backend's normalization nodes must be: x and what has its shape, statistics that say how
 * elements are grouped, a scale that spreads over x, and scalars by value; and the batch norm
 * statistics, which are one number a channel. */
#include "graph/norms.h"

static const char *const mode_names[] = {"LAYER_NORM", "INSTANCE_NORM", "BATCH_NORM",
                                         "GROUP_NORM", "RMS_NORM",      "ADA_LAYER_NORM"};
enum { MODES = sizeof mode_names / sizeof mode_names[0] };

/* Where a normalization has what; -1: it has none. */
struct norm_slots {
    int x, scale, bias, epsilon, mean, inv_std, peers;
};

static struct norm_slots slots_of(enum wd_op op)
{
    switch (op) {
    case WD_OP_NORM_INFERENCE:
        return (struct norm_slots){NORM_INFER_X,
                                   NORM_INFER_SCALE,
                                   NORM_INFER_BIAS,
                                   NORM_INFER_EPSILON,
                                   NORM_INFER_MEAN,
                                   NORM_INFER_INV_STD,
                                   -1};
    case WD_OP_NORM_TRAINING:
        return (struct norm_slots){NORM_TRAIN_X,       NORM_TRAIN_SCALE, NORM_TRAIN_BIAS,
                                   NORM_TRAIN_EPSILON, NORM_TRAIN_MEAN,  NORM_TRAIN_INV_STD,
                                   NORM_TRAIN_PEERS};
    default:
        return (struct norm_slots){NORM_GRAD_X,       NORM_GRAD_SCALE, -1,
                                   NORM_GRAD_EPSILON, NORM_GRAD_MEAN,  NORM_GRAD_INV_STD,
                                   NORM_GRAD_PEERS};
    }
}

int wd_norm_first_peer(enum wd_op op)
{
    if (op != WD_OP_NORM_TRAINING && op != WD_OP_NORM_BACKWARD) return -1;
    return slots_of(op).peers;
}

/* ---- The split ---- */

static bool is_layer(int mode)
{
    return mode == CUDNN_LAYER_NORM || mode == CUDNN_RMS_NORM || mode == CUDNN_ADA_LAYER_NORM;
}

static cudnnStatus_t split_by_statistics(const char *op, int mode, const struct wd_tensor *x,
                                         const struct wd_tensor *stats, const char *name,
                                         struct wd_norm_split *split)
{
    char its[160];
    WD_REQUIRE(stats->rank == x->rank, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: %s has %d dimensions, x has %d", op, name, stats->rank, x->rank);
    for (int d = 0; d < x->rank; ++d) {
        int64_t s = stats->dim[d];
        int64_t all = x->dim[d];
        bool groups = mode == CUDNN_GROUP_NORM && d == 1;
        bool whole = mode == CUDNN_BATCH_NORM      ? d == 1
                     : mode == CUDNN_INSTANCE_NORM ? d < 2
                                                   : d < 1;
        bool fits = groups           ? s > 0 && all % s == 0
                    : is_layer(mode) ? s == 1 || s == all
                                     : s == (whole ? all : 1);
        WD_REQUIRE(fits, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: dim[%d]=%lld of %s does not go with x (%s) in %s: %s", op, d, (long long)s,
                   name, wd_tensor_text(x, its, sizeof its), mode_names[mode],
                   groups           ? "it has to divide that of x"
                   : is_layer(mode) ? "it has to be 1 or that of x"
                   : whole          ? "it has to be that of x"
                                    : "it has to be 1");
        split->keep[d] = s;
        split->term[d] = s == all ? 1 : all / s;
    }
    return CUDNN_STATUS_SUCCESS;
}

static void split_by_scale(int mode, const struct wd_tensor *x, const struct wd_tensor *scale,
                           struct wd_norm_split *split)
{
    bool varies = false;
    int first = mode == CUDNN_ADA_LAYER_NORM ? 1 : 0;
    for (int d = first; d < x->rank; ++d) varies = varies || scale->dim[d] != 1;
    for (int d = 0; d < x->rank; ++d) {
        bool runs = varies ? d >= first && scale->dim[d] != 1 : d > 0;
        split->keep[d] = runs ? 1 : x->dim[d];
        split->term[d] = runs ? x->dim[d] : 1;
    }
}

cudnnStatus_t wd_norm_split(const struct wd_graph *graph, const struct wd_node *node,
                            struct wd_norm_split *split)
{
    const char *op = wd_op_info(node->op)->name;
    struct norm_slots slots = slots_of(node->op);
    int mode = node->attr.norms.mode;
    const struct wd_tensor *x = wd_slot(graph, node, slots.x);
    const struct wd_tensor *mean = wd_slot(graph, node, slots.mean);
    const struct wd_tensor *inv_std = wd_slot(graph, node, slots.inv_std);
    char its[160];
    if (mean || inv_std) {
        WD_TRY(split_by_statistics(op, mode, x, mean ? mean : inv_std, mean ? "mean" : "inv_std",
                                   split));
    } else {
        WD_REQUIRE(mode != CUDNN_GROUP_NORM, CUDNN_STATUS_BAD_PARAM,
                   "%s: GROUP_NORM has as many groups as dim 1 of the mean says, and neither mean "
                   "nor inv_std is given",
                   op);
        if (is_layer(mode)) split_by_scale(mode, x, wd_slot(graph, node, slots.scale), split);
        for (int d = 0; d < x->rank && !is_layer(mode); ++d) {
            bool whole = mode == CUDNN_BATCH_NORM ? d == 1 : d < 2;
            split->keep[d] = whole ? x->dim[d] : 1;
            split->term[d] = whole ? 1 : x->dim[d];
        }
    }
    for (int d = 0; d < x->rank; ++d) {
        WD_REQUIRE(split->term[d] > 0, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                   "%s: dim[%d] of x (%s) is 0; no elements have no mean", op, d,
                   wd_tensor_text(x, its, sizeof its));
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- The rule ---- */

static cudnnStatus_t check_type(const char *op, const struct wd_tensor *tensor, const char *name,
                                bool floating)
{
    WD_REQUIRE(wd_dtype_bits(tensor->dtype) >= 8 && tensor->dtype != CUDNN_DATA_COMPLEX_FP32 &&
                   tensor->dtype != CUDNN_DATA_COMPLEX_FP64 &&
                   !(floating && wd_dtype_is_integer(tensor->dtype)),
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "%s: tensor %s is %s", op, name,
               wd_dtype_name(tensor->dtype));
    WD_REQUIRE(tensor->reordering == CUDNN_TENSOR_REORDERING_NONE,
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "%s: tensor %s is reordered (mode %d)", op, name,
               tensor->reordering);
    WD_REQUIRE(!(tensor->flags & WD_OPAQUE), CUDNN_STATUS_BAD_PARAM, "%s: tensor %s is opaque", op,
               name);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_dims(const char *op, const struct wd_tensor *tensor, const char *name,
                                const struct wd_tensor *other, const char *other_name)
{
    char own[160];
    char its[160];
    WD_REQUIRE(wd_tensor_same_dims(tensor, other), CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: the dims of %s (%s) are not those of %s (%s)", op, name,
               wd_tensor_text(tensor, own, sizeof own), other_name,
               wd_tensor_text(other, its, sizeof its));
    return CUDNN_STATUS_SUCCESS;
}

/* One number a channel of x. */
static struct wd_tensor channels_of(const struct wd_tensor *x)
{
    struct wd_tensor channels = *x;
    for (int d = 0; d < x->rank; ++d) channels.dim[d] = d == 1 ? x->dim[d] : 1;
    return channels;
}

/* A tensor in memory of the shape of another; an absent one passes. */
static cudnnStatus_t check_like(const struct wd_graph *graph, const struct wd_node *node, int slot,
                                const struct wd_tensor *other, const char *other_name,
                                bool floating)
{
    const struct wd_tensor *tensor = wd_slot(graph, node, slot);
    const char *op = wd_op_info(node->op)->name;
    char name[24];
    if (!tensor) return CUDNN_STATUS_SUCCESS;
    wd_op_slot_name(node->op, slot, name);
    WD_TRY(check_type(op, tensor, name, floating));
    WD_REQUIRE(!(tensor->flags & WD_BY_VALUE), CUDNN_STATUS_BAD_PARAM,
               "%s: tensor %s is passed by value", op, name);
    return check_dims(op, tensor, name, other, other_name);
}

static cudnnStatus_t check_scalar(const struct wd_graph *graph, const struct wd_node *node,
                                  int slot)
{
    const struct wd_tensor *tensor = wd_slot(graph, node, slot);
    const char *op = wd_op_info(node->op)->name;
    char name[24];
    if (!tensor) return CUDNN_STATUS_SUCCESS;
    wd_op_slot_name(node->op, slot, name);
    WD_TRY(check_type(op, tensor, name, true));
    WD_REQUIRE(tensor->flags & WD_BY_VALUE, CUDNN_STATUS_BAD_PARAM,
               "%s: tensor %s is not passed by value", op, name);
    return CUDNN_STATUS_SUCCESS;
}

/* The scale, 1 or x's dim in each dimension. It is per feature in the layer norms: it does not vary
 * where the statistics do, but in ADA_LAYER_NORM over the samples. */
static cudnnStatus_t check_scale(const struct wd_graph *graph, const struct wd_node *node,
                                 const struct norm_slots *slots)
{
    const struct wd_tensor *x = wd_slot(graph, node, slots->x);
    const struct wd_tensor *scale = wd_slot(graph, node, slots->scale);
    const struct wd_tensor *bias = slots->bias < 0 ? NULL : wd_slot(graph, node, slots->bias);
    const char *op = wd_op_info(node->op)->name;
    char its[160];
    WD_TRY(check_type(op, scale, "scale", true));
    WD_REQUIRE(scale->rank == x->rank, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "%s: scale has %d dimensions, x has %d", op, scale->rank, x->rank);
    for (int d = 0; d < x->rank; ++d) {
        WD_REQUIRE(scale->dim[d] == 1 || scale->dim[d] == x->dim[d],
                   CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: dim[%d]=%lld of scale is neither 1 nor that of x (%s)", op, d,
                   (long long)scale->dim[d], wd_tensor_text(x, its, sizeof its));
    }
    if (!bias) return CUDNN_STATUS_SUCCESS;
    WD_TRY(check_type(op, bias, "bias", true));
    return check_dims(op, bias, "bias", scale, "scale");
}

static cudnnStatus_t check_features(const struct wd_graph *graph, const struct wd_node *node,
                                    const struct norm_slots *slots,
                                    const struct wd_norm_split *split)
{
    const struct wd_tensor *x = wd_slot(graph, node, slots->x);
    const struct wd_tensor *scale = wd_slot(graph, node, slots->scale);
    int mode = node->attr.norms.mode;
    char its[160];
    if (!is_layer(mode)) return CUDNN_STATUS_SUCCESS;
    for (int d = mode == CUDNN_ADA_LAYER_NORM ? 1 : 0; d < x->rank; ++d) {
        WD_REQUIRE(scale->dim[d] == 1 || split->keep[d] == 1, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "%s: dim[%d]=%lld of scale (%s) is not 1, though there is more than one mean "
                   "along it; %s scales features",
                   wd_op_info(node->op)->name, d, (long long)scale->dim[d],
                   wd_tensor_text(scale, its, sizeof its), mode_names[mode]);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_statistics(const struct wd_graph *graph, const struct wd_node *node,
                                      const struct norm_slots *slots)
{
    const struct wd_tensor *mean = wd_slot(graph, node, slots->mean);
    const struct wd_tensor *inv_std = wd_slot(graph, node, slots->inv_std);
    const char *op = wd_op_info(node->op)->name;
    int mode = node->attr.norms.mode;
    bool given = node->op != WD_OP_NORM_TRAINING;
    WD_REQUIRE(!mean || mode != CUDNN_RMS_NORM, CUDNN_STATUS_BAD_PARAM,
               "%s: a mean is given, but RMS_NORM has none", op);
    WD_REQUIRE(!mean || inv_std, CUDNN_STATUS_BAD_PARAM, "%s: mean is given without inv_std", op);
    WD_REQUIRE(!inv_std || mean || !given || mode == CUDNN_RMS_NORM, CUDNN_STATUS_BAD_PARAM,
               "%s: inv_std is given without mean", op);
    WD_REQUIRE(inv_std || node->op != WD_OP_NORM_INFERENCE || mode != CUDNN_BATCH_NORM,
               CUDNN_STATUS_BAD_PARAM,
               "%s: BATCH_NORM takes the mean and inv_std of training, and none is given", op);
    /* the other of the two is checked by the split */
    if (mean) {
        WD_TRY(check_like(graph, node, slots->mean, mean, "mean", true));
        return check_like(graph, node, slots->inv_std, mean, "mean", true);
    }
    if (inv_std) return check_like(graph, node, slots->inv_std, inv_std, "inv_std", true);
    return CUDNN_STATUS_SUCCESS;
}

/* Running averages belong to batch norm, and each needs what it is computed from. */
static cudnnStatus_t check_running(const struct wd_graph *graph, const struct wd_node *node)
{
    static const int slots[] = {NORM_TRAIN_FACTOR, NORM_TRAIN_IN_MEAN, NORM_TRAIN_IN_VAR,
                                NORM_TRAIN_OUT_MEAN, NORM_TRAIN_OUT_VAR};
    const struct wd_tensor *x = wd_slot(graph, node, NORM_TRAIN_X);
    const char *op = wd_op_info(node->op)->name;
    struct wd_tensor channels = channels_of(x);
    for (int i = 0; i < 5; ++i) {
        char name[24];
        if (!wd_slot(graph, node, slots[i])) continue;
        wd_op_slot_name(node->op, slots[i], name);
        WD_REQUIRE(node->attr.norms.mode == CUDNN_BATCH_NORM, CUDNN_STATUS_BAD_PARAM,
                   "%s: %s is given, but %s has no running averages", op, name,
                   mode_names[node->attr.norms.mode]);
        if (i > 0) WD_TRY(check_like(graph, node, slots[i], &channels, "a mean per channel", true));
    }
    for (int i = 0; i < 2; ++i) {
        bool writes = wd_slot(graph, node, NORM_TRAIN_OUT_MEAN + i) != NULL;
        WD_REQUIRE(!writes || wd_slot(graph, node, NORM_TRAIN_IN_MEAN + i), CUDNN_STATUS_BAD_PARAM,
                   "%s: out_%s is given without in_%s, of which it is the average", op,
                   i ? "var" : "mean", i ? "var" : "mean");
        WD_REQUIRE(!writes || wd_slot(graph, node, NORM_TRAIN_FACTOR), CUDNN_STATUS_BAD_PARAM,
                   "%s: out_%s is given without the factor of the average", op, i ? "var" : "mean");
    }
    return check_scalar(graph, node, NORM_TRAIN_FACTOR);
}

static cudnnStatus_t check_peers(const struct wd_graph *graph, const struct wd_node *node,
                                 int first)
{
    for (int i = 0; i < WD_NORM_PEERS_MAX; ++i) {
        WD_REQUIRE(!wd_slot(graph, node, first + i) || node->attr.norms.mode == CUDNN_BATCH_NORM,
                   CUDNN_STATUS_BAD_PARAM,
                   "%s: peer%d is given, but %s has no statistics of several devices",
                   wd_op_info(node->op)->name, i, mode_names[node->attr.norms.mode]);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_data(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_tensor *x = wd_slot(graph, node, 0);
    const char *op = wd_op_info(node->op)->name;
    bool backward = node->op == WD_OP_NORM_BACKWARD;
    WD_TRY(check_type(op, x, "x", backward));
    WD_REQUIRE(!(x->flags & WD_BY_VALUE), CUDNN_STATUS_BAD_PARAM, "%s: tensor x is passed by value",
               op);
    WD_REQUIRE(x->rank >= 2, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
               "%s: x has %d dimensions, at least 2 are needed", op, x->rank);
    if (!backward) {
        int y = node->op == WD_OP_NORM_INFERENCE ? (int)NORM_INFER_Y : (int)NORM_TRAIN_Y;
        return check_like(graph, node, y, x, "x", false);
    }
    WD_TRY(check_like(graph, node, NORM_GRAD_DY, x, "x", true));
    return check_like(graph, node, NORM_GRAD_DX, x, "x", true);
}

cudnnStatus_t wd_rule_norm(const struct wd_graph *graph, const struct wd_node *node)
{
    struct norm_slots slots = slots_of(node->op);
    const char *op = wd_op_info(node->op)->name;
    int mode = node->attr.norms.mode;
    struct wd_norm_split split;
    WD_REQUIRE(mode >= 0 && mode < MODES, CUDNN_STATUS_BAD_PARAM,
               "%s: mode=%d is no cudnnBackendNormMode_t", op, mode);
    WD_TRY(check_data(graph, node));
    WD_TRY(check_scale(graph, node, &slots));
    WD_TRY(check_statistics(graph, node, &slots));
    WD_TRY(wd_norm_split(graph, node, &split));
    WD_TRY(check_features(graph, node, &slots, &split));
    WD_TRY(check_scalar(graph, node, slots.epsilon));
    if (slots.peers >= 0) WD_TRY(check_peers(graph, node, slots.peers));
    if (node->op == WD_OP_NORM_TRAINING) WD_TRY(check_running(graph, node));
    if (node->op == WD_OP_NORM_BACKWARD) {
        const struct wd_tensor *scale = wd_slot(graph, node, NORM_GRAD_SCALE);
        WD_REQUIRE(wd_slot(graph, node, NORM_GRAD_INV_STD) || wd_slot(graph, node, slots.epsilon),
                   CUDNN_STATUS_BAD_PARAM,
                   "%s: neither the statistics of the forward pass nor epsilon is given", op);
        WD_TRY(check_like(graph, node, NORM_GRAD_DSCALE, scale, "scale", true));
        WD_TRY(check_like(graph, node, NORM_GRAD_DBIAS, scale, "scale", true));
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Batch norm statistics ---- */

bool wd_norm_computes_in(int dtype)
{
    return wd_dtype_bits(dtype) >= 16 && !wd_dtype_is_integer(dtype) &&
           dtype != CUDNN_DATA_COMPLEX_FP32 && dtype != CUDNN_DATA_COMPLEX_FP64;
}

static cudnnStatus_t check_compute(const struct wd_node *node)
{
    int compute = node->attr.norms.compute;
    WD_REQUIRE(wd_norm_computes_in(compute), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "%s: the math precision is %s, no floating type of 16 bits or more",
               wd_op_info(node->op)->name, wd_dtype_name(compute));
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_image(const struct wd_graph *graph, const struct wd_node *node,
                                 bool floating)
{
    const struct wd_tensor *x = wd_slot(graph, node, 0);
    const char *op = wd_op_info(node->op)->name;
    WD_TRY(check_type(op, x, "x", floating));
    WD_REQUIRE(!(x->flags & WD_BY_VALUE), CUDNN_STATUS_BAD_PARAM, "%s: tensor x is passed by value",
               op);
    WD_REQUIRE(x->rank >= 2, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
               "%s: x has %d dimensions, at least 2 are needed", op, x->rank);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_gen_stats(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_tensor *x = wd_slot(graph, node, GEN_STATS_X);
    struct wd_tensor channels = channels_of(x);
    WD_REQUIRE(node->attr.norms.mode == CUDNN_GENSTATS_SUM_SQSUM, CUDNN_STATUS_BAD_PARAM,
               "gen_stats: mode=%d is no cudnnGenStatsMode_t", node->attr.norms.mode);
    WD_TRY(check_compute(node));
    WD_TRY(check_image(graph, node, false));
    WD_TRY(check_like(graph, node, GEN_STATS_SUM, &channels, "a sum per channel", true));
    return check_like(graph, node, GEN_STATS_SQ_SUM, &channels, "a sum per channel", true);
}

static cudnnStatus_t check_given(const struct wd_graph *graph, const struct wd_node *node, int slot,
                                 const char *phase)
{
    char name[24];
    wd_op_slot_name(node->op, slot, name);
    WD_REQUIRE(wd_slot(graph, node, slot), CUDNN_STATUS_BAD_PARAM,
               "%s: %s is missing, which %s needs", wd_op_info(node->op)->name, name, phase);
    return CUDNN_STATUS_SUCCESS;
}

/* An operation of which nothing is wanted is a mistake. */
static cudnnStatus_t check_wanted(const struct wd_graph *graph, const struct wd_node *node,
                                  int first_output)
{
    const struct wd_op_info *info = wd_op_info(node->op);
    char first[24];
    for (int s = first_output; s < info->slot_count; ++s) {
        if (wd_slot(graph, node, s)) return CUDNN_STATUS_SUCCESS;
    }
    wd_op_slot_name(node->op, first_output, first);
    return wd_fail(CUDNN_STATUS_BAD_PARAM, "%s: no output is given, neither %s nor another",
                   info->name, first);
}

cudnnStatus_t wd_rule_bn_finalize(const struct wd_graph *graph, const struct wd_node *node)
{
    static const int training[] = {BN_FINALIZE_SUM, BN_FINALIZE_SQ_SUM, BN_FINALIZE_COUNT,
                                   BN_FINALIZE_FACTOR, BN_FINALIZE_EPSILON};
    static const int inference[] = {BN_FINALIZE_IN_MEAN, BN_FINALIZE_IN_VAR, BN_FINALIZE_EPSILON};
    const struct wd_op_info *info = wd_op_info(node->op);
    const struct wd_tensor *scale = wd_slot(graph, node, BN_FINALIZE_SCALE);
    bool trains = node->attr.norms.mode == CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
    WD_REQUIRE(trains || node->attr.norms.mode == CUDNN_BN_FINALIZE_STATISTICS_INFERENCE,
               CUDNN_STATUS_BAD_PARAM, "%s: mode=%d is no cudnnBnFinalizeStatsMode_t", info->name,
               node->attr.norms.mode);
    WD_TRY(check_compute(node));
    for (int i = 0; trains && i < 5; ++i) WD_TRY(check_given(graph, node, training[i], "training"));
    for (int i = 0; !trains && i < 3; ++i) {
        WD_TRY(check_given(graph, node, inference[i], "inference"));
    }
    WD_TRY(check_scalar(graph, node, BN_FINALIZE_EPSILON));
    if (trains) {
        const struct wd_tensor *count = wd_slot(graph, node, BN_FINALIZE_COUNT);
        WD_TRY(check_scalar(graph, node, BN_FINALIZE_FACTOR));
        WD_REQUIRE(count->dtype == CUDNN_DATA_INT64, CUDNN_STATUS_BAD_PARAM,
                   "%s: the count is %s, not int64", info->name, wd_dtype_name(count->dtype));
        WD_REQUIRE(count->flags & WD_BY_VALUE, CUDNN_STATUS_BAD_PARAM,
                   "%s: tensor count is not passed by value", info->name);
    }
    for (int s = 0; s < info->slot_count; ++s) {
        if (s == BN_FINALIZE_EPSILON || s == BN_FINALIZE_FACTOR || s == BN_FINALIZE_COUNT) continue;
        if (!trains && s <= BN_FINALIZE_SQ_SUM) continue; /* nobody reads them */
        WD_TRY(check_like(graph, node, s, scale, "scale", true));
    }
    for (int i = 0; i < 2; ++i) {
        WD_REQUIRE(!wd_slot(graph, node, BN_FINALIZE_OUT_MEAN + i) ||
                       wd_slot(graph, node, BN_FINALIZE_IN_MEAN + i),
                   CUDNN_STATUS_BAD_PARAM,
                   "%s: out_%s is given without in_%s, of which it is the average", info->name,
                   i ? "var" : "mean", i ? "var" : "mean");
    }
    return check_wanted(graph, node, BN_FINALIZE_OUT_MEAN);
}

cudnnStatus_t wd_rule_bn_weights(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_op_info *info = wd_op_info(node->op);
    const struct wd_tensor *x = wd_slot(graph, node, BN_WEIGHTS_X);
    struct wd_tensor channels = channels_of(x);
    WD_TRY(check_compute(node));
    WD_TRY(check_image(graph, node, true));
    for (int d = 0; d < x->rank; ++d) {
        char its[160];
        WD_REQUIRE(x->dim[d] > 0 || d == 1, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                   "%s: dim[%d] of x (%s) is 0; no elements have no mean", info->name, d,
                   wd_tensor_text(x, its, sizeof its));
    }
    WD_TRY(check_like(graph, node, BN_WEIGHTS_DY, x, "x", true));
    for (int s = BN_WEIGHTS_MEAN; s < info->slot_count; ++s) {
        WD_TRY(check_like(graph, node, s, &channels, "a number per channel", true));
    }
    return check_wanted(graph, node, BN_WEIGHTS_DSCALE);
}
