/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: the descriptors of a gradient of the data whose strides are folded into channels. They need
 * no handle.
 */
#include "golden.h"

#include <stdio.h>

struct problem {
    const char *name;
    int n, c, k, hw[2], rs[2], pad[2], stride[2], dil[2], groups;
};

static const struct problem problems[] = {
    {"7x7s2", 2, 3, 8, {14, 14}, {7, 7}, {3, 3}, {2, 2}, {1, 1}, 1},
    {"3x3s2", 2, 3, 8, {15, 13}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 1},
    {"3x3s2p0", 2, 3, 8, {16, 16}, {3, 3}, {0, 0}, {2, 2}, {1, 1}, 1},
    {"3x3s1", 2, 3, 8, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"3x3s1d2", 2, 3, 8, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {2, 2}, 1},
    {"3x3s12", 2, 3, 6, {16, 16}, {3, 3}, {1, 1}, {1, 2}, {1, 1}, 1},
    {"3x3s3", 2, 3, 8, {16, 16}, {3, 3}, {1, 1}, {3, 3}, {1, 1}, 1},
    {"3x3s23", 2, 3, 8, {16, 16}, {3, 3}, {1, 1}, {2, 3}, {1, 1}, 1},
    {"5x4s32", 2, 3, 8, {16, 16}, {5, 4}, {1, 2}, {3, 2}, {1, 1}, 1},
    {"2x2s2", 2, 3, 8, {16, 16}, {2, 2}, {0, 0}, {2, 2}, {1, 1}, 1},
    {"1x1s2", 2, 3, 8, {17, 16}, {1, 1}, {0, 0}, {2, 2}, {1, 1}, 1},
    {"3x3s5", 2, 2, 5, {16, 16}, {3, 3}, {1, 1}, {5, 1}, {1, 1}, 1},
    {"big_pad", 2, 2, 8, {16, 16}, {3, 3}, {5, 7}, {3, 2}, {1, 1}, 1},
    {"c64k64", 2, 64, 64, {56, 56}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 1},
    {"dilated", 2, 3, 8, {16, 16}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, 1},
    {"g2", 2, 4, 8, {16, 16}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 2},
};

static void note_transform(const char *name, cudnnTensorTransformDescriptor_t t)
{
    int before[4] = {-7}, after[4] = {-7};
    unsigned fold[4] = {0};
    cudnnTensorFormat_t format = (cudnnTensorFormat_t)-7;
    cudnnFoldingDirection_t direction = (cudnnFoldingDirection_t)-7;
    char key[64];
    lib.GetTensorTransformDescriptor(t, 4, &format, before, after, fold, &direction);
    int kind[2] = {(int)format, (int)direction};
    snprintf(key, sizeof key, "%s_kind", name);
    gd_ints(key, 2, kind);
    snprintf(key, sizeof key, "%s_before", name);
    gd_ints(key, 4, before);
    snprintf(key, sizeof key, "%s_after", name);
    gd_ints(key, 4, after);
    /* 0 and 1 say the same */
    int blocks[2] = {fold[0] ? (int)fold[0] : 1, fold[1] ? (int)fold[1] : 1};
    snprintf(key, sizeof key, "%s_fold", name);
    gd_ints(key, 2, blocks);
}

static void note_tensor(const char *name, cudnnTensorDescriptor_t t)
{
    int dim[8] = {0}, stride[8] = {0}, nd = -7;
    cudnnDataType_t type = (cudnnDataType_t)-7;
    char key[64];
    lib.GetTensorNdDescriptor(t, 8, &type, &nd, dim, stride);
    snprintf(key, sizeof key, "%s_type", name);
    gd_int(key, type);
    gd_ints(name, nd, dim);
    snprintf(key, sizeof key, "%s_strides", name);
    gd_ints(key, nd, stride);
}

static void one(const struct problem *p, cudnnDataType_t type, cudnnTensorFormat_t format,
                cudnnTensorFormat_t to, cudnnConvolutionMode_t mode)
{
    cudnnFilterDescriptor_t w = NULL, fw = NULL;
    cudnnTensorDescriptor_t dy = NULL, dx = NULL, fdy = NULL, fdx = NULL;
    cudnnConvolutionDescriptor_t c = NULL, fc = NULL;
    cudnnTensorTransformDescriptor_t t[4] = {NULL};
    int out[2];
    for (int i = 0; i < 2; i++)
        out[i] = (p->hw[i] + 2 * p->pad[i] - (p->rs[i] - 1) * p->dil[i] - 1) / p->stride[i] + 1;
    lib.CreateFilterDescriptor(&w);
    lib.CreateFilterDescriptor(&fw);
    lib.CreateTensorDescriptor(&dy);
    lib.CreateTensorDescriptor(&dx);
    lib.CreateTensorDescriptor(&fdy);
    lib.CreateTensorDescriptor(&fdx);
    lib.CreateConvolutionDescriptor(&c);
    lib.CreateConvolutionDescriptor(&fc);
    for (int i = 0; i < 4; i++) lib.CreateTensorTransformDescriptor(&t[i]);
    gd_setup("w", lib.SetFilter4dDescriptor(w, type, format, p->k, p->c / p->groups, p->rs[0],
                                            p->rs[1]));
    gd_setup("dx", lib.SetTensor4dDescriptor(dx, format, type, p->n, p->c, p->hw[0], p->hw[1]));
    gd_setup("dy", lib.SetTensor4dDescriptor(dy, format, type, p->n, p->k, out[0], out[1]));
    gd_setup("conv",
             lib.SetConvolution2dDescriptor(c, p->pad[0], p->pad[1], p->stride[0], p->stride[1],
                                            p->dil[0], p->dil[1], mode, CUDNN_DATA_FLOAT));
    gd_setup("groups", lib.SetConvolutionGroupCount(c, p->groups));
    gd_setup("math", lib.SetConvolutionMathType(c, CUDNN_TENSOR_OP_MATH));
    if (gd_status("fold",
                  lib.GetFoldedConvBackwardDataDescriptors(NULL, w, dy, c, dx, to, fw, fdy, fc, fdx,
                                                           t[0], t[1], t[2], t[3])) == 0) {
        int dim[8] = {0}, nd = -7, pad[2], stride[2], dil[2], groups = -7;
        cudnnDataType_t got = (cudnnDataType_t)-7;
        cudnnTensorFormat_t order = (cudnnTensorFormat_t)-7;
        cudnnConvolutionMode_t same = (cudnnConvolutionMode_t)-7;
        cudnnMathType_t math = (cudnnMathType_t)-7;
        lib.GetFilterNdDescriptor(fw, 8, &got, &order, &nd, dim);
        gd_ints("w", nd, dim);
        gd_int("w_format", order);
        gd_int("w_type", got);
        note_tensor("dy", fdy);
        note_tensor("dx", fdx);
        lib.GetConvolutionNdDescriptor(fc, 2, &nd, pad, stride, dil, &same, &got);
        lib.GetConvolutionGroupCount(fc, &groups);
        lib.GetConvolutionMathType(fc, &math);
        gd_ints("pad", 2, pad);
        gd_ints("stride", 2, stride);
        gd_ints("dilation", 2, dil);
        int rest[4] = {(int)same, (int)got, (int)math, groups};
        gd_ints("conv", 4, rest);
        note_transform("fold_w", t[0]);
        note_transform("pad_dy", t[1]);
        note_transform("fold_dx", t[2]);
        note_transform("unfold_dx", t[3]);
    }
    for (int i = 0; i < 4; i++) lib.DestroyTensorTransformDescriptor(t[i]);
    lib.DestroyConvolutionDescriptor(c);
    lib.DestroyConvolutionDescriptor(fc);
    lib.DestroyFilterDescriptor(w);
    lib.DestroyFilterDescriptor(fw);
    lib.DestroyTensorDescriptor(dy);
    lib.DestroyTensorDescriptor(dx);
    lib.DestroyTensorDescriptor(fdy);
    lib.DestroyTensorDescriptor(fdx);
}

void cases_fold(void)
{
    for (int i = 0; i < GD_COUNT(problems); i++) {
        for (int form = 0; form < 4; form++) {
            cudnnDataType_t type = form == 3 ? CUDNN_DATA_FLOAT : CUDNN_DATA_HALF;
            if (form > 1 && i > 3) continue;
            if (!gd_host_case("fold/%s/f%d_to_f%d_t%d", problems[i].name, form & 1, form != 2,
                              (int)type))
                continue;
            one(&problems[i], type, (cudnnTensorFormat_t)(form & 1),
                (cudnnTensorFormat_t)(form != 2), CUDNN_CROSS_CORRELATION);
            gd_end();
        }
    }
    if (gd_host_case("fold/flipped")) {
        one(&problems[1], CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NHWC, CUDNN_CONVOLUTION);
        gd_end();
    }
    static const int formats[] = {-1, 2, 3, 7};
    for (int i = 0; i < GD_COUNT(formats); i++) {
        if (!gd_host_case("fold/format%d", formats[i])) continue;
        one(&problems[1], CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, (cudnnTensorFormat_t)formats[i],
            CUDNN_CROSS_CORRELATION);
        gd_end();
    }
}
