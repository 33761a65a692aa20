/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements conv_case.h. */
#include "ops/conv_case.h"

#include <math.h>
#include <stdlib.h>

const char *const conv_direction_name[] = {"", "fprop", "dgrad", "wgrad", "fused"};

const cudnnDataType_t conv_float_types[CONV_FLOAT_TYPES] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                                            CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};

const void *conv_scalar(cudnnDataType_t dtype, double value, double *storage)
{
    if (dtype == CUDNN_DATA_DOUBLE) *storage = value;
    else if (dtype == CUDNN_DATA_INT32) *(int32_t *)storage = (int32_t)value;
    else *(float *)storage = (float)value;
    return storage;
}

double conv_random_scalar(void)
{
    return (double)random_of(0, 1, 2, -3) * 0.5;
}

double *conv_doubles(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

/* --- Geometry ----------------------------------------------------------------------------------- */

/* What the formula gives; the shape may be chosen such that a filter just fits. */
void conv_set_output(struct conv_geometry *g)
{
    for (int d = 0; d < g->spatial; ++d) {
        int window = (g->filter[d] - 1) * g->dilation[d] + 1;
        int room = g->image[d] + 2 * g->pad[d] - window;
        if (room < 0) { /* make the image large enough */
            g->image[d] -= room;
            room = 0;
        }
        g->output[d] = room / g->stride[d] + 1;
    }
}

struct conv_geometry conv_random_geometry(int spatial)
{
    struct conv_geometry g = {.spatial = spatial};
    g.batch = random_of(1, 2, 3);
    g.groups = random_of(1, 1, 2, 3);
    g.channels = g.groups * random_of(1, 2, 3, 5);
    g.filters = g.groups * random_of(1, 2, 3, 7);
    g.mode = random_chance(0.3) ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    for (int d = 0; d < spatial; ++d) {
        g.image[d] = spatial == 3 ? random_of(1, 2, 4, 5) : random_of(1, 2, 5, 7, 8, 11);
        g.filter[d] = random_of(1, 2, 3, 3, 5);
        g.pad[d] = random_of(0, 1, 2, 6); /* 6: whole windows in the padding */
        g.stride[d] = random_of(1, 1, 2, 3);
        g.dilation[d] = random_of(1, 1, 2);
    }
    conv_set_output(&g);
    return g;
}

static void dims_of(const struct conv_geometry *g, int first, int second, const int *space,
                    int *dim)
{
    dim[0] = first;
    dim[1] = second;
    for (int d = 0; d < g->spatial; ++d) dim[2 + d] = space[d];
}

int64_t conv_volume(const struct conv_geometry *g, const int *extent)
{
    int64_t n = 1;
    for (int d = 0; d < g->spatial; ++d) n *= extent[d];
    return n;
}

void conv_point(const struct conv_geometry *g, const int *extent, int64_t index, int *at)
{
    for (int d = g->spatial - 1; d >= 0; --d) {
        at[d] = (int)(index % extent[d]);
        index /= extent[d];
    }
}

/* Index of the pixel that output point o sees through tap t, -1 in the padding. */
int64_t conv_pixel_of(const struct conv_geometry *g, const int *o, const int *t)
{
    int64_t index = 0;
    for (int d = 0; d < g->spatial; ++d) {
        int tap = g->mode == CUDNN_CONVOLUTION ? g->filter[d] - 1 - t[d] : t[d];
        int at = o[d] * g->stride[d] - g->pad[d] + tap * g->dilation[d];
        if (at < 0 || at >= g->image[d]) return -1;
        index = index * g->image[d] + at;
    }
    return index;
}

/* Adds every product of the convolution to where its direction wants it. */
void conv_add_products(const struct conv_call *c, double *sum, double *magnitude)
{
    const struct conv_geometry *g = &c->g;
    int64_t points = conv_volume(g, g->output);
    int64_t taps = conv_volume(g, g->filter);
    int64_t pixels = conv_volume(g, g->image);
    int cg = g->channels / g->groups;
    int kg = g->filters / g->groups;
    for (int64_t p = 0; p < points; ++p) {
        for (int64_t t = 0; t < taps; ++t) {
            int o[3];
            int tap[3];
            int64_t pixel;
            conv_point(g, g->output, p, o);
            conv_point(g, g->filter, t, tap);
            pixel = conv_pixel_of(g, o, tap);
            if (pixel < 0) continue;
            for (int n = 0; n < g->batch; ++n) {
                for (int k = 0; k < g->filters; ++k) {
                    for (int i = 0; i < cg; ++i) {
                        int64_t x = ((int64_t)n * g->channels + k / kg * cg + i) * pixels + pixel;
                        int64_t w = ((int64_t)k * cg + i) * taps + t;
                        int64_t y = ((int64_t)n * g->filters + k) * points + p;
                        int64_t to = c->direction == CONV_DGRAD   ? x
                                     : c->direction == CONV_WGRAD ? w
                                                                  : y;
                        double product =
                            c->direction == CONV_DGRAD   ? c->w->value[w] * c->y->value[y]
                            : c->direction == CONV_WGRAD ? c->x->value[x] * c->y->value[y]
                                                         : c->x->value[x] * c->w->value[w];
                        sum[to] += product;
                        magnitude[to] += fabs(product);
                    }
                }
            }
        }
    }
}

/* --- Calls -------------------------------------------------------------------------------------- */

struct tensor *conv_output_of(const struct conv_call *c)
{
    return c->direction == CONV_DGRAD ? c->x : c->direction == CONV_WGRAD ? c->w : c->y;
}

cudnnStatus_t conv_run(void *context)
{
    struct conv_call *c = context;
    double s[2];
    cudnnDataType_t dtype = conv_output_of(c)->dtype;
    const void *alpha = conv_scalar(dtype, c->alpha, s);
    const void *beta = conv_scalar(dtype, c->beta, s + 1);
    void *workspace = c->workspace ? c->workspace->data : NULL;
    size_t bytes = c->workspace ? (size_t)c->workspace->bytes : 0;
    switch (c->direction) {
    case CONV_FPROP:
        return cudnnConvolutionForward(harness_handle, alpha, c->x->desc, c->x->data, c->filter,
                                       c->w->data, c->conv, (cudnnConvolutionFwdAlgo_t)c->algorithm,
                                       workspace, bytes, beta, c->y->desc, c->y->data);
    case CONV_DGRAD:
        return cudnnConvolutionBackwardData(harness_handle, alpha, c->filter, c->w->data,
                                            c->y->desc, c->y->data, c->conv,
                                            (cudnnConvolutionBwdDataAlgo_t)c->algorithm, workspace,
                                            bytes, beta, c->x->desc, c->x->data);
    case CONV_WGRAD:
        return cudnnConvolutionBackwardFilter(harness_handle, alpha, c->x->desc, c->x->data,
                                              c->y->desc, c->y->data, c->conv,
                                              (cudnnConvolutionBwdFilterAlgo_t)c->algorithm,
                                              workspace, bytes, beta, c->filter, c->w->data);
    default:
        return cudnnConvolutionBiasActivationForward(
            harness_handle, alpha, c->x->desc, c->x->data, c->filter, c->w->data, c->conv,
            (cudnnConvolutionFwdAlgo_t)c->algorithm, workspace, bytes, beta, c->z->desc, c->z->data,
            c->b->desc, c->b->data, c->activation, c->y->desc, c->y->data);
    }
}

size_t conv_workspace_of(struct conv_call *c)
{
    size_t bytes = 0;
    cudnnStatus_t status;
    if (c->direction == CONV_DGRAD) {
        status = cudnnGetConvolutionBackwardDataWorkspaceSize(
            harness_handle, c->filter, c->y->desc, c->conv, c->x->desc,
            (cudnnConvolutionBwdDataAlgo_t)c->algorithm, &bytes);
    } else if (c->direction == CONV_WGRAD) {
        status = cudnnGetConvolutionBackwardFilterWorkspaceSize(
            harness_handle, c->x->desc, c->y->desc, c->conv, c->filter,
            (cudnnConvolutionBwdFilterAlgo_t)c->algorithm, &bytes);
    } else {
        status = cudnnGetConvolutionForwardWorkspaceSize(
            harness_handle, c->x->desc, c->filter, c->conv, c->y->desc,
            (cudnnConvolutionFwdAlgo_t)c->algorithm, &bytes);
    }
    if (status != CUDNN_STATUS_SUCCESS) case_fail("the workspace query is refused");
    return bytes;
}

static cudnnTensorFormat_t conv_format_of(enum layout layout)
{
    return layout == LAYOUT_NHWC   ? CUDNN_TENSOR_NHWC
           : layout == LAYOUT_VECT ? CUDNN_TENSOR_NCHW_VECT_C
                                   : CUDNN_TENSOR_NCHW;
}

bool conv_is_integer(cudnnDataType_t dtype)
{
    return dtype != CUDNN_DATA_FLOAT && dtype != CUDNN_DATA_DOUBLE && dtype != CUDNN_DATA_HALF &&
           dtype != CUDNN_DATA_BFLOAT16;
}

struct tensor *conv_make(const struct conv_call *c, bool output, cudnnDataType_t dtype,
                         const int *dim, enum layout layout)
{
    double limit = conv_is_integer(dtype) ? 9.0 : 1.0;
    double lowest = dtype == CUDNN_DATA_UINT8 || dtype == CUDNN_DATA_UINT8x4 ? 0.0 : -limit;
    int rank = c->g.spatial + 2;
    if (output) return tensor_inout(dtype, rank, dim, layout, lowest, limit);
    return tensor_input(dtype, rank, dim, layout, lowest, limit);
}

/* Descriptors and tensors; layouts of x, w, y. */
void conv_set_up(struct conv_call *c, const struct conv_types *types, const enum layout *layout)
{
    int x[8];
    int w[8];
    int y[8];
    const struct conv_geometry *g = &c->g;
    bool vect_w = layout[1] == LAYOUT_VECT;
    cudnnDataType_t compute = types->x == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                              : conv_is_integer(types->x)   ? CUDNN_DATA_INT32
                                                            : CUDNN_DATA_FLOAT;
    dims_of(g, g->batch, g->channels, g->image, x);
    dims_of(g, g->filters, g->channels / g->groups, g->filter, w);
    dims_of(g, g->batch, g->filters, g->output, y);
    cudnnCreateConvolutionDescriptor(&c->conv);
    cudnnCreateFilterDescriptor(&c->filter);
    cudnnSetConvolutionNdDescriptor(c->conv, g->spatial, g->pad, g->stride, g->dilation, g->mode,
                                    compute);
    cudnnSetConvolutionGroupCount(c->conv, g->groups);
    cudnnSetFilterNdDescriptor(c->filter, types->w, conv_format_of(layout[1]), g->spatial + 2, w);
    c->x = conv_make(c, c->direction == CONV_DGRAD, types->x, x, layout[0]);
    c->w = conv_make(c, c->direction == CONV_WGRAD, types->w, w,
                     layout[1] == LAYOUT_NHWC || vect_w ? layout[1] : LAYOUT_NCHW);
    c->y = conv_make(c, c->direction != CONV_DGRAD && c->direction != CONV_WGRAD, types->y, y,
                     layout[2]);
}

void conv_tear_down(struct conv_call *c)
{
    cudnnDestroyConvolutionDescriptor(c->conv);
    cudnnDestroyFilterDescriptor(c->filter);
    if (c->activation) cudnnDestroyActivationDescriptor(c->activation);
    case_end();
}

/* Runs with exactly the workspace that was answered and judges the result of the plain directions. */
void conv_run_and_check(struct conv_call *c)
{
    struct tensor *out = conv_output_of(c);
    double *exact = conv_doubles(out->count);
    double *magnitude = conv_doubles(out->count);
    size_t bytes = conv_workspace_of(c);
    bool wide = out->dtype == CUDNN_DATA_DOUBLE || conv_is_integer(c->x->dtype);
    if (bytes > 0) c->workspace = tensor_bytes((int64_t)bytes);
    conv_add_products(c, exact, magnitude);
    for (int64_t i = 0; i < out->count; ++i) {
        double old = c->beta != 0.0 ? c->beta * out->value[i] : 0.0;
        exact[i] = c->alpha * exact[i] + old;
        magnitude[i] = fabs(c->alpha) * magnitude[i] + fabs(old);
    }
    if (run_call(conv_run, c)) {
        check_values(conv_direction_name[c->direction], out, exact, NULL, magnitude,
                     wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
}

int conv_algorithm_count(enum conv_direction direction)
{
    return direction == CONV_DGRAD   ? CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT
           : direction == CONV_WGRAD ? CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT
                                     : CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
}
