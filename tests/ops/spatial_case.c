/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the spatial transformer, see spatial_case.h. One thread. */
#include "spatial_case.h"

#include <stdlib.h>
#include <string.h>

#include "kernels_reached.h"

const struct spatial_type spatial_types[SPATIAL_TYPES] = {{"fp32", CUDNN_DATA_FLOAT},
                                                          {"fp64", CUDNN_DATA_DOUBLE},
                                                          {"fp16", CUDNN_DATA_HALF},
                                                          {"bf16", CUDNN_DATA_BFLOAT16}};

void *spatial_behind(const struct spatial_call *c, const struct tensor *t)
{
    return (char *)t->data + t->bytes / t->count * c->skip;
}

cudnnStatus_t spatial_grid_forward(void *context)
{
    const struct spatial_call *c = context;
    return cudnnSpatialTfGridGeneratorForward(harness_handle, c->st, spatial_behind(c, c->theta),
                                              spatial_behind(c, c->grid));
}

cudnnStatus_t spatial_grid_backward(void *context)
{
    const struct spatial_call *c = context;
    return cudnnSpatialTfGridGeneratorBackward(harness_handle, c->st, spatial_behind(c, c->dgrid),
                                               spatial_behind(c, c->dtheta));
}

void spatial_describe(struct spatial_call *c, cudnnDataType_t dtype, const struct spatial_shape *s)
{
    int dims[4] = {s->n, s->c, s->p, s->q};
    if (cudnnCreateSpatialTransformerDescriptor(&c->st) != CUDNN_STATUS_SUCCESS ||
        cudnnSetSpatialTransformerNdDescriptor(c->st, CUDNN_SAMPLER_BILINEAR, dtype, 4, dims) !=
            CUDNN_STATUS_SUCCESS) {
        case_fail("the descriptor is refused");
    }
}

double *spatial_copy(const double *value, int64_t count)
{
    double *copy = malloc((size_t)count * sizeof *copy);
    memcpy(copy, value, (size_t)count * sizeof *copy);
    return copy;
}

cudnnDataType_t spatial_compute_type(cudnnDataType_t dtype)
{
    return dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

static const char *const symbols[] = {
#define WD_KERNEL(symbol, ...) "wd_" #symbol,
#include "ops/spatial/sampler_chunks_kernels.def"
#include "ops/spatial/sampler_gather_kernels.def"
#include "ops/spatial/sampler_little_kernels.def"
#include "ops/spatial/sampler_planes_kernels.def"
#include "ops/spatial/sampler_regions_kernels.def"
#include "ops/spatial/sampler_tiles_kernels.def"
#include "ops/spatial/sampler_windows_kernels.def"
#include "ops/spatial/spatial_vector_kernels.def"
#undef WD_KERNEL
};

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum spatial_kernels kind_of(const char *symbol)
{
    if (begins(symbol, "wd_grid_")) return SPATIAL_GRIDS;
    return begins(symbol, "wd_fit_maps") || begins(symbol, "wd_affine_tiles") ? SPATIAL_MAPPED
                                                                              : SPATIAL_SAMPLERS;
}

void spatial_check_launched(int argc, enum spatial_kernels kind)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
        if (argc == 1 && kind_of(symbols[i]) == kind) kernels_reached(&symbols[i], 1);
    }
}
