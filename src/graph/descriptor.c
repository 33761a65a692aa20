/* SPDX-License-Identifier: Apache-2.0
 *
 * Backend descriptors: the tables made from the .def files, life and death, copies, finalize, and
 * reading from inside the library. What callers set and get goes through descriptor_value.c. */
#include "graph/descriptor.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/from_descriptors.h"

enum { ATTRIBUTE_LIMIT = 4096 };

#define T(name) (1u << CUDNN_TYPE_##name)
#define REAL_TYPES (T(FLOAT) | T(DOUBLE))
#define I(value) true, false, 0.0, (value)
#define D(value) true, true, (value), 0
#define NONE false, false, 0.0, 0
#define MANY INT32_MAX
#define CUDNN_BACKEND_NOTHING_DESCRIPTOR WD_REFERS_NOTHING
#define CUDNN_BACKEND_OPERATION_DESCRIPTOR WD_REFERS_OPERATION
/* `fallback` stands for four members, as I, D and NONE spell them */
#define WD_ATTRIBUTE_ROW(desc, what, mask, low, high, kind, refs, given, is_real, real_value,      \
                         whole)                                                                    \
    {.name = "CUDNN_ATTR_" #what,                                                                  \
     .attribute = CUDNN_ATTR_##what,                                                               \
     .descriptor = CUDNN_BACKEND_##desc##_DESCRIPTOR,                                              \
     .refers = CUDNN_BACKEND_##refs##_DESCRIPTOR,                                                  \
     .types = (mask),                                                                              \
     .least = (low),                                                                               \
     .most = (high),                                                                               \
     .rule = WD_ATTR_##kind,                                                                       \
     .real = ((mask)&REAL_TYPES) != 0,                                                             \
     .has_default = (given),                                                                       \
     .default_is_real = (is_real),                                                                 \
     .default_real = (real_value),                                                                 \
     .default_integer = (whole)},
#define WD_ATTRIBUTE_OF(...) WD_ATTRIBUTE_ROW(__VA_ARGS__)
#define WD_ATTRIBUTE(desc, what, mask, low, high, kind, fallback, refs)                            \
    WD_ATTRIBUTE_OF(desc, what, mask, low, high, kind, refs, fallback)
static struct wd_attribute attributes[] = {
#include "graph/attributes.def"
};
#undef WD_ATTRIBUTE
#undef I
#undef D
enum { ATTRIBUTES = sizeof attributes / sizeof attributes[0] };

struct type_info {
    const char *name;
    const char *text;
    cudnnStatus_t (*check)(struct wd_desc *desc);
    size_t bytes; /* of a descriptor, filled in once */
    int first;    /* row of attributes, filled in once */
    int count;
};
static struct type_info types[] = {
#define WD_DESCRIPTOR(name, text, check, node)                                                     \
    {"CUDNN_BACKEND_" #name "_DESCRIPTOR", text, check, 0, 0, 0},
#include "graph/descriptors.def"
#undef WD_DESCRIPTOR
};
_Static_assert(sizeof types / sizeof types[0] == WD_DESC_TYPES, "a row for every descriptor type");

static int16_t row_of[ATTRIBUTE_LIMIT]; /* row + 1 by attribute */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void build_tables(void)
{
    for (int row = 0; row < ATTRIBUTES; ++row) {
        struct wd_attribute *attribute = &attributes[row];
        struct type_info *type = &types[attribute->descriptor];
        int inside = attribute->most < WD_DESC_INLINE ? attribute->most : WD_DESC_INLINE;
        if (attribute->types & T(CHAR)) inside = 0;
        if (attribute->types & T(FRACTION)) inside *= 2;
        if (type->count == 0) type->first = row;
        attribute->slot = type->count++;
        attribute->cells_inside = inside;
        row_of[attribute->attribute] = (int16_t)(row + 1);
    }
    for (int t = 0; t < WD_DESC_TYPES; ++t) {
        struct type_info *type = &types[t];
        type->bytes = sizeof(struct wd_desc) + sizeof(struct wd_value) * (size_t)type->count;
        for (int i = 0; i < type->count; ++i) {
            struct wd_attribute *attribute = &attributes[type->first + i];
            attribute->cells_at = (int32_t)type->bytes;
            type->bytes += sizeof(union wd_cell) * (size_t)attribute->cells_inside;
        }
    }
}

const struct wd_attribute *wd_attribute(int attribute)
{
    pthread_once(&once, build_tables);
    if (attribute < 0 || attribute >= ATTRIBUTE_LIMIT || !row_of[attribute]) return NULL;
    return &attributes[row_of[attribute] - 1];
}

const struct wd_attribute *wd_desc_attributes(int type, int *count)
{
    pthread_once(&once, build_tables);
    *count = types[type].count;
    return &attributes[types[type].first];
}

const char *wd_desc_type_name(int type)
{
    return type >= 0 && type < WD_DESC_TYPES ? types[type].name : "no descriptor type";
}

const char *wd_desc_text(int type)
{
    return type >= 0 && type < WD_DESC_TYPES ? types[type].text : "no descriptor";
}

bool wd_desc_is_operation(int type)
{
    static const char prefix[] = "CUDNN_BACKEND_OPERATION_";
    return !strncmp(wd_desc_type_name(type), prefix, sizeof prefix - 1);
}

struct wd_built *wd_built_retain(struct wd_built *built)
{
    if (built) atomic_fetch_add_explicit(&built->references, 1, memory_order_relaxed);
    return built;
}

void wd_built_release(struct wd_built *built)
{
    if (built && atomic_fetch_sub(&built->references, 1) == 1) built->destroy(built);
}

cudnnStatus_t wd_desc_create(int type, struct wd_desc **desc)
{
    struct wd_desc *made;
    pthread_once(&once, build_tables);
    WD_REQUIRE(type >= 0 && type < WD_DESC_TYPES, CUDNN_STATUS_NOT_SUPPORTED,
               "descriptorType=%d is none of 0..%d", type, WD_DESC_TYPES - 1);
    made = wd_alloc(types[type].bytes);
    WD_REQUIRE(made != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no host memory for a %s descriptor of %zu bytes", types[type].text,
               types[type].bytes);
    made->magic = WD_DESC_MAGIC;
    made->type = (int16_t)type;
    atomic_init(&made->references, 1);
    *desc = made;
    return CUDNN_STATUS_SUCCESS;
}

struct wd_desc *wd_desc_retain(struct wd_desc *desc)
{
    if (desc) atomic_fetch_add_explicit(&desc->references, 1, memory_order_relaxed);
    return desc;
}

/* Gives back what a value holds. */
static void drop_value(struct wd_value *value)
{
    if (value->type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        for (int64_t i = 0; i < value->count; ++i) wd_desc_release(value->cells[i].ref);
    }
    if (value->heap) wd_free(value->cells);
    memset(value, 0, sizeof *value);
}

static void drop_all(struct wd_desc *desc)
{
    for (int i = 0; i < types[desc->type].count; ++i) {
        if (desc->values[i].cells) drop_value(&desc->values[i]);
    }
    wd_built_release(desc->built);
    desc->built = NULL;
}

void wd_desc_release(struct wd_desc *desc)
{
    if (!desc || atomic_fetch_sub(&desc->references, 1) != 1) return;
    drop_all(desc);
    desc->magic = 0;
    wd_free(desc);
}

cudnnStatus_t wd_desc_check(const void *desc, const char *argument)
{
    const struct wd_desc *own = desc;
    WD_REQUIRE(own != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null", argument);
    WD_REQUIRE(own->magic == WD_DESC_MAGIC && !own->abandoned, CUDNN_STATUS_BAD_PARAM,
               "%s %p is no backend descriptor, or was destroyed", argument, desc);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_desc_check_final(const void *desc, const char *argument, int type)
{
    const struct wd_desc *own = desc;
    WD_TRY(wd_desc_check(desc, argument));
    WD_REQUIRE(type < 0 || own->type == type, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
               "%s is a descriptor of type %s, not %s", argument, wd_desc_text(own->type),
               wd_desc_text(type));
    WD_REQUIRE(own->finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "%s (%s) is not finalized",
               argument, wd_desc_text(own->type));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_desc_check_values(struct wd_desc *desc)
{
    const struct type_info *type = &types[desc->type];
    char missing[512];
    size_t length = 0;
    WD_REQUIRE(!desc->finalized, CUDNN_STATUS_BAD_PARAM, "descriptor (%s) is finalized already",
               type->text);
    for (int i = 0; i < type->count; ++i) {
        const struct wd_attribute *row = &attributes[type->first + i];
        if (row->rule != WD_ATTR_REQUIRED || desc->values[i].count > 0) continue;
        length += (size_t)snprintf(missing + length, sizeof missing - length, "%s%s",
                                   length ? ", " : "", row->name);
        if (length >= sizeof missing) break;
    }
    WD_REQUIRE(length == 0, CUDNN_STATUS_BAD_PARAM, "%s: required, but not set: %s", type->text,
               missing);
    if (type->check) WD_TRY(type->check(desc));
    return wd_operation_check(desc);
}

void wd_desc_seal(struct wd_desc *desc, struct wd_built *built)
{
    desc->built = built;
    desc->finalized = true;
}

static int64_t cells_of(const struct wd_attribute *row, int type, int64_t count)
{
    if (type == CUDNN_TYPE_CHAR) return (count + 7) / 8;
    return row->types & T(FRACTION) ? 2 * count : count;
}

/* Stores a value: inside the descriptor where it fits, else in a block of its own. Fails without a
 * change. */
static cudnnStatus_t put(struct wd_desc *desc, const struct wd_attribute *row, int type,
                         int64_t count, const union wd_cell *cells)
{
    struct wd_value *value = &desc->values[row->slot];
    struct wd_value fresh = {NULL, count, type, 0};
    int64_t length = cells_of(row, type, count);
    if (length <= row->cells_inside) {
        fresh.cells = (union wd_cell *)(void *)((char *)desc + row->cells_at);
    } else {
        fresh.cells = wd_alloc(sizeof *cells * (size_t)length);
        fresh.heap = 1;
        WD_REQUIRE(fresh.cells != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no host memory for %lld elements of %s", (long long)count, row->name);
    }
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        /* before the old ones go: they may be the same */
        for (int64_t i = 0; i < count; ++i) wd_desc_retain(cells[i].ref);
    }
    if (value->cells) drop_value(value);
    if (length) memcpy(fresh.cells, cells, sizeof *cells * (size_t)length);
    *value = fresh;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_desc_put(struct wd_desc *desc, int attribute, int type, int64_t count,
                          const union wd_cell *cells)
{
    return put(desc, wd_attribute(attribute), type, count, cells);
}

cudnnStatus_t wd_desc_put_int(struct wd_desc *desc, int attribute, int type, int64_t value)
{
    union wd_cell cell = {.i = value};
    return put(desc, wd_attribute(attribute), type, 1, &cell);
}

cudnnStatus_t wd_desc_copy(struct wd_desc *to, const struct wd_desc *from)
{
    const struct type_info *type = &types[from->type];
    struct wd_desc *source = (struct wd_desc *)(uintptr_t)from;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(to->type == from->type, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
               "the result is of type %s, the descriptor given for it of type %s", type->text,
               wd_desc_text(to->type));
    if (to == from) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(atomic_load(&to->references) == 1, CUDNN_STATUS_BAD_PARAM,
               "the %s descriptor given for a result is finalized and in use", type->text);
    /* what `to` gives up may be the last to hold `from` */
    wd_desc_retain(source);
    drop_all(to);
    to->finalized = false;
    for (int i = 0; i < type->count && status == CUDNN_STATUS_SUCCESS; ++i) {
        const struct wd_value *value = &from->values[i];
        if (!value->cells) continue;
        status = put(to, &attributes[type->first + i], value->type, value->count, value->cells);
    }
    if (status == CUDNN_STATUS_SUCCESS) wd_desc_seal(to, wd_built_retain(from->built));
    wd_desc_release(source);
    return status;
}

const struct wd_value *wd_desc_value(const struct wd_desc *desc, int attribute)
{
    return &desc->values[wd_attribute(attribute)->slot];
}

bool wd_desc_has(const struct wd_desc *desc, int attribute)
{
    return wd_desc_value(desc, attribute)->count > 0;
}

int64_t wd_desc_int(const struct wd_desc *desc, int attribute)
{
    const struct wd_value *value = wd_desc_value(desc, attribute);
    return value->count > 0 ? value->cells[0].i : wd_attribute(attribute)->default_integer;
}

double wd_desc_real(const struct wd_desc *desc, int attribute)
{
    const struct wd_value *value = wd_desc_value(desc, attribute);
    return value->count > 0 ? value->cells[0].d : wd_attribute(attribute)->default_real;
}

void *wd_desc_pointer(const struct wd_desc *desc, int attribute)
{
    const struct wd_value *value = wd_desc_value(desc, attribute);
    return value->count > 0 ? value->cells[0].p : NULL;
}

struct wd_desc *wd_desc_ref(const struct wd_desc *desc, int attribute)
{
    const struct wd_value *value = wd_desc_value(desc, attribute);
    if (value->count == 0 || value->type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return NULL;
    return value->cells[0].ref;
}
