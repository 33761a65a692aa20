/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores that bypass the caches, in whole lines; what is left at either end of a piece is stored
 * plainly. Where the machine has no such stores they are plain ones. */
#include "cpu/module/stream.h"

#include <string.h>

#include "base/dtype.h"
#include "cpu/module/isa.h"
#include "cpu/module/rows.h"

#if defined(__x86_64__)

__attribute__((target("avx512f"))) static void lines_512(char *to, const char *from, size_t lines)
{
    for (size_t i = 0; i < lines; ++i) wd_stream_line_512(to + i * WD_LINE, from + i * WD_LINE);
}

__attribute__((target("avx2"))) static void lines_256(char *to, const char *from, size_t lines)
{
    for (size_t i = 0; i < lines; ++i) wd_stream_line_256(to + i * WD_LINE, from + i * WD_LINE);
}

static void lines_128(char *to, const char *from, size_t lines)
{
    for (size_t i = 0; i < lines; ++i) wd_stream_line_128(to + i * WD_LINE, from + i * WD_LINE);
}

static void stream_lines(char *to, const char *from, size_t lines)
{
    switch (wd_isa()) {
    case WD_ISA_AVX512: lines_512(to, from, lines); return;
    case WD_ISA_AVX2: lines_256(to, from, lines); return;
    default: lines_128(to, from, lines); return;
    }
}

void wd_stream_fence(void)
{
    _mm_sfence();
}

#else

static void stream_lines(char *to, const char *from, size_t lines)
{
    memcpy(to, from, lines * WD_LINE);
}

void wd_stream_fence(void)
{
}

#endif

void wd_stream(void *to, const void *from, size_t bytes)
{
    char *out = to;
    const char *in = from;
    size_t head = (size_t)(-(uintptr_t)out & (WD_LINE - 1));
    size_t lines;
    if (head > bytes) head = bytes;
    lines = (bytes - head) / WD_LINE;
    if (head) memcpy(out, in, head);
    stream_lines(out + head, in + head, lines);
    head += lines * WD_LINE;
    if (head < bytes) memcpy(out + head, in + head, bytes - head);
}

const float *wd_block_load_f32(const void *data, int dtype, int64_t offset, int64_t n,
                               float *buffer)
{
    if (dtype == CUDNN_DATA_FLOAT) return (const float *)data + offset;
    wd_row_load_f32(buffer, data, dtype, offset, 1, n);
    return buffer;
}

const double *wd_block_load_f64(const void *data, int dtype, int64_t offset, int64_t n,
                                double *buffer)
{
    if (dtype == CUDNN_DATA_DOUBLE) return (const double *)data + offset;
    wd_row_load_f64(buffer, data, dtype, offset, 1, n);
    return buffer;
}

const float *wd_block_fetch_f32(const void *data, int dtype, int64_t offset, int64_t n,
                                float *buffer, float pad)
{
    int64_t whole = wd_strips(n);
    if (dtype == CUDNN_DATA_FLOAT && n == whole) return (const float *)data + offset;
    wd_row_load_f32(buffer, data, dtype, offset, 1, n);
    for (int64_t i = n; i < whole; ++i) buffer[i] = pad;
    return buffer;
}

const double *wd_block_fetch_f64(const void *data, int dtype, int64_t offset, int64_t n,
                                 double *buffer, double pad)
{
    int64_t whole = wd_strips(n);
    if (dtype == CUDNN_DATA_DOUBLE && n == whole) return (const double *)data + offset;
    wd_row_load_f64(buffer, data, dtype, offset, 1, n);
    for (int64_t i = n; i < whole; ++i) buffer[i] = pad;
    return buffer;
}

float *wd_block_place_f32(void *data, int dtype, int64_t offset, int64_t n, bool stream,
                          float *buffer)
{
    float *there = (float *)data + offset;
    if (dtype != CUDNN_DATA_FLOAT || n != wd_strips(n)) return buffer;
    return stream && (uintptr_t)there % WD_LINE != 0 ? buffer : there;
}

double *wd_block_place_f64(void *data, int dtype, int64_t offset, int64_t n, bool stream,
                           double *buffer)
{
    double *there = (double *)data + offset;
    if (dtype != CUDNN_DATA_DOUBLE || n != wd_strips(n)) return buffer;
    return stream && (uintptr_t)there % WD_LINE != 0 ? buffer : there;
}

void wd_block_store_f32(void *data, int dtype, int64_t offset, int64_t n, const float *from,
                        bool stream)
{
    if (!stream) {
        wd_row_store_f32(data, dtype, offset, 1, from, n);
    } else if (dtype == CUDNN_DATA_FLOAT) {
        wd_stream((float *)data + offset, from, (size_t)n * sizeof *from);
    } else {
        _Alignas(WD_LINE) unsigned char packed[WD_BLOCK * 8];
        int64_t bytes = wd_dtype_bits(dtype) / 8;
        wd_row_store_f32(packed, dtype, 0, 1, from, n);
        wd_stream((char *)data + offset * bytes, packed, (size_t)(n * bytes));
    }
}

void wd_block_store_f64(void *data, int dtype, int64_t offset, int64_t n, const double *from,
                        bool stream)
{
    if (!stream) {
        wd_row_store_f64(data, dtype, offset, 1, from, n);
    } else if (dtype == CUDNN_DATA_DOUBLE) {
        wd_stream((double *)data + offset, from, (size_t)n * sizeof *from);
    } else {
        _Alignas(WD_LINE) unsigned char packed[WD_BLOCK * 8];
        int64_t bytes = wd_dtype_bits(dtype) / 8;
        wd_row_store_f64(packed, dtype, 0, 1, from, n);
        wd_stream((char *)data + offset * bytes, packed, (size_t)(n * bytes));
    }
}
