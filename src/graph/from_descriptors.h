/* SPDX-License-Identifier: Apache-2.0
 *
 * From backend descriptors to graphs: a node function an operation (named by descriptors.def) says
 * its descriptor as a node and binds its tensors; the builder collects tensors by uid and sorts the
 * nodes. The result is immutable and shared by everything that refers to the operation graph. */
#ifndef WD_GRAPH_FROM_DESCRIPTORS_H
#define WD_GRAPH_FROM_DESCRIPTORS_H

#include "graph/descriptor.h"
#include "graph/graph.h"

/* What finalize makes of an OPERATIONGRAPH descriptor; one block of memory. */
struct wd_opgraph {
    struct wd_built base;
    struct wd_graph graph; /* valid, nodes in an order in which producers come first */
    double *scalars;       /* the run-time scalars of all nodes, as wd_bindings takes them */
    int scalar_count;
};

/* Where a unique id stands. */
struct wd_place {
    int64_t uid;
    int64_t at;
};
/* Sorts the list; the first two neighbours of one id, in the order in which they stood, or null. */
const struct wd_place *wd_place_twin(struct wd_place *list, int64_t count);

/* Builds and validates the graph of a descriptor's operations. The caller releases its base. */
cudnnStatus_t wd_opgraph_build(const struct wd_desc *desc, struct wd_opgraph **result);

/* A copy of a valid graph with its scalars, as a plan that is restored from a text needs it. */
cudnnStatus_t wd_opgraph_copy(const struct wd_graph *graph, const double *scalars,
                              struct wd_opgraph **result);
int wd_graph_scalar_count(const struct wd_graph *graph);

/* A TENSOR descriptor as a tensor; the values of a finalized one make a valid tensor. */
cudnnStatus_t wd_tensor_from(const struct wd_desc *desc, struct wd_tensor *tensor);
/* The rules that every tensor of a graph keeps: rank, dims, strides, sizes that do not overflow. */
cudnnStatus_t wd_tensor_check(const struct wd_tensor *tensor);

/* Checks one operation on its own, before it is part of a graph; operations that are not
 * implemented yet pass. */
cudnnStatus_t wd_operation_check(const struct wd_desc *op);

/* What a node function gets. */
struct wd_node_builder {
    struct wd_graph *graph; /* grows: nodes and tensors have room for all */
    struct wd_node *node;   /* zeroed, slots absent */
    double *scalars;        /* of this node, zeroed */
    int *table;             /* index + 1 of a tensor by the hash of its uid */
    int table_mask;
    const char **names; /* the attribute of each slot, filled in for refusals; or null */
};
cudnnStatus_t wd_node_bind(struct wd_node_builder *builder, int slot, const struct wd_desc *op,
                           int attribute);
/* The same of one element of an attribute that has many. */
cudnnStatus_t wd_node_bind_element(struct wd_node_builder *builder, int slot,
                                   const struct wd_desc *op, int attribute, int64_t element);
void wd_node_scalar(struct wd_node_builder *builder, int index, double value);

typedef cudnnStatus_t (*wd_node_function)(const struct wd_desc *op,
                                          struct wd_node_builder *builder);
#define WD_NODE_FUNCTION(function)                                                                 \
    cudnnStatus_t function(const struct wd_desc *op, struct wd_node_builder *builder);
WD_NODE_FUNCTION(wd_node_pointwise)
WD_NODE_FUNCTION(wd_node_conv_fprop)
WD_NODE_FUNCTION(wd_node_conv_dgrad)
WD_NODE_FUNCTION(wd_node_conv_wgrad)
WD_NODE_FUNCTION(wd_node_matmul)
WD_NODE_FUNCTION(wd_node_reduction)
WD_NODE_FUNCTION(wd_node_concat)
WD_NODE_FUNCTION(wd_node_reshape)
WD_NODE_FUNCTION(wd_node_rng)
WD_NODE_FUNCTION(wd_node_resample_forward)
WD_NODE_FUNCTION(wd_node_resample_backward)
WD_NODE_FUNCTION(wd_node_norm_forward)
WD_NODE_FUNCTION(wd_node_norm_backward)
WD_NODE_FUNCTION(wd_node_gen_stats)
WD_NODE_FUNCTION(wd_node_bn_finalize)
WD_NODE_FUNCTION(wd_node_bn_weights)
#undef WD_NODE_FUNCTION

#endif
