/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of batch norm's statistics, see bn_case.h. One thread. */
#include "bn_case.h"

#include <math.h>

#include "ops/graph_run.h"

const cudnnDataType_t bn_types[BN_TYPES] = {
    CUDNN_DATA_FLOAT,   CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,  CUDNN_DATA_BFLOAT16,
    CUDNN_DATA_INT8,    CUDNN_DATA_UINT8,  CUDNN_DATA_INT32, CUDNN_DATA_INT8x4,
    CUDNN_DATA_UINT8x4, CUDNN_DATA_INT8x32};
const char *const bn_type_names[BN_TYPES] = {"f32",   "f64",   "f16",    "bf16",    "int8",
                                             "uint8", "int32", "int8x4", "uint8x4", "int8x32"};

enum layout bn_layout(cudnnDataType_t dtype)
{
    if (graph_lane(dtype) != dtype) return LAYOUT_VECT;
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

cudnnDataType_t bn_compute(cudnnDataType_t a, cudnnDataType_t b)
{
    return a == CUDNN_DATA_DOUBLE || b == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

int bn_dims(cudnnDataType_t dtype, int *dim, int *channels)
{
    int rank = random_of(2, 3, 4, 4, 5);
    for (int d = 0; d < rank; ++d) {
        dim[d] = random_of(1, 2, 3, 5, 7, 11);
        channels[d] = 1;
    }
    if (dtype == CUDNN_DATA_INT8x32) dim[1] = 64;
    if (dtype == CUDNN_DATA_INT8x4 || dtype == CUDNN_DATA_UINT8x4) dim[1] = 12;
    channels[1] = dim[1];
    return rank;
}

int64_t bn_channel(const struct tensor *x, int64_t i)
{
    int64_t inner = 1;
    for (int d = 2; d < x->rank; ++d) inner *= x->dim[d];
    return i / inner % x->dim[1];
}

struct tensor *bn_fresh(cudnnDataType_t dtype, int rank, const int *dim)
{
    struct tensor *t =
        tensor_inout(dtype, rank, dim, (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC), 0.0, 1.0);
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN;
    tensor_write(t);
    return t;
}

struct tensor *bn_input(cudnnDataType_t dtype, int rank, const int *dim, double low, double high)
{
    return tensor_input(dtype, rank, dim, (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC), low,
                        high);
}
