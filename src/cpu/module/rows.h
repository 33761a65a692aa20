/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of elements of any type of whole bytes, at any stride, read as float or double and written
 * back. Values are converted as base/dtype.h does, bit for bit; the common types are vectorised.
 * `offset` and `stride` count elements. Stateless. */
#ifndef WD_CPU_MODULE_ROWS_H
#define WD_CPU_MODULE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* Types that rows take: those of whole bytes but complex ones. */
bool wd_row_takes(int dtype);

void wd_row_load_f32(float *to, const void *from, int dtype, int64_t offset, int64_t stride,
                     int64_t n);
void wd_row_load_f64(double *to, const void *from, int dtype, int64_t offset, int64_t stride,
                     int64_t n);
void wd_row_store_f32(void *to, int dtype, int64_t offset, int64_t stride, const float *from,
                      int64_t n);
void wd_row_store_f64(void *to, int dtype, int64_t offset, int64_t stride, const double *from,
                      int64_t n);

#endif
