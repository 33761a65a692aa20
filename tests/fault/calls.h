/* SPDX-License-Identifier: Apache-2.0
 *
 * The legacy calls that the fault tests make fail, one row a call, and the scene that they play in:
 * a handle of either device, descriptors, inputs and outputs. Each row has dims of its own, and so
 * has each take of a row, so that no plan of another one is in the cache. */
#ifndef TESTS_FAULT_CALLS_H
#define TESTS_FAULT_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "cudnn.h"
#include "warpdnn.h"

enum { FAULT_INPUTS = 4, FAULT_OUTPUTS = 4, FAULT_CHANNELS = 4, FAULT_TAPS = 9 };

struct scene {
    cudnnHandle_t handle;
    int n, h, w;
    cudnnTensorDescriptor_t image;   /* n, 4, h, w: x and y of everything */
    cudnnTensorDescriptor_t channel; /* 1, 4, 1, 1 */
    cudnnFilterDescriptor_t filter;  /* 4, 4, 3, 3 */
    cudnnConvolutionDescriptor_t conv;
    cudnnPoolingDescriptor_t pooling;
    cudnnActivationDescriptor_t activation;
    cudnnDropoutDescriptor_t dropout;
    cudnnOpTensorDescriptor_t op;
    cudnnReduceTensorDescriptor_t reduce;
    float *in[FAULT_INPUTS];   /* positive numbers */
    float *out[FAULT_OUTPUTS]; /* poison, until the row's prepare */
    void *workspace;
    size_t bytes; /* of each of these buffers */
    /* bytes of each output before the call */
    unsigned char *before[FAULT_OUTPUTS];
};

struct fault_call {
    const char *name;
    cudnnStatus_t (*run)(struct scene *scene);
    /* before each run, where nothing fails: reserves and states; may be null */
    cudnnStatus_t (*prepare)(struct scene *scene);
    bool falls_back; /* may succeed in another way, documented: without a workspace, slower */
};

struct fault_calls {
    const struct fault_call *rows;
    int count;
};
extern const struct fault_calls fault_descriptor_calls, fault_conv_calls, fault_norm_calls,
    fault_elementwise_calls, fault_image_calls;

/* All rows, in the order of their numbers; null behind the last. */
const struct fault_call *fault_call_at(int number);

/* Makes the scene for a take of a row on a new handle; a text where something went wrong. */
const char *scene_open(struct scene *scene, int number, int take);
/* Poisons the outputs and calls prepare. */
const char *scene_prepare(struct scene *scene, const struct fault_call *call);
/* Whether the outputs are as scene_prepare left them. */
bool scene_untouched(struct scene *scene);
/* Copies the outputs to memory of FAULT_OUTPUTS * scene->bytes. */
const char *scene_read(struct scene *scene, unsigned char *copy);
const char *scene_close(struct scene *scene);

#endif
