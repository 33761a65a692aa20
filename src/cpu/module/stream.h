/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of packed tensors on their way between memory and arithmetic. Loops work on blocks of up to
 * WD_BLOCK elements, which stay in the first cache: a block is read where it lies, or converted into
 * a buffer; results go out at once or are made in a buffer first. Large outputs bypass the caches,
 * for a plain store would first read the line that it overwrites: measured, a copy is 1.5 times as
 * fast so. Stateless. */
#ifndef WD_CPU_MODULE_STREAM_H
#define WD_CPU_MODULE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    WD_BLOCK = 1024, /* elements */
    WD_STRIP = 64,   /* elements; blocks of loops are whole strips */
    WD_LINE = 64,    /* bytes */
    /* How far ahead of the arithmetic memory is asked for. Measured on a copy: nothing to gain below
     * 2 KiB, nothing more beyond 8. */
    WD_AHEAD = 8192,
    /* Outputs from this size on bypass the caches: they would push out what is still needed, and be
     * gone before they are read. */
    WD_STREAM_BYTES = 4 << 20,
};

/* n rounded up to whole strips. */
static inline int64_t wd_strips(int64_t n)
{
    return (n + WD_STRIP - 1) / WD_STRIP * WD_STRIP;
}

/* Asks for `lines` lines from an address on, which may lie beyond any object, into the second
 * cache: the first one's few outstanding requests would hold the arithmetic up. */
static inline __attribute__((always_inline)) void wd_ahead(uintptr_t from, int64_t lines)
{
    for (int64_t i = 0; i < lines; ++i) {
        __builtin_prefetch((const void *)(from + (uintptr_t)(i * WD_LINE)), 0, 2);
    }
}

/* Copies past the caches. A task that has streamed ends with wd_stream_fence. */
void wd_stream(void *to, const void *from, size_t bytes);
void wd_stream_fence(void);

/* Elements [offset, offset + n) of a packed tensor as float or double: in place where that is their
 * type, else in `buffer` (of WD_BLOCK elements). */
const float *wd_block_load_f32(const void *data, int dtype, int64_t offset, int64_t n,
                               float *buffer);
const double *wd_block_load_f64(const void *data, int dtype, int64_t offset, int64_t n,
                                double *buffer);

/* The same, n up to WD_BLOCK, filled up
 * with `pad` to whole strips: in place where there is nothing to fill. */
const float *wd_block_fetch_f32(const void *data, int dtype, int64_t offset, int64_t n,
                                float *buffer, float pad);
const double *wd_block_fetch_f64(const void *data, int dtype, int64_t offset, int64_t n,
                                 double *buffer, double pad);

/* Where loops put elements [offset, offset + n) of a packed output: there, past the caches if
 * `stream`, or where that cannot be (another type, no whole strips, no alignment) in `buffer`, from
 * which wd_block_store then takes them. */
float *wd_block_place_f32(void *data, int dtype, int64_t offset, int64_t n, bool stream,
                          float *buffer);
double *wd_block_place_f64(void *data, int dtype, int64_t offset, int64_t n, bool stream,
                           double *buffer);
void wd_block_store_f32(void *data, int dtype, int64_t offset, int64_t n, const float *from,
                        bool stream);
void wd_block_store_f64(void *data, int dtype, int64_t offset, int64_t n, const double *from,
                        bool stream);

#if defined(__x86_64__)
/* One line past the caches, by instruction set. `to` is aligned. */
static inline void wd_stream_line_128(char *to, const char *from)
{
    for (int i = 0; i < WD_LINE; i += 16) {
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
    }
}

__attribute__((target("avx2"))) static inline void wd_stream_line_256(char *to, const char *from)
{
    for (int i = 0; i < WD_LINE; i += 32) {
        _mm256_stream_si256((__m256i *)(void *)(to + i),
                            _mm256_loadu_si256((const __m256i *)(const void *)(from + i)));
    }
}

__attribute__((target("avx512f"))) static inline void wd_stream_line_512(char *to, const char *from)
{
    _mm512_stream_si512((__m512i *)(void *)to, _mm512_loadu_si512((const void *)from));
}
#endif

#endif
