/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types in memory and as doubles, and the hash that makes every input from names alone,
 * so that the library that was recorded and the one that is compared see the same numbers.
 */
#include "golden.h"

#include <math.h>
#include <string.h>

static const struct {
    cudnnDataType_t type;
    const char *name;
    int size;
    double roundoff;
} types[] = {
    {CUDNN_DATA_FLOAT, "f32", 4, 0x1p-24},
    {CUDNN_DATA_DOUBLE, "f64", 8, 0x1p-53},
    {CUDNN_DATA_HALF, "f16", 2, 0x1p-11},
    {CUDNN_DATA_BFLOAT16, "bf16", 2, 0x1p-8},
    {CUDNN_DATA_INT8, "i8", 1, 0},
    {CUDNN_DATA_UINT8, "u8", 1, 0},
    {CUDNN_DATA_INT32, "i32", 4, 0},
    {CUDNN_DATA_INT64, "i64", 8, 0},
    {CUDNN_DATA_BOOLEAN, "bool", 1, 0},
    {CUDNN_DATA_INT8x4, "i8x4", 1, 0},
    {CUDNN_DATA_UINT8x4, "u8x4", 1, 0},
    {CUDNN_DATA_INT8x32, "i8x32", 1, 0},
    {CUDNN_DATA_UINT32, "u32", 4, 0},
    {CUDNN_DATA_FP8_E4M3, "e4m3", 1, 0x1p-4},
    {CUDNN_DATA_FP8_E5M2, "e5m2", 1, 0x1p-3},
};

static int find(cudnnDataType_t type)
{
    for (int i = 0; i < GD_COUNT(types); i++)
        if (types[i].type == type) return i;
    return -1;
}

size_t gd_elsize(cudnnDataType_t type)
{
    int i = find(type);
    return i < 0 ? 1 : (size_t)types[i].size;
}

const char *gd_type_name(cudnnDataType_t type)
{
    int i = find(type);
    return i < 0 ? "type" : types[i].name;
}

double gd_roundoff(cudnnDataType_t type)
{
    int i = find(type);
    return i < 0 ? 0 : types[i].roundoff;
}

static double half_to_double(uint16_t h)
{
    int sign = h >> 15, exponent = h >> 10 & 31, fraction = h & 1023;
    double v;
    if (exponent == 31) v = fraction ? NAN : INFINITY;
    else v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return sign ? -v : v;
}

/* Round to nearest even: a double holds every half exactly, so nearbyint on the scaled value does
 * the rounding in one step, denormals included. */
static uint16_t double_to_half(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    double a = fabs(v);
    if (isnan(v)) return 0x7fff;
    if (a >= 65520.0) return sign | 0x7c00;
    if (a == 0) return sign;
    int e;
    frexp(a, &e);
    int exponent = e - 1 < -14 ? -14 : e - 1;
    double steps = nearbyint(ldexp(a, 10 - exponent));
    return (uint16_t)(sign | (uint16_t)((exponent + 14) * 1024 + (int)steps));
}

static double bf16_to_double(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static uint16_t double_to_bf16(double v)
{
    float f = (float)v;
    uint32_t bits;
    if (isnan(v)) return 0x7fff;
    memcpy(&bits, &f, 4);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double gd_get(cudnnDataType_t type, const void *p)
{
    union {
        float f;
        double d;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        int8_t i8;
        uint8_t u8;
    } v;
    memcpy(&v, p, gd_elsize(type));
    switch (type) {
    case CUDNN_DATA_FLOAT: return v.f;
    case CUDNN_DATA_DOUBLE: return v.d;
    case CUDNN_DATA_HALF: return half_to_double(v.u16);
    case CUDNN_DATA_BFLOAT16: return bf16_to_double(v.u16);
    case CUDNN_DATA_INT32: return v.i32;
    case CUDNN_DATA_UINT32: return v.u32;
    case CUDNN_DATA_INT64: return (double)v.i64;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_INT8x32: return v.i8;
    default: return v.u8;
    }
}

void gd_put(cudnnDataType_t type, void *p, double v)
{
    switch (type) {
    case CUDNN_DATA_FLOAT: memcpy(p, &(float){(float)v}, 4); break;
    case CUDNN_DATA_DOUBLE: memcpy(p, &v, 8); break;
    case CUDNN_DATA_HALF: memcpy(p, &(uint16_t){double_to_half(v)}, 2); break;
    case CUDNN_DATA_BFLOAT16: memcpy(p, &(uint16_t){double_to_bf16(v)}, 2); break;
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_UINT32: memcpy(p, &(int32_t){(int32_t)v}, 4); break;
    case CUDNN_DATA_INT64: memcpy(p, &(int64_t){(int64_t)v}, 8); break;
    default: *(uint8_t *)p = (uint8_t)(int)v; break;
    }
}

uint64_t gd_mix(uint64_t h, uint64_t index)
{
    uint64_t z = h + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t gd_hash(const char *a, const char *b)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *a; a++) h = (h ^ (unsigned char)*a) * 0x100000001b3u;
    h = (h ^ '#') * 0x100000001b3u;
    for (; *b; b++) h = (h ^ (unsigned char)*b) * 0x100000001b3u;
    return gd_mix(h, 0);
}
