/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a case: layouts, red zones, poison, and the judgement of values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/harness_internal.h"

enum { ZONE = 256, RED = 0xA5, POISON = 0xCB, TENSORS_MAX = 64 };

/* Bytes before and behind a tensor; none where the fake driver's memory ends with its blocks. */
static int zone = ZONE;

static struct tensor *tensors[TENSORS_MAX];
static int tensor_count;

static int lanes_of(cudnnDataType_t dtype)
{
    switch ((int)dtype) {
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_UINT8x4: return 4;
    case CUDNN_DATA_INT8x32: return 32;
    default: return 1;
    }
}

void coordinates(const struct tensor *t, int64_t index, int *at)
{
    for (int d = t->rank - 1; d >= 0; --d) {
        at[d] = (int)(index % t->dim[d]);
        index /= t->dim[d];
    }
}

int64_t logical_index(const struct tensor *t, const int *at)
{
    int64_t index = 0;
    for (int d = 0; d < t->rank; ++d) index = index * t->dim[d] + at[d];
    return index;
}

static int64_t place_found(const struct tensor *t, int64_t index)
{
    int at[8];
    int64_t offset = 0;
    coordinates(t, index, at);
    for (int d = 0; d < t->rank; ++d) {
        offset += (int64_t)(d == 1 && t->lanes > 1 ? at[d] / t->lanes : at[d]) * t->stride[d];
    }
    offset *= t->lanes;
    if (t->lanes > 1) offset += at[1] % t->lanes;
    return offset * element_bytes(t->dtype);
}

/* Of all elements, but of those that lie in their logical order. */
static int64_t *places(const struct tensor *t)
{
    int64_t line = t->lanes > 1 || t->rank < 1 ? 1 : t->dim[t->rank - 1];
    int64_t step = line > 1 ? (int64_t)t->stride[t->rank - 1] * element_bytes(t->dtype) : 0;
    int64_t *of = malloc((size_t)t->count * sizeof *of);
    for (int64_t i = 0; i < t->count; i += line) {
        int64_t first = place_found(t, i);
        for (int64_t k = 0; k < line; ++k) of[i + k] = first + k * step;
    }
    return of;
}

/* Byte offset of a logical element. */
static int64_t place(const struct tensor *t, int64_t index)
{
    return t->packed ? index * element_bytes(t->dtype) : t->places[index];
}

static void set_strides(struct tensor *t, enum layout layout)
{
    int extent[8];
    int64_t next = 1;
    int order[8];
    for (int d = 0; d < t->rank; ++d) {
        extent[d] = d == 1 && t->lanes > 1 ? t->dim[d] / t->lanes : t->dim[d];
        order[d] = t->rank - 1 - d; /* fastest first */
    }
    if (layout == LAYOUT_NHWC && t->rank > 2) {
        order[0] = 1;
        for (int d = 1; d < t->rank - 1; ++d) order[d] = t->rank - d;
        order[t->rank - 1] = 0;
    }
    for (int i = 0; i < t->rank; ++i) {
        t->stride[order[i]] = (int)next;
        next *= extent[order[i]];
        if (layout == LAYOUT_GAPS) next += random_int(0, 3);
    }
}

static bool is_packed(const struct tensor *t)
{
    int64_t next = 1;
    for (int d = t->rank - 1; d >= 0; --d) {
        if (t->stride[d] != next) return false;
        next *= t->dim[d];
    }
    return t->lanes == 1;
}

static struct tensor *tensor_new(cudnnDataType_t dtype, int rank, const int *dim,
                                 enum layout layout)
{
    struct tensor *t = calloc(1, sizeof *t);
    int declared[8] = {0};
    cudnnStatus_t status;
    if (!t || tensor_count == TENSORS_MAX) {
        printf("too many tensors\n0 passed, 1 failed\n");
        exit(1);
    }
    tensors[tensor_count++] = t;
    t->dtype = dtype;
    t->rank = rank;
    t->lanes = lanes_of(dtype);
    t->count = 1;
    for (int d = 0; d < rank; ++d) {
        t->dim[d] = declared[d] = dim[d];
        t->count *= dim[d];
    }
    if (t->lanes > 1 && layout != LAYOUT_VECT) declared[1] /= t->lanes;
    set_strides(t, layout);
    t->packed = is_packed(t);
    if (!t->packed && t->count > 0) t->places = places(t);
    t->bytes = t->count > 0 ? place(t, t->count - 1) + element_bytes(dtype) : 0;
    t->bytes = (t->bytes + t->lanes - 1) / t->lanes * t->lanes;
    t->value = calloc((size_t)t->count, sizeof *t->value);
    if (dtype == CUDNN_DATA_INT64) return t; /* the backend's alone: no descriptor takes it */
    cudnnCreateTensorDescriptor(&t->desc);
    if (layout == LAYOUT_VECT && rank == 4) {
        status = cudnnSetTensor4dDescriptor(t->desc, CUDNN_TENSOR_NCHW_VECT_C, dtype, dim[0],
                                            dim[1], dim[2], dim[3]);
    } else if (layout == LAYOUT_VECT) {
        status = cudnnSetTensorNdDescriptorEx(t->desc, CUDNN_TENSOR_NCHW_VECT_C, dtype, rank, dim);
    } else {
        status = cudnnSetTensorNdDescriptor(t->desc, dtype, rank, declared, t->stride);
    }
    if (status != CUDNN_STATUS_SUCCESS) case_fail("the tensor descriptor is refused");
    return t;
}

int tensor_odd;

/* The device block and its host images. */
static void tensor_place(struct tensor *t)
{
    int odd = tensor_odd * element_bytes(t->dtype);
    size_t size;
    if (getenv("FAKECUDA_GUARD")) zone = 0;
    size = (size_t)t->bytes + 2 * (size_t)zone;
    t->initial = malloc(size + (size == 0));
    t->result = malloc(size + (size == 0));
    memset(t->initial, RED, size);
    memset(t->initial + zone, POISON, (size_t)t->bytes);
    if (warpdnnMalloc(harness_handle, (size_t)(t->bytes + 2 * zone + odd + (t->bytes + zone == 0)),
                      &t->base) != CUDNN_STATUS_SUCCESS) {
        printf("no memory for %lld bytes\n0 passed, 1 failed\n", (long long)t->bytes);
        exit(1);
    }
    t->block = (char *)t->base + odd;
    t->data = (char *)t->block + zone;
}

void tensor_write(struct tensor *t)
{
    elements_store(t->dtype, t->initial + zone, t->places, t->count, t->value);
    elements_load(t->dtype, t->initial + zone, t->places, t->count, t->value);
}

static void fill_random(struct tensor *t, double lowest, double highest)
{
    bool whole = element_is_integer(t->dtype);
    for (int64_t i = 0; i < t->count; ++i) {
        double v = random_real(lowest, highest);
        t->value[i] = whole ? floor(v + 0.5) : (double)(float)v;
    }
    tensor_write(t);
}

struct tensor *tensor_input(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                            double lowest, double highest)
{
    struct tensor *t = tensor_new(dtype, rank, dim, layout);
    tensor_place(t);
    fill_random(t, lowest, highest);
    return t;
}

struct tensor *tensor_output(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout)
{
    struct tensor *t = tensor_new(dtype, rank, dim, layout);
    t->output = true;
    tensor_place(t);
    return t;
}

struct tensor *tensor_inout(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                            double lowest, double highest)
{
    struct tensor *t = tensor_input(dtype, rank, dim, layout, lowest, highest);
    t->output = true;
    return t;
}

struct tensor *tensor_bytes(int64_t bytes)
{
    struct tensor *t = calloc(1, sizeof *t);
    if (!t || tensor_count == TENSORS_MAX) {
        printf("too many tensors\n0 passed, 1 failed\n");
        exit(1);
    }
    tensors[tensor_count++] = t;
    t->dtype = CUDNN_DATA_UINT8;
    t->lanes = 1;
    t->bytes = bytes;
    t->output = true;
    tensor_place(t);
    return t;
}

void tensors_upload(void)
{
    for (int i = 0; i < tensor_count; ++i) {
        warpdnnMemcpy(harness_handle, tensors[i]->block, tensors[i]->initial,
                      (size_t)tensors[i]->bytes + 2 * zone);
    }
}

/* Bytes that no element of the tensor covers must be as uploaded; so must all of an input's. */
static bool check_around(const struct tensor *t, const unsigned char *now, const char *way)
{
    int64_t size = t->bytes + 2 * zone;
    int bytes = element_bytes(t->dtype);
    unsigned char *covered;
    bool fine = true;
    if (!t->output) {
        fine = !memcmp(now, t->initial, (size_t)size);
        if (!fine) case_fail("%s: an input or what surrounds it was written", way);
        return fine;
    }
    if (t->packed && !memcmp(now, t->initial, (size_t)zone) &&
        !memcmp(now + size - zone, t->initial + size - zone, (size_t)zone)) {
        return true;
    }
    covered = calloc(1, (size_t)size);
    if (t->count == 0) memset(covered + zone, 1, (size_t)t->bytes);
    for (int64_t i = 0; i < t->count; ++i) {
        memset(covered + zone + place(t, i), 1, (size_t)bytes);
    }
    for (int64_t i = 0; i < size && fine; ++i) {
        if (covered[i] || now[i] == t->initial[i]) continue;
        case_fail("%s: byte %lld of an output of %lld bytes was written out of its place", way,
                  (long long)(i - zone), (long long)t->bytes);
        fine = false;
    }
    free(covered);
    return fine;
}

static void fetch(const struct tensor *t, unsigned char *bytes)
{
    warpdnnMemcpy(harness_handle, bytes, t->block, (size_t)t->bytes + 2 * zone);
}

bool tensors_download(const char *way)
{
    bool fine = true;
    for (int i = 0; i < tensor_count; ++i) {
        struct tensor *t = tensors[i];
        fetch(t, t->result);
        fine &= check_around(t, t->result, way);
        if (!t->output) continue;
        elements_load(t->dtype, t->result + zone, t->places, t->count, t->value);
    }
    return fine;
}

bool tensors_compare(const char *way)
{
    bool fine = true;
    for (int i = 0; i < tensor_count; ++i) {
        const struct tensor *t = tensors[i];
        unsigned char *now = malloc((size_t)t->bytes + 2 * zone);
        fetch(t, now);
        fine &= check_around(t, now, way);
        if (t->count > 0 && memcmp(now, t->result, (size_t)t->bytes + 2 * zone)) {
            case_fail("%s: not bitwise equal to the first run", way);
            fine = false;
        }
        free(now);
    }
    return fine;
}

bool tensors_untouched(void)
{
    bool fine = true;
    for (int i = 0; i < tensor_count; ++i) {
        struct tensor *t = tensors[i];
        fetch(t, t->result);
        if (!memcmp(t->result, t->initial, (size_t)t->bytes + 2 * zone)) continue;
        case_fail("a refused call wrote to a tensor");
        fine = false;
    }
    return fine;
}

void tensors_free(void)
{
    for (int i = 0; i < tensor_count; ++i) {
        struct tensor *t = tensors[i];
        warpdnnFree(harness_handle, t->base);
        if (t->desc) cudnnDestroyTensorDescriptor(t->desc);
        free(t->value);
        free(t->places);
        free(t->initial);
        free(t->result);
        free(t);
    }
    tensor_count = 0;
}

void check_values(const char *name, const struct tensor *t, const double *exact,
                  const double *naive, const double *magnitude, cudnnDataType_t compute)
{
    double out_epsilon = tensor_epsilon(t->dtype);
    double smallest = t->dtype == CUDNN_DATA_HALF     ? 0x1p-24
                      : t->dtype == CUDNN_DATA_DOUBLE ? 0x1p-1060
                                                      : 0x1p-133;
    if (!harness_values) return;
    for (int64_t i = 0; i < t->count; ++i) {
        double want = exact[i];
        double got = t->value[i];
        double allowed;
        int at[8];
        if (want != want ? got != got : got == want || got == tensor_round(t->dtype, want))
            continue;
        allowed = element_is_integer(t->dtype) ? 0.5 : out_epsilon * fabs(want) + smallest;
        if (naive) allowed += 2.0 * fabs(naive[i] - want);
        if (magnitude) allowed += 8.0 * tensor_epsilon(compute) * fabs(magnitude[i]);
        if (isfinite(want) && isfinite(got) && fabs(got - want) <= allowed) continue;
        coordinates(t, i, at);
        case_fail("%s[%d,%d,%d,%d,...] (%lld of %lld) is %.9g, exactly %.9g, allowed error %.3g",
                  name, at[0], t->rank > 1 ? at[1] : 0, t->rank > 2 ? at[2] : 0,
                  t->rank > 3 ? at[3] : 0, (long long)i, (long long)t->count, got, want, allowed);
        return;
    }
}
