/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of the types of tensors as the harness reads and writes them, by conversions of its own. */
#include <math.h>
#include <string.h>

#include "support/harness_internal.h"

int element_bytes(cudnnDataType_t dtype)
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

/* fp16: sign, 5 bits of exponent, 10 of mantissa; fp64 has 52, and a bias larger by 1008. */
enum {
    HALF_SUBNORMAL = 1 << 10,
    HALF_INFINITE = 31 << 10,
    HALF_TO_DOUBLE = 1008,
    HALF_CUT = 52 - 10
};

static double half_value(uint16_t bits)
{
    uint64_t magnitude = bits & 0x7fff;
    double v;
    if (magnitude > HALF_INFINITE) return NAN;
    if (magnitude == HALF_INFINITE) {
        v = INFINITY;
    } else if (magnitude < HALF_SUBNORMAL) {
        v = (double)magnitude * 0x1p-24;
    } else {
        magnitude = (magnitude << HALF_CUT) + ((uint64_t)HALF_TO_DOUBLE << 52);
        memcpy(&v, &magnitude, sizeof v);
    }
    return bits >> 15 ? -v : v;
}

/* To the nearest, ties to even: a carry out of the mantissa is the next exponent, infinity at last. */
static uint16_t half_bits(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    uint64_t bits;
    if (value != value) return 0x7fff;
    if (magnitude < 0x1p-14) return (uint16_t)(sign | (uint16_t)nearbyint(magnitude * 0x1p24));
    if (magnitude >= 0x1p16) return (uint16_t)(sign | HALF_INFINITE);
    memcpy(&bits, &magnitude, sizeof bits);
    bits += ((uint64_t)1 << (HALF_CUT - 1)) - 1 + (bits >> HALF_CUT & 1);
    return (uint16_t)(sign | ((bits >> HALF_CUT) - ((uint64_t)HALF_TO_DOUBLE << 10)));
}

static inline double load(cudnnDataType_t dtype, const void *at)
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

static inline void store(cudnnDataType_t dtype, void *at, double value)
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

void elements_load(cudnnDataType_t dtype, const unsigned char *from, const int64_t *places,
                   int64_t count, double *value)
{
    int bytes = element_bytes(dtype);
    for (int64_t i = 0; i < count; ++i) {
        value[i] = load(dtype, from + (places ? places[i] : i * bytes));
    }
}

void elements_store(cudnnDataType_t dtype, unsigned char *to, const int64_t *places, int64_t count,
                    const double *value)
{
    int bytes = element_bytes(dtype);
    for (int64_t i = 0; i < count; ++i) {
        store(dtype, to + (places ? places[i] : i * bytes), value[i]);
    }
}

bool element_is_integer(cudnnDataType_t dtype)
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
