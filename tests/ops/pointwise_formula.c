/* SPDX-License-Identifier: Apache-2.0
 *
 * See pointwise_formula.h. */
#include "ops/pointwise_formula.h"

#include <math.h>
#include <stdlib.h>

#include "cudnn.h"

static double sigmoid(double x)
{
    return x >= 0 ? 1.0 / (1.0 + exp(-x)) : exp(x) / (1.0 + exp(x));
}

static double cdf(double x)
{
    return 0.5 * erfc(-x / sqrt(2.0));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

double pointwise_formula(int mode, const struct pointwise_attributes *a, double x, double b,
                         double t)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_SUB: return x - b;
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_DIV: return x / b;
    case CUDNN_POINTWISE_ADD_SQUARE: return x + b * b;
    case CUDNN_POINTWISE_MAX: return fmax(x, b);
    case CUDNN_POINTWISE_MIN: return fmin(x, b);
    case CUDNN_POINTWISE_CMP_GT: return x > b;
    case CUDNN_POINTWISE_CMP_LE: return x <= b;
    case CUDNN_POINTWISE_CMP_NEQ: return x != b;
    case CUDNN_POINTWISE_LOGICAL_AND: return x != 0 && b != 0;
    case CUDNN_POINTWISE_LOGICAL_OR: return x != 0 || b != 0;
    case CUDNN_POINTWISE_BINARY_SELECT: return t != 0 ? x : b;
    case CUDNN_POINTWISE_IDENTITY: return x;
    case CUDNN_POINTWISE_ABS: return fabs(x);
    case CUDNN_POINTWISE_NEG: return -x;
    case CUDNN_POINTWISE_CEIL: return ceil(x);
    case CUDNN_POINTWISE_FLOOR: return floor(x);
    case CUDNN_POINTWISE_LOGICAL_NOT: return x == 0;
    case CUDNN_POINTWISE_EXP: return exp(x);
    case CUDNN_POINTWISE_LOG: return log(x);
    case CUDNN_POINTWISE_SQRT: return sqrt(x);
    case CUDNN_POINTWISE_RSQRT: return 1.0 / sqrt(x);
    case CUDNN_POINTWISE_RECIPROCAL: return 1.0 / x;
    case CUDNN_POINTWISE_ERF: return erf(x);
    case CUDNN_POINTWISE_RELU_FWD:
        return fmin(x > a->low ? x : a->low + a->slope * (x - a->low), a->high);
    case CUDNN_POINTWISE_TANH_FWD: return tanh(x);
    case CUDNN_POINTWISE_SIGMOID_FWD: return sigmoid(x);
    case CUDNN_POINTWISE_ELU_FWD: return x > 0 ? x : a->elu * expm1(x);
    case CUDNN_POINTWISE_GELU_FWD: return x * cdf(x);
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD: return gelu_tanh(x);
    case CUDNN_POINTWISE_SOFTPLUS_FWD:
        return fmax(x, 0.0) + log1p(exp(-fabs(a->softplus * x))) / a->softplus;
    case CUDNN_POINTWISE_SWISH_FWD: return x * sigmoid(a->swish * x);
    case CUDNN_POINTWISE_RELU_BWD:
        return x > a->low && x <= a->high ? b : x > a->low ? 0 : a->slope * b;
    case CUDNN_POINTWISE_TANH_BWD: return b * (1.0 - tanh(x) * tanh(x));
    case CUDNN_POINTWISE_SIGMOID_BWD: return b * sigmoid(x) * (1.0 - sigmoid(x));
    case CUDNN_POINTWISE_ELU_BWD: return x > 0 ? b : b * a->elu * exp(x);
    case CUDNN_POINTWISE_GELU_BWD:
        return b * (cdf(x) + x * exp(-0.5 * x * x) / sqrt(2.0 * acos(-1.0)));
    case CUDNN_POINTWISE_SOFTPLUS_BWD: return b * sigmoid(a->softplus * x);
    case CUDNN_POINTWISE_SWISH_BWD: {
        double s = sigmoid(a->swish * x);
        return b * (s + a->swish * x * s * (1.0 - s));
    }
    default: abort();
    }
}

bool pointwise_is_gradient(int mode)
{
    return mode >= CUDNN_POINTWISE_RELU_BWD && mode < CUDNN_POINTWISE_CMP_EQ;
}

int pointwise_operands(int mode)
{
    switch (mode) {
    case CUDNN_POINTWISE_BINARY_SELECT: return 3;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_ADD_SQUARE:
    case CUDNN_POINTWISE_MAX:
    case CUDNN_POINTWISE_MIN:
    case CUDNN_POINTWISE_CMP_GT:
    case CUDNN_POINTWISE_CMP_LE:
    case CUDNN_POINTWISE_CMP_NEQ:
    case CUDNN_POINTWISE_LOGICAL_AND:
    case CUDNN_POINTWISE_LOGICAL_OR: return 2;
    default: return pointwise_is_gradient(mode) ? 2 : 1;
    }
}
