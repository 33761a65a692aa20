/* SPDX-License-Identifier: Apache-2.0
 *
 * How results of the CPU engines of pooling go out (pooling_cpu.h): scaled, blended, converted, past
 * the caches where that pays. Stateless. */
#include <string.h>

#include "cpu/module/rows.h"
#include "cpu/module/simd.h"
#include "cpu/module/sizes.h"
#include "cpu/module/stream.h"
#include "ops/pooling/pooling_cpu.h"

WD_SIMD static void pool_scale_f32(float *made, float alpha, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) made[i] *= alpha;
}

WD_SIMD static void pool_scale_f64(double *made, double alpha, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) made[i] *= alpha;
}

WD_SIMD static void pool_add_f32(float *restrict made, const float *restrict old, float beta,
                                 int64_t n)
{
    for (int64_t i = 0; i < n; ++i) made[i] += beta * old[i];
}

WD_SIMD static void pool_add_f64(double *restrict made, const double *restrict old, double beta,
                                 int64_t n)
{
    for (int64_t i = 0; i < n; ++i) made[i] += beta * old[i];
}

void wd_pool_put_f32(const struct wd_pool_sink *sink, int64_t offset, int64_t n, float *made)
{
    if (sink->alpha == 0.0) memset(made, 0, (size_t)n * sizeof *made);
    else if (sink->alpha != 1.0) pool_scale_f32(made, (float)sink->alpha, n);
    if (sink->beta == 0.0 && sink->dtype == CUDNN_DATA_FLOAT) {
        wd_block_store_f32(sink->data, sink->dtype, offset, n, made, sink->stream);
        return;
    }
    for (int64_t i = 0; i < n; i += WD_BLOCK) {
        float buffer[WD_BLOCK];
        int64_t now = wd_least(n - i, WD_BLOCK);
        if (sink->beta != 0.0) {
            const float *old = wd_block_load_f32(sink->data, sink->dtype, offset + i, now, buffer);
            pool_add_f32(made + i, old, (float)sink->beta, now);
        }
        wd_block_store_f32(sink->data, sink->dtype, offset + i, now, made + i, sink->stream);
    }
}

void wd_pool_put_f64(const struct wd_pool_sink *sink, int64_t offset, int64_t n, double *made)
{
    if (sink->alpha == 0.0) memset(made, 0, (size_t)n * sizeof *made);
    else if (sink->alpha != 1.0) pool_scale_f64(made, sink->alpha, n);
    for (int64_t i = 0; i < n; i += WD_BLOCK) {
        double buffer[WD_BLOCK];
        int64_t now = wd_least(n - i, WD_BLOCK);
        if (sink->beta != 0.0) {
            const double *old = wd_block_load_f64(sink->data, sink->dtype, offset + i, now, buffer);
            pool_add_f64(made + i, old, sink->beta, now);
        }
        wd_block_store_f64(sink->data, sink->dtype, offset + i, now, made + i, sink->stream);
    }
}
