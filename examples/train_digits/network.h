/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of train_digits: layers over blobs, forward, backward and the update of SGD, each a
 * call or two of the cuDNN API. */
#ifndef EXAMPLES_TRAIN_DIGITS_NETWORK_H
#define EXAMPLES_TRAIN_DIGITS_NETWORK_H

#include <cudnn.h>
#include <stddef.h>
#include <warpdnn.h>

enum { BATCH = 64, LAYERS_MAX = 16, CLASSES = 10 };

extern cudnnHandle_t handle;
extern const float one, zero; /* the commonest alpha and beta */

/* Every call answers a status; the last-error text says what was wrong. */
#define CHECK(call) check((call), #call)
void check(cudnnStatus_t status, const char *call);

/* A small random generator, so that a seed gives the same run everywhere: reals in [0, 1). */
extern unsigned long long random_state;
double uniform(void);

/* An activation: BATCH x channels x size x size, and its gradient. */
struct blob {
    cudnnTensorDescriptor_t desc;
    int channels, size;
    void *data, *grad;
};

/* A trained parameter: value, gradient, and the momentum of SGD. */
struct param {
    cudnnTensorDescriptor_t desc;
    int count;
    void *value, *grad, *momentum;
};

enum kind { CONV, NORM, RELU, POOL, DROPOUT };

/* One layer: what it needs beside its input and output blobs. */
struct layer {
    enum kind kind;
    char engine[2][96];    /* forward, backward */
    struct param param[2]; /* conv: filter, bias; norm: scale, bias */
    int params;
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    cudnnConvolutionFwdAlgo_t fprop;
    cudnnConvolutionBwdDataAlgo_t dgrad;
    cudnnConvolutionBwdFilterAlgo_t wgrad;
    cudnnActivationDescriptor_t activation;
    cudnnPoolingDescriptor_t pooling;
    cudnnDropoutDescriptor_t dropout;
    void *states, *reserve;
    size_t reserve_bytes;
    void *running_mean, *running_var, *saved_mean, *saved_inv_std;
};

struct network {
    struct layer layer[LAYERS_MAX];
    struct blob blob[LAYERS_MAX + 2]; /* blob[i] is the input of layer i; the last is softmax's */
    int layers;
    void *workspace;
    size_t workspace_bytes;
};

void network_create(struct network *net, int size, unsigned long long seed);
void network_destroy(struct network *net);

/* blob[0] to blob[layers]; then the gradients from blob[layers] down. */
void network_forward(struct network *net, int training);
void network_backward(struct network *net);

/* momentum = 0.9 momentum + grad + decay value; value -= rate momentum: three scaled additions. */
void network_update(struct network *net, double rate);

#endif
