/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about the backend's normalizations and batch norm statistics, for their rules, the node
 * functions and the engines alike: the slots in the order of operations.def, and over which elements
 * a normalization's statistics run. */
#ifndef WD_GRAPH_NORMS_H
#define WD_GRAPH_NORMS_H

#include "graph/graph.h"

enum { WD_NORM_PEERS_MAX = 8 };

enum {
    NORM_INFER_X,
    NORM_INFER_SCALE,
    NORM_INFER_BIAS,
    NORM_INFER_EPSILON,
    NORM_INFER_MEAN,
    NORM_INFER_INV_STD,
    NORM_INFER_Y
};
enum {
    NORM_TRAIN_X,
    NORM_TRAIN_SCALE,
    NORM_TRAIN_BIAS,
    NORM_TRAIN_EPSILON,
    NORM_TRAIN_FACTOR,
    NORM_TRAIN_IN_MEAN,
    NORM_TRAIN_IN_VAR,
    NORM_TRAIN_PEERS,
    NORM_TRAIN_Y = NORM_TRAIN_PEERS + WD_NORM_PEERS_MAX,
    NORM_TRAIN_MEAN,
    NORM_TRAIN_INV_STD,
    NORM_TRAIN_OUT_MEAN,
    NORM_TRAIN_OUT_VAR
};
enum {
    NORM_GRAD_X,
    NORM_GRAD_DY,
    NORM_GRAD_SCALE,
    NORM_GRAD_EPSILON,
    NORM_GRAD_MEAN,
    NORM_GRAD_INV_STD,
    NORM_GRAD_PEERS,
    NORM_GRAD_DX = NORM_GRAD_PEERS + WD_NORM_PEERS_MAX,
    NORM_GRAD_DSCALE,
    NORM_GRAD_DBIAS
};
enum { GEN_STATS_X, GEN_STATS_SUM, GEN_STATS_SQ_SUM };
enum {
    BN_FINALIZE_SUM,
    BN_FINALIZE_SQ_SUM,
    BN_FINALIZE_SCALE,
    BN_FINALIZE_BIAS,
    BN_FINALIZE_IN_MEAN,
    BN_FINALIZE_IN_VAR,
    BN_FINALIZE_EPSILON,
    BN_FINALIZE_FACTOR,
    BN_FINALIZE_COUNT,
    BN_FINALIZE_OUT_MEAN,
    BN_FINALIZE_OUT_VAR,
    BN_FINALIZE_MEAN,
    BN_FINALIZE_INV_STD,
    BN_FINALIZE_EQ_SCALE,
    BN_FINALIZE_EQ_BIAS
};
enum {
    BN_WEIGHTS_X,
    BN_WEIGHTS_DY,
    BN_WEIGHTS_MEAN,
    BN_WEIGHTS_INV_STD,
    BN_WEIGHTS_SCALE,
    BN_WEIGHTS_DSCALE,
    BN_WEIGHTS_DBIAS,
    BN_WEIGHTS_EQ_DY_SCALE,
    BN_WEIGHTS_EQ_X_SCALE,
    BN_WEIGHTS_EQ_BIAS
};

/* How an axis of x is split: `keep` statistics along it, each over `term` neighbours; their product
 * is the dim of x. */
struct wd_norm_split {
    int64_t keep[WD_MAX_RANK];
    int64_t term[WD_MAX_RANK];
};

/* Whether batch norm statistics can be asked for in this precision; fp32 is the least that is used. */
bool wd_norm_computes_in(int dtype);

/* The first of a normalization's peer slots, or -1 where the operation has none. */
int wd_norm_first_peer(enum wd_op op);

/* The split of a normalization node, or why it has none. Statistics say it where they are given, by
 * their dims: group norm's number of groups is dim 1 of them. Else batch and instance norm have theirs
 * by definition, and the layer norms run over the dimensions in which the scale varies, or over all
 * but the first where it does not vary at all. */
cudnnStatus_t wd_norm_split(const struct wd_graph *graph, const struct wd_node *node,
                            struct wd_norm_split *split);

#endif
