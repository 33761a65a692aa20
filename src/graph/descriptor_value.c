/* SPDX-License-Identifier: Apache-2.0
 *
 * Setting and getting the attributes of backend descriptors: checks that are the same for all of
 * them, and the conversion between what callers hold and cells. Nothing is changed by a set that
 * fails. */
#include <string.h>

#include "base/alloc.h"
#include "graph/descriptor.h"

enum kind { ENUM, INTEGER, REAL, POINTER, REFERENCE, TEXT, FRACTION };

struct value_type {
    const char *name;
    enum kind kind;
    int bytes;
    int32_t low;
    int32_t high;
};
static const struct value_type value_types[] = {
#define WD_VALUE_TYPE(name, kind, c_type, low, high)                                               \
    {"CUDNN_TYPE_" #name, kind, (int)sizeof(c_type), low, high},
#include "graph/value_types.def"
#undef WD_VALUE_TYPE
};
enum { VALUE_TYPES = sizeof value_types / sizeof value_types[0], LOCAL_CELLS = 64 };
enum { ELEMENTS_MAX = 1 << 26 };

const char *wd_attribute_type_name(int type)
{
    return type >= 0 && type < VALUE_TYPES ? value_types[type].name : "no attribute type";
}

/* The names of the types that an attribute has. */
static const char *types_text(const struct wd_attribute *row, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (int type = 0; type < VALUE_TYPES; ++type) {
        size_t more = strlen(value_types[type].name);
        if (!(row->types >> type & 1u) || length + more + 5 > size) continue;
        if (length) {
            memcpy(text + length, " or ", 4);
            length += 4;
        }
        memcpy(text + length, value_types[type].name, more + 1);
        length += more;
    }
    return text;
}

static const char *name_of(int attribute)
{
    const struct wd_attribute *row = wd_attribute(attribute);
    return row ? row->name : "no attribute";
}

/* What set and get check alike. */
static cudnnStatus_t find(const struct wd_desc *desc, int attribute, int type,
                          const struct wd_attribute **found)
{
    const struct wd_attribute *row = wd_attribute(attribute);
    char text[160];
    WD_REQUIRE(row != NULL, CUDNN_STATUS_BAD_PARAM, "attributeName=%d is no attribute", attribute);
    WD_REQUIRE(row->descriptor == desc->type, CUDNN_STATUS_BAD_PARAM,
               "attributeName %s is no attribute of descriptors of type %s", row->name,
               wd_desc_text(desc->type));
    WD_REQUIRE(type >= 0 && type < VALUE_TYPES && (row->types >> type & 1u),
               CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attributeType=%d (%s) is not the %s of %s",
               type, wd_attribute_type_name(type), types_text(row, text, sizeof text), row->name);
    *found = row;
    return CUDNN_STATUS_SUCCESS;
}

static int64_t load_integer(const struct value_type *type, const void *elements, int64_t i)
{
    int64_t wide;
    int32_t word;
    if (type->bytes == 1) return ((const uint8_t *)elements)[i] != 0;
    if (type->bytes == 4) {
        memcpy(&word, (const char *)elements + 4 * i, sizeof word);
        return word;
    }
    memcpy(&wide, (const char *)elements + 8 * i, sizeof wide);
    return wide;
}

static double load_real(const struct value_type *type, const void *elements, int64_t i)
{
    double wide;
    float narrow;
    if (type->bytes == 8) {
        memcpy(&wide, (const char *)elements + 8 * i, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *)elements + 4 * i, sizeof narrow);
    return (double)narrow;
}

static cudnnStatus_t check_reference(const struct wd_attribute *row, const struct wd_desc *ref,
                                     int64_t i)
{
    WD_REQUIRE(ref != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: element %lld is null",
               row->name, (long long)i);
    WD_TRY(wd_desc_check(ref, row->name));
    if (row->refers == WD_REFERS_OPERATION) {
        WD_REQUIRE(wd_desc_is_operation(ref->type), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                   "%s: element %lld is a descriptor of type %s, not an operation", row->name,
                   (long long)i, wd_desc_text(ref->type));
    } else {
        WD_REQUIRE(ref->type == row->refers, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                   "%s: element %lld is a descriptor of type %s, not %s", row->name, (long long)i,
                   wd_desc_text(ref->type), wd_desc_text(row->refers));
    }
    WD_REQUIRE(ref->finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
               "%s: element %lld (%s) is not finalized", row->name, (long long)i,
               wd_desc_text(ref->type));
    return CUDNN_STATUS_SUCCESS;
}

/* Elements of the caller into cells. */
static cudnnStatus_t load(const struct wd_attribute *row, int type, int64_t count,
                          const void *elements, union wd_cell *cells)
{
    const struct value_type *info = &value_types[type];
    bool fractions = row->types >> CUDNN_TYPE_FRACTION & 1u;
    for (int64_t i = 0; i < count; ++i) {
        switch (info->kind) {
        case ENUM:
            cells[i].i = load_integer(info, elements, i);
            WD_REQUIRE(cells[i].i >= info->low && cells[i].i <= info->high, CUDNN_STATUS_BAD_PARAM,
                       "%s: %lld is no value of %s (%d..%d)", row->name, (long long)cells[i].i,
                       info->name, (int)info->low, (int)info->high);
            break;
        case INTEGER:
            if (fractions) {
                cells[2 * i].i = load_integer(info, elements, i);
                cells[2 * i + 1].i = 1;
            } else if (row->real) {
                cells[i].d = (double)load_integer(info, elements, i);
            } else {
                cells[i].i = load_integer(info, elements, i);
            }
            break;
        case REAL: cells[i].d = load_real(info, elements, i); break;
        case POINTER:
            memcpy(&cells[i].p, (const char *)elements + sizeof(void *) * (size_t)i,
                   sizeof(void *));
            WD_REQUIRE(cells[i].p != NULL || type != CUDNN_TYPE_HANDLE,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: the handle is null", row->name);
            break;
        case REFERENCE:
            memcpy(&cells[i].ref, (const char *)elements + sizeof(void *) * (size_t)i,
                   sizeof(void *));
            WD_TRY(check_reference(row, cells[i].ref, i));
            break;
        case TEXT: memcpy(cells, elements, (size_t)count); return CUDNN_STATUS_SUCCESS;
        case FRACTION:
            memcpy(&cells[2 * i], (const cudnnFraction_t *)elements + i, sizeof(cudnnFraction_t));
            break;
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_desc_set(struct wd_desc *desc, int attribute, int type, int64_t count,
                          const void *elements)
{
    const struct wd_attribute *row;
    union wd_cell local[LOCAL_CELLS];
    union wd_cell *cells = local;
    cudnnStatus_t status;
    int64_t room;
    WD_TRY(find(desc, attribute, type, &row));
    WD_REQUIRE(!desc->finalized, CUDNN_STATUS_BAD_PARAM,
               "%s cannot be set: descriptor (%s) is finalized", row->name,
               wd_desc_text(desc->type));
    WD_REQUIRE(row->rule != WD_ATTR_COMPUTED, CUDNN_STATUS_NOT_SUPPORTED,
               "%s is computed by the library and cannot be set", row->name);
    if (row->most == INT32_MAX) {
        WD_REQUIRE(count >= row->least && count <= ELEMENTS_MAX, CUDNN_STATUS_BAD_PARAM,
                   "elementCount=%lld is not in %d..%d, as %s takes them", (long long)count,
                   row->least, (int)ELEMENTS_MAX, row->name);
    } else {
        WD_REQUIRE(count >= row->least && count <= row->most, CUDNN_STATUS_BAD_PARAM,
                   "elementCount=%lld is not in %d..%d, as %s takes them", (long long)count,
                   row->least, row->most, row->name);
    }
    WD_REQUIRE(elements != NULL || count == 0, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
               "%s: arrayOfElements is null, elementCount=%lld", row->name, (long long)count);
    room = type == CUDNN_TYPE_CHAR ? (count + 7) / 8 : 2 * count;
    if (room > LOCAL_CELLS) {
        cells = wd_alloc(sizeof *cells * (size_t)room);
        WD_REQUIRE(cells != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no host memory for %lld elements of %s", (long long)count, row->name);
    }
    status = load(row, type, count, elements, cells);
    if (status == CUDNN_STATUS_SUCCESS) status = wd_desc_put(desc, attribute, type, count, cells);
    if (cells != local) wd_free(cells);
    return status;
}

static int64_t whole(double value)
{
    if (!(value > -9.2e18)) return INT64_MIN;
    return value < 9.2e18 ? (int64_t)value : INT64_MAX;
}

static void store_integer(const struct value_type *type, void *elements, int64_t i, int64_t value)
{
    int32_t word = (int32_t)value;
    if (type->bytes == 1) ((uint8_t *)elements)[i] = value != 0;
    else if (type->bytes == 4) memcpy((char *)elements + 4 * i, &word, sizeof word);
    else memcpy((char *)elements + 8 * i, &value, sizeof value);
}

static void store_real(const struct value_type *type, void *elements, int64_t i, double value)
{
    float narrow = (float)value;
    if (type->bytes == 8) memcpy((char *)elements + 8 * i, &value, sizeof value);
    else memcpy((char *)elements + 4 * i, &narrow, sizeof narrow);
}

/* Copies referred descriptors into those that the caller has put into the array. The descriptor
 * that is read cannot be one of them: the copy would take from it what the rest of the reading
 * needs. */
static cudnnStatus_t store_reference(const struct wd_desc *desc, const struct wd_attribute *row,
                                     void *elements, int64_t i, const struct wd_desc *ref)
{
    struct wd_desc *to;
    cudnnStatus_t status;
    memcpy(&to, (char *)elements + sizeof to * (size_t)i, sizeof to);
    WD_REQUIRE(to != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
               "%s: element %lld of arrayOfElements is null; it takes a created descriptor",
               row->name, (long long)i);
    WD_TRY(wd_desc_check(to, "an element of arrayOfElements"));
    WD_REQUIRE(to != desc, CUDNN_STATUS_BAD_PARAM,
               "%s: element %lld of arrayOfElements is the %s descriptor that is read", row->name,
               (long long)i, wd_desc_text(desc->type));
    status = wd_desc_copy(to, ref);
    if (status == CUDNN_STATUS_SUCCESS) return status;
    return wd_fail(status, "%s: element %lld of arrayOfElements: %s", row->name, (long long)i,
                   wd_last_error());
}

/* Cells into elements of the caller. */
static cudnnStatus_t store(const struct wd_desc *desc, const struct wd_attribute *row, int type,
                           int64_t count, const union wd_cell *cells, void *elements)
{
    const struct value_type *info = &value_types[type];
    bool fractions = row->types >> CUDNN_TYPE_FRACTION & 1u;
    for (int64_t i = 0; i < count; ++i) {
        switch (info->kind) {
        case ENUM:
        case INTEGER:
            if (fractions) {
                int64_t below = cells[2 * i + 1].i;
                WD_REQUIRE(below == 1, CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                           "%s: element %lld is a fraction, not a whole number", row->name,
                           (long long)i);
                store_integer(info, elements, i, cells[2 * i].i);
            } else {
                store_integer(info, elements, i, row->real ? whole(cells[i].d) : cells[i].i);
            }
            break;
        case REAL: store_real(info, elements, i, cells[i].d); break;
        case POINTER:
            memcpy((char *)elements + sizeof(void *) * (size_t)i, &cells[i].p, sizeof(void *));
            break;
        case REFERENCE: WD_TRY(store_reference(desc, row, elements, i, cells[i].ref)); break;
        case TEXT: memcpy(elements, cells, (size_t)count); return CUDNN_STATUS_SUCCESS;
        case FRACTION:
            memcpy((cudnnFraction_t *)elements + i, &cells[2 * i], sizeof(cudnnFraction_t));
            break;
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_desc_get(const struct wd_desc *desc, int attribute, int type, int64_t requested,
                          int64_t *count, void *elements)
{
    const struct wd_attribute *row;
    const struct wd_value *value;
    union wd_cell fallback;
    const union wd_cell *cells;
    int64_t available;
    WD_REQUIRE(desc->finalized, CUDNN_STATUS_NOT_INITIALIZED,
               "descriptor (%s) is not finalized: %s (attributeName=%d) cannot be read",
               wd_desc_text(desc->type), name_of(attribute), attribute);
    WD_TRY(find(desc, attribute, type, &row));
    WD_REQUIRE(requested >= 0, CUDNN_STATUS_BAD_PARAM, "%s: requestedElementCount=%lld is negative",
               row->name, (long long)requested);
    value = &desc->values[row->slot];
    cells = value->cells;
    available = value->count;
    if (available == 0 && row->has_default && type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        if (row->real) fallback.d = row->default_is_real ? row->default_real : 0.0;
        else fallback.i = row->default_integer;
        cells = &fallback;
        available = 1;
    } else if (available > 0) {
        /* an attribute that can be a number or a descriptor is read as what it was set as */
        WD_REQUIRE((type == CUDNN_TYPE_BACKEND_DESCRIPTOR) ==
                       (value->type == CUDNN_TYPE_BACKEND_DESCRIPTOR),
                   CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "%s was set as %s, not as %s", row->name,
                   wd_attribute_type_name(value->type), wd_attribute_type_name(type));
    }
    if (requested == 0 || !elements) {
        if (count) *count = available;
        return CUDNN_STATUS_SUCCESS;
    }
    if (requested < available) available = requested;
    WD_TRY(store(desc, row, type, available, cells, elements));
    if (count) *count = available;
    return CUDNN_STATUS_SUCCESS;
}
