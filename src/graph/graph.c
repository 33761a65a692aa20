/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: the table of operations, single-node builders, validation, the key and copies. Pure
 * functions on the caller's memory; the table is built once. */
#include "graph/graph.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static struct wd_op_info infos[WD_OP_COUNT] = {
#define WD_OPERATION(ENUM, NAME, SLOTS, SCALARS, ATTR, RULE)                                       \
    {.name = #NAME,                                                                                \
     .slots = SLOTS,                                                                               \
     .scalars = SCALARS,                                                                           \
     .attr_offset = offsetof(union wd_attr, ATTR),                                                 \
     .attr_size = sizeof(((union wd_attr *)0)->ATTR),                                              \
     .rule = RULE},
#include "graph/operations.def"
#undef WD_OPERATION
};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int count_words(const char *text)
{
    int words = 0;
    for (const char *p = text; *p; ++p) words += *p != ' ' && (p == text || p[-1] == ' ');
    return words;
}

static void build_table(void)
{
    for (int op = 0; op < WD_OP_COUNT; ++op) {
        struct wd_op_info *info = &infos[op];
        int slot = 0;
        bool reads = true;
        bool writes = false;
        info->slot_count = count_words(info->slots);
        info->scalar_count = count_words(info->scalars);
        for (const char *p = info->slots; *p; ++p) {
            if (*p == '?') info->optional |= 1u << slot;
            if (*p == '>') reads = false, writes = true;
            if (*p == '+') writes = true;
            if (p[1] != ' ' && p[1] != '\0') continue;
            if (reads) info->inputs |= 1u << slot;
            if (writes) info->outputs |= 1u << slot;
            slot += *p != ' ';
            reads = true, writes = false;
        }
    }
}

const struct wd_op_info *wd_op_info(enum wd_op op)
{
    pthread_once(&once, build_table);
    return &infos[op];
}

void wd_op_slot_name(enum wd_op op, int slot, char *name)
{
    const char *p = wd_op_info(op)->slots;
    int length = 0;
    for (; slot > 0; --slot) p = strchr(p, ' ') + 1;
    while (strchr("?>+", *p)) ++p;
    while (p[length] && p[length] != ' ' && length < 23) ++length;
    memcpy(name, p, (size_t)length);
    name[length] = '\0';
}

void wd_single_init(struct wd_single *single, enum wd_op op)
{
    memset(&single->node, 0, sizeof single->node);
    memset(single->scalars, 0, sizeof single->scalars);
    memset(single->desc, 0, sizeof single->desc);
    single->attr_desc = NULL;
    single->workspace = single->workspace_size = NULL;
    single->node.op = op;
    for (int i = 0; i < WD_MAX_SLOTS; ++i) single->node.slot[i] = -1;
    single->graph.nodes = &single->node;
    single->graph.tensors = single->tensors;
    single->graph.node_count = 1;
    single->graph.tensor_count = 0;
    single->graph.engine = 0;
}

void wd_single_bind(struct wd_single *single, int slot, const struct wd_tensor *tensor,
                    const void *data, const char *name)
{
    int index = single->graph.tensor_count;
    if (!tensor) return;
    single->tensors[index] = *tensor;
    single->data[index] = (void *)(uintptr_t)data;
    single->name[index] = name;
    single->node.slot[slot] = (int16_t)index;
    single->graph.tensor_count = index + 1;
}

void wd_single_scalar(struct wd_single *single, int index, double value)
{
    single->scalars[index] = value;
    single->node.scalar_class[index] = value == 0.0   ? WD_SCALAR_ZERO
                                       : value == 1.0 ? WD_SCALAR_ONE
                                                      : WD_SCALAR_OTHER;
}

static bool same_name(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Whether a refusal speaks of the slot, as a word of its own. */
static bool mentions(const char *text, const char *slot)
{
    size_t length = strlen(slot);
    for (const char *at = strstr(text, slot); at; at = strstr(at + 1, slot)) {
        bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (begins && !(isalnum((unsigned char)at[length]) || at[length] == '_')) return true;
    }
    return false;
}

/* "x is srcDesc, w and b are paramDesc" of all slots, or of those only that the refusal speaks of; more
 * than `size` where it does not fit. */
static size_t list_slots(enum wd_op op, const char *const *names, bool all, char *text, size_t size)
{
    const struct wd_op_info *info = wd_op_info(op);
    size_t length = 0;
    for (int s = 0; s < info->slot_count && length < size; ++s) {
        bool told = !names[s];
        bool many = false;
        for (int t = 0; t < s; ++t) told |= same_name(names[t], names[s]);
        for (int t = s; t < info->slot_count && !told && length < size; ++t) {
            char slot[24];
            const char *before = many || t > s ? " and " : length ? ", " : "";
            if (!same_name(names[t], names[s])) continue;
            wd_op_slot_name(op, t, slot);
            if (!all && !mentions(wd_last_error(), slot)) {
                told = t == s;
                continue;
            }
            many |= t > s;
            length += (size_t)snprintf(text + length, size - length, "%s%s", before, slot);
        }
        if (told || length >= size) continue;
        length +=
            (size_t)snprintf(text + length, size - length, " %s %s", many ? "are" : "is", names[s]);
    }
    return length;
}

cudnnStatus_t wd_name_slots(enum wd_op op, const char *const *names, const char *attr,
                            cudnnStatus_t status)
{
    enum { CATEGORY = 1000 };
    char text[512];
    size_t length;
    int category = (int)status / CATEGORY * CATEGORY;
    if (category != CUDNN_STATUS_BAD_PARAM && category != CUDNN_STATUS_NOT_SUPPORTED) return status;
    text[0] = '\0';
    length = list_slots(op, names, true, text, sizeof text);
    if (length >= sizeof text) {
        text[0] = '\0';
        length = list_slots(op, names, false, text, sizeof text);
    }
    if (attr && length < sizeof text) {
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%sthe parameters are those of %s", length ? "; " : "", attr);
    }
    return length ? wd_fail(status, "%s (%s)", wd_last_error(), text) : status;
}

bool wd_pointer_serves(const struct wd_tensor *tensor, const void *data)
{
    /* a power of two, or 0 where several elements are in a byte */
    uintptr_t align = tensor->flags & WD_OPAQUE ? 1 : (uintptr_t)wd_dtype_bits(tensor->dtype) / 8;
    if (data && (align == 0 || ((uintptr_t)data & (align - 1)) == 0)) return true;
    return wd_tensor_extent(tensor) == 0;
}

cudnnStatus_t wd_pointer_validate(const struct wd_tensor *tensor, const void *data,
                                  const char *name)
{
    if (wd_pointer_serves(tensor, data)) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(data, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null", name);
    return wd_fail(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                   "%s %p is not aligned to its %s elements", name, data,
                   wd_dtype_name(tensor->dtype));
}

/* What is written twice has no value that could be told. */
static cudnnStatus_t check_outputs(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_op_info *info = wd_op_info(node->op);
    for (int s = 0; s < info->slot_count; ++s) {
        const struct wd_tensor *tensor = wd_slot(graph, node, s);
        char name[24];
        char text[160];
        if (!tensor || !(info->outputs >> s & 1u) || (tensor->flags & WD_OPAQUE)) continue;
        if (!wd_tensor_overlaps_itself(tensor)) continue;
        wd_op_slot_name(node->op, s, name);
        return wd_fail(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
                       "%s: elements of the output %s (%s) lie in one place", info->name, name,
                       wd_tensor_text(tensor, text, sizeof text));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_node_validate(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_op_info *info = wd_op_info(node->op);
    char name[24];
    for (int i = 0; i < info->slot_count; ++i) {
        int index = node->slot[i];
        if (index >= 0 || (info->optional >> i & 1u)) continue;
        wd_op_slot_name(node->op, i, name);
        return wd_fail(CUDNN_STATUS_BAD_PARAM, "%s: tensor %s is missing", info->name, name);
    }
    WD_TRY(info->rule(graph, node));
    return check_outputs(graph, node);
}

/* In the order of the nodes: a virtual tensor is written before it is read, and nothing is written
 * twice. writer[t] is the node that wrote tensor t so far, -1 for none. */
static cudnnStatus_t validate_order(const struct wd_graph *graph, int *writer)
{
    for (int t = 0; t < graph->tensor_count; ++t) writer[t] = -1;
    for (int n = 0; n < graph->node_count; ++n) {
        const struct wd_node *node = &graph->nodes[n];
        const struct wd_op_info *info = wd_op_info(node->op);
        for (int s = 0; s < info->slot_count; ++s) {
            int t = node->slot[s];
            if (t < 0 || !(info->inputs >> s & 1u)) continue;
            WD_REQUIRE(!(graph->tensors[t].flags & WD_VIRTUAL) || writer[t] >= 0,
                       CUDNN_STATUS_BAD_PARAM,
                       "virtual tensor uid %lld is read but written by none before",
                       (long long)graph->tensors[t].uid);
        }
        for (int s = 0; s < info->slot_count; ++s) {
            int t = node->slot[s];
            if (t < 0 || !(info->outputs >> s & 1u)) continue;
            WD_REQUIRE(writer[t] < 0, CUDNN_STATUS_BAD_PARAM,
                       "tensor uid %lld is written by two operations (%d and %d)",
                       (long long)graph->tensors[t].uid, writer[t], n);
            writer[t] = n;
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_graph_validate(const struct wd_graph *graph)
{
    int local[WD_MAX_SLOTS];
    int *writer = local;
    cudnnStatus_t status;
    for (int n = 0; n < graph->node_count; ++n) {
        WD_TRY(wd_node_validate(graph, &graph->nodes[n]));
    }
    if (graph->tensor_count > WD_MAX_SLOTS) {
        writer = wd_alloc(sizeof *writer * (size_t)graph->tensor_count);
        WD_REQUIRE(writer != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no host memory to check a graph of %d tensors", graph->tensor_count);
    }
    status = validate_order(graph, writer);
    if (writer != local) wd_free(writer);
    return status;
}

struct key_writer {
    unsigned char *at;
    size_t room;
    size_t length;
};

static void put(struct key_writer *writer, const void *data, size_t bytes)
{
    if (writer->length + bytes <= writer->room) {
        memcpy(writer->at + writer->length, data, bytes);
    }
    writer->length += bytes;
}

/* What follows lies on words: one that is read across two writes waits for both to reach the cache. */
static void fill_word(struct key_writer *writer)
{
    static const uint64_t zero;
    put(writer, &zero, -writer->length % sizeof zero);
}

enum { PROPERTIES = offsetof(struct wd_tensor, dim) - offsetof(struct wd_tensor, dtype) };

static bool alike(const struct wd_tensor *a, const struct wd_tensor *b)
{
    int64_t differ = 0;
    if (memcmp(&a->dtype, &b->dtype, PROPERTIES) != 0) return false;
    for (int d = 0; d < a->rank; ++d) {
        differ |= (a->dim[d] ^ b->dim[d]) | (a->stride[d] ^ b->stride[d]);
    }
    return differ == 0;
}

/* A tensor's properties, then its dims and strides, by words: of a few dimensions a call for each list takes
 * longer than what it copies. */
static void put_tensor(struct key_writer *writer, const struct wd_tensor *tensor)
{
    size_t bytes = PROPERTIES + 2 * sizeof tensor->dim[0] * (size_t)tensor->rank;
    unsigned char *at;
    writer->length += bytes;
    if (writer->length > writer->room) return;
    at = writer->at + writer->length - bytes;
    memcpy(at, &tensor->dtype, PROPERTIES);
    at += PROPERTIES;
    for (int d = 0; d < tensor->rank; ++d) {
        memcpy(at, &tensor->dim[d], sizeof tensor->dim[d]);
        memcpy(at + sizeof tensor->dim[d], &tensor->stride[d], sizeof tensor->stride[d]);
        at += sizeof tensor->dim[d] + sizeof tensor->stride[d];
    }
}

/* Most tensors are like the first one (data) or the one before that was not (parameters): a word says so, which
 * no tensor begins with, since no type is negative. */
static void put_tensors(struct key_writer *writer, const struct wd_graph *graph)
{
    static const int64_t like_first = -1, like_last = -2;
    const struct wd_tensor *last = graph->tensors;
    for (int t = 0; t < graph->tensor_count; ++t) {
        const struct wd_tensor *tensor = &graph->tensors[t];
        if (t > 0 && alike(tensor, graph->tensors)) {
            put(writer, &like_first, sizeof like_first);
        } else if (t > 0 && alike(tensor, last)) {
            put(writer, &like_last, sizeof like_last);
        } else {
            put_tensor(writer, tensor);
            last = tensor;
        }
    }
}

size_t wd_graph_key(const struct wd_graph *graph, void *key, size_t size)
{
    struct key_writer writer = {key, size, 0};
    int32_t head[4] = {graph->node_count, graph->tensor_count, graph->engine, 0};
    put(&writer, head, sizeof head);
    for (int n = 0; n < graph->node_count; ++n) {
        const struct wd_node *node = &graph->nodes[n];
        const struct wd_op_info *info = wd_op_info(node->op);
        int32_t op = (int32_t)node->op;
        put(&writer, &op, sizeof op);
        put(&writer, node->slot, sizeof node->slot[0] * (size_t)info->slot_count);
        put(&writer, node->scalar_class, (size_t)info->scalar_count);
        put(&writer, (const char *)&node->attr + info->attr_offset, info->attr_size);
        fill_word(&writer);
    }
    put_tensors(&writer, graph);
    return writer.length;
}

struct wd_graph *wd_graph_copy(const struct wd_graph *graph)
{
    size_t nodes = sizeof *graph->nodes * (size_t)graph->node_count;
    size_t tensors = sizeof *graph->tensors * (size_t)graph->tensor_count;
    struct wd_graph *copy = wd_alloc(sizeof *copy + nodes + tensors);
    if (!copy) return NULL;
    *copy = *graph;
    copy->tensors = (struct wd_tensor *)(copy + 1);
    copy->nodes = (struct wd_node *)((char *)copy->tensors + tensors);
    memcpy(copy->tensors, graph->tensors, tensors);
    memcpy(copy->nodes, graph->nodes, nodes);
    return copy;
}
