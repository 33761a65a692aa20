/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of batch normalization on blocks in the first cache. Parameters are one number each
 * for the whole block, or, where `varies`, one an element. Sums are kept in double. Outputs may lie
 * over inputs. Stateless. */
#ifndef WD_OPS_NORM_BN_BLOCK_H
#define WD_OPS_NORM_BN_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { WD_BN_ROWS = 8 }; /* that columns are best taken at a time */

/* `exact`: summed in double from the start; else in the type over a block of up to WD_BLOCK elements,
 * or over WD_BN_ROWS rows, and in double from there on. */
#define WD_BN_BLOCKS(REAL, T)                                                                      \
    /* sum[0] += sum of x - shift, sum[1] += sum of its squares */                                 \
    void wd_bn_sums_exact_##T(const REAL *x, REAL shift, int64_t n, double *sum);                  \
    void wd_bn_sums_##T(const REAL *x, REAL shift, int64_t n, double *sum);                        \
    /* the same by columns, of rows that are `stride` elements apart */                            \
    void wd_bn_column_sums_exact_##T(const REAL *x, int64_t stride, int rows, const REAL *shift,   \
                                     int64_t n, double *sum, double *squares);                     \
    void wd_bn_column_sums_##T(const REAL *x, int64_t stride, int rows, const REAL *shift,         \
                               int64_t n, double *sum, double *squares);                           \
    /* better guesses at the means, and the sums of `rows` differences from them */                \
    void wd_bn_column_rebase_##T(double *sum, double *squares, REAL *guess, double rows,           \
                                 int64_t n);                                                       \
    /* sum[0] += sum of g, sum[1] += sum of g (x - mean) */                                        \
    void wd_bn_grad_sums_##T(const REAL *g, const REAL *x, REAL mean, int64_t n, double *sum);     \
    void wd_bn_column_grad_sums_##T(const REAL *g, int64_t g_stride, const REAL *x,                \
                                    int64_t x_stride, int rows, const REAL *mean, int64_t n,       \
                                    double *sum, double *dots);                                    \
    /* out = (x - mean) factor + base [+ z] */                                                     \
    void wd_bn_normalize_##T(REAL *out, const REAL *x, const REAL *z, const REAL *mean,            \
                             const REAL *factor, const REAL *base, int64_t n, bool varies,         \
                             bool stream);                                                         \
    /* out = factor g + base - (x - mean) slope */                                                 \
    void wd_bn_gradient_##T(REAL *out, const REAL *g, const REAL *x, const REAL *mean,             \
                            const REAL *factor, const REAL *base, const REAL *slope, int64_t n,    \
                            bool varies, bool stream);                                             \
    /* pass[i] = low < v[i] <= high */                                                             \
    void wd_bn_passes_##T(uint8_t *pass, const REAL *v, REAL low, REAL high, int64_t n);           \
    /* out = pass ? dy : 0 */                                                                      \
    void wd_bn_mask_##T(REAL *out, const REAL *dy, const uint8_t *pass, int64_t n);

WD_BN_BLOCKS(float, f32)
WD_BN_BLOCKS(double, f64)
#undef WD_BN_BLOCKS

#endif
