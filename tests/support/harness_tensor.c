/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a case: layouts, conversions of its own, red zones, poison, and the judgement of
 * values. */
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

static int element_bytes(cudnnDataType_t dtype)
{
    switch ((int)dtype) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64: return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32: return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return 1;
    }
}

static int lanes_of(cudnnDataType_t dtype)
{
    switch ((int)dtype) {
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_UINT8x4: return 4;
    case CUDNN_DATA_INT8x32: return 32;
    default: return 1;
    }
}

/* fp16 from its bits: sign, 5 bits of exponent, 10 of mantissa. */
static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    int mantissa = bits & 1023;
    double magnitude = exponent == 31  ? (mantissa ? NAN : INFINITY)
                       : exponent == 0 ? ldexp(mantissa, -24)
                                       : ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
}

/* To the nearest multiple of the spacing at its magnitude, ties to even. */
static uint16_t half_bits(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    int exponent;
    double units;
    if (value != value) return 0x7fff;
    if (isinf(value)) return (uint16_t)(sign | 0x7c00);
    frexp(magnitude, &exponent);
    if (exponent < -13) exponent = -13;
    units = nearbyint(ldexp(magnitude, 11 - exponent)); /* at most 2048 */
    if (units >= 2048.0) {
        units /= 2.0;
        exponent += 1;
    }
    if (exponent > 16) return (uint16_t)(sign | 0x7c00);
    if (units < 1024.0) return (uint16_t)(sign | (uint16_t)units);
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)units - 1024));
}

static double load(cudnnDataType_t dtype, const void *at)
{
    switch ((int)dtype) {
    case CUDNN_DATA_DOUBLE: {
        double v;
        memcpy(&v, at, 8);
        return v;
    }
    case CUDNN_DATA_FLOAT: {
        float v;
        memcpy(&v, at, 4);
        return (double)v;
    }
    case CUDNN_DATA_HALF: {
        uint16_t v;
        memcpy(&v, at, 2);
        return half_value(v);
    }
    case CUDNN_DATA_BFLOAT16: {
        uint16_t half;
        uint32_t bits;
        float v;
        memcpy(&half, at, 2);
        bits = (uint32_t)half << 16;
        memcpy(&v, &bits, 4);
        return (double)v;
    }
    case CUDNN_DATA_INT32: {
        int32_t v;
        memcpy(&v, at, 4);
        return (double)v;
    }
    case CUDNN_DATA_INT64: {
        int64_t v;
        memcpy(&v, at, 8);
        return (double)v;
    }
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_UINT8x4: return (double)*(const uint8_t *)at;
    default: return (double)*(const int8_t *)at;
    }
}

static double clamp(double value, double low, double high)
{
    if (value != value) return 0.0;
    return value < low ? low : value > high ? high : nearbyint(value);
}

static void store(cudnnDataType_t dtype, void *at, double value)
{
    switch ((int)dtype) {
    case CUDNN_DATA_DOUBLE: memcpy(at, &value, 8); return;
    case CUDNN_DATA_FLOAT: {
        float v = (float)value;
        memcpy(at, &v, 4);
        return;
    }
    case CUDNN_DATA_HALF: {
        uint16_t v = half_bits(value);
        memcpy(at, &v, 2);
        return;
    }
    case CUDNN_DATA_BFLOAT16: {
        /* test values are made in single precision first; ties to even */
        float v = (float)value;
        uint32_t bits;
        uint16_t half;
        memcpy(&bits, &v, 4);
        half = v != v ? 0x7fff : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        memcpy(at, &half, 2);
        return;
    }
    case CUDNN_DATA_INT32: {
        int32_t v = (int32_t)clamp(value, -2147483648.0, 2147483647.0);
        memcpy(at, &v, 4);
        return;
    }
    case CUDNN_DATA_INT64: {
        int64_t v = (int64_t)value;
        memcpy(at, &v, 8);
        return;
    }
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_UINT8x4: *(uint8_t *)at = (uint8_t)clamp(value, 0.0, 255.0); return;
    default: *(int8_t *)at = (int8_t)clamp(value, -128.0, 127.0); return;
    }
}

static bool is_integer(cudnnDataType_t dtype)
{
    return element_bytes(dtype) == 1 || dtype == CUDNN_DATA_INT32 || dtype == CUDNN_DATA_INT64;
}

double tensor_round(cudnnDataType_t dtype, double value)
{
    unsigned char bytes[8];
    store(dtype, bytes, value);
    return load(dtype, bytes);
}

double tensor_epsilon(cudnnDataType_t dtype)
{
    switch ((int)dtype) {
    case CUDNN_DATA_DOUBLE: return 0x1p-53;
    case CUDNN_DATA_FLOAT: return 0x1p-24;
    case CUDNN_DATA_HALF: return 0x1p-11;
    case CUDNN_DATA_BFLOAT16: return 0x1p-8;
    default: return 0.5;
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

/* Byte offset of a logical element. */
static int64_t place(const struct tensor *t, int64_t index)
{
    int at[8];
    int64_t offset = 0;
    if (t->packed) return index * element_bytes(t->dtype);
    coordinates(t, index, at);
    for (int d = 0; d < t->rank; ++d) {
        offset += (int64_t)(d == 1 && t->lanes > 1 ? at[d] / t->lanes : at[d]) * t->stride[d];
    }
    offset *= t->lanes;
    if (t->lanes > 1) offset += at[1] % t->lanes;
    return offset * element_bytes(t->dtype);
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
    t->bytes = place(t, t->count - 1) + element_bytes(dtype);
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
    int odd = tensor_odd * (int)element_bytes(t->dtype);
    if (getenv("FAKECUDA_GUARD")) zone = 0;
    t->initial = malloc((size_t)t->bytes + 2 * zone);
    t->result = malloc((size_t)t->bytes + 2 * zone);
    memset(t->initial, RED, (size_t)t->bytes + 2 * zone);
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
    for (int64_t i = 0; i < t->count; ++i) {
        store(t->dtype, t->initial + zone + place(t, i), t->value[i]);
        t->value[i] = load(t->dtype, t->initial + zone + place(t, i));
    }
}

static void fill_random(struct tensor *t, double lowest, double highest)
{
    for (int64_t i = 0; i < t->count; ++i) {
        double v = random_real(lowest, highest);
        t->value[i] = is_integer(t->dtype) ? floor(v + 0.5) : (double)(float)v;
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
        memset(covered + zone + place(t, i), 1, (size_t)element_bytes(t->dtype));
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
        for (int64_t k = 0; k < t->count; ++k) {
            t->value[k] = load(t->dtype, t->result + zone + place(t, k));
        }
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
        double rounded = tensor_round(t->dtype, want);
        double allowed;
        int at[8];
        if (want != want ? got != got : got == rounded) continue;
        allowed = is_integer(t->dtype) ? 0.5 : out_epsilon * fabs(want) + smallest;
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
