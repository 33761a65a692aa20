/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on blocks in the first cache, the formulas of pointwise_def.h as loops that vectorise,
 * for the engines of the CPU module. n is a multiple of WD_STRIP, at most WD_BLOCK; the output may be
 * one of the inputs; with `stream` it goes past the caches and is aligned to WD_LINE. Stateless. */
#ifndef WD_OPS_POINTWISE_BLOCK_H
#define WD_OPS_POINTWISE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/attr.h"

/* out[i] = mode(x[i], b[i], t[i]). b and t are null where the mode does without them; a null t of a
 * backward mode means that the forward output is not at hand. Not for GEN_INDEX. */
void wd_pointwise_block_f32(const struct wd_pointwise_attr *attr, float *out, const float *x,
                            const float *b, const float *t, int64_t n, bool stream);
void wd_pointwise_block_f64(const struct wd_pointwise_attr *attr, double *out, const double *x,
                            const double *b, const double *t, int64_t n, bool stream);

/* out[i] = factor * x[i] */
void wd_scale_block_f32(float *out, const float *x, float factor, int64_t n, bool stream);
void wd_scale_block_f64(double *out, const double *x, double factor, int64_t n, bool stream);

/* out[i] = alpha * x[i] + beta * old[i] */
void wd_blend_block_f32(float *out, const float *x, float alpha, const float *old, float beta,
                        int64_t n);
void wd_blend_block_f64(double *out, const double *x, double alpha, const double *old, double beta,
                        int64_t n);

#endif
