/* SPDX-License-Identifier: Apache-2.0
 *
 * Backend descriptors as data. What exists and what it holds is said by descriptors.def and
 * attributes.def; one generic create, set, get and finalize serves all of them. A descriptor is one
 * block of memory with the usual lengths of lists inside it, so that creating, setting and
 * destroying cost a few tens of nanoseconds.
 *
 * Descriptors are counted. A reference from one to another keeps the other alive, so a caller may
 * destroy in any order; only finalized descriptors can be referred to, and those never change.
 * Thread rules: one thread at a time sets and finalizes; a finalized one may be read by many. */
#ifndef WD_GRAPH_DESCRIPTOR_H
#define WD_GRAPH_DESCRIPTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { WD_DESC_MAGIC = 0x62646573, WD_DESC_TYPES = 44, WD_DESC_INLINE = 8 };

/* One element of a value. Enumerations, booleans and integers are `i`, FLOAT and DOUBLE are `d`; a
 * fraction takes two cells, text lies packed in as many as it needs. */
struct wd_desc;
union wd_cell {
    int64_t i;
    double d;
    void *p;
    struct wd_desc *ref;
};

struct wd_value {
    union wd_cell *cells; /* inside the descriptor, or a heap block of its own; null: never set */
    int64_t count;        /* elements */
    int32_t type;         /* cudnnBackendAttributeType_t that it was set as */
    int32_t heap;         /* whether cells is a block of its own */
};

/* What finalize made out of a descriptor, shared by its copies. */
struct wd_built {
    _Atomic int references; /* starts at 1 */
    void (*destroy)(struct wd_built *built);
};
struct wd_built *wd_built_retain(struct wd_built *built);
void wd_built_release(struct wd_built *built);

struct wd_desc {
    uint32_t magic;
    int16_t type; /* cudnnBackendDescriptorType_t */
    bool finalized;
    bool abandoned; /* destroyed by the caller, alive for others */
    _Atomic int references;
    struct wd_built *built;
    struct wd_value values[]; /* one an attribute, then the cells inside */
};

enum wd_attribute_rule { WD_ATTR_REQUIRED, WD_ATTR_OPTIONAL, WD_ATTR_COMPUTED, WD_ATTR_BOTH };
enum { WD_REFERS_NOTHING = -1, WD_REFERS_OPERATION = -2 };

struct wd_attribute {
    const char *name;   /* "CUDNN_ATTR_..." */
    int32_t attribute;  /* cudnnBackendAttributeName_t */
    int16_t descriptor; /* cudnnBackendDescriptorType_t */
    int16_t refers;     /* the same, or WD_REFERS_... */
    uint32_t types;     /* 1 << cudnnBackendAttributeType_t */
    int32_t least;
    int32_t most; /* INT32_MAX: as many as memory holds */
    enum wd_attribute_rule rule;
    bool has_default;
    bool real; /* kept as double */
    bool default_is_real;
    double default_real;
    int64_t default_integer;
    int32_t slot;     /* which of the descriptor's values; filled in once */
    int32_t cells_at; /* byte offset of its cells inside the descriptor; filled in once */
    int32_t cells_inside;
};

/* The row of an attribute, or null for a number that is none; and of a descriptor by position. */
const struct wd_attribute *wd_attribute(int attribute);
const struct wd_attribute *wd_desc_attributes(int type, int *count);
const char *wd_desc_type_name(int type); /* "CUDNN_BACKEND_..._DESCRIPTOR" */
const char *wd_desc_text(int type);      /* "pointwise operation" */
const char *wd_attribute_type_name(int type);
bool wd_desc_is_operation(int type);

cudnnStatus_t wd_desc_create(int type, struct wd_desc **desc);
struct wd_desc *wd_desc_retain(struct wd_desc *desc);
/* Gives one reference back; null is fine. */
void wd_desc_release(struct wd_desc *desc);

/* Refuses null, what is no descriptor of ours, and one that its caller has destroyed. */
cudnnStatus_t wd_desc_check(const void *desc, const char *argument);
/* The same for a finalized one of a type (or -1 for any). */
cudnnStatus_t wd_desc_check_final(const void *desc, const char *argument, int type);

/* The protocol of cudnnBackendSetAttribute and cudnnBackendGetAttribute on a checked descriptor. */
cudnnStatus_t wd_desc_set(struct wd_desc *desc, int attribute, int type, int64_t count,
                          const void *elements);
cudnnStatus_t wd_desc_get(const struct wd_desc *desc, int attribute, int type, int64_t requested,
                          int64_t *count, void *elements);

/* Finalize comes in two steps, for what a descriptor means may need a device: check says what is
 * missing or wrong, seal makes it readable and immutable. */
cudnnStatus_t wd_desc_check_values(struct wd_desc *desc);
void wd_desc_seal(struct wd_desc *desc, struct wd_built *built);

/* Makes `to`, which no one else refers to, a finalized copy of `from`, of the same type. */
cudnnStatus_t wd_desc_copy(struct wd_desc *to, const struct wd_desc *from);

/* Reading inside the library; defaults apply, absent references are null. */
bool wd_desc_has(const struct wd_desc *desc, int attribute);
int64_t wd_desc_int(const struct wd_desc *desc, int attribute);
double wd_desc_real(const struct wd_desc *desc, int attribute);
void *wd_desc_pointer(const struct wd_desc *desc, int attribute);
struct wd_desc *wd_desc_ref(const struct wd_desc *desc, int attribute);
const struct wd_value *wd_desc_value(const struct wd_desc *desc, int attribute);

/* Writing computed attributes, before seal. References are retained. */
cudnnStatus_t wd_desc_put(struct wd_desc *desc, int attribute, int type, int64_t count,
                          const union wd_cell *cells);
cudnnStatus_t wd_desc_put_int(struct wd_desc *desc, int attribute, int type, int64_t value);

/* Checks of values, named by descriptors.def; they may fill in what was left out. */
#define WD_DESCRIPTOR_CHECK(function) cudnnStatus_t function(struct wd_desc *desc);
WD_DESCRIPTOR_CHECK(wd_check_pointwise)
WD_DESCRIPTOR_CHECK(wd_check_convolution)
WD_DESCRIPTOR_CHECK(wd_check_pointwise_operation)
WD_DESCRIPTOR_CHECK(wd_check_variant_pack)
WD_DESCRIPTOR_CHECK(wd_check_tensor)
WD_DESCRIPTOR_CHECK(wd_check_resample)
WD_DESCRIPTOR_CHECK(wd_check_rng)
#undef WD_DESCRIPTOR_CHECK

#endif
