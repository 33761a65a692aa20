/* SPDX-License-Identifier: Apache-2.0
 *
 * Times the convolutions of problems_conv.def in three directions, in single precision. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sets.h"

struct problem {
    const char *set;
    int c, h, k, r, stride, pad, groups;
};

static const struct problem problems[] = {
#define WD_CONV(set, C, H, K, R, stride, pad, groups) {#set, C, H, K, R, stride, pad, groups},
#include "problems_conv.def"
#undef WD_CONV
};

enum direction { FPROP, DGRAD, WGRAD, DIRECTIONS };
static const char *const direction_name[] = {"fprop", "dgrad", "wgrad"};

struct convolution {
    enum direction direction;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    float *x_data, *w_data, *y_data;
    void *workspace;
    size_t workspace_bytes;
};

static cudnnStatus_t run(void *context)
{
    const struct convolution *c = context;
    static const float one = 1.0F;
    static const float zero = 0.0F;
    switch (c->direction) {
    case FPROP:
        return ours.ConvolutionForward(sets_handle, &one, c->x, c->x_data, c->w, c->w_data, c->conv,
                                       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                       c->workspace, c->workspace_bytes, &zero, c->y, c->y_data);
    case DGRAD:
        return ours.ConvolutionBackwardData(sets_handle, &one, c->w, c->w_data, c->y, c->y_data,
                                            c->conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                            c->workspace, c->workspace_bytes, &zero, c->x,
                                            c->x_data);
    default:
        return ours.ConvolutionBackwardFilter(sets_handle, &one, c->x, c->x_data, c->y, c->y_data,
                                              c->conv, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                              c->workspace, c->workspace_bytes, &zero, c->w,
                                              c->w_data);
    }
}

static cudnnStatus_t query(struct convolution *c)
{
    switch (c->direction) {
    case FPROP:
        return ours.GetConvolutionForwardWorkspaceSize(
            sets_handle, c->x, c->w, c->conv, c->y,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &c->workspace_bytes);
    case DGRAD:
        return ours.GetConvolutionBackwardDataWorkspaceSize(sets_handle, c->w, c->y, c->conv, c->x,
                                                            CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                                            &c->workspace_bytes);
    default:
        return ours.GetConvolutionBackwardFilterWorkspaceSize(
            sets_handle, c->x, c->y, c->conv, c->w, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
            &c->workspace_bytes);
    }
}

static void time_directions(struct convolution *c, struct row *row)
{
    for (int d = 0; d < DIRECTIONS; ++d) {
        const char *engine;
        c->direction = (enum direction)d;
        snprintf(row->name, sizeof row->name, "%s", direction_name[d]);
        if (!sets_wanted(row->set, row->name, row->problem)) continue;
        bench_check(query(c), "the workspace query");
        bench_check(ours.Malloc(sets_handle, c->workspace_bytes, &c->workspace), "workspace");
        row->timing = cpu_time(run, c);
        ours.GetLastEngine(sets_handle, &engine);
        snprintf(row->engine, sizeof row->engine, "%s", engine);
        sets_add(row);
        ours.Free(sets_handle, c->workspace);
    }
}

static void time_problem(const struct problem *p)
{
    struct convolution c = {.direction = FPROP};
    struct row row = {.products = true, .counted = strcmp(p->set, "other") != 0};
    int n = bench_options.batch;
    int out = (p->h + 2 * p->pad - p->r) / p->stride + 1;
    cudnnTensorFormat_t format = bench_options.nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    snprintf(row.set, sizeof row.set, "%s", p->set);
    snprintf(row.problem, sizeof row.problem, "n%d %dx%d @%d -> %d %dx%d/%d%s", n, p->c, p->h, p->h,
             p->k, p->r, p->r, p->stride, p->groups > 1 ? " grouped" : "");
    row.work = 2.0 * n * p->k * out * out * p->c / p->groups * p->r * p->r;
    bench_check(ours.CreateTensorDescriptor(&c.x), "x");
    bench_check(ours.CreateTensorDescriptor(&c.y), "y");
    bench_check(ours.CreateFilterDescriptor(&c.w), "w");
    bench_check(ours.CreateConvolutionDescriptor(&c.conv), "convolution");
    bench_check(ours.SetTensor4dDescriptor(c.x, format, CUDNN_DATA_FLOAT, n, p->c, p->h, p->h),
                "x");
    bench_check(ours.SetTensor4dDescriptor(c.y, format, CUDNN_DATA_FLOAT, n, p->k, out, out), "y");
    bench_check(ours.SetFilter4dDescriptor(c.w, CUDNN_DATA_FLOAT, format, p->k, p->c / p->groups,
                                           p->r, p->r),
                "w");
    bench_check(ours.SetConvolution2dDescriptor(c.conv, p->pad, p->pad, p->stride, p->stride, 1, 1,
                                                CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                "convolution");
    bench_check(ours.SetConvolutionGroupCount(c.conv, p->groups), "groups");
    c.x_data = sets_floats((int64_t)n * p->c * p->h * p->h);
    c.y_data = sets_floats((int64_t)n * p->k * out * out);
    c.w_data = sets_floats((int64_t)p->k * (p->c / p->groups) * p->r * p->r);
    time_directions(&c, &row);
    ours.Free(sets_handle, c.x_data);
    ours.Free(sets_handle, c.y_data);
    ours.Free(sets_handle, c.w_data);
    ours.DestroyTensorDescriptor(c.x);
    ours.DestroyTensorDescriptor(c.y);
    ours.DestroyFilterDescriptor(c.w);
    ours.DestroyConvolutionDescriptor(c.conv);
}

void sets_convolutions(void)
{
    for (size_t i = 0; i < sizeof problems / sizeof problems[0] && !bench_is_stopped(); ++i) {
        time_problem(&problems[i]);
        if (i % 8 == 0) bench_reference_sgemm();
    }
}
