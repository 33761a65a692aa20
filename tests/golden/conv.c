/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements conv.h.
 */
#include "conv.h"

#include <math.h>
#include <stdio.h>

const char *const conv_dir_names[3] = {"fwd", "dgrad", "wgrad"};
const int conv_algo_count[3] = {CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
                                CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
                                CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT};

int conv_out(const struct conv *c, int i)
{
    return (c->hw[i] + 2 * c->pad[i] - (c->rs[i] - 1) * c->dil[i] - 1) / c->stride[i] + 1;
}

void conv_dims(const struct conv *c, int *nd, int x[5], int w[5], int y[5])
{
    *nd = c->sp == 3 ? 5 : 4;
    x[0] = y[0] = c->n;
    x[1] = c->c;
    w[0] = y[1] = c->k;
    w[1] = c->c / c->groups;
    for (int i = 0; i < *nd - 2; i++) {
        x[2 + i] = c->hw[i];
        w[2 + i] = c->rs[i];
        y[2 + i] = conv_out(c, i);
    }
}

cudnnConvolutionDescriptor_t conv_desc(const struct conv *c, const struct conv_how *how)
{
    cudnnConvolutionDescriptor_t d = NULL;
    gd_setup("conv.create", lib.CreateConvolutionDescriptor(&d));
    if (c->sp == 3)
        gd_setup("conv.set", lib.SetConvolutionNdDescriptor(d, 3, c->pad, c->stride, c->dil,
                                                            how->mode, how->acc));
    else
        gd_setup("conv.set",
                 lib.SetConvolution2dDescriptor(d, c->pad[0], c->pad[1], c->stride[0], c->stride[1],
                                                c->dil[0], c->dil[1], how->mode, how->acc));
    if (c->groups != 1) gd_setup("conv.groups", lib.SetConvolutionGroupCount(d, c->groups));
    if (how->math) gd_setup("conv.math", lib.SetConvolutionMathType(d, how->math));
    return d;
}

struct call {
    struct gd_tens *x, *w, *y;
    cudnnConvolutionDescriptor_t d;
    const void *alpha, *beta;
};

static cudnnStatus_t workspace(int dir, const struct call *c, int algo, size_t *bytes)
{
    cudnnHandle_t h = gd_handle();
    *bytes = 0;
    switch (dir) {
    case CONV_FWD:
        return lib.GetConvolutionForwardWorkspaceSize(h, c->x->desc, c->w->filter, c->d, c->y->desc,
                                                      (cudnnConvolutionFwdAlgo_t)algo, bytes);
    case CONV_DGRAD:
        return lib.GetConvolutionBackwardDataWorkspaceSize(
            h, c->w->filter, c->y->desc, c->d, c->x->desc, (cudnnConvolutionBwdDataAlgo_t)algo,
            bytes);
    default:
        return lib.GetConvolutionBackwardFilterWorkspaceSize(
            h, c->x->desc, c->y->desc, c->d, c->w->filter, (cudnnConvolutionBwdFilterAlgo_t)algo,
            bytes);
    }
}

static cudnnStatus_t execute(int dir, const struct call *c, int algo, void *ws, size_t bytes)
{
    cudnnHandle_t h = gd_handle();
    switch (dir) {
    case CONV_FWD:
        return lib.ConvolutionForward(h, c->alpha, c->x->desc, c->x->p, c->w->filter, c->w->p, c->d,
                                      (cudnnConvolutionFwdAlgo_t)algo, ws, bytes, c->beta,
                                      c->y->desc, c->y->p);
    case CONV_DGRAD:
        return lib.ConvolutionBackwardData(h, c->alpha, c->w->filter, c->w->p, c->y->desc, c->y->p,
                                           c->d, (cudnnConvolutionBwdDataAlgo_t)algo, ws, bytes,
                                           c->beta, c->x->desc, c->x->p);
    default:
        return lib.ConvolutionBackwardFilter(h, c->alpha, c->x->desc, c->x->p, c->y->desc, c->y->p,
                                             c->d, (cudnnConvolutionBwdFilterAlgo_t)algo, ws, bytes,
                                             c->beta, c->w->filter, c->w->p);
    }
}

/* Terms in the sum of one output element. */
static double terms(int dir, const struct conv *c)
{
    double area = 1, image = 1;
    for (int i = 0; i < (c->sp == 3 ? 3 : 2); i++) {
        area *= c->rs[i];
        image *= conv_out(c, i);
    }
    if (dir == CONV_WGRAD) return c->n * image;
    return area * (dir == CONV_FWD ? c->c : c->k) / c->groups;
}

/* One algorithm, or each in turn until one runs; asks before it executes, as programs do. */
static bool try_algos(int dir, const struct call *call, int only)
{
    static const int order[3][8] = {
        {1, 0, 2, 4, 5, 6, 7, 3}, {1, 0, 2, 3, 4, 5}, {1, 0, 3, 2, 5, 6, 4}};
    cudnnStatus_t s = CUDNN_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < (only >= 0 ? 1 : conv_algo_count[dir]); i++) {
        int algo = only >= 0 ? only : order[dir][i];
        size_t bytes = 0;
        s = workspace(dir, call, algo, &bytes);
        if (only >= 0) gd_status("ask", s);
        if (s != CUDNN_STATUS_SUCCESS && only < 0) continue;
        void *ws = gd_workspace(bytes);
        if (bytes && !ws) {
            gd_note("workspace_too_large", (long long)bytes);
            s = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
            continue;
        }
        s = execute(dir, call, algo, ws, bytes);
        if (s == CUDNN_STATUS_SUCCESS || only >= 0) {
            gd_note("algo", algo);
            gd_size("ws", bytes);
            return gd_ran("run", s);
        }
    }
    return gd_ran("run", s);
}

void conv_run(int dir, const struct conv *c, const struct conv_how *how)
{
    int nd, xd[5], wd[5], yd[5];
    conv_dims(c, &nd, xd, wd, yd);
    struct call call = {0};
    call.x = gd_tens(dir == CONV_DGRAD ? "dx" : "x", how->x, how->layout, nd, xd);
    call.w = gd_filter(dir == CONV_WGRAD ? "dw" : "w", how->w, how->wlayout, nd, wd);
    call.y = gd_tens(dir == CONV_FWD ? "y" : "dy", how->y, how->layout, nd, yd);
    call.d = conv_desc(c, how);
    struct gd_tens *out = dir == CONV_FWD ? call.y : dir == CONV_DGRAD ? call.x : call.w;
    struct gd_tens *in[2] = {dir == CONV_DGRAD ? call.w : call.x,
                             dir == CONV_FWD ? call.w : call.y};
    gd_fill(in[0], how->fill);
    gd_fill(in[1], how->fill);
    if (how->beta != 0 || how->yfill) gd_fill(out, how->yfill ? how->yfill : GD_UNIT);
    call.alpha = gd_scalar(how->acc == CUDNN_DATA_DOUBLE ? how->acc : CUDNN_DATA_FLOAT, how->alpha);
    call.beta = gd_scalar(how->acc == CUDNN_DATA_DOUBLE ? how->acc : CUDNN_DATA_FLOAT, how->beta);
    if (try_algos(dir, &call, how->algo)) {
        /* GD_UNIT: the mean of |a b| is 1/4. Inputs are exact in tf32, fp16 and bf16, so only the
         * accumulation differs. Tensor cores truncate where they add, hence u doubled. */
        double mean = how->fill == GD_SOMENAN ? 4 : 0.25; /* of |a b| */
        double scale = fabs(how->alpha) * mean + fabs(how->beta), growth = how->growth;
        struct gd_tol tol =
            gd_sum_tol(out->type, how->acc, terms(dir, c), 2 * (growth > 1 ? growth : 1) * scale);
        if (gd_roundoff(out->type) == 0)
            tol = how->alpha == 1 && how->beta == 0 ? gd_exact : (struct gd_tol){1, 0};
        gd_out(out, tol);
    }
    lib.DestroyConvolutionDescriptor(call.d);
}
