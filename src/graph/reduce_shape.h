/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about reductions, for the rule, the definition, the engines and the entry points alike. */
#ifndef WD_GRAPH_REDUCE_SHAPE_H
#define WD_GRAPH_REDUCE_SHAPE_H

#include "base/shared.h"
#include "cudnn.h"

/* Whether the operator picks an element, which then has an index. */
WD_FN int wd_reduce_has_index(int op)
{
    return op == CUDNN_REDUCE_TENSOR_MIN || op == CUDNN_REDUCE_TENSOR_MAX ||
           op == CUDNN_REDUCE_TENSOR_AMAX;
}

/* Bytes of one index of a cudnnIndicesType_t; indices are unsigned. */
WD_FN int wd_index_bytes(int index_type)
{
    switch (index_type) {
    case CUDNN_64BIT_INDICES: return 8;
    case CUDNN_16BIT_INDICES: return 2;
    case CUDNN_8BIT_INDICES: return 1;
    default: return 4;
    }
}

#endif
