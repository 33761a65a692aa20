/* SPDX-License-Identifier: Apache-2.0
 *
 * The pointwise loops, and the choice of those for this machine. */
#include "ops/pointwise/pointwise_block.h"

#include "graph/pointwise_modes.h"

#define WD_LOOPS "ops/pointwise/pointwise_block.inc"
#include "cpu/module/loops.inc"

void wd_pointwise_block_f32(const struct wd_pointwise_attr *attr, float *out, const float *x,
                            const float *b, const float *t, int64_t n, bool stream)
{
    WD_PICK(pointwise_f32)(attr, out, x, b, t, n, stream);
}

void wd_pointwise_block_f64(const struct wd_pointwise_attr *attr, double *out, const double *x,
                            const double *b, const double *t, int64_t n, bool stream)
{
    WD_PICK(pointwise_f64)(attr, out, x, b, t, n, stream);
}

void wd_scale_block_f32(float *out, const float *x, float factor, int64_t n, bool stream)
{
    WD_PICK(scale_f32)(out, x, factor, n, stream);
}

void wd_scale_block_f64(double *out, const double *x, double factor, int64_t n, bool stream)
{
    WD_PICK(scale_f64)(out, x, factor, n, stream);
}

void wd_blend_block_f32(float *out, const float *x, float alpha, const float *old, float beta,
                        int64_t n)
{
    WD_PICK(blend_f32)(out, x, alpha, old, beta, n);
}

void wd_blend_block_f64(double *out, const double *x, double alpha, const double *old, double beta,
                        int64_t n)
{
    WD_PICK(blend_f64)(out, x, alpha, old, beta, n);
}
