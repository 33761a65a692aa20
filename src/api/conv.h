/* SPDX-License-Identifier: Apache-2.0
 *
 * What the convolution entry points share: the descriptor, and a convolution said once as a
 * one-node graph, from which executing, asking for workspace and choosing an algorithm all start.
 *
 * The three directions are told apart by the operation only: x is the image (or its gradient), w
 * the filter, y the output image, each with the name that the public function gives it. */
#ifndef WD_API_CONV_H
#define WD_API_CONV_H

#include "api/api.h"

/* What the API's NdDescriptor functions take at most. */
enum { CONV_DESC_SPATIAL_MAX = WD_MAX_SPATIAL };

struct cudnnConvolutionStruct {
    struct wd_descriptor head;
    int32_t spatial;
    int32_t mode;    /* cudnnConvolutionMode_t */
    int32_t compute; /* cudnnDataType_t */
    int32_t math;    /* cudnnMathType_t */
    int32_t reorder; /* cudnnReorderType_t */
    int32_t groups;
    int32_t pad[CONV_DESC_SPATIAL_MAX];
    int32_t stride[CONV_DESC_SPATIAL_MAX];
    int32_t dilation[CONV_DESC_SPATIAL_MAX];
};

/* The arguments of a convolution as the caller gave them. */
struct wd_conv_call {
    const char *function;
    enum wd_op op; /* CONV_FPROP, CONV_DGRAD, CONV_WGRAD or CONV_FUSED */
    const struct cudnnTensorStruct *x;
    const struct cudnnFilterStruct *w;
    const struct cudnnTensorStruct *y;
    const struct cudnnConvolutionStruct *conv;
    const char *x_name;
    const char *w_name;
    const char *y_name;
    const void *x_data;
    const void *w_data;
    const void *y_data;
    const char *x_data_name;
    const char *w_data_name;
    const char *y_data_name;
};
/* A call from the arguments of a public function, by their names: of descriptors, and of pointers.
 * convDesc is called so everywhere. */
#define WD_CONV_QUERY(operation, X, W, Y)                                                          \
    .function = __func__, .op = WD_OP_CONV_##operation, .x = (X), .w = (W), .y = (Y),              \
    .conv = convDesc, .x_name = #X, .w_name = #W, .y_name = #Y
#define WD_CONV_DATA(X, W, Y)                                                                      \
    .x_data = (X), .w_data = (W), .y_data = (Y), .x_data_name = #X, .w_data_name = #W,             \
    .y_data_name = #Y

/* The attributes that a convolution descriptor means. */
struct wd_conv_attr wd_conv_attr_of(const struct cudnnConvolutionStruct *conv);

/* Checks descriptors, shapes and types in the API's order and fills the one-node graph but for its
 * scalars, which are 1 and 0, and for what CONV_FUSED has beyond x, w and y. */
cudnnStatus_t wd_conv_build(const struct wd_conv_call *call, struct wd_single *single);

/* Refuses a null x, w or y pointer. */
cudnnStatus_t wd_conv_check_data(const struct wd_conv_call *call);

/* What a legacy algorithm means for this convolution on this handle: sets the graph's engine.
 * `bytes` (may be null) is the workspace that the caller must bring; where `from_arena` is set it is
 * 0 and the scratch comes from the library. Out of range: NOT_SUPPORTED. */
cudnnStatus_t wd_conv_algorithm(const char *function, cudnnHandle_t handle,
                                struct wd_single *single, int algorithm, size_t *bytes,
                                bool *from_arena);

/* How many algorithms the operation's enumeration has. */
int wd_conv_algorithm_count(enum wd_op op);

/* Runs the convolution with an algorithm and the caller's workspace. */
cudnnStatus_t wd_conv_run(const char *function, cudnnHandle_t handle, struct wd_single *single,
                          int algorithm, void *workspace, size_t workspace_bytes);

#endif
