/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about pointwise modes, for the rule, the definition and the engines alike. */
#ifndef WD_GRAPH_POINTWISE_MODES_H
#define WD_GRAPH_POINTWISE_MODES_H

#include "base/shared.h"
#include "cudnn.h"

/* Modes beyond cudnnPointwiseMode_t that the legacy API needs. */
enum {
    WD_POINTWISE_ONE_MINUS = 1000, /* 1 - x: the legacy NOT */
};

/* How many of x, b, t a mode takes: 1, 2 or 3; 0 for a value that is no mode. Backward modes take x
 * and dy, and may take the forward output in t as well. */
WD_FN int wd_pointwise_operands(int mode)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_ADD_SQUARE:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_MAX:
    case CUDNN_POINTWISE_MIN:
    case CUDNN_POINTWISE_MOD:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_POW:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_ATAN2:
    case CUDNN_POINTWISE_CMP_EQ:
    case CUDNN_POINTWISE_CMP_NEQ:
    case CUDNN_POINTWISE_CMP_GT:
    case CUDNN_POINTWISE_CMP_GE:
    case CUDNN_POINTWISE_CMP_LT:
    case CUDNN_POINTWISE_CMP_LE:
    case CUDNN_POINTWISE_LOGICAL_AND:
    case CUDNN_POINTWISE_LOGICAL_OR: return 2;
    case CUDNN_POINTWISE_BINARY_SELECT: return 3;
    case CUDNN_POINTWISE_ABS:
    case CUDNN_POINTWISE_CEIL:
    case CUDNN_POINTWISE_COS:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_FLOOR:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_NEG:
    case CUDNN_POINTWISE_RSQRT:
    case CUDNN_POINTWISE_SIN:
    case CUDNN_POINTWISE_SQRT:
    case CUDNN_POINTWISE_TAN:
    case CUDNN_POINTWISE_ERF:
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_RECIPROCAL:
    case CUDNN_POINTWISE_LOGICAL_NOT:
    case CUDNN_POINTWISE_GEN_INDEX:
    case WD_POINTWISE_ONE_MINUS: return 1;
    default:
        if (mode >= CUDNN_POINTWISE_RELU_FWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_FWD) {
            return 1;
        }
        if (mode >= CUDNN_POINTWISE_RELU_BWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_BWD) {
            return 2;
        }
        return 0;
    }
}

#endif
