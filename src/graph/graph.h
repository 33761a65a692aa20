/* SPDX-License-Identifier: Apache-2.0
 *
 * What to compute: tensors and operations, with no thought of a device. A legacy call builds a graph
 * of one node on its stack (struct wd_single); the backend builds one of many nodes. Validation says
 * what is wrong with a graph; the key is its canonical form for the plan cache. */
#ifndef WD_GRAPH_GRAPH_H
#define WD_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/view.h"
#include "graph/attr.h"

enum wd_op {
#define WD_OPERATION(ENUM, name, slots, scalars, attr, rule) WD_OP_##ENUM,
#include "graph/operations.def"
#undef WD_OPERATION
    WD_OP_COUNT
};

enum { WD_MAX_SLOTS = 32 };

enum wd_tensor_flag {
    WD_VIRTUAL = 1,  /* lives between two nodes of one graph only */
    WD_BY_VALUE = 2, /* its one element comes from host memory at execution */
    WD_OPAQUE =
        4, /* bytes whose layout is ours: reserve space, dropout state; dim[0] counts them */
};

struct wd_tensor {
    int64_t uid;   /* the backend's; 0 in legacy graphs */
    int32_t dtype; /* cudnnDataType_t of one lane */
    int32_t rank;
    int32_t vect_count; /* at least 1 */
    int32_t vect_dim;
    int32_t reordering;          /* cudnnBackendTensorReordering_t */
    int32_t flags;               /* enum wd_tensor_flag */
    int64_t alignment;           /* bytes that the caller promises; 0: of the element */
    int64_t dim[WD_MAX_RANK];    /* logical: a vectorised dimension counts lanes */
    int64_t stride[WD_MAX_RANK]; /* in units of vect_count lanes */
};

enum wd_scalar_class { WD_SCALAR_ZERO = 0, WD_SCALAR_ONE = 1, WD_SCALAR_OTHER = 2 };

struct wd_node {
    enum wd_op op;
    int16_t slot[WD_MAX_SLOTS];           /* index into the graph's tensors, -1: absent */
    uint8_t scalar_class[WD_MAX_SCALARS]; /* enum wd_scalar_class */
    union wd_attr attr;
};

struct wd_graph {
    struct wd_node *nodes; /* in an order in which producers come first */
    struct wd_tensor *tensors;
    int node_count;
    int tensor_count;
    int engine; /* an engine asked for by its id; 0: the best */
};

/* A graph of one node, for the stack. wd_single_init leaves the tensors alone but zeroes the rest. */
struct wd_single {
    struct wd_graph graph;
    struct wd_node node;
    struct wd_tensor tensors[WD_MAX_SLOTS];
    void *data[WD_MAX_SLOTS];       /* by tensor, for the execution */
    const char *name[WD_MAX_SLOTS]; /* likewise: what the caller calls the pointer, or null */
    double scalars[WD_MAX_SCALARS]; /* likewise */
    /* for refusals, what the caller calls the descriptors: by slot, or null; and of the attributes */
    const char *desc[WD_MAX_SLOTS];
    const char *attr_desc;
    const char *workspace;      /* and the caller's scratch, or null where it has none */
    const char *workspace_size; /* likewise */
};
void wd_single_init(struct wd_single *single, enum wd_op op);
/* Puts a tensor and its pointer into a slot; a null tensor leaves the slot absent. `name` (kept; may
 * be null: the slot's own serves) is that of the caller's argument, for refusals of the pointer. */
void wd_single_bind(struct wd_single *single, int slot, const struct wd_tensor *tensor,
                    const void *data, const char *name);
void wd_single_scalar(struct wd_single *single, int index, double value);

/* The table of operations. */
struct wd_op_info {
    const char *name;
    const char *slots;
    const char *scalars;
    size_t attr_offset;
    size_t attr_size;
    int slot_count;
    int scalar_count;
    uint32_t outputs;  /* slots written, as a mask */
    uint32_t inputs;   /* slots read */
    uint32_t optional; /* slots that may be absent */
    cudnnStatus_t (*rule)(const struct wd_graph *graph, const struct wd_node *node);
};
const struct wd_op_info *wd_op_info(enum wd_op op);
/* Name of a slot into `name` (of at least 24 bytes). */
void wd_op_slot_name(enum wd_op op, int slot, char *name);

/* The tensor in a slot, or null. */
static inline const struct wd_tensor *wd_slot(const struct wd_graph *graph,
                                              const struct wd_node *node, int slot)
{
    return node->slot[slot] < 0 ? NULL : &graph->tensors[node->slot[slot]];
}

/* Adds to the text of a refusal by a rule, which speaks of slots, what the caller calls them: "(x is
 * srcDesc, w is filterDesc; the parameters are those of convDesc)". `names` by slot, null where there
 * is none; `attr` may be null. Failures of other kinds stay as they are. */
cudnnStatus_t wd_name_slots(enum wd_op op, const char *const *names, const char *attr,
                            cudnnStatus_t status);

/* One node by itself: the presence of its slots, and its rule. */
cudnnStatus_t wd_node_validate(const struct wd_graph *graph, const struct wd_node *node);

/* Whether a pointer will do for a tensor: null only where that has no elements, and aligned to them;
 * and failing where it will not. `name` says whose it is. */
bool wd_pointer_serves(const struct wd_tensor *tensor, const void *data);
cudnnStatus_t wd_pointer_validate(const struct wd_tensor *tensor, const void *data,
                                  const char *name);

/* Every node, and their order: what is virtual is written before it is read. */
cudnnStatus_t wd_graph_validate(const struct wd_graph *graph);

/* Writes the canonical form into `key` (at most `size` bytes) and returns its length, also where it
 * did not fit. Equal keys mean that one plan serves both graphs. uids take no part in it. */
size_t wd_graph_key(const struct wd_graph *graph, void *key, size_t size);

/* A copy on the heap in one block (wd_free), or null. */
struct wd_graph *wd_graph_copy(const struct wd_graph *graph);

/* Tensors: facts that rules and engines share. */
int64_t wd_tensor_count(const struct wd_tensor *tensor);  /* elements */
int64_t wd_tensor_extent(const struct wd_tensor *tensor); /* bytes from first to last element */
bool wd_tensor_same_dims(const struct wd_tensor *a, const struct wd_tensor *b);
bool wd_tensor_same_layout(const struct wd_tensor *a, const struct wd_tensor *b);
/* Whether elements lie without gaps or overlap, in any order of dimensions. */
bool wd_tensor_is_packed(const struct wd_tensor *tensor);
/* Whether two elements certainly lie in one place. A layout that takes too long to tell passes; every
 * layout of nested strides, padded or not, is told at once. */
bool wd_tensor_overlaps_itself(const struct wd_tensor *tensor);
/* The dimensions of more than one element by falling stride, into `order`; returns how many. */
int wd_tensor_order(const struct wd_tensor *tensor, int order[WD_MAX_RANK]);
/* "fp32[8,3,32,32] strides [3072,1024,32,1]" into `text`. */
const char *wd_tensor_text(const struct wd_tensor *tensor, char *text, size_t size);
const char *wd_dtype_name(int dtype);

/* Strides of dims without gaps, last dimension fastest; and with channels (dim 1) fastest. */
void wd_strides_nchw(const int64_t *dim, int rank, int64_t *stride);
void wd_strides_nhwc(const int64_t *dim, int rank, int64_t *stride);
/* Whether elements lie without gaps in the order of dims, or with channels (dim 1) fastest. */
bool wd_tensor_is_nchw(const struct wd_tensor *tensor);
bool wd_tensor_is_nhwc(const struct wd_tensor *tensor);

#define WD_OPERATION(ENUM, name, slots, scalars, attr, rule)                                       \
    cudnnStatus_t rule(const struct wd_graph *graph, const struct wd_node *node);
#include "graph/operations.def"
#undef WD_OPERATION

#endif
