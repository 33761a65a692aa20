/* SPDX-License-Identifier: Apache-2.0
 *
 * The text form of graphs and of devices. Attributes are written and read by the rows of
 * attr_fields.def; a graph that was read goes through the same checks as one that was built. */
#include <string.h>

#include "base/alloc.h"
#include "graph/json.h"

enum { NODES_MAX = 4096, TENSORS_MAX = 32000, LIST_MAX = WD_MAX_RANK };

enum field_kind { INT32, INT64, REAL, UNUSED };

struct field {
    const char *name;
    enum field_kind kind;
    int count;
    size_t attr_offset; /* of the operation's attributes in the union */
    size_t attr_size;
    size_t offset; /* of the field in the union */
    size_t bytes;
};
static const struct field fields[] = {
#define WD_FIELD(member, field, kind, count)                                                       \
    {#field,                                                                                       \
     kind,                                                                                         \
     count,                                                                                        \
     offsetof(union wd_attr, member),                                                              \
     sizeof(((union wd_attr *)0)->member),                                                         \
     offsetof(union wd_attr, member.field),                                                        \
     sizeof(((union wd_attr *)0)->member.field)},
#include "graph/attr_fields.def"
#undef WD_FIELD
};
enum { FIELDS = sizeof fields / sizeof fields[0] };
#define WD_FIELD(member, field, kind, count)                                                       \
    _Static_assert((count) <= (int)LIST_MAX, #member "." #field " is longer than a list may be");
#include "graph/attr_fields.def"
#undef WD_FIELD

/* Which member of the union an operation uses; members all start at 0, so names tell them apart. */
static const char *const attr_member[] = {
#define WD_OPERATION(ENUM, name, slots, scalars, attr, rule) #attr,
#include "graph/operations.def"
#undef WD_OPERATION
};
static const char *const field_member[] = {
#define WD_FIELD(member, field, kind, count) #member,
#include "graph/attr_fields.def"
#undef WD_FIELD
};

static bool has_field(enum wd_op op, int f)
{
    return !strcmp(attr_member[op], field_member[f]);
}

size_t wd_attr_bytes_said(enum wd_op op)
{
    size_t bytes = 0;
    for (int f = 0; f < FIELDS; ++f)
        if (has_field(op, f)) bytes += fields[f].bytes;
    return bytes;
}

static void write_field(struct wd_text *text, const struct field *field, const union wd_attr *attr)
{
    const char *at = (const char *)attr + field->offset;
    int64_t list[LIST_MAX];
    int32_t word;
    double real;
    if (field->kind == REAL) {
        memcpy(&real, at, sizeof real);
        wd_text_real(text, real);
    } else if (field->kind == INT32) {
        memcpy(&word, at, sizeof word);
        wd_text_add(text, "%d", (int)word);
    } else {
        memcpy(list, at, sizeof list[0] * (size_t)field->count);
        if (field->count == 1) wd_text_add(text, "%lld", (long long)list[0]);
        else wd_text_ints(text, list, field->count);
    }
}

static void read_field(struct wd_reader *reader, const struct field *field, union wd_attr *attr)
{
    char *at = (char *)attr + field->offset;
    int64_t list[LIST_MAX] = {0};
    int32_t word;
    double real;
    if (field->kind == REAL) {
        real = wd_read_real(reader);
        memcpy(at, &real, sizeof real);
    } else if (field->kind == INT32) {
        word = (int32_t)wd_read_int(reader, INT32_MIN, INT32_MAX);
        memcpy(at, &word, sizeof word);
    } else {
        /* lists are paddings, strides, windows: what descriptors take as an int */
        if (field->count == 1) list[0] = wd_read_int(reader, INT64_MIN, INT64_MAX);
        else wd_read_ints(reader, list, field->count, INT32_MIN, INT32_MAX);
        memcpy(at, list, sizeof list[0] * (size_t)field->count);
    }
}

static void write_node(struct wd_text *text, const struct wd_node *node, const double *scalars)
{
    const struct wd_op_info *info = wd_op_info(node->op);
    int64_t slots[WD_MAX_SLOTS];
    bool first = true;
    for (int s = 0; s < info->slot_count; ++s) slots[s] = node->slot[s];
    wd_text_add(text, "{\"op\":\"%s\",\"slots\":", info->name);
    wd_text_ints(text, slots, info->slot_count);
    wd_text_add(text, ",\"scalars\":[");
    for (int i = 0; i < info->scalar_count; ++i) {
        if (i) wd_text_add(text, ",");
        wd_text_real(text, scalars[i]);
    }
    wd_text_add(text, "],\"attr\":{");
    for (int f = 0; f < FIELDS; ++f) {
        if (!has_field(node->op, f) || fields[f].kind == UNUSED) continue;
        wd_text_add(text, "%s\"%s\":", first ? "" : ",", fields[f].name);
        write_field(text, &fields[f], &node->attr);
        first = false;
    }
    wd_text_add(text, "}}");
}

static enum wd_op op_by_name(const char *name)
{
    for (int op = 0; op < WD_OP_COUNT; ++op)
        if (!strcmp(wd_op_info((enum wd_op)op)->name, name)) return (enum wd_op)op;
    return WD_OP_COUNT;
}

static void read_node(struct wd_reader *reader, struct wd_graph *graph, struct wd_node *node,
                      double *scalars)
{
    struct wd_node_builder builder = {graph, node, scalars, NULL, 0, NULL};
    const struct wd_op_info *info;
    char name[32];
    int64_t slots[WD_MAX_SLOTS];
    bool first = true;
    wd_read_token(reader, '{');
    wd_read_key(reader, "op");
    wd_read_string(reader, name, sizeof name);
    node->op = op_by_name(name);
    if (reader->failed || node->op == WD_OP_COUNT) {
        node->op = WD_OP_POINTWISE;
        reader->failed = true;
        if (!reader->wanted) reader->wanted = "an operation";
        return;
    }
    info = wd_op_info(node->op);
    wd_read_token(reader, ',');
    wd_read_key(reader, "slots");
    if (wd_read_ints(reader, slots, info->slot_count, -1, TENSORS_MAX) != info->slot_count &&
        !reader->failed) {
        reader->failed = true;
        reader->wanted = "as many slots as the operation has";
    }
    for (int s = 0; s < WD_MAX_SLOTS; ++s) {
        bool given = !reader->failed && s < info->slot_count;
        node->slot[s] = given && slots[s] >= 0 && slots[s] < TENSORS_MAX ? (int16_t)slots[s] : -1;
    }
    wd_read_token(reader, ',');
    wd_read_key(reader, "scalars");
    wd_read_token(reader, '[');
    for (int i = 0; i < info->scalar_count && !reader->failed; ++i) {
        if (i) wd_read_token(reader, ',');
        wd_node_scalar(&builder, i, wd_read_real(reader));
    }
    wd_read_token(reader, ']');
    wd_read_token(reader, ',');
    wd_read_key(reader, "attr");
    wd_read_token(reader, '{');
    for (int f = 0; f < FIELDS && !reader->failed; ++f) {
        if (!has_field(node->op, f) || fields[f].kind == UNUSED) continue;
        if (!first) wd_read_token(reader, ',');
        wd_read_key(reader, fields[f].name);
        read_field(reader, &fields[f], &node->attr);
        first = false;
    }
    wd_read_token(reader, '}');
    wd_read_token(reader, '}');
}

static void write_tensor(struct wd_text *text, const struct wd_tensor *tensor)
{
    wd_text_add(text,
                "{\"uid\":%lld,\"dtype\":%d,\"vect_count\":%d,\"vect_dim\":%d,\"reordering\":%d,"
                "\"flags\":%d,\"alignment\":%lld,\"dim\":",
                (long long)tensor->uid, tensor->dtype, tensor->vect_count, tensor->vect_dim,
                tensor->reordering, tensor->flags, (long long)tensor->alignment);
    wd_text_ints(text, tensor->dim, tensor->rank);
    wd_text_add(text, ",\"stride\":");
    wd_text_ints(text, tensor->stride, tensor->rank);
    wd_text_add(text, "}");
}

static int64_t member(struct wd_reader *reader, const char *name, int64_t low, int64_t high)
{
    int64_t value;
    wd_read_key(reader, name);
    value = wd_read_int(reader, low, high);
    wd_read_token(reader, ',');
    return value;
}

static void read_tensor(struct wd_reader *reader, struct wd_tensor *tensor)
{
    wd_read_token(reader, '{');
    tensor->uid = member(reader, "uid", INT64_MIN, INT64_MAX);
    tensor->dtype = (int32_t)member(reader, "dtype", 0, CUDNN_DATA_COMPLEX_FP64);
    tensor->vect_count = (int32_t)member(reader, "vect_count", 1, 32);
    tensor->vect_dim = (int32_t)member(reader, "vect_dim", 0, WD_MAX_RANK - 1);
    tensor->reordering = (int32_t)member(reader, "reordering", 0, CUDNN_TENSOR_REORDERING_F8_128x4);
    tensor->flags = (int32_t)member(reader, "flags", 0, WD_VIRTUAL | WD_BY_VALUE | WD_OPAQUE);
    tensor->alignment = member(reader, "alignment", 0, INT64_MAX);
    wd_read_key(reader, "dim");
    tensor->rank = wd_read_ints(reader, tensor->dim, WD_MAX_RANK, 0, INT64_MAX);
    wd_read_token(reader, ',');
    wd_read_key(reader, "stride");
    if (wd_read_ints(reader, tensor->stride, WD_MAX_RANK, 0, INT64_MAX) != tensor->rank &&
        !reader->failed) {
        reader->failed = true;
        reader->wanted = "as many strides as dimensions";
    }
    wd_read_token(reader, '}');
}

void wd_graph_write(struct wd_text *text, const struct wd_graph *graph, const double *scalars)
{
    wd_text_add(text, "{\"counts\":[%d,%d],\"nodes\":[", graph->node_count, graph->tensor_count);
    for (int n = 0; n < graph->node_count; ++n) {
        if (n) wd_text_add(text, ",");
        write_node(text, &graph->nodes[n], scalars);
        scalars += wd_op_info(graph->nodes[n].op)->scalar_count;
    }
    wd_text_add(text, "],\"tensors\":[");
    for (int t = 0; t < graph->tensor_count; ++t) {
        if (t) wd_text_add(text, ",");
        write_tensor(text, &graph->tensors[t]);
    }
    wd_text_add(text, "]}");
}

/* What a built graph has by construction, and a text must be asked for. `places` has room for a
 * tensor each. */
static cudnnStatus_t check_graph(const struct wd_graph *graph, struct wd_place *places)
{
    const struct wd_place *twin;
    for (int n = 0; n < graph->node_count; ++n) {
        const struct wd_node *node = &graph->nodes[n];
        for (int s = 0; s < WD_MAX_SLOTS; ++s) {
            WD_REQUIRE(node->slot[s] < graph->tensor_count, CUDNN_STATUS_BAD_PARAM,
                       "graph: operation %d refers to tensor %d of %d", n, (int)node->slot[s],
                       graph->tensor_count);
        }
    }
    for (int t = 0; t < graph->tensor_count; ++t) {
        const struct wd_tensor *tensor = &graph->tensors[t];
        WD_TRY(wd_tensor_check(tensor));
        WD_REQUIRE(!(tensor->flags & WD_OPAQUE), CUDNN_STATUS_BAD_PARAM,
                   "graph: tensor uid %lld is opaque", (long long)tensor->uid);
        WD_REQUIRE((tensor->flags & (WD_VIRTUAL | WD_BY_VALUE)) != (WD_VIRTUAL | WD_BY_VALUE),
                   CUDNN_STATUS_BAD_PARAM, "graph: tensor uid %lld is virtual and by value",
                   (long long)tensor->uid);
        WD_REQUIRE(!(tensor->flags & WD_BY_VALUE) || wd_tensor_count(tensor) == 1,
                   CUDNN_STATUS_BAD_PARAM,
                   "graph: tensor uid %lld is by value but has %lld elements, not 1",
                   (long long)tensor->uid, (long long)wd_tensor_count(tensor));
        places[t] = (struct wd_place){tensor->uid, t};
    }
    twin = wd_place_twin(places, graph->tensor_count);
    WD_REQUIRE(!twin, CUDNN_STATUS_BAD_PARAM,
               "graph: two tensors (%lld and %lld) have unique id %lld", (long long)twin[0].at,
               (long long)twin[1].at, (long long)twin[0].uid);
    return wd_graph_validate(graph);
}

cudnnStatus_t wd_graph_read(struct wd_reader *reader, struct wd_opgraph **result)
{
    struct wd_graph graph = {0};
    double *scalars = NULL;
    struct wd_place *places = NULL;
    int64_t counts[2] = {0};
    int used = 0;
    cudnnStatus_t status;
    wd_read_token(reader, '{');
    wd_read_key(reader, "counts");
    if (wd_read_ints(reader, counts, 2, 0, INT32_MAX) != 2 || counts[0] < 1 ||
        counts[0] > NODES_MAX || counts[1] < 1 || counts[1] > TENSORS_MAX) {
        if (!reader->failed) reader->wanted = "counts of operations and tensors";
        reader->failed = true;
    }
    WD_TRY(wd_reader_status(reader, "graph"));
    graph.node_count = (int)counts[0];
    graph.tensor_count = (int)counts[1];
    graph.nodes = wd_alloc(sizeof *graph.nodes * (size_t)counts[0]);
    graph.tensors = wd_alloc(sizeof *graph.tensors * (size_t)counts[1]);
    scalars = wd_alloc(sizeof *scalars * WD_MAX_SCALARS * (size_t)counts[0]);
    places = wd_alloc(sizeof *places * (size_t)counts[1]);
    if (!graph.nodes || !graph.tensors || !scalars || !places) {
        status = wd_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                         "no host memory for a graph of %d operations", graph.node_count);
        goto done;
    }
    wd_read_token(reader, ',');
    wd_read_key(reader, "nodes");
    wd_read_token(reader, '[');
    for (int n = 0; n < graph.node_count && !reader->failed; ++n) {
        if (n) wd_read_token(reader, ',');
        read_node(reader, &graph, &graph.nodes[n], scalars + used);
        used += wd_op_info(graph.nodes[n].op)->scalar_count;
    }
    wd_read_token(reader, ']');
    wd_read_token(reader, ',');
    wd_read_key(reader, "tensors");
    wd_read_token(reader, '[');
    for (int t = 0; t < graph.tensor_count && !reader->failed; ++t) {
        if (t) wd_read_token(reader, ',');
        read_tensor(reader, &graph.tensors[t]);
    }
    wd_read_token(reader, ']');
    wd_read_token(reader, '}');
    status = wd_reader_status(reader, "graph");
    if (status == CUDNN_STATUS_SUCCESS) status = check_graph(&graph, places);
    if (status == CUDNN_STATUS_SUCCESS) status = wd_opgraph_copy(&graph, scalars, result);
done:
    wd_free(graph.nodes);
    wd_free(graph.tensors);
    wd_free(scalars);
    wd_free(places);
    return status;
}

void wd_device_write(struct wd_text *text, const struct wd_device *device)
{
    wd_text_add(text,
                "{\"kind\":\"%s\",\"ordinal\":%d,\"capability\":%d,\"multiprocessors\":%d,"
                "\"shared_per_block\":%lld,\"shared_per_processor\":%lld,\"l2_bytes\":%lld,"
                "\"memory_bytes\":%lld,\"cooperative\":%d,\"grids_meet\":%d}",
                device->kind == WD_CPU ? "cpu" : "gpu", device->ordinal, device->capability,
                device->multiprocessors, (long long)device->shared_per_block,
                (long long)device->shared_per_processor, (long long)device->l2_bytes,
                (long long)device->memory_bytes, device->cooperative ? 1 : 0,
                device->grids_meet ? 1 : 0);
}

void wd_device_read(struct wd_reader *reader, struct wd_device *device)
{
    char kind[8];
    wd_read_token(reader, '{');
    wd_read_key(reader, "kind");
    wd_read_string(reader, kind, sizeof kind);
    if (!reader->failed && strcmp(kind, "cpu") != 0 && strcmp(kind, "gpu") != 0) {
        reader->failed = true;
        reader->wanted = "\"cpu\" or \"gpu\"";
    }
    device->kind = strcmp(kind, "gpu") ? WD_CPU : WD_GPU;
    wd_read_token(reader, ',');
    device->ordinal = (int)member(reader, "ordinal", -1, 65535);
    device->capability = (int)member(reader, "capability", 0, 10000);
    device->multiprocessors = (int)member(reader, "multiprocessors", 1, 65536);
    device->shared_per_block = member(reader, "shared_per_block", 0, INT64_MAX);
    device->shared_per_processor = member(reader, "shared_per_processor", 0, INT64_MAX);
    device->l2_bytes = member(reader, "l2_bytes", 0, INT64_MAX);
    device->memory_bytes = member(reader, "memory_bytes", 0, INT64_MAX);
    wd_read_key(reader, "cooperative");
    device->cooperative = wd_read_int(reader, 0, 1) == 1;
    device->grids_meet = device->cooperative; /* in texts that do not say it */
    if (wd_read_if(reader, ',')) {
        wd_read_key(reader, "grids_meet");
        device->grids_meet = wd_read_int(reader, 0, 1) == 1;
    }
    wd_read_token(reader, '}');
}
