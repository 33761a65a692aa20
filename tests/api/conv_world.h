/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution that is right in every argument, and the wrong ones to put in their place: what the
 * rows of invalid arguments start from. */
#ifndef TESTS_API_CONV_WORLD_H
#define TESTS_API_CONV_WORLD_H

#include "support/refusal.h"

/* The convolution that the rows below start from: 2x3x6x6, four 3x3 filters, no padding. */
struct conv_world {
    cudnnHandle_t h;
    cudnnConvolutionDescriptor_t conv, unset, conv1, grouped;
    cudnnFilterDescriptor_t w, w_none, w_half, w_c4, w5;
    cudnnTensorDescriptor_t none;
    cudnnActivationDescriptor_t relu, relu_unset;
    struct tensor *x, *x_half, *x_c4, *x3, *x_small;
    struct tensor *y, *y_many, *y_k5, *y_n3, *y_half, *y_nhwc;
    struct tensor *filter, *b, *b_bad, *col;
    char *workspace;
};

void conv_world_begin(struct conv_world *s);
void conv_world_end(struct conv_world *s);
/* A packed tensor of random values. */
struct tensor *conv_plain(cudnnDataType_t type, int n, int c, int h, int w);

/* What is no descriptor at all. */
cudnnConvolutionDescriptor_t conv_fake(void);

/* Arguments of the right calls; `s` is the world. */
#define X s->x->desc, s->x->data
#define W s->w, s->filter->data
#define Y s->y->desc, s->y->data
#define OF(t) s->t->desc, s->t->data
#define NO_WORK NULL, 0

#endif
