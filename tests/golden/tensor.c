/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of a case: strides of each layout, memory with poisoned gaps and guards, inputs from the
 * hash, descriptors. A logical index counts the elements in the order of the dims, whatever the
 * strides, so that one case has the same numbers in every layout of the same name.
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gd_tens pool[24];
static int pool_used;
static union {
    float f;
    double d;
} scalars[32];
static int scalars_used;

const char *gd_layout_name(enum gd_layout layout)
{
    static const char *const names[] = {"nchw", "nhwc", "gaps", "widew", "chwn", "vect"};
    return names[layout];
}

static cudnnDataType_t memory_type(cudnnDataType_t type)
{
    if (type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_INT8x32) return CUDNN_DATA_INT8;
    return type == CUDNN_DATA_UINT8x4 ? CUDNN_DATA_UINT8 : type;
}

static int vector_length(cudnnDataType_t type)
{
    if (type == CUDNN_DATA_INT8x32) return 32;
    return type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 ? 4 : 1;
}

/* Strides from the innermost dim outwards; `order` lists the dims that way. */
static void set_strides(struct gd_tens *t)
{
    int order[8], n = t->nd;
    for (int i = 0; i < n; i++) order[i] = n - 1 - i;
    if (t->layout == GD_NHWC) {
        order[0] = 1;
        for (int i = 1; i < n - 1; i++) order[i] = n - i;
        order[n - 1] = 0;
    } else if (t->layout == GD_CHWN) {
        order[0] = 0;
        for (int i = 1; i < n; i++) order[i] = n - i;
    }
    int step = t->layout == GD_WIDE_W ? 2 : 1;
    for (int i = 0; i < n; i++) {
        int d = order[i];
        int extent = d == 1 ? (t->dim[d] + t->vect - 1) / t->vect : t->dim[d];
        t->stride[d] = step;
        step *= extent;
        if (t->layout == GD_GAPS) step += i == 0 ? 3 : 5;
    }
}

size_t gd_offset(const struct gd_tens *t, size_t logical)
{
    size_t offset = 0, lane = 0;
    for (int d = t->nd - 1; d >= 0; d--) {
        size_t i = logical % (size_t)t->dim[d];
        logical /= (size_t)t->dim[d];
        if (d == 1 && t->vect > 1) {
            lane = i % (size_t)t->vect;
            i /= (size_t)t->vect;
        }
        offset += i * (size_t)t->stride[d];
    }
    return offset * (size_t)t->vect + lane;
}

static unsigned char *element(const struct gd_tens *t, size_t logical)
{
    return t->host + GD_GUARD + gd_offset(t, logical) * gd_elsize(t->type);
}

static struct gd_tens *make(const char *name, cudnnDataType_t type, enum gd_layout layout, int nd,
                            const int *dim, const int *stride)
{
    if (pool_used == GD_COUNT(pool)) {
        fprintf(stderr, "golden: too many tensors in %s\n", gd_case_name());
        abort();
    }
    struct gd_tens *t = &pool[pool_used++];
    memset(t, 0, sizeof *t);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->type = memory_type(type);
    t->desc_type = type;
    t->layout = layout;
    t->vect = layout == GD_VECT ? vector_length(type) : 1;
    t->nd = nd;
    t->count = 1;
    for (int i = 0; i < nd; i++) {
        t->dim[i] = dim[i];
        t->count *= (size_t)dim[i];
    }
    if (stride) memcpy(t->stride, stride, (size_t)nd * sizeof *stride);
    else set_strides(t);
    t->span = 1;
    for (int i = 0; i < nd; i++) {
        int extent = i == 1 ? (dim[i] + t->vect - 1) / t->vect : dim[i];
        t->span += (size_t)(extent - 1) * (size_t)t->stride[i];
    }
    t->span *= (size_t)t->vect;
    t->bytes = t->span * gd_elsize(t->type);
    t->host = malloc(t->bytes + 2 * GD_GUARD);
    t->base = gd_alloc(t->bytes + 2 * GD_GUARD);
    if (!t->host || !t->base) {
        fprintf(stderr, "golden: no memory for %s of %s\n", name, gd_case_name());
        abort();
    }
    t->p = t->base + GD_GUARD;
    gd_poison(t);
    return t;
}

struct gd_tens *gd_tens(const char *name, cudnnDataType_t type, enum gd_layout layout, int nd,
                        const int *dim)
{
    struct gd_tens *t = make(name, type, layout, nd, dim, NULL);
    cudnnStatus_t s = lib.CreateTensorDescriptor(&t->desc);
    if (s == CUDNN_STATUS_SUCCESS) {
        bool packed = layout == GD_NCHW || layout == GD_NHWC || layout == GD_VECT;
        cudnnTensorFormat_t format = layout == GD_VECT   ? CUDNN_TENSOR_NCHW_VECT_C
                                     : layout == GD_NHWC ? CUDNN_TENSOR_NHWC
                                                         : CUDNN_TENSOR_NCHW;
        if (nd == 4 && packed)
            s = lib.SetTensor4dDescriptor(t->desc, format, type, dim[0], dim[1], dim[2], dim[3]);
        else if (nd == 4)
            s = lib.SetTensor4dDescriptorEx(t->desc, type, dim[0], dim[1], dim[2], dim[3],
                                            t->stride[0], t->stride[1], t->stride[2], t->stride[3]);
        else if (layout == GD_VECT) s = lib.SetTensorNdDescriptorEx(t->desc, format, type, nd, dim);
        else s = lib.SetTensorNdDescriptor(t->desc, type, nd, t->dim, t->stride);
    }
    char key[32];
    snprintf(key, sizeof key, "desc.%s", name);
    gd_setup(key, s);
    return t;
}

struct gd_tens *gd_filter(const char *name, cudnnDataType_t type, enum gd_layout layout, int nd,
                          const int *dim)
{
    struct gd_tens *t = make(name, type, layout, nd, dim, NULL);
    cudnnStatus_t s = lib.CreateFilterDescriptor(&t->filter);
    if (s == CUDNN_STATUS_SUCCESS) {
        cudnnTensorFormat_t format = layout == GD_VECT   ? CUDNN_TENSOR_NCHW_VECT_C
                                     : layout == GD_NHWC ? CUDNN_TENSOR_NHWC
                                                         : CUDNN_TENSOR_NCHW;
        if (nd == 4)
            s = lib.SetFilter4dDescriptor(t->filter, type, format, dim[0], dim[1], dim[2], dim[3]);
        else s = lib.SetFilterNdDescriptor(t->filter, type, format, nd, dim);
    }
    char key[32];
    snprintf(key, sizeof key, "desc.%s", name);
    gd_setup(key, s);
    return t;
}

struct gd_tens *gd_tens_raw(const char *name, cudnnDataType_t type, int nd, const int *dim,
                            const int *stride)
{
    return make(name, type, GD_NCHW, nd, dim, stride);
}

static double special(uint64_t h, cudnnDataType_t type, double plain)
{
    double big = type == CUDNN_DATA_HALF ? 60000 : type == CUDNN_DATA_DOUBLE ? 1e300 : 1e38;
    double tiny = type == CUDNN_DATA_HALF     ? 0x1p-20
                  : type == CUDNN_DATA_DOUBLE ? 0x1p-1060
                                              : 0x1p-135;
    switch (h % 16) {
    case 0:
    case 1: return NAN;
    case 2: return INFINITY;
    case 3: return -INFINITY;
    case 4: return 0.0;
    case 5: return -0.0;
    case 6: return tiny;
    case 7: return -tiny;
    case 8: return big;
    case 9: return -big;
    default: return plain;
    }
}

static double value(enum gd_fill kind, cudnnDataType_t type, uint64_t h)
{
    double u = (double)(h >> 11) * 0x1p-53; /* [0, 1) */
    bool integer = gd_roundoff(type) == 0;
    int step = (int)(h >> 40) % 129 - 64;
    switch (kind) {
    case GD_UNIT:
        return integer ? (type == CUDNN_DATA_UINT8 ? abs(step / 8) : step / 8) : step / 64.0;
    case GD_REAL: return integer ? step / 8 : 8 * u - 4;
    case GD_POS: return integer ? 1 + abs(step) / 8 : 0.25 + 1.5 * u;
    case GD_WIDE:
        if (integer) return (int)(h >> 40) % 256 - (type == CUDNN_DATA_UINT8 ? 0 : 128);
        return 60 * u - 30;
    case GD_SPECIAL: return special(h, type, 8 * u - 4);
    case GD_SOMENAN: return h % 8 ? 8 * u - 4 : NAN;
    case GD_NAN: return integer ? 77 : NAN;
    case GD_TIES: return (int)(h >> 40) % 3 - 1;
    case GD_BOOL: return (double)(h >> 40 & 1);
    case GD_ONE: return 1;
    case GD_LARGE: return 80 + step / 64.0;
    default: return 0;
    }
}

void gd_fill_as(struct gd_tens *t, enum gd_fill kind, const char *as)
{
    uint64_t h = gd_hash(gd_case_name(), as);
    for (size_t i = 0; i < t->count; i++)
        gd_put(t->type, element(t, i), value(kind, t->type, gd_mix(h, i)));
    gd_upload(t->base, t->host, t->bytes + 2 * GD_GUARD);
}

void gd_fill(struct gd_tens *t, enum gd_fill kind)
{
    gd_fill_as(t, kind, t->name);
}

void gd_poison(struct gd_tens *t)
{
    memset(t->host, GD_POISON, t->bytes + 2 * GD_GUARD);
    gd_upload(t->base, t->host, t->bytes + 2 * GD_GUARD);
}

void gd_fetch(struct gd_tens *t)
{
    gd_download(t->host, t->base, t->bytes + 2 * GD_GUARD);
}

double gd_at(const struct gd_tens *t, size_t logical)
{
    return gd_get(t->type, element(t, logical));
}

void gd_tens_reset(void)
{
    for (int i = 0; i < pool_used; i++) {
        if (pool[i].desc) lib.DestroyTensorDescriptor(pool[i].desc);
        if (pool[i].filter) lib.DestroyFilterDescriptor(pool[i].filter);
        free(pool[i].host);
    }
    pool_used = 0;
    scalars_used = 0;
    gd_alloc_reset();
}

const void *gd_scalar(cudnnDataType_t type, double v)
{
    void *p = &scalars[scalars_used++ % GD_COUNT(scalars)];
    if (type == CUDNN_DATA_DOUBLE) *(double *)p = v;
    else *(float *)p = (float)v;
    return p;
}
