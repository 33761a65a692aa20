// SPDX-License-Identifier: Apache-2.0
//
// Pointwise where all tensors are of one type and lie as the index counts: the modes that networks
// are full of, with little code around them. A thread asks for all of its runs before the mode is
// looked at, and computes one after the other. Formulas are the definition's.
#include "ops/pointwise/pointwise_runs.cuh"

namespace {

// value = MODE(alpha1 * x, alpha2 * b). All that waits for x is here, behind the choice of the mode:
// its code is on its way meanwhile.
template <int MODE, bool BY_OUTPUT, int INPUTS, class T, class A>
__device__ __forceinline__ void flat_mode(const pointwise_vector_args &a, A *value,
                                          const typename runs<T>::run &x,
                                          const typename runs<T>::run &b)
{
    constexpr int V = runs<T>::V;
    const A alpha1 = (A)a.operand[POINTWISE_X].factor, alpha2 = (A)a.operand[POINTWISE_B].factor;
    wd_pointwise_attr attr = a.attr;
    attr.mode = MODE;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        const A first = alpha1 * wd_widen(x.get(i));
        const A second = INPUTS > 1 ? alpha2 * wd_widen(b.get(i)) : first;
        value[i] = value_of(&attr, first, second, first, BY_OUTPUT);
    }
}

template <int INPUTS, class T, class A>
__device__ __forceinline__ void flat_apply(const pointwise_vector_args &a, A *value,
                                           const typename runs<T>::run &x,
                                           const typename runs<T>::run &b)
{
    if (INPUTS == 2 && a.by_output) {
        switch (a.attr.mode) {
#define WD_FLAT_BY_OUTPUT(mode)                                                                    \
    case mode:                                                                                     \
        flat_mode<mode, true, INPUTS, T>(a, value, x, b);                                          \
        break;
#include "ops/pointwise/pointwise_flat_modes.def"
        default: break;
        }
    } else if (INPUTS == 2) {
        switch (a.attr.mode) {
#define WD_FLAT_BINARY(mode)                                                                       \
    case mode:                                                                                     \
        flat_mode<mode, false, INPUTS, T>(a, value, x, b);                                         \
        break;
#include "ops/pointwise/pointwise_flat_modes.def"
        default: break;
        }
    } else {
        switch (a.attr.mode) {
#define WD_FLAT_UNARY(mode)                                                                        \
    case mode:                                                                                     \
        flat_mode<mode, false, INPUTS, T>(a, value, x, b);                                         \
        break;
#include "ops/pointwise/pointwise_flat_modes.def"
        default: break;
        }
    }
}

// U runs a thread.
template <class T, class A, int U, int INPUTS>
__device__ __forceinline__ void pointwise_flat(const pointwise_vector_args &a)
{
    typedef runs<T> of;
    constexpr int V = of::V;
    const uint32_t width = blockDim.x * V, begin = blockIdx.x * width * U;
    const bool whole = begin >= a.skip && begin + width * U <= a.count;
    const T *from_x = static_cast<const T *>(a.operand[POINTWISE_X].data);
    const T *from_b = static_cast<const T *>(a.operand[POINTWISE_B].data);
    typename of::run x[U], b[U];
    uint32_t at = begin + threadIdx.x * V;
    wd_wait_for_previous();
    of::template load<U>(x, a, from_x, at, width, whole);
    if (INPUTS > 1) of::template load<U>(b, a, from_b, at, width, whole);
#pragma unroll 1
    for (int n = 0; n < U; ++n, at += width) {
        A value[V];
        flat_apply<INPUTS, T>(a, value, x[0], b[0]);
        if (!a.plain) {
            const A alpha = (A)a.alpha, beta = (A)a.operand[POINTWISE_Y].factor;
            typename of::run old[1];
            if (beta != 0) {
                of::template load<1>(old, a, a.operand[POINTWISE_Y].data, at, width, whole);
            }
#pragma unroll
            for (int i = 0; i < V; ++i) {
                value[i] = alpha != 0 ? alpha * value[i] : (A)0;
                if (beta != 0) value[i] += beta * wd_widen(old[0].get(i));
            }
        }
        of::store(a, a.operand[POINTWISE_Y].data, at, whole, value);
#pragma unroll
        for (int u = 0; u + 1 < U; ++u) {
            x[u] = x[u + 1];
            if (INPUTS > 1) b[u] = b[u + 1];
        }
    }
}

// One number everywhere, as the bytes of 16 that `pattern` has.
__device__ __forceinline__ void pointwise_fill(const pointwise_fill_args &a)
{
    const uint32_t step = gridDim.x * blockDim.x;
    const uint4 four = make_uint4(a.pattern[0], a.pattern[1], a.pattern[2], a.pattern[3]);
    wd_wait_for_previous();
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < a.loads; at += step) {
        if (a.streaming) __stcs(static_cast<uint4 *>(a.y) + at, four);
        else static_cast<uint4 *>(a.y)[at] = four;
    }
    // the ends, a byte a thread: fewer than 16 before the whole loads and behind them
    if (blockIdx.x == 0 && threadIdx.x < 32) {
        const unsigned char *bytes = reinterpret_cast<const unsigned char *>(a.pattern);
        unsigned char *before = static_cast<unsigned char *>(a.y) - a.before;
        unsigned char *behind = static_cast<unsigned char *>(a.y) + (size_t)a.loads * 16;
        const int i = threadIdx.x & 15;
        if (threadIdx.x < 16 && i < a.before) before[i] = bytes[(16 - a.before + i) & 15];
        if (threadIdx.x >= 16 && i < a.behind) behind[i] = bytes[i];
    }
}

} // namespace
