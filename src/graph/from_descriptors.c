/* SPDX-License-Identifier: Apache-2.0
 *
 * Operation graphs: every operation becomes a node, tensors meet by uid, nodes are sorted so that
 * producers come first, and the whole is validated. Pure functions of the descriptors. */
#include "graph/from_descriptors.h"

#include <string.h>

#include "base/alloc.h"

enum { OPERATIONS_MAX = 4096, NODE_TABLE = 64 };
_Static_assert((int)NODE_TABLE >= 2 * (int)WD_MAX_SLOTS && (NODE_TABLE & (NODE_TABLE - 1)) == 0,
               "the table of one node's tensors is a power of two, and never more than half full");

static const wd_node_function node_functions[] = {
#define WD_DESCRIPTOR(name, text, check, node) node,
#include "graph/descriptors.def"
#undef WD_DESCRIPTOR
};

static void destroy_opgraph(struct wd_built *built)
{
    wd_free(built);
}

int wd_graph_scalar_count(const struct wd_graph *graph)
{
    int count = 0;
    for (int n = 0; n < graph->node_count; ++n) {
        count += wd_op_info(graph->nodes[n].op)->scalar_count;
    }
    return count;
}

/* One block: the head, tensors, scalars, nodes. */
static struct wd_opgraph *allocate(int nodes, int tensors)
{
    size_t tensor_bytes = sizeof(struct wd_tensor) * (size_t)tensors;
    size_t scalar_bytes = sizeof(double) * WD_MAX_SCALARS * (size_t)nodes;
    size_t node_bytes = sizeof(struct wd_node) * (size_t)nodes;
    struct wd_opgraph *made = wd_alloc(sizeof *made + tensor_bytes + scalar_bytes + node_bytes);
    if (!made) return NULL;
    atomic_init(&made->base.references, 1);
    made->base.destroy = destroy_opgraph;
    made->graph.tensors = (struct wd_tensor *)(void *)(made + 1);
    made->scalars = (double *)(void *)((char *)made->graph.tensors + tensor_bytes);
    made->graph.nodes = (struct wd_node *)(void *)((char *)made->scalars + scalar_bytes);
    return made;
}

cudnnStatus_t wd_opgraph_copy(const struct wd_graph *graph, const double *scalars,
                              struct wd_opgraph **result)
{
    struct wd_opgraph *copy = allocate(graph->node_count, graph->tensor_count);
    WD_REQUIRE(copy != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no host memory for a graph of %d operations", graph->node_count);
    memcpy(copy->graph.nodes, graph->nodes, sizeof *graph->nodes * (size_t)graph->node_count);
    memcpy(copy->graph.tensors, graph->tensors,
           sizeof *graph->tensors * (size_t)graph->tensor_count);
    copy->graph.node_count = graph->node_count;
    copy->graph.tensor_count = graph->tensor_count;
    copy->graph.engine = graph->engine;
    copy->scalar_count = wd_graph_scalar_count(graph);
    memcpy(copy->scalars, scalars, sizeof *scalars * (size_t)copy->scalar_count);
    *result = copy;
    return CUDNN_STATUS_SUCCESS;
}

void wd_node_scalar(struct wd_node_builder *builder, int index, double value)
{
    builder->scalars[index] = value;
    builder->node->scalar_class[index] = value == 0.0   ? WD_SCALAR_ZERO
                                         : value == 1.0 ? WD_SCALAR_ONE
                                                        : WD_SCALAR_OTHER;
}

/* The index of a tensor with this uid, which is added where it is new. */
static cudnnStatus_t intern(struct wd_node_builder *builder, const struct wd_tensor *tensor,
                            int16_t *index)
{
    struct wd_graph *graph = builder->graph;
    uint64_t at = (uint64_t)tensor->uid * 0x9e3779b97f4a7c15u >> 20;
    for (;; ++at) {
        int *entry = &builder->table[at & (uint64_t)builder->table_mask];
        if (*entry == 0) {
            graph->tensors[graph->tensor_count] = *tensor;
            *entry = ++graph->tensor_count;
        }
        if (graph->tensors[*entry - 1].uid != tensor->uid) continue;
        if (memcmp(&graph->tensors[*entry - 1], tensor, sizeof *tensor) != 0) {
            char one[160], other[160];
            return wd_fail(CUDNN_STATUS_BAD_PARAM,
                           "two tensors have unique id %lld but differ: %s and %s",
                           (long long)tensor->uid,
                           wd_tensor_text(&graph->tensors[*entry - 1], one, sizeof one),
                           wd_tensor_text(tensor, other, sizeof other));
        }
        *index = (int16_t)(*entry - 1);
        return CUDNN_STATUS_SUCCESS;
    }
}

static cudnnStatus_t bind(struct wd_node_builder *builder, int slot, const struct wd_desc *op,
                          int attribute, const struct wd_desc *desc)
{
    struct wd_tensor tensor;
    if (builder->names) builder->names[slot] = wd_attribute(attribute)->name;
    if (!desc) return CUDNN_STATUS_SUCCESS;
    memset(&tensor, 0, sizeof tensor);
    WD_TRY(wd_tensor_from(desc, &tensor));
    WD_REQUIRE(!wd_desc_has(desc, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC),
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "%s: ragged tensors (uid %lld) are not implemented yet", wd_desc_text(op->type),
               (long long)tensor.uid);
    return intern(builder, &tensor, &builder->node->slot[slot]);
}

cudnnStatus_t wd_node_bind(struct wd_node_builder *builder, int slot, const struct wd_desc *op,
                           int attribute)
{
    return bind(builder, slot, op, attribute, wd_desc_ref(op, attribute));
}

cudnnStatus_t wd_node_bind_element(struct wd_node_builder *builder, int slot,
                                   const struct wd_desc *op, int attribute, int64_t element)
{
    const struct wd_value *value = wd_desc_value(op, attribute);
    return bind(builder, slot, op, attribute, value->cells[element].ref);
}

/* How many tensors the operations refer to, each counted as often as it is referred to. */
static int64_t count_references(const struct wd_value *ops)
{
    int64_t references = 0;
    for (int64_t n = 0; n < ops->count; ++n) {
        const struct wd_desc *op = ops->cells[n].ref;
        int count;
        wd_desc_attributes(op->type, &count);
        for (int i = 0; i < count; ++i) {
            if (op->values[i].type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
                references += op->values[i].count;
            }
        }
    }
    return references;
}

/* The attribute of an operation that holds its parameters, or null. */
static const char *parameters_of(const struct wd_desc *op)
{
    int count;
    const struct wd_attribute *rows = wd_desc_attributes(op->type, &count);
    for (int i = 0; i < count; ++i) {
        if (rows[i].refers >= 0 && rows[i].refers != CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
            return rows[i].name;
        }
    }
    return NULL;
}

cudnnStatus_t wd_operation_check(const struct wd_desc *op)
{
    struct wd_tensor tensors[WD_MAX_SLOTS];
    double scalars[WD_MAX_SCALARS] = {0};
    int table[NODE_TABLE] = {0};
    struct wd_node node = {0};
    struct wd_graph graph = {.nodes = &node, .tensors = tensors, .node_count = 1};
    const char *names[WD_MAX_SLOTS] = {NULL};
    struct wd_node_builder builder = {&graph, &node, scalars, table, NODE_TABLE - 1, names};
    if (!node_functions[op->type]) return CUDNN_STATUS_SUCCESS;
    for (int s = 0; s < WD_MAX_SLOTS; ++s) node.slot[s] = -1;
    WD_TRY(node_functions[op->type](op, &builder));
    return wd_name_slots(node.op, names, parameters_of(op), wd_node_validate(&graph, &node));
}

static cudnnStatus_t add_nodes(const struct wd_value *ops, struct wd_opgraph *made, int *table,
                               int table_mask)
{
    struct wd_node_builder builder = {&made->graph, NULL, NULL, table, table_mask, NULL};
    for (int64_t n = 0; n < ops->count; ++n) {
        const struct wd_desc *op = ops->cells[n].ref;
        wd_node_function function = node_functions[op->type];
        WD_REQUIRE(function != NULL, CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
                   "%s is not implemented yet", wd_desc_text(op->type));
        builder.node = &made->graph.nodes[n];
        builder.scalars = made->scalars + WD_MAX_SCALARS * n;
        for (int s = 0; s < WD_MAX_SLOTS; ++s) builder.node->slot[s] = -1;
        WD_TRY(function(op, &builder));
        made->graph.node_count += 1;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* What sorting needs beside the graphs. */
struct sorting {
    const struct wd_graph *graph;
    int *writer;  /* by tensor: the node that writes it, or -1 */
    int *waiting; /* the nodes under way, each waiting for the next: a path, so all different */
    unsigned char *state; /* by node: how many slots have been looked at, or PLACED */
};
enum { PLACED = 255 };
_Static_assert((int)WD_MAX_SLOTS < (int)PLACED, "a node's slots are counted beside PLACED");

/* The producer of what a node reads next that has not been placed yet, or -1. */
static int next_producer(struct sorting *sorting, int n)
{
    const struct wd_node *node = &sorting->graph->nodes[n];
    const struct wd_op_info *info = wd_op_info(node->op);
    while (sorting->state[n] < info->slot_count) {
        int slot = sorting->state[n]++;
        int producer;
        if (node->slot[slot] < 0 || !(info->inputs >> slot & 1u)) continue;
        producer = sorting->writer[node->slot[slot]];
        if (producer >= 0 && producer != n && sorting->state[producer] != PLACED) return producer;
    }
    return -1;
}

static void place(const struct wd_opgraph *made, struct wd_opgraph *sorted, int n)
{
    int scalars = wd_op_info(made->graph.nodes[n].op)->scalar_count;
    sorted->graph.nodes[sorted->graph.node_count++] = made->graph.nodes[n];
    memcpy(sorted->scalars + sorted->scalar_count, made->scalars + WD_MAX_SCALARS * n,
           sizeof(double) * (size_t)scalars);
    sorted->scalar_count += scalars;
}

/* Sorts nodes so that producers come first: the caller's order, but before each node what it waits
 * for. Every slot is looked at once, so this is linear. Scalars are packed in the new order. */
static cudnnStatus_t sort_nodes(const struct wd_opgraph *made, struct wd_opgraph *sorted,
                                struct sorting *sorting)
{
    const struct wd_graph *graph = &made->graph;
    sorting->graph = graph;
    for (int t = 0; t < graph->tensor_count; ++t) sorting->writer[t] = -1;
    for (int n = 0; n < graph->node_count; ++n) {
        const struct wd_op_info *info = wd_op_info(graph->nodes[n].op);
        for (int s = 0; s < info->slot_count; ++s) {
            int tensor = graph->nodes[n].slot[s];
            if (tensor >= 0 && (info->outputs >> s & 1u)) sorting->writer[tensor] = n;
        }
    }
    for (int n = 0; n < graph->node_count; ++n) {
        int depth = 0;
        if (sorting->state[n] == PLACED) continue;
        sorting->waiting[depth++] = n;
        while (depth > 0) {
            int top = sorting->waiting[depth - 1];
            int producer = next_producer(sorting, top);
            if (producer < 0) {
                place(made, sorted, top);
                sorting->state[top] = PLACED;
                depth -= 1;
                continue;
            }
            /* a producer that has been begun is on the path itself: nodes leave it placed */
            WD_REQUIRE(sorting->state[producer] == 0, CUDNN_STATUS_BAD_PARAM,
                       "the operations wait for each other in a circle");
            sorting->waiting[depth++] = producer;
        }
    }
    memcpy(sorted->graph.tensors, graph->tensors,
           sizeof *graph->tensors * (size_t)graph->tensor_count);
    sorted->graph.tensor_count = graph->tensor_count;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_opgraph_build(const struct wd_desc *desc, struct wd_opgraph **result)
{
    const struct wd_value *ops = wd_desc_value(desc, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    int64_t counted = count_references(ops);
    int references;
    int entries = 8;
    int nodes;
    struct wd_opgraph *made = NULL;
    struct wd_opgraph *sorted = NULL;
    int *table = NULL;
    struct sorting sorting = {0};
    cudnnStatus_t status;
    WD_REQUIRE(ops->count >= 1 && ops->count <= OPERATIONS_MAX, CUDNN_STATUS_NOT_SUPPORTED,
               "CUDNN_ATTR_OPERATIONGRAPH_OPS: %lld operations are not in 1..%d",
               (long long)ops->count, OPERATIONS_MAX);
    WD_REQUIRE(
        counted < INT16_MAX, CUDNN_STATUS_NOT_SUPPORTED,
        "CUDNN_ATTR_OPERATIONGRAPH_OPS: the operations refer to tensors %lld times, more than %d",
        (long long)counted, INT16_MAX - 1);
    nodes = (int)ops->count;
    references = (int)counted;
    while (entries < 2 * references) entries *= 2;
    made = allocate(nodes, references);
    sorted = allocate(nodes, references);
    table = wd_alloc(sizeof *table * (size_t)entries);
    sorting.writer = wd_alloc(sizeof *sorting.writer * (size_t)(references + 1));
    sorting.waiting = wd_alloc(sizeof *sorting.waiting * (size_t)nodes);
    sorting.state = wd_alloc((size_t)nodes);
    if (!made || !sorted || !table || !sorting.writer || !sorting.waiting || !sorting.state) {
        status = wd_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                         "no host memory for a graph of %d operations", nodes);
        goto done;
    }
    status = add_nodes(ops, made, table, entries - 1);
    if (status == CUDNN_STATUS_SUCCESS) status = sort_nodes(made, sorted, &sorting);
    if (status == CUDNN_STATUS_SUCCESS) status = wd_graph_validate(&sorted->graph);
    if (status != CUDNN_STATUS_SUCCESS) goto done;
    *result = sorted;
    sorted = NULL;
done:
    if (status != CUDNN_STATUS_SUCCESS) {
        status = wd_fail(status, "CUDNN_ATTR_OPERATIONGRAPH_OPS: %s", wd_last_error());
    }
    wd_free(made);
    wd_free(sorted);
    wd_free(table);
    wd_free(sorting.writer);
    wd_free(sorting.waiting);
    wd_free(sorting.state);
    return status;
}
