/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types: sizes, and loads and stores that convert. One run-time switch a load or store;
 * the conversions are exact on the way in and round to nearest even (saturating for integers and
 * fp8) on the way out. Compiled by the C compiler and by nvcc, with equal results. */
#ifndef WD_BASE_DTYPE_H
#define WD_BASE_DTYPE_H

#include "base/shared.h"
#include "cudnn.h"

#if WD_ON_DEVICE
#define WD_BITS_TO_FLOAT(u) __uint_as_float(u)
#define WD_FLOAT_TO_BITS(f) __float_as_uint(f)
#define WD_BITS_TO_DOUBLE(u) __longlong_as_double((long long)(u))
#define WD_DOUBLE_TO_BITS(f) ((uint64_t)__double_as_longlong(f))
#else
#include <math.h>
#include <string.h>
static inline float WD_BITS_TO_FLOAT(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint32_t WD_FLOAT_TO_BITS(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline double WD_BITS_TO_DOUBLE(uint64_t u)
{
    double f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint64_t WD_DOUBLE_TO_BITS(double f)
{
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
#endif

/* Bits that one element takes (booleans are single bits); 0 for a type that does not exist. The vectorised legacy types
 * (INT8x4, UINT8x4, INT8x32) count one lane: see wd_dtype_lanes. */
WD_FN int wd_dtype_bits(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_BOOLEAN: return 1;
    case CUDNN_DATA_INT4:
    case CUDNN_DATA_UINT4:
    case CUDNN_DATA_FP4_E2M1: return 4;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_UINT8x4:
    case CUDNN_DATA_INT8x32:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
    case CUDNN_DATA_FP8_E8M0: return 8;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return 16;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_FAST_FLOAT_FOR_FP8:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_UINT32: return 32;
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
    case CUDNN_DATA_COMPLEX_FP32: return 64;
    case CUDNN_DATA_COMPLEX_FP64: return 128;
    default: return 0;
    }
}

/* Elements that one addressable unit of a vectorised type holds: 4, 32, else 1. */
WD_FN int wd_dtype_lanes(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_UINT8x4: return 4;
    case CUDNN_DATA_INT8x32: return 32;
    default: return 1;
    }
}

/* The type of one lane. */
WD_FN int wd_dtype_lane(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_INT8x32: return CUDNN_DATA_INT8;
    case CUDNN_DATA_UINT8x4: return CUDNN_DATA_UINT8;
    default: return dtype;
    }
}

WD_FN int wd_dtype_is_integer(int dtype)
{
    switch (wd_dtype_lane(dtype)) {
    case CUDNN_DATA_INT4:
    case CUDNN_DATA_UINT4:
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_UINT32:
    case CUDNN_DATA_INT64:
    case CUDNN_DATA_BOOLEAN: return 1;
    default: return 0;
    }
}

/* Whether single precision cannot hold every value of the type, so that double has to accumulate. */
WD_FN int wd_dtype_is_wide(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_UINT32:
    case CUDNN_DATA_INT64: return 1;
    default: return 0;
    }
}

/* A small binary format with `ebits` of exponent and `mbits` of mantissa below a sign bit, IEEE
 * rules for subnormals. `finite` 1: no infinity, and NaN only as the last code; 2: neither. */
WD_FN float wd_decode_small(uint32_t code, int ebits, int mbits, int finite)
{
    uint32_t sign = (code >> (ebits + mbits)) & 1u;
    uint32_t exponent = (code >> mbits) & ((1u << ebits) - 1u);
    uint32_t mantissa = code & ((1u << mbits) - 1u);
    uint32_t top = (1u << ebits) - 1u;
    int bias = (1 << (ebits - 1)) - 1;
    if (exponent == top && (finite == 0 || (finite == 1 && mantissa == (1u << mbits) - 1u))) {
        return WD_BITS_TO_FLOAT((sign << 31) | 0x7f800000u | (mantissa << (23 - mbits)));
    }
    if (exponent == 0) {
        /* mantissa * 2^(1 - bias - mbits), exact in single precision for these formats */
        float unit = WD_BITS_TO_FLOAT((uint32_t)(127 + 1 - bias - mbits) << 23);
        float value = (float)mantissa * unit;
        return sign ? -value : value;
    }
    return WD_BITS_TO_FLOAT((sign << 31) | ((exponent - (uint32_t)bias + 127u) << 23) |
                            (mantissa << (23 - mbits)));
}

/* Rounds to nearest even. Beyond the range: infinity, or for `finite` formats and where `saturate`
 * is set the largest finite value. NaN stays NaN. */
WD_FN uint32_t wd_encode_small(float value, int ebits, int mbits, int finite, int saturate)
{
    uint32_t bits = WD_FLOAT_TO_BITS(value);
    uint32_t sign = (bits >> 31) << (ebits + mbits);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t top = (1u << ebits) - 1u;
    int bias = (1 << (ebits - 1)) - 1;
    uint32_t infinity = top << mbits;
    uint32_t nan = finite ? infinity | ((1u << mbits) - 1u) : infinity | (1u << (mbits - 1));
    uint32_t largest = finite == 2 ? nan : finite ? nan - 1u : infinity - 1u;
    int exponent;
    int shift;
    uint32_t mantissa;
    uint32_t code;
    if (magnitude > 0x7f800000u) return sign | nan;
    if (magnitude == 0x7f800000u) return sign | (finite || saturate ? largest : infinity);
    if (magnitude == 0) return sign;
    exponent = (int)(magnitude >> 23) - 127;
    mantissa = magnitude & 0x7fffffu;
    if (exponent == -127) exponent = -126;
    else mantissa |= 0x800000u;
    shift = 23 - mbits;
    if (exponent < 1 - bias) shift += 1 - bias - exponent;
    if (shift > 25) return sign;
    {
        uint32_t kept = mantissa >> shift;
        uint32_t rest = mantissa & ((1u << shift) - 1u);
        uint32_t half = 1u << (shift - 1);
        if (rest > half || (rest == half && (kept & 1u))) kept += 1;
        /* the hidden bit of a normal number adds one to the exponent field, as it should */
        code = exponent < 1 - bias ? kept : kept + ((uint32_t)(exponent + bias - 1) << mbits);
    }
    if (code > largest) return sign | (finite || saturate ? largest : infinity);
    return sign | code;
}

/* Double to single, rounded to odd: rounding the result again to fewer bits is then right. */
WD_FN float wd_round_odd(double value)
{
    float single = (float)value;
    uint32_t bits;
    double back = (double)single;
    if (back == value || value != value) return single;
    bits = WD_FLOAT_TO_BITS(single);
    if ((back > value) == (value > 0)) bits -= 1; /* toward zero */
    return WD_BITS_TO_FLOAT(bits | 1u);
}

WD_FN int64_t wd_saturate(double value, double low, double high)
{
    if (!(value == value)) return 0;
    if (value <= low) return (int64_t)low;
    if (value >= high) return high >= 9.2e18 ? INT64_MAX : (int64_t)high;
    return (int64_t)rint(value);
}

/* An element by type and index (in elements of one lane) as double; complex types load their real
 * part at index 2*i by the caller's arithmetic. */
WD_FN double wd_load_f64(const void *data, int dtype, int64_t i)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_FAST_FLOAT_FOR_FP8: return (double)((const float *)data)[i];
    case CUDNN_DATA_DOUBLE: return ((const double *)data)[i];
    case CUDNN_DATA_HALF: return (double)wd_decode_small(((const uint16_t *)data)[i], 5, 10, 0);
    case CUDNN_DATA_BFLOAT16:
        return (double)WD_BITS_TO_FLOAT((uint32_t)((const uint16_t *)data)[i] << 16);
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_INT8x32: return (double)((const int8_t *)data)[i];
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_UINT8x4: return (double)((const uint8_t *)data)[i];
    case CUDNN_DATA_BOOLEAN: return (double)(((const uint8_t *)data)[i >> 3] >> (i & 7) & 1);
    case CUDNN_DATA_INT32: return (double)((const int32_t *)data)[i];
    case CUDNN_DATA_UINT32: return (double)((const uint32_t *)data)[i];
    case CUDNN_DATA_INT64: return (double)((const int64_t *)data)[i];
    case CUDNN_DATA_FP8_E4M3: return (double)wd_decode_small(((const uint8_t *)data)[i], 4, 3, 1);
    case CUDNN_DATA_FP8_E5M2: return (double)wd_decode_small(((const uint8_t *)data)[i], 5, 2, 0);
    case CUDNN_DATA_FP8_E8M0: {
        uint32_t e = ((const uint8_t *)data)[i];
        if (e == 255u) return (double)WD_BITS_TO_FLOAT(0x7fc00000u);
        return (double)WD_BITS_TO_FLOAT(e == 0 ? 0x00400000u : e << 23);
    }
    case CUDNN_DATA_FP4_E2M1: {
        uint32_t byte = ((const uint8_t *)data)[i >> 1];
        return (double)wd_decode_small((byte >> ((i & 1) * 4)) & 15u, 2, 1, 2);
    }
    case CUDNN_DATA_INT4: {
        int code = (int)((((const uint8_t *)data)[i >> 1] >> ((i & 1) * 4)) & 15);
        return (double)(code >= 8 ? code - 16 : code);
    }
    case CUDNN_DATA_UINT4: return (double)((((const uint8_t *)data)[i >> 1] >> ((i & 1) * 4)) & 15);
    default: return 0.0;
    }
}

WD_FN float wd_load_f32(const void *data, int dtype, int64_t i)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return ((const float *)data)[i];
    case CUDNN_DATA_HALF: return wd_decode_small(((const uint16_t *)data)[i], 5, 10, 0);
    case CUDNN_DATA_BFLOAT16: return WD_BITS_TO_FLOAT((uint32_t)((const uint16_t *)data)[i] << 16);
    default: return (float)wd_load_f64(data, dtype, i);
    }
}

/* An element of 1 or 4 bits, the first of a byte lowest. Reads and writes the whole byte, so that
 * elements of one byte must be stored by one thread. */
WD_FN void wd_store_bits(void *data, int64_t i, int bits, uint32_t code)
{
    int in_byte = 8 / bits;
    int shift = (int)(i % in_byte) * bits;
    uint8_t *byte = (uint8_t *)data + i / in_byte;
    uint32_t mask = ((1u << bits) - 1u) << shift;
    *byte = (uint8_t)((*byte & ~mask) | (code << shift & mask));
}

WD_FN void wd_store_f32(void *data, int dtype, int64_t i, float value);

WD_FN void wd_store_f64(void *data, int dtype, int64_t i, double value)
{
    switch (dtype) {
    case CUDNN_DATA_DOUBLE: ((double *)data)[i] = value; return;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_FAST_FLOAT_FOR_FP8: ((float *)data)[i] = (float)value; return;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_INT8x32:
        ((int8_t *)data)[i] = (int8_t)wd_saturate(value, -128.0, 127.0);
        return;
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_UINT8x4: ((uint8_t *)data)[i] = (uint8_t)wd_saturate(value, 0.0, 255.0); return;
    case CUDNN_DATA_BOOLEAN: wd_store_bits(data, i, 1, value != 0.0); return;
    case CUDNN_DATA_INT32:
        ((int32_t *)data)[i] = (int32_t)wd_saturate(value, -2147483648.0, 2147483647.0);
        return;
    case CUDNN_DATA_UINT32:
        ((uint32_t *)data)[i] = (uint32_t)wd_saturate(value, 0.0, 4294967295.0);
        return;
    case CUDNN_DATA_INT64:
        ((int64_t *)data)[i] = wd_saturate(value, -9223372036854775808.0, 9223372036854775807.0);
        return;
    case CUDNN_DATA_INT4:
        wd_store_bits(data, i, 4, (uint32_t)wd_saturate(value, -8.0, 7.0) & 15u);
        return;
    case CUDNN_DATA_UINT4:
        wd_store_bits(data, i, 4, (uint32_t)wd_saturate(value, 0.0, 15.0));
        return;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
    case CUDNN_DATA_FP8_E8M0:
    case CUDNN_DATA_FP4_E2M1: wd_store_f32(data, dtype, i, wd_round_odd(value)); return;
    default: return; /* complex, or no type: not stored */
    }
}

WD_FN void wd_store_f32(void *data, int dtype, int64_t i, float value)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: ((float *)data)[i] = value; return;
    case CUDNN_DATA_HALF:
        ((uint16_t *)data)[i] = (uint16_t)wd_encode_small(value, 5, 10, 0, 0);
        return;
    case CUDNN_DATA_BFLOAT16:
        ((uint16_t *)data)[i] = (uint16_t)wd_encode_small(value, 8, 7, 0, 0);
        return;
    case CUDNN_DATA_FP8_E4M3:
        ((uint8_t *)data)[i] = (uint8_t)wd_encode_small(value, 4, 3, 1, 1);
        return;
    case CUDNN_DATA_FP8_E5M2:
        ((uint8_t *)data)[i] = (uint8_t)wd_encode_small(value, 5, 2, 0, 1);
        return;
    case CUDNN_DATA_FP8_E8M0: {
        /* a scale: the power of two at or above the value */
        uint32_t bits = WD_FLOAT_TO_BITS(value);
        uint32_t code = (bits >> 23) & 255u;
        if ((bits & 0x7fffffu) && code < 254u) code += 1;
        ((uint8_t *)data)[i] = (uint8_t)((bits & 0x7fffffffu) > 0x7f800000u ? 255u : code);
        return;
    }
    case CUDNN_DATA_FP4_E2M1: wd_store_bits(data, i, 4, wd_encode_small(value, 2, 1, 2, 1)); return;
    default: wd_store_f64(data, dtype, i, (double)value); return;
    }
}

#endif
