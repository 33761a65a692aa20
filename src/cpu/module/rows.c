/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads and stores of rows: a vectorised loop for each common type, element by element through
 * base/dtype.h for the others. */
#include "cpu/module/rows.h"

#include <string.h>

#include "base/dtype.h"
#include "cpu/module/simd.h"

bool wd_row_takes(int dtype)
{
    return wd_dtype_bits(dtype) >= 8 && dtype != CUDNN_DATA_COMPLEX_FP32 &&
           dtype != CUDNN_DATA_COMPLEX_FP64;
}

/* A half's bits moved into single precision are 2^112 too small; subnormals come out right by the
 * same product, infinities and NaN need their exponent set. */
static inline float half_to_float(uint16_t half)
{
    uint32_t bits = (uint32_t)(half & 0x7fffu) << 13;
    uint32_t special = (half & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
    uint32_t scaled = WD_FLOAT_TO_BITS(WD_BITS_TO_FLOAT(bits) * 0x1p112f);
    return WD_BITS_TO_FLOAT(scaled | special | (uint32_t)(half & 0x8000u) << 16);
}

/* Rounds to nearest even: in the integers for normal results, by an addition whose unit in the last
 * place is the half's for subnormal ones. */
static inline uint16_t float_to_half(float value)
{
    uint32_t bits = WD_FLOAT_TO_BITS(value);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    uint32_t small = WD_FLOAT_TO_BITS(WD_BITS_TO_FLOAT(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t code = magnitude < 0x38800000u ? small : magnitude < 0x477ff000u ? normal : 0x7c00u;
    code = magnitude > 0x7f800000u ? 0x7e00u : code;
    return (uint16_t)(code | (bits >> 16 & 0x8000u));
}

static inline uint16_t float_to_bfloat16(float value)
{
    uint32_t bits = WD_FLOAT_TO_BITS(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    uint32_t nan = (bits >> 16 & 0x8000u) | 0x7fc0u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

WD_SIMD static void load_float(float *restrict to, const float *restrict from, int64_t stride,
                               int64_t n)
{
    if (stride == 2) {
        for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
        return;
    }
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}

WD_SIMD static void load_half(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) to[i] = half_to_float(from[i]);
}

WD_SIMD static void load_bfloat16(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) to[i] = WD_BITS_TO_FLOAT((uint32_t)from[i] << 16);
}

WD_SIMD static void load_float_as_double(double *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) to[i] = (double)from[i];
}

WD_SIMD static void load_int8_as_double(double *restrict to, const int8_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) to[i] = (double)from[i];
}

WD_SIMD static void store_half(uint16_t *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) to[i] = float_to_half(from[i]);
}

WD_SIMD static void store_bfloat16(uint16_t *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) to[i] = float_to_bfloat16(from[i]);
}

void wd_row_load_f32(float *to, const void *from, int dtype, int64_t offset, int64_t stride,
                     int64_t n)
{
    if (dtype == CUDNN_DATA_FLOAT) {
        const float *first = (const float *)from + offset;
        if (stride == 1) memcpy(to, first, (size_t)n * sizeof *to);
        else load_float(to, first, stride, n);
    } else if (dtype == CUDNN_DATA_HALF && stride == 1) {
        load_half(to, (const uint16_t *)from + offset, n);
    } else if (dtype == CUDNN_DATA_BFLOAT16 && stride == 1) {
        load_bfloat16(to, (const uint16_t *)from + offset, n);
    } else {
        for (int64_t i = 0; i < n; ++i) to[i] = wd_load_f32(from, dtype, offset + i * stride);
    }
}

void wd_row_load_f64(double *to, const void *from, int dtype, int64_t offset, int64_t stride,
                     int64_t n)
{
    if (dtype == CUDNN_DATA_DOUBLE && stride == 1) {
        memcpy(to, (const double *)from + offset, (size_t)n * sizeof *to);
    } else if (dtype == CUDNN_DATA_FLOAT && stride == 1) {
        load_float_as_double(to, (const float *)from + offset, n);
    } else if (dtype == CUDNN_DATA_INT8 && stride == 1) {
        load_int8_as_double(to, (const int8_t *)from + offset, n);
    } else {
        for (int64_t i = 0; i < n; ++i) to[i] = wd_load_f64(from, dtype, offset + i * stride);
    }
}

void wd_row_store_f32(void *to, int dtype, int64_t offset, int64_t stride, const float *from,
                      int64_t n)
{
    if (dtype == CUDNN_DATA_FLOAT) {
        float *first = (float *)to + offset;
        if (stride == 1) memcpy(first, from, (size_t)n * sizeof *from);
        else
            for (int64_t i = 0; i < n; ++i) first[i * stride] = from[i];
    } else if (dtype == CUDNN_DATA_HALF && stride == 1) {
        store_half((uint16_t *)to + offset, from, n);
    } else if (dtype == CUDNN_DATA_BFLOAT16 && stride == 1) {
        store_bfloat16((uint16_t *)to + offset, from, n);
    } else {
        for (int64_t i = 0; i < n; ++i) wd_store_f32(to, dtype, offset + i * stride, from[i]);
    }
}

void wd_row_store_f64(void *to, int dtype, int64_t offset, int64_t stride, const double *from,
                      int64_t n)
{
    if (dtype == CUDNN_DATA_DOUBLE && stride == 1) {
        memcpy((double *)to + offset, from, (size_t)n * sizeof *from);
    } else {
        for (int64_t i = 0; i < n; ++i) wd_store_f64(to, dtype, offset + i * stride, from[i]);
    }
}
