/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of matrix products, see matmul_case.h. One thread. */
#include "matmul_case.h"

#include <math.h>
#include <string.h>

/* A floating format of at most 8 bits: the test's own, for the harness knows none. */
static const struct small {
    int dtype;
    int bits;
    int mantissa;
    int bias;
    int specials; /* of the highest exponent: 0 none, 1 NaN in the last code alone, 2 as IEEE */
} small[] = {
    {CUDNN_DATA_FP8_E4M3, 8, 3, 7, 1},
    {CUDNN_DATA_FP8_E5M2, 8, 2, 15, 2},
    {CUDNN_DATA_FP4_E2M1, 4, 1, 1, 0},
};

static const struct small *small_of(int dtype)
{
    for (size_t i = 0; i < sizeof small / sizeof small[0]; ++i) {
        if (small[i].dtype == dtype) return &small[i];
    }
    return NULL;
}

static double small_value(const struct small *s, int code)
{
    int top = (1 << (s->bits - 1 - s->mantissa)) - 1;
    int exponent = code >> s->mantissa & top;
    int mantissa = code & ((1 << s->mantissa) - 1);
    double magnitude;
    if (s->specials == 1 && exponent == top && mantissa == (1 << s->mantissa) - 1) return NAN;
    if (s->specials == 2 && exponent == top) magnitude = mantissa ? NAN : INFINITY;
    else if (exponent == 0) magnitude = ldexp(mantissa, 1 - s->bias - s->mantissa);
    else magnitude = ldexp((1 << s->mantissa) + mantissa, exponent - s->bias - s->mantissa);
    return code >> (s->bits - 1) ? -magnitude : magnitude;
}

bool dtype_is_integer(int dtype)
{
    return dtype == CUDNN_DATA_INT8 || dtype == CUDNN_DATA_UINT8 || dtype == CUDNN_DATA_INT32 ||
           dtype == CUDNN_DATA_INT64;
}

const char *dtype_name(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return "fp32";
    case CUDNN_DATA_DOUBLE: return "fp64";
    case CUDNN_DATA_HALF: return "fp16";
    case CUDNN_DATA_BFLOAT16: return "bf16";
    case CUDNN_DATA_FP8_E4M3: return "e4m3";
    case CUDNN_DATA_FP8_E5M2: return "e5m2";
    case CUDNN_DATA_FP4_E2M1: return "e2m1";
    case CUDNN_DATA_INT8: return "int8";
    case CUDNN_DATA_UINT8: return "uint8";
    case CUDNN_DATA_INT32: return "int32";
    default: return "int64";
    }
}

void operand_split(const struct operand *t, int64_t index, int *at)
{
    for (int d = t->rank - 1; d >= 0; --d) {
        at[d] = (int)(index % t->dim[d]);
        index /= t->dim[d];
    }
}

/* Where an element lies in whole->value. */
static int64_t place(const struct operand *t, const int *at)
{
    int inside[8];
    int64_t index = 0;
    if (t->dtype == CUDNN_DATA_FP4_E2M1) {
        for (int d = 0; d < t->rank; ++d) index += at[d] * t->stride[d];
        return index / 2;
    }
    for (int d = 0; d < t->rank; ++d) inside[d] = at[t->order[d]];
    return logical_index(t->whole, inside);
}

double operand_read(const struct operand *t, const int *at)
{
    double stored = t->whole->value[place(t, at)];
    int64_t linear = 0;
    if (!small_of(t->dtype)) return stored;
    if (t->dtype != CUDNN_DATA_FP4_E2M1) return small_value(small_of(t->dtype), (int)stored);
    for (int d = 0; d < t->rank; ++d) linear += at[d] * t->stride[d];
    return small_value(small_of(t->dtype), (int)stored >> (linear % 2 * 4) & 15);
}

void operand_write(struct operand *t, const int *at, double value)
{
    const struct small *s = small_of(t->dtype);
    int code = 0;
    for (; s && code < 255; ++code) {
        double v = small_value(s, code);
        if (v == value || (v != v && value != value)) break;
    }
    t->whole->value[place(t, at)] = s ? code : value;
}

void operand_make(struct operand *t, int dtype, int rank, const int *dim, bool output, bool plain)
{
    const struct small *s = small_of(dtype);
    cudnnDataType_t stored = s ? CUDNN_DATA_UINT8 : (cudnnDataType_t)dtype;
    enum layout layout;
    double low, high;
    int extent[8];
    *t = (struct operand){.dtype = dtype, .rank = rank, .count = 1};
    for (int d = 0; d < rank; ++d) {
        t->dim[d] = dim[d];
        t->count *= dim[d];
        t->order[d] = d;
    }
    /* transposed, or in any order */
    if (!plain && random_chance(0.4)) {
        t->order[rank - 2] = rank - 1;
        t->order[rank - 1] = rank - 2;
    }
    for (int d = rank - 1; !plain && random_chance(0.3) && d > 0; --d) {
        int other = (int)random_int(0, d);
        int keep = t->order[d];
        t->order[d] = t->order[other];
        t->order[other] = keep;
    }
    if (dtype == CUDNN_DATA_FP4_E2M1) {
        int64_t next = 1;
        int bytes[3] = {1, 1, (int)((t->count + 1) / 2)};
        for (int d = rank - 1; d >= 0; --d) {
            t->stride[t->order[d]] = next;
            next *= dim[t->order[d]];
        }
        t->whole = tensor_input(CUDNN_DATA_UINT8, 3, bytes, LAYOUT_NCHW, 0.0, 255.0);
        return;
    }
    for (int d = 0; d < rank; ++d) {
        extent[d] = dim[t->order[d]] + (!plain && random_chance(0.3) ? (int)random_int(1, 2) : 0);
    }
    layout = plain || random_chance(0.6) ? LAYOUT_NCHW : LAYOUT_GAPS;
    low = s || dtype == CUDNN_DATA_UINT8 ? 0.0 : dtype_is_integer(dtype) ? -20.0 : -1.0;
    high = s ? 255.0 : dtype_is_integer(dtype) ? 20.0 : 1.0;
    t->whole = output ? tensor_inout(stored, rank, extent, layout, low, high)
                      : tensor_input(stored, rank, extent, layout, low, high);
    for (int d = 0; d < rank; ++d) t->stride[t->order[d]] = t->whole->stride[d];
    /* codes of small values, so that no sum leaves the range of its type */
    for (int64_t i = 0; s && i < t->whole->count; ++i) {
        while (!(fabs(small_value(s, (int)t->whole->value[i])) <= 2.0)) {
            t->whole->value[i] = (double)random_int(0, 255);
        }
    }
    for (int64_t i = 0; output && !dtype_is_integer(dtype) && i < t->count; ++i) {
        int at[8];
        operand_split(t, i, at);
        operand_write(t, at, NAN);
    }
    tensor_write(t->whole);
}

double dtype_limit(int dtype)
{
    const struct small *s = small_of(dtype);
    double most = 0.0;
    for (int code = 0; s && code < 1 << (s->bits - 1); ++code) {
        double v = small_value(s, code);
        if (isfinite(v) && v > most) most = v;
    }
    return s ? most : INFINITY;
}

double dtype_rounding(int dtype, double value)
{
    const struct small *s = small_of(dtype);
    if (dtype_is_integer(dtype)) return 0.5;
    if (s) return fabs(value) * ldexp(1.0, -s->mantissa - 1) + ldexp(1.0, -s->bias - s->mantissa);
    return fabs(value) * tensor_epsilon((cudnnDataType_t)dtype) +
           (dtype == CUDNN_DATA_HALF     ? 0x1p-25
            : dtype == CUDNN_DATA_DOUBLE ? 0.0
                                         : 0x1p-133);
}

void operand_check_rest(const struct operand *t, double *before)
{
    for (int64_t i = 0; i < t->count; ++i) {
        int at[8];
        operand_split(t, i, at);
        before[place(t, at)] = t->whole->value[place(t, at)];
    }
    for (int64_t i = 0; i < t->whole->count; ++i) {
        double now = t->whole->value[i];
        if (now == before[i] || (now != now && before[i] != before[i])) continue;
        case_fail("an element beside the output became %g from %g", now, before[i]);
        return;
    }
}
