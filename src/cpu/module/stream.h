/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of packed tensors on their way between memory and arithmetic. Loops work on blocks of
 * WD_BLOCK elements, which stay in the first cache: a block is read where it lies, or converted into
 * a buffer; results are made in a buffer and written out. Large outputs bypass the caches, for a
 * plain store would first read the line that it overwrites: measured, a copy is 1.5 times as fast
 * so. Stateless. */
#ifndef WD_CPU_MODULE_STREAM_H
#define WD_CPU_MODULE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WD_BLOCK = 1024, /* elements */
    WD_LINE = 64,    /* bytes */
    /* Outputs from this size on bypass the caches: they would push out what is still needed, and be
     * gone before they are read. */
    WD_STREAM_BYTES = 4 << 20,
};

/* Copies past the caches. A range task that has streamed ends with wd_stream_fence. */
void wd_stream(void *to, const void *from, size_t bytes);
void wd_stream_fence(void);

/* Elements [offset, offset + n) of a packed tensor as float or double: in place where that is their
 * type, else in `buffer` (of WD_BLOCK elements). */
const float *wd_block_load_f32(const void *data, int dtype, int64_t offset, int64_t n,
                               float *buffer);
const double *wd_block_load_f64(const void *data, int dtype, int64_t offset, int64_t n,
                                double *buffer);

/* The way back, for n up to WD_BLOCK. */
void wd_block_store_f32(void *data, int dtype, int64_t offset, int64_t n, const float *from,
                        bool stream);
void wd_block_store_f64(void *data, int dtype, int64_t offset, int64_t n, const double *from,
                        bool stream);

#endif
