// SPDX-License-Identifier: Apache-2.0
//
// Pointwise on any mixture of types, computed in A; the definition's formulas of both accumulators
// have been compiled by the including file.
#ifndef WD_OPS_POINTWISE_ANY_CUH
#define WD_OPS_POINTWISE_ANY_CUH

#include "ops/pointwise/pointwise_vector.cuh"

namespace {

// Modes with long code: one element at a time, and no matter that they go through local memory.
template <int MODE, int V, class A>
__device__ __noinline__ void each_rare(const pointwise_vector_args &a, A *x, const A *b)
{
    wd_pointwise_attr attr = a.attr;
    attr.mode = MODE;
#pragma unroll 1
    for (int i = 0; i < V; ++i) x[i] = value_of(&attr, x[i], b[i], (A)0, 0);
}

template <class A, int V>
__device__ __noinline__ void apply_any(const pointwise_vector_args &a, A *x, const A *b, const A *t)
{
    if (a.by_output) {
        switch (a.attr.mode) {
#define WD_BY_OUTPUT(mode)                                                                         \
    case mode:                                                                                     \
        each<mode, V>(a, x, b, x, true);                                                           \
        return;
#include "ops/pointwise/pointwise_modes.def"
        default: return;
        }
    }
    switch (a.attr.mode) {
    case CUDNN_POINTWISE_BINARY_SELECT:
        each<CUDNN_POINTWISE_BINARY_SELECT, V>(a, x, b, t, true);
        return;
#define WD_UNARY(mode)                                                                             \
    case mode:                                                                                     \
        each<mode, V>(a, x, x, x, false);                                                          \
        return;
#define WD_BINARY(mode)                                                                            \
    case mode:                                                                                     \
        each<mode, V>(a, x, b, x, false);                                                          \
        return;
#define WD_RARE_UNARY(mode)                                                                        \
    case mode:                                                                                     \
        each_rare<mode, V>(a, x, b);                                                               \
        return;
#define WD_RARE_BINARY(mode)                                                                       \
    case mode:                                                                                     \
        each_rare<mode, V>(a, x, b);                                                               \
        return;
#include "ops/pointwise/pointwise_modes.def"
    default: return;
    }
}

// Any types of tensors, and the mode chosen once a run.
template <class A, int V>
__device__ __forceinline__ void pointwise_any(const pointwise_vector_args &a)
{
    pointwise_walk<false, any_type, A, V, 3>(
        a, [&](A *x, const A *b, const A *t) { apply_any<A, V>(a, x, b, t); });
}

} // namespace

#endif
