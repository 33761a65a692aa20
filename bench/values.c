/* SPDX-License-Identifier: Apache-2.0
 *
 * Random values and conversions. */
#include "values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "device.h"

/* Prime, so that copies of the block never lie the same way to a problem's rows. */
enum { BLOCK = 1048573, TEMPLATES_MAX = 32 };

static uint16_t half_of(double value)
{
    double magnitude = fabs(value);
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    double rounded;
    if (magnitude == 0.0) return sign;
    frexp(magnitude, &exponent);
    if (exponent < -13) exponent = -13;
    rounded = nearbyint(ldexp(magnitude, 11 - exponent));
    if (rounded >= 2048.0) {
        rounded = 1024.0;
        exponent += 1;
    }
    if (exponent > 16) return sign | 0x7c00;
    if (rounded < 1024.0) return (uint16_t)(sign | (int)rounded); /* subnormal */
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)rounded - 1024));
}

static uint16_t bfloat_of(double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = bits & 1023;
    double value = exponent == 31  ? (mantissa != 0.0 ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(mantissa, -24)
                                   : ldexp(1024.0 + mantissa, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

void value_store(void *data, cudnnDataType_t type, int64_t i, double value)
{
    switch (type) {
    case CUDNN_DATA_DOUBLE: ((double *)data)[i] = value; break;
    case CUDNN_DATA_FLOAT: ((float *)data)[i] = (float)value; break;
    case CUDNN_DATA_HALF: ((uint16_t *)data)[i] = half_of(value); break;
    case CUDNN_DATA_BFLOAT16: ((uint16_t *)data)[i] = bfloat_of(value); break;
    case CUDNN_DATA_INT32: ((int32_t *)data)[i] = (int32_t)lrint(value); break;
    default: ((int8_t *)data)[i] = (int8_t)lrint(value); break;
    }
}

double value_at(const void *data, cudnnDataType_t type, int64_t i)
{
    uint32_t bits;
    float single;
    switch (type) {
    case CUDNN_DATA_DOUBLE: return ((const double *)data)[i];
    case CUDNN_DATA_FLOAT: return ((const float *)data)[i];
    case CUDNN_DATA_HALF: return half_value(((const uint16_t *)data)[i]);
    case CUDNN_DATA_BFLOAT16:
        bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&single, &bits, sizeof single);
        return single;
    case CUDNN_DATA_INT32: return ((const int32_t *)data)[i];
    default: return ((const int8_t *)data)[i];
    }
}

void values_decode(const void *data, cudnnDataType_t type, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; ++i) out[i] = value_at(data, type, i);
}

int64_t logical_offset(const struct operand *operand, int64_t i)
{
    int64_t offset = 0;
    for (int r = operand->rank - 1; r >= 0; --r) {
        offset += i % operand->dims[r] * operand->strides[r];
        i /= operand->dims[r];
    }
    return offset;
}

void values_decode_logical(const struct operand *operand, const void *data, double *out)
{
    for (int64_t i = 0; i < operand->count; ++i) {
        out[i] = value_at(data, operand->type, logical_offset(operand, i));
    }
}

double type_epsilon(cudnnDataType_t type)
{
    switch (type) {
    case CUDNN_DATA_DOUBLE: return 0x1p-53;
    case CUDNN_DATA_FLOAT: return 0x1p-24;
    case CUDNN_DATA_HALF: return 0x1p-11;
    case CUDNN_DATA_BFLOAT16: return 0x1p-8;
    default: return 0.0;
    }
}

/* A block of random values on the device, made once for a type and range and kept for a while. */
static const char *template_of(cudnnDataType_t type, double low, double high)
{
    static struct template
    {
        cudnnDataType_t type;
        double low, high;
        void *data;
    }
    made[TEMPLATES_MAX];
    static int count;
    struct template *it = &made[count % TEMPLATES_MAX]; /* the oldest makes room */
    uint64_t seed = bench_options.seed ^ (uint64_t)type << 32;
    size_t bytes = BLOCK * type_bytes(type);
    char *host;
    for (int i = 0; i < TEMPLATES_MAX && made[i].data; ++i) {
        if (made[i].type == type && made[i].low == low && made[i].high == high) return made[i].data;
    }
    host = malloc(bytes);
    if (!host) {
        fprintf(stderr, "no memory for random values\n");
        exit(EXIT_CANNOT_RUN);
    }
    for (int64_t i = 0; i < BLOCK; ++i) {
        double unit = (double)(random_next(&seed) >> 11) * 0x1p-53;
        value_store(host, type, i, low + (high - low) * unit);
    }
    device_sync(); /* copies from the one that goes */
    device_free(it->data);
    *it = (struct template){type, low, high, device_alloc(bytes)};
    device_upload(it->data, host, bytes);
    free(host);
    count += 1;
    return it->data;
}

void values_fill(const struct operand *operand, void *at, unsigned which)
{
    size_t element = type_bytes(operand->type);
    size_t block = BLOCK * element;
    size_t first = (size_t)which * 40503u % BLOCK * element;
    const char *from = template_of(operand->type, operand->low, operand->high);
    size_t done = 0;
    while (done < operand->bytes) {
        size_t bytes = block - first;
        if (bytes > operand->bytes - done) bytes = operand->bytes - done;
        device_copy((char *)at + done, from + first, bytes);
        done += bytes;
        first = 0;
        /* a large tensor doubles from itself, in fewer and larger copies */
        if (done >= 8 * block && done <= operand->bytes / 2) {
            device_copy((char *)at + done, at, done);
            done *= 2;
        }
    }
}
